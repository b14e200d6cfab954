package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// textBuilder collects template text and arguments.
type textBuilder struct {
	text []string
	args []*expr
}

func (t *textBuilder) str(s string) {
	if len(t.text) == 0 {
		t.text = append(t.text, "")
	}
	t.text[len(t.text)-1] += s
}

func (t *textBuilder) expr(e *expr) {
	t.str("")
	t.args = append(t.args, e)
	t.text = append(t.text, "")
}

func (t *textBuilder) list(es []*expr) {
	for i, e := range es {
		if i > 0 {
			t.str(", ")
		}
		t.expr(e)
	}
}

func (t *textBuilder) keys(order []*sortKey) {
	for i, k := range order {
		if i > 0 {
			t.str(", ")
		}
		if k.e.kind == kConst {
			t.str("CAST(")
			t.expr(k.e)
			t.str(" AS " + duckTypeOf(k.e) + ")")
		} else {
			t.expr(k.e)
		}
		t.str(k.suffix)
	}
}

// aggCall is an aggregate or window function call being written: fn(args) with its modifiers.
type aggCall struct {
	s        *scope
	c        *funcCallInfo
	owner    *scope
	distinct bool
	order    []*sortKey
	filter   *expr
	over     *windowDef
}

// piece writes fn(args …) with DISTINCT, ORDER BY, FILTER and OVER.
func (a *aggCall) piece(typ uint32, fn string, args ...*expr) *expr {
	var t textBuilder
	t.str(fn + "(")
	if a.distinct {
		t.str("DISTINCT ")
	}
	if a.c.node.AggStar && fn == "count" {
		t.str("*")
	}
	t.list(args)
	if len(a.order) > 0 {
		t.str(" ORDER BY ")
		t.keys(a.order)
	}
	t.str(")")
	if a.filter != nil {
		t.str(" FILTER (WHERE ")
		t.expr(a.filter)
		t.str(")")
	}
	e := &expr{kind: kAgg, typ: typ, mod: -1, loc: a.c.node.Location, owner: a.owner}
	if a.over != nil {
		e.kind = kWindow
		t.str(" OVER (")
		a.over.write(&t)
		t.str(")")
	}
	e.text, e.args = t.text, t.args
	return e
}

// aggOrder analyses ORDER BY inside an aggregate.
func (s *scope) aggOrder(nodes []*pg_query.Node) []*sortKey {
	var out []*sortKey
	for _, n := range nodes {
		sb := n.GetSortBy()
		out = append(out, &sortKey{e: s.exprNoUnknown(sb.Node), target: -1, suffix: sortSuffix(sb)})
	}
	return out
}

