package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// aExpr is transformExprRecurse for A_Expr.
func (s *scope) aExpr(a *pg_query.A_Expr) *expr {
	switch a.Kind {
	case pg_query.A_Expr_Kind_AEXPR_OP:
		return s.plainOp(a)
	case pg_query.A_Expr_Kind_AEXPR_OP_ANY, pg_query.A_Expr_Kind_AEXPR_OP_ALL:
		return s.arrayOp(a)
	case pg_query.A_Expr_Kind_AEXPR_DISTINCT, pg_query.A_Expr_Kind_AEXPR_NOT_DISTINCT:
		return s.distinctOp(a)
	case pg_query.A_Expr_Kind_AEXPR_NULLIF:
		l, r := s.expr(a.Lexpr), s.expr(a.Rexpr)
		eq := s.operator("=", l, r, a.Location)
		e := call(eq.cmp.left.typ, "nullif($1, $2)", eq.cmp.left, eq.cmp.right)
		e.prec, e.scale, e.loose, e.mod = eq.cmp.left.prec, eq.cmp.left.scale, eq.cmp.left.loose, eq.cmp.left.mod
		e.loc = a.Location
		return s.sameDecimal(e)
	case pg_query.A_Expr_Kind_AEXPR_IN:
		return s.inList(a)
	case pg_query.A_Expr_Kind_AEXPR_LIKE, pg_query.A_Expr_Kind_AEXPR_ILIKE:
		return s.like(a)
	case pg_query.A_Expr_Kind_AEXPR_SIMILAR:
		return s.similar(a)
	case pg_query.A_Expr_Kind_AEXPR_BETWEEN, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN,
		pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM, pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN_SYM:
		return s.between(a)
	}
	s.az.unsupported(a.Location, "this operator")
	return nil
}

// opName checks OPERATOR(schema.name).
func (s *scope) opName(names []*pg_query.Node, loc int32) string {
	parts := stringList(names)
	if len(parts) == 2 && parts[0] != "pg_catalog" || len(parts) > 2 {
		s.az.fail(pgerr.UndefinedFunction, loc, "operator does not exist: %s", strings.Join(parts, "."))
	}
	return parts[len(parts)-1]
}

func (s *scope) plainOp(a *pg_query.A_Expr) *expr {
	name := s.opName(a.Name, a.Location)
	if a.Lexpr == nil {
		return s.prefixOp(name, s.expr(a.Rexpr), a.Location)
	}
	lr, rr := a.Lexpr.GetRowExpr(), a.Rexpr.GetRowExpr()
	if lr != nil && rr != nil {
		return s.rowCompare(name, s.rowExpr(lr), s.rowExpr(rr), a.Location)
	}
	if lr != nil {
		if sub := a.Rexpr.GetSubLink(); sub != nil && sub.SubLinkType == pg_query.SubLinkType_EXPR_SUBLINK {
			return s.rowSubCompare(name, s.rowExpr(lr), sub, a.Location)
		}
	}
	l, r := s.expr(a.Lexpr), s.expr(a.Rexpr)
	if l.kind == kRow && r.kind == kRow {
		return s.rowCompare(name, l, r, a.Location)
	}
	return s.operator(name, l, r, a.Location)
}

func (s *scope) prefixOp(name string, r *expr, loc int32) *expr {
	if r.kind == kConst && !r.null && (name == "-" || name == "+") && (r.typ == pgtype.Int4 || r.typ == pgtype.Int8 || r.typ == pgtype.Numeric) {
		if name == "+" {
			return r
		}
		if r.typ != pgtype.Numeric && strings.HasPrefix(r.lit, "-") {
			// - -5 and the like go the slow way.
		} else if !(strings.Trim(r.lit, "0.") == "") {
			c := *r
			c.loc = loc
			if strings.HasPrefix(c.lit, "-") {
				c.lit = c.lit[1:]
			} else {
				c.lit = "-" + c.lit
			}
			return &c
		}
	}
	op, amb := selectOperator(name, 0, r.typ)
	if op == nil {
		s.noOperator(name, nil, r, amb, loc)
	}
	arg := s.coerceArg(r, op.right)
	return s.emitPrefix(op, arg, loc)
}

