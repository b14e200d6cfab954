package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// expr is transformExpr: one node kind after the other; what is not here is refused (G2).
func (s *scope) expr(n *pg_query.Node) *expr {
	s.az.deeper()
	defer s.az.shallower()
	switch x := n.GetNode().(type) {
	case *pg_query.Node_AConst:
		return s.aConst(x.AConst)
	case *pg_query.Node_ColumnRef:
		if s.noColumns != "" {
			s.az.fail(pgerr.InvalidColumnReference, x.ColumnRef.Location, "argument of %s must not contain variables", s.noColumns)
		}
		if s.columnless != "" {
			s.az.fail(pgerr.FeatureNotSupported, x.ColumnRef.Location, "cannot use column reference in %s", s.columnless)
		}
		return s.columnRef(x.ColumnRef)
	case *pg_query.Node_ParamRef:
		return s.paramRef(x.ParamRef)
	case *pg_query.Node_AExpr:
		return s.aExpr(x.AExpr)
	case *pg_query.Node_BoolExpr:
		return s.boolExpr(x.BoolExpr)
	case *pg_query.Node_FuncCall:
		return s.funcCall(x.FuncCall, false)
	case *pg_query.Node_TypeCast:
		return s.typeCast(x.TypeCast)
	case *pg_query.Node_NullTest:
		return s.nullTest(x.NullTest)
	case *pg_query.Node_BooleanTest:
		return s.booleanTest(x.BooleanTest)
	case *pg_query.Node_CaseExpr:
		return s.caseExpr(x.CaseExpr)
	case *pg_query.Node_CoalesceExpr:
		return s.variadicCommon("COALESCE", "coalesce($*)", x.CoalesceExpr.Args, x.CoalesceExpr.Location)
	case *pg_query.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == pg_query.MinMaxOp_IS_LEAST {
			return s.variadicCommon("LEAST", "least($*)", x.MinMaxExpr.Args, x.MinMaxExpr.Location)
		}
		return s.variadicCommon("GREATEST", "greatest($*)", x.MinMaxExpr.Args, x.MinMaxExpr.Location)
	case *pg_query.Node_SubLink:
		return s.subLink(x.SubLink)
	case *pg_query.Node_AArrayExpr:
		return s.arrayExpr(x.AArrayExpr, 0)
	case *pg_query.Node_RowExpr:
		return s.rowExpr(x.RowExpr)
	case *pg_query.Node_AIndirection:
		return s.indirection(x.AIndirection)
	case *pg_query.Node_CollateClause:
		return s.collate(x.CollateClause)
	case *pg_query.Node_SqlvalueFunction:
		return s.valueFunction(x.SqlvalueFunction)
	case *pg_query.Node_GroupingFunc:
		return s.grouping(x.GroupingFunc)
	case *pg_query.Node_SetToDefault:
		s.az.fail(pgerr.SyntaxError, x.SetToDefault.Location, "DEFAULT is not allowed in this context")
	case *pg_query.Node_NamedArgExpr:
		s.az.fail(pgerr.SyntaxError, x.NamedArgExpr.Location, "named arguments are not allowed here")
	case nil:
		s.az.unsupported(-1, "an empty expression")
	}
	s.az.unsupported(nodeLocation(n), "%s", expressionName(n))
	return nil
}

var expressionNames = map[string]string{
	"XmlExpr": "XML", "XmlSerialize": "XML", "CurrentOfExpr": "WHERE CURRENT OF", "JsonIsPredicate": "IS JSON", "JsonObjectConstructor": "JSON_OBJECT",
	"JsonArrayConstructor": "JSON_ARRAY", "JsonFuncExpr": "SQL/JSON query functions", "JsonParseExpr": "JSON()", "JsonScalarExpr": "JSON_SCALAR", "JsonSerializeExpr": "JSON_SERIALIZE",
	"MergeSupportFunc": "MERGE_ACTION", "AStar": "row expansion via \"*\" here",
}

func expressionName(n *pg_query.Node) string {
	name := nodeName(n)
	if s, ok := expressionNames[name]; ok {
		return s
	}
	return name
}

