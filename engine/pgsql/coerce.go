package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// coerce converts e to a type in a context: literals are read, parameters take the type, casts are written. ok is false when PostgreSQL has no such cast.
func (s *scope) coerce(e *expr, typ uint32, mod int32, ctx coercionContext) (*expr, bool) {
	az := s.az
	if typ == pgtype.Any || typ == pgtype.Unknown || isPolymorphic(typ) {
		return e, true
	}
	if e.typ == pgtype.Unknown {
		switch e.kind {
		case kConst:
			if e.null {
				c := nullConst(typ, e.loc)
				c.mod = mod
				shapeNumeric(c, mod)
				return c, true
			}
			return s.literal(e.lit, typ, mod, e.loc, ctx), true
		case kParam:
			return s.paramAs(e, typ, mod, ctx), true
		}
		c := *e
		c.typ = pgtype.Text
		e = &c
	}
	if e.kind == kParam && e.typ != typ && az.params[e.param-1].oid == e.typ {
		// a typed parameter is cast like any other value
		_ = e
	}
	if e.typ == typ {
		return s.applyMod(e, typ, mod, ctx), true
	}
	if e.typ == pgtype.Record && typ == pgtype.Record {
		return e, true
	}
	ok, _ := coercePath(e.typ, typ, ctx)
	if !ok {
		return e, false
	}
	az.noteCast(e.typ, typ)
	c := s.convert(e, typ, mod, ctx)
	return s.applyMod(c, typ, mod, ctx), true
}

// coerceTo is coerce that fails with PostgreSQL's message for a clause.
func (s *scope) coerceTo(e *expr, typ uint32, mod int32, ctx coercionContext, clause string) *expr {
	c, ok := s.coerce(e, typ, mod, ctx)
	if !ok {
		if clause == "" {
			s.cannotCast(e, typ)
		}
		s.az.fail(pgerr.DatatypeMismatch, e.loc, "argument of %s must be type %s, not type %s", clause, typeName(typ), typeName(e.typ))
	}
	return c
}

func (s *scope) cannotCast(e *expr, typ uint32) {
	s.az.fail(pgerr.CannotCoerce, e.loc, "cannot cast type %s to %s", typeName(e.typ), typeName(typ))
}

// paramAs gives an untyped parameter its type.
func (s *scope) paramAs(e *expr, typ uint32, mod int32, ctx coercionContext) *expr {
	p := &s.az.params[e.param-1]
	switch {
	case p.oid == 0 || p.oid == pgtype.Unknown:
		p.oid = typ
	case p.oid != typ:
		er := s.az.errorAt(ambiguousParameter, e.loc, "inconsistent types deduced for parameter $%d", e.param)
		er.Detail = typeName(p.oid) + " versus " + typeName(typ)
		panic(er)
	}
	c := newParam(e.param, typ, e.loc)
	return s.applyMod(c, typ, mod, ctx)
}

// ambiguousParameter is ERRCODE_AMBIGUOUS_PARAMETER.
const ambiguousParameter pgerr.Code = "42P08"

// paramScale is the scale at which a numeric parameter enters arithmetic.
const paramScale = 18

func newParam(n int, typ uint32, loc int32) *expr {
	e := &expr{kind: kParam, typ: typ, mod: -1, loc: loc, param: n}
	if typ == pgtype.Numeric {
		// Alone it is shown as it came: it is bound as PostgreSQL's text.
		e.prec, e.scale, e.loose = 38, paramScale, true
		e.show = &expr{kind: kParam, typ: pgtype.Text, mod: -1, loc: loc, param: n}
	}
	if elemType(typ) == pgtype.Numeric {
		e.prec, e.scale, e.loose = 38, DefaultNumericScale, true
	}
	return e
}

