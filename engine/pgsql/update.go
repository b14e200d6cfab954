package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// setClause analyses SET: column index → value. The level's first item is the target.
func (az *analyzer) setClause(s *scope, rel *Relation, list []*pg_query.Node) map[int]*expr {
	out := map[int]*expr{}
	parts := map[int]bool{} // columns of which elements were assigned
	s.clause = "UPDATE"
	defer func() { s.clause = "" }()
	for _, n := range list {
		rt := n.GetResTarget()
		i := az.columnIndex(rel, rt.Name, rt.Location)
		el := s.elementOf(rel, i, rt.Indirection, rt.Location)
		if out[i] != nil && (el == nil || !parts[i]) {
			panic(pgerr.Newf(pgerr.SyntaxError, "multiple assignments to same column %q", rt.Name))
		}
		v := az.assigned(s, rt)
		switch {
		case v == nil && el != nil:
			az.fail(pgerr.FeatureNotSupported, rt.Location, "cannot set an array element to DEFAULT")
		case v == nil:
			out[i] = az.defaultExpr(s, rel, i)
		case rel.Columns[i].Generated != "" || rel.Columns[i].Identity == "always":
			panic(computedColumn(rel.Columns[i], "column %q can only be updated to DEFAULT"))
		case el != nil:
			old := out[i]
			if old == nil {
				old = s.reference(s, s.ns[0].cols[i], -1)
			}
			parts[i] = true
			out[i] = s.assignElement(old, el, v, rel, i)
		default:
			out[i] = s.assign(v, rel, i)
		}
	}
	return out
}

// assigned is the right side of an assignment; nil is DEFAULT.
func (az *analyzer) assigned(s *scope, rt *pg_query.ResTarget) *expr {
	if rt.Val.GetSetToDefault() != nil {
		return nil
	}
	if m := rt.Val.GetMultiAssignRef(); m != nil {
		return az.multiAssign(s, m)
	}
	return s.expr(rt.Val)
}

