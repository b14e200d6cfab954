package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// targetList is transformTargetList: stars expanded, names chosen.
func (s *scope) targetList(nodes []*pg_query.Node) []*target {
	var out []*target
	for _, n := range nodes {
		rt := n.GetResTarget()
		if ref := rt.Val.GetColumnRef(); ref != nil && ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			out = append(out, s.expandStarRef(ref)...)
			continue
		}
		if ind := rt.Val.GetAIndirection(); ind != nil && ind.Indirection[len(ind.Indirection)-1].GetAStar() != nil {
			out = append(out, s.expandRowStar(ind)...)
			continue
		}
		e := s.expr(rt.Val)
		t := &target{e: e, name: rt.Name}
		if t.name == "" {
			t.name = columnName(rt.Val)
		}
		s.origin(t)
		out = append(out, t)
	}
	if len(out) > maxTargets {
		panic(pgerr.Newf(pgerr.TooManyColumns, "target lists can have at most %d entries", maxTargets))
	}
	return out
}

// maxTargets is PostgreSQL's MaxTupleAttributeNumber.
const maxTargets = 1664

// origin finds the table column that a target passes on.
func (s *scope) origin(t *target) {
	if t.e.kind != kColumn {
		return
	}
	// A cast that DuckDB need not do (varchar to text) leaves a column, but not the table's.
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for _, it := range lvl.ns {
			for _, c := range it.cols {
				if c.e.kind == kColumn && c.e.rel == t.e.rel && c.e.col == t.e.col && c.e.ident == t.e.ident && c.e.typ == t.e.typ {
					t.table, t.attnum = c.table, c.attnum
					return
				}
			}
		}
	}
}

func (s *scope) expandStarRef(ref *pg_query.ColumnRef) []*target {
	if len(ref.Fields) == 1 {
		return s.expandStar(ref.Location)
	}
	names := stringList(ref.Fields[:len(ref.Fields)-1])
	schema, name := "", names[len(names)-1]
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	it, lvl := s.item(schema, name, ref.Location)
	if it == nil {
		s.missingItem(schema, name, ref.Location)
	}
	s.az.noteStar(ref.Location, it)
	return s.expandItem(it, lvl, ref.Location)
}

// expandRowStar is (row).*.
func (s *scope) expandRowStar(ind *pg_query.A_Indirection) []*target {
	arg := &pg_query.Node{Node: &pg_query.Node_AIndirection{AIndirection: &pg_query.A_Indirection{Arg: ind.Arg, Indirection: ind.Indirection[:len(ind.Indirection)-1]}}}
	if len(ind.Indirection) == 1 {
		arg = ind.Arg
	}
	e := s.expr(arg)
	fields := rowFields(e)
	if fields == nil {
		s.az.fail(pgerr.WrongObjectType, e.loc, "type %s is not composite", typeName(e.typ))
	}
	var out []*target
	for i, f := range fields {
		out = append(out, &target{e: fieldOf(e, i, f), name: f.name})
	}
	return out
}

// columnName is FigureColname.
func columnName(n *pg_query.Node) string {
	name, _ := figureName(n)
	if name == "" {
		return "?column?"
	}
	return name
}

func figureName(n *pg_query.Node) (string, int) {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		for i := len(x.ColumnRef.Fields) - 1; i >= 0; i-- {
			if str := x.ColumnRef.Fields[i].GetString_(); str != nil {
				return str.Sval, 2
			}
		}
	case *pg_query.Node_AIndirection:
		for i := len(x.AIndirection.Indirection) - 1; i >= 0; i-- {
			if str := x.AIndirection.Indirection[i].GetString_(); str != nil {
				return str.Sval, 2
			}
		}
		return figureName(x.AIndirection.Arg)
	case *pg_query.Node_FuncCall:
		return x.FuncCall.Funcname[len(x.FuncCall.Funcname)-1].GetString_().GetSval(), 2
	case *pg_query.Node_AExpr:
		if x.AExpr.Kind == pg_query.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *pg_query.Node_TypeCast:
		if name, strength := figureName(x.TypeCast.Arg); strength > 1 {
			return name, strength
		}
		if names := x.TypeCast.TypeName.GetNames(); len(names) > 0 {
			return names[len(names)-1].GetString_().GetSval(), 1
		}
	case *pg_query.Node_CollateClause:
		return figureName(x.CollateClause.Arg)
	case *pg_query.Node_GroupingFunc:
		return "grouping", 2
	case *pg_query.Node_SubLink:
		switch x.SubLink.SubLinkType {
		case pg_query.SubLinkType_EXISTS_SUBLINK:
			return "exists", 2
		case pg_query.SubLinkType_ARRAY_SUBLINK:
			return "array", 2
		case pg_query.SubLinkType_EXPR_SUBLINK:
			return subselectName(x.SubLink.Subselect.GetSelectStmt())
		}
	case *pg_query.Node_CaseExpr:
		if name, strength := figureName(x.CaseExpr.Defresult); strength > 0 && x.CaseExpr.Defresult != nil {
			if strength > 1 {
				return name, strength
			}
		}
		return "case", 1
	case *pg_query.Node_AArrayExpr:
		return "array", 2
	case *pg_query.Node_RowExpr:
		return "row", 2
	case *pg_query.Node_CoalesceExpr:
		return "coalesce", 2
	case *pg_query.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == pg_query.MinMaxOp_IS_LEAST {
			return "least", 2
		}
		return "greatest", 2
	case *pg_query.Node_SqlvalueFunction:
		return valueFunctionName(x.SqlvalueFunction.Op), 2
	}
	return "", 0
}

func valueFunctionName(op pg_query.SQLValueFunctionOp) string {
	name := strings.ToLower(strings.TrimPrefix(op.String(), "SVFOP_"))
	return strings.TrimSuffix(name, "_n")
}

// subselectName is the name of a scalar subquery: its only column's.
func subselectName(sel *pg_query.SelectStmt) (string, int) {
	for sel != nil && sel.Larg != nil {
		sel = sel.Larg
	}
	if sel == nil {
		return "", 0
	}
	if len(sel.TargetList) > 0 {
		rt := sel.TargetList[0].GetResTarget()
		if rt.GetName() != "" {
			return rt.Name, 2
		}
		return figureName(rt.GetVal())
	}
	if len(sel.ValuesLists) > 0 {
		return "column1", 2
	}
	return "", 0
}