// aggOrWindow writes an aggregate, or a window function with OVER.
func (s *scope) aggOrWindow(c *funcCallInfo) *expr {
	f := c.node
	if c.proc.kind == 'f' {
		s.az.fail(pgerr.WrongObjectType, f.Location, "OVER specified, but %s is not a window function nor an aggregate function", c.name)
	}
	if f.AggStar && (len(c.args) > 0 || c.name != "count") || !f.AggStar && len(c.args) == 0 && c.name == "count" {
		if c.name == "count" {
			s.az.fail(pgerr.WrongObjectType, f.Location, "count(*) must be used to call a parameterless aggregate function")
		}
	}
	a := &aggCall{s: s, c: c, distinct: f.AggDistinct}
	if !f.AggWithinGroup {
		a.order = s.aggOrder(f.AggOrder)
	}
	if f.AggFilter != nil {
		clause := s.clause
		a.filter = s.boolean(f.AggFilter, "FILTER")
		s.clause = clause
	}
	if a.distinct && f.Over != nil {
		s.az.fail(pgerr.FeatureNotSupported, f.Location, "DISTINCT is not implemented for window functions")
	}
	for _, k := range a.order {
		if a.distinct && !containsExpr(c.args, k.e) {
			s.az.fail(pgerr.InvalidColumnReference, k.e.loc, "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
		}
	}
	if f.Over != nil {
		if s.clause != "" && s.clause != "ORDER BY" && s.clause != "DISTINCT ON" {
			s.az.fail(pgerr.WindowingError, f.Location, "window functions are not allowed in %s", s.clause)
		}
		if s.inWin {
			s.az.fail(pgerr.WindowingError, f.Location, "window function calls cannot be nested")
		}
		s.inWin = true
		a.over = s.window(f.Over)
		s.inWin = false
		s.wins++
		a.owner = s
	} else {
		a.owner = s.aggOwner(c)
		if a.owner == s && s.clause != "" && s.clause != "HAVING" && s.clause != "ORDER BY" && s.clause != "DISTINCT ON" && s.clause != "GROUP BY" {
			s.az.fail(pgerr.GroupingError, f.Location, "aggregate functions are not allowed in %s", s.clause)
		}
		a.owner.aggs++
	}
	write := aggregates[c.name]
	if write == nil {
		s.unmapped(c)
	}
	e := write(a)
	if e == nil {
		s.unmapped(c)
	}
	e.loc = f.Location
	return e
}

func containsExpr(es []*expr, e *expr) bool {
	sql := e.sql()
	for _, x := range es {
		if x.sql() == sql {
			return true
		}
	}
	return false
}

// aggOwner is the level an aggregate belongs to: the innermost level of the columns in its arguments.
func (s *scope) aggOwner(c *funcCallInfo) *scope {
	var owner *scope
	depth := func(x *scope) int {
		n := 0
		for ; x != nil; x = x.parent {
			n++
		}
		return n
	}
	for _, a := range c.args {
		a.walk(func(x *expr) bool {
			if x.kind == kColumn && x.owner != nil && (owner == nil || depth(x.owner) > depth(owner)) {
				owner = x.owner
			}
			return true
		})
	}
	if owner == nil || owner.forward != nil {
		return s
	}
	return owner
}

// simpleAgg writes fn over the arguments with the result type of pg_proc.
func simpleAgg(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		e := a.piece(a.c.ret, fn, a.c.args...)
		if len(a.c.args) > 0 {
			x := a.c.args[0]
			e.prec, e.scale, e.loose, e.dims = x.prec, x.scale, x.loose, x.dims
		}
		return e
	}
}

// castAgg casts the result to a type that DuckDB does not give by itself.
func castAgg(fn, typ string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		return call(a.c.ret, "CAST($1 AS "+typ+")", a.piece(a.c.ret, fn, a.c.args...))
	}
}

// aggregates and window functions by name; a nil result is refused.
var aggregates map[string]func(*aggCall) *expr

func init() {
	aggregates = map[string]func(*aggCall) *expr{
		"count": simpleAgg("count"), "min": minMax("min"), "max": minMax("max"), "sum": sumAgg, "avg": avgAgg,
		"bool_and": simpleAgg("bool_and"), "every": simpleAgg("bool_and"), "bool_or": simpleAgg("bool_or"),
		"bit_and": simpleAgg("bit_and"), "bit_or": simpleAgg("bit_or"), "bit_xor": simpleAgg("bit_xor"),
		"string_agg": stringAgg, "array_agg": arrayAgg,
		"json_agg": jsonAgg(pgtype.JSON), "jsonb_agg": jsonAgg(pgtype.JSONB),
		"json_object_agg": jsonObjectAgg(pgtype.JSON), "jsonb_object_agg": jsonObjectAgg(pgtype.JSONB),
		"stddev": varAgg("stddev_samp"), "stddev_samp": varAgg("stddev_samp"), "stddev_pop": varAgg("stddev_pop"),
		"variance": varAgg("var_samp"), "var_samp": varAgg("var_samp"), "var_pop": varAgg("var_pop"),
		"corr": simpleAgg("corr"), "covar_pop": simpleAgg("covar_pop"), "covar_samp": simpleAgg("covar_samp"),
		"regr_avgx": simpleAgg("regr_avgx"), "regr_avgy": simpleAgg("regr_avgy"), "regr_count": castAgg("regr_count", "BIGINT"),
		"regr_intercept": simpleAgg("regr_intercept"), "regr_r2": simpleAgg("regr_r2"), "regr_slope": simpleAgg("regr_slope"),
		"regr_sxx": simpleAgg("regr_sxx"), "regr_sxy": simpleAgg("regr_sxy"), "regr_syy": simpleAgg("regr_syy"),
		"percentile_cont": percentile("quantile_cont"), "percentile_disc": percentile("quantile_disc"), "mode": modeAgg,
		"row_number": simpleAgg("row_number"), "rank": windowOnly("rank"), "dense_rank": windowOnly("dense_rank"),
		"percent_rank": windowOnly("percent_rank"), "cume_dist": windowOnly("cume_dist"), "ntile": castAgg("ntile", "INTEGER"),
		"lag": offsetAgg("lag"), "lead": offsetAgg("lead"), "first_value": simpleAgg("first_value"), "last_value": simpleAgg("last_value"), "nth_value": simpleAgg("nth_value"),
	}
}

