package engine

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// mergeOp is a running MERGE.
type mergeOp struct {
	s     *session
	t     *warehouse.TxTable
	m     *pgsql.Merge
	files []string
	// touched are the target's rows that an action changed, by file.
	touched map[int64]*roaring.Bitmap
	n       int64
}

// merge runs MERGE: the rows of a batch are deleted, updated and inserted, in this order.
func (s *session) merge(ctx context.Context, b binding, t *warehouse.TxTable) (*dmlResult, error) {
	m := b.query().Merge
	d, err := s.dmlRows(ctx, b, 3, targetColumns(m.Target, m.Columns), 0)
	if err != nil {
		return nil, err
	}
	defer d.close()
	op := &mergeOp{s: s, t: t, m: m, files: d.files, touched: map[int64]*roaring.Bitmap{}}
	if err := d.eachBatch(ctx, func(rec arrow.RecordBatch) error { return op.apply(ctx, rec) }); err != nil {
		return nil, err
	}
	return &dmlResult{tag: "MERGE " + itoa(op.n)}, nil
}

func (op *mergeOp) apply(ctx context.Context, rec arrow.RecordBatch) error {
	action, ok := rec.Column(2).(*array.Int32)
	if !ok {
		return pgerr.Newf(pgerr.InternalError, "MERGE's action is %s", rec.Column(2).DataType())
	}
	rows := make([]*roaring.Bitmap, len(op.m.Actions))
	for i := range int(rec.NumRows()) {
		k := action.Value(i)
		if rows[k] == nil {
			rows[k] = roaring.New()
		}
		rows[k].Add(uint32(i))
	}
	for _, kind := range []pgsql.MergeKind{pgsql.MergeDelete, pgsql.MergeUpdate, pgsql.MergeInsert} {
		for k, a := range op.m.Actions {
			if a.Kind != kind || rows[k] == nil {
				continue
			}
			part := takeRows(rec, rows[k])
			err := op.act(ctx, a, part)
			part.Release()
			if err != nil {
				return err
			}
		}
	}
	op.n += rec.NumRows()
	return nil
}

func (op *mergeOp) act(ctx context.Context, a pgsql.MergeAction, rec arrow.RecordBatch) error {
	if a.Kind != pgsql.MergeInsert {
		if err := op.touch(rec); err != nil {
			return err
		}
	}
	if a.Kind == pgsql.MergeDelete {
		olds, err := rowRefs(rec, op.files)
		if err != nil {
			return err
		}
		if err := op.s.lockWrites(ctx, op.t, olds, nil); err != nil {
			return err
		}
		return op.delete(ctx, rec)
	}
	news, err := conform(rec, 3, op.t.ArrowSchema())
	if err != nil {
		return err
	}
	defer news.Release()
	if a.Kind == pgsql.MergeInsert {
		return op.t.Append(ctx, news)
	}
	olds, err := rowRefs(rec, op.files)
	if err != nil {
		return err
	}
	if err := op.s.lockWrites(ctx, op.t, olds, news); err != nil {
		return err
	}
	return updateRows(ctx, op.t, op.m.Target, a.Set, olds, news)
}

// touch refuses a row of the target that an action changed before, in this statement or in its WITH.
func (op *mergeOp) touch(rec arrow.RecordBatch) error {
	again := func() error {
		return pgerr.New(pgerr.CardinalityViolation, "MERGE command cannot affect row a second time").
			WithHint("Ensure that not more than one source row matches any one target row.")
	}
	live, err := stillLive(op.t, rec, op.files)
	if err != nil {
		return err
	}
	if live.GetCardinality() != uint64(rec.NumRows()) {
		return again()
	}
	f, p := rec.Column(0).(*array.Int64), rec.Column(1).(*array.Int64)
	for i := range int(rec.NumRows()) {
		bm := op.touched[f.Value(i)]
		if bm == nil {
			bm = roaring.New()
			op.touched[f.Value(i)] = bm
		}
		if !bm.CheckedAdd(uint32(p.Value(i))) {
			return again()
		}
	}
	return nil
}

func (op *mergeOp) delete(ctx context.Context, rec arrow.RecordBatch) error {
	f, p := rec.Column(0).(*array.Int64), rec.Column(1).(*array.Int64)
	hits := map[int64]*roaring.Bitmap{}
	for i := range int(rec.NumRows()) {
		if hits[f.Value(i)] == nil {
			hits[f.Value(i)] = roaring.New()
		}
		hits[f.Value(i)].Add(uint32(p.Value(i)))
	}
	for k, bm := range hits {
		if _, err := op.t.DeleteAt(ctx, op.files[k], bm); err != nil {
			return err
		}
	}
	return nil
}
