package engine

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// pointPlan is a prepared lookup, good while its table is at the same commit.
type pointPlan struct {
	state *catalog.TableState
	cut   *catalog.Cut // the last that was seen to have state
	look  *lookup.Lookuper
	// order says which of the key's values goes to each part of the lookup's key, whose parts are in schema order.
	order []int
	types []arrow.DataType
}

// pointLookup answers SELECT … WHERE key = … from the key index. ok is false when the query must go the long way.
func (s *session) pointLookup(ctx context.Context, b binding, k *pgsql.KeyEquality) (rowSource, bool, error) {
	use := b.p.query.Relations[k.Rel]
	h := use.Relation.Handle.(*handle)
	vals, err := s.evaluate(ctx, k.Key, b.args)
	if err != nil {
		return nil, false, err
	}
	for _, v := range vals {
		if v.Null {
			return noRows{}, true, nil
		}
	}
	plan, err := s.pointPlan(ctx, b, k, use, h)
	if err != nil || plan == nil {
		return nil, false, err
	}
	key := plan.look.NewKey()
	for part, from := range plan.order {
		lit, ok := literal(plan.types[part], vals[from])
		if !ok {
			return nil, false, nil
		}
		key.Literal(lit)
	}
	rec, err := plan.look.Get(ctx, key)
	if err != nil {
		return nil, false, err
	}
	if rec == nil || rec.NumRows() == 0 {
		if rec != nil {
			rec.Release()
		}
		return noRows{}, true, nil
	}
	if showsNested(rec.Schema(), b.cols) {
		rec.Release()
		return nil, false, nil
	}
	src, err := newBatchRows(rec, b.cols, s.style())
	return src, err == nil, err
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

// keptPointPlan is the plan of the statement's last execution, nil when the table may have another state now.
func (s *session) keptPointPlan(b binding, h *handle) *pointPlan {
	p := b.p.point
	if p == nil || s.tx == nil || !s.tx.unwritten() || s.gucs.now.branch != "" {
		return nil
	}
	if cut := s.tx.pin(); cut != p.cut {
		if st, err := cut.Table(h.table); err != nil || st.Key != p.state.Key || st.ChangedSeq != p.state.ChangedSeq {
			return nil
		}
		p.cut = cut
	}
	s.tx.noteRead(p.state)
	return p
}

func (s *session) pointPlan(ctx context.Context, b binding, k *pgsql.KeyEquality, use *pgsql.RelUse, h *handle) (*pointPlan, error) {
	if s.gucs.now.asOf != "" {
		return nil, nil
	}
	if p := s.keptPointPlan(b, h); p != nil {
		return p, nil
	}
	t, err := s.table(ctx, h.table)
	if err != nil {
		return nil, err
	}
	s.noteRead(t)
	target := lookup.Target{Cut: s.readTx().Cut(), Ident: h.table, Schema: t.Schema()}
	if t.State() == nil { // temporary, or created by this transaction
		ref := t.Ref()
		target.Ref = &ref
	} else if st, err := target.Cut.Table(h.table); err != nil || st.Key != t.Key() {
		return nil, nil // renamed or brought back by this transaction: the cut knows no table of that name, or another one
	}
	cacheable := t.AtCut() && t.State() != nil && k.AsOf == nil
	switch {
	case k.AsOf != nil:
		v, err := s.evaluateArg(ctx, k.AsOf, b.args)
		if err != nil {
			return nil, err
		}
		st, err := sqlfuncs.TableStateAt(ctx, s.env(ctx), h.table, v)
		if err != nil {
			return nil, err
		}
		target.Schema = h.shape.Table
		target.AsOf = &lookup.AsOf{Metadata: st.Metadata, Snapshot: st.Snapshot, Schema: st.Schema}
	case !cacheable:
		if target.Live, err = t.Live(ctx); err != nil {
			return nil, err
		}
	}
	for _, c := range k.Output {
		target.Columns = append(target.Columns, use.Relation.Columns[c].Name)
	}
	look, err := s.gw.lookup.Prepare(ctx, target)
	if err != nil {
		return nil, err
	}
	p := &pointPlan{state: t.State(), cut: s.readTx().Cut(), look: look}
	for _, f := range look.Columns().Key.Fields() {
		i := slices.IndexFunc(use.Relation.Key, func(c int) bool { return use.Relation.Columns[c].Name == f.Name })
		if i < 0 {
			return nil, nil
		}
		p.order = append(p.order, i)
		p.types = append(p.types, f.Type)
	}
	if cacheable {
		b.p.point = p
	}
	return p, nil
}

// literal is a key value as an Iceberg literal of the column's type; false when only SQL's comparison rules can tell.
func literal(dt arrow.DataType, v *sqlfuncs.Value) (lit iceLiteral, ok bool) {
	integer := v.OID == pgtype.Int2 || v.OID == pgtype.Int4 || v.OID == pgtype.Int8
	return literalOf(dt, v.OID, v.Text, integer)
}

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