func (s *scope) noOperator(name string, l, r *expr, ambiguous bool, loc int32) {
	sig := name + " " + typeNameNoMod(r.typ)
	if l != nil {
		sig = typeNameNoMod(l.typ) + " " + sig
	}
	var e *pgerr.Error
	if ambiguous {
		e = s.az.errorAt(pgerr.AmbiguousFunction, loc, "operator is not unique: %s", sig)
		e.Hint = "Could not choose a best candidate operator. You might need to add explicit type casts."
	} else {
		e = s.az.errorAt(pgerr.UndefinedFunction, loc, "operator does not exist: %s", sig)
		e.Hint = "No operator matches the given name and argument types. You might need to add explicit type casts."
		if l == nil {
			e.Hint = "No operator matches the given name and argument type. You might need to add an explicit type cast."
		}
	}
	panic(e)
}

// coerceArg coerces an operand to a declared type.
func (s *scope) coerceArg(e *expr, typ uint32) *expr {
	c, ok := s.coerce(e, typ, -1, implicitCoercion)
	if !ok {
		s.cannotCast(e, typ)
	}
	return c
}

// operator resolves a binary operator, coerces its operands and writes it.
func (s *scope) operator(name string, l, r *expr, loc int32) *expr {
	if l.kind == kRow && r.kind == kRow {
		return s.rowCompare(name, l, r, loc)
	}
	op, amb := selectOperator(name, l.typ, r.typ)
	if op == nil {
		s.noOperator(name, l, r, amb, loc)
	}
	lt, rt := op.left, op.right
	if isPolymorphic(lt) || isPolymorphic(rt) {
		args, _ := resolvePolymorphic([]uint32{lt, rt}, []uint32{l.typ, r.typ}, op.result)
		lt, rt = args[0], args[1]
		if l.typ == pgtype.Unknown && r.typ != pgtype.Unknown && lt == 0 {
			lt = r.typ
		}
		if lt == 0 || rt == 0 {
			s.az.fail(pgerr.IndeterminateDatatype, loc, "could not determine polymorphic type because input has type unknown")
		}
	}
	s.az.noteOperator(op)
	left, right := s.coerceArg(l, lt), s.coerceArg(r, rt)
	e := s.emitOperator(op, left, right, loc)
	e.loc = loc
	if e.typ == pgtype.Bool && e.cmp == nil {
		e.cmp = &comparison{op: name, left: left, right: right, rawLeft: l, rawRight: r}
	}
	return e
}

func (s *scope) distinctOp(a *pg_query.A_Expr) *expr {
	not := a.Kind == pg_query.A_Expr_Kind_AEXPR_NOT_DISTINCT
	lr, rr := a.Lexpr.GetRowExpr(), a.Rexpr.GetRowExpr()
	word := " IS DISTINCT FROM "
	if not {
		word = " IS NOT DISTINCT FROM "
	}
	one := func(l, r *expr) *expr {
		eq := s.operator("=", l, r, a.Location)
		e := call(pgtype.Bool, "($1"+word+"$2)", eq.cmp.left, eq.cmp.right)
		e.loc = a.Location
		return e
	}
	if lr != nil && rr != nil {
		l, r := s.rowExpr(lr), s.rowExpr(rr)
		s.sameLength(l, r, a.Location)
		var parts []*expr
		for i := range l.args {
			parts = append(parts, one(l.args[i], r.args[i]))
		}
		if not {
			return flat(" AND ", parts, a.Location)
		}
		return flat(" OR ", parts, a.Location)
	}
	l, r := s.expr(a.Lexpr), s.expr(a.Rexpr)
	if isNullLit(r) || isNullLit(l) {
		// x IS DISTINCT FROM NULL is IS NOT NULL.
		x := l
		if isNullLit(l) {
			x = r
		}
		if x.typ == pgtype.Unknown {
			x = s.coerceTo(x, pgtype.Text, -1, implicitCoercion, "")
		}
		return isNull(x, !not)
	}
	return one(l, r)
}

