package liveset

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Hit is a live row found by key. KeyOrdinal indexes the keys of the probe.
type Hit struct {
	KeyOrdinal int
	File       *LiveFile
	Pos        uint32
}

// Probe finds the live rows of keys, which are keyindex encodings over the fields keyIDs in that order, each of the newest type the table
// gives the field. Hits come by key ordinal, then file order (S4), then position. Per file: bounds, then bloom filter, then key index.
// Identifier fields in their order are fastest; for others an index per file is built at first and cached.
func (c *Cache) Probe(ctx context.Context, ref Ref, s *Set, keyIDs []int, keys [][]byte) ([]Hit, error) {
	return c.AppendProbe(ctx, nil, ref, s, keyIDs, keys)
}

// AppendProbe is Probe that appends its hits to dst, for callers that reuse it.
func (c *Cache) AppendProbe(ctx context.Context, dst []Hit, ref Ref, s *Set, keyIDs []int, keys [][]byte) ([]Hit, error) {
	return c.probe(ctx, dst, ref, s, keyIDs, len(keyIDs), keys)
}

// ProbePrefix finds the live rows whose first n of the fields keyIDs have the values of prefixes, encoded over those n fields. Hits come by
// key ordinal, file order and, within a file, key.
func (c *Cache) ProbePrefix(ctx context.Context, ref Ref, s *Set, keyIDs []int, n int, prefixes [][]byte) ([]Hit, error) {
	return c.probe(ctx, nil, ref, s, keyIDs, n, prefixes)
}

// prober is what a probe needs of the table: the key columns.
type prober struct {
	c    *Cache
	ref  Ref
	ids  []int
	cols []keyindex.Column
	typs []iceberg.NestedField
	n    int // leading columns given
}

func (c *Cache) newProber(ref Ref, ids []int, n int) (*prober, error) {
	sc, err := ref.keySchema(ids)
	if err != nil {
		return nil, err
	}
	cols, err := keyindex.ColumnsOf(sc, ids)
	if err != nil {
		return nil, err
	}
	return &prober{c: c, ref: ref, ids: ids, cols: cols, typs: sc.Fields(), n: n}, nil
}

func (c *Cache) probe(ctx context.Context, dst []Hit, ref Ref, s *Set, ids []int, n int, keys [][]byte) ([]Hit, error) {
	if len(keys) == 0 || s.NumFiles() == 0 {
		return dst, nil
	}
	p, err := c.newProber(ref, ids, n)
	if err != nil {
		return dst, err
	}
	start := len(dst)
	order := sortedKeys(keys)
	for f := range s.Files() {
		if dst, err = p.file(ctx, dst, f, keys, order); err != nil {
			return dst, err
		}
	}
	if hits := dst[start:]; len(keys) > 1 {
		sort.SliceStable(hits, func(i, j int) bool { return hits[i].KeyOrdinal < hits[j].KeyOrdinal })
	}
	return dst, nil
}

// sortedKeys are the ordinals of keys in key order, so that a file's range of keys is found by binary search.
func sortedKeys(keys [][]byte) []int {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	if len(keys) > 1 {
		slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	}
	return order
}

// fileBounds are a file's bounds of the key columns as key encodings.
type fileBounds struct {
	cols   []keyindex.Column
	lo, hi [][]byte // nil where unknown
}

// boundsOf are computed once a file and key.
func (p *prober) boundsOf(f *File) *fileBounds {
	if b := f.bounds.Load(); b != nil && slices.Equal(b.cols, p.cols) {
		return b
	}
	b := &fileBounds{cols: p.cols, lo: make([][]byte, len(p.cols)), hi: make([][]byte, len(p.cols))}
	for i, t := range p.typs {
		if lo, hi, ok := encodedBounds(f.Data, t); ok {
			b.lo[i], b.hi[i] = lo, hi
		}
	}
	f.bounds.Store(b)
	return b
}

type boundsCache = atomic.Pointer[fileBounds]

// file appends the hits of one file.
func (p *prober) file(ctx context.Context, dst []Hit, f *LiveFile, keys [][]byte, order []int) ([]Hit, error) {
	if f.Live() == 0 {
		return dst, nil
	}
	b := p.boundsOf(f.File)
	from, to := 0, len(order)
	if lo := b.lo[0]; lo != nil {
		from = sort.Search(len(order), func(i int) bool { return bytes.Compare(keys[order[i]], lo) >= 0 })
		to = from + sort.Search(len(order)-from, func(i int) bool { return p.above(keys[order[from+i]], b.hi[0]) })
	}
	var ix *keyindex.Index
	var blooms [][]*parquetio.Bloom
	var buf [8]uint32
	var partBuf [8][]byte
	for _, ord := range order[from:to] {
		parts := keyindex.Split(partBuf[:0], p.cols[:p.n], keys[ord])
		if len(parts) < p.n || !inBounds(b, parts) {
			continue
		}
		if ix == nil {
			var err error
			if blooms, err = p.blooms(ctx, f.File); err != nil {
				return dst, err
			}
			if !mayContain(blooms, parts, p.cols) {
				continue
			}
			if ix, err = p.c.index(ctx, p.ref, f.File, p.ids, p.cols); err != nil {
				return dst, err
			}
		} else if !mayContain(blooms, parts, p.cols) {
			continue
		}
		found := buf[:0]
		if p.n < len(p.ids) {
			found = ix.FindPrefix(found, keys[ord])
		} else {
			found = ix.Find(found, keys[ord])
		}
		for _, pos := range found {
			if f.IsLive(pos) {
				dst = append(dst, Hit{ord, f, pos})
			}
		}
	}
	return dst, nil
}

// above says whether a key's first column is above an upper bound.
func (p *prober) above(key, hi []byte) bool {
	n := p.cols[0].Len(key)
	return n >= 0 && bytes.Compare(key[:n], hi) > 0
}

func inBounds(b *fileBounds, parts [][]byte) bool {
	for i, part := range parts {
		if b.lo[i] != nil && (bytes.Compare(part, b.lo[i]) < 0 || bytes.Compare(part, b.hi[i]) > 0) {
			return false
		}
	}
	return true
}

// blooms are the filters of the key columns given, per column and row group; nil where there are none. They are read only for files whose
// footer is wanted anyway: small files are told apart by their index at once.
func (p *prober) blooms(ctx context.Context, f *File) ([][]*parquetio.Bloom, error) {
	if f.Records < bloomMinRows {
		return nil, nil
	}
	r, err := p.c.Reader(ctx, f)
	if err != nil {
		return nil, err
	}
	var out [][]*parquetio.Bloom
	for i, id := range p.ids[:p.n] {
		b, err := r.Blooms(ctx, id)
		if err != nil {
			return nil, err
		}
		if b != nil && out == nil {
			out = make([][]*parquetio.Bloom, p.n)
		}
		if b != nil {
			out[i] = b
		}
	}
	return out, nil
}

// bloomMinRows is below which a file's key index is smaller than the trouble.
const bloomMinRows = 1024

// mayContain asks the filters of every column; a row group that all of them admit is enough.
func mayContain(blooms [][]*parquetio.Bloom, parts [][]byte, cols []keyindex.Column) bool {
	for i, groups := range blooms {
		if groups == nil {
			continue
		}
		any := false
		for _, b := range groups {
			if b.MayContain(parts[i], cols[i]) {
				any = true
				break
			}
		}
		if !any {
			return false
		}
	}
	return true
}