func (s *scope) aConst(c *pg_query.A_Const) *expr {
	if c.Isnull {
		return nullConst(pgtype.Unknown, c.Location)
	}
	switch v := c.Val.(type) {
	case *pg_query.A_Const_Ival:
		return constant(pgtype.Int4, strconv.FormatInt(int64(v.Ival.GetIval()), 10), c.Location)
	case *pg_query.A_Const_Fval:
		return s.number(v.Fval.Fval, c.Location)
	case *pg_query.A_Const_Boolval:
		return constant(pgtype.Bool, strconv.FormatBool(v.Boolval.Boolval), c.Location)
	case *pg_query.A_Const_Sval:
		return constant(pgtype.Unknown, v.Sval.Sval, c.Location)
	case *pg_query.A_Const_Bsval:
		s.az.unsupported(c.Location, "type bit")
	case nil:
		return constant(pgtype.Int4, "0", c.Location)
	}
	s.az.unsupported(c.Location, "this constant")
	return nil
}

// number is make_const's rule for numbers that are not integer tokens.
func (s *scope) number(text string, loc int32) *expr {
	clean := strings.ReplaceAll(text, "_", "")
	if base, digits := intBase(clean); base != 0 {
		v, err := strconv.ParseInt(digits, base, 64)
		if err == nil {
			return constant(pgtype.Int8, strconv.FormatInt(v, 10), loc)
		}
		s.az.fail(pgerr.NumericValueOutOfRange, loc, "value %q is out of range for type bigint", text)
	}
	if _, err := strconv.ParseInt(clean, 10, 64); err == nil {
		v, _ := strconv.ParseInt(clean, 10, 64)
		if int64(int32(v)) == v {
			return constant(pgtype.Int4, clean, loc)
		}
		return constant(pgtype.Int8, clean, loc)
	}
	return s.literal(clean, pgtype.Numeric, -1, loc, implicitCoercion)
}

func intBase(t string) (int, string) {
	if len(t) > 2 && t[0] == '0' {
		switch t[1] | 0x20 {
		case 'x':
			return 16, t[2:]
		case 'o':
			return 8, t[2:]
		case 'b':
			return 2, t[2:]
		}
	}
	return 0, ""
}

// maxParams is the protocol's limit of parameters.
const maxParams = 65535

func (s *scope) paramRef(p *pg_query.ParamRef) *expr {
	n := int(p.Number)
	if n < 1 || n > maxParams || s.az.views > 0 {
		s.az.fail(pgerr.UndefinedParameter, p.Location, "there is no parameter $%d", n)
	}
	if s.az.noParams {
		s.az.fail(pgerr.UndefinedParameter, p.Location, "there is no parameter $%d", n)
	}
	for len(s.az.params) < n {
		s.az.params = append(s.az.params, paramState{})
	}
	st := &s.az.params[n-1]
	if st.oid == 0 || st.oid == pgtype.Unknown {
		return &expr{kind: kParam, typ: pgtype.Unknown, mod: -1, loc: p.Location, param: n}
	}
	return newParam(n, st.oid, p.Location)
}

// boolean analyses a condition.
func (s *scope) boolean(n *pg_query.Node, clause string) *expr {
	return s.toBool(s.expr(n), clause)
}

func (s *scope) toBool(e *expr, clause string) *expr {
	c, ok := s.coerce(e, pgtype.Bool, -1, assignmentCoercion)
	if !ok || c.typ != pgtype.Bool || e.typ != pgtype.Bool && e.typ != pgtype.Unknown {
		s.az.fail(pgerr.DatatypeMismatch, e.loc, "argument of %s must be type boolean, not type %s", clause, typeName(e.typ))
	}
	return c
}

func (s *scope) boolExpr(b *pg_query.BoolExpr) *expr {
	var args []*expr
	name := strings.TrimSuffix(strings.TrimPrefix(b.Boolop.String(), ""), "_EXPR")
	for _, a := range b.Args {
		args = append(args, s.boolean(a, name))
	}
	switch b.Boolop {
	case pg_query.BoolExprType_AND_EXPR:
		out := args[0]
		for _, a := range args[1:] {
			out = andExprs(out, a)
		}
		out.loc = b.Location
		return flat(" AND ", args, b.Location)
	case pg_query.BoolExprType_OR_EXPR:
		return flat(" OR ", args, b.Location)
	case pg_query.BoolExprType_NOT_EXPR:
		e := call(pgtype.Bool, "(NOT $1)", args[0])
		e.loc = b.Location
		return e
	}
	s.az.unsupported(b.Location, "this boolean operator")
	return nil
}

