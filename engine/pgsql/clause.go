package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// groupEntry is an element of GROUP BY: an expression, or a grouping set over entries.
type groupEntry struct {
	e    *expr
	kind string // "", "ROLLUP", "CUBE", "GROUPING SETS", "()", "row"
	sub  []groupEntry
}

// sortClause is transformSortClause with SQL92's output names and positions.
func (s *scope) sortClause(n *selNode, nodes []*pg_query.Node) {
	s.clause = "ORDER BY"
	defer func() { s.clause = "" }()
	for _, x := range nodes {
		sb := x.GetSortBy()
		if len(sb.UseOp) > 0 {
			switch op := sb.UseOp[len(sb.UseOp)-1].GetString_().GetSval(); op {
			case "<":
				sb.SortbyDir = pg_query.SortByDir_SORTBY_ASC
			case ">":
				sb.SortbyDir = pg_query.SortByDir_SORTBY_DESC
			default:
				s.az.fail(pgerr.WrongObjectType, sb.Location, "operator %s is not a valid ordering operator", op)
			}
		}
		key := &sortKey{target: -1, suffix: sortSuffix(sb)}
		key.target, key.e = s.clauseItem(n, sb.Node, "ORDER BY", true)
		if key.target < 0 && (n.op != "" || n.values != nil) {
			if n.values != nil && key.e != nil {
				n.order = append(n.order, key)
				continue
			}
			e := s.az.errorAt(pgerr.FeatureNotSupported, nodeLocation(sb.Node), "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
			e.Detail = "Only result column names can be used, not expressions or functions."
			e.Hint = "Add the expression/function to every SELECT, or move the UNION into a FROM clause."
			panic(e)
		}
		s.checkSortable(key, n)
		n.order = append(n.order, key)
	}
}

func (s *scope) checkSortable(key *sortKey, n *selNode) {
	e := key.e
	if key.target >= 0 {
		e = n.targets[key.target].e
	}
	switch e.typ {
	case pgtype.JSON, pgtype.XML:
		er := s.az.errorAt(pgerr.UndefinedFunction, e.loc, "could not identify an ordering operator for type %s", typeName(e.typ))
		er.Hint = "Use an explicit ordering operator or modify the query."
		panic(er)
	}
}

func sortSuffix(sb *pg_query.SortBy) string {
	desc := sb.SortbyDir == pg_query.SortByDir_SORTBY_DESC
	nullsFirst := desc
	switch sb.SortbyNulls {
	case pg_query.SortByNulls_SORTBY_NULLS_FIRST:
		nullsFirst = true
	case pg_query.SortByNulls_SORTBY_NULLS_LAST:
		nullsFirst = false
	}
	out := " ASC"
	if desc {
		out = " DESC"
	}
	if nullsFirst {
		return out + " NULLS FIRST"
	}
	return out + " NULLS LAST"
}

// clauseItem is findTargetlistEntrySQL92: the output column an item means, or -1 and its expression.
func (s *scope) clauseItem(n *selNode, node *pg_query.Node, clause string, aliasFirst bool) (int, *expr) {
	if ref := node.GetColumnRef(); ref != nil && len(ref.Fields) == 1 && ref.Fields[0].GetString_() != nil {
		name := ref.Fields[0].GetString_().Sval
		useAlias := aliasFirst
		if !aliasFirst {
			// GROUP BY prefers a column of FROM.
			useAlias = !s.hasColumn(name)
		}
		if useAlias {
			found := -1
			for i, t := range n.targets {
				if t.name != name {
					continue
				}
				if found >= 0 && t.e.sql() != n.targets[found].e.sql() {
					s.az.fail(pgerr.AmbiguousColumn, ref.Location, "%s %q is ambiguous", clause, name)
				}
				if found < 0 {
					found = i
				}
			}
			if found >= 0 {
				return found, n.targets[found].e
			}
		}
	}
	if c := node.GetAConst(); c != nil {
		iv, ok := c.Val.(*pg_query.A_Const_Ival)
		if !ok {
			s.az.fail(pgerr.SyntaxError, c.Location, "non-integer constant in %s", clause)
		}
		pos := int(iv.Ival.Ival)
		if pos < 1 || pos > len(n.targets) {
			s.az.fail(pgerr.InvalidColumnReference, c.Location, "%s position %d is not in select list", clause, pos)
		}
		return pos - 1, n.targets[pos-1].e
	}
	if n.op != "" {
		return -1, nil
	}
	e := s.exprNoUnknown(node)
	sql := e.sql()
	for i, t := range n.targets {
		if t.e == e || t.e.kind != kConst && t.e.sql() == sql {
			return i, t.e
		}
	}
	return -1, e
}

func (s *scope) hasColumn(name string) bool {
	for _, it := range s.ns {
		if it.colsVisible && it.column(name) != nil {
			return true
		}
	}
	return false
}

// exprNoUnknown analyses an expression and makes an unknown literal text.
func (s *scope) exprNoUnknown(n *pg_query.Node) *expr {
	e := s.expr(n)
	if e.typ == pgtype.Unknown {
		e = s.coerceTo(e, pgtype.Text, -1, implicitCoercion, "")
	}
	return e
}

func (s *scope) groupClause(n *selNode, sel *pg_query.SelectStmt) {
	s.clause = "GROUP BY"
	defer func() { s.clause = "" }()
	n.groupDistinct = sel.GroupDistinct
	for _, g := range sel.GroupClause {
		n.groups = append(n.groups, s.groupItem(n, g, true))
	}
}

func (s *scope) groupItem(n *selNode, node *pg_query.Node, top bool) groupEntry {
	switch x := node.GetNode().(type) {
	case *pg_query.Node_GroupingSet:
		kinds := map[pg_query.GroupingSetKind]string{
			pg_query.GroupingSetKind_GROUPING_SET_EMPTY: "()", pg_query.GroupingSetKind_GROUPING_SET_ROLLUP: "ROLLUP",
			pg_query.GroupingSetKind_GROUPING_SET_CUBE: "CUBE", pg_query.GroupingSetKind_GROUPING_SET_SETS: "GROUPING SETS",
		}
		g := groupEntry{kind: kinds[x.GroupingSet.Kind]}
		if g.kind == "" {
			s.az.unsupported(x.GroupingSet.Location, "this grouping set")
		}
		for _, c := range x.GroupingSet.Content {
			g.sub = append(g.sub, s.groupItem(n, c, false))
		}
		return g
	case *pg_query.Node_RowExpr:
		if x.RowExpr.RowFormat == pg_query.CoercionForm_COERCE_IMPLICIT_CAST {
			g := groupEntry{kind: "row"}
			for _, a := range x.RowExpr.Args {
				g.sub = append(g.sub, s.groupItem(n, a, false))
			}
			return g
		}
	}
	i, e := s.clauseItem(n, node, "GROUP BY", false)
	if i >= 0 && e.typ == pgtype.Unknown {
		n.targets[i].e = s.coerceTo(e, pgtype.Text, -1, implicitCoercion, "")
		e = n.targets[i].e
	}
	if containsAgg(e, s) {
		s.az.fail(pgerr.GroupingError, e.loc, "aggregate functions are not allowed in GROUP BY")
	}
	if e.typ == pgtype.JSON {
		s.az.fail(pgerr.UndefinedFunction, e.loc, "could not identify an equality operator for type json")
	}
	return groupEntry{e: e}
}

func containsAgg(e *expr, s *scope) bool {
	found := false
	e.walk(func(x *expr) bool {
		if x.kind == kAgg && x.owner == s {
			found = true
		}
		return !found
	})
	return found
}

func (g groupEntry) write(b *strings.Builder) {
	switch g.kind {
	case "":
		writeNonInteger(b, g.e)
	case "()":
		b.WriteString("()")
	case "row":
		b.WriteString("(")
		writeGroups(b, g.sub)
		b.WriteString(")")
	default:
		b.WriteString(g.kind + " (")
		writeGroups(b, g.sub)
		b.WriteString(")")
	}
}

func writeGroups(b *strings.Builder, gs []groupEntry) {
	for i, g := range gs {
		if i > 0 {
			b.WriteString(", ")
		}
		g.write(b)
	}
}

// writeNonInteger keeps DuckDB from reading an integer constant as a position and a string constant as a name.
func writeNonInteger(b *strings.Builder, e *expr) {
	if e.kind == kConst {
		b.WriteString("CAST(")
		e.write(b)
		b.WriteString(" AS " + duckTypeOf(e) + ")")
		return
	}
	e.write(b)
}

func (g groupEntry) each(f func(*expr)) {
	if g.e != nil {
		f(g.e)
	}
	for _, x := range g.sub {
		x.each(f)
	}
}

func (s *scope) distinctClause(n *selNode, sel *pg_query.SelectStmt) {
	if len(sel.DistinctClause) == 0 {
		return
	}
	if len(sel.DistinctClause) == 1 && sel.DistinctClause[0].GetNode() == nil {
		n.distinct = true
		for _, k := range n.order {
			if k.target < 0 {
				s.az.fail(pgerr.InvalidColumnReference, k.e.loc, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
			}
		}
		for _, t := range n.targets {
			if t.e.typ == pgtype.JSON {
				s.az.fail(pgerr.UndefinedFunction, t.e.loc, "could not identify an equality operator for type json")
			}
		}
		return
	}
	s.clause = "DISTINCT ON"
	defer func() { s.clause = "" }()
	for _, d := range sel.DistinctClause {
		_, e := s.clauseItem(n, d, "DISTINCT ON", true)
		at := *e
		at.loc = nodeLocation(d)
		n.distinctOn = append(n.distinctOn, &at)
	}
	// ORDER BY must begin with the DISTINCT ON expressions.
	seen := map[string]bool{}
	for _, d := range n.distinctOn {
		seen[d.sql()] = true
	}
	matched := map[string]bool{}
	for _, k := range n.order {
		if len(matched) == len(seen) {
			break
		}
		sql := k.e.sql()
		if !seen[sql] {
			loc := n.distinctOn[0].loc
			for _, d := range n.distinctOn {
				if !matched[d.sql()] {
					loc = d.loc
					break
				}
			}
			s.az.fail(pgerr.InvalidColumnReference, loc, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
		}
		matched[sql] = true
	}
}

// checkGrouping is parseCheckAggregates: no column outside aggregates that is not grouped.
func (s *scope) checkGrouping(n *selNode) {
	keys := map[string]bool{}
	cols := map[*relEntry]map[int]bool{}
	sets := false
	for _, g := range n.groups {
		sets = sets || g.kind != "" && g.kind != "row"
		g.each(func(e *expr) {
			keys[e.sql()] = true
			if o := e; o.kind == kColumn && o.rel != nil {
				if cols[o.rel] == nil {
					cols[o.rel] = map[int]bool{}
				}
				cols[o.rel][o.col] = true
			}
		})
	}
	dependent := func(e *expr) bool {
		if sets || e.rel == nil || len(e.rel.use.Relation.Key) == 0 || e.rel.use.Relation.Kind == View {
			return false
		}
		for _, k := range e.rel.use.Relation.Key {
			if !cols[e.rel][k] {
				return false
			}
		}
		// DuckDB knows no functional dependency: group by the column as well.
		if sql := e.sql(); !keys[sql] {
			keys[sql] = true
			n.groups = append(n.groups, groupEntry{e: e})
		}
		return true
	}
	var check func(e *expr)
	check = func(e *expr) {
		if e == nil || keys[e.sql()] {
			return
		}
		switch e.kind {
		case kColumn:
			if e.owner == s && !dependent(e) {
				s.az.fail(pgerr.GroupingError, e.loc, "column %q must appear in the GROUP BY clause or be used in an aggregate function", e.name)
			}
			return
		case kAgg, kGrouping:
			if e.owner == s {
				return
			}
		case kSub:
			for _, o := range e.sub.scope.outer {
				if o.owner == s && !keys[o.sql()] && !dependent(o) {
					s.az.fail(pgerr.GroupingError, o.loc, "subquery uses ungrouped column %q from outer query", o.name)
				}
			}
		}
		for _, a := range e.args {
			check(a)
		}
	}
	for _, t := range n.targets {
		check(t.e)
	}
	check(n.having)
	for _, k := range n.order {
		check(k.e)
	}
	for _, d := range n.distinctOn {
		check(d)
	}
}