func isNullLit(e *expr) bool { return e.kind == kConst && e.null && e.typ == pgtype.Unknown }

// inList is transformAExprIn.
func (s *scope) inList(a *pg_query.A_Expr) *expr {
	neg := s.opName(a.Name, a.Location) == "<>"
	l := s.expr(a.Lexpr)
	var items []*expr
	for _, n := range a.Rexpr.GetList().GetItems() {
		items = append(items, s.expr(n))
	}
	if l.kind != kRow {
		all := append([]*expr{l}, items...)
		if typ, ok := commonOrNone(all); ok && typ != 0 {
			return s.inCommon(l, items, typ, neg, a.Location)
		}
	}
	// Row comparisons, or items that have no common type: OR of =, AND of <>.
	var parts []*expr
	for _, it := range items {
		if neg {
			parts = append(parts, s.operator("<>", l, it, a.Location))
		} else {
			parts = append(parts, s.operator("=", l, it, a.Location))
		}
	}
	if neg {
		return flat(" AND ", parts, a.Location)
	}
	return flat(" OR ", parts, a.Location)
}

func commonOrNone(es []*expr) (uint32, bool) {
	var types []uint32
	for _, e := range es {
		if e.kind == kRow {
			return 0, false
		}
		if e.typ != pgtype.Unknown {
			types = append(types, e.typ)
		}
	}
	if len(types) == 0 {
		return pgtype.Text, true
	}
	return commonTypeOf(types)
}

func (s *scope) inCommon(l *expr, items []*expr, typ uint32, neg bool, loc int32) *expr {
	// The scalar = array operator is resolved between the left type and the common type.
	lt, rt := typ, typ
	if op, _ := selectOperator("=", l.typ, typ); op != nil && !isPolymorphic(op.left) {
		lt, rt = op.left, op.right
	} else if op == nil {
		s.noOperator("=", l, &expr{typ: typ}, false, loc)
	}
	left := s.coerceArg(l, lt)
	args := []*expr{left}
	list := make([]*expr, len(items))
	for i, it := range items {
		list[i] = s.coerceArg(s.coerceCommon(it, typ, "IN"), rt)
		args = append(args, list[i])
	}
	word := " IN ("
	if neg {
		word = " NOT IN ("
	}
	e := &expr{kind: kCall, typ: pgtype.Bool, mod: -1, loc: loc, args: args, text: []string{"(", word}}
	for i := range items {
		if i == len(items)-1 {
			e.text = append(e.text, "))")
		} else {
			e.text = append(e.text, ", ")
		}
	}
	if !neg {
		e.cmp = &comparison{op: "in", left: left, list: list}
	}
	return e
}

func (s *scope) between(a *pg_query.A_Expr) *expr {
	bounds := a.Rexpr.GetList().GetItems()
	x := func() *expr { return s.expr(a.Lexpr) }
	lo, hi := func() *expr { return s.expr(bounds[0]) }, func() *expr { return s.expr(bounds[1]) }
	inside := func(lo, hi func() *expr) *expr {
		return flat(" AND ", []*expr{s.operator(">=", x(), lo(), a.Location), s.operator("<=", x(), hi(), a.Location)}, a.Location)
	}
	outside := func(lo, hi func() *expr) *expr {
		return flat(" OR ", []*expr{s.operator("<", x(), lo(), a.Location), s.operator(">", x(), hi(), a.Location)}, a.Location)
	}
	switch a.Kind {
	case pg_query.A_Expr_Kind_AEXPR_BETWEEN:
		return inside(lo, hi)
	case pg_query.A_Expr_Kind_AEXPR_NOT_BETWEEN:
		return outside(lo, hi)
	case pg_query.A_Expr_Kind_AEXPR_BETWEEN_SYM:
		return flat(" OR ", []*expr{inside(lo, hi), inside(hi, lo)}, a.Location)
	}
	return flat(" AND ", []*expr{outside(lo, hi), outside(hi, lo)}, a.Location)
}

