package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// lookupJoin is lookup('t', x) whose key comes from other items of FROM or from an outer query, as the subquery that it means: the rows of t whose key
// is x, joined by DuckDB rather than looked up one by one. nil for another call. The table has a key of one column.
//
//	SELECT k.* FROM (SELECT x) AS x(key), t AS k WHERE k.key = x.key
//
// x stands in a subquery of its own, where t's columns are out of sight.
func (s *scope) lookupJoin(f *pg_query.FuncCall, alias *pg_query.Alias) *pg_query.RangeSubselect {
	names := stringList(f.Funcname)
	if names[len(names)-1] != "lookup" || len(names) > 1 && names[0] != "skade" || len(f.Args) < 2 {
		return nil
	}
	args := map[string]*pg_query.Node{}
	for i, a := range f.Args {
		if n := a.GetNamedArgExpr(); n != nil {
			args[n.Name] = n.Arg
		} else if i < len(lookupArgs) {
			args[lookupArgs[i]] = a
		}
	}
	tbl, key := nameConst(args["tbl"]).GetSval(), args["key"]
	if tbl == nil || key == nil || !mentionsColumn(key) || len(f.Args) > len(args) {
		return nil
	}
	schema, name, ok := splitName(tbl.Sval)
	if !ok {
		return nil
	}
	rel, err := s.az.r.ResolveRelation(schema, name)
	s.az.check(err, f.Location)
	switch {
	case rel == nil:
		s.az.fail(pgerr.UndefinedTable, f.Location, "relation %q does not exist", tbl.Sval)
	case rel.Kind != Table:
		s.az.fail(pgerr.WrongObjectType, f.Location, "%q is not a table", rel.Name)
	case args["key_columns"] != nil:
		s.az.unsupported(f.Location, "key_columns of lookup over columns of another table")
	case args["strict"] != nil:
		s.az.unsupported(f.Location, "strict of lookup over columns of another table")
	case len(rel.Key) == 0:
		e := s.az.errorAt(pgerr.InvalidColumnReference, f.Location, "table has no identifier fields")
		e.Hint = "Join the table by the columns that you want to compare."
		panic(e)
	case len(rel.Key) > 1:
		e := s.az.errorAt(pgerr.FeatureNotSupported, f.Location, "lookup of a key of several columns over columns of another table is not supported")
		e.Hint = "Join the table by its key's columns."
		panic(e)
	}
	from := &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: &pg_query.RangeVar{
		Schemaname: rel.Schema, Relname: rel.Name, Inh: true, Relpersistence: "p", Alias: &pg_query.Alias{Aliasname: "k"}, Location: f.Location}}}
	if at := args["as_of"]; at != nil && !at.GetAConst().GetIsnull() {
		from = &pg_query.Node{Node: &pg_query.Node_RangeFunction{RangeFunction: &pg_query.RangeFunction{Alias: &pg_query.Alias{Aliasname: "k"},
			Functions: []*pg_query.Node{listNode(callNode([]string{"skade", "table_at"}, f.Location, args["tbl"], at), &pg_query.Node{})}}}}
	}
	x := &pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Alias: &pg_query.Alias{Aliasname: "x"},
		Subquery: selectNode([]*pg_query.Node{targetNode("key", key)}, nil, nil)}}}
	same := &pg_query.Node{Node: &pg_query.Node_AExpr{AExpr: &pg_query.A_Expr{Kind: pg_query.A_Expr_Kind_AEXPR_OP, Name: []*pg_query.Node{nameNode("=")},
		Lexpr: columnNode(f.Location, nameNode("k"), nameNode(rel.Columns[rel.Key[0]].Name)), Rexpr: columnNode(f.Location, nameNode("x"), nameNode("key")), Location: f.Location}}}
	star := columnNode(f.Location, nameNode("k"), &pg_query.Node{Node: &pg_query.Node_AStar{AStar: &pg_query.A_Star{}}})
	if alias == nil {
		alias = &pg_query.Alias{Aliasname: "lookup"}
	}
	return &pg_query.RangeSubselect{Lateral: true, Alias: alias, Subquery: selectNode([]*pg_query.Node{targetNode("", star)}, []*pg_query.Node{x, from}, same)}
}

// nameConst is a table's name as a literal: 't' or 't'::regclass.
func nameConst(n *pg_query.Node) *pg_query.A_Const {
	if cast := n.GetTypeCast(); cast != nil {
		if t := stringList(cast.TypeName.GetNames()); len(t) > 0 && t[len(t)-1] == "regclass" {
			n = cast.Arg
		}
	}
	return n.GetAConst()
}

// lookupArgs are the arguments of lookup in their order.
var lookupArgs = []string{"tbl", "key", "as_of", "key_columns", "strict"}

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

func selectNode(targets, from []*pg_query.Node, where *pg_query.Node) *pg_query.Node {
	return &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: &pg_query.SelectStmt{TargetList: targets, FromClause: from, WhereClause: where,
		LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}}}
}
