package liveset

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Hit is a live row found by key. KeyOrdinal indexes the keys of the probe.
type Hit struct {
	KeyOrdinal int
	File       *LiveFile
	Pos        uint32

	maybe bool // named by a fingerprint: the row's key is still to be compared
}

// Probe finds the live rows of keys, which are keyindex encodings over the fields keyIDs in that order, each of the newest type the table
// gives the field. Hits come by key ordinal, then file order (V4), then position. Per file: bounds, then bloom filter, then key index.
// Identifier fields in their order are fastest; for others an index per file is built at first and cached.
func (c *Cache) Probe(ctx context.Context, ref Ref, s *Set, keyIDs []int, keys [][]byte) ([]Hit, error) {
	return c.AppendProbe(ctx, nil, ref, s, keyIDs, keys)
}

// AppendProbe is Probe that appends its hits to dst, for callers that reuse it.
func (c *Cache) AppendProbe(ctx context.Context, dst []Hit, ref Ref, s *Set, keyIDs []int, keys [][]byte) ([]Hit, error) {
	return c.probe(ctx, dst, ref, s, keyIDs, len(keyIDs), keys, true)
}

// ProbePrefix finds the live rows whose first n of the fields keyIDs have the values of prefixes, encoded over those n fields. Hits come by
// key ordinal, file order and, within a file, key.
func (c *Cache) ProbePrefix(ctx context.Context, ref Ref, s *Set, keyIDs []int, n int, prefixes [][]byte) ([]Hit, error) {
	return c.probe(ctx, nil, ref, s, keyIDs, n, prefixes, true)
}

// prober is what a probe needs of the table: the key columns.
type prober struct {
	c    *Cache
	n    *tally // of the call
	ref  Ref
	ids  []int
	cols []keyindex.Column
	typs []iceberg.NestedField
	sub  string // names the columns in cache keys
	keys *keyColumns

	most    int  // when not 0, how many hits are wanted at most: errManyHits
	loose   bool // hits by fingerprint are left to ReadVerified
	leading bool // the fields lead a longer key

	// What a call works with, kept from call to call.
	order  []int
	hashes []parquetio.KeyHash
	files  []*LiveFile
	firsts [][]byte
}

var probersPool = sync.Pool{New: func() any { return &prober{} }}

// maxKeptKeys is up to how many keys a call's memory is kept.
const maxKeptKeys = 1024

// release gives p back. Nobody holds it, or what it worked with, any more.
func (p *prober) release() {
	if cap(p.order) > maxKeptKeys || cap(p.files) > maxKeptKeys {
		return
	}
	clear(p.files)
	clear(p.firsts)
	*p = prober{order: p.order[:0], hashes: p.hashes[:0], files: p.files[:0], firsts: p.firsts[:0]}
	probersPool.Put(p)
}

// maxProbers is how many (table, key) pairs are remembered.
const maxProbers = 256

// proberKey names a prober: the table, the schema the types come from, and the key.
type proberKey struct {
	table           uuid.UUID
	schema, schemas int
	ids             [8]int
	n               int
}

func (c *Cache) prober(ref Ref, ids []int) (*prober, error) {
	if len(ids) == 0 || len(ids) > len(proberKey{}.ids) {
		return c.newProber(ref, ids)
	}
	sc := ref.Metadata.CurrentSchema()
	k := proberKey{table: ref.UUID, schema: sc.ID, n: len(ids)}
	for _, id := range ids {
		if _, ok := sc.FindFieldByID(id); !ok { // an older schema has it
			k.schemas = len(ref.Metadata.Schemas())
		}
	}
	copy(k.ids[:], ids)
	c.probers.Lock()
	p, ok := c.probers.m[k]
	c.probers.Unlock()
	if ok {
		// The name mapping is the caller's: everything else is the same.
		q := probersPool.Get().(*prober)
		order, hashes, files, firsts := q.order, q.hashes, q.files, q.firsts
		*q = *p
		q.ref, q.order, q.hashes, q.files, q.firsts = ref, order, hashes, files, firsts
		return q, nil
	}
	p, err := c.newProber(ref, ids)
	if err != nil {
		return nil, err
	}
	c.probers.Lock()
	defer c.probers.Unlock()
	if len(c.probers.m) >= maxProbers {
		clear(c.probers.m)
	}
	kept := *p // p itself is the call's, and released after it
	kept.ref = Ref{}
	c.probers.m[k] = &kept
	return p, nil
}

func (c *Cache) newProber(ref Ref, ids []int) (*prober, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: no key fields", ErrUnknownField)
	}
	sc, err := ref.keySchema(ids)
	if err != nil {
		return nil, err
	}
	cols, err := keyindex.ColumnsOf(sc, ids)
	if err != nil {
		return nil, err
	}
	keys, err := ref.keyColumns(ids)
	if err != nil {
		return nil, err
	}
	return &prober{c: c, ref: ref, ids: slices.Clone(ids), cols: cols, typs: sc.Fields(), sub: columnsKey(cols), keys: keys}, nil
}