// applyMod is coerce_type_typmod: the length, precision or scale of the target.
func (s *scope) applyMod(e *expr, typ uint32, mod int32, ctx coercionContext) *expr {
	if mod < 0 || e.mod == mod && e.typ == typ {
		return e
	}
	if e.null && e.kind == kConst {
		c := *e
		c.mod = mod
		return &c
	}
	var out *expr
	if te := elemType(typ); te != 0 && e.dims <= 1 {
		v := &expr{kind: kColumn, typ: te, mod: -1, ident: lambdaVar, prec: e.prec, scale: e.scale, loose: e.loose}
		elem := s.applyMod(v, te, mod, ctx)
		if elem == v {
			return e
		}
		out = call(typ, "list_transform($1, lambda v: $2)", e, elem)
		out.mod, out.prec, out.scale, out.loc, out.base = mod, elem.prec, elem.scale, e.loc, e.base
		return out
	}
	n := strconv.Itoa(int(mod - 4))
	switch typ {
	case pgtype.Varchar, pgtype.BPChar:
		switch {
		case e.kind == kConst && len([]rune(e.lit)) <= int(mod-4):
			c := *e
			out = &c
		case ctx == explicitCoercion:
			out = call(typ, "left($1, "+n+")", e)
		default:
			name := typeModName(typ, mod)
			out = call(typ, "skade_fn.length_check($1, "+n+", "+quote(name)+")", e)
		}
	case pgtype.Numeric:
		p, sc, ok := pgtype.NumericPS(mod)
		if !ok {
			return e
		}
		if p > 38 {
			p = 38
		}
		if sc < 0 {
			// A negative scale rounds left of the point.
			out = call(typ, "CAST(round(CAST($1 AS DECIMAL(38,0)), "+strconv.Itoa(int(sc))+") AS DECIMAL(38,0))", e)
			out.prec, out.scale = 38, 0
			break
		}
		out = decimalCast(e, int(p), int(min(sc, p)))
	case pgtype.Timestamp, pgtype.TimestampTZ, pgtype.Time:
		if mod >= 6 {
			c := *e
			out = &c
			break
		}
		unit := int64(1)
		for i := mod; i < 6; i++ {
			unit *= 10
		}
		f := map[uint32]string{pgtype.Timestamp: "ts_round", pgtype.TimestampTZ: "tstz_round", pgtype.Time: "time_round"}[typ]
		out = call(typ, "skade_fn."+f+"($1, "+strconv.FormatInt(unit, 10)+")", e)
	default:
		c := *e
		out = &c
	}
	out.typ, out.mod, out.loc = typ, mod, e.loc
	return out
}

func typeModName(typ uint32, mod int32) string { return pgtype.Format(typ, mod) }

func decimalCast(e *expr, p, sc int) *expr {
	if e.kind == kConst && e.typ == pgtype.Numeric && !e.null && e.scale == sc && e.prec <= p {
		c := *e
		c.prec = p
		return &c
	}
	out := call(pgtype.Numeric, "CAST($1 AS DECIMAL("+strconv.Itoa(p)+","+strconv.Itoa(sc)+"))", e)
	out.prec, out.scale, out.loc = p, sc, e.loc
	return out
}

// commonType is select_common_type.
func (s *scope) commonType(es []*expr, clause string) uint32 {
	var p *expr
	for _, e := range es {
		if e.typ != pgtype.Unknown {
			p = e
			break
		}
	}
	if p == nil {
		return pgtype.Unknown
	}
	ptype := p.typ
	pcat, ppref := category(ptype)
	for _, e := range es {
		t := e.typ
		if t == ptype || t == pgtype.Unknown {
			continue
		}
		cat, pref := category(t)
		if cat != pcat {
			s.az.fail(pgerr.DatatypeMismatch, e.loc, "%s types %s and %s cannot be matched", clause, typeName(ptype), typeName(t))
		}
		if !ppref && canCoerce(ptype, t, implicitCoercion) && !canCoerce(t, ptype, implicitCoercion) {
			ptype, pcat, ppref = t, cat, pref
		}
	}
	return ptype
}

// commonTypeText is commonType with unknown made text, as CASE, COALESCE and the like do.
func (s *scope) commonTypeText(es []*expr, clause string) uint32 {
	t := s.commonType(es, clause)
	if t == pgtype.Unknown {
		return pgtype.Text
	}
	return t
}

// coerceCommon is coerce_to_common_type.
func (s *scope) coerceCommon(e *expr, typ uint32, clause string) *expr {
	c, ok := s.coerce(e, typ, -1, implicitCoercion)
	if !ok {
		s.az.fail(pgerr.CannotCoerce, e.loc, "%s could not convert type %s to %s", clause, typeName(e.typ), typeName(typ))
	}
	return c
}

// commonShape makes numeric operands one DECIMAL wide enough for all, and says whether the result is loose.
func commonShape(out *expr, es []*expr) {
	if out.typ != pgtype.Numeric {
		if len(es) > 0 {
			out.mod = es[0].mod
			for _, e := range es {
				if e.mod != out.mod {
					out.mod = -1
				}
			}
		}
		return
	}
	ints := 0
	out.prec, out.scale = 0, 0
	for _, e := range es {
		out.scale = max(out.scale, e.scale)
		ints = max(ints, e.prec-e.scale)
		out.loose = out.loose || e.loose
	}
	out.prec = min(38, ints+out.scale)
	out.mod = -1
	if len(es) > 0 {
		out.mod = es[0].mod
		for _, e := range es {
			if e.mod != out.mod {
				out.mod = -1
			}
		}
	}
}

