package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// snapshot is what a statement that changes data reads, when more than its first query reads: the tables as they were before it.
// Its parts do not see each other's changes but through RETURNING, and neither do subqueries in RETURNING.
type snapshot map[string]tableSnapshot

type tableSnapshot struct {
	set    *liveset.Set
	ref    liveset.Ref
	schema *iceberg.Schema
}

func snapshotKey(ident table.Identifier) string { return strings.Join(ident, "\x00") }

// freeze pins the tables that a statement and its parts read, until thaw.
func (s *session) freeze(ctx context.Context, q *pgsql.Query) (thaw func(), err error) {
	if s.frozen != nil {
		return func() {}, nil
	}
	snap := snapshot{}
	parts := len(q.Parts) > 0
	if parts {
		if err := s.freezeTables(ctx, snap, q, parts); err != nil {
			return nil, err
		}
	}
	for _, p := range append(partsOf(q), q.Parts...) {
		if p == nil {
			continue
		}
		for _, x := range append(partsOf(p), p) {
			if err := s.freezeTables(ctx, snap, x, parts); err != nil {
				return nil, err
			}
		}
	}
	if len(snap) == 0 {
		return func() {}, nil
	}
	if err := s.freezeTables(ctx, snap, q, parts); err != nil {
		return nil, err
	}
	s.frozen = snap
	return func() { s.frozen = nil }, nil
}

// partsOf are the queries of a statement that run after its rows were written.
func partsOf(q *pgsql.Query) []*pgsql.Query {
	if q.Insert == nil {
		return nil
	}
	var out []*pgsql.Query
	if oc := q.Insert.OnConflict; oc != nil && oc.Update != nil {
		out = append(out, oc.Update)
	}
	if q.Insert.Returning != nil {
		out = append(out, q.Insert.Returning)
	}
	return out
}

// freezeTables adds the tables that a query reads. flush: each row gets a place that it keeps while the parts write.
func (s *session) freezeTables(ctx context.Context, snap snapshot, q *pgsql.Query, flush bool) error {
	var rels []*pgsql.Relation
	for _, use := range q.Relations {
		rels = append(rels, use.Relation)
	}
	if q.Insert != nil && q.Insert.OnConflict != nil {
		rels = append(rels, q.Insert.Target)
	}
	for _, rel := range rels {
		if rel.Kind != pgsql.Table {
			continue
		}
		ident := rel.Handle.(*handle).table
		key := snapshotKey(ident)
		if _, have := snap[key]; have {
			continue
		}
		if flush {
			t, err := s.table(ctx, ident)
			if err != nil {
				return err
			}
			if err := t.Flush(ctx); err != nil {
				return err
			}
		}
		set, ref, sc, err := s.liveSet(ctx, ident, nil)
		if err != nil {
			return err
		}
		snap[key] = tableSnapshot{set, ref, sc}
	}
	return nil
}

// lockTargets locks what a statement and its parts write, before any of them runs. It returns the statement's own table.
func (s *session) lockTargets(ctx context.Context, b binding, target *pgsql.Relation) (*warehouse.TxTable, error) {
	if b.part != nil {
		return s.table(ctx, target.Handle.(*handle).table) // locked with the statement
	}
	for _, p := range b.p.query.Parts {
		if p != nil && (p.Insert != nil || p.Update != nil || p.Delete != nil) {
			rel, _ := dmlTarget(p)
			if _, err := s.lockForWrite(ctx, b.p, rel); err != nil {
				return nil, err
			}
		}
	}
	if target == nil {
		return nil, nil
	}
	return s.lockForWrite(ctx, b.p, target)
}

// beginParts is what a query whose WITH changes data takes before it runs.
func (s *session) beginParts(ctx context.Context, b binding) error {
	if !b.p.query.Modifies {
		return nil
	}
	if err := s.tx.writable("SELECT"); err != nil {
		return err
	}
	s.tx.warehouseTx()
	_, err := s.lockTargets(ctx, b, nil)
	return err
}

// withParts runs the CTEs of a statement that run by themselves; the binding then has their rows, until free is called. Those that nothing reads
// run after a statement that changes data, when finish is called; a SELECT does not wait for them.
func (s *session) withParts(ctx context.Context, b binding) (out binding, finish func() error, free func(), err error) {
	q := b.query()
	if len(q.Parts) == 0 || b.parts != nil {
		return b, func() error { return nil }, func() {}, nil
	}
	b.parts = make([]*spool, len(q.Parts))
	free = func() {
		for _, sp := range b.parts {
			if sp != nil {
				sp.free()
			}
		}
	}
	thaw, err := s.freeze(ctx, q)
	if err != nil {
		return b, nil, nil, err
	}
	defer thaw()
	mark := s.tx.warehouseTx().Savepoint()
	run := func(i int) {
		if q.Parts[i] != nil && err == nil {
			b.parts[i], err = s.runPart(ctx, b, q.Parts[i])
		}
	}
	for i := range q.Parts {
		if !slices.Contains(q.Last, i) {
			run(i)
		}
	}
	last := func() error {
		for _, i := range q.Last {
			run(i)
		}
		return err
	}
	if b.p.stmt.Kind == pgsql.Select || b.p.inner != nil {
		err = last()
		last = func() error { return nil }
	}
	if err != nil {
		free()
		s.undo(mark)
		return b, nil, nil, err
	}
	return b, last, free, s.tx.wh.Release(mark)
}