// like writes LIKE and ILIKE. PostgreSQL's escape character is the backslash unless ESCAPE says otherwise; DuckDB's is none.
func (s *scope) like(a *pg_query.A_Expr) *expr {
	op := s.opName(a.Name, a.Location)
	l := s.expr(a.Lexpr)
	pattern, escape := a.Rexpr, (*expr)(nil)
	if f := a.Rexpr.GetFuncCall(); f != nil && f.Funcformat == pg_query.CoercionForm_COERCE_EXPLICIT_CALL && lastName(f.Funcname) == "like_escape" && len(f.Args) == 2 {
		pattern = f.Args[0]
		escape = s.coerceTo(s.expr(f.Args[1]), pgtype.Text, -1, implicitCoercion, "ESCAPE")
	}
	return s.likeExpr(op, l, s.expr(pattern), escape, a.Location)
}

func lastName(names []*pg_query.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

func (s *scope) likeExpr(op string, l, r, escape *expr, loc int32) *expr {
	res, amb := selectOperator(op, l.typ, r.typ)
	if res == nil {
		s.noOperator(op, l, r, amb, loc)
	}
	left, right := padded(s.coerceArg(l, res.left)), s.coerceArg(r, res.right)
	if left.typ == pgtype.Bytea {
		s.az.unsupported(loc, "LIKE on bytea")
	}
	word := map[string]string{"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}[op]
	if word == "" {
		s.az.unsupported(loc, "operator %s", op)
	}
	tmpl := "($1 " + word + " $2 ESCAPE '\\')"
	args := []*expr{left, right}
	switch {
	case escape != nil && escape.kind == kConst && !escape.null:
		if escape.lit == "" {
			tmpl = "($1 " + word + " $2)"
		} else {
			if len([]rune(escape.lit)) > 1 {
				e := pgerr.New(pgerr.InvalidEscapeSequence, "invalid escape string")
				e.Hint = "Escape string must be empty or one character."
				panic(e)
			}
			tmpl = "($1 " + word + " $2 ESCAPE $3)"
			args = append(args, escape)
		}
	case escape != nil:
		tmpl = "($1 " + word + " $2 ESCAPE $3)"
		args = append(args, escape)
	case right.kind == kConst && !strings.Contains(right.lit, "\\"):
		// DuckDB turns a constant pattern without escapes into prefix, suffix and contains.
		tmpl = "($1 " + word + " $2)"
	case right.kind == kConst && strings.HasSuffix(right.lit, "\\") && (len(right.lit)-len(strings.TrimRight(right.lit, "\\")))%2 == 1:
		s.az.fail(pgerr.InvalidEscapeSequence, -1, "LIKE pattern must not end with escape character")
	}
	e := call(pgtype.Bool, tmpl, args...)
	e.loc = loc
	return e
}

// similar writes SIMILAR TO: the pattern becomes a regular expression.
func (s *scope) similar(a *pg_query.A_Expr) *expr {
	neg := strings.HasPrefix(s.opName(a.Name, a.Location), "!")
	l := s.coerceTo(s.expr(a.Lexpr), pgtype.Text, -1, implicitCoercion, "SIMILAR TO")
	f := a.Rexpr.GetFuncCall()
	if f == nil || len(f.Args) == 0 {
		s.az.unsupported(a.Location, "this form of SIMILAR TO")
	}
	pattern := s.coerceTo(s.expr(f.Args[0]), pgtype.Text, -1, implicitCoercion, "SIMILAR TO")
	escape := "\\"
	if len(f.Args) == 2 {
		e := s.coerceTo(s.expr(f.Args[1]), pgtype.Text, -1, implicitCoercion, "ESCAPE")
		if e.kind != kConst || len([]rune(e.lit)) > 1 {
			s.az.unsupported(a.Location, "SIMILAR TO with this ESCAPE")
		}
		escape = e.lit
	}
	var re *expr
	if pattern.kind == kConst && !pattern.null {
		text, err := similarRegex(pattern.lit, escape)
		s.az.check(err, -1)
		re = constant(pgtype.Text, text, pattern.loc)
	} else {
		re = call(pgtype.Text, "skade_similar($1, $2)", pattern, constant(pgtype.Text, escape, -1))
	}
	tmpl := "regexp_matches($1, $2, 's')"
	if neg {
		tmpl = "(NOT " + tmpl + ")"
	}
	return call(pgtype.Bool, tmpl, l, re)
}

// arrayOp is x op ANY|ALL (array).
func (s *scope) arrayOp(a *pg_query.A_Expr) *expr {
	name := s.opName(a.Name, a.Location)
	all := a.Kind == pg_query.A_Expr_Kind_AEXPR_OP_ALL
	l, r := s.expr(a.Lexpr), s.expr(a.Rexpr)
	if list := r.listed; list != nil && l.kind != kRow && s.clause != "JOIN conditions" && (name == "=" && !all || name == "<>" && all) {
		// The rows are joined, where an array would be looked through for each row.
		kind := pg_query.SubLinkType_ANY_SUBLINK
		if all {
			kind = pg_query.SubLinkType_ALL_SUBLINK
		}
		return s.anySubLink(&pg_query.SubLink{SubLinkType: kind, OperName: a.Name, Location: a.Location}, l, list)
	}
	elem := uint32(pgtype.Unknown)
	if r.typ != pgtype.Unknown {
		if elem = arrayElem(r.typ); elem == 0 {
			s.az.fail(pgerr.WrongObjectType, a.Location, "op ANY/ALL (array) requires array on right side")
		}
	}
	op, amb := selectOperator(name, l.typ, elem)
	if op == nil {
		s.noOperator(name, l, &expr{typ: elem}, amb, a.Location)
	}
	if op.result != pgtype.Bool {
		s.az.fail(pgerr.WrongObjectType, a.Location, "op ANY/ALL (array) requires operator to yield boolean")
	}
	lt, rt := op.left, op.right
	if isPolymorphic(lt) || isPolymorphic(rt) {
		lt, rt = l.typ, elem
	}
	left := s.coerceArg(l, lt)
	arr := arrayType(rt)
	right := r
	if r.typ == pgtype.Unknown || arrayElem(r.typ) != rt {
		right = s.coerceArg(r, arr)
	}
	return s.emitArrayOp(name, op, left, right, rt, all, a.Location)
}

func (s *scope) emitArrayOp(name string, op *operRow, left, right *expr, elem uint32, all bool, loc int32) *expr {
	var e *expr
	switch {
	case name == "=" && !all && right.elems:
		items := right.leaves()
		if len(items) == 0 {
			return constant(pgtype.Bool, "false", loc)
		}
		e = s.inCommon(left, items, elem, false, loc)
	case name == "<>" && all && right.elems:
		items := right.leaves()
		if len(items) == 0 {
			return constant(pgtype.Bool, "true", loc)
		}
		e = s.inCommon(left, items, elem, true, loc)
	case name == "=" && !all && right.isConstantLike() && s.clause != "JOIN conditions":
		e = call(pgtype.Bool, "($1 IN (SELECT unnest($2)))", left, right)
		e.cmp = &comparison{op: "any", left: left, right: right}
	case name == "=" && !all && right.dims <= 1:
		e = call(pgtype.Bool, "skade_fn.any_eq($1, $2)", left, right)
	default:
		v := &expr{kind: kColumn, typ: elem, mod: -1, ident: lambdaVar, prec: right.prec, scale: right.scale, loose: right.loose}
		var inner *expr
		switch name {
		case "~~", "!~~", "~~*", "!~~*":
			inner = s.likeExpr(name, left, v, nil, loc)
		default:
			inner = s.emitOperator(op, left, v, loc)
		}
		f := "skade_fn.bool_any("
		if all {
			f = "skade_fn.bool_all("
		}
		e = call(pgtype.Bool, f+"list_transform($1, lambda v: $2))", right, inner)
	}
	e.loc = loc
	return e
}

// items are a list constructor's elements, behind the cast that gives it a type.
func (e *expr) items() []*expr {
	for len(e.args) == 1 && e.elems && e.args[0].elems && strings.HasPrefix(e.text[0], "CAST(") {
		e = e.args[0]
	}
	if e.elems && len(e.text) > 0 && strings.HasPrefix(e.text[0], "[") {
		return e.args
	}
	return nil
}

// leaves are a list constructor's elements over all dimensions.
func (e *expr) leaves() (out []*expr) {
	for _, i := range e.items() {
		if i.elems {
			out = append(out, i.leaves()...)
		} else {
			out = append(out, i)
		}
	}
	return out
}

func (s *scope) sameLength(l, r *expr, loc int32) {
	if len(l.args) != len(r.args) {
		s.az.fail(pgerr.SyntaxError, loc, "unequal number of entries in row expressions")
	}
}

// rowCompare is make_row_comparison_op, written out field by field.
func (s *scope) rowCompare(name string, l, r *expr, loc int32) *expr {
	s.sameLength(l, r, loc)
	if len(l.args) == 0 {
		s.az.fail(pgerr.FeatureNotSupported, loc, "cannot compare rows of zero length")
	}
	var parts []*expr
	switch name {
	case "=", "<>":
		for i := range l.args {
			parts = append(parts, s.operator(name, l.args[i], r.args[i], loc))
		}
		if name == "=" {
			return flat(" AND ", parts, loc)
		}
		return flat(" OR ", parts, loc)
	case "<", "<=", ">", ">=":
		strict := name[:1]
		out := s.operator(name, l.args[len(l.args)-1], r.args[len(r.args)-1], loc)
		for i := len(l.args) - 2; i >= 0; i-- {
			lt := s.operator(strict, l.args[i], r.args[i], loc)
			eq := s.operator("=", l.args[i], r.args[i], loc)
			out = flat(" OR ", []*expr{lt, flat(" AND ", []*expr{eq, out}, loc)}, loc)
		}
		return out
	}
	e := s.az.errorAt(pgerr.FeatureNotSupported, loc, "could not determine interpretation of row comparison operator %s", name)
	e.Hint = "Row comparison operators must be associated with btree operator families."
	panic(e)
}

// emitPrefix writes a prefix operator.
func (s *scope) emitPrefix(op *operRow, a *expr, loc int32) *expr {
	var e *expr
	switch op.name {
	case "-":
		e = call(op.result, "(-$1)", a)
		e.prec, e.scale, e.loose = a.prec, a.scale, a.loose
		if a.show != nil {
			e.show = call(pgtype.Text, "skade_num_neg($1)", a.show)
		}
	case "+":
		e = call(op.result, "$1", a)
		e.prec, e.scale, e.loose, e.show = a.prec, a.scale, a.loose, a.show
	case "~":
		e = call(op.result, "(~$1)", a)
	case "@":
		e = call(op.result, "abs($1)", a)
		e.prec, e.scale, e.loose = a.prec, a.scale, a.loose
	case "|/":
		e = call(op.result, "sqrt($1)", a)
	case "||/":
		e = call(op.result, "cbrt($1)", a)
	default:
		s.az.unsupported(loc, "operator %s %s", op.name, typeName(op.right))
	}
	e.loc = loc
	return e
}

func isIntType(t uint32) bool { return intDigits[t] > 0 }

// widen keeps DuckDB from computing in a narrower integer than PostgreSQL's result type.
func widen(l, r *expr, result uint32) (*expr, *expr) {
	if !isIntType(result) {
		return l, r
	}
	fits := func(e *expr) bool { return e.typ == result && (e.kind != kConst || result != pgtype.Int4) }
	if fits(l) || fits(r) || l.kind == kConst && r.kind == kConst {
		return l, r
	}
	wide := func(e *expr) *expr {
		c := call(result, "CAST($1 AS "+duckType(result, -1)+")", e)
		c.loc = e.loc
		return c
	}
	if l.kind != kConst {
		return wide(l), r
	}
	return l, wide(r)
}
