package pgsql

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// shownExpr is an expression as PostgreSQL's ruleutils.c prints it: full with every parenthesis, pretty with those that pretty printing keeps.
type shownExpr struct {
	full, pretty string
	typ          uint32
	// unknown is a string literal that has no type yet.
	unknown bool
	lit     string
	// op is the operator's name, or AND, OR, NOT, a test or ANY; "" for what never needs parentheses.
	op     string
	binary bool
}

// notShown stops the printing of an expression that has a part whose printed form is not known here.
type notShown struct{}

// ShownExpr prints an expression over rel's columns. want is the type that an untyped literal takes, 0 for none. ok is false when the expression holds
// something whose printed form is not known: its own text is then all there is to show.
func ShownExpr(rel *Relation, text string, want uint32) (full, pretty string, ok bool) {
	defer func() {
		if recover() != nil { // notShown, or an error of the analysis, which whoever uses the expression meets
			full, pretty, ok = "", "", false
		}
	}()
	az := newAnalyzer(&source{}, nil, nil)
	az.noParams = true
	d := &shower{s: az.columnScope(rel, az.plainColumns(rel))}
	az.inForeign(text, "expression", func(n foreign) {
		x := d.show(n.node)
		if x.unknown && want != 0 {
			x = d.literal(x.lit, want)
		}
		full, pretty, ok = x.full, x.pretty, true
	})
	return full, pretty, ok
}

type shower struct{ s *scope }

func (d *shower) give(text string, typ uint32) shownExpr {
	return shownExpr{full: text, pretty: text, typ: typ}
}

// show prints one node.
func (d *shower) show(n *pg_query.Node) shownExpr {
	switch x := n.GetNode().(type) {
	case *pg_query.Node_ColumnRef:
		e := d.s.columnRef(x.ColumnRef)
		if e.kind != kColumn {
			panic(notShown{})
		}
		return d.give(QuoteIdent(x.ColumnRef.Fields[len(x.ColumnRef.Fields)-1].GetString_().GetSval()), e.typ)
	case *pg_query.Node_AConst:
		return d.constant(x.AConst)
	case *pg_query.Node_AExpr:
		return d.aExpr(x.AExpr)
	case *pg_query.Node_BoolExpr:
		return d.boolExpr(x.BoolExpr)
	case *pg_query.Node_FuncCall:
		return d.call(x.FuncCall)
	case *pg_query.Node_TypeCast:
		return d.typeCast(x.TypeCast)
	case *pg_query.Node_NullTest:
		word := " IS NULL"
		if x.NullTest.Nulltesttype == pg_query.NullTestType_IS_NOT_NULL {
			word = " IS NOT NULL"
		}
		return d.suffix(d.show(x.NullTest.Arg), word)
	case *pg_query.Node_BooleanTest:
		words := strings.Split(strings.TrimPrefix(x.BooleanTest.Booltesttype.String(), "IS_"), "_")
		return d.suffix(d.show(x.BooleanTest.Arg), " IS "+strings.Join(words, " "))
	case *pg_query.Node_CoalesceExpr:
		return d.list("COALESCE(", d.common(d.all(x.CoalesceExpr.Args)), ")")
	}
	panic(notShown{})
}

func (d *shower) all(ns []*pg_query.Node) []shownExpr {
	var out []shownExpr
	for _, n := range ns {
		out = append(out, d.show(n))
	}
	return out
}

// common casts expressions to their common type.
func (d *shower) common(xs []shownExpr) []shownExpr {
	es := make([]*expr, len(xs))
	for i, x := range xs {
		es[i] = &expr{kind: kColumn, typ: x.typ, mod: -1}
	}
	typ := d.s.commonTypeText(es, "")
	out := make([]shownExpr, len(xs))
	for i, x := range xs {
		out[i] = d.cast(x, typ)
	}
	return out
}

func (d *shower) list(open string, xs []shownExpr, end string) shownExpr {
	var full, pretty []string
	typ := uint32(0)
	for _, x := range xs {
		full, pretty, typ = append(full, x.full), append(pretty, x.pretty), x.typ
	}
	return shownExpr{full: open + strings.Join(full, ", ") + end, pretty: open + strings.Join(pretty, ", ") + end, typ: typ}
}

func (d *shower) constant(c *pg_query.A_Const) shownExpr {
	e := d.s.aConst(c)
	if e.kind != kConst || e.null {
		panic(notShown{})
	}
	if e.typ == pgtype.Unknown {
		return shownExpr{unknown: true, lit: e.lit, typ: pgtype.Unknown}
	}
	return d.literal(e.lit, e.typ)
}