// shapeNumeric sets the DECIMAL of a numeric constant NULL.
func shapeNumeric(e *expr, mod int32) {
	if e.typ == pgtype.Numeric {
		if mod >= 0 {
			e.prec, e.scale = numericShape(mod)
		} else {
			e.prec, e.scale = 1, 0
		}
	}
}

// intDigits is the number of decimal digits of an integer type.
var intDigits = map[uint32]int{pgtype.Int2: 5, pgtype.Int4: 10, pgtype.Int8: 19}

// convert writes the cast from e.typ to typ, which exists.
func (s *scope) convert(e *expr, typ uint32, mod int32, ctx coercionContext) *expr {
	out := s.convertValue(e, typ, mod, ctx)
	if out == e {
		c := *e
		out = &c
	}
	out.typ, out.mod, out.loc = typ, -1, e.loc
	out.bare = nil
	if lossless(e.typ, typ) {
		out.bare = e.keyColumn()
	}
	if typ != pgtype.Numeric && typ != pgtype.BPChar {
		out.show = nil
	}
	return out
}

func (s *scope) convertValue(e *expr, typ uint32, mod int32, ctx coercionContext) *expr {
	from := e.typ
	if e.kind == kConst && e.null {
		c := nullConst(typ, e.loc)
		shapeNumeric(c, mod)
		return c
	}
	fe, te := arrayElem(from), elemType(typ)
	switch {
	case fe != 0 && te != 0:
		return s.convertArray(e, fe, te, typ, ctx)
	case isString(typ):
		return s.toString(e, typ)
	case isString(from):
		return s.fromString(e, typ, mod)
	}
	switch typ {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		if from == pgtype.JSONB || from == pgtype.JSON {
			return call(typ, "CAST(CAST($1 AS DECIMAL(38,9)) AS "+duckType(typ, -1)+")", e)
		}
		return s.toInteger(e, typ)
	case pgtype.Numeric:
		return s.toNumeric(e, mod)
	case pgtype.JSONB:
		return call(typ, "skade_jsonb_in($1)", e)
	case pgtype.JSON:
		return call(typ, "$1", e)
	case pgtype.Interval:
		if from == pgtype.Time {
			return call(typ, "skade_fn.time_interval($1)", e)
		}
	case pgtype.Time:
		if from == pgtype.Interval {
			return call(typ, "skade_fn.interval_time($1)", e)
		}
		if from == pgtype.TimestampTZ {
			return call(typ, "CAST(CAST($1 AS TIMESTAMP) AS TIME)", e)
		}
	case pgtype.Float4, pgtype.Float8:
		if e.kind == kConst && (from == pgtype.Numeric || intDigits[from] > 0) {
			return s.literal(e.lit, typ, -1, e.loc, ctx)
		}
	}
	if isOIDLike(from) && isOIDLike(typ) {
		return call(typ, "$1", e)
	}
	return call(typ, "CAST($1 AS "+duckType(typ, -1)+")", e)
}

func (s *scope) toInteger(e *expr, typ uint32) *expr {
	if e.kind == kConst && intDigits[e.typ] > 0 {
		bits := map[uint32]int{pgtype.Int2: 16, pgtype.Int4: 32, pgtype.Int8: 64}[typ]
		if _, err := strconv.ParseInt(e.lit, 10, bits); err == nil {
			return constant(typ, e.lit, e.loc)
		}
	}
	if e.kind == kConst && !e.null && e.typ == pgtype.Numeric && !strings.ContainsAny(e.lit, ".eEnN") {
		if _, err := strconv.ParseInt(e.lit, 10, 64); err != nil {
			s.az.fail(pgerr.NumericValueOutOfRange, -1, "%s out of range", typeName(typ))
		}
	}
	return call(typ, "CAST($1 AS "+duckType(typ, -1)+")", e)
}

func (s *scope) toNumeric(e *expr, mod int32) *expr {
	switch e.typ {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8, pgtype.OID:
		if e.kind == kConst {
			return numericConst(e.lit, e.loc)
		}
		d := intDigits[e.typ]
		if d == 0 {
			d = 19
		}
		return decimalCast(e, d, 0)
	case pgtype.Float4, pgtype.Float8:
		name := "skade_num_from_float8"
		if e.typ == pgtype.Float4 {
			name = "skade_num_from_float4"
		}
		return exactNumeric(name+"(CAST($1 AS DOUBLE))", e)
	}
	out := call(pgtype.Numeric, "CAST($1 AS DECIMAL(38,9))", e)
	out.prec, out.scale, out.loose = 38, 9, true
	return out
}

