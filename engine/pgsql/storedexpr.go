package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// StoredExpr is an expression of a table's definition as it is stored: the sequences in it are named with their schema, as regclass.
func StoredExpr(_ *Relation, text string, r Resolver) (out string, err error) {
	az := newAnalyzer(&source{}, r, nil)
	defer az.rescue(&err)
	az.inForeign(text, "expression", func(n foreign) {
		az.qualifySequences(n.node)
		out = az.deparse(n.node)
	})
	return out, nil
}

// sequenceFunctions take a sequence's name as their first argument.
var sequenceFunctions = map[string]bool{"nextval": true, "currval": true, "setval": true}

// qualifySequences rewrites nextval('s') to nextval('schema.s'::regclass).
func (az *analyzer) qualifySequences(n *pg_query.Node) {
	eachCall(n, func(f *pg_query.FuncCall) {
		names := stringList(f.Funcname)
		if !sequenceFunctions[names[len(names)-1]] || len(f.Args) == 0 {
			return
		}
		arg := f.Args[0]
		c := arg.GetAConst()
		if cast := arg.GetTypeCast(); cast != nil {
			if t := stringList(cast.TypeName.GetNames()); t[len(t)-1] != "regclass" {
				return
			}
			c = cast.Arg.GetAConst()
		}
		if c.GetSval() == nil {
			return
		}
		schema, name, ok := splitName(c.GetSval().Sval)
		if !ok {
			return
		}
		rel, err := az.r.ResolveRelation(schema, name)
		if err != nil || rel == nil {
			return
		}
		lit := &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Val: &pg_query.A_Const_Sval{Sval: &pg_query.String{Sval: QuoteIdent(rel.Schema) + "." + QuoteIdent(rel.Name)}}}}}
		typ := &pg_query.TypeName{Names: []*pg_query.Node{{Node: &pg_query.Node_String_{String_: &pg_query.String{Sval: "regclass"}}}}, Typemod: -1}
		f.Args[0] = &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{Arg: lit, TypeName: typ}}}
	})
}

// eachCall visits the function calls in an expression.
func eachCall(n *pg_query.Node, visit func(*pg_query.FuncCall)) {
	all := func(ns ...*pg_query.Node) {
		for _, x := range ns {
			if x.GetNode() != nil {
				eachCall(x, visit)
			}
		}
	}
	switch x := n.GetNode().(type) {
	case *pg_query.Node_FuncCall:
		visit(x.FuncCall)
		all(x.FuncCall.Args...)
	case *pg_query.Node_AExpr:
		all(x.AExpr.Lexpr, x.AExpr.Rexpr)
	case *pg_query.Node_BoolExpr:
		all(x.BoolExpr.Args...)
	case *pg_query.Node_TypeCast:
		all(x.TypeCast.Arg)
	case *pg_query.Node_NullTest:
		all(x.NullTest.Arg)
	case *pg_query.Node_BooleanTest:
		all(x.BooleanTest.Arg)
	case *pg_query.Node_CoalesceExpr:
		all(x.CoalesceExpr.Args...)
	case *pg_query.Node_MinMaxExpr:
		all(x.MinMaxExpr.Args...)
	case *pg_query.Node_List:
		all(x.List.Items...)
	case *pg_query.Node_AArrayExpr:
		all(x.AArrayExpr.Elements...)
	case *pg_query.Node_RowExpr:
		all(x.RowExpr.Args...)
	case *pg_query.Node_CollateClause:
		all(x.CollateClause.Arg)
	case *pg_query.Node_AIndirection:
		all(x.AIndirection.Arg)
	case *pg_query.Node_CaseExpr:
		all(x.CaseExpr.Arg, x.CaseExpr.Defresult)
		for _, w := range x.CaseExpr.Args {
			all(w.GetCaseWhen().GetExpr(), w.GetCaseWhen().GetResult())
		}
	}
}

// IsOperator reports an expression that PostgreSQL prints in parentheses: an operator, AND, OR, IS NULL …
func IsOperator(text string) bool {
	n := exprNode(text)
	switch x := n.GetNode().(type) {
	case *pg_query.Node_AExpr, *pg_query.Node_BoolExpr, *pg_query.Node_NullTest, *pg_query.Node_BooleanTest:
		return true
	case *pg_query.Node_TypeCast:
		// (a + b)::text has them inside already.
		return x.TypeCast.Arg.GetColumnRef() != nil
	}
	return false
}

// IsNullLiteral reports NULL, cast to any type or to none: as a default it is no default.
func IsNullLiteral(text string) bool {
	n := exprNode(text)
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n.GetAConst().GetIsnull()
}

// exprNode parses an expression; nil when it is none.
func exprNode(text string) *pg_query.Node {
	stmts, err := Parse("SELECT " + text)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		return nil
	}
	targets := stmts[0].Node.GetSelectStmt().GetTargetList()
	if len(targets) != 1 {
		return nil
	}
	return targets[0].GetResTarget().GetVal()
}

// ExprColumns are the names of the columns that an expression mentions, in order.
func ExprColumns(text string) []string {
	var out []string
	n := exprNode(text)
	if n == nil {
		return nil
	}
	walkMessages(n.ProtoReflect(), func(m *pg_query.ColumnRef) {
		if f := m.Fields[len(m.Fields)-1].GetString_(); f != nil {
			out = append(out, f.Sval)
		}
	})
	return out
}

// walkMessages visits every column reference below a node.
func walkMessages(m protoreflect.Message, visit func(*pg_query.ColumnRef)) {
	if c, ok := m.Interface().(*pg_query.ColumnRef); ok {
		visit(c)
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Message() != nil:
			for i := range v.List().Len() {
				walkMessages(v.List().Get(i).Message(), visit)
			}
		case fd.Message() != nil && !fd.IsMap():
			walkMessages(v.Message(), visit)
		}
		return true
	})
}
