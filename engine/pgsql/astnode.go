package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// What the rewrites of this package build of PostgreSQL's parse tree.

// nameConst is a table's name as a literal: 't' or 't'::regclass.
func nameConst(n *pg_query.Node) *pg_query.A_Const {
	if cast := n.GetTypeCast(); cast != nil {
		if t := stringList(cast.TypeName.GetNames()); len(t) > 0 && t[len(t)-1] == "regclass" {
			n = cast.Arg
		}
	}
	return n.GetAConst()
}

// mentionsColumn reports a column below a node.
func mentionsColumn(n *pg_query.Node) bool {
	found := false
	walkMessages(n.ProtoReflect(), func(*pg_query.ColumnRef) { found = true })
	return found
}

func nameNode(s string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_String_{String_: &pg_query.String{Sval: s}}}
}

func listNode(items ...*pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_List{List: &pg_query.List{Items: items}}}
}

func columnNode(loc int32, fields ...*pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: &pg_query.ColumnRef{Fields: fields, Location: loc}}}
}

func intNode(n int) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Val: &pg_query.A_Const_Ival{Ival: &pg_query.Integer{Ival: int32(n)}}, Location: -1}}}
}

func andNode(conds []*pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_BoolExpr{BoolExpr: &pg_query.BoolExpr{Boolop: pg_query.BoolExprType_AND_EXPR, Args: conds, Location: -1}}}
}

func targetNode(name string, val *pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_ResTarget{ResTarget: &pg_query.ResTarget{Name: name, Val: val, Location: -1}}}
}

func callNode(names []string, loc int32, args ...*pg_query.Node) *pg_query.Node {
	fn := &pg_query.FuncCall{Args: args, Funcformat: pg_query.CoercionForm_COERCE_EXPLICIT_CALL, Location: loc}
	for _, n := range names {
		fn.Funcname = append(fn.Funcname, nameNode(n))
	}
	return &pg_query.Node{Node: &pg_query.Node_FuncCall{FuncCall: fn}}
}

func compareNode(kind pg_query.A_Expr_Kind, l, r *pg_query.Node, loc int32) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_AExpr{AExpr: &pg_query.A_Expr{Kind: kind, Name: []*pg_query.Node{nameNode("=")}, Lexpr: l, Rexpr: r, Location: loc}}}
}

func rangeOf(name, alias string) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: &pg_query.RangeVar{Relname: name, Inh: true, Relpersistence: "p", Alias: &pg_query.Alias{Aliasname: alias}, Location: -1}}}
}

func selectNode(targets, from []*pg_query.Node, where *pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: &pg_query.SelectStmt{TargetList: targets, FromClause: from, WhereClause: where,
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}}}
}

func unionAll(l, r *pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: &pg_query.SelectStmt{Op: pg_query.SetOperation_SETOP_UNION, All: true,
		Larg: l.GetSelectStmt(), Rarg: r.GetSelectStmt(), LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT}}}
}
