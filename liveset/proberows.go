package liveset

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Unverified says that a hit of AppendCandidates may be a row of another key, which ReadVerified finds out.
func (h Hit) Unverified() bool { return h.maybe }

// CompareHits orders hits by file (V4) and position.
func CompareHits(a, b Hit) int {
	if c := strings.Compare(a.File.File.order, b.File.File.order); c != 0 {
		return c
	}
	return cmp.Compare(a.Pos, b.Pos)
}

// AppendCandidates is AppendProbe, or ProbePrefix for the first n of keyIDs, that leaves it to ReadVerified to compare the keys of rows that an index named by
// fingerprint: whoever reads the rows anyway reads their pages once.
func (c *Cache) AppendCandidates(ctx context.Context, dst []Hit, ref Ref, s *Set, keyIDs []int, n int, keys [][]byte) ([]Hit, error) {
	return c.probe(ctx, dst, ref, s, keyIDs, n, keys, false)
}

// ReadVerified reads the rows of candidates, one row each, in their order, and drops those that have another key than the probe's keys say. The hits it
// returns are those of the rows and share hits' array.
func (c *Cache) ReadVerified(ctx context.Context, ref Ref, sc *iceberg.Schema, keyIDs []int, keys [][]byte, hits []Hit) ([]Hit, arrow.RecordBatch, error) {
	if !slices.ContainsFunc(hits, Hit.Unverified) {
		rec, err := c.ReadHits(ctx, ref, sc, MetaColumns{}, hits)
		return hits, rec, err
	}
	p, err := c.prober(ref, keyIDs)
	if err != nil {
		return nil, nil, err
	}
	defer p.release()
	u, err := p.union(sc)
	if err != nil {
		return nil, nil, err
	}
	ctx, p.n = newTally(ctx)
	defer p.n.done(c)
	rec, err := c.readHits(ctx, ref, u.read, MetaColumns{}, hits)
	if err != nil {
		return nil, nil, err
	}
	defer rec.Release()
	cols := make([]arrow.Array, len(u.paths))
	for i, path := range u.paths {
		cols[i] = leafOf(rec.Column(path[0]), path[1:])
	}
	kept := make([]uint32, 0, len(hits))
	_, err = eachKey(nil, cols, func(i int, key []byte) {
		if !hits[i].maybe || key != nil && bytes.Equal(key, keys[hits[i].KeyOrdinal]) {
			kept = append(kept, uint32(i))
		}
	})
	if err != nil {
		return nil, nil, err
	}
	p.n.Needless += int64(len(hits) - len(kept))
	all := len(kept) == len(hits)
	for i, k := range kept {
		hits[i] = hits[k]
		hits[i].maybe = false
	}
	clear(hits[len(kept):])
	hits = hits[:len(kept)]
	rows := array.NewRecordBatch(u.rows, rec.Columns()[:u.rows.NumFields()], rec.NumRows())
	if all {
		return hits, rows, nil
	}
	defer rows.Release()
	out, err := parquetio.Gather(ctx, u.rows, []arrow.RecordBatch{rows}, kept)
	return hits, out, err
}

// unionRows reads the columns of a schema and, behind them, the key columns that are not among them.
type unionRows struct {
	rows  *arrow.Schema // of the schema alone
	read  *iceberg.Schema
	paths [][]int // to each key field
}

type unionKey struct {
	sc  *iceberg.Schema
	key string
}

// unions are remembered by the schema's identity, as readers remember their plans.
type unions struct {
	sync.Mutex
	m map[unionKey]*unionRows
}

func (p *prober) union(sc *iceberg.Schema) (*unionRows, error) {
	k := unionKey{sc, p.sub}
	p.c.unions.Lock()
	u := p.c.unions.m[k]
	p.c.unions.Unlock()
	if u != nil {
		return u, nil
	}
	u = &unionRows{}
	var err error
	if u.rows, err = ArrowSchema(sc, MetaColumns{}); err != nil {
		return nil, err
	}
	fields := slices.Clone(sc.Fields())
	from := map[int]int{} // of p.keys.read's columns, where they are read
	for i, f := range p.keys.read.Fields() {
		// A column that the rows have in another type, or with more inside, is read twice: a page at hand costs little.
		at := slices.IndexFunc(sc.Fields(), func(g iceberg.NestedField) bool { return g.ID == f.ID && g.Type.Equals(f.Type) })
		if at < 0 {
			at, fields = len(fields), append(fields, f)
		}
		from[i] = at
	}
	u.read = iceberg.NewSchema(sc.ID, fields...)
	for _, path := range p.keys.paths {
		path = slices.Clone(path)
		path[0] = from[path[0]]
		u.paths = append(u.paths, path)
	}
	p.c.unions.Lock()
	defer p.c.unions.Unlock()
	if p.c.unions.m == nil || len(p.c.unions.m) >= maxProjections {
		p.c.unions.m = map[unionKey]*unionRows{}
	}
	p.c.unions.m[k] = u
	return u, nil
}