// literal is get_const_expr.
func (d *shower) literal(lit string, typ uint32) shownExpr {
	plain := strings.Trim(lit, "0123456789") == ""
	switch {
	case typ == pgtype.Int4 && plain, typ == pgtype.Bool && (lit == "true" || lit == "false"):
		return d.give(lit, typ)
	case typ == pgtype.Bool:
		return d.give(map[byte]string{'t': "true", 'f': "false"}[(lit + " ")[0]|0x20], typ)
	case typ == pgtype.Numeric && strings.Count(lit, ".") == 1 && strings.Trim(lit, "0123456789.") == "":
		return d.give(lit, typ)
	}
	return d.give("'"+strings.ReplaceAll(lit, "'", "''")+"'::"+typeName(typ), typ)
}

// cast is a coercion as it is printed.
func (d *shower) cast(x shownExpr, typ uint32) shownExpr {
	switch {
	case x.unknown:
		return d.literal(x.lit, typ)
	case x.typ == typ || typ == pgtype.Any || isPolymorphic(typ):
		return x
	}
	return d.castText(x, typeName(typ), typ)
}

func (d *shower) castText(x shownExpr, name string, typ uint32) shownExpr {
	pretty := x.pretty
	if x.op != "" {
		pretty = "(" + pretty + ")"
	}
	return shownExpr{full: "(" + x.full + ")::" + name, pretty: pretty + "::" + name, typ: typ}
}

func (d *shower) typeCast(t *pg_query.TypeCast) shownExpr {
	typ, mod := d.s.az.typeName(t.TypeName)
	x := d.show(t.Arg)
	switch {
	case x.unknown && mod < 0:
		return d.literal(x.lit, typ)
	case x.unknown:
		panic(notShown{})
	case x.typ == typ && mod < 0:
		return x
	}
	return d.castText(x, pgtype.Format(typ, mod), typ)
}

// suffix is IS NULL and its kin.
func (d *shower) suffix(x shownExpr, word string) shownExpr {
	pretty := x.pretty
	if x.op != "" {
		pretty = "(" + pretty + ")"
	}
	return shownExpr{full: "(" + x.full + word + ")", pretty: pretty + word, typ: pgtype.Bool, op: "IS"}
}

// operator is get_oper_expr.
func (d *shower) operator(name string, l, r shownExpr) shownExpr {
	op, _ := selectOperator(name, l.typ, r.typ)
	if op == nil || isPolymorphic(op.left) || isPolymorphic(op.right) {
		panic(notShown{})
	}
	l, r = d.cast(l, op.left), d.cast(r, op.right)
	return shownExpr{full: "(" + l.full + " " + name + " " + r.full + ")", pretty: d.operand(name, l, true) + " " + name + " " + d.operand(name, r, false),
		typ: op.result, op: name, binary: true}
}

// operand is isSimpleNode for an operand: (a - b) - c and a + b * c lose their parentheses.
func (d *shower) operand(parent string, x shownExpr, left bool) string {
	level := func(op string) int {
		switch op {
		case "+", "-":
			return 1
		case "*", "/", "%":
			return 2
		}
		return 0
	}
	p, c := level(parent), level(x.op)
	if x.op == "" || x.binary && p > 0 && c > 0 && (c > p || c == p && left) {
		return x.pretty
	}
	return "(" + x.pretty + ")"
}

func (d *shower) aExpr(a *pg_query.A_Expr) shownExpr {
	name := d.s.opName(a.Name, a.Location)
	switch a.Kind {
	case pg_query.A_Expr_Kind_AEXPR_OP, pg_query.A_Expr_Kind_AEXPR_LIKE, pg_query.A_Expr_Kind_AEXPR_ILIKE:
		if a.Lexpr.GetNode() == nil {
			x := d.show(a.Rexpr)
			if x.unknown || x.op != "" {
				panic(notShown{})
			}
			return shownExpr{full: "(" + name + " " + x.full + ")", pretty: name + " " + x.pretty, typ: x.typ, op: name}
		}
		return d.operator(name, d.show(a.Lexpr), d.show(a.Rexpr))
	case pg_query.A_Expr_Kind_AEXPR_DISTINCT:
		l, r := d.show(a.Lexpr), d.show(a.Rexpr)
		x := d.operator("=", l, r)
		x.full, x.pretty, x.op = strings.Replace(x.full, " = ", " IS DISTINCT FROM ", 1), strings.Replace(x.pretty, " = ", " IS DISTINCT FROM ", 1), "IS"
		return x
	case pg_query.A_Expr_Kind_AEXPR_BETWEEN, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		bounds := a.Rexpr.GetList().GetItems()
		x := d.show(a.Lexpr)
		if a.Kind == pg_query.A_Expr_Kind_AEXPR_BETWEEN {
			return d.logic("AND", []shownExpr{d.operator(">=", x, d.show(bounds[0])), d.operator("<=", x, d.show(bounds[1]))})
		}
		return d.logic("OR", []shownExpr{d.operator("<", x, d.show(bounds[0])), d.operator(">", x, d.show(bounds[1]))})
	case pg_query.A_Expr_Kind_AEXPR_IN:
		return d.in(name, d.show(a.Lexpr), a.Rexpr.GetList().GetItems())
	}
	panic(notShown{})
}

