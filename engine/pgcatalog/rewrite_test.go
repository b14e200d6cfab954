package pgcatalog

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A rewriter just good enough to run the recorded catalog queries on DuckDB: names of relations and functions, reg* casts,
// operators. The product's is engine/pgsql.

var duckFunctions = func() map[string]string {
	m := map[string]string{}
	for _, f := range Functions() {
		m[f.Name] = f.Name
	}
	delete(m, "current_user")
	delete(m, "session_user")
	m["current_setting"] = "setting_of"
	m["generate_subscripts"] = "vector_subscripts"
	return m
}

func rewriteForDuck(sql string, id func(*SystemRelation) string) (string, error) {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		return "", err
	}
	w := &rewriter{functions: duckFunctions(), id: id}
	w.walk(tree.ProtoReflect())
	return pg_query.Deparse(tree)
}

type rewriter struct {
	functions map[string]string
	id        func(*SystemRelation) string
}

func (w *rewriter) walk(m protoreflect.Message) {
	if n, ok := m.Interface().(*pg_query.Node); ok {
		w.node(n)
		m = n.ProtoReflect()
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList() && fd.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				w.walk(v.List().Get(i).Message())
			}
		case fd.Kind() == protoreflect.MessageKind:
			w.walk(v.Message())
		}
		return true
	})
}

// relation replaces a system relation by the function that reads its rows.
func (w *rewriter) relation(n *pg_query.Node, schema, name string, alias *pg_query.Alias) {
	if schema == "" {
		schema = "pg_catalog"
	}
	rel := LookupRelation(schema, name)
	if rel == nil {
		return
	}
	if alias == nil {
		alias = &pg_query.Alias{Aliasname: name}
	}
	read := call("", "skade_rel", pg_query.MakeAConstStrNode(w.id(rel), -1))
	n.Node = &pg_query.Node_RangeFunction{RangeFunction: &pg_query.RangeFunction{Alias: alias,
		Functions: []*pg_query.Node{pg_query.MakeListNode([]*pg_query.Node{read, {}})}}}
}

func text(n *pg_query.Node) string { return n.GetString_().GetSval() }

func last(names []*pg_query.Node) string {
	if len(names) == 0 {
		return ""
	}
	return text(names[len(names)-1])
}

func call(schema, name string, args ...*pg_query.Node) *pg_query.Node {
	names := []*pg_query.Node{pg_query.MakeStrNode(name)}
	if schema != "" {
		names = append([]*pg_query.Node{pg_query.MakeStrNode(schema)}, names...)
	}
	return pg_query.MakeFuncCallNode(names, args, -1)
}

func regOf(n *pg_query.Node) string {
	if tc := n.GetTypeCast(); tc != nil && len(tc.TypeName.ArrayBounds) == 0 {
		if name := last(tc.TypeName.Names); strings.HasPrefix(name, "reg") {
			return name
		}
	}
	return ""
}

// fromText says whether a cast reads text: a literal, a cast to text, pg_get_serial_sequence.
func fromText(n *pg_query.Node) bool {
	if c := n.GetAConst(); c != nil {
		return c.GetSval() != nil
	}
	if tc := n.GetTypeCast(); tc != nil {
		return last(tc.TypeName.Names) == "text"
	}
	return last(n.GetFuncCall().GetFuncname()) == "pg_get_serial_sequence"
}

func (w *rewriter) node(n *pg_query.Node) {
	switch x := n.Node.(type) {
	case *pg_query.Node_RangeVar:
		w.relation(n, x.RangeVar.Schemaname, x.RangeVar.Relname, x.RangeVar.Alias)
	case *pg_query.Node_RangeFunction:
		f := x.RangeFunction
		if name := last(f.Functions[0].GetList().GetItems()[0].GetFuncCall().GetFuncname()); LookupRelation("pg_catalog", name) != nil {
			w.relation(n, "pg_catalog", name, f.Alias)
		} else if f.Alias != nil && f.Alias.Colnames == nil {
			f.Alias.Colnames = []*pg_query.Node{pg_query.MakeStrNode(f.Alias.Aliasname)} // a scalar's alias is its column's name
		}
	case *pg_query.Node_CollateClause:
		n.Node = x.CollateClause.Arg.Node
		w.node(n)
	case *pg_query.Node_TypeCast:
		w.cast(n, x.TypeCast)
	case *pg_query.Node_FuncCall:
		name := last(x.FuncCall.Funcname)
		if duck := w.functions[name]; duck == "setting_of" {
			x.FuncCall.Funcname = []*pg_query.Node{pg_query.MakeStrNode(duck)}
		} else if duck != "" {
			x.FuncCall.Funcname = []*pg_query.Node{pg_query.MakeStrNode(Schema), pg_query.MakeStrNode(duck)}
			if name == "generate_subscripts" {
				x.FuncCall.Args = x.FuncCall.Args[:1]
			}
		} else {
			x.FuncCall.Funcname = []*pg_query.Node{pg_query.MakeStrNode(name)}
		}
	case *pg_query.Node_ColumnRef:
		if f := x.ColumnRef.Fields; len(f) == 3 && text(f[0]) == "pg_catalog" {
			x.ColumnRef.Fields = f[1:]
		}
	case *pg_query.Node_AExpr:
		e := x.AExpr
		op := last(e.Name)
		e.Name = []*pg_query.Node{pg_query.MakeStrNode(op)}
		switch {
		case e.Kind == pg_query.A_Expr_Kind_AEXPR_OP_ANY && op == "=":
			n.Node = call("", "list_contains", e.Rexpr, e.Lexpr).Node
			w.node(n)
		case op == "~" && e.Lexpr != nil:
			n.Node = call("", "regexp_matches", e.Lexpr, e.Rexpr).Node
			w.node(n)
		case op == "!~":
			n.Node = pg_query.MakeBoolExprNode(pg_query.BoolExprType_NOT_EXPR, []*pg_query.Node{call("", "regexp_matches", e.Lexpr, e.Rexpr)}, -1).Node
		}
	}
}

func (w *rewriter) cast(n *pg_query.Node, tc *pg_query.TypeCast) {
	name := last(tc.TypeName.Names)
	if reg := regOf(tc.Arg); reg != "" && (name == "text" || name == "name" || name == "varchar") {
		n.Node = call("", reg+"_out", tc.Arg).Node
		w.node(n)
		return
	}
	if reg := regOf(n); reg != "" {
		if fromText(tc.Arg) {
			n.Node = call("", reg+"_in", tc.Arg).Node
		} else {
			n.Node = tc.Arg.Node
		}
		w.node(n)
		return
	}
	if lit := tc.Arg.GetAConst().GetSval().GetSval(); len(tc.TypeName.ArrayBounds) > 0 && strings.HasPrefix(lit, "{") {
		parts, _ := splitArray(lit)
		var elems []*pg_query.Node
		for _, p := range parts {
			elems = append(elems, pg_query.MakeAConstStrNode(*p, -1))
		}
		tc.Arg = &pg_query.Node{Node: &pg_query.Node_AArrayExpr{AArrayExpr: &pg_query.A_ArrayExpr{Elements: elems}}}
	}
	types := map[string]string{"oid": "int8", "name": "text", "char": "text", "int2": "int2"}
	if to := types[name]; to != "" {
		name = to
	}
	tc.TypeName.Names = []*pg_query.Node{pg_query.MakeStrNode(name)}
}
