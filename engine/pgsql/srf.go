package pgsql

import (
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// srfCall is a set-returning function as a list: each element is a row. cols are set for functions that return records.
type srfCall struct {
	name   string
	list   *expr
	elem   *expr // shape of one element
	cols   []*nsCol
	native string // a DuckDB table function for constant arguments, as a template over args
	args   []*expr
	rel    *relEntry
	// column is the name of the one output column, when the function has one of its own.
	column string
}

// extraProcs are functions outside pg_catalog that clients rely on.
var extraProcs = map[string][]*procRow{
	"_pg_expandarray": {{name: "_pg_expandarray", kind: 'f', setOf: true, ret: pgtype.Record, args: []uint32{pgtype.AnyArray}, strict: true}},
}

// srfTemplates write a set-returning function as a DuckDB list.
var srfTemplates = map[string]func(s *scope, c *funcCallInfo) *srfCall{
	"generate_series":           generateSeries,
	"generate_subscripts":       generateSubscripts,
	"unnest":                    unnestCall,
	"regexp_split_to_table":     listSRF("string_split_regex($1, skade_regex($2))"),
	"string_to_table":           listSRF("skade_fn.string_to_array($1, $2)"),
	"json_array_elements":       listSRF("skade_json_elements($1)"),
	"jsonb_array_elements":      listSRF("skade_jsonb_elements($1)"),
	"json_array_elements_text":  listSRF("skade_json_elements_text($1)"),
	"jsonb_array_elements_text": listSRF("skade_json_elements_text($1)"),
	"json_object_keys":          listSRF("skade_json_keys($1)"),
	"jsonb_object_keys":         listSRF("skade_json_keys($1)"),
	"json_each":                 jsonEach("skade_json_values($1)", pgtype.JSON),
	"jsonb_each":                jsonEach("skade_jsonb_values($1)", pgtype.JSONB),
	"json_each_text":            jsonEach("skade_json_values_text($1)", pgtype.Text),
	"jsonb_each_text":           jsonEach("skade_json_values_text($1)", pgtype.Text),
	"regexp_matches":            regexpMatches,
	"_pg_expandarray":           expandArray,
}

func listSRF(tmpl string) func(*scope, *funcCallInfo) *srfCall {
	return func(_ *scope, c *funcCallInfo) *srfCall {
		if strings.Count(tmpl, "$") < len(c.args) {
			return nil
		}
		elem := &expr{kind: kColumn, typ: c.ret, mod: -1}
		return &srfCall{list: call(arrayType(c.ret), tmpl, c.args...), elem: elem}
	}
}

func generateSeries(s *scope, c *funcCallInfo) *srfCall {
	typ := c.ret
	elem := &expr{kind: kColumn, typ: typ, mod: -1}
	out := &srfCall{elem: elem, args: c.args}
	switch typ {
	case pgtype.Int4, pgtype.Int8:
		out.list = call(arrayType(typ), "CAST(generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT)) AS "+duckType(typ, -1)+"[])", c.args...)
		out.native = "generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT))"
		if len(c.args) == 3 {
			if c.args[2].kind == kConst && strings.Trim(c.args[2].lit, "0") == "" && !c.args[2].null {
				panic(pgerr.New(pgerr.InvalidParameterValue, "step size cannot equal zero"))
			}
			out.list = call(arrayType(typ), "CAST(generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT)) AS "+duckType(typ, -1)+"[])", c.args...)
			out.native = "generate_series(CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT))"
		}
	case pgtype.Timestamp, pgtype.TimestampTZ:
		out.list = call(arrayType(typ), "generate_series($1, $2, $3)", c.args...)
	case pgtype.Numeric:
		step := "CAST(1 AS DECIMAL(38,0))"
		sc := max(c.args[0].scale, c.args[1].scale)
		if len(c.args) == 3 {
			step, sc = "$3", max(sc, c.args[2].scale)
		}
		elem.prec, elem.scale, elem.loose = 38, sc, c.args[0].loose
		out.list = call(pgtype.NumericArray, "list_transform(generate_series(0, CAST(floor(($2 - $1) / "+step+") AS BIGINT)), lambda i: CAST($1 + CAST(i AS DECIMAL(18,0)) * "+step+" AS DECIMAL(38,"+strconv.Itoa(sc)+")))", c.args...)
		out.list.prec, out.list.scale = 38, sc
	default:
		return nil
	}
	return out
}

func generateSubscripts(s *scope, c *funcCallInfo) *srfCall {
	a := c.args[0]
	tmpl := "CAST(generate_series(1, len($1)) AS INTEGER[])"
	if a.typ == pgtype.Int2Vector || a.typ == pgtype.OIDVector {
		tmpl = "CAST(generate_series(0, len($1) - 1) AS INTEGER[])"
	}
	return &srfCall{list: call(pgtype.Int4Array, tmpl, a), elem: &expr{kind: kColumn, typ: pgtype.Int4, mod: -1}}
}

func unnestCall(s *scope, c *funcCallInfo) *srfCall {
	a := c.args[0]
	elem := &expr{kind: kColumn, typ: arrayElem(a.typ), mod: a.mod, prec: a.prec, scale: a.scale, loose: a.loose, fields: a.fields}
	list := a
	if a.dims > 1 {
		list = call(a.typ, "flatten($1)", a)
	}
	return &srfCall{list: list, elem: elem, cols: a.fields}
}

func jsonEach(values string, typ uint32) func(*scope, *funcCallInfo) *srfCall {
	return func(_ *scope, c *funcCallInfo) *srfCall {
		list := call(pgtype.RecordArray, "list_zip(skade_json_keys($1), "+values+")", c.args...)
		return &srfCall{list: list, elem: &expr{kind: kColumn, typ: pgtype.Record, mod: -1}, cols: []*nsCol{
			{name: "key", e: &expr{typ: pgtype.Text, mod: -1}}, {name: "value", e: &expr{typ: typ, mod: -1}},
		}}
	}
}

func regexpMatches(s *scope, c *funcCallInfo) *srfCall {
	flags := constant(pgtype.Text, "", -1)
	if len(c.args) == 3 {
		flags = c.args[2]
	}
	if flags.kind != kConst || strings.Contains(flags.lit, "g") {
		list := call(pgtype.TextArray, "list_transform(skade_regexp_matches($1, $2, $3), lambda m: skade_array_in(m))", c.args[0], c.args[1], flags)
		return &srfCall{list: list, elem: &expr{kind: kColumn, typ: pgtype.TextArray, mod: -1}}
	}
	one := call(pgtype.TextArray, "skade_regexp_match($1, $2, $3)", c.args[0], c.args[1], flags)
	list := call(pgtype.TextArray, "CASE WHEN $1 IS NULL THEN [] ELSE [$1] END", one)
	return &srfCall{list: list, elem: &expr{kind: kColumn, typ: pgtype.TextArray, mod: -1}}
}

func expandArray(s *scope, c *funcCallInfo) *srfCall {
	a := c.args[0]
	elem := arrayElem(a.typ)
	list := call(pgtype.RecordArray, "list_zip($1, CAST(generate_series(1, len($1)) AS INTEGER[]))", a)
	return &srfCall{list: list, elem: &expr{kind: kColumn, typ: pgtype.Record, mod: -1}, cols: []*nsCol{
		{name: "x", e: &expr{typ: elem, mod: -1, prec: a.prec, scale: a.scale}}, {name: "n", e: &expr{typ: pgtype.Int4, mod: -1}},
	}}
}

// srfCall analyses a set-returning function in an expression: its rows, unnested.
func (s *scope) srfCall(c *funcCallInfo, inFrom bool) *expr {
	f := c.node
	s.plainCallOnly(c)
	var call *srfCall
	if c.proc.engine != nil {
		if !inFrom {
			e := s.az.errorAt(pgerr.FeatureNotSupported, f.Location, "function %s in the select list is not supported", c.name)
			e.Hint = "Write SELECT … FROM " + c.name + "(…)."
			panic(e)
		}
		call = s.engineSource(c)
	} else {
		make := srfTemplates[c.name]
		if make == nil {
			s.unmapped(c)
		}
		if call = make(s, c); call == nil {
			s.unmapped(c)
		}
	}
	call.name = c.name
	switch c.name {
	case "json_array_elements", "jsonb_array_elements", "json_array_elements_text", "jsonb_array_elements_text":
		call.column = "value"
	}
	if !inFrom {
		switch s.clause {
		case "", "ORDER BY", "GROUP BY", "DISTINCT ON":
		default:
			s.az.fail(pgerr.FeatureNotSupported, f.Location, "set-returning functions are not allowed in %s", s.clause)
		}
		if s.inAgg {
			e := s.az.errorAt(pgerr.FeatureNotSupported, f.Location, "aggregate function calls cannot contain set-returning function calls")
			e.Hint = "You might be able to move the set-returning function into a LATERAL FROM item."
			panic(e)
		}
		s.srfs++
	}
	e := call.unnested()
	e.loc = f.Location
	return e
}

func (c *srfCall) unnested() *expr {
	e := &expr{kind: kSRF, typ: c.elem.typ, mod: c.elem.mod, prec: c.elem.prec, scale: c.elem.scale, loose: c.elem.loose,
		fields: c.elem.fields, text: []string{"unnest(", ")"}, srf: c}
	if c.list != nil {
		e.args = []*expr{c.list}
	} else {
		e.text = []string{""}
	}
	if c.cols != nil {
		e.fields = c.cols
	}
	return e
}

// engineSource makes a source of a call of the caller's table function.
func (s *scope) engineSource(c *funcCallInfo) *srfCall {
	fn := *c.proc.engine
	args := make([]*Arg, len(fn.Args))
	var untyped []int
	for i, a := range c.args {
		if a == nil {
			continue
		}
		if !a.isConstantLike() {
			if args[i] = drivenArg(a); args[i] == nil {
				s.az.unsupported(c.node.Location, "function %s over columns of another table", c.name)
			}
			continue
		}
		if a.typ == pgtype.Unknown && a.kind != kConst || a.kind == kRow {
			untyped = append(untyped, i) // what it stands for the other arguments may say
			continue
		}
		args[i] = s.az.arg(a)
	}
	for _, i := range untyped {
		args[i] = s.az.arg(s.typedArg(fn, args, i, c.args[i]))
	}
	rel, err := s.az.r.TableFunction(fn, args)
	s.az.check(err, c.node.Location)
	if rel == nil {
		s.unmapped(c)
	}
	e := s.az.addRel(rel, c.name, c.node.Location)
	e.use.Func, e.use.Args = &fn, args
	return &srfCall{rel: e, elem: &expr{kind: kColumn, typ: pgtype.Record, mod: -1}}
}

// typedArg gives parameters without a type in argument i the type that the caller has for them, else text.
func (s *scope) typedArg(fn EngineFunc, args []*Arg, i int, a *expr) *expr {
	var types []uint32
	if t, ok := s.az.r.(ArgTyper); ok && fn.Args[i] == pgtype.Any {
		types = t.ArgTypes(fn, args, i)
	}
	typed := func(a *expr, part int) *expr {
		if a.typ != pgtype.Unknown || a.kind == kConst {
			return a
		}
		typ := uint32(pgtype.Text)
		if part < len(types) {
			typ = types[part]
		}
		return s.coerceTo(a, typ, -1, implicitCoercion, "")
	}
	if a.kind != kRow {
		return typed(a, 0)
	}
	row := *a
	row.args = slices.Clone(a.args)
	for k, f := range row.args {
		row.args[k] = typed(f, k)
	}
	return &row
}

// drivenArg is an argument that comes from a part, perhaps under a cast; nil for another expression.
func drivenArg(a *expr) *Arg {
	var of *expr
	a.walk(func(x *expr) bool {
		if x.part != nil {
			of = x
		}
		return true
	})
	if of == nil {
		return nil
	}
	return &Arg{Type: a.typ, Mod: a.mod, Driven: true, Column: of.col}
}

// rangeFunction is transformRangeFunction.
func (s *scope) rangeFunction(r *pg_query.RangeFunction) *fromItem {
	if len(r.Coldeflist) > 0 {
		s.az.unsupported(-1, "a column definition list")
	}
	name, colnames := aliasOf(r.Alias)
	var calls []*expr
	var funcNames []string
	clause := s.clause
	s.clause = "functions in FROM"
	for _, f := range r.Functions {
		items := f.GetList().GetItems()
		if len(items) > 1 && items[1].GetNode() != nil && len(items[1].GetList().GetItems()) > 0 {
			s.az.unsupported(-1, "a column definition list")
		}
		node := items[0]
		fc := node.GetFuncCall()
		if fc == nil {
			calls = append(calls, s.exprNoUnknown(node))
			funcNames = append(funcNames, columnName(node))
			continue
		}
		if len(r.Functions) == 1 && !r.Ordinality {
			if sub := s.lookupJoin(fc, r.Alias); sub != nil {
				s.clause = clause
				return s.rangeSubselect(sub)
			}
		}
		if len(r.Functions) == 1 && !r.Ordinality {
			if item := s.drivenCall(fc, r.Alias); item != nil {
				s.clause = clause
				return item
			}
		}
		if item := s.catalogFunction(fc, name, colnames); item != nil && len(r.Functions) == 1 && !r.Ordinality {
			s.clause = clause
			return item
		}
		// unnest(a, b) is ROWS FROM (unnest(a), unnest(b)).
		if len(fc.Args) > 1 && lastName(fc.Funcname) == "unnest" && len(fc.AggOrder) == 0 && !fc.FuncVariadic {
			for _, a := range fc.Args {
				one := &pg_query.FuncCall{Funcname: fc.Funcname, Args: []*pg_query.Node{a}, Location: fc.Location}
				calls = append(calls, s.funcCall(one, true))
				funcNames = append(funcNames, "unnest")
			}
			continue
		}
		calls = append(calls, s.funcCall(fc, true))
		funcNames = append(funcNames, lastName(fc.Funcname))
	}
	s.clause = clause
	if len(calls) == 1 && calls[0].srf != nil && calls[0].srf.rel != nil {
		return s.engineItem(calls[0].srf.rel, name, colnames, funcNames[0], r.Ordinality)
	}
	return s.functionItem(calls, funcNames, name, colnames, r.Ordinality)
}

// catalogFunction is a system function without arguments that the caller has as a relation: pg_get_keywords() and its kind.
func (s *scope) catalogFunction(f *pg_query.FuncCall, name string, colnames []string) *fromItem {
	names := stringList(f.Funcname)
	fn := names[len(names)-1]
	if len(f.Args) > 0 || len(names) > 1 && names[0] != "pg_catalog" || srfTemplates[fn] != nil {
		return nil
	}
	setOf := false
	for _, p := range catalog().procs[fn] {
		setOf = setOf || p.setOf
	}
	if !setOf {
		return nil
	}
	rel, err := s.az.r.ResolveRelation("pg_catalog", fn)
	s.az.check(err, f.Location)
	if rel == nil {
		return nil
	}
	if name == "" {
		name = fn
	}
	return s.relItem(s.az.addRel(rel, name, f.Location), name, colnames, f.Location)
}

func (s *scope) engineItem(e *relEntry, name string, colnames []string, fn string, ordinality bool) *fromItem {
	if ordinality {
		s.az.unsupported(-1, "WITH ORDINALITY on function %s", fn)
	}
	if name == "" {
		name = fn
	}
	e.use.Alias = name
	return s.relItem(e, name, colnames, -1)
}

// functionItem writes functions in FROM as a lateral subquery over their lists.
func (s *scope) functionItem(calls []*expr, funcNames []string, name string, colnames []string, ordinality bool) *fromItem {
	alias := s.az.alias()
	label := name
	if label == "" {
		label = funcNames[0]
	}
	it := &nsItem{name: label, relVisible: true, colsVisible: true}
	it.scalarFunc = len(calls) == 1 && calls[0].srf != nil && calls[0].srf.cols == nil || len(calls) == 1 && calls[0].srf == nil && calls[0].kind != kRow
	type out struct {
		call  int
		field int // -1: the value itself
	}
	var outs []out
	for i, c := range calls {
		if c.srf != nil && c.srf.cols != nil {
			for j, f := range c.srf.cols {
				e := &expr{kind: kColumn, typ: f.e.typ, mod: f.e.mod, prec: f.e.prec, scale: f.e.scale, loose: f.e.loose}
				it.cols = append(it.cols, &nsCol{name: f.name, e: e})
				outs = append(outs, out{i, j})
			}
			continue
		}
		e := &expr{kind: kColumn, typ: c.typ, mod: c.mod, prec: c.prec, scale: c.scale, loose: c.loose, dims: c.dims, fields: c.fields, item: it, def: c}
		cn := funcNames[i]
		if name != "" && len(calls) == 1 {
			cn = name
		}
		if c.srf != nil && c.srf.column != "" {
			cn = c.srf.column
		}
		it.cols = append(it.cols, &nsCol{name: cn, e: e})
		outs = append(outs, out{i, -1})
	}
	if ordinality {
		it.cols = append(it.cols, &nsCol{name: "ordinality", e: &expr{kind: kColumn, typ: pgtype.Int8, mod: -1}})
	}
	for i, c := range it.cols {
		c.e.ident = alias + ".c" + strconv.Itoa(i+1)
		c.e.loc = -1
	}
	s.renameColumns(it, colnames, -1)
	for _, c := range it.cols {
		c.e.name = label + "." + c.name
	}
	write := func(b *strings.Builder) {
		if len(calls) == 1 && !ordinality && calls[0].srf != nil && calls[0].srf.native != "" && constantArgs(calls[0].srf.args) {
			nat := call(pgtype.Int8, calls[0].srf.native, calls[0].srf.args...)
			b.WriteString("(SELECT CAST(g.c1 AS " + duckType(calls[0].typ, -1) + ") AS c1 FROM ")
			nat.write(b)
			b.WriteString(" AS g(c1)) AS " + alias)
			return
		}
		b.WriteString("LATERAL (SELECT ")
		for i, o := range outs {
			comma(b, i)
			if o.field >= 0 {
				b.WriteString("struct_extract_at(u.u" + strconv.Itoa(o.call) + ", " + strconv.Itoa(o.field+1) + ")")
			} else {
				b.WriteString("u.u" + strconv.Itoa(o.call))
			}
			b.WriteString(" AS c" + strconv.Itoa(i+1))
		}
		if ordinality {
			b.WriteString(", u.n AS c" + strconv.Itoa(len(outs)+1))
		}
		b.WriteString(" FROM (SELECT ")
		var lens []string
		for i, c := range calls {
			comma(b, i)
			if c.srf != nil {
				c.write(b)
				lens = append(lens, "coalesce("+call(pgtype.Int8, "len($1)", c.srf.list).sql()+", 0)")
			} else {
				// A plain function is one row.
				b.WriteString("unnest([")
				c.write(b)
				b.WriteString("])")
				lens = append(lens, "1")
			}
			b.WriteString(" AS u" + strconv.Itoa(i))
		}
		if ordinality {
			n := lens[0]
			if len(lens) > 1 {
				n = "greatest(" + strings.Join(lens, ", ") + ")"
			}
			b.WriteString(", unnest(generate_series(1, " + n + ")) AS n")
		}
		b.WriteString(") AS u) AS " + alias)
	}
	return &fromItem{ns: []*nsItem{it}, locks: []*lockItem{{name: it.name, function: true}}, write: write}
}

func constantArgs(args []*expr) bool {
	for _, a := range args {
		// DuckDB cannot prepare a table function over parameters.
		plain := a.isConstantLike()
		a.walk(func(x *expr) bool {
			plain = plain && x.kind != kParam && x.kind != kSession && !(x.kind == kConst && x.null)
			return plain
		})
		if !plain {
			return false
		}
	}
	return true
}
