package liveset

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// The ceilings of a probe and the reading of its row, of columns flat columns. Counts, not times.
const (
	columns     = 4
	pageBytes   = 16<<10 + 256 // a page and its header
	pageRows    = 782          // decoded a column
	coldReads   = 1 + 1 + 1 + 1 + columns
	tailBytes   = 8 << 10
	filterBytes = 2 // a key: a filter of 1 % at most
	indexBytes  = 12
)

// probeFixture is a table of three files with disjoint ranges of keys, 20,000 rows each.
type probeFixture struct {
	*kit
	ids   []int
	key   func(i int) []byte
	files int
}

const fixtureRows = 20000

func newFixture(t *testing.T, ids []int) *probeFixture {
	x := &probeFixture{kit: newKit(t, 2), ids: ids, files: 3}
	x.key = func(i int) []byte {
		if ids[0] == 1 {
			return longKey(int64(i))
		}
		return keyindex.AppendString(nil, fmt.Sprintf("name %06d", i))
	}
	var add []iceberg.DataFile
	for f := range x.files {
		add = append(add, x.dataFileBy(ids, namedRows(f*2*fixtureRows, fixtureRows)))
	}
	x.commit(change{add: add})
	return x
}

// open is a cache over a store of its own, so that its opens are its own.
func (x *probeFixture) open(budget int64) (*Cache, *Set) {
	c := NewCache(Options{FS: storeio.NewFS(storeio.Options{NoSync: true}), Budget: budget})
	s, err := c.At(x.t.Context(), x.ref, *x.head)
	require.NoError(x.t, err)
	return c, s
}

// probe finds row i, which is there when it is even, and says what it cost.
func (x *probeFixture) probe(c *Cache, s *Set, i int) ProbeCounts {
	x.t.Helper()
	var n ProbeCounters
	ctx := WithProbeCounters(x.t.Context(), &n)
	keys := [][]byte{x.key(i)}
	hits, err := c.AppendCandidates(ctx, nil, x.ref, s, x.ids, 1, keys)
	require.NoError(x.t, err)
	sc := x.meta.CurrentSchema()
	if len(hits) > 0 {
		var rec arrow.RecordBatch
		hits, rec, err = c.ReadVerified(ctx, x.ref, sc, x.ids, keys, hits)
		require.NoError(x.t, err)
		rec.Release()
	}
	want := 0
	if i%2 == 0 && i < x.files*2*fixtureRows {
		want = 1
	}
	require.Len(x.t, hits, want, "key %d", i)
	return n.Counts()
}

// TestProbeCeilings: what a probe costs, cold and warm, of keys kept whole and of fingerprints; each ceiling is passed when what keeps it is switched off.
func TestProbeCeilings(t *testing.T) {
	for name, ids := range map[string][]int{"whole": {1}, "fingerprints": {3}} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t, ids)
			t.Run("cold", x.cold)
			t.Run("warm", x.warm)
			t.Run("absent", x.absent)
			t.Run("out of range", x.outOfRange)
		})
	}
}

// cold: a process that knows the set opens one file, reads its footer, its filter, its index, its offset indexes and a page a column.
func (x *probeFixture) cold(t *testing.T) {
	ceiling := func(n ProbeCounts) error {
		return firstAbove(map[string][2]int64{
			"opens": {n.Opens, 2}, "reads": {n.Reads, coldReads}, "files": {n.Considered, 1}, "groups": {n.Groups, 2},
			"bytes":   {n.Bytes, tailBytes + fixtureRows*(filterBytes+indexBytes) + columns*(pageBytes+4<<10)},
			"decoded": {n.Decoded, columns * pageRows}, "index hits": {n.IndexHits, 1}, "built": {n.Built, 0},
		})
	}
	c, s := x.open(0)
	require.NoError(t, ceiling(x.probe(c, s, 4242)))
	t.Run("without pruning", func(t *testing.T) {
		off.pruning = true
		defer func() { off.pruning = false }()
		c, s := x.open(0)
		require.Error(t, ceiling(x.probe(c, s, 4242)))
	})
	t.Run("without index", func(t *testing.T) {
		off.index = true
		defer func() { off.index = false }()
		c, s := x.open(0)
		require.Error(t, ceiling(x.probe(c, s, 4242)))
	})
}