// in is IN (…) over constants: = ANY (ARRAY[…]).
func (d *shower) in(name string, l shownExpr, items []*pg_query.Node) shownExpr {
	if len(items) == 1 {
		return d.operator(name, l, d.show(items[0]))
	}
	if slices.ContainsFunc(items, func(n *pg_query.Node) bool { return n.GetAConst() == nil }) {
		panic(notShown{})
	}
	all := d.common(append([]shownExpr{l}, d.all(items)...))
	array := d.list("ARRAY[", all[1:], "]")
	op, _ := selectOperator(name, l.typ, array.typ)
	if op == nil {
		panic(notShown{})
	}
	l = d.cast(l, op.left)
	if elem := array.typ; elem != op.right {
		array = d.castText(array, typeName(op.right)+"[]", op.right)
		array.full = "(" + array.full + ")"
	}
	word := " ANY ("
	if name == "<>" {
		word = " ALL ("
	}
	return shownExpr{full: "(" + l.full + " " + name + word + array.full + "))", pretty: d.operand(name, l, true) + " " + name + word + array.pretty + ")", typ: pgtype.Bool, op: "ANY"}
}

func (d *shower) boolExpr(b *pg_query.BoolExpr) shownExpr {
	switch b.Boolop {
	case pg_query.BoolExprType_AND_EXPR:
		return d.logic("AND", d.all(b.Args))
	case pg_query.BoolExprType_OR_EXPR:
		return d.logic("OR", d.all(b.Args))
	}
	x := d.show(b.Args[0])
	pretty := x.pretty
	if x.op == "AND" || x.op == "OR" || x.op == "NOT" || x.op == "ANY" {
		pretty = "(" + pretty + ")"
	}
	return shownExpr{full: "(NOT " + x.full + ")", pretty: "NOT " + pretty, typ: pgtype.Bool, op: "NOT"}
}

// logic is AND and OR.
func (d *shower) logic(word string, xs []shownExpr) shownExpr {
	var full, pretty []string
	for _, x := range xs {
		x = d.cast(x, pgtype.Bool)
		full = append(full, x.full)
		if x.op == "OR" && word == "AND" || x.op == "ANY" {
			x.pretty = "(" + x.pretty + ")"
		}
		pretty = append(pretty, x.pretty)
	}
	return shownExpr{full: "(" + strings.Join(full, " "+word+" ") + ")", pretty: strings.Join(pretty, " "+word+" "), typ: pgtype.Bool, op: word}
}

func (d *shower) call(f *pg_query.FuncCall) shownExpr {
	names := stringList(f.Funcname)
	name := names[len(names)-1]
	if len(names) > 1 && names[0] != "pg_catalog" || f.AggStar || f.Over != nil || f.FuncVariadic || f.Funcformat != pg_query.CoercionForm_COERCE_EXPLICIT_CALL {
		panic(notShown{})
	}
	args := d.all(f.Args)
	given := funcArgs{}
	for _, x := range args {
		given.exprs, given.names, given.types = append(given.exprs, nil), append(given.names, ""), append(given.types, x.typ)
	}
	c := d.s.resolveFunction("", name, given, f)
	if c == nil || c.expanded || c.proc.setOf || c.proc.kind != 'f' {
		panic(notShown{})
	}
	for i := range args {
		if args[i].unknown && (isPolymorphic(c.args[i]) || c.args[i] == pgtype.Any) {
			panic(notShown{})
		}
		args[i] = d.cast(args[i], c.args[i])
	}
	out := d.list(QuoteIdent(name)+"(", args, ")")
	out.typ = c.proc.ret
	if isPolymorphic(out.typ) {
		panic(notShown{})
	}
	return out
}
