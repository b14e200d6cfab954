package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// specialForms are calls that are looked at before their arguments; nil means an ordinary call.
var specialForms map[string]func(*scope, *pg_query.FuncCall) *expr

// specialFunctions are functions whose text depends on more than a template can say.
var specialFunctions map[string]func(*scope, *funcCallInfo) *expr

func init() {
	session := func(v SessionValue, typ uint32) func(*scope, *funcCallInfo) *expr {
		return func(s *scope, _ *funcCallInfo) *expr { return s.az.sessionValue(v, typ) }
	}
	specialFunctions = map[string]func(*scope, *funcCallInfo) *expr{
		"now": session(TransactionTimestamp, pgtype.TimestampTZ), "transaction_timestamp": session(TransactionTimestamp, pgtype.TimestampTZ),
		"statement_timestamp": session(StatementTimestamp, pgtype.TimestampTZ), "current_database": session(CurrentDatabase, pgtype.Name),
		"current_schema": session(CurrentSchema, pgtype.Name), "current_user": session(CurrentUser, pgtype.Name), "session_user": session(SessionUser, pgtype.Name),
		"version": session(ServerVersion, pgtype.Text), "pg_backend_pid": session(BackendPID, pgtype.Int4),
		"pg_postmaster_start_time": session(PostmasterStart, pgtype.TimestampTZ), "pg_conf_load_time": session(ConfLoadTime, pgtype.TimestampTZ),
		"inet_client_port": session(ClientPort, pgtype.Int4), "inet_server_port": session(ServerPort, pgtype.Int4),
		"current_schemas": currentSchemas, "current_setting": currentSetting,
		"nextval": sequenceCall("skade_nextval"), "currval": sequenceCall("skade_currval"), "lastval": sequenceCall("skade_lastval"), "setval": sequenceCall("skade_setval"),
		"pg_sequence_last_value": sequenceCall("skade_sequence_last_value"),
		"concat":                 concatCall, "concat_ws": concatWS, "format": formatCall, "pg_typeof": typeofCall,
		"num_nulls": countNulls("IS NULL"), "num_nonnulls": countNulls("IS NOT NULL"),
		"round": roundCall, "trunc": truncCall, "ceil": ceilCall("ceil"), "ceiling": ceilCall("ceil"), "floor": ceilCall("floor"), "sign": signCall, "mod": modCall,
		"extract": extractCall, "date_part": datePartCall, "date_trunc": dateTruncCall, "age": ageCall, "make_interval": makeInterval,
		"json_build_object": buildObject(pgtype.JSON), "jsonb_build_object": buildObject(pgtype.JSONB),
		"json_build_array": buildArray(pgtype.JSON), "jsonb_build_array": buildArray(pgtype.JSONB),
		"to_json": toJSONCall(pgtype.JSON), "to_jsonb": toJSONCall(pgtype.JSONB), "row_to_json": toJSONCall(pgtype.JSON), "array_to_json": toJSONCall(pgtype.JSON),
		"json_extract_path": extractPath("skade_json_path"), "jsonb_extract_path": extractPath("skade_jsonb_path"),
		"json_extract_path_text": extractPath("skade_json_path_text"), "jsonb_extract_path_text": extractPath("skade_json_path_text"),
		"array_to_string": arrayToString, "array_length": arrayLength, "cardinality": cardinality, "octet_length": octetLength, "array_upper": arrayLength, "array_ndims": arrayNdims, "array_dims": arrayDims,
	}
}

func currentSchemas(s *scope, c *funcCallInfo) *expr {
	v := CurrentSchemas
	if a := c.args[0]; a.kind == kConst && a.lit == "true" {
		v = CurrentSchemasAll
	} else if a.kind != kConst {
		return call(pgtype.NameArray, "CASE WHEN $1 THEN $2 ELSE $3 END", a, s.az.sessionValue(CurrentSchemasAll, pgtype.NameArray), s.az.sessionValue(CurrentSchemas, pgtype.NameArray))
	}
	return s.az.sessionValue(v, pgtype.NameArray)
}

func currentSetting(s *scope, c *funcCallInfo) *expr {
	a := c.args[0]
	if a.kind != kConst || a.null {
		return call(pgtype.Text, CatalogSchema+".current_setting($*)", c.args...)
	}
	b := Bind{Setting: strings.ToLower(a.lit), Type: pgtype.Text}
	if len(c.args) > 1 {
		b.MissingOK = c.args[1].kind == kConst && c.args[1].lit == "true"
	}
	return s.az.bind(b)
}

