package liveset

import (
	"context"
	"fmt"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// MetaColumns asks for columns that are not in the table's schema; they are appended in this order.
type MetaColumns struct {
	File           bool // _file string: the data file's path
	Pos            bool // _pos long: the row's position in it
	RowID          bool // _row_id long: stored, else first_row_id + position, else NULL
	LastUpdatedSeq bool // _last_updated_sequence_number long: stored, else the file's data sequence number; NULL where rows have no ids
}

// Names of the metadata columns.
const (
	FileColumn           = "_file"
	PosColumn            = parquetio.PosColumn
	RowIDColumn          = iceberg.RowIDColumnName
	LastUpdatedSeqColumn = iceberg.LastUpdatedSequenceNumberColumnName
)

// metaSchema is the projection with the lineage columns that may be stored.
func metaSchema(sc *iceberg.Schema, m MetaColumns) *iceberg.Schema {
	if !m.RowID && !m.LastUpdatedSeq {
		return sc
	}
	return iceberg.SchemaWithRowLineageColumns(sc, m.RowID, m.LastUpdatedSeq)
}

// ArrowSchema is the schema of batches that Scan, ReadRows and ReadHits give.
func ArrowSchema(sc *iceberg.Schema, m MetaColumns) (*arrow.Schema, error) {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(append(as.Fields(), metaFields(m)...), nil), nil
}

func metaFields(m MetaColumns) (out []arrow.Field) {
	long := arrow.PrimitiveTypes.Int64
	if m.File {
		out = append(out, arrow.Field{Name: FileColumn, Type: arrow.BinaryTypes.String})
	}
	if m.Pos {
		out = append(out, arrow.Field{Name: PosColumn, Type: long})
	}
	if m.RowID {
		out = append(out, arrow.Field{Name: RowIDColumn, Type: long, Nullable: true})
	}
	if m.LastUpdatedSeq {
		out = append(out, arrow.Field{Name: LastUpdatedSeqColumn, Type: long, Nullable: true})
	}
	return out
}

// decorate turns a batch of a metaSchema with a trailing _pos column into one of ArrowSchema. It releases rec.
func decorate(rec arrow.RecordBatch, as *arrow.Schema, sc *iceberg.Schema, m MetaColumns, f *File) arrow.RecordBatch {
	defer rec.Release()
	n := sc.NumFields()
	cols := append(make([]arrow.Array, 0, as.NumFields()), rec.Columns()[:n]...)
	pos := rec.Column(int(rec.NumCols()) - 1).(*array.Int64)
	var made []arrow.Array
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	add := func(a arrow.Array) { made, cols = append(made, a), append(cols, a) }
	if m.File {
		add(repeatString(f.Path, pos.Len()))
	}
	if m.Pos {
		cols = append(cols, pos)
	}
	stored := n
	if m.RowID {
		add(lineage(rec.Column(stored).(*array.Int64), f.FirstRowID, func(i int) int64 { return *f.FirstRowID + pos.Value(i) }))
		stored++
	}
	if m.LastUpdatedSeq {
		add(lineage(rec.Column(stored).(*array.Int64), f.FirstRowID, func(int) int64 { return f.DataSeq }))
	}
	return array.NewRecordBatch(as, cols, rec.NumRows())
}

// lineage fills the NULLs of a stored lineage column by inheritance, where the file's rows have ids at all.
func lineage(stored *array.Int64, first *int64, inherit func(i int) int64) arrow.Array {
	if first == nil || stored.NullN() == 0 {
		stored.Retain()
		return stored
	}
	vals := make([]int64, stored.Len())
	for i := range vals {
		if stored.IsValid(i) {
			vals[i] = stored.Value(i)
		} else {
			vals[i] = inherit(i)
		}
	}
	return parquetio.LongArray(vals)
}

func repeatString(s string, n int) arrow.Array {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(n)
	b.ReserveData(n * len(s))
	for range n {
		b.Append(s)
	}
	return b.NewArray()
}

// ReadRows reads rows of one file by position (ascending, may repeat), live or not, in the projected schema and the metadata columns. Only
// their pages are read.
func (c *Cache) ReadRows(ctx context.Context, ref Ref, f *File, sc *iceberg.Schema, m MetaColumns, positions []uint32) (arrow.RecordBatch, error) {
	if f.mem != nil {
		return f.mem.read(ctx, f, sc, m, positions)
	}
	r, err := c.Reader(ctx, f)
	if err != nil {
		return nil, err
	}
	rec, err := r.RowsAt(ctx, c.projection(sc, m), ref.Metadata.NameMapping(), positions)
	if err != nil || m == (MetaColumns{}) {
		return rec, err
	}
	as, err := ArrowSchema(sc, m)
	if err != nil {
		rec.Release()
		return nil, err
	}
	pos := make([]int64, len(positions))
	for i, p := range positions {
		pos[i] = int64(p)
	}
	col := parquetio.LongArray(pos)
	defer col.Release()
	with := parquetio.AppendColumn(rec, arrow.Field{Name: PosColumn, Type: arrow.PrimitiveTypes.Int64}, col)
	rec.Release()
	return decorate(with, as, sc, m, f), nil
}

// projection is metaSchema, the same pointer for the same schema: readers remember their plans by it.
func (c *Cache) projection(sc *iceberg.Schema, m MetaColumns) *iceberg.Schema {
	if !m.RowID && !m.LastUpdatedSeq {
		return sc
	}
	k := projectionKey{sc, m.RowID, m.LastUpdatedSeq}
	c.projections.Lock()
	defer c.projections.Unlock()
	if p, ok := c.projections.m[k]; ok {
		return p
	}
	if len(c.projections.m) >= maxProjections {
		clear(c.projections.m)
	}
	p := metaSchema(sc, m)
	c.projections.m[k] = p
	return p
}

const maxProjections = 256

type projectionKey struct {
	sc       *iceberg.Schema
	row, seq bool
}

// ReadHits reads the rows of hits, one row each, in the order of hits.
func (c *Cache) ReadHits(ctx context.Context, ref Ref, sc *iceberg.Schema, m MetaColumns, hits []Hit) (arrow.RecordBatch, error) {
	ctx, n := newTally(ctx)
	defer n.done(c)
	return c.readHits(ctx, ref, sc, m, hits)
}

// oneRun reports whether the hits are rows of one file in order: most probes find one row.
func oneRun(hits []Hit) bool {
	for i := 1; i < len(hits); i++ {
		if hits[i].File.File != hits[0].File.File || hits[i].Pos < hits[i-1].Pos {
			return false
		}
	}
	return len(hits) > 0
}

func positionsOf(hits []Hit, idx []int) []uint32 {
	if idx == nil {
		out := make([]uint32, len(hits))
		for i, h := range hits {
			out[i] = h.Pos
		}
		return out
	}
	out := make([]uint32, len(idx))
	for k, i := range idx {
		out[k] = hits[i].Pos
	}
	return out
}

// ScanOptions says what Scan yields.
type ScanOptions struct {
	Meta      MetaColumns
	BatchRows int         // about how many rows a batch has (default 65,536)
	Files     []*LiveFile // nil = all of the set
}

// Scan yields the live rows, files and rows in order (V4). The consumer releases each batch. After an error the iteration ends.
func (c *Cache) Scan(ctx context.Context, ref Ref, s *Set, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		files := o.Files
		if files == nil {
			for f := range s.Files() {
				files = append(files, f)
			}
		}
		for _, f := range files {
			if f.Live() == 0 {
				continue
			}
			for rec, err := range c.scanFile(ctx, ref, f.File, nil, f.Suppressed, sc, o) {
				if !yield(rec, err) || err != nil {
					return
				}
			}
		}
	}
}

// ScanPositions yields the rows at positions of one file, live or not, in order of position.
func (c *Cache) ScanPositions(ctx context.Context, ref Ref, f *File, positions *roaring.Bitmap, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return c.scanFile(ctx, ref, f, positions, nil, sc, o)
}

func (c *Cache) scanFile(ctx context.Context, ref Ref, f *File, want, not *roaring.Bitmap, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	if f.mem != nil {
		return f.mem.scan(ctx, f, want, not, sc, o)
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		r, err := c.Reader(ctx, f)
		if err != nil {
			yield(nil, fmt.Errorf("scan %s: %w", f.Path, err))
			return
		}
		as, err := ArrowSchema(sc, o.Meta)
		if err != nil {
			yield(nil, err)
			return
		}
		plain := o.Meta == (MetaColumns{})
		opts := parquetio.ReadOptions{
			Schema: c.projection(sc, o.Meta), NameMapping: ref.Metadata.NameMapping(), Positions: want, Suppressed: not,
			PosColumn: !plain, BatchRows: o.BatchRows,
		}
		for rec, err := range r.Scan(ctx, opts) {
			if err == nil && !plain {
				rec = decorate(rec, as, sc, o.Meta, f)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
