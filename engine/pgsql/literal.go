package pgsql

import (
	"math"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// literal reads an unknown literal as a type, with PostgreSQL's input function and its errors.
func (s *scope) literal(lit string, typ uint32, mod int32, loc int32, ctx coercionContext) *expr {
	az := s.az
	bad := func(err error) {
		if err == nil {
			return
		}
		if e := pgerr.As(err); e != nil {
			panic(e.WithPosition(az.src.position(loc)))
		}
		az.fail(pgerr.InvalidTextRepresentation, loc, "invalid input syntax for type %s: %q", typeName(typ), lit)
	}
	style := pgenc.Style{Order: az.dateOrder()}
	e := constant(typ, lit, loc)
	if te := elemType(typ); te != 0 {
		return s.arrayLiteral(lit, te, typ, mod, loc, ctx)
	}
	switch typ {
	case pgtype.Text, pgtype.Varchar, pgtype.Name, pgtype.BPChar, pgtype.Char:
		c := constant(pgtype.Text, lit, loc)
		return s.applyMod(s.toString(c, typ), typ, mod, ctx)
	case pgtype.Unknown:
		return e
	case pgtype.Bool:
		v, err := pgenc.ParseBool([]byte(lit))
		bad(err)
		e.lit = strconv.FormatBool(v)
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		v, err := pgenc.ParseInt8([]byte(lit))
		switch typ {
		case pgtype.Int2:
			var n int16
			n, err = pgenc.ParseInt2([]byte(lit))
			v = int64(n)
		case pgtype.Int4:
			var n int32
			n, err = pgenc.ParseInt4([]byte(lit))
			v = int64(n)
		}
		bad(err)
		e.lit = strconv.FormatInt(v, 10)
	case pgtype.OID, pgtype.XID, pgtype.CID:
		v, err := pgenc.ParseOID([]byte(lit))
		bad(err)
		e.lit = strconv.FormatUint(uint64(v), 10)
	case pgtype.Float4, pgtype.Float8:
		bits := 64
		v, err := pgenc.ParseFloat8([]byte(lit))
		if typ == pgtype.Float4 {
			var f float32
			f, err = pgenc.ParseFloat4([]byte(lit))
			v, bits = float64(f), 32
		}
		bad(err)
		switch {
		case math.IsNaN(v):
			e.lit = "NaN"
		case math.IsInf(v, 0):
			e.lit = strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, bits), "+")
			e.lit = strings.Replace(e.lit, "Inf", "Infinity", 1)
		default:
			e.lit = strconv.FormatFloat(v, 'g', -1, bits)
		}
	case pgtype.Numeric:
		n, err := pgenc.ParseNumeric([]byte(lit))
		bad(err)
		if n.Form != pgenc.Finite {
			az.fail(pgerr.NumericValueOutOfRange, loc, "numeric value %q is out of range", strings.TrimSpace(lit))
		}
		return s.applyMod(az.numericLiteral(string(pgenc.AppendNumeric(nil, n)), loc), typ, mod, ctx)
	case pgtype.Bytea:
		v, err := pgenc.ParseBytea(nil, []byte(lit))
		bad(err)
		e.lit = string(v)
	case pgtype.UUID:
		v, err := pgenc.ParseUUID([]byte(lit))
		bad(err)
		e.lit = string(pgenc.AppendUUID(nil, v))
	case pgtype.JSON:
		bad(pgenc.CheckJSON([]byte(lit)))
	case pgtype.JSONB:
		v, err := pgenc.AppendJSONB(nil, []byte(lit))
		bad(err)
		e.lit = string(v)
	case pgtype.Date, pgtype.Time, pgtype.Timestamp, pgtype.TimestampTZ:
		return s.applyMod(s.datetimeLiteral(e, bad), typ, mod, ctx)
	case pgtype.Interval:
		v, err := style.ParseInterval([]byte(intervalText(lit, mod)))
		bad(err)
		e.lit = string(style.AppendInterval(nil, v))
		e.interval = &v
		e.mod = mod
	default:
		if isReg(typ) {
			return s.regLiteral(lit, typ, loc)
		}
		if typ == pgtype.Int2Vector || typ == pgtype.OIDVector {
			return s.vectorLiteral(lit, typ, loc)
		}
		if typ == pgtype.Record {
			az.fail(pgerr.FeatureNotSupported, loc, "input of anonymous composite types is not implemented")
		}
		az.unsupported(loc, "type %s", typeName(typ))
	}
	return e
}