// concatCall is concat(): NULLs are skipped, everything else is its text.
func concatCall(s *scope, c *funcCallInfo) *expr {
	if c.node.FuncVariadic {
		return call(pgtype.Text, "array_to_string(list_transform($1, lambda v: CAST(v AS VARCHAR)), '')", c.args[0])
	}
	texts := make([]*expr, len(c.args))
	for i, a := range c.args {
		texts[i] = boolT(a)
	}
	if len(texts) == 0 {
		return constant(pgtype.Text, "", -1)
	}
	return call(pgtype.Text, "concat($*)", texts...)
}

// boolT is a value's text by its output function: booleans are t and f there.
func boolT(e *expr) *expr {
	if e.typ == pgtype.Bool {
		return call(pgtype.Text, "CASE WHEN $1 THEN 't' WHEN NOT $1 THEN 'f' END", e)
	}
	if e.typ == pgtype.BPChar && e.mod >= 4 {
		return shown(e)
	}
	return textOf(e)
}

func concatWS(s *scope, c *funcCallInfo) *expr {
	if c.node.FuncVariadic {
		return call(pgtype.Text, "array_to_string($2, $1)", c.args...)
	}
	texts := []*expr{c.args[0]}
	for _, a := range c.args[1:] {
		texts = append(texts, boolT(a))
	}
	if len(texts) == 1 {
		return call(pgtype.Text, "CASE WHEN $1 IS NULL THEN NULL ELSE '' END", texts...)
	}
	return call(pgtype.Text, "concat_ws($*)", texts...)
}

func formatCall(s *scope, c *funcCallInfo) *expr {
	var texts []*expr
	for _, a := range c.args[1:] {
		texts = append(texts, boolT(a))
	}
	return call(pgtype.Text, "skade_format($1, $2)", c.args[0], call(pgtype.TextArray, "CAST([$*] AS VARCHAR[])", texts...))
}

func typeofCall(s *scope, c *funcCallInfo) *expr {
	typ := c.given.exprs[0].typ
	return constant(pgtype.RegType, strconv.FormatUint(uint64(typ), 10), -1)
}

func countNulls(test string) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		var t textBuilder
		t.str("(0")
		for _, a := range c.args {
			t.str(" + CAST((")
			t.expr(a)
			t.str(" " + test + ") AS INTEGER)")
		}
		t.str(")")
		return &expr{kind: kCall, typ: pgtype.Int4, mod: -1, text: t.text, args: t.args}
	}
}

// constInt is a constant integer argument.
func constInt(e *expr) (int, bool) {
	if e.kind != kConst || e.null {
		return 0, false
	}
	n, err := strconv.Atoi(e.lit)
	return n, err == nil
}

func fallback(s *scope, c *funcCallInfo) *expr {
	for _, t := range functionTable()[c.name] {
		if t.special == nil && t.args != nil && len(t.args) == len(c.args) && sameTypes(t.args, c.proc.args[:len(c.args)]) {
			return s.applyTemplate(t, c.ret, c.args)
		}
	}
	s.unmapped(c)
	return nil
}

func roundCall(s *scope, c *funcCallInfo) *expr {
	if c.ret != pgtype.Numeric {
		return fallback(s, c)
	}
	x := c.args[0]
	if len(c.args) == 1 {
		return scaled("CAST(round($1) AS DECIMAL(38,0))", x, 0)
	}
	n, ok := constInt(c.args[1])
	if !ok || n > x.scale && x.loose || n < 0 || n > 20 {
		return exactNumeric("skade_num_round($t1, CAST($2 AS BIGINT))", x, c.args[1])
	}
	if x.show != nil {
		return exactNumeric("skade_num_round($1, CAST("+strconv.Itoa(n)+" AS BIGINT))", x.show)
	}
	return scaled("CAST(round($1, "+strconv.Itoa(min(n, x.scale))+") AS DECIMAL(38,"+strconv.Itoa(n)+"))", x, n)
}

// scaled is a numeric with a scale that PostgreSQL gives it, too.
func scaled(tmpl string, x *expr, sc int) *expr {
	e := call(pgtype.Numeric, tmpl, x)
	e.prec, e.scale = 38, sc
	return e
}

