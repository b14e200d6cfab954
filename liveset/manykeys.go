package liveset

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// manyKeys is from which on keys and hits are ordered by way of memory of their own.
const manyKeys = 64

// keyHead is a key's first bytes, in key order as a number, and its ordinal.
type keyHead struct {
	head uint64
	ord  int
}

// appendSorted appends the ordinals of keys in key order, those of equal keys ascending.
func appendSorted(order []int, keys [][]byte) []int {
	heads := make([]keyHead, len(keys))
	for i, k := range keys {
		heads[i] = keyHead{headOf(k), i}
	}
	slices.SortFunc(heads, func(a, b keyHead) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(bytes.Compare(keys[a.ord], keys[b.ord]), a.ord-b.ord)
	})
	for _, h := range heads {
		order = append(order, h.ord)
	}
	return order
}

func headOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// orderHits orders hits by key ordinal, those of one key as they are. There are keys of them.
func orderHits(hits []Hit, keys int) {
	if len(hits) < manyKeys || keys > 16*len(hits) {
		slices.SortStableFunc(hits, func(a, b Hit) int { return a.KeyOrdinal - b.KeyOrdinal })
		return
	}
	next := make([]int, keys+1)
	for _, h := range hits {
		next[h.KeyOrdinal+1]++
	}
	for i := range keys {
		next[i+1] += next[i]
	}
	out := make([]Hit, len(hits))
	for _, h := range hits {
		out[next[h.KeyOrdinal]] = h
		next[h.KeyOrdinal]++
	}
	copy(hits, out)
}

// sideBySide is from how many keys, or rows of files, all cores work on them: below it, starting them costs more than it saves.
const sideBySide = 4096

// sideBySide probes ranges of the keys, in key order, on all cores.
func (p *prober) sideBySide(ctx context.Context, dst []Hit, s *Set, n int, keys [][]byte) ([]Hit, error) {
	order := appendSorted(make([]int, 0, len(keys)), keys)
	cores := runtime.GOMAXPROCS(0)
	found := make([][]Hit, cores)
	g, ctx := errgroup.WithContext(ctx)
	for i := range cores {
		part := order[len(order)*i/cores : len(order)*(i+1)/cores]
		g.Go(func() error {
			q, err := p.c.prober(p.ref, p.ids)
			if err != nil {
				return err
			}
			defer q.release()
			q.loose, q.most = p.loose, p.most
			mine := make([][]byte, len(part))
			for k, ord := range part {
				mine[k] = keys[ord]
			}
			hits, err := q.inTurn(ctx, nil, s, n, mine)
			for k := range hits {
				hits[k].KeyOrdinal = part[hits[k].KeyOrdinal]
			}
			found[i] = hits
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return dst, err
	}
	start := len(dst)
	for _, hits := range found {
		dst = append(dst, hits...)
	}
	if p.most > 0 && len(dst)-start > p.most {
		return dst, errManyHits
	}
	orderHits(dst[start:], len(keys))
	return dst, nil
}

// readFiles reads the rows of hits that idx names, file by file, in order of position.
func (c *Cache) readFiles(ctx context.Context, ref Ref, sc *iceberg.Schema, m MetaColumns, hits []Hit, files []*File, idx [][]int) ([]arrow.RecordBatch, error) {
	parts := make([]arrow.RecordBatch, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(1)
	if len(hits) >= sideBySide {
		g.SetLimit(runtime.GOMAXPROCS(0))
	}
	for k, f := range files {
		g.Go(func() (err error) {
			parts[k], err = c.ReadRows(ctx, ref, f, sc, m, positionsOf(hits, idx[k]))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		releaseAll(parts)
		return nil, err
	}
	return parts, nil
}

func releaseAll(recs []arrow.RecordBatch) {
	for _, r := range recs {
		if r != nil {
			r.Release()
		}
	}
}

// readHits is ReadHits without counting.
func (c *Cache) readHits(ctx context.Context, ref Ref, sc *iceberg.Schema, m MetaColumns, hits []Hit) (arrow.RecordBatch, error) {
	if oneRun(hits) {
		return c.ReadRows(ctx, ref, hits[0].File.File, sc, m, positionsOf(hits, nil))
	}
	as, err := ArrowSchema(sc, m)
	if err != nil {
		return nil, err
	}
	number := map[*File]int{}
	var files []*File
	var byFile [][]int
	for i, h := range hits {
		k, ok := number[h.File.File]
		if !ok {
			k = len(files)
			number[h.File.File], files, byFile = k, append(files, h.File.File), append(byFile, nil)
		}
		byFile[k] = append(byFile[k], i)
	}
	for _, idx := range byFile {
		slices.SortFunc(idx, func(a, b int) int { return cmp.Or(cmp.Compare(hits[a].Pos, hits[b].Pos), a-b) })
	}
	parts, err := c.readFiles(ctx, ref, sc, m, hits, files, byFile)
	if err != nil {
		return nil, err
	}
	defer releaseAll(parts)
	place := make([]uint32, len(hits)) // of each hit in the concatenation
	at := uint32(0)
	for _, idx := range byFile {
		for _, i := range idx {
			place[i] = at
			at++
		}
	}
	return parquetio.Gather(ctx, as, parts, place)
}