// probe appends the hits of keys over the first n of ids. Unless verified, some may still be another key's (Hit.maybe).
func (c *Cache) probe(ctx context.Context, dst []Hit, ref Ref, s *Set, ids []int, n int, keys [][]byte, verified bool) ([]Hit, error) {
	if len(keys) == 0 || s.NumFiles() == 0 {
		return dst, nil
	}
	p, err := c.prober(ref, ids)
	if err != nil {
		return dst, err
	}
	defer p.release()
	p.loose = !verified
	return p.probe(ctx, dst, s, n, keys)
}

func (p *prober) probe(ctx context.Context, dst []Hit, s *Set, n int, keys [][]byte) ([]Hit, error) {
	if len(keys) >= sideBySide && runtime.GOMAXPROCS(0) > 1 {
		return p.sideBySide(ctx, dst, s, n, keys)
	}
	return p.inTurn(ctx, dst, s, n, keys)
}

func (p *prober) inTurn(ctx context.Context, dst []Hit, s *Set, n int, keys [][]byte) (_ []Hit, err error) {
	ids, c := p.ids, p.c
	if n < 1 || n > len(ids) {
		return dst, fmt.Errorf("%w: prefix of %d of %d key fields", ErrUnknownField, n, len(ids))
	}
	ctx, p.n = newTally(ctx)
	defer p.n.done(c)
	p.n.Keys = int64(len(keys))
	start := len(dst)
	if len(keys) >= manyKeys {
		dst = slices.Grow(dst, len(keys))
	}
	p.order = sortedKeys(p.order[:0], keys)
	p.hashes = hashKeys(p.hashes[:0], p.cols[:n], keys)
	p.filesFor(s, n, keys)
	for _, f := range p.files {
		if f.File.mem != nil {
			if dst, err = p.memHits(ctx, dst, f, n, keys); err != nil {
				return dst, err
			}
			continue
		}
		if dst, err = p.file(ctx, dst, f, n, keys, p.hashes, p.order); err != nil {
			return dst, err
		}
		if p.most > 0 && len(dst)-start > p.most {
			return dst, errManyHits
		}
	}
	if !p.loose {
		found, err := p.verify(ctx, dst[start:], keys)
		if err != nil {
			return dst[:start], err
		}
		dst = dst[:start+len(found)]
	}
	if len(keys) > 1 {
		orderHits(dst[start:], len(keys))
	}
	return dst, nil
}

// filesFor makes p.files, in file order, the files that may hold the keys, and perhaps others.
func (p *prober) filesFor(s *Set, n int, keys [][]byte) {
	p.files = p.files[:0]
	if len(keys) > keyTreeKeys || s.keyTrees == nil || s.NumFiles() < keyTreeFiles || off.pruning {
		for f := range s.Files() {
			p.files = append(p.files, f)
		}
		return
	}
	var buf [8][]byte
	for _, k := range keys {
		if parts := keyindex.Split(buf[:0], p.cols[:n], k); len(parts) == n {
			p.firsts = append(p.firsts, parts[0])
		}
	}
	p.files = s.keyTrees.of(p, s).candidates(p.files, p.firsts)
}

// sortedKeys are the ordinals of keys in key order, so that a file's range of keys is found by binary search.
func sortedKeys(order []int, keys [][]byte) []int {
	if len(keys) >= manyKeys {
		return appendSorted(order, keys)
	}
	for i := range keys {
		order = append(order, i)
	}
	if len(keys) > 1 {
		slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	}
	return order
}

// fileBounds are a file's bounds of the key columns as key encodings.
type fileBounds struct {
	sub    string
	lo, hi [][]byte // nil where unknown
}

// exact says that the bounds of the first n key columns leave one value.
func (b *fileBounds) exact(n int) bool {
	for i := range n {
		if b.lo[i] == nil || !bytes.Equal(b.lo[i], b.hi[i]) {
			return false
		}
	}
	return true
}

// boundsOf are computed once a file and key.
func (p *prober) boundsOf(f *File) *fileBounds {
	if b := f.hot.bounds.Load(); b != nil && b.sub == p.sub {
		return b
	}
	b := &fileBounds{sub: p.sub, lo: make([][]byte, len(p.cols)), hi: make([][]byte, len(p.cols))}
	for i, t := range p.typs {
		if lo, hi, ok := encodedBounds(f.Data, t); ok {
			b.lo[i], b.hi[i] = lo, hi
		}
	}
	f.hot.bounds.Store(b)
	return b
}