func truncCall(s *scope, c *funcCallInfo) *expr {
	if c.ret != pgtype.Numeric {
		return fallback(s, c)
	}
	if len(c.args) == 1 {
		return scaled("CAST(trunc($1) AS DECIMAL(38,0))", c.args[0], 0)
	}
	return exactNumeric("skade_num_trunc($t1, CAST($2 AS BIGINT))", c.args...)
}

func ceilCall(fn string) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		if c.ret != pgtype.Numeric {
			return fallback(s, c)
		}
		return scaled("CAST("+fn+"($1) AS DECIMAL(38,0))", c.args[0], 0)
	}
}

func signCall(s *scope, c *funcCallInfo) *expr {
	if c.ret != pgtype.Numeric {
		return fallback(s, c)
	}
	return scaled("CAST(sign($1) AS DECIMAL(38,0))", c.args[0], 0)
}

func modCall(s *scope, c *funcCallInfo) *expr {
	if c.ret != pgtype.Numeric {
		return fallback(s, c)
	}
	return s.numericOperator(&operRow{name: "%", result: pgtype.Numeric}, c.args[0], c.args[1], c.node.Location)
}

// fields of extract and date_part, by PostgreSQL's names, as DuckDB's.
var dateFields = map[string]string{
	"year": "year", "years": "year", "y": "year", "yr": "year", "month": "month", "months": "month", "mon": "month", "mons": "month",
	"day": "day", "days": "day", "d": "day", "hour": "hour", "hours": "hour", "h": "hour", "minute": "minute", "minutes": "minute", "min": "minute", "m": "minute",
	"second": "second", "seconds": "second", "sec": "second", "secs": "second", "s": "second", "quarter": "quarter", "qtr": "quarter", "week": "week", "weeks": "week",
	"dow": "dow", "isodow": "isodow", "doy": "doy", "epoch": "epoch", "isoyear": "isoyear", "decade": "decade", "decades": "decade", "century": "century",
	"centuries": "century", "millennium": "millennium", "millenniums": "millennium", "milliseconds": "milliseconds", "millisecond": "milliseconds", "ms": "milliseconds", "msec": "milliseconds",
	"microseconds": "microseconds", "microsecond": "microseconds", "us": "microseconds", "usec": "microseconds",
	"timezone": "timezone", "timezone_hour": "timezone_hour", "timezone_minute": "timezone_minute", "julian": "julian", "jd": "julian",
}

// fieldSQL is the field of a date/time value in microseconds or units: scale is the decimals that extract shows, micros says whether the text yields microseconds.
func (s *scope) dateField(c *funcCallInfo) (name string, x *expr) {
	f := c.args[0]
	x = c.args[1]
	if f.kind != kConst || f.null {
		return "", x
	}
	name = dateFields[strings.ToLower(f.lit)]
	if name == "" {
		s.az.fail(pgerr.InvalidParameterValue, -1, "unit %q not recognized for type %s", strings.ToLower(f.lit), typeName(x.typ))
	}
	bad := false
	switch x.typ {
	case pgtype.Date:
		switch name {
		case "hour", "minute", "second", "milliseconds", "microseconds", "timezone", "timezone_hour", "timezone_minute":
			bad = true
		}
	case pgtype.Timestamp:
		bad = strings.HasPrefix(name, "timezone")
	case pgtype.Time:
		switch name {
		case "hour", "minute", "second", "milliseconds", "microseconds", "epoch":
		default:
			bad = true
		}
	case pgtype.Interval:
		switch name {
		case "dow", "isodow", "doy", "week", "isoyear", "julian", "timezone", "timezone_hour", "timezone_minute":
			bad = true
		}
	}
	if bad {
		s.az.fail(pgerr.FeatureNotSupported, -1, "unit %q not supported for type %s", strings.ToLower(f.lit), typeName(x.typ))
	}
	return name, x
}