// flat joins conditions without nesting, so that long lists stay shallow.
func flat(op string, args []*expr, loc int32) *expr {
	e := &expr{kind: kCall, typ: pgtype.Bool, mod: -1, loc: loc, args: args}
	e.text = append(e.text, "(")
	for i := range args {
		if i == len(args)-1 {
			e.text = append(e.text, ")")
		} else {
			e.text = append(e.text, op)
		}
	}
	if op == " AND " {
		for _, a := range args {
			e.and = append(e.and, a.conjuncts()...)
		}
	}
	if op == " OR " {
		for _, a := range args {
			if len(a.or) > 0 {
				e.or = append(e.or, a.or...)
			} else {
				e.or = append(e.or, a)
			}
		}
	}
	return e
}

func andExprs(a, b *expr) *expr { return flat(" AND ", []*expr{a, b}, a.loc) }

func (e *expr) conjuncts() []*expr {
	if len(e.and) > 0 {
		return e.and
	}
	return []*expr{e}
}

func (s *scope) nullTest(t *pg_query.NullTest) *expr {
	arg := s.expr(t.Arg)
	if arg.typ == pgtype.Unknown && arg.kind != kParam {
		arg = s.coerceTo(arg, pgtype.Text, -1, implicitCoercion, "")
	}
	not := t.Nulltesttype == pg_query.NullTestType_IS_NOT_NULL
	if arg.kind == kRow {
		// A row IS NULL when every field is, IS NOT NULL when none is.
		var parts []*expr
		for _, f := range arg.args {
			parts = append(parts, isNull(f, not))
		}
		if len(parts) == 0 {
			return constant(pgtype.Bool, "true", t.Location)
		}
		return flat(" AND ", parts, t.Location)
	}
	return isNull(arg, not)
}

func isNull(arg *expr, not bool) *expr {
	tmpl, op := "($1 IS NULL)", "isnull"
	if not {
		tmpl, op = "($1 IS NOT NULL)", "isnotnull"
	}
	e := call(pgtype.Bool, tmpl, arg)
	e.cmp = &comparison{op: op, left: arg}
	return e
}

func (s *scope) booleanTest(t *pg_query.BooleanTest) *expr {
	forms := map[pg_query.BoolTestType]string{
		pg_query.BoolTestType_IS_TRUE: "($1 IS NOT DISTINCT FROM true)", pg_query.BoolTestType_IS_NOT_TRUE: "($1 IS DISTINCT FROM true)",
		pg_query.BoolTestType_IS_FALSE: "($1 IS NOT DISTINCT FROM false)", pg_query.BoolTestType_IS_NOT_FALSE: "($1 IS DISTINCT FROM false)",
		pg_query.BoolTestType_IS_UNKNOWN: "($1 IS NULL)", pg_query.BoolTestType_IS_NOT_UNKNOWN: "($1 IS NOT NULL)",
	}
	form, ok := forms[t.Booltesttype]
	if !ok {
		s.az.unsupported(t.Location, "this boolean test")
	}
	name := strings.ReplaceAll(t.Booltesttype.String(), "_", " ")
	return call(pgtype.Bool, form, s.boolean(t.Arg, name))
}