// runPart runs one CTE and keeps its rows.
func (s *session) runPart(ctx context.Context, b binding, p *pgsql.Query) (*spool, error) {
	sub := b
	sub.part, sub.cols = p, nil
	if p.Insert == nil && p.Update == nil && p.Delete == nil {
		return s.spoolQuery(ctx, sub, p, nil)
	}
	res, err := s.runDML(ctx, sub, discardWriter{})
	if err != nil {
		return nil, err
	}
	if p.Columns == nil {
		return nil, nil
	}
	if p.Insert == nil {
		return res.ret, nil
	}
	defer res.ret.free()
	return s.spoolQuery(ctx, sub, p.Insert.Returning, given{0: res.ret.source()})
}

// spoolQuery runs a query to its end and keeps its rows.
func (s *session) spoolQuery(ctx context.Context, b binding, q *pgsql.Query, rows given) (*spool, error) {
	d, err := s.startWrapped(ctx, b, q, rows, func(sql string) string { return sql })
	if err != nil {
		return nil, err
	}
	defer d.close()
	sp := &spool{gw: s.gw, on: true}
	if err := d.spoolInto(ctx, sp, 0); err != nil {
		sp.free()
		return nil, err
	}
	return sp, nil
}

// spoolInto keeps all rows of a query.
func (d *duckRows) spoolInto(ctx context.Context, sp *spool, from int) error {
	schema, err := d.rows.Schema()
	if err != nil {
		return err
	}
	sp.begin(schema, from)
	return d.eachBatch(ctx, func(rec arrow.RecordBatch) error { return sp.add(rec, from) })
}

// spooled adds the rows of parts to those that are given to a query's sources.
func (b binding) spooled(q *pgsql.Query, rows given) given {
	for i, use := range q.Relations {
		part := use.Driver - 1
		if use.Relation.Kind == pgsql.Spooled {
			part = use.Relation.Handle.(int)
		}
		if part < 0 || b.parts == nil {
			continue
		}
		if rows == nil {
			rows = given{}
		}
		if sp := b.parts[part]; sp != nil {
			rows[i] = sp.source()
		}
	}
	return rows
}

// spooledCast gives a spooled column the type that expressions have. A record and a numeric keep what they came as.
func spooledCast(expr string, c pgsql.RelColumn) string {
	switch {
	case c.Type == pgtype.Record, c.Type == pgtype.RecordArray, c.Type == pgtype.Numeric, c.Type == pgtype.NumericArray, c.Type == pgtype.Unknown:
		return expr
	case c.Type == pgtype.Interval:
		return intervalFromISO + "(" + expr + ")"
	case c.Type == pgtype.IntervalArray:
		return "list_transform(" + expr + ", lambda v: " + intervalFromISO + "(v))"
	}
	return "CAST(" + expr + " AS " + pgtype.DuckName(c.Type, c.Mod) + ")"
}

// undo takes a failed statement's changes back.
func (s *session) undo(mark warehouse.Mark) {
	if err := s.tx.wh.RollbackTo(mark); err != nil {
		s.gw.log.Error().Err(err).Msg("roll back a failed statement")
	}
}

// stillLive are the rows of a batch whose target is live: another part of the statement may have changed or deleted it, and only the first of
// two changes of one row takes place.
func stillLive(t *warehouse.TxTable, rec arrow.RecordBatch, files []string) (*roaring.Bitmap, error) {
	f, p := rec.Column(0).(*array.Int64), rec.Column(1).(*array.Int64)
	byFile := map[int64]*roaring.Bitmap{}
	for i := range int(rec.NumRows()) {
		bm := byFile[f.Value(i)]
		if bm == nil {
			bm = roaring.New()
			byFile[f.Value(i)] = bm
		}
		bm.Add(uint32(p.Value(i)))
	}
	for k, bm := range byFile {
		live, err := t.LiveAt(files[k], bm)
		if err != nil {
			return nil, err
		}
		byFile[k] = live
	}
	rows := roaring.New()
	for i := range int(rec.NumRows()) {
		if byFile[f.Value(i)].Contains(uint32(p.Value(i))) {
			rows.Add(uint32(i))
		}
	}
	return rows, nil
}
