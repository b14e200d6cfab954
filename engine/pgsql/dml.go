package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// part is one DuckDB query of a statement that needs several: its own sources and binds, the statement's parameters.
type part struct {
	rels  []*relEntry
	binds []Bind
	node  *selNode
}

// inPart analyses with fresh sources and binds.
func (az *analyzer) inPart(f func() *selNode) *part {
	rels, binds := az.rels, az.binds
	az.rels, az.binds = nil, nil
	n := f()
	p := &part{rels: az.rels, binds: az.binds, node: n}
	az.rels, az.binds = rels, binds
	return p
}

func (az *analyzer) finishPart(p *part, show bool) *Query {
	rels, binds := az.rels, az.binds
	az.rels, az.binds = p.rels, p.binds
	q := &Query{}
	var b strings.Builder
	p.node.show = show
	p.node.write(&b)
	az.finish(q, b.String())
	az.rels, az.binds = rels, binds
	return q
}

func columnsOf(targets []*target) []OutCol {
	var out []OutCol
	for _, t := range targets {
		out = append(out, outCol(t))
	}
	return out
}

// pendingDML is an analysed INSERT, UPDATE or DELETE: what it returns, and the rest of the work, which is done when the types of all
// parameters are known.
type pendingDML struct {
	ret    []*target // nil without RETURNING
	finish func() *Query
}

// modify analyses INSERT, UPDATE or DELETE; nil for another statement. sub is one in WITH: its RETURNING gives values, not what is shown.
func (az *analyzer) modify(n *pg_query.Node, ctes []*cteEntry, sub bool) *pendingDML {
	switch st := n.GetNode().(type) {
	case *pg_query.Node_InsertStmt:
		return az.insert(st.InsertStmt, ctes, sub)
	case *pg_query.Node_UpdateStmt:
		return az.update(st.UpdateStmt, ctes, sub)
	case *pg_query.Node_DeleteStmt:
		return az.delete(st.DeleteStmt, ctes, sub)
	}
	return nil
}

// returned makes RETURNING's columns: nil and an empty list differ.
func returned(ret []*target) []OutCol {
	if ret == nil {
		return nil
	}
	return append([]OutCol{}, columnsOf(ret)...)
}

// dmlTarget resolves the table of INSERT, UPDATE, DELETE.
func (az *analyzer) dmlTarget(v *pg_query.RangeVar, verb string) *Relation {
	rel, err := az.r.ResolveRelation(v.Schemaname, v.Relname)
	az.check(err, v.Location)
	if rel == nil {
		az.noRelation(v.Schemaname, v.Relname, v.Location)
	}
	if rel.Kind == View {
		e := az.errorAt(pgerr.FeatureNotSupported, -1, "cannot %s view %q", verb, rel.Name)
		e.Detail = "Views of skade-pg are not updatable."
		panic(e)
	}
	if rel.ReadOnly || rel.Kind != Table {
		az.fail(pgerr.InsufficientPrivilege, -1, "permission denied for table %s", rel.Name)
	}
	return rel
}

// stored are the columns that rows have: all but hidden ones.
func stored(rel *Relation) []int {
	var out []int
	for i, c := range rel.Columns {
		if !c.Hidden {
			out = append(out, i)
		}
	}
	return out
}

func (az *analyzer) columnIndex(rel *Relation, name string, loc int32) int {
	for i, c := range rel.Columns {
		if c.Name == name && !c.Hidden {
			return i
		}
	}
	for _, c := range rel.Columns {
		if c.Name == name {
			az.fail(pgerr.FeatureNotSupported, loc, "cannot assign to system column %q", name)
		}
	}
	az.fail(pgerr.UndefinedColumn, loc, "column %q of relation %q does not exist", name, rel.Name)
	return 0
}

// returning analyses RETURNING.
func (az *analyzer) returning(s *scope, list []*pg_query.Node) []*target {
	s.clause = "RETURNING"
	out := s.targetList(list)
	s.clause = ""
	for _, t := range out {
		if t.e.typ == pgtype.Unknown {
			t.e = s.coerceTo(t.e, pgtype.Text, -1, implicitCoercion, "RETURNING")
		}
	}
	return out
}

// dmlScope opens the target of UPDATE and DELETE, and FROM or USING beside it.
func (az *analyzer) dmlScope(v *pg_query.RangeVar, rel *Relation, with *pg_query.WithClause, ctes []*cteEntry, from []*pg_query.Node) (*scope, *selNode, *relEntry) {
	s := &scope{az: az, ctes: ctes}
	n := &selNode{scope: s}
	if with != nil {
		az.withClause(n, with, s)
	}
	name, _ := aliasOf(v.Alias)
	if name == "" {
		name = rel.Name
	}
	e := az.addRel(rel, name, v.Location)
	e.use.Position = true
	item := s.relItem(e, name, nil, v.Location)
	s.ns = append(s.ns, item.ns...)
	items := s.fromClause(from)
	n.from = append([]*fromItem{item}, items...)
	return s, n, e
}

func filePos(e *relEntry) []*target {
	return []*target{
		{name: "file", e: &expr{kind: kColumn, typ: pgtype.Text, mod: -1, ident: e.alias + ".f"}},
		{name: "pos", e: &expr{kind: kColumn, typ: pgtype.Int8, mod: -1, ident: e.alias + ".p"}},
	}
}

func (az *analyzer) dmlWhere(s *scope, n *selNode, where *pg_query.Node) {
	if where == nil {
		return
	}
	s.clause = "WHERE"
	n.where = s.boolean(where, "WHERE")
	s.clause = ""
	var rels []*relEntry
	for _, f := range n.from {
		rels = append(rels, f.rels...)
	}
	az.pushPredicates(n.where, rels, s)
}

func (az *analyzer) delete(st *pg_query.DeleteStmt, ctes []*cteEntry, sub bool) *pendingDML {
	rel := az.dmlTarget(st.Relation, "delete from")
	s, n, e := az.dmlScope(st.Relation, rel, st.WithClause, ctes, st.UsingClause)
	az.dmlWhere(s, n, st.WhereClause)
	n.targets = filePos(e)
	if len(st.UsingClause) > 0 {
		n.distinctOn = []*expr{n.targets[0].e, n.targets[1].e}
	}
	var ret []*target
	if len(st.ReturningList) > 0 {
		ret = az.returning(s, st.ReturningList)
		n.targets = append(n.targets, ret...)
	}
	del := &Delete{Target: rel, Rel: e.index, All: st.WhereClause == nil && len(st.UsingClause) == 0}
	p := &part{rels: az.rels, binds: az.binds, node: n}
	return &pendingDML{ret: ret, finish: func() *Query {
		q := az.finishPart(p, !sub)
		q.Delete, q.Columns = del, returned(ret)
		return q
	}}
}
