package engine

import (
	"context"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// pointPlan is a prepared lookup, good while its table is at the same commit.
type pointPlan struct {
	state *catalog.TableState
	cut   *catalog.Cut // the last that was seen to have state
	look  *lookup.Lookuper
	// parts are the key's columns in the order in which keys are encoded.
	parts []keyPart
	// cols has, per output column, the place in the rows found: a column that is shown twice is read once.
	cols []int
}

// keyedRun is a keyed SELECT that probes answer.
type keyedRun struct {
	*pointPlan
	keys [][]byte
	// ordered says that rows found key by key are in the order that is asked for, of one key's rows too.
	ordered bool
	// skip and most are OFFSET and LIMIT, -1 without.
	skip, most int64
}

// planKeyed plans SELECT … WHERE key = …, IN (…) or = ANY(…); nil when the query must go the long way.
func (s *session) planKeyed(ctx context.Context, b binding, k *pgsql.KeyedSelect) (*keyedRun, error) {
	use := b.p.query.Relations[k.Rel]
	plan, err := s.pointPlan(ctx, b, k, use)
	if err != nil || plan == nil {
		return nil, err
	}
	keys, err := s.keysOf(ctx, plan.parts, use, b.args, probeLimit(plan.look.Rows()))
	if err != nil || keys.parts != len(plan.parts) {
		return nil, err
	}
	run := &keyedRun{pointPlan: plan, ordered: keys.ordered(k, plan.parts), keys: keys.keys}
	if !run.ordered && len(keys.keys) > 1 {
		return nil, nil
	}
	ok, err := s.limits(ctx, b, k, run)
	if err != nil || !ok {
		return nil, err
	}
	return run, nil
}

// keyedSelect answers a keyed SELECT from the key index. ok is false when the query must go the long way.
func (s *session) keyedSelect(ctx context.Context, b binding, k *pgsql.KeyedSelect) (rowSource, bool, error) {
	run, err := s.planKeyed(ctx, b, k)
	if err != nil || run == nil {
		return nil, false, err
	}
	if len(run.keys) == 0 || run.most == 0 {
		return noRows{}, true, nil
	}
	out, err := s.keyedOutputs(ctx, b, k, run.cols)
	if err != nil {
		return nil, false, err
	}
	if len(run.keys) > 1 {
		found, err := run.look.FindMany(ctx, run.keys)
		return &foundRows{next: found.Next, out: out, skip: run.skip, left: run.most}, err == nil, err
	}
	rec, err := run.look.Find(ctx, run.keys[0])
	if err != nil {
		return nil, false, err
	}
	switch {
	case rec.NumRows() == 0:
		rec.Release()
		return noRows{}, true, nil
	case rec.NumRows() > 1 && !run.ordered: // a key that its table's other writers did not keep unique
		rec.Release()
		return nil, false, nil
	case run.skip > 0 || run.most > 0:
		return &foundRows{next: once(rec), out: out, skip: run.skip, left: run.most}, true, nil
	}
	src, err := out.rows(rec)
	return src, err == nil, err
}

// once gives one batch.
func once(rec arrow.RecordBatch) func(context.Context) (arrow.RecordBatch, error) {
	return func(context.Context) (arrow.RecordBatch, error) {
		out := rec
		rec = nil
		return out, nil
	}
}

// ordered puts the keys into the order that ORDER BY asks for; false when that is no order of keys.
func (set *keySet) ordered(k *pgsql.KeyedSelect, parts []keyPart) bool {
	if k.Unordered || len(k.Order) == 0 {
		return !k.Unordered
	}
	var sorted []int // the columns that the keys come in the order of
	order := slices.Clone(k.Order)
	for i, p := range parts {
		if set.single[i] { // the same in every row
			order = slices.DeleteFunc(order, func(c int) bool { return c == p.col })
		} else {
			sorted = append(sorted, p.col)
		}
	}
	order = slices.Compact(order)
	if len(order) > len(sorted) || !slices.Equal(order, sorted[:len(order)]) {
		return false
	}
	if k.Desc {
		slices.Reverse(set.keys)
	}
	return true
}

// limits reads OFFSET and LIMIT; false for values that the long way refuses.
func (s *session) limits(ctx context.Context, b binding, k *pgsql.KeyedSelect, run *keyedRun) (ok bool, err error) {
	run.most = -1
	for _, l := range []struct {
		arg *pgsql.Arg
		to  *int64
	}{{k.Offset, &run.skip}, {k.Limit, &run.most}} {
		if l.arg == nil {
			continue
		}
		v, err := s.evaluateArg(ctx, l.arg, b.args)
		if err != nil {
			return false, err
		}
		if v.Null {
			continue
		}
		if *l.to, err = strconv.ParseInt(v.Text, 10, 64); err != nil || *l.to < 0 {
			return false, nil
		}
	}
	return true, nil
}

// keptPointPlan is the plan of the statement's last execution, nil when the table may have another state now.
func (s *session) keptPointPlan(b binding, h *handle) *pointPlan {
	p := b.p.point
	if p == nil || s.tx == nil || !s.tx.unwritten() || s.gucs.now.branch != "" || s.gucs.now.asOf != "" {
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

func (s *session) pointPlan(ctx context.Context, b binding, k *pgsql.KeyedSelect, use *pgsql.RelUse) (*pointPlan, error) {
	h := use.Relation.Handle.(*handle)
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
	asOf, err := s.keyedAsOf(ctx, b, k, h)
	if err != nil {
		return nil, err
	}
	cacheable := t.AtCut() && t.State() != nil && asOf == nil
	switch {
	case asOf != nil:
		st, err := sqlfuncs.TableStateAt(ctx, s.env(ctx), h.table, asOf)
		if err != nil {
			return nil, err
		}
		if k.AsOf != nil {
			target.Schema = h.shape.Table
		}
		target.AsOf = &lookup.AsOf{Metadata: st.Metadata, Snapshot: st.Snapshot, Schema: st.Schema}
	case !cacheable:
		if target.Live, err = t.Live(ctx); err != nil {
			return nil, err
		}
	}
	p, err := s.preparePoint(ctx, target, t, k, use)
	if err != nil || p == nil {
		return nil, err
	}
	p.state, p.cut = t.State(), s.readTx().Cut()
	if cacheable {
		b.p.point = p
	}
	return p, nil
}

// keyedAsOf is the bound that the rows are read at: table_at's, else skade.as_of; nil for the present.
func (s *session) keyedAsOf(ctx context.Context, b binding, k *pgsql.KeyedSelect, h *handle) (*sqlfuncs.Value, error) {
	if k.AsOf != nil {
		return s.evaluateArg(ctx, k.AsOf, b.args)
	}
	if v := s.gucs.now.asOf; v != "" && !s.isTemp(h.table) {
		return &sqlfuncs.Value{OID: pgtype.Text, Text: v}, nil
	}
	return nil, nil
}

// preparePoint prepares the lookup of a target; nil when its key or a column is not one for this path.
func (s *session) preparePoint(ctx context.Context, target lookup.Target, t *warehouse.TxTable, k *pgsql.KeyedSelect, use *pgsql.RelUse) (*pointPlan, error) {
	target.Columns = []string{}
	outs := make([]int, len(k.Output))
	for i, o := range k.Output {
		if o.Value != nil {
			continue
		}
		name := use.Relation.Columns[o.Column].Name
		if outs[i] = slices.Index(target.Columns, name); outs[i] < 0 {
			outs[i] = len(target.Columns)
			target.Columns = append(target.Columns, name)
		}
	}
	if len(target.Columns) == 0 {
		target.Columns = append(target.Columns, use.Relation.Columns[use.Relation.Key[0]].Name)
	}
	look, err := s.gw.lookup.Prepare(ctx, target)
	if err != nil {
		return nil, err
	}
	p := &pointPlan{look: look, cols: outs}
	cols := look.Columns()
	for i, id := range cols.KeyIDs {
		// The condition names the columns of the relation, the lookup the fields of the state's key.
		f, ok := target.Schema.FindFieldByID(id)
		col := -1
		if ok {
			col = slices.IndexFunc(use.Relation.Columns, func(c pgsql.RelColumn) bool { return c.Name == f.Name })
		}
		if col < 0 || !slices.Contains(use.Relation.Key, col) {
			return nil, nil
		}
		p.parts = append(p.parts, keyPart{sqlfuncs.KeyColumn{ID: id, Type: look.KeyTypes()[i], OID: use.Relation.Columns[col].Type, Mod: use.Relation.Columns[col].Mod}, col})
	}
	for i, o := range k.Output {
		if o.Value == nil && use.Relation.Columns[o.Column].Type == pgtype.JSONB && arrow.IsNested(cols.Schema.Field(outs[i]).Type.ID()) {
			return nil, nil // shown as jsonb, which DuckDB writes
		}
	}
	if len(p.parts) != len(use.Relation.Key) {
		return nil, nil
	}
	return p, nil
}