// multiAssign is one column of SET (a, b) = (…); nil is DEFAULT.
func (az *analyzer) multiAssign(s *scope, m *pg_query.MultiAssignRef) *expr {
	if row := m.Source.GetRowExpr(); row != nil {
		if len(row.Args) != int(m.Ncolumns) {
			az.fail(pgerr.SyntaxError, row.Location, "number of columns does not match number of values")
		}
		item := row.Args[m.Colno-1]
		if item.GetSetToDefault() != nil {
			return nil
		}
		return s.expr(item)
	}
	sub := m.Source.GetSubLink()
	if sub == nil {
		az.fail(pgerr.FeatureNotSupported, nodeLocation(m.Source), "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
	}
	n := az.selectNode(sub.Subselect, &scope{az: az, parent: s}, selectOptions{})
	if len(n.targets) != int(m.Ncolumns) {
		az.fail(pgerr.SyntaxError, sub.Location, "number of columns does not match number of values")
	}
	t := n.targets[m.Colno-1].e
	q := &expr{kind: kSub, typ: pgtype.Record, mod: -1, loc: sub.Location, sub: n, text: []string{"", ""}}
	e := call(t.typ, "(SELECT z.c"+strconv.Itoa(int(m.Colno))+" FROM $1 AS z)", q)
	e.prec, e.scale, e.loose, e.mod = t.prec, t.scale, t.loose, t.mod
	return e
}

func (az *analyzer) update(st *pg_query.UpdateStmt, ctes []*cteEntry, sub bool) *pendingDML {
	rel := az.dmlTarget(st.Relation, "update")
	s, n, e := az.dmlScope(st.Relation, rel, st.WithClause, ctes, st.FromClause)
	set := az.setClause(s, rel, st.TargetList)
	if s.aggs > 0 || s.wins > 0 {
		az.fail(pgerr.GroupingError, -1, "aggregate functions are not allowed in UPDATE")
	}
	az.dmlWhere(s, n, st.WhereClause)
	upd := &Update{Target: rel, Rel: e.index, Columns: stored(rel)}
	n.targets = filePos(e)
	item := s.ns[0]
	for _, i := range upd.Columns {
		v := set[i]
		if v == nil {
			v = az.oldValue(s, item, i, rel)
		} else {
			upd.Set = append(upd.Set, i)
		}
		n.targets = append(n.targets, &target{name: rel.Columns[i].Name, e: v})
	}
	if len(st.FromClause) > 0 {
		n.distinctOn = []*expr{n.targets[0].e, n.targets[1].e}
	}
	out := n
	var ret []*target
	if len(st.ReturningList) > 0 {
		out, ret = az.updateReturning(st, rel, upd, s, n)
	}
	p := &part{rels: az.rels, binds: az.binds, node: out}
	return &pendingDML{ret: ret, finish: func() *Query {
		q := az.finishPart(p, !sub)
		q.Update, q.Columns = upd, returned(ret)
		return q
	}}
}

// oldValue passes a stored column on unchanged.
func (az *analyzer) oldValue(s *scope, item *nsItem, i int, rel *Relation) *expr {
	e := s.reference(s, item.cols[i], -1)
	e.loose = false
	if e.typ == pgtype.BPChar && rel.Columns[i].Mod >= 4 {
		return call(e.typ, "rpad($1, "+strconv.Itoa(int(rel.Columns[i].Mod-4))+", ' ')", e)
	}
	return e
}

// updateReturning wraps the new rows, so that RETURNING sees new values of the target and the columns of FROM.
func (az *analyzer) updateReturning(st *pg_query.UpdateStmt, rel *Relation, upd *Update, s *scope, n *selNode) (*selNode, []*target) {
	rs := &scope{az: az, ctes: s.ctes}
	alias := az.alias()
	column := func(i int, like *expr, name string) *expr {
		return &expr{kind: kColumn, typ: like.typ, mod: like.mod, prec: like.prec, scale: like.scale, loose: like.loose, fields: like.fields,
			ident: alias + ".c" + strconv.Itoa(i+1), name: name, loc: -1}
	}
	// news are the new row's columns, as generated ones see them.
	news := func() []*expr {
		out := make([]*expr, len(rel.Columns))
		for j, i := range upd.Columns {
			c := s.ns[0].cols[i]
			if out[i] = column(2+j, c.e, c.e.name); c.e.typ == pgtype.BPChar {
				padded := out[i]
				out[i] = call(c.e.typ, "rtrim($1, ' ')", padded)
				out[i].mod = padded.mod
			}
		}
		return out
	}
	for k, it := range s.ns {
		cp := &nsItem{name: it.name, schema: it.schema, relVisible: it.relVisible, colsVisible: it.colsVisible, rel: it.rel}
		for i, c := range it.cols {
			if k == 0 {
				at := -1
				for j, col := range upd.Columns {
					if col == i {
						at = j
					}
				}
				if at < 0 {
					continue
				}
				e := column(2+at, c.e, c.e.name)
				if rel.Columns[i].Generated != "" {
					e = az.generatedExpr(rel, i, news())
				}
				cp.cols = append(cp.cols, &nsCol{name: c.name, e: e, table: c.table, attnum: c.attnum})
				continue
			}
			n.targets = append(n.targets, &target{name: c.name, e: s.reference(s, c, -1)})
			cp.cols = append(cp.cols, &nsCol{name: c.name, hidden: c.hidden, e: column(len(n.targets)-1, c.e, c.e.name), table: c.table, attnum: c.attnum})
		}
		rs.ns = append(rs.ns, cp)
	}
	ret := az.returning(rs, st.ReturningList)
	item := &fromItem{write: func(b *strings.Builder) {
		b.WriteString("(")
		n.write(b)
		b.WriteString(") AS " + alias)
	}}
	out := &selNode{scope: rs, from: []*fromItem{item}, with: n.with, recursive: n.recursive}
	n.with = nil
	for i := 0; i < 2+len(upd.Columns); i++ {
		e := column(i, n.targets[i].e, "")
		e.loose = false
		if e.typ == pgtype.BPChar {
			e.typ = pgtype.Text
		}
		out.targets = append(out.targets, &target{name: n.targets[i].name, e: e})
	}
	out.targets = append(out.targets, ret...)
	return out, ret
}
