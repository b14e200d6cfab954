package pgsql

import (
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// toString is the output function: PostgreSQL's text of a value.
func (s *scope) toString(e *expr, typ uint32) *expr {
	switch {
	case isString(e.typ):
		switch {
		case typ == pgtype.Char && e.typ != pgtype.Char:
			return call(typ, "left($1, 1)", e)
		case typ == pgtype.BPChar && e.typ != pgtype.BPChar:
			if e.kind == kConst {
				return constant(typ, trimRightSpace(e.lit), e.loc)
			}
			return call(typ, "rtrim($1, ' ')", e)
		case typ == pgtype.Name && e.kind == kConst && len(e.lit) > 63:
			return constant(typ, truncateName(e.lit), e.loc)
		case e.kind == kConst:
			return constant(typ, e.lit, e.loc)
		case e.typ == pgtype.BPChar && typ != pgtype.BPChar:
			return call(typ, "$1", e)
		}
		c := *e
		c.show = nil
		return &c
	}
	out := textOf(e)
	if out == e {
		c := *e
		out = &c
	}
	return out
}

func trimRightSpace(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// truncateName cuts a name at 63 bytes without splitting a character.
func truncateName(s string) string {
	n := min(63, len(s))
	for n > 0 && n < len(s) && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// itemText is an element's text inside an array or a record: the output function, where the cast of boolean gives words.
func itemText(e *expr) *expr {
	if e.typ == pgtype.Bool {
		return call(pgtype.Text, "CASE $1 WHEN true THEN 't' WHEN false THEN 'f' END", e)
	}
	return textOf(padded(e))
}

// textOf is an expression's text as PostgreSQL prints it.
func textOf(e *expr) *expr {
	text := func(tmpl string) *expr {
		out := call(pgtype.Text, tmpl, e)
		out.loc = e.loc
		return out
	}
	switch {
	case isString(e.typ), e.typ == pgtype.JSON, e.typ == pgtype.JSONB, e.typ == pgtype.Unknown:
		return e
	case e.typ == pgtype.Numeric:
		if e.show != nil {
			return e.show
		}
		if e.loose {
			return text("skade_fn.num_trim($1)")
		}
		return text("CAST($1 AS VARCHAR)")
	case e.typ == pgtype.Float8:
		return text("skade_float8_out($1)")
	case e.typ == pgtype.Float4:
		return text("skade_float4_out(CAST($1 AS DOUBLE))")
	case e.typ == pgtype.Interval:
		return text("skade_interval_out($1)")
	case e.typ == pgtype.Bytea:
		return text(`('\x' || lower(hex($1)))`)
	case e.typ == pgtype.Timestamp:
		return text("skade_timestamp_out($1)")
	case e.typ == pgtype.TimestampTZ:
		return text("skade_fn.timestamptz_out($1)")
	case e.typ == pgtype.Date:
		return text("skade_date_out($1)")
	case isReg(e.typ):
		return text(CatalogSchema + "." + regNames[e.typ] + "_out($1)")
	case e.typ == pgtype.Record && e.kind == kRow:
		return recordText(e)
	case e.typ == pgtype.Record && e.fields != nil:
		row := &expr{kind: kRow, typ: pgtype.Record, mod: -1, loc: e.loc}
		for i, f := range e.fields {
			row.args = append(row.args, fieldOf(e, i, f))
		}
		return call(pgtype.Text, "CASE WHEN $1 IS NULL THEN NULL ELSE $2 END", e, recordText(row))
	case arrayElem(e.typ) != 0:
		return arrayText(e)
	}
	return text("CAST($1 AS VARCHAR)")
}

// recordText is record_out over the fields' texts.
func recordText(row *expr) *expr {
	tmpl := "('(' || "
	args := make([]*expr, 0, len(row.args))
	if len(row.args) == 0 {
		return call(pgtype.Text, "'()'")
	}
	text := []string{tmpl}
	for i, a := range row.args {
		args = append(args, itemText(a))
		text[len(text)-1] += "skade_fn.record_field("
		sep := ") || ',' || "
		if i == len(row.args)-1 {
			sep = ") || ')')"
		}
		text = append(text, sep)
	}
	return &expr{kind: kCall, typ: pgtype.Text, mod: -1, loc: row.loc, text: text, args: args}
}

// arrayText is array_out.
func arrayText(e *expr) *expr {
	elem := arrayElem(e.typ)
	if e.typ == pgtype.Int2Vector || e.typ == pgtype.OIDVector {
		return call(pgtype.Text, "array_to_string($1, ' ')", e)
	}
	v := &expr{kind: kColumn, typ: elem, mod: e.mod, ident: lambdaVar, prec: e.prec, scale: e.scale, loose: e.loose, fields: e.fields}
	inner := itemText(v)
	if e.dims > 1 {
		return call(pgtype.Text, "skade_fn.array2_out(list_transform($1, lambda w: list_transform(w, lambda v: skade_fn.array_item($2))))", e, inner)
	}
	return call(pgtype.Text, "skade_fn.array_out(list_transform($1, lambda v: skade_fn.array_item($2)))", e, inner)
}
