package liveset

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// MemRows are rows of a transaction that are in no file yet. A File made of them (NewMemFile) stands in a set like any other: it has a path that
// names no file, positions, suppressed rows. Immutable; the batches must not change and are never released.
type MemRows struct {
	Schema  *iceberg.Schema     // the batches' columns, in order
	Batches []arrow.RecordBatch // in order of position
	Starts  []int32             // the first position of each batch
	Rows    int32
	RowIDs  []int64 // the _row_id each row keeps, NoRowID for none; nil when no row does
	// Find is the newest position that has a key of the schema's identifier fields; known is false when it cannot tell. nil: it never can.
	// It is safe for concurrent use.
	Find func(key []byte) (pos uint32, ok, known bool)
}

// NoRowID marks a row of MemRows that gets its _row_id at commit.
const NoRowID int64 = -1

// NewMemFile makes rows a file for Overlay.Add. Path tells it from all other files.
func NewMemFile(path string, m *MemRows) (*File, error) {
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, int64(m.Rows), 0)
	if err != nil {
		return nil, fmt.Errorf("describe rows in memory: %w", err)
	}
	f := NewFile(b.Build())
	f.mem = m
	return f, nil
}

// InMemory says whether the rows are in no file (NewMemFile): only a Cache reads them.
func (f *File) InMemory() bool { return f.mem != nil }

// gather picks rows by position (they may repeat, in any order) with the columns of sc.
func (m *MemRows) gather(ctx context.Context, sc *iceberg.Schema, positions []uint32) (arrow.RecordBatch, error) {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		return nil, err
	}
	var parts []arrow.RecordBatch
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	place := make([]uint32, len(positions))
	total := uint32(0)
	used := map[int]uint32{} // batch → its first row among the parts
	for i, p := range positions {
		if p >= uint32(m.Rows) {
			return nil, fmt.Errorf("position %d of %d rows in memory", p, m.Rows)
		}
		k := sort.Search(len(m.Starts), func(i int) bool { return uint32(m.Starts[i]) > p }) - 1
		first, ok := used[k]
		if !ok {
			part, err := m.project(k, sc, as)
			if err != nil {
				return nil, err
			}
			parts, used[k], first = append(parts, part), total, total
			total += uint32(part.NumRows())
		}
		place[i] = first + p - uint32(m.Starts[k])
	}
	if len(parts) == 1 && consecutive(place) {
		return parts[0].NewSlice(int64(place[0]), int64(place[0])+int64(len(place))), nil
	}
	return parquetio.Gather(ctx, as, parts, place)
}

func consecutive(p []uint32) bool {
	for i := 1; i < len(p); i++ {
		if p[i] != p[i-1]+1 {
			return false
		}
	}
	return len(p) > 0
}

// project is batch k with the columns of sc, which are fields of the rows' own schema.
func (m *MemRows) project(k int, sc *iceberg.Schema, as *arrow.Schema) (arrow.RecordBatch, error) {
	b := m.Batches[k]
	cols := make([]arrow.Array, sc.NumFields())
	for i, f := range sc.Fields() {
		at := slices.IndexFunc(m.Schema.Fields(), func(g iceberg.NestedField) bool { return g.ID == f.ID })
		if at < 0 {
			return nil, fmt.Errorf("%w: %d in rows in memory", ErrUnknownField, f.ID)
		}
		cols[i] = b.Column(at)
	}
	return array.NewRecordBatch(as, cols, b.NumRows()), nil
}

// read is gather with metadata columns.
func (m *MemRows) read(ctx context.Context, f *File, sc *iceberg.Schema, meta MetaColumns, positions []uint32) (arrow.RecordBatch, error) {
	rec, err := m.gather(ctx, sc, positions)
	if err != nil || meta == (MetaColumns{}) {
		return rec, err
	}
	defer rec.Release()
	as, err := ArrowSchema(sc, meta)
	if err != nil {
		return nil, err
	}
	cols := append(make([]arrow.Array, 0, as.NumFields()), rec.Columns()...)
	if meta.File {
		cols = append(cols, repeatString(f.Path, len(positions)))
	}
	if meta.Pos {
		pos := make([]int64, len(positions))
		for i, p := range positions {
			pos[i] = int64(p)
		}
		cols = append(cols, parquetio.LongArray(pos))
	}
	if meta.RowID {
		cols = append(cols, m.rowIDs(positions))
	}
	if meta.LastUpdatedSeq {
		cols = append(cols, array.MakeArrayOfNull(memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, len(positions)))
	}
	return array.NewRecordBatch(as, cols, int64(len(positions))), nil
}

func (m *MemRows) rowIDs(positions []uint32) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for _, p := range positions {
		if m.RowIDs == nil || m.RowIDs[p] == NoRowID {
			b.AppendNull()
		} else {
			b.Append(m.RowIDs[p])
		}
	}
	return b.NewArray()
}

// scan yields rows in order of position: those in want (nil: all) and not in not.
func (m *MemRows) scan(ctx context.Context, f *File, want, not *roaring.Bitmap, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for k, b := range m.Batches {
			var positions []uint32
			for p := uint32(m.Starts[k]); p < uint32(m.Starts[k])+uint32(b.NumRows()); p++ {
				if (want == nil || want.Contains(p)) && (not == nil || !not.Contains(p)) {
					positions = append(positions, p)
				}
			}
			if len(positions) == 0 {
				continue
			}
			rec, err := m.read(ctx, f, sc, o.Meta, positions)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// memHits appends the hits of keys in rows in memory; n leading columns are given.
func (p *prober) memHits(ctx context.Context, dst []Hit, f *LiveFile, n int, keys [][]byte) ([]Hit, error) {
	m := f.File.mem
	ask := m.Find != nil && n == len(p.ids) && slices.Equal(p.ids, m.Schema.IdentifierFieldIDs)
	var rest []int // those that have to be searched for
	for ord, key := range keys {
		if !ask {
			rest = append(rest, ord)
			continue
		}
		switch pos, ok, known := m.Find(key); {
		case !known:
			rest = append(rest, ord)
		case ok && f.IsLive(pos):
			dst = append(dst, Hit{KeyOrdinal: ord, File: f, Pos: pos})
		}
	}
	if len(rest) == 0 {
		return dst, nil
	}
	sc, err := p.ref.keySchema(p.ids)
	if err != nil {
		return dst, err
	}
	ordinals := map[string][]int{}
	for _, ord := range rest {
		ordinals[string(keys[ord])] = append(ordinals[string(keys[ord])], ord)
	}
	cols := make([]int, len(p.ids))
	for i := range cols {
		cols[i] = i
	}
	var key, raw []byte
	pos := uint32(0)
	for rec, err := range m.scan(ctx, f.File, nil, nil, sc, ScanOptions{}) {
		if err != nil {
			return dst, err
		}
		enc, err := keyindex.NewEncoder(rec, cols, keyindex.WithNulls())
		if err != nil {
			return dst, err
		}
		for row := range int(rec.NumRows()) {
			if raw, err = enc.Append(raw[:0], row); err != nil {
				return dst, err
			}
			var whole bool
			if key, whole = withoutPresence(key[:0], p.cols[:n], raw); whole && f.IsLive(pos) {
				for _, ord := range ordinals[string(key)] {
					dst = append(dst, Hit{KeyOrdinal: ord, File: f, Pos: pos})
				}
			}
			pos++
		}
	}
	return dst, nil
}
