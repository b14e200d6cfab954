package engine

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

// prepared is a statement of the simple protocol, of Parse or of PREPARE: the pgwire.Statement of this product.
type prepared struct {
	s     *session
	stmt  *pgsql.Stmt // nil for an empty query
	text  string      // the whole query string
	given []uint32    // parameter types that the client gave

	// What analysis found.
	query  *pgsql.Query // SELECT and DML
	util   any          // the others: a struct of pgsql/utility.go
	inner  *prepared    // the statement inside EXPLAIN, DECLARE, COPY (query), PREPARE, CREATE TABLE AS
	params []uint32
	cols   []pgwire.Column
	deps   []dependency
	order  pgenc.DateOrder // in which date literals were read
	path   string          // search_path
	valid  validity
	done   bool
	// described says that the statement was analysed once: clients know its parameters and columns.
	described bool
	once      bool // of the simple protocol: executed once, nothing is kept
	closed    bool
	// plan is the DuckDB statement of the last execution, good while the sources are the same.
	plan  *cachedPlan
	point *pointPlan
}

// dependency is what an analysis relied on: a name that meant this relation with this schema.
type dependency struct {
	schema, name string
	oid          uint32
	schemaID     int // definitionVersion of a table, the changing seq of a view
	// searched: the name had no schema, so that a temporary relation may hide what it meant.
	searched bool
}

func (p *prepared) ParamOIDs() []uint32      { return p.params }
func (p *prepared) Columns() []pgwire.Column { return p.cols }
func (p *prepared) Empty() bool              { return p.stmt == nil }
func (p *prepared) needsAnalysis() bool      { return p.stmt != nil && p.stmt.Kind != pgsql.TransactionStmt }

// Close frees the plan, when a cursor that still reads from it is closed at the latest.
func (p *prepared) Close() {
	p.closed = true
	p.dropPlan()
	if p.inner != nil {
		p.inner.Close()
	}
}

func (p *prepared) kindIs(ks ...pgsql.Kind) bool {
	for _, k := range ks {
		if p.stmt.Kind == k {
			return true
		}
	}
	return false
}

// analyze binds a statement to the names of the session's current cut.
func (s *session) analyze(ctx context.Context, p *prepared) error {
	r := &resolver{ctx: ctx, s: s}
	p.done, p.query, p.util, p.inner, p.cols, p.params, p.point = false, nil, nil, nil, nil, nil, nil
	if p.kindIs(pgsql.Select, pgsql.InsertStmt, pgsql.UpdateStmt, pgsql.DeleteStmt, pgsql.MergeStmt) {
		q, err := pgsql.Analyze(p.stmt, r, p.given)
		if err != nil {
			return s.sqlError(ctx, err)
		}
		p.query = q
		if p.once && len(q.Params) > 0 {
			n := strings.IndexByte(p.stmt.Text, '$')
			return pgerr.New(pgerr.UndefinedParameter, "there is no parameter $1").WithPosition(utf8.RuneCountInString(p.stmt.Text[:max(n, 0)]) + 1)
		}
		for _, par := range q.Params {
			p.params = append(p.params, par.OID)
		}
		p.cols = columnsOf(q.Columns)
		if p.cols == nil && p.stmt.Kind == pgsql.Select {
			p.cols = []pgwire.Column{}
		}
	} else {
		u, err := pgsql.Utility(p.stmt)
		if err != nil {
			return err
		}
		p.util = u
		if err := s.analyzeUtility(ctx, p); err != nil {
			return err
		}
	}
	p.deps, p.order, p.path, p.valid = r.deps, r.DateOrder(), s.gucs.now.searchPath, validity{}
	p.done, p.described = true, true
	return nil
}

// refresh analyses a statement that was not yet, or whose names mean something else by now.
func (s *session) refresh(ctx context.Context, p *prepared) error {
	if !p.described {
		return s.analyze(ctx, p)
	}
	if p.done && s.unchanged(ctx, p) {
		return nil
	}
	p.dropPlan()
	// What the client was told stays, also while the names mean nothing: they may come back.
	before, params := p.cols, p.params
	if err := s.analyze(ctx, p); err != nil {
		p.done, p.cols, p.params = false, before, params
		return err
	}
	if !sameShape(before, p.cols) || len(params) != len(p.params) {
		p.done, p.cols, p.params = false, before, params
		return pgerr.New(pgerr.FeatureNotSupported, "cached plan must not change result type")
	}
	return nil
}

