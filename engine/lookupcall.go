package engine

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

// lookupCall answers SELECT … FROM lookup(…): the rows go from the lookup to the client. ok is false when the query must go the long way.
func (s *session) lookupCall(ctx context.Context, b binding, d *pgsql.DirectCall) (src rowSource, ok bool, err error) {
	use := b.p.query.Relations[d.Rel]
	h := use.Relation.Handle.(*handle)
	vals, err := s.evaluate(ctx, use.Args, b.args)
	if err != nil {
		return nil, false, err
	}
	s.noteReadOf(ctx, h)
	rows, err := h.function.Open(ctx, s.env(ctx), h.shape, vals)
	if err != nil {
		return nil, false, err
	}
	for rec, err := range rows.Batches(ctx) {
		if err != nil {
			return nil, false, err
		}
		if rec.NumRows() == 0 {
			break
		}
		cols := make([]arrow.Array, len(d.Output))
		fields := make([]arrow.Field, len(d.Output))
		for i, c := range d.Output {
			cols[i], fields[i] = rec.Column(c), rec.Schema().Field(c)
		}
		// One batch is all there is; the new batch holds on to its columns.
		shown := arrow.NewSchema(fields, nil)
		if showsNested(shown, b.cols) {
			return nil, false, nil
		}
		src, err := newBatchRows(array.NewRecordBatch(shown, cols, rec.NumRows()), b.cols, s.style())
		return src, err == nil, err
	}
	return noRows{}, true, nil
}

// showsNested says whether a struct, map or list is shown as jsonb: DuckDB writes that.
func showsNested(rec *arrow.Schema, cols []pgwire.Column) bool {
	for i, c := range cols {
		if c.TypeOID == pgtype.JSONB && arrow.IsNested(rec.Field(i).Type.ID()) {
			return true
		}
	}
	return false
}