func windowOnly(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		if a.over == nil || len(a.c.args) > 0 {
			return nil // hypothetical-set aggregates
		}
		return a.piece(a.c.ret, fn)
	}
}

func offsetAgg(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		e := simpleAgg(fn)(a)
		if len(a.c.args) == 3 {
			commonShape(e, []*expr{a.c.args[0], a.c.args[2]})
			e.mod = -1
		}
		return e
	}
}

func minMax(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		if a.c.ret == pgtype.JSON {
			return nil
		}
		e := simpleAgg(fn)(a)
		if isString(a.c.args[0].typ) {
			e.typ = a.c.ret
		}
		return e
	}
}

func sumAgg(a *aggCall) *expr {
	x := a.c.args[0]
	switch x.typ {
	case pgtype.Int2, pgtype.Int4:
		return call(a.c.ret, "CAST($1 AS BIGINT)", a.piece(a.c.ret, "sum", x))
	case pgtype.Int8:
		e := call(a.c.ret, "CAST($1 AS DECIMAL(38,0))", a.piece(a.c.ret, "sum", x))
		e.prec, e.scale = 38, 0
		return e
	case pgtype.Numeric:
		e := a.piece(a.c.ret, "sum", x)
		e.prec, e.scale, e.loose = 38, x.scale, x.loose
		return e
	case pgtype.Float4:
		return call(a.c.ret, "CAST($1 AS FLOAT)", a.piece(a.c.ret, "sum", x))
	case pgtype.Float8:
		return overflowed(a, "sum", x)
	case pgtype.Interval:
		return intervalParts(a, "sum", x)
	}
	return nil
}

// overflowed refuses an infinity that finite values add up to.
func overflowed(a *aggCall, fn string, x *expr) *expr {
	return call(a.c.ret, "skade_over($1, $2)", a.piece(a.c.ret, fn, x), a.piece(pgtype.Float8, "max", call(pgtype.Float8, "abs(CAST($1 AS DOUBLE))", x)))
}

// intervalParts sums months, days and microseconds apart.
func intervalParts(a *aggCall, fn string, x *expr) *expr {
	part := func(tmpl string) *expr {
		return a.piece(pgtype.Int8, fn, call(pgtype.Int8, tmpl, x))
	}
	return call(pgtype.Interval, "(to_months(CAST($1 AS INTEGER)) + to_days(CAST($2 AS INTEGER)) + to_microseconds(CAST($3 AS BIGINT)))",
		part("(date_part('year', $1) * 12 + date_part('month', $1))"), part("date_part('day', $1)"), part("skade_fn.interval_micros($1)"))
}

func avgAgg(a *aggCall) *expr {
	x := a.c.args[0]
	switch x.typ {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		return exactNumeric("skade_num_div(CAST($1 AS VARCHAR), CAST($2 AS VARCHAR))", a.piece(pgtype.Numeric, "sum", x), a.piece(pgtype.Int8, "count", x))
	case pgtype.Numeric:
		sum := a.piece(pgtype.Numeric, "sum", x)
		sum.prec, sum.scale, sum.loose = 38, x.scale, x.loose
		return exactNumeric("skade_num_div($t1, CAST($2 AS VARCHAR))", sum, a.piece(pgtype.Int8, "count", x))
	case pgtype.Float4, pgtype.Float8:
		return overflowed(a, "avg", x)
	case pgtype.Interval:
		return call(pgtype.Interval, "skade_interval_div($1, CAST($2 AS DOUBLE))", intervalParts(a, "sum", x), a.piece(pgtype.Int8, "count", x))
	}
	return nil
}

