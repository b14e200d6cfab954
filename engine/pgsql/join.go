package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func (s *scope) joinExpr(j *pg_query.JoinExpr) *fromItem {
	left := s.fromNode(j.Larg)
	// The left side is visible to the right side laterally, when the join type allows it.
	mark := len(s.ns)
	lateralOK := j.Jointype == pg_query.JoinType_JOIN_INNER || j.Jointype == pg_query.JoinType_JOIN_LEFT
	for _, x := range left.ns {
		x.lateralOnly, x.lateralOK = true, lateralOK
	}
	s.ns = append(s.ns, left.ns...)
	right := s.fromNode(j.Rarg)
	s.ns = s.ns[:mark]
	s.checkAliases(left.ns, right.ns)
	for _, x := range append(append([]*nsItem(nil), left.ns...), right.ns...) {
		x.lateralOnly = false
	}
	out := &fromItem{rels: append(append([]*relEntry(nil), left.rels...), right.rels...), locks: joinLocks(j.Jointype, left, right)}
	using := stringList(j.UsingClause)
	if j.IsNatural {
		using = commonColumns(left.ns, right.ns)
	}
	join := &nsItem{colsVisible: true}
	var cond *expr
	if len(using) > 0 || j.IsNatural {
		cond = s.usingCondition(j, using, left, right, join)
	}
	s.mergeJoin(join, using, left, right)
	if j.Quals != nil {
		cond = s.joinQuals(j, left, right)
	}
	if cond != nil {
		switch j.Jointype {
		case pg_query.JoinType_JOIN_INNER:
			s.az.pushPredicates(cond, out.rels, s)
		case pg_query.JoinType_JOIN_LEFT:
			s.az.pushPredicates(cond, right.rels, s)
		case pg_query.JoinType_JOIN_RIGHT:
			s.az.pushPredicates(cond, left.rels, s)
		}
	}
	word := joinWords[j.Jointype]
	if word == "" {
		s.az.unsupported(-1, "this join type")
	}
	for _, side := range nullable(j.Jointype, left, right) {
		for _, x := range side.ns {
			x.source = nil
		}
		for _, r := range side.rels {
			r.nullable = true
		}
	}
	out.ns = s.joinNames(j, join, left, right)
	out.write = func(b *strings.Builder) {
		b.WriteString("(")
		left.write(b)
		if cond == nil && j.Jointype == pg_query.JoinType_JOIN_INNER {
			b.WriteString(" CROSS JOIN ")
			right.write(b)
		} else {
			b.WriteString(word)
			right.write(b)
			b.WriteString(" ON ")
			if cond == nil {
				b.WriteString("true")
			} else {
				cond.write(b)
			}
		}
		b.WriteString(")")
	}
	return out
}

// nullable are the sides that a join shows as NULLs where they have no row.
func nullable(t pg_query.JoinType, left, right *fromItem) []*fromItem {
	switch t {
	case pg_query.JoinType_JOIN_LEFT:
		return []*fromItem{right}
	case pg_query.JoinType_JOIN_RIGHT:
		return []*fromItem{left}
	case pg_query.JoinType_JOIN_FULL:
		return []*fromItem{left, right}
	}
	return nil
}

var joinWords = map[pg_query.JoinType]string{
	pg_query.JoinType_JOIN_INNER: " JOIN ", pg_query.JoinType_JOIN_LEFT: " LEFT JOIN ",
	pg_query.JoinType_JOIN_RIGHT: " RIGHT JOIN ", pg_query.JoinType_JOIN_FULL: " FULL JOIN ",
}

func (s *scope) joinQuals(j *pg_query.JoinExpr, left, right *fromItem) *expr {
	// ON sees the two sides only.
	outer, hidden := s.ns, s.hidden
	s.ns = append(append([]*nsItem(nil), left.ns...), right.ns...)
	s.hidden = append(append([]*nsItem(nil), hidden...), outer...)
	clause := s.clause
	s.clause = "JOIN conditions"
	cond := s.boolean(j.Quals, "JOIN/ON")
	s.clause, s.ns, s.hidden = clause, outer, hidden
	return cond
}

