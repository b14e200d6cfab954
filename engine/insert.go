package engine

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// insert runs INSERT: batches of complete rows go to the table, RETURNING's rows are computed from those that were written.
func (s *session) insert(ctx context.Context, b binding, t *warehouse.TxTable, _ pgwire.Writer) (*dmlResult, error) {
	ins := b.query().Insert
	op := &insertOp{s: s, b: b, t: t, ins: ins, ret: &spool{gw: s.gw, on: ins.Returning != nil, schema: t.ArrowSchema()}}
	if ins.OnConflict != nil && ins.OnConflict.DoUpdate {
		op.touched = map[string]struct{}{}
	}
	err := s.eachInserted(ctx, b, t, op.write)
	return dmlDone("INSERT 0 "+itoa(op.n), op.ret, err)
}

// eachInserted yields the statement's rows in the table's Arrow schema.
func (s *session) eachInserted(ctx context.Context, b binding, t *warehouse.TxTable, f func(ctx context.Context, rec arrow.RecordBatch) error) error {
	ins, as := b.query().Insert, t.ArrowSchema()
	if rec, ok, err := s.constantRows(ctx, b, ins, as); err != nil {
		return err
	} else if ok {
		return s.passRows(ctx, t, rec, f)
	}
	d, err := s.dmlRows(ctx, b, 0, targetColumns(ins.Target, ins.Columns), 0)
	if err != nil {
		return err
	}
	defer d.close()
	pass := func(ctx context.Context, rows arrow.RecordBatch) error { return s.passRows(ctx, t, rows, f) }
	all := &gather{schema: as}
	defer all.drop()
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		rows, err := conform(rec, 0, as)
		if err != nil {
			return err
		}
		return all.add(ctx, rows, pass)
	})
	if err != nil {
		return err
	}
	return all.flush(ctx, pass)
}

// passRows takes over rows, completes and checks them before f looks at them: ON CONFLICT and RETURNING see generated columns, and a row that
// a constraint refuses is refused whether or not it is in conflict.
func (s *session) passRows(ctx context.Context, t *warehouse.TxTable, rows arrow.RecordBatch, f func(ctx context.Context, rec arrow.RecordBatch) error) error {
	defer rows.Release()
	g := s.guard(t)
	if g == nil {
		return f(ctx, rows)
	}
	done, err := g.pass(ctx, rows)
	if err != nil {
		return err
	}
	defer done.Release()
	return f(ctx, done)
}

// insertOp is a running INSERT.
type insertOp struct {
	s   *session
	b   binding
	t   *warehouse.TxTable
	ins *pgsql.Insert
	ret *spool
	n   int64
	// touched holds the keys that rows of this statement have, inserted or updated: DO UPDATE of one is 21000.
	touched map[string]struct{}
}

func (op *insertOp) write(ctx context.Context, rec arrow.RecordBatch) error {
	oc := op.ins.OnConflict
	switch {
	case oc == nil, !oc.DoUpdate && len(op.t.Schema().IdentifierFieldIDs) == 0: // nothing to be in conflict with
		if err := op.t.Append(ctx, rec); err != nil {
			return err
		}
		op.n += rec.NumRows()
		if !op.ret.on {
			return nil
		}
		rec.Retain()
		return op.ret.keep(rec)
	case !oc.DoUpdate:
		res, err := op.t.Upsert(ctx, rec, warehouse.DoNothing)
		if err != nil {
			return err
		}
		op.n += res.Inserted
		if op.ret.on && res.Inserted > 0 {
			return op.ret.keep(takeRows(rec, res.InsertedRows))
		}
		return nil
	}
	return op.doUpdate(ctx, rec)
}

// placedRows are rows that were written in another order than that of the batch they came from.
type placedRows struct {
	recs   []arrow.RecordBatch
	places [][]uint32
	rows   int64
}

// add takes rec over; row i of it stands at places[i].
func (p *placedRows) add(rec arrow.RecordBatch, places []uint32) {
	p.recs, p.places = append(p.recs, rec), append(p.places, places)
	p.rows += rec.NumRows()
}

func (p *placedRows) release() {
	for _, r := range p.recs {
		r.Release()
	}
}