// varAgg is exact for integers and numerics, as PostgreSQL's numeric arithmetic is: from count, sum and sum of squares.
func varAgg(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		x := a.c.args[0]
		if x.typ == pgtype.Float4 || x.typ == pgtype.Float8 {
			return a.piece(a.c.ret, fn, x)
		}
		if isIntType(x.typ) {
			x = decimalCast(x, 19, 0)
		}
		square := call(pgtype.Numeric, "($1 * $2)", decimalCast(x, max(19, x.prec), x.scale), x)
		sum := a.piece(pgtype.Numeric, "sum", x)
		sum2 := a.piece(pgtype.Numeric, "sum", square)
		return exactNumeric("skade_num_var("+quote(fn)+", $1, CAST($2 AS VARCHAR), CAST($3 AS VARCHAR))",
			a.piece(pgtype.Int8, "count", x), sum, sum2)
	}
}

func stringAgg(a *aggCall) *expr {
	if a.c.ret != pgtype.Text {
		return nil
	}
	if sep := a.c.args[1]; sep.kind != kConst {
		// DuckDB wants a constant separator.
		x := a.c.args[0]
		keep := isNull(x, true)
		if a.filter != nil {
			keep = andExprs(a.filter, keep)
		}
		a.filter = keep
		if sep.isConstantLike() {
			sep = call(pgtype.Text, "(SELECT $1)", sep)
		}
		return call(pgtype.Text, "array_to_string($1, $2)", a.piece(pgtype.TextArray, "array_agg", x), sep)
	}
	return a.piece(pgtype.Text, "string_agg", a.c.args...)
}

func arrayAgg(a *aggCall) *expr {
	x := a.c.args[0]
	e := a.piece(a.c.ret, "array_agg", x)
	e.prec, e.scale, e.loose, e.fields = x.prec, x.scale, x.loose, rowFields(x)
	if elemType(x.typ) != 0 {
		e.dims = 1 + max(1, x.dims)
	}
	return e
}

func jsonAgg(typ uint32) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		x := a.c.args[0]
		sep := "', '"
		if typ == pgtype.JSON && (x.typ == pgtype.Record || arrayElem(x.typ) != 0) {
			sep = "E', \\n '"
		}
		item := call(pgtype.Text, "coalesce($1, 'null')", a.s.toJSON(x, typ))
		inner := a.piece(pgtype.Text, "string_agg", item, call(pgtype.Text, sep))
		return call(typ, "('[' || $1 || ']')", inner)
	}
}

func jsonObjectAgg(typ uint32) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		key := call(pgtype.Text, "skade_json_quote($t1)", a.c.args[0])
		val := call(pgtype.Text, "coalesce($1, 'null')", a.s.toJSON(a.c.args[1], typ))
		inner := a.piece(pgtype.Text, "string_agg", call(pgtype.Text, "($1 || ' : ' || $2)", key, val), call(pgtype.Text, "', '"))
		if typ == pgtype.JSONB {
			return call(typ, "skade_jsonb_in('{' || $1 || '}')", inner)
		}
		return call(typ, "('{ ' || $1 || ' }')", inner)
	}
}

func percentile(fn string) func(*aggCall) *expr {
	return func(a *aggCall) *expr {
		if !a.c.node.AggWithinGroup || len(a.c.within) != 1 {
			return nil
		}
		frac, key := a.c.args[0], a.c.within[0]
		if frac.kind != kConst && !frac.isConstantLike() {
			a.s.az.unsupported(a.c.node.Location, "a percentile fraction that is not a constant")
		}
		x := key.e
		if strings.HasPrefix(key.suffix, " DESC") {
			frac = call(pgtype.Float8, "(1.0 - $1)", frac)
		}
		if fn == "quantile_cont" && x.typ == pgtype.Interval {
			return nil
		}
		e := a.piece(a.c.ret, fn, x, frac)
		e.prec, e.scale, e.loose = x.prec, x.scale, x.loose
		return e
	}
}

func modeAgg(a *aggCall) *expr {
	if len(a.c.within) != 1 {
		return nil
	}
	x := a.c.within[0].e
	e := a.piece(a.c.ret, "mode", x)
	e.prec, e.scale, e.loose = x.prec, x.scale, x.loose
	return e
}
