package liveset

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// verifyRows is how many rows' keys are held at once.
const verifyRows = 1 << 15

// keysAt calls do with the key over the fields ids, of rows of a file at positions that ascend; nil where a part is NULL. The key is valid during the call.
func (c *Cache) keysAt(ctx context.Context, ref Ref, f *File, k *keyColumns, positions []uint32, do func(i int, key []byte)) error {
	var key []byte
	return c.columnsAt(ctx, ref, f, k, positions, func(at int, cols []arrow.Array) (err error) {
		key, err = eachKey(key, cols, func(i int, key []byte) { do(at+i, key) })
		return err
	})
}

// rawKeysAt is keysAt for keys with their NULLs (keyindex.WithNulls).
func (c *Cache) rawKeysAt(ctx context.Context, ref Ref, f *File, k *keyColumns, positions []uint32, do func(i int, key []byte)) error {
	var key []byte
	return c.columnsAt(ctx, ref, f, k, positions, func(at int, cols []arrow.Array) error {
		enc, err := keyindex.NewArrayEncoder(cols, keyindex.WithNulls())
		if err != nil {
			return err
		}
		for i := range cols[0].Len() {
			if key, err = enc.Append(key[:0], i); err != nil {
				return err
			}
			do(at+i, key)
		}
		return nil
	})
}

// columnsAt calls do with the key columns of rows at positions that ascend, verifyRows at a time, the first of which is the at-th.
func (c *Cache) columnsAt(ctx context.Context, ref Ref, f *File, k *keyColumns, positions []uint32, do func(at int, cols []arrow.Array) error) error {
	r, err := c.Reader(ctx, f)
	if err != nil {
		return err
	}
	cols := make([]arrow.Array, len(k.paths))
	for at := 0; at < len(positions); at += verifyRows {
		part := positions[at:min(at+verifyRows, len(positions))]
		rec, err := r.RowsAt(ctx, k.read, ref.Metadata.NameMapping(), part)
		if err != nil {
			return err
		}
		for i, path := range k.paths {
			cols[i] = leafOf(rec.Column(path[0]), path[1:])
		}
		err = do(at, cols)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// eachKey calls do with the key of every row of key columns, nil where a part is NULL. It returns the buffer to use next.
func eachKey(key []byte, cols []arrow.Array, do func(i int, key []byte)) ([]byte, error) {
	enc, err := keyindex.NewArrayEncoder(cols)
	if err != nil {
		return key, err
	}
rows:
	for i := range cols[0].Len() {
		for _, c := range cols {
			if c.IsNull(i) {
				do(i, nil)
				continue rows
			}
		}
		if key, err = enc.Append(key[:0], i); err != nil {
			return key, err
		}
		do(i, key)
	}
	return key, nil
}

// verify drops the hits that an index named by fingerprint and whose rows have another key. Hits of one file stand together.
func (p *prober) verify(ctx context.Context, hits []Hit, keys [][]byte) ([]Hit, error) {
	out := hits[:0]
	for at := 0; at < len(hits); {
		end := at + 1
		for end < len(hits) && hits[end].File == hits[at].File && hits[end].maybe == hits[at].maybe {
			end++
		}
		group := hits[at:end]
		at = end
		if !group[0].maybe {
			out = append(out, group...)
			continue
		}
		slices.SortStableFunc(group, func(a, b Hit) int { return int(int64(a.Pos) - int64(b.Pos)) })
		positions := make([]uint32, len(group))
		for i, h := range group {
			positions[i] = h.Pos
		}
		same := make([]bool, len(group))
		err := p.c.keysAt(ctx, p.ref, group[0].File.File, p.keys, positions, func(i int, key []byte) {
			same[i] = key != nil && bytes.Equal(key, keys[group[i].KeyOrdinal])
		})
		if err != nil {
			return nil, fmt.Errorf("compare keys of %s: %w", group[0].File.File.Path, err)
		}
		for i, h := range group {
			if !same[i] {
				p.n.Needless++
				continue
			}
			h.maybe = false
			out = append(out, h)
		}
	}
	return out, nil
}

// whole says that an index has every row of its file: none has a key with a NULL part.
func whole(ix *keyindex.Index, f *File) bool { return int64(ix.Len()) == f.Records }

// prefixHits appends the live rows of a file whose key begins with prefix, n leading columns, in key order, NULL first.
func (p *prober) prefixHits(ctx context.Context, dst []Hit, f *LiveFile, ix *keyindex.Index, n, ord int, prefix []byte) ([]Hit, error) {
	positions, err := p.prefixCandidates(ctx, f, ix, n, prefix)
	if err != nil {
		return dst, err
	}
	type found struct {
		key []byte
		pos uint32
	}
	var rows []found
	err = p.c.rawKeysAt(ctx, p.ref, f.File, p.keys, positions, func(i int, key []byte) {
		if lead, ok := withoutPresence(nil, p.cols[:n], key); ok && bytes.Equal(lead, prefix) {
			rows = append(rows, found{bytes.Clone(key), positions[i]})
		}
	})
	if err != nil {
		return dst, fmt.Errorf("compare keys of %s: %w", f.File.Path, err)
	}
	slices.SortStableFunc(rows, func(a, b found) int { return bytes.Compare(a.key, b.key) })
	for _, r := range rows {
		dst = append(dst, Hit{KeyOrdinal: ord, File: f, Pos: r.pos})
	}
	return dst, nil
}

// prefixCandidates are the positions of live rows among which those are whose key begins with prefix, ascending.
func (p *prober) prefixCandidates(ctx context.Context, f *LiveFile, ix *keyindex.Index, n int, prefix []byte) (positions []uint32, err error) {
	if lo, hi, ok := ix.PrefixRange(prefix); ok && whole(ix, f.File) {
		for pos := lo; pos < hi; pos++ {
			if f.IsLive(pos) {
				positions = append(positions, pos)
			}
		}
		return positions, nil
	}
	// The file is not in key order and its index knows whole keys only, or not all rows: one over the leading columns is built and held.
	sub, err := p.c.prober(p.ref, p.ids[:n])
	if err != nil {
		return nil, err
	}
	defer sub.release()
	sub.n, sub.leading = p.n, true
	part, err := sub.index(ctx, f.File)
	if err != nil {
		return nil, err
	}
	for _, pos := range part.Find(nil, prefix) {
		p.n.IndexHits++
		if f.IsLive(pos) {
			positions = append(positions, pos)
		} else {
			p.n.Suppressed++
		}
	}
	slices.Sort(positions)
	return positions, nil
}