// intervalText gives a bare number the unit of INTERVAL '1' DAY.
func intervalText(lit string, mod int32) string {
	if mod < 0 {
		return lit
	}
	t := strings.TrimSpace(lit)
	if _, err := strconv.ParseFloat(t, 64); err != nil {
		return lit
	}
	// The field mask stands in the typmod's upper half. Source: INTERVAL_MASK in utils/timestamp.h.
	switch mod >> 16 & 0x7fff {
	case 1 << 2:
		return t + " years"
	case 1 << 1, 1<<2 | 1<<1:
		return t + " months"
	case 1 << 3:
		return t + " days"
	case 1 << 10, 1<<3 | 1<<10:
		return t + " hours"
	case 1 << 11, 1<<10 | 1<<11, 1<<3 | 1<<10 | 1<<11:
		return t + " minutes"
	}
	return t + " seconds"
}

func (s *scope) datetimeLiteral(e *expr, bad func(error)) *expr {
	style := pgenc.Style{Order: s.az.dateOrder()}
	in := []byte(e.lit)
	word := strings.ToLower(strings.TrimSpace(e.lit))
	switch word {
	case "now", "today", "tomorrow", "yesterday":
		now := s.az.sessionValue(TransactionTimestamp, pgtype.TimestampTZ)
		shift := map[string]string{"today": "", "tomorrow": " + INTERVAL 1 DAY", "yesterday": " - INTERVAL 1 DAY"}
		if word == "now" {
			return call(e.typ, "CAST($1 AS "+duckType(e.typ, -1)+")", now)
		}
		if e.typ == pgtype.Time {
			break
		}
		return call(e.typ, "CAST(date_trunc('day', $1)"+shift[word]+" AS "+duckType(e.typ, -1)+")", now)
	}
	switch e.typ {
	case pgtype.Date:
		v, err := style.ParseDate(in)
		bad(err)
		e.lit = string(style.AppendDate(nil, v))
	case pgtype.Time:
		v, err := style.ParseTime(in)
		bad(err)
		e.lit = string(pgenc.AppendTime(nil, v))
	case pgtype.Timestamp:
		v, err := style.ParseTimestamp(in)
		bad(err)
		e.lit = string(style.AppendTimestamp(nil, v))
	case pgtype.TimestampTZ:
		v, err := style.ParseTimestampTZ(in)
		bad(err)
		if zoned(e.lit) || word == "epoch" || strings.HasSuffix(word, "infinity") {
			e.lit = string(style.AppendTimestampTZ(nil, v))
			break
		}
		// Without a zone the session's applies: DuckDB reads the local time in its TimeZone.
		local, err := style.ParseTimestamp(in)
		bad(err)
		c := constant(pgtype.Timestamp, string(style.AppendTimestamp(nil, local)), e.loc)
		out := call(pgtype.TimestampTZ, "CAST($1 AS TIMESTAMPTZ)", c)
		out.zoneless = c.lit
		return out
	}
	return e
}

// zoned reports whether a timestamp's text names a zone: its value does not depend on where it is read.
func zoned(lit string) bool {
	a := pgenc.Style{}
	b := pgenc.Style{Loc: farZone()}
	x, err1 := a.ParseTimestampTZ([]byte(lit))
	y, err2 := b.ParseTimestampTZ([]byte(lit))
	return err1 == nil && err2 == nil && x == y
}

// arrayLiteral reads '{…}'.
func (s *scope) arrayLiteral(lit string, elem, typ uint32, mod int32, loc int32, ctx coercionContext) *expr {
	var items []*expr
	dims, err := pgenc.EachArrayElem([]byte(lit), func(text []byte) error {
		if text == nil {
			n := nullConst(elem, loc)
			shapeNumeric(n, mod)
			items = append(items, n)
			return nil
		}
		items = append(items, s.literal(string(text), elem, mod, loc, ctx))
		return nil
	})
	if err != nil {
		e := pgerr.As(err)
		if e == nil {
			e = pgerr.New(pgerr.InvalidTextRepresentation, "malformed array literal: \""+lit+"\"")
		}
		panic(e.WithPosition(s.az.src.position(loc)))
	}
	if err := pgenc.BeginAtOne(dims); err != nil {
		panic(err.WithPosition(s.az.src.position(loc)))
	}
	if len(dims) > 2 {
		s.az.unsupported(loc, "an array of more than two dimensions")
	}
	if len(dims) == 2 {
		width := len(items) / int(dims[0].Len)
		var rows []*expr
		for i := 0; i < len(items); i += width {
			rows = append(rows, listOf(typ, items[i:i+width], loc))
		}
		out := listOf(typ, rows, loc)
		out.dims, out.mod = 2, mod
		return out
	}
	out := listOf(typ, items, loc)
	out.mod = mod
	return out
}

