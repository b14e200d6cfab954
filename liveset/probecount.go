package liveset

import (
	"context"
	"sync/atomic"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// ProbeCounts say what probes, and reading the rows that they found, did. Reads of footers, filters, page indexes, key indexes and pages are in
// Reads, Bytes and Opens; decoding of manifests is not: a set is there before it is probed.
type ProbeCounts struct {
	Keys       int64 // keys probed
	CachedKeys int64 // keys answered by lookup's row cache, without a probe; not in Keys
	Considered int64 // files that bounds and partitions could not rule out, counted once a probe
	Probed     int64 // of them, files whose key index was asked: filters ruled the others out
	Filtered   int64 // (key, file) pairs that a bloom filter ruled out
	IndexHits  int64 // positions that key indexes named
	Suppressed int64 // of them, rows that are not live; they are not read
	Needless   int64 // of them, rows that were read and had another key: fingerprints collide
	Built      int64 // key indexes built from key columns

	Reads   int64 // read calls, ranges that lie together counted once
	Bytes   int64 // bytes they returned
	Opens   int64 // files opened
	Pages   int64 // data and dictionary pages inflated
	Decoded int64 // values decoded, a column's row each
	Groups  int64 // row groups looked into
}

// Sub is a − b, field by field.
func (a ProbeCounts) Sub(b ProbeCounts) ProbeCounts {
	for i, p := range a.fields() {
		*p -= *b.fields()[i]
	}
	return a
}

// Add is a + b, field by field.
func (a ProbeCounts) Add(b ProbeCounts) ProbeCounts {
	for i, p := range a.fields() {
		*p += *b.fields()[i]
	}
	return a
}

const probeFields = 15

func (a *ProbeCounts) fields() [probeFields]*int64 {
	return [...]*int64{
		&a.Keys, &a.CachedKeys, &a.Considered, &a.Probed, &a.Filtered, &a.IndexHits, &a.Suppressed, &a.Needless, &a.Built,
		&a.Reads, &a.Bytes, &a.Opens, &a.Pages, &a.Decoded, &a.Groups,
	}
}

// ProbeCounters gather ProbeCounts. The zero value is ready; safe for concurrent use.
type ProbeCounters struct{ n [probeFields]atomic.Int64 }

// Counts reads the counters, each on its own.
func (c *ProbeCounters) Counts() (out ProbeCounts) {
	for i, p := range out.fields() {
		*p = c.n[i].Load()
	}
	return out
}

// Add adds counts. c may be nil.
func (c *ProbeCounters) Add(n ProbeCounts) {
	if c == nil {
		return
	}
	for i, p := range n.fields() {
		if *p != 0 {
			c.n[i].Add(*p)
		}
	}
}

type probeCountersKey struct{}

// WithProbeCounters returns a context whose probes and reads of hits are counted in c, beside the Cache's own totals.
func WithProbeCounters(ctx context.Context, c *ProbeCounters) context.Context {
	return context.WithValue(ctx, probeCountersKey{}, c)
}

// ProbeCountersOf are the counters of WithProbeCounters, nil when there are none.
func ProbeCountersOf(ctx context.Context) *ProbeCounters {
	c, _ := ctx.Value(probeCountersKey{}).(*ProbeCounters)
	return c
}

// ProbeCounts are the totals of all probes since the cache was made.
func (c *Cache) ProbeCounts() ProbeCounts { return c.probed.Counts() }

// CountCached counts keys that a row cache answered.
func (c *Cache) CountCached(ctx context.Context, keys int64) {
	c.probed.n[1].Add(keys)
	ProbeCountersOf(ctx).Add(ProbeCounts{CachedKeys: keys})
}

// tally counts one call: its own counts and, as the context that files are read with, theirs.
type tally struct {
	context.Context
	ProbeCounts
	files parquetio.Counters
}

// Value finds the files' counters without another context around this one.
func (t *tally) Value(key any) any {
	if key == parquetio.CountersKey {
		return &t.files
	}
	return t.Context.Value(key)
}

// newTally returns a context to read with. The call must end with done.
func newTally(ctx context.Context) (context.Context, *tally) {
	t := &tally{Context: ctx}
	return t, t
}

// done adds the counts to the totals and to whoever asked for them.
func (t *tally) done(c *Cache) {
	t.files.AddTo(parquetio.CountersOf(t.Context))
	f := &t.files
	t.Reads, t.Bytes, t.Opens = f.Reads.Load(), f.Bytes.Load(), f.Opens.Load()
	t.Pages, t.Decoded, t.Groups = f.Pages.Load(), f.Rows.Load(), f.Groups.Load()
	c.probed.Add(t.ProbeCounts)
	ProbeCountersOf(t.Context).Add(t.ProbeCounts)
}