// exactScale is the scale at which a numeric known by its text enters further arithmetic.
const exactScale = 16

// exactNumeric is a numeric computed as PostgreSQL's text: shown as it is, and a DECIMAL in further arithmetic.
func exactNumeric(tmpl string, args ...*expr) *expr {
	text := call(pgtype.Text, tmpl, args...)
	e := call(pgtype.Numeric, "CAST($1 AS DECIMAL(38,16))", text)
	e.prec, e.scale, e.show = 38, exactScale, text
	return e
}

func (s *scope) convertArray(e *expr, from, to, typ uint32, ctx coercionContext) *expr {
	if from == to {
		c := *e
		return &c
	}
	v := &expr{kind: kColumn, typ: from, mod: -1, ident: lambdaVar, prec: e.prec, scale: e.scale, loose: e.loose}
	conv := s.convert(v, to, -1, ctx)
	var out *expr
	if e.dims > 1 {
		out = call(typ, "list_transform($1, lambda w: list_transform(w, lambda v: $2))", e, conv)
	} else if conv.kind == kColumn {
		c := *e
		out = &c
	} else {
		out = call(typ, "list_transform($1, lambda v: $2)", e, conv)
	}
	out.prec, out.scale, out.loose, out.dims = conv.prec, conv.scale, conv.loose, e.dims
	return out
}

// fromString is the input function applied to text that is only known at run time.
func (s *scope) fromString(e *expr, typ uint32, mod int32) *expr {
	if e.kind == kConst && !e.null {
		return s.literal(e.lit, typ, mod, e.loc, explicitCoercion)
	}
	if te := elemType(typ); te != 0 {
		v := &expr{kind: kColumn, typ: pgtype.Text, mod: -1, ident: lambdaVar}
		conv := s.convert(v, te, -1, explicitCoercion)
		out := call(typ, "list_transform(skade_array_in($1), lambda v: $2)", e, conv)
		out.prec, out.scale, out.loose = conv.prec, conv.scale, conv.loose
		return out
	}
	if order := s.az.dateOrder(); order != pgenc.MDY {
		code := constant(pgtype.Text, strconv.Itoa(int(order)), -1)
		switch typ {
		case pgtype.Date:
			return call(typ, "skade_date_in_order($1, $2)", e, code)
		case pgtype.Timestamp:
			return call(typ, "skade_timestamp_in_order($1, $2)", e, code)
		case pgtype.TimestampTZ:
			return call(typ, "skade_timestamptz_in_order($1, current_setting('TimeZone'), $2)", e, code)
		}
	}
	switch typ {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8, pgtype.OID:
		name := map[uint32]string{pgtype.Int2: "int2", pgtype.Int4: "int4", pgtype.Int8: "int8", pgtype.OID: "oid"}[typ]
		return call(typ, "skade_fn."+name+"_in($1)", e)
	case pgtype.Numeric:
		return exactNumeric("skade_num_in($1)", e)
	case pgtype.Float8:
		return call(typ, "skade_float8_in($1)", e)
	case pgtype.Float4:
		return call(typ, "CAST(skade_float8_in($1) AS FLOAT)", e)
	case pgtype.Bool:
		return call(typ, "skade_bool_in($1)", e)
	case pgtype.Interval:
		return call(typ, "skade_interval_in($1)", e)
	case pgtype.Bytea:
		return call(typ, "skade_bytea_in($1)", e)
	case pgtype.JSON:
		return call(typ, "skade_json_in($1)", e)
	case pgtype.JSONB:
		return call(typ, "skade_jsonb_in($1)", e)
	case pgtype.Date:
		return call(typ, "skade_date_in($1)", e)
	case pgtype.Timestamp:
		return call(typ, "skade_timestamp_in($1)", e)
	case pgtype.TimestampTZ:
		return call(typ, "skade_fn.timestamptz_in($1)", e)
	case pgtype.Time:
		return call(typ, "CAST($1 AS TIME)", e)
	case pgtype.UUID:
		return call(typ, "CAST(trim($1, '{}') AS UUID)", e)
	}
	if isReg(typ) {
		return call(typ, CatalogSchema+"."+regNames[typ]+"_in($1)", e)
	}
	s.az.unsupported(e.loc, "a cast to type %s", typeName(typ))
	return nil
}