// joinNames decides what may be named after a join: the join's alias hides its sides.
func (s *scope) joinNames(j *pg_query.JoinExpr, join *nsItem, left, right *fromItem) []*nsItem {
	sides := append(append([]*nsItem(nil), left.ns...), right.ns...)
	name, colnames := aliasOf(j.Alias)
	if name != "" {
		for _, c := range join.cols {
			e := *c.e
			e.name = name + "." + c.name
			c.e = &e
		}
		join.name, join.relVisible = name, true
		s.renameColumns(join, colnames, -1)
		return []*nsItem{join}
	}
	// Without an alias the sides' names stay, but unqualified columns come from the join.
	hidden := hiddenItem(sides)
	for _, x := range sides {
		x.colsVisible = false
	}
	out := append(sides, join)
	if j.JoinUsingAlias != nil {
		u := &nsItem{name: j.JoinUsingAlias.Aliasname, relVisible: true}
		u.cols = append(u.cols, join.cols[:len(j.UsingClause)]...)
		out = append(out, u)
	}
	if hidden != nil {
		out = append(out, hidden)
	}
	return out
}

// hiddenItem keeps system columns nameable after a join.
func hiddenItem(sides []*nsItem) *nsItem {
	h := &nsItem{colsVisible: true}
	for _, it := range sides {
		if !it.colsVisible {
			continue
		}
		for _, c := range it.cols {
			if c.hidden {
				h.cols = append(h.cols, c)
			}
		}
	}
	if len(h.cols) == 0 {
		return nil
	}
	return h
}

func visibleCols(items []*nsItem) []*nsCol {
	var out []*nsCol
	for _, it := range items {
		if !it.colsVisible {
			continue
		}
		for _, c := range it.cols {
			if !c.hidden {
				out = append(out, c)
			}
		}
	}
	return out
}

func commonColumns(left, right []*nsItem) []string {
	var out []string
	for _, l := range visibleCols(left) {
		for _, r := range visibleCols(right) {
			if l.name == r.name {
				out = append(out, l.name)
				break
			}
		}
	}
	return out
}

// usingCondition builds ON from USING and the merged columns.
func (s *scope) usingCondition(j *pg_query.JoinExpr, using []string, left, right *fromItem, join *nsItem) *expr {
	var cond *expr
	for _, name := range using {
		l := s.usingColumn(name, left.ns, "left")
		r := s.usingColumn(name, right.ns, "right")
		le, re := s.reference(s, l, -1), s.reference(s, r, -1)
		eq := s.operator("=", le, re, -1)
		if cond == nil {
			cond = eq
		} else {
			cond = andExprs(cond, eq)
		}
		common := s.commonType([]*expr{le, re}, "JOIN/USING")
		lc, rc := s.coerceCommon(le, common, "JOIN/USING"), s.coerceCommon(re, common, "JOIN/USING")
		merged := &nsCol{name: name}
		switch {
		case j.Jointype == pg_query.JoinType_JOIN_RIGHT:
			merged.e, merged.table, merged.attnum = rc, r.table, r.attnum
		case j.Jointype == pg_query.JoinType_JOIN_FULL:
			e := call(common, "coalesce($1, $2)", lc, rc)
			e.prec, e.scale = max(lc.prec, rc.prec), max(lc.scale, rc.scale)
			merged.e = e
		default:
			merged.e, merged.table, merged.attnum = lc, l.table, l.attnum
		}
		join.cols = append(join.cols, merged)
	}
	return cond
}

func (s *scope) usingColumn(name string, items []*nsItem, side string) *nsCol {
	var found *nsCol
	for _, c := range visibleCols(items) {
		if c.name == name {
			if found != nil {
				s.az.fail(pgerr.AmbiguousColumn, -1, "common column name %q appears more than once in %s table", name, side)
			}
			found = c
		}
	}
	if found == nil {
		s.az.fail(pgerr.UndefinedColumn, -1, "column %q specified in USING clause does not exist in %s table", name, side)
	}
	return found
}

func (s *scope) mergeJoin(join *nsItem, using []string, left, right *fromItem) {
	skip := map[string]bool{}
	for _, u := range using {
		skip[u] = true
	}
	for _, side := range [][]*nsItem{left.ns, right.ns} {
		for _, c := range visibleCols(side) {
			if !skip[c.name] {
				cc := *c
				join.cols = append(join.cols, &cc)
			}
		}
	}
}