func (s *scope) caseExpr(c *pg_query.CaseExpr) *expr {
	var arg *expr
	if c.Arg != nil {
		arg = s.exprNoUnknown(c.Arg)
	}
	var results, conds []*expr
	for _, w := range c.Args {
		when := w.GetCaseWhen()
		if arg != nil {
			conds = append(conds, s.toBool(s.operator("=", arg, s.expr(when.Expr), when.Location), "CASE/WHEN"))
		} else {
			conds = append(conds, s.boolean(when.Expr, "CASE/WHEN"))
		}
		results = append(results, s.expr(when.Result))
	}
	var def *expr
	if c.Defresult != nil {
		def = s.expr(c.Defresult)
	} else {
		def = nullConst(pgtype.Unknown, -1)
	}
	// PostgreSQL considers ELSE first.
	typ := s.commonTypeText(append([]*expr{def}, results...), "CASE")
	all := make([]*expr, 0, len(results)+1)
	for i := range results {
		results[i] = s.coerceCommon(results[i], typ, "CASE/WHEN")
		all = append(all, results[i])
	}
	def = s.coerceCommon(def, typ, "CASE/ELSE")
	all = append(all, def)
	e := caseText(typ, conds, results, def)
	e.loc = c.Location
	commonShape(e, all)
	if !mixedScales(all) {
		return s.sameDecimal(e)
	}
	texts := make([]*expr, len(results))
	for i, r := range results {
		texts[i] = textOf(r)
	}
	e = s.sameDecimal(e)
	e.show = caseText(pgtype.Text, conds, texts, textOf(def))
	return e
}

func caseText(typ uint32, conds, results []*expr, def *expr) *expr {
	e := &expr{kind: kCall, typ: typ, mod: -1, text: []string{"CASE WHEN "}}
	for i := range results {
		e.args = append(e.args, conds[i], results[i])
		next := " WHEN "
		if i == len(results)-1 {
			next = " ELSE "
		}
		e.text = append(e.text, " THEN ", next)
	}
	e.args = append(e.args, def)
	e.text = append(e.text, " END")
	return e
}

// mixedScales reports numerics that PostgreSQL would show with scales of their own.
func mixedScales(es []*expr) bool {
	first := -1
	for _, e := range es {
		if e.typ != pgtype.Numeric || e.kind == kConst && e.null {
			continue
		}
		if e.show != nil || first >= 0 && e.scale != first {
			return true
		}
		first = e.scale
	}
	return false
}

// sameDecimal fixes the DECIMAL of a numeric whose DuckDB type would otherwise be inferred.
func (s *scope) sameDecimal(e *expr) *expr {
	if e.typ != pgtype.Numeric {
		return e
	}
	c := decimalCast(e, max(1, e.prec), e.scale)
	c.loose, c.loc, c.mod = e.loose, e.loc, e.mod
	return c
}

func (s *scope) variadicCommon(name, tmpl string, nodes []*pg_query.Node, loc int32) *expr {
	var args []*expr
	for _, n := range nodes {
		args = append(args, s.expr(n))
	}
	typ := s.commonTypeText(args, name)
	for i := range args {
		args[i] = s.coerceCommon(args[i], typ, name)
	}
	e := call(typ, tmpl, args...)
	e.loc = loc
	commonShape(e, args)
	if typ != pgtype.Numeric || !mixedScales(args) {
		return s.sameDecimal(e)
	}
	if name != "COALESCE" {
		// GREATEST, LEAST: the text of the argument that it is.
		e = s.sameDecimal(e)
		shown, tmpl := []*expr{e}, "CASE"
		for _, a := range args {
			if a.kind == kConst && a.null {
				continue
			}
			n := len(shown)
			tmpl += " WHEN $1 = $" + strconv.Itoa(n+1) + " THEN $" + strconv.Itoa(n+2)
			shown = append(shown, a, textOf(a))
		}
		e.show = call(pgtype.Text, tmpl+" END", shown...)
		return e
	}
	texts := make([]*expr, len(args))
	for i, a := range args {
		texts[i] = textOf(a)
		if a.kind == kConst && a.null {
			texts[i] = nullConst(pgtype.Text, -1)
		}
	}
	e = s.sameDecimal(e)
	e.show = call(pgtype.Text, tmpl, texts...)
	return e
}

func (s *scope) typeCast(c *pg_query.TypeCast) *expr {
	typ, mod := s.az.typeName(c.TypeName)
	// ARRAY[…]::type[] gives its elements the type.
	if arr := c.Arg.GetAArrayExpr(); arr != nil && elemType(typ) != 0 {
		return s.castTo(s.arrayExpr(arr, typ), typ, mod, c)
	}
	return s.castTo(s.expr(c.Arg), typ, mod, c)
}