// listOf is a list constructor with a type, so that empty and all-NULL lists have one.
func listOf(typ uint32, items []*expr, loc int32) *expr {
	out := call(typ, "[$*]", items...)
	out.loc, out.elems = loc, true
	shape := &expr{typ: elemType(typ)}
	commonShape(shape, items)
	out.prec, out.scale, out.loose = shape.prec, shape.scale, shape.loose
	out.loose = out.loose || mixedScales(items)
	if shape.typ == pgtype.Numeric && len(items) == 0 {
		out.prec, out.scale = 38, 0
	}
	if len(items) > 0 && elemType(items[0].typ) != 0 {
		out.dims = 1 + max(1, items[0].dims)
		return out
	}
	out.mod = -1
	wrap := call(typ, "CAST($1 AS "+duckTypeOf(out)+")", out)
	wrap.prec, wrap.scale, wrap.loose, wrap.loc, wrap.elems = out.prec, out.scale, out.loose, loc, true
	return wrap
}

// duckTypeOf is the DuckDB type of an expression, with the DECIMAL that it has.
func duckTypeOf(e *expr) string {
	t, suffix := e.typ, ""
	if el := elemType(t); el != 0 {
		t, suffix = el, "[]"
		if e.dims > 1 {
			suffix = strings.Repeat("[]", e.dims)
		}
	}
	if t == pgtype.Numeric && e.prec > 0 {
		return "DECIMAL(" + strconv.Itoa(e.prec) + "," + strconv.Itoa(e.scale) + ")" + suffix
	}
	return duckType(t, -1) + suffix
}

func (s *scope) vectorLiteral(lit string, typ uint32, loc int32) *expr {
	elem := arrayElem(typ)
	var items []*expr
	for _, f := range strings.Fields(lit) {
		items = append(items, s.literal(f, elem, -1, loc, implicitCoercion))
	}
	e := call(typ, "[$*]", items...)
	return call(typ, "CAST($1 AS "+duckType(typ, -1)+")", e)
}

// regLiteral resolves 'name'::regclass and its kin: numbers stand for themselves, tables are looked up here, the rest at run time by the catalog's macros.
func (s *scope) regLiteral(lit string, typ uint32, loc int32) *expr {
	if lit == "-" {
		return constant(typ, "0", loc)
	}
	if _, err := strconv.ParseUint(lit, 10, 32); err == nil {
		return constant(typ, lit, loc)
	}
	switch typ {
	case pgtype.RegClass:
		schema, name, ok := splitName(lit)
		if !ok {
			s.az.fail(pgerr.InvalidName, loc, "invalid name syntax")
		}
		rel, err := s.az.r.ResolveRelation(schema, name)
		s.az.check(err, loc)
		if rel == nil {
			s.az.noRelation(schema, name, loc)
		}
		if rel.OID != 0 {
			return constant(typ, strconv.FormatUint(uint64(rel.OID), 10), loc)
		}
	case pgtype.RegType:
		if oid, _, err := pgtype.Parse(lit); err == nil {
			return constant(typ, strconv.FormatUint(uint64(oid), 10), loc)
		}
	}
	return call(typ, CatalogSchema+"."+regNames[typ]+"_in($1)", constant(pgtype.Text, lit, loc))
}