// warm: footers and indexes are at hand; a row costs one page a column, adjacent ones in one read, and nothing the second time.
func (x *probeFixture) warm(t *testing.T) {
	ceiling := func(n ProbeCounts) error {
		return firstAbove(map[string][2]int64{
			"opens": {n.Opens, 0}, "reads": {n.Reads, columns}, "pages": {n.Pages, columns}, "bytes": {n.Bytes, columns * pageBytes},
			"decoded": {n.Decoded, columns * pageRows}, "index hits": {n.IndexHits, 1}, "needless": {n.Needless, 0}, "groups": {n.Groups, 1},
		})
	}
	at := func(c *Cache, s *Set) (worst error) {
		for f := range x.files {
			x.probe(c, s, f*2*fixtureRows)
		}
		for i := range 100 {
			if err := ceiling(x.probe(c, s, (i*997%(x.files*fixtureRows))*2)); err != nil {
				worst = err
			}
		}
		return worst
	}
	c, s := x.open(0)
	require.NoError(t, at(c, s))
	for i := range 100 {
		n := x.probe(c, s, (i*997%(x.files*fixtureRows))*2)
		require.NoError(t, firstAbove(map[string][2]int64{"reads": {n.Reads, 0}, "bytes": {n.Bytes, 0}, "pages": {n.Pages, 0}, "opens": {n.Opens, 0}}))
	}
	t.Run("without caching", func(t *testing.T) {
		require.Error(t, at(x.open(-1)))
	})
	t.Run("without index", func(t *testing.T) {
		off.index = true
		defer func() { off.index = false }()
		require.Error(t, at(c, s))
	})
}

// absent keys inside of a file's range: no data is read but for one in 10,000.
func (x *probeFixture) absent(t *testing.T) {
	var keys [][]byte
	for i := range x.files * fixtureRows {
		keys = append(keys, x.key(i*2+1))
	}
	at := func(c *Cache, s *Set) ProbeCounts {
		for f := range x.files {
			x.probe(c, s, f*2*fixtureRows)
		}
		was := c.ProbeCounts()
		hits, err := c.Probe(t.Context(), x.ref, s, x.ids, keys)
		require.NoError(t, err)
		require.Empty(t, hits)
		return c.ProbeCounts().Sub(was)
	}
	few := int64(len(keys) / 10_000)
	ceiling := func(n ProbeCounts) error {
		return firstAbove(map[string][2]int64{"needless": {n.Needless, few}, "reads": {n.Reads, 3 * few}, "index hits": {n.IndexHits, few}})
	}
	n := at(x.open(0))
	require.EqualValues(t, len(keys), n.Keys)
	require.NoError(t, ceiling(n))
	if x.ids[0] == 3 {
		t.Run("with fingerprints that collide", func(t *testing.T) {
			was := keyindex.Hash
			keyindex.Hash = func(b []byte) uint64 { return was(b) & (1<<12 - 1) << 30 }
			defer func() { keyindex.Hash = was }()
			off.index = true // the stored ones were built with the other function
			defer func() { off.index = false }()
			c, s := x.open(0)
			x.probe(c, s, 0)
			n, err := c.Probe(t.Context(), x.ref, s, x.ids, keys[:1000])
			require.NoError(t, err)
			require.Empty(t, n)
			require.Error(t, ceiling(c.ProbeCounts()))
		})
	}
}

// outOfRange: a key that no file's bounds admit opens, reads and looks into nothing.
func (x *probeFixture) outOfRange(t *testing.T) {
	nothing := func(n ProbeCounts) error {
		return firstAbove(map[string][2]int64{
			"groups": {n.Groups, 0}, "reads": {n.Reads, 0}, "bytes": {n.Bytes, 0}, "opens": {n.Opens, 0}, "files": {n.Considered, 0}, "decoded": {n.Decoded, 0},
		})
	}
	c, s := x.open(0)
	require.NoError(t, nothing(x.probe(c, s, x.files*2*fixtureRows+10_001)))
	t.Run("without pruning", func(t *testing.T) {
		off.pruning = true
		defer func() { off.pruning = false }()
		c, s := x.open(0)
		require.Error(t, nothing(x.probe(c, s, x.files*2*fixtureRows+10_001)))
	})
}

// firstAbove is an error that names a count above its ceiling.
func firstAbove(counts map[string][2]int64) error {
	for name, c := range counts {
		if c[0] > c[1] {
			return fmt.Errorf("%s: %d, at most %d", name, c[0], c[1])
		}
	}
	return nil
}

// TestPagesTakeWhatIsLeft: pages have the budget to themselves until other things need it.
func TestPagesTakeWhatIsLeft(t *testing.T) {
	x := newFixture(t, []int{1})
	const budget = 4 << 20
	c, s := x.open(budget)
	rest := func() int64 {
		var n ProbeCounts
		for range 2 {
			n = ProbeCounts{}
			for i := 0; i < x.files*2*fixtureRows; i += 2 * 601 {
				n = n.Add(x.probe(c, s, i))
			}
		}
		return n.Pages
	}
	require.Zero(t, rest(), "all pages fit")
	for i := range 100 {
		c.lru.put(lruKey{kind: kindSet, name: fmt.Sprint(i)}, nil, budget/100)
	}
	c.lru.mu.Lock()
	require.LessOrEqual(t, c.lru.mu.used, c.lru.budget)
	c.lru.mu.Unlock()
	require.Positive(t, rest(), "they do not beside the others")
}
