package engine

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// rowGuard completes and checks the rows of one table in one statement: generated columns, NOT NULL, CHECK constraints, and for COPY the defaults
// of columns that the data lacks. It is the table's warehouse.Guard, so that no write gets past it. Batches pass one at a time.
type rowGuard struct {
	s    *session
	t    *warehouse.TxTable
	rel  *pgsql.Relation
	spec pgsql.RowSpec
	def  *tableDef

	mu      sync.Mutex
	query   *pgsql.Query
	conn    *sessionConn
	stmt    *duck.Stmt
	binds   []any
	release func()
	batch   arrow.RecordBatch // what the statement reads
	passed  []arrow.Array     // columns of the batch that passed last: writers may pass it again
}

// rowError says which row of a batch an error is about.
type rowError struct {
	row int
	err error
}

func (e *rowError) Error() string { return e.err.Error() }
func (e *rowError) Unwrap() error { return e.err }

// newRowGuard is nil for a table whose rows need nothing but NOT NULL. defaults are columns to fill with their defaults.
func (s *session) newRowGuard(t *warehouse.TxTable, defaults []int) *rowGuard {
	d := readTableDef(t.Metadata().Properties())
	g := &rowGuard{s: s, t: t, def: d, spec: pgsql.RowSpec{Defaults: defaults}}
	for _, c := range d.checks {
		g.spec.Checks = append(g.spec.Checks, c.Expr)
	}
	for i, f := range t.Schema().Fields() {
		if d.columns[f.ID].Generated != "" {
			g.spec.Generated = append(g.spec.Generated, i)
		}
	}
	if len(g.spec.Checks) == 0 && len(g.spec.Generated) == 0 && len(defaults) == 0 {
		return nil
	}
	g.rel = tableRelation(t)
	return g
}

// guard gives a table the guard it needs; it stays until the statement ends.
func (s *session) guard(t *warehouse.TxTable) *rowGuard {
	if s.tx == nil {
		return nil
	}
	version := definitionVersion(t)
	if g, ok := s.tx.guards[t]; ok && g.version == version {
		return g.guard
	}
	if s.tx.guards == nil {
		s.tx.guards = map[*warehouse.TxTable]tableGuard{}
	}
	g := s.newRowGuard(t, nil)
	s.setGuard(t, g, version)
	return g
}

// tableGuard is a table's guard and the definition it was made for.
type tableGuard struct {
	guard   *rowGuard
	version int
}

func (s *session) setGuard(t *warehouse.TxTable, g *rowGuard, version int) {
	if old := s.tx.guards[t].guard; old != nil {
		old.close()
	}
	s.tx.guards[t] = tableGuard{g, version}
	if g == nil {
		t.SetGuard(nil)
		return
	}
	t.SetGuard(g.pass)
}

// closeGuards frees what the guards of a statement hold; they open again when they are needed.
func (t *txn) closeGuards() {
	for _, g := range t.guards {
		if g.guard != nil {
			g.guard.close()
		}
	}
}

// open prepares the guard's query. DuckDB plans it at each batch again, but parses it once.
func (g *rowGuard) openLocked(ctx context.Context) error {
	if g.stmt != nil {
		return nil
	}
	s := g.s
	if g.query == nil {
		q, err := pgsql.AnalyzeRows(g.rel, g.spec, &resolver{ctx: ctx, s: s})
		if err != nil {
			return err
		}
		g.query = q
	}
	var err error
	if g.binds, err = s.binds(ctx, g.query.Binds, nil); err != nil {
		return err
	}
	src := &sqlfuncs.Rows{Schema: g.t.ArrowSchema(), N: 2048, Batches: func(context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(g.batch, nil) }
	}}
	r, err := s.render(ctx, g.query, nil, given{0: src})
	if err != nil {
		return err
	}
	g.release = r.release
	if g.conn, err = s.conns.take(ctx); err != nil {
		g.closeLocked()
		return err
	}
	var cols []pgsql.RelColumn
	for _, i := range append(append([]int(nil), g.spec.Defaults...), g.spec.Generated...) {
		cols = append(cols, g.rel.Columns[i])
	}
	if g.stmt, err = g.conn.Prepare(ctx, storedSQL(r.sql, 0, cols, 1)); err != nil {
		g.closeLocked()
		return err
	}
	return nil
}

func (g *rowGuard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closeLocked()
}

func (g *rowGuard) closeLocked() {
	g.passed = nil
	if g.stmt != nil {
		g.stmt.Close()
		g.stmt = nil
	}
	if g.conn != nil {
		g.s.conns.give(g.conn)
		g.conn = nil
	}
	if g.release != nil {
		g.release()
		g.release = nil
	}
}