// ordered is all rows by their places.
func (p *placedRows) ordered() arrow.RecordBatch {
	if len(p.recs) == 1 && slices.IsSorted(p.places[0]) {
		p.recs[0].Retain()
		return p.recs[0]
	}
	type row struct {
		place uint32
		rec   int
		at    int64
	}
	var all []row
	for k, places := range p.places {
		for i, place := range places {
			all = append(all, row{place, k, int64(i)})
		}
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Compare(a.place, b.place) })
	schema := p.recs[0].Schema()
	cols := make([]arrow.Array, schema.NumFields())
	for c := range cols {
		var runs []arrow.Array
		for i := 0; i < len(all); {
			j := i + 1
			for j < len(all) && all[j].rec == all[i].rec && all[j].at == all[j-1].at+1 {
				j++
			}
			runs = append(runs, array.NewSlice(p.recs[all[i].rec].Column(c), all[i].at, all[j-1].at+1))
			i = j
		}
		cols[c] = joinRuns(runs)
	}
	out := array.NewRecordBatch(schema, cols, p.rows)
	for _, c := range cols {
		c.Release()
	}
	return out
}

// readRows reads the live rows that keys were found at, in the order of hits.
func (op *insertOp) readRows(ctx context.Context, hits []warehouse.KeyHit) (arrow.RecordBatch, error) {
	refs := make([]warehouse.RowRef, len(hits))
	for i, h := range hits {
		refs[i] = h.Row
	}
	return op.t.ReadRows(ctx, refs)
}

// keyIndexes are the places of a table's key columns, in the schema's order.
func keyIndexes(t *warehouse.TxTable) []int {
	var out []int
	for i, f := range t.Schema().Fields() {
		if slices.Contains(t.Schema().IdentifierFieldIDs, f.ID) {
			out = append(out, i)
		}
	}
	return out
}

// keyColumns is the batch's key columns, in the schema's order.
func keyColumns(t *warehouse.TxTable, rec arrow.RecordBatch) arrow.RecordBatch {
	var fields []arrow.Field
	var cols []arrow.Array
	for _, i := range keyIndexes(t) {
		fields = append(fields, rec.Schema().Field(i))
		cols = append(cols, rec.Column(i))
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows())
}

// takeRows copies the chosen rows of a batch, in order.
func takeRows(rec arrow.RecordBatch, rows *roaring.Bitmap) arrow.RecordBatch {
	if rows.GetCardinality() == uint64(rec.NumRows()) {
		rec.Retain()
		return rec
	}
	cols := make([]arrow.Array, rec.NumCols())
	for c := range cols {
		cols[c] = takeColumn(rec.Column(c), rows)
	}
	out := array.NewRecordBatch(rec.Schema(), cols, int64(rows.GetCardinality()))
	for _, c := range cols {
		c.Release()
	}
	return out
}

// takeColumn joins the runs of chosen rows.
func takeColumn(a arrow.Array, rows *roaring.Bitmap) arrow.Array {
	var parts []arrow.Array
	it := rows.Iterator()
	for it.HasNext() {
		from := it.Next()
		to := from + 1
		for it.HasNext() && it.PeekNext() == to {
			it.Next()
			to++
		}
		parts = append(parts, array.NewSlice(a, int64(from), int64(to)))
	}
	if len(parts) == 0 {
		return array.NewSlice(a, 0, 0)
	}
	return joinRuns(parts)
}

// joinRuns concatenates arrays of one type, and releases them.
func joinRuns(parts []arrow.Array) arrow.Array {
	if len(parts) == 1 {
		return parts[0]
	}
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	out, err := array.Concatenate(parts, arrowAllocator)
	if err != nil { // only a type that Concatenate does not know; none of ours
		panic(err)
	}
	return out
}

// pairBatch puts two batches of equal length side by side under names of their own.
func pairBatch(a, b arrow.RecordBatch) arrow.RecordBatch {
	var fields []arrow.Field
	var cols []arrow.Array
	for side, rec := range []arrow.RecordBatch{a, b} {
		for i := range int(rec.NumCols()) {
			f := rec.Schema().Field(i)
			f.Name = string(rune('x'+side)) + itoa(int64(i))
			f.Nullable = true
			fields = append(fields, f)
			cols = append(cols, rec.Column(i))
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, a.NumRows())
}

// oneBatch is a batch as the rows of a source.
func oneBatch(rec arrow.RecordBatch) *sqlfuncs.Rows {
	return &sqlfuncs.Rows{Schema: rec.Schema(), N: rec.NumRows(), Batches: func(context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }
	}}
}
