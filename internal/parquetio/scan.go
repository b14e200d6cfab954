package parquetio

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"golang.org/x/sync/errgroup"
)

const (
	defaultBatchRows = 64 << 10
	// sparse is how many rows stand behind one wanted row when single pages are read instead of whole columns.
	sparse = 64
	// PosColumn is the name of the position column that ReadOptions.PosColumn appends.
	PosColumn = "_pos"
)

// ReadOptions says what Scan reads.
type ReadOptions struct {
	// Schema is the projection; its fields are found by field id.
	Schema *iceberg.Schema
	// NameMapping gives field ids to columns of files that have none.
	NameMapping iceberg.NameMapping
	// Positions are the only rows read; nil = all.
	Positions *roaring.Bitmap
	// Suppressed rows are left out; nil = none.
	Suppressed *roaring.Bitmap
	// PosColumn appends a column _pos (long): the row's position.
	PosColumn bool
	// BatchRows is about how many rows a batch has (default 65,536).
	BatchRows int
}

// Scan yields the rows in position order (P1), columns decoded in parallel. The consumer releases each batch. After an error the iteration ends.
func (r *Reader) Scan(ctx context.Context, o ReadOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if o.BatchRows <= 0 {
			o.BatchRows = defaultBatchRows
		}
		p, err := r.planSafe(ctx, o)
		if err != nil {
			yield(nil, r.damaged(err))
			return
		}
		if o.Positions != nil && int64(o.Positions.GetCardinality())*sparse <= r.Rows() {
			r.scanSparse(ctx, p, o, yield)
			return
		}
		for g := range r.groups {
			if !r.scanGroup(ctx, p, o, g, yield) {
				return
			}
		}
	}
}

func (r *Reader) planSafe(ctx context.Context, o ReadOptions) (p *plan, err error) {
	defer r.guard(&err)
	if o.Positions != nil && !o.Positions.IsEmpty() && int64(o.Positions.Maximum()) >= r.Rows() {
		return nil, fmt.Errorf("%w: %s has %d rows, position %d", ErrPosition, r.path, r.Rows(), o.Positions.Maximum())
	}
	return r.planFor(ctx, o.Schema, o.NameMapping)
}

// scanSparse reads few rows page by page.
func (r *Reader) scanSparse(ctx context.Context, p *plan, o ReadOptions, yield func(arrow.RecordBatch, error) bool) {
	want := o.Positions
	if o.Suppressed != nil {
		want = roaring.AndNot(want, o.Suppressed)
	}
	it := want.ManyIterator()
	buf := make([]uint32, min(o.BatchRows, int(want.GetCardinality())+1))
	for n := it.NextMany(buf); n > 0; n = it.NextMany(buf) {
		rec, err := r.RowsAt(ctx, p.schema, p.mapping, buf[:n])
		if err == nil && o.PosColumn {
			rec = withPositions(rec, buf[:n])
		}
		if !yield(rec, err) || err != nil {
			return
		}
	}
}

// groupScan is a row group being read front to back.
type groupScan struct {
	r       *Reader
	p       *plan
	columns []groupColumn // of p.flat
	nested  arrow.RecordBatch
	src     *source
	group   int
	at      int64 // next row of the group
	rows    int64
}

func (r *Reader) scanGroup(ctx context.Context, p *plan, o ReadOptions, g int, yield func(arrow.RecordBatch, error) bool) bool {
	rows := r.starts[g+1] - r.starts[g]
	if rows == 0 || o.Positions != nil && !o.Positions.Intersects(span(r.starts[g], r.starts[g+1])) {
		return true
	}
	gs := &groupScan{r: r, p: p, src: r.source(ctx), group: g, rows: rows}
	defer gs.close()
	if err := gs.open(ctx, o); err != nil {
		yield(nil, r.damaged(err))
		return false
	}
	for gs.at < rows {
		from := r.starts[g] + gs.at
		n := int(min(int64(o.BatchRows), rows-gs.at))
		keep, all := wantedRows(o, from, n)
		if !all && len(keep) == 0 {
			gs.at += int64(n)
			continue
		}
		rec, err := gs.next(ctx, n, keep, all)
		if err != nil {
			yield(nil, r.damaged(err))
			return false
		}
		if o.PosColumn {
			rec = withPositions(rec, positionsOf(from, n, keep, all))
		}
		if !yield(rec, nil) {
			return false
		}
	}
	return true
}

func span(from, to int64) *roaring.Bitmap {
	b := roaring.New()
	b.AddRange(uint64(from), uint64(to))
	return b
}

// wantedRows are the rows to keep of [from, from+n), as offsets; all when none is left out.
func wantedRows(o ReadOptions, from int64, n int) (keep []uint32, all bool) {
	if o.Positions == nil && o.Suppressed == nil {
		return nil, true
	}
	if o.Positions == nil && !o.Suppressed.IntersectsWithInterval(uint64(from), uint64(from)+uint64(n)) {
		return nil, true
	}
	want := span(from, from+int64(n))
	if o.Positions != nil {
		want.And(o.Positions)
	}
	if o.Suppressed != nil {
		want.AndNot(o.Suppressed)
	}
	if int(want.GetCardinality()) == n {
		return nil, true
	}
	keep = want.ToArray()
	for i := range keep {
		keep[i] -= uint32(from)
	}
	return keep, false
}