// pass is the warehouse.Guard.
func (g *rowGuard) pass(ctx context.Context, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passedLocked(rec) || rec.NumRows() == 0 {
		rec.Retain()
		return rec, nil
	}
	if err := g.openLocked(ctx); err != nil {
		return nil, g.s.sqlError(ctx, err)
	}
	computed, err := g.computeLocked(ctx, rec)
	if err != nil {
		return nil, g.s.sqlError(ctx, err)
	}
	defer func() {
		for _, a := range computed {
			a.Release()
		}
	}()
	cols := append([]arrow.Array(nil), rec.Columns()...)
	n := len(computed) - 1
	for k, i := range append(append([]int(nil), g.spec.Defaults...), g.spec.Generated...) {
		a, err := rewrap(computed[k], g.t.ArrowSchema().Field(i).Type)
		if err != nil {
			return nil, err
		}
		defer a.Release()
		cols[i] = a
	}
	out := array.NewRecordBatch(g.t.ArrowSchema(), cols, rec.NumRows())
	if err := g.refusal(out, computed[n].(*array.Int64)); err != nil {
		out.Release()
		return nil, err
	}
	g.passed = out.Columns()
	return out, nil
}

// passedLocked reports the batch that passed last.
func (g *rowGuard) passedLocked(rec arrow.RecordBatch) bool {
	if len(g.passed) != int(rec.NumCols()) {
		return false
	}
	for i, a := range g.passed {
		if rec.Column(i) != a {
			return false
		}
	}
	return true
}

// computeLocked runs the query over a batch; its columns are the caller's.
func (g *rowGuard) computeLocked(ctx context.Context, rec arrow.RecordBatch) ([]arrow.Array, error) {
	g.batch = array.NewRecordBatch(g.t.ArrowSchema(), rec.Columns(), rec.NumRows())
	defer func() {
		g.batch.Release()
		g.batch = nil
	}()
	rows, err := g.stmt.Query(ctx, g.binds)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	parts := make([][]arrow.Array, len(g.spec.Defaults)+len(g.spec.Generated)+1)
	defer func() {
		for _, p := range parts {
			for _, a := range p {
				a.Release()
			}
		}
	}()
	for {
		out, err := rows.NextBatch(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i := range parts {
			out.Column(i).Retain()
			parts[i] = append(parts[i], out.Column(i))
		}
		out.Release()
	}
	cols := make([]arrow.Array, len(parts))
	for i, p := range parts {
		if len(p) == 1 {
			p[0].Retain()
			cols[i] = p[0]
			continue
		}
		if cols[i], err = array.Concatenate(p, arrowAllocator); err != nil {
			return nil, err
		}
	}
	if cols[0].Len() != int(rec.NumRows()) {
		return nil, pgerr.Newf(pgerr.InternalError, "%d of %d rows were checked", cols[0].Len(), rec.NumRows())
	}
	return cols, nil
}

// refusal is the error for the first row that a constraint refuses: NOT NULL before CHECK, CHECKs by name, as PostgreSQL does.
func (g *rowGuard) refusal(rec arrow.RecordBatch, violated *array.Int64) error {
	bad, check := int(rec.NumRows()), 0
	for i, v := range violated.Int64Values() {
		if v != 0 {
			bad, check = i, int(v)
			break
		}
	}
	if row, nn := g.t.FirstNull(rec); nn != nil && row <= bad {
		nn.Row = g.rowText(rec, row)
		return &rowError{row, nn}
	}
	if check == 0 {
		return nil
	}
	ident, name := g.t.Ident(), g.def.checks[check-1].Name
	e := pgerr.Newf(pgerr.CheckViolation, "new row for relation \"%s\" violates check constraint \"%s\"", ident[len(ident)-1], name)
	e.Schema, e.Table, e.Constraint = schemaOf(ident), ident[len(ident)-1], name
	e.Detail = warehouse.FailingRow(g.rowText(rec, bad))
	return &rowError{bad, e}
}

// rowText is a row's values as the session prints them.
func (g *rowGuard) rowText(rec arrow.RecordBatch, row int) []string {
	out := warehouse.RowText(rec, row)
	for i, c := range g.rel.Columns {
		if rec.Column(i).IsNull(row) {
			continue
		}
		enc, err := columnEncoder(rec.Column(i), pgwire.Column{TypeOID: c.Type, TypeMod: c.Mod}, g.s.style())
		if err != nil {
			continue // a type without a text form of its own
		}
		if b, err := enc(nil, row); err == nil {
			out[i] = string(b)
		}
	}
	return out
}