// file appends the hits of one file. n leading columns are given.
func (p *prober) file(ctx context.Context, dst []Hit, f *LiveFile, n int, keys [][]byte, hashes []parquetio.KeyHash, order []int) ([]Hit, error) {
	b := p.boundsOf(f.File)
	if off.pruning {
		b = &fileBounds{lo: make([][]byte, len(p.cols)), hi: make([][]byte, len(p.cols))}
	}
	if len(order) > 1 && b.lo[0] != nil {
		from := sort.Search(len(order), func(i int) bool { return bytes.Compare(keys[order[i]], b.lo[0]) >= 0 })
		to := from + sort.Search(len(order)-from, func(i int) bool { return p.above(keys[order[from+i]], b.hi[0]) })
		order = order[from:to]
	}
	var ix *keyindex.Index
	var blooms [][]*parquetio.Bloom
	var buf [8]uint32
	var partBuf [8][]byte
	opened := false
	for _, ord := range order {
		parts := keyindex.Split(partBuf[:0], p.cols[:n], keys[ord])
		if len(parts) < n || !inBounds(b, parts) {
			continue
		}
		var err error
		if !opened {
			p.n.Considered++
			// An index at hand says more than filters do.
			if m, ok := f.File.hot.index.get(p.sub); ok && !off.index {
				p.n.Probed++
				ix = m.ix
			} else if blooms, err = p.blooms(ctx, f.File); err != nil {
				return dst, err
			}
			opened = true
		}
		if !mayContain(blooms, hashes[ord*n:(ord+1)*n]) {
			p.n.Filtered++
			continue
		}
		if f.File.Records == 1 && b.exact(n) {
			if f.IsLive(0) {
				dst = append(dst, Hit{KeyOrdinal: ord, File: f})
			}
			continue
		}
		if ix == nil {
			p.n.Probed++
			if ix, err = p.index(ctx, f.File); err != nil {
				return dst, err
			}
		}
		found, ok := buf[:0], true
		if n < len(p.ids) {
			// An index leaves rows out of whose key a later part is NULL: then it does not have all that begin with the prefix.
			if ok = whole(ix, f.File); ok {
				found, ok = ix.FindPrefix(found, keys[ord])
			}
		} else {
			found = ix.Find(found, keys[ord])
		}
		if !ok {
			if dst, err = p.prefixHits(ctx, dst, f, ix, n, ord, keys[ord]); err != nil {
				return dst, err
			}
			continue
		}
		p.n.IndexHits += int64(len(found))
		for _, pos := range found {
			if f.IsLive(pos) {
				dst = append(dst, Hit{KeyOrdinal: ord, File: f, Pos: pos, maybe: !ix.Exact()})
			} else {
				p.n.Suppressed++
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

// blooms are the filters of the key columns, per column and row group; nil where there are none.
func (p *prober) blooms(ctx context.Context, f *File) ([][]*parquetio.Bloom, error) {
	if f.Records < bloomMinRows {
		return nil, nil
	}
	if b, ok := f.hot.blooms.get(p.sub); ok {
		return b, nil
	}
	return hotLoad(ctx, p.c, &f.hot.blooms, lruKey{kind: kindBlooms, name: f.Path, sub: p.sub}, func() ([][]*parquetio.Bloom, int64, error) {
		r, err := p.c.Reader(ctx, f)
		if err != nil {
			return nil, 0, err
		}
		out, err := r.Blooms(ctx, p.ids...)
		if err != nil {
			return nil, 0, err
		}
		size, any := int64(64), false
		for _, col := range out {
			for _, b := range col {
				any = true
				size += b.Size()
			}
		}
		if !any {
			return nil, size, nil
		}
		return out, size, nil
	})
}

// bloomMinRows is below which a file's key index is smaller than the trouble.
const bloomMinRows = 1024

// hashKeys hashes every part of every key, n a key; malformed keys get zeros and match nothing later.
func hashKeys(dst []parquetio.KeyHash, cols []keyindex.Column, keys [][]byte) []parquetio.KeyHash {
	var buf [8][]byte
	for _, k := range keys {
		parts := keyindex.Split(buf[:0], cols, k)
		for i, c := range cols {
			if i < len(parts) {
				dst = append(dst, parquetio.HashKey(parts[i], c))
			} else {
				dst = append(dst, parquetio.KeyHash{})
			}
		}
	}
	return dst
}

// mayContain asks the filters of every column; a row group that all of them admit is enough.
func mayContain(blooms [][]*parquetio.Bloom, hashes []parquetio.KeyHash) bool {
	for i, h := range hashes {
		if i >= len(blooms) || blooms[i] == nil {
			continue
		}
		any := false
		for _, b := range blooms[i] {
			if b.MayContain(h) {
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