func positionsOf(from int64, n int, keep []uint32, all bool) []uint32 {
	if all {
		keep = make([]uint32, n)
		for i := range keep {
			keep[i] = uint32(i)
		}
	}
	for i := range keep {
		keep[i] += uint32(from)
	}
	return keep
}

// withPositions appends the _pos column and releases rec.
func withPositions(rec arrow.RecordBatch, positions []uint32) arrow.RecordBatch {
	defer rec.Release()
	vals := make([]int64, len(positions))
	for i, p := range positions {
		vals[i] = int64(p)
	}
	col := LongArray(vals)
	defer col.Release()
	return AppendColumn(rec, arrow.Field{Name: PosColumn, Type: arrow.PrimitiveTypes.Int64}, col)
}

// LongArray wraps values as an array without NULLs.
func LongArray(vals []int64) arrow.Array {
	buf := memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(vals))
	d := array.NewData(arrow.PrimitiveTypes.Int64, len(vals), []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer d.Release()
	return array.NewInt64Data(d)
}

// AppendColumn is rec with one more column; rec keeps its reference.
func AppendColumn(rec arrow.RecordBatch, f arrow.Field, col arrow.Array) arrow.RecordBatch {
	fields := append(append([]arrow.Field(nil), rec.Schema().Fields()...), f)
	cols := append(append([]arrow.Array(nil), rec.Columns()...), col)
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows())
}

func (gs *groupScan) open(ctx context.Context, o ReadOptions) (err error) {
	defer gs.r.guard(&err)
	last := gs.rows - 1
	if o.Positions != nil {
		// Intersects the group, as the caller has checked.
		last = int64(lastBelow(o.Positions, gs.r.starts[gs.group+1])) - gs.r.starts[gs.group]
	}
	for _, i := range gs.p.flat {
		c := &gs.p.cols[i]
		col := groupColumn{leaf: c.leaf, conv: &c.conv}
		if col.chunk, err = gs.r.openChunk(gs.src, gs.group, c.leaf, last); err != nil && !errors.Is(err, errEncoding) {
			return err
		}
		gs.columns = append(gs.columns, col)
	}
	if gs.p.nested != nil {
		gs.nested, err = gs.r.readNested(ctx, gs.src, gs.p.nested, gs.group)
		return err
	}
	return nil
}

// lastBelow is the largest element below limit; there is one.
func lastBelow(b *roaring.Bitmap, limit int64) uint32 {
	v, _ := b.Select(uint32(b.Rank(uint32(limit-1)) - 1))
	return v
}

func (gs *groupScan) close() {
	for _, c := range gs.columns {
		if c.stream != nil {
			_ = c.stream.rd.Close()
		}
	}
	if gs.nested != nil {
		gs.nested.Release()
	}
}

// next decodes the next n rows, or those of them that keep names, flat columns in parallel.
func (gs *groupScan) next(ctx context.Context, n int, keep []uint32, all bool) (rec arrow.RecordBatch, err error) {
	cols := make([]arrow.Array, len(gs.p.cols))
	defer releaseAll(cols)
	decode := func(k int) (err error) {
		defer gs.r.guard(&err)
		i := gs.p.flat[k]
		cols[i], err = gs.columns[k].read(ctx, gs, gs.p.arrow.Field(i).Type, n, keep, all)
		return err
	}
	if len(gs.p.flat) == 1 || n <= 1024 { // a few rows are decoded sooner than they are handed over
		for k := 0; k < len(gs.p.flat) && err == nil; k++ {
			err = decode(k)
		}
	} else {
		var eg errgroup.Group
		eg.SetLimit(runtime.GOMAXPROCS(0))
		for k := range gs.p.flat {
			eg.Go(func() error { return decode(k) })
		}
		err = eg.Wait()
	}
	if err != nil {
		return nil, err
	}
	defer gs.r.guard(&err)
	rows := n
	if !all {
		rows = len(keep)
	}
	for i := range gs.p.cols {
		c, dt := &gs.p.cols[i], gs.p.arrow.Field(i).Type
		switch c.from {
		case fromNowhere:
			cols[i], err = c.absent(ctx, dt, rows)
		case fromNested:
			part := array.NewSlice(gs.nested.Column(c.nth), gs.at, gs.at+int64(n))
			if cols[i], err = asType(part, dt); err == nil && !all {
				cols[i], err = kept(ctx, cols[i], keep)
			}
			part.Release()
		}
		if err != nil {
			return nil, err
		}
	}
	gs.at += int64(n)
	return array.NewRecordBatch(gs.p.arrow, cols, int64(rows)), nil
}

// kept is the rows of a that keep names. It releases a.
func kept(ctx context.Context, a arrow.Array, keep []uint32) (arrow.Array, error) {
	defer a.Release()
	at := uint32Array(keep)
	defer at.Release()
	return takeArray(ctx, a, at)
}