// extractCall is EXTRACT: numeric with PostgreSQL's scales.
func extractCall(s *scope, c *funcCallInfo) *expr {
	name, x := s.dateField(c)
	if name == "" {
		s.az.unsupported(c.node.Location, "extract with a field that is not a constant")
	}
	switch name {
	case "epoch":
		switch x.typ {
		case pgtype.Date:
			return scaled("CAST(epoch($1) AS DECIMAL(38,0))", x, 0)
		case pgtype.Interval:
			return scaled("(CAST(skade_interval_epoch_us($1) AS DECIMAL(38,0)) * CAST(0.000001 AS DECIMAL(7,6)))", x, 6)
		case pgtype.Time:
			return scaled("(CAST(date_part('microseconds', $1) + 60000000 * date_part('minute', $1) + 3600000000 * date_part('hour', $1) AS DECIMAL(38,0)) * CAST(0.000001 AS DECIMAL(7,6)))", x, 6)
		}
		return scaled("(CAST(epoch_us($1) AS DECIMAL(38,0)) * CAST(0.000001 AS DECIMAL(7,6)))", x, 6)
	case "second":
		return scaled("(CAST(date_part('microseconds', $1) AS DECIMAL(38,0)) * CAST(0.000001 AS DECIMAL(7,6)))", x, 6)
	case "milliseconds":
		return scaled("(CAST(date_part('microseconds', $1) AS DECIMAL(38,0)) * CAST(0.001 AS DECIMAL(4,3)))", x, 3)
	case "julian":
		return exactNumeric("skade_num_in(CAST(date_part('julian', $1) AS VARCHAR))", x)
	}
	return scaled("CAST(date_part('"+name+"', $1) AS DECIMAL(38,0))", x, 0)
}

func datePartCall(s *scope, c *funcCallInfo) *expr {
	name, x := s.dateField(c)
	switch name {
	case "":
		return call(pgtype.Float8, "CAST(date_part($1, $2) AS DOUBLE)", c.args...)
	case "second":
		return call(pgtype.Float8, "(date_part('microseconds', $1) / 1000000.0)", x)
	case "milliseconds":
		return call(pgtype.Float8, "(date_part('microseconds', $1) / 1000.0)", x)
	case "epoch":
		if x.typ == pgtype.Interval {
			return call(pgtype.Float8, "(skade_interval_epoch_us($1) / 1000000.0)", x)
		}
	}
	return call(pgtype.Float8, "CAST(date_part('"+name+"', $1) AS DOUBLE)", x)
}

func dateTruncCall(s *scope, c *funcCallInfo) *expr {
	f := c.args[0]
	if f.kind == kConst && !f.null {
		name := dateFields[strings.ToLower(f.lit)]
		switch name {
		case "", "dow", "isodow", "doy", "epoch", "isoyear", "timezone", "timezone_hour", "timezone_minute", "julian":
			s.az.fail(pgerr.InvalidParameterValue, -1, "unit %q not recognized for type %s", strings.ToLower(f.lit), typeName(c.args[1].typ))
		}
		f = constant(pgtype.Text, name, f.loc)
	}
	if len(c.args) == 3 {
		return call(c.ret, "timezone($3, date_trunc($1, timezone($3, $2)))", f, c.args[1], c.args[2])
	}
	return call(c.ret, "CAST(date_trunc($1, $2) AS "+duckType(c.ret, -1)+")", f, c.args[1])
}

func ageCall(s *scope, c *funcCallInfo) *expr {
	if len(c.args) == 2 {
		return call(pgtype.Interval, "age($1, $2)", c.args...)
	}
	switch c.args[0].typ {
	case pgtype.Timestamp, pgtype.TimestampTZ:
		today := call(c.args[0].typ, "CAST(date_trunc('day', $1) AS "+duckType(c.args[0].typ, -1)+")", s.az.sessionValue(TransactionTimestamp, pgtype.TimestampTZ))
		return call(pgtype.Interval, "age($1, $2)", today, c.args[0])
	case pgtype.XID:
		return call(pgtype.Int4, CatalogSchema+".xid_age($1)", c.args[0])
	}
	s.unmapped(c)
	return nil
}

// makeInterval takes its arguments by position or name; what is left out is 0.
func makeInterval(s *scope, c *funcCallInfo) *expr {
	zero := constant(pgtype.Int4, "0", -1)
	args := make([]*expr, 7)
	for i := range args {
		args[i] = zero
		if i < len(c.args) && c.args[i] != nil {
			args[i] = c.args[i]
		}
	}
	return call(pgtype.Interval, "(to_months($1 * 12 + $2) + to_days($3 * 7 + $4) + to_microseconds(CAST(round(($5 * 3600.0 + $6 * 60.0 + $7) * 1000000) AS BIGINT)))", args...)
}