// validity names what an analysis depends on as a whole: while it is the same, no name needs to be looked at. The zero value is never valid.
type validity struct {
	cut      *catalog.Cut
	settings int
}

// validity is the session's, zero when the names may mean something else than the cut says: the transaction has changed something, or there are
// temporary relations.
func (s *session) validity() validity {
	if s.tx == nil || s.temp() != nil || !s.tx.unwritten() {
		return validity{}
	}
	return validity{s.tx.pin(), s.gucs.version}
}

// unchanged reports whether every name of an analysed statement means what it meant. search_path counts as in PostgreSQL, whose plans
// are made anew when it changes.
func (s *session) unchanged(ctx context.Context, p *prepared) bool {
	var now validity
	if len(p.deps) > 0 { // else no cut is pinned
		if now = s.validity(); now.cut != nil && now == p.valid {
			return true
		}
	}
	r := &resolver{ctx: ctx, s: s}
	if p.order != r.DateOrder() || p.path != s.gucs.now.searchPath {
		return false
	}
	for _, d := range p.deps {
		if !r.still(d) {
			return false
		}
	}
	p.valid = now
	return true
}

func sameShape(a, b []pgwire.Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].TypeOID != b[i].TypeOID || a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}

// columnsOf turns the analyser's output columns into a row description.
func columnsOf(cols []pgsql.OutCol) []pgwire.Column {
	if cols == nil {
		return nil
	}
	out := make([]pgwire.Column, len(cols))
	for i, c := range cols {
		out[i] = pgwire.Column{Name: c.Name, TableOID: c.TableOID, AttNum: c.AttNum, TypeOID: c.Type, TypeLen: pgtype.LenOf(c.Type), TypeMod: c.Mod}
	}
	return out
}

// textColumn is a column of a utility statement's result.
func textColumn(name string) pgwire.Column {
	return pgwire.Column{Name: name, TypeOID: pgtype.Text, TypeLen: -1, TypeMod: -1}
}

// analyzeUtility settles the columns and the inner statement of a utility statement.
func (s *session) analyzeUtility(ctx context.Context, p *prepared) error {
	inner := func(st *pgsql.Stmt) error {
		p.inner = &prepared{s: s, stmt: st, text: p.text, given: p.given, once: p.once}
		if err := s.analyze(ctx, p.inner); err != nil {
			return err
		}
		p.params = p.inner.params
		return nil
	}
	switch u := p.util.(type) {
	case *pgsql.Explain:
		p.cols = []pgwire.Column{textColumn("QUERY PLAN")}
		if u.Format == "json" {
			p.cols[0].TypeOID = pgtype.JSON
		}
		return inner(u.Stmt)
	case *pgsql.Show:
		return s.showColumns(p, u)
	case *pgsql.Declare:
		return inner(u.Query)
	case *pgsql.Fetch:
		if c, ok := s.cursors[u.Name]; ok && !u.Move {
			p.cols = c.columns()
		}
	case *pgsql.Execute:
		q, err := s.sqlPrepared(u.Name)
		if err != nil {
			return err
		}
		p.cols = q.cols
	case *pgsql.Copy:
		if u.Query != nil {
			return inner(u.Query)
		}
	case *pgsql.CreateTableAs:
		if u.Query.Kind == pgsql.Select {
			return inner(u.Query)
		}
	}
	return nil
}

func (s *session) showColumns(p *prepared, u *pgsql.Show) error {
	if u.Name == "all" {
		p.cols = []pgwire.Column{textColumn("name"), textColumn("setting"), textColumn("description")}
		return nil
	}
	name := u.Name
	if st, ok := settingByName[name]; ok {
		name = st.name
	} else if _, ok := s.gucs.get(name); !ok {
		return unrecognizedParameter(name)
	}
	p.cols = []pgwire.Column{textColumn(name)}
	return nil
}
