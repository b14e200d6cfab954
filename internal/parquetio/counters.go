package parquetio

import (
	"context"
	"sync/atomic"
)

// Counters count what reading did: data and dictionary pages decoded (where single pages are read), bytes and calls of the file,
// opens of its descriptor, and values decoded, per column. Rows counts a column's row once when it is decoded, wanted or not. Groups counts the
// row groups whose pages or filters were looked for.
type Counters struct{ Pages, Bytes, Reads, Rows, Opens, Groups atomic.Int64 }

// AddTo adds the counts to d, which may be nil.
func (c *Counters) AddTo(d *Counters) {
	if d == nil {
		return
	}
	for _, p := range [...][2]*atomic.Int64{
		{&c.Pages, &d.Pages}, {&c.Bytes, &d.Bytes}, {&c.Reads, &d.Reads}, {&c.Rows, &d.Rows}, {&c.Opens, &d.Opens}, {&c.Groups, &d.Groups},
	} {
		if n := p[0].Load(); n != 0 {
			p[1].Add(n)
		}
	}
}

// CountersOf are the counters of WithCounters, nil when there are none.
func CountersOf(ctx context.Context) *Counters {
	c, _ := ctx.Value(countersKey{}).(*Counters)
	return c
}

type countersKey struct{}

// CountersKey is the key of a context's counters, for contexts that carry them themselves.
var CountersKey any = countersKey{}

// WithCounters returns a context whose reads are counted in c.
func WithCounters(ctx context.Context, c *Counters) context.Context {
	return context.WithValue(ctx, countersKey{}, c)
}

// discard takes the counts nobody asked for.
var discard Counters

func countersOf(ctx context.Context) *Counters {
	if c := CountersOf(ctx); c != nil {
		return c
	}
	return &discard
}