// toJSON is to_json / to_jsonb of a value: its JSON text.
func (s *scope) toJSON(e *expr, typ uint32) *expr {
	switch {
	case e.typ == pgtype.JSONB, e.typ == pgtype.JSON && typ == pgtype.JSON:
		return e
	case e.typ == pgtype.JSON:
		return call(typ, "skade_jsonb_in($1)", e)
	case e.typ == pgtype.Bool, isIntType(e.typ), e.typ == pgtype.Numeric && true:
		return textOf(e)
	case e.typ == pgtype.Float4, e.typ == pgtype.Float8:
		return call(typ, "skade_json_number($1)", textOf(e))
	case e.typ == pgtype.Timestamp:
		return call(typ, "skade_json_quote(replace($1, ' ', 'T'))", textOf(e))
	case e.typ == pgtype.TimestampTZ:
		return call(typ, "skade_json_quote(skade_fn.timestamptz_json($1))", e)
	case e.kind == kRow:
		names := make([]*expr, 0, 2*len(e.args))
		for i, a := range e.args {
			name := "f" + strconv.Itoa(i+1)
			if i < len(e.names) {
				name = e.names[i]
			}
			names = append(names, constant(pgtype.Text, name, -1), a)
		}
		return s.jsonObject(names, typ, true)
	case e.typ == pgtype.Record && e.fields != nil:
		row := &expr{kind: kRow, typ: pgtype.Record, mod: -1, loc: e.loc}
		for i, f := range e.fields {
			row.args = append(row.args, fieldOf(e, i, f))
			row.names = append(row.names, f.name)
		}
		return call(typ, "CASE WHEN $1 IS NULL THEN NULL ELSE $2 END", e, s.toJSON(row, typ))
	case arrayElem(e.typ) != 0:
		v := &expr{kind: kColumn, typ: arrayElem(e.typ), mod: -1, ident: lambdaVar, prec: e.prec, scale: e.scale, loose: e.loose, fields: e.fields}
		sep := "','"
		if typ == pgtype.JSONB {
			sep = "', '"
		}
		inner := call(pgtype.Text, "coalesce($1, 'null')", s.toJSON(v, typ))
		if e.dims > 1 {
			return call(typ, "('[' || array_to_string(list_transform($1, lambda w: '[' || array_to_string(list_transform(w, lambda v: $2), "+sep+") || ']'), "+sep+") || ']')", e, inner)
		}
		return call(typ, "('[' || array_to_string(list_transform($1, lambda v: $2), "+sep+") || ']')", e, inner)
	}
	return call(typ, "skade_json_quote($1)", textOf(e))
}

func toJSONCall(typ uint32) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		e := s.toJSON(c.args[0], typ)
		out := call(typ, "$1", e)
		return out
	}
}

// jsonObject writes an object from keys and values; compact is row_to_json's layout.
func (s *scope) jsonObject(pairs []*expr, typ uint32, compact bool) *expr {
	open, sep, colon, end := "'{'", "', '", "' : '", "'}'"
	if compact || typ == pgtype.JSONB {
		sep, colon = "','", "':'"
	}
	var t textBuilder
	t.str("(" + open)
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			t.str(" || " + sep)
		}
		t.str(" || ")
		t.expr(call(pgtype.Text, "skade_json_key($1)", textOf(pairs[i])))
		t.str(" || " + colon + " || coalesce(")
		t.expr(s.toJSON(pairs[i+1], typ))
		t.str(", 'null')")
	}
	t.str(" || " + end + ")")
	e := &expr{kind: kCall, typ: typ, mod: -1, text: t.text, args: t.args}
	if typ == pgtype.JSONB {
		return call(typ, "skade_jsonb_in($1)", e)
	}
	return e
}

func buildObject(typ uint32) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		if len(c.args)%2 != 0 {
			name := "json_build_object()"
			if typ == pgtype.JSONB {
				name = "jsonb_build_object()"
			}
			e := pgerr.New(pgerr.InvalidParameterValue, "argument list must have even number of elements")
			e.Hint = "The arguments of " + name + " must consist of alternating keys and values."
			panic(e)
		}
		if len(c.args) == 0 {
			return constant(typ, "{}", -1)
		}
		return s.jsonObject(c.args, typ, false)
	}
}