// splitName reads schema.name as textToQualifiedNameList does: unquoted parts fold to lower case.
func splitName(text string) (schema, name string, ok bool) {
	var parts []string
	for rest := strings.TrimSpace(text); ; {
		part := ""
		if strings.HasPrefix(rest, `"`) {
			i := 1
			for {
				j := strings.IndexByte(rest[i:], '"')
				if j < 0 {
					return "", "", false
				}
				part += rest[i : i+j]
				i += j + 1
				if i < len(rest) && rest[i] == '"' {
					part += `"`
					i++
					continue
				}
				break
			}
			rest = strings.TrimLeft(rest[i:], " ")
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			part = strings.ToLower(strings.TrimSpace(rest[:i]))
			rest = rest[i:]
		}
		if part == "" {
			return "", "", false
		}
		parts = append(parts, part)
		if rest == "" {
			break
		}
		if rest[0] != '.' {
			return "", "", false
		}
		rest = strings.TrimLeft(rest[1:], " ")
	}
	switch len(parts) {
	case 1:
		return "", parts[0], true
	case 2:
		return parts[0], parts[1], true
	case 3:
		return parts[1], parts[2], true
	}
	return "", "", false
}

// SplitName reads a possibly qualified and quoted name as PostgreSQL's regclass input does.
func SplitName(text string) (schema, name string, ok bool) { return splitName(text) }

// numericLiteral makes a numeric constant of canonical text.
func (az *analyzer) numericLiteral(text string, loc int32) *expr {
	e := numericConst(text, loc)
	if e.prec > 38 {
		digits := strings.TrimRight(text, "0")
		if c := numericConst(digits, loc); strings.Contains(text, ".") && c.prec <= 38 {
			c.loose = true
			return c
		}
	}
	return e
}

// numericConst is a constant with the DECIMAL that fits it.
func numericConst(text string, loc int32) *expr {
	e := constant(pgtype.Numeric, text, loc)
	digits := strings.TrimPrefix(text, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	whole = strings.TrimLeft(whole, "0")
	e.scale = len(frac)
	e.prec = max(1, len(whole)+len(frac))
	return e
}

// constSQL writes a constant.
func constSQL(e *expr) string {
	if e.null {
		if e.typ == pgtype.Unknown {
			return "NULL"
		}
		return "CAST(NULL AS " + duckTypeOf(e) + ")"
	}
	switch e.typ {
	case pgtype.Bool:
		return e.lit
	case pgtype.Int4:
		if strings.HasPrefix(e.lit, "-") {
			return "CAST(" + e.lit + " AS INTEGER)"
		}
		return e.lit
	case pgtype.Int2, pgtype.Int8, pgtype.OID, pgtype.XID, pgtype.CID:
		return "CAST(" + e.lit + " AS " + duckType(e.typ, -1) + ")"
	case pgtype.Numeric:
		if e.prec > 38 {
			e := pgerr.New(pgerr.NumericValueOutOfRange, "numeric value has more than 38 digits")
			e.Hint = "Numerics of skade-pg have at most 38 digits."
			panic(e)
		}
		return "CAST(" + quote(e.lit) + " AS " + duckTypeOf(e) + ")"
	case pgtype.Text, pgtype.Varchar, pgtype.BPChar, pgtype.Name, pgtype.Char, pgtype.Unknown, pgtype.JSON, pgtype.JSONB:
		return quote(e.lit)
	case pgtype.Bytea:
		var b strings.Builder
		for i := 0; i < len(e.lit); i++ {
			b.WriteString(`\x` + strings.ToUpper(strconv.FormatUint(uint64(e.lit[i])+0x100, 16)[1:]))
		}
		return "CAST('" + b.String() + "' AS BLOB)"
	case pgtype.Interval:
		if v := e.interval; v != nil {
			return "CAST('" + strconv.Itoa(int(v.Months)) + " months " + strconv.Itoa(int(v.Days)) + " days " + strconv.FormatInt(v.Micros, 10) + " microseconds' AS INTERVAL)"
		}
	case pgtype.Timestamp, pgtype.Date, pgtype.TimestampTZ:
		lit := e.lit
		if strings.HasSuffix(lit, " BC") {
			lit = strings.TrimSuffix(lit, " BC") + " (BC)"
			if i := strings.IndexByte(lit, ' '); e.typ != pgtype.Date && i > 0 {
				// DuckDB wants the era behind the date.
				day, rest := lit[:i], strings.TrimSuffix(lit[i:], " (BC)")
				lit = day + " (BC)" + rest
			}
		}
		return "CAST(" + quote(lit) + " AS " + duckType(e.typ, -1) + ")"
	}
	if isReg(e.typ) {
		return "CAST(" + e.lit + " AS BIGINT)"
	}
	return "CAST(" + quote(e.lit) + " AS " + duckType(e.typ, -1) + ")"
}