func (s *scope) castTo(e *expr, typ uint32, mod int32, c *pg_query.TypeCast) *expr {
	loc := c.Location
	if loc < 0 {
		loc = e.loc
	}
	out, ok := s.coerce(e, typ, mod, explicitCoercion)
	if !ok {
		s.az.fail(pgerr.CannotCoerce, loc, "cannot cast type %s to %s", typeName(e.typ), typeName(typ))
	}
	if out == e {
		c := *e
		out = &c
	}
	if out.kind != kColumn || out.typ != e.typ || mod >= 0 {
		// A cast is not the plain column any more, for RowDescription's table OID.
		cc := *out
		out = &cc
	}
	return out
}

func (s *scope) collate(c *pg_query.CollateClause) *expr {
	e := s.exprNoUnknown(c.Arg)
	names := stringList(c.Collname)
	name := names[len(names)-1]
	switch name {
	case "C", "POSIX", "default", "ucs_basic", "C.UTF-8", "C.utf8":
	default:
		enc := name
		e := s.az.errorAt(pgerr.UndefinedObject, c.Location, "collation %q for encoding \"UTF8\" does not exist", enc)
		e.Hint = "skade-pg sorts by Unicode code points: collations \"C\" and \"default\"."
		panic(e)
	}
	if cat, _ := category(e.typ); cat != 'S' {
		s.az.fail(pgerr.DatatypeMismatch, c.Location, "collations are not supported by type %s", typeName(e.typ))
	}
	out := call(e.typ, "$1", e)
	out.mod = e.mod
	return out
}

// sessionValue is a bind that the session fills in.
func (az *analyzer) sessionValue(v SessionValue, typ uint32) *expr {
	az.unstable = true
	return az.bind(Bind{Session: v, Type: typ})
}

func (az *analyzer) bind(b Bind) *expr {
	for i, have := range az.binds {
		if have.Call == nil && b.Call == nil && have == b {
			return &expr{kind: kSession, typ: b.Type, mod: -1, loc: -1, param: i}
		}
	}
	az.binds = append(az.binds, b)
	e := &expr{kind: kSession, typ: b.Type, mod: -1, loc: -1, param: len(az.binds) - 1}
	if b.Type == pgtype.Numeric {
		e.prec, e.scale, e.loose = 38, DefaultNumericScale, true
	}
	return e
}

func (s *scope) valueFunction(f *pg_query.SQLValueFunction) *expr {
	now := func(typ uint32) *expr {
		v := s.az.sessionValue(TransactionTimestamp, pgtype.TimestampTZ)
		e := v
		if typ != pgtype.TimestampTZ {
			e = s.convert(v, typ, -1, explicitCoercion)
		}
		e.loc = f.Location
		return s.applyMod(e, typ, f.Typmod, explicitCoercion)
	}
	switch f.Op {
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return now(pgtype.Date)
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return now(pgtype.TimestampTZ)
	case pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg_query.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		return now(pgtype.Timestamp)
	case pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME, pg_query.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		return now(pgtype.Time)
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg_query.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg_query.SQLValueFunctionOp_SVFOP_USER:
		return s.az.sessionValue(CurrentUser, pgtype.Name)
	case pg_query.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return s.az.sessionValue(SessionUser, pgtype.Name)
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		return s.az.sessionValue(CurrentDatabase, pgtype.Name)
	case pg_query.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		return s.az.sessionValue(CurrentSchema, pgtype.Name)
	}
	e := s.az.errorAt(pgerr.FeatureNotSupported, f.Location, "CURRENT_TIME is not supported")
	e.Hint = "There is no type time with time zone; LOCALTIME gives the time of day."
	panic(e)
}

func (s *scope) grouping(g *pg_query.GroupingFunc) *expr {
	if s.clause == "WHERE" || s.clause == "GROUP BY" || s.clause == "JOIN conditions" {
		s.az.fail(pgerr.GroupingError, g.Location, "grouping operations are not allowed in %s", s.clause)
	}
	var args []*expr
	for _, a := range g.Args {
		args = append(args, s.expr(a))
	}
	e := call(pgtype.Int4, "CAST(GROUPING($*) AS INTEGER)", args...)
	e.kind, e.owner, e.loc = kGrouping, s, g.Location
	return e
}