func buildArray(typ uint32) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		var t textBuilder
		t.str("('['")
		for i, a := range c.args {
			if i > 0 {
				t.str(" || ', '")
			}
			t.str(" || coalesce(")
			t.expr(s.toJSON(a, typ))
			t.str(", 'null')")
		}
		t.str(" || ']')")
		return &expr{kind: kCall, typ: typ, mod: -1, text: t.text, args: t.args}
	}
}

func extractPath(fn string) func(*scope, *funcCallInfo) *expr {
	return func(s *scope, c *funcCallInfo) *expr {
		if c.node.FuncVariadic {
			return call(c.ret, fn+"($1, $2)", c.args...)
		}
		path := call(pgtype.TextArray, "CAST([$*] AS VARCHAR[])", c.args[1:]...)
		return call(c.ret, fn+"($1, $2)", c.args[0], path)
	}
}

func arrayToString(s *scope, c *funcCallInfo) *expr {
	a := c.args[0]
	elem := arrayElem(a.typ)
	v := &expr{kind: kColumn, typ: elem, mod: a.mod, ident: lambdaVar, prec: a.prec, scale: a.scale, loose: a.loose}
	if a.dims > 1 {
		a = call(a.typ, "flatten($1)", a)
	}
	list := a
	if inner := boolT(v); inner != v {
		list = call(pgtype.TextArray, "list_transform($1, lambda v: $2)", a, inner)
	}
	if len(c.args) == 3 {
		return call(pgtype.Text, "skade_fn.array_to_string3($1, $2, $3)", list, c.args[1], c.args[2])
	}
	return call(pgtype.Text, "skade_fn.array_to_string2($1, $2)", list, c.args[1])
}

// arrayLength is array_length and array_upper: NULL for an empty array and for a dimension that is not there.
func arrayLength(s *scope, c *funcCallInfo) *expr {
	a, d := c.args[0], c.args[1]
	shift := ""
	if c.name == "array_upper" && (a.typ == pgtype.Int2Vector || a.typ == pgtype.OIDVector) {
		shift = " - 1"
	}
	if a.dims > 1 {
		return call(pgtype.Int4, "CASE $2 WHEN 1 THEN CAST(nullif(len($1), 0) AS INTEGER) WHEN 2 THEN CAST(nullif(len($1[1]), 0) AS INTEGER) END", a, d)
	}
	return call(pgtype.Int4, "CASE WHEN $2 = 1 THEN CAST(nullif(len($1), 0) AS INTEGER)"+shift+" END", a, d)
}

func arrayNdims(s *scope, c *funcCallInfo) *expr {
	n := max(1, c.args[0].dims)
	return call(pgtype.Int4, "CASE WHEN len($1) > 0 THEN "+strconv.Itoa(n)+" END", c.args[0])
}

func arrayDims(s *scope, c *funcCallInfo) *expr {
	if c.args[0].dims > 1 {
		return call(pgtype.Text, "CASE WHEN len($1) > 0 THEN '[1:' || len($1) || '][1:' || len($1[1]) || ']' END", c.args[0])
	}
	return call(pgtype.Text, "CASE WHEN len($1) > 0 THEN '[1:' || len($1) || ']' END", c.args[0])
}

// cardinality counts the elements of all dimensions.
func cardinality(s *scope, c *funcCallInfo) *expr {
	if c.args[0].dims > 1 {
		return call(pgtype.Int4, "CAST(len($1) * coalesce(len($1[1]), 0) AS INTEGER)", c.args[0])
	}
	return call(pgtype.Int4, "CAST(len($1) AS INTEGER)", c.args[0])
}

// octetLength counts the padding of character(n).
func octetLength(s *scope, c *funcCallInfo) *expr {
	if c.args[0].typ == pgtype.Bytea {
		return call(pgtype.Int4, "CAST(octet_length($1) AS INTEGER)", c.args[0])
	}
	return call(pgtype.Int4, "CAST(strlen($1) AS INTEGER)", padded(c.args[0]))
}

// padded is character(n) with its trailing spaces; other strings as they are.
func padded(e *expr) *expr {
	if e.typ != pgtype.BPChar || e.mod < 4 {
		return e
	}
	return call(pgtype.Text, "rpad($1, "+strconv.Itoa(int(e.mod-4))+", ' ')", e)
}
