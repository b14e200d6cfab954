package pgsql

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// operTemplates write an operator by "name(left,right)"; * stands for any type. The first match counts. Lists are compared behind a cast: of two
// bare comparisons with constants DuckDB makes a BETWEEN, which it cannot run on them.
var operTemplates = parseOperators(`
=(jsonb,jsonb)    (skade_jsonb_key($1) = skade_jsonb_key($2))
<>(jsonb,jsonb)   (skade_jsonb_key($1) <> skade_jsonb_key($2))
=(*,*)            ($1 = $2)
<>(*,*)           ($1 <> $2)
<(anyarray,anyarray)   CAST(CAST($1 < $2 AS TINYINT) AS BOOLEAN)
<=(anyarray,anyarray)  CAST(CAST($1 <= $2 AS TINYINT) AS BOOLEAN)
>(anyarray,anyarray)   CAST(CAST($1 > $2 AS TINYINT) AS BOOLEAN)
>=(anyarray,anyarray)  CAST(CAST($1 >= $2 AS TINYINT) AS BOOLEAN)
<(*,*)            ($1 < $2)
<=(*,*)           ($1 <= $2)
>(*,*)            ($1 > $2)
>=(*,*)           ($1 >= $2)
^@(text,text)     starts_with($1, $2)
~~(*,*)           ($1 LIKE $2 ESCAPE '\')
!~~(*,*)          ($1 NOT LIKE $2 ESCAPE '\')
~~*(*,*)          ($1 ILIKE $2 ESCAPE '\')
!~~*(*,*)         ($1 NOT ILIKE $2 ESCAPE '\')
~<~(*,*)          ($1 < $2)
~<=~(*,*)         ($1 <= $2)
~>~(*,*)          ($1 > $2)
~>=~(*,*)         ($1 >= $2)

+(float4,float4)  skade_radd($1, $2)
+(float4,*)       skade_fadd(CAST($1 AS DOUBLE), $2)
+(float8,*)       skade_fadd($1, CAST($2 AS DOUBLE))
-(float4,float4)  skade_rsub($1, $2)
-(float4,*)       skade_fsub(CAST($1 AS DOUBLE), $2)
-(float8,*)       skade_fsub($1, CAST($2 AS DOUBLE))
*(float4,float4)  skade_rmul($1, $2)
*(float4,float8)  skade_fmul(CAST($1 AS DOUBLE), $2)
*(float8,float4)  skade_fmul($1, CAST($2 AS DOUBLE))
*(float8,float8)  skade_fmul($1, $2)
/(float4,float4)  skade_rdiv($1, $2)
/(float4,*)       skade_fdiv(CAST($1 AS DOUBLE), $2)
/(float8,*)       skade_fdiv($1, CAST($2 AS DOUBLE))
^(float8,float8)  skade_power_check(skade_fn.power($1, $2), $1, $2)

&(int2,int2)      ($1 & $2)
&(int4,int4)      ($1 & $2)
&(int8,int8)      ($1 & $2)
|(int2,int2)      ($1 | $2)
|(int4,int4)      ($1 | $2)
|(int8,int8)      ($1 | $2)
#(int2,int2)      xor($1, $2)
#(int4,int4)      xor($1, $2)
#(int8,int8)      xor($1, $2)
<<(int2,int4)     skade_fn.shl2($1, $2)
<<(int4,int4)     skade_fn.shl4($1, $2)
<<(int8,int4)     skade_fn.shl8($1, $2)
>>(int2,int4)     ($1 >> CAST($2 & 15 AS SMALLINT))
>>(int4,int4)     ($1 >> ($2 & 31))
>>(int8,int4)     ($1 >> CAST($2 & 63 AS BIGINT))

+(date,int4)      ($1 + $2)
+(int4,date)      ($2 + $1)
-(date,int4)      ($1 - $2)
-(date,date)      CAST($1 - $2 AS INTEGER)
+(date,interval)  ($1 + $2)
+(interval,date)  ($2 + $1)
-(date,interval)  ($1 - $2)
+(date,time)      ($1 + $2)
+(time,date)      ($2 + $1)
+(timestamp,interval)   ($1 + $2)
+(interval,timestamp)   ($2 + $1)
-(timestamp,interval)   ($1 - $2)
+(timestamptz,interval) ($1 + $2)
+(interval,timestamptz) ($2 + $1)
-(timestamptz,interval) ($1 - $2)
-(timestamp,timestamp)  ($1 - $2)
-(timestamptz,timestamptz) ($1 - $2)
+(time,interval)  ($1 + $2)
+(interval,time)  ($2 + $1)
-(time,interval)  ($1 - $2)
-(time,time)      to_microseconds(date_diff('microsecond', $2, $1))
+(interval,interval) ($1 + $2)
-(interval,interval) ($1 - $2)
*(interval,float8)   skade_interval_mul($1, $2)
*(float8,interval)   skade_interval_mul($2, $1)
/(interval,float8)   skade_interval_div($1, $2)

||(text,text)     ($1 || $2)
||(text,anynonarray)  ($1 || $t2)
||(anynonarray,text)  ($t1 || $2)
||(anycompatiblearray,anycompatiblearray) list_concat($1, $2)
||(anycompatiblearray,anycompatible)      list_append($1, $2)
||(anycompatible,anycompatiblearray)      list_prepend($1, $2)
||(jsonb,jsonb)   skade_jsonb_concat($1, $2)
||(bytea,bytea)   ($1 || $2)

->(json,text)     skade_json_get($1, $2)
->(jsonb,text)    skade_jsonb_get($1, $2)
->(json,int4)     skade_json_at($1, CAST($2 AS BIGINT))
->(jsonb,int4)    skade_jsonb_at($1, CAST($2 AS BIGINT))
->>(json,text)    skade_json_get_text($1, $2)
->>(jsonb,text)   skade_json_get_text($1, $2)
->>(json,int4)    skade_json_at_text($1, CAST($2 AS BIGINT))
->>(jsonb,int4)   skade_json_at_text($1, CAST($2 AS BIGINT))
#>(json,_text)    skade_json_path($1, $2)
#>(jsonb,_text)   skade_jsonb_path($1, $2)
#>>(json,_text)   skade_json_path_text($1, $2)
#>>(jsonb,_text)  skade_json_path_text($1, $2)
?(jsonb,text)     skade_jsonb_exists($1, $2)
?|(jsonb,_text)   skade_jsonb_exists_any($1, $2)
?&(jsonb,_text)   skade_jsonb_exists_all($1, $2)
@>(jsonb,jsonb)   skade_jsonb_contains($1, $2)
<@(jsonb,jsonb)   skade_jsonb_contains($2, $1)
-(jsonb,text)     skade_jsonb_delete($1, $2)
-(jsonb,int4)     skade_jsonb_delete_at($1, CAST($2 AS BIGINT))
-(jsonb,_text)    skade_jsonb_delete_keys($1, $2)
#-(jsonb,_text)   skade_jsonb_delete_path($1, $2)

@>(anyarray,anyarray)  list_has_all($1, $2)
<@(anyarray,anyarray)  list_has_all($2, $1)
&&(anyarray,anyarray)  list_has_any($1, $2)
`)

type operTemplate struct {
	left, right uint32 // 0 is any
	tmpl        string
}

func parseOperators(text string) map[string][]operTemplate {
	out := map[string][]operTemplate{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		head, tmpl, _ := strings.Cut(line, ")")
		open := strings.LastIndexByte(head, '(')
		l, r, _ := strings.Cut(head[open+1:], ",")
		out[head[:open]] = append(out[head[:open]], operTemplate{left: wildType(l), right: wildType(r), tmpl: strings.TrimSpace(tmpl)})
	}
	return out
}

func wildType(name string) uint32 {
	if name == "*" {
		return 0
	}
	t := catalog().byName[name]
	if t == nil {
		panic("pgsql: unknown type " + name + " in a template")
	}
	return t.oid
}

// emitOperator writes a resolved binary operator over coerced operands.
func (s *scope) emitOperator(op *operRow, l, r *expr, loc int32) *expr {
	switch {
	case isIntType(op.left) && isIntType(op.right) && isIntType(op.result):
		if e := s.intOperator(op, l, r); e != nil {
			return e
		}
	case op.left == pgtype.Numeric && op.right == pgtype.Numeric && op.result == pgtype.Numeric:
		return s.numericOperator(op, l, r, loc)
	}
	switch op.name {
	case "~", "!~", "~*", "!~*":
		return s.regexOperator(op.name, l, r)
	}
	if isPolymorphic(op.left) && elemType(l.typ) == pgtype.JSON && (op.name == "=" || op.name == "<>") {
		s.az.fail(pgerr.UndefinedFunction, -1, "could not identify an equality operator for type json")
	}
	result := op.result
	if isPolymorphic(result) {
		_, result = resolvePolymorphic([]uint32{op.left, op.right}, []uint32{l.typ, r.typ}, op.result)
	}
	for _, t := range operTemplates[op.name] {
		if (t.left == 0 || t.left == op.left) && (t.right == 0 || t.right == op.right) {
			e := call(result, t.tmpl, l, r)
			if elemType(result) != 0 {
				e.prec, e.scale, e.loose, e.dims = max(l.prec, r.prec), max(l.scale, r.scale), l.loose || r.loose, max(l.dims, r.dims)
			}
			return e
		}
	}
	s.az.unsupported(loc, "operator %s %s %s", typeNameNoMod(op.left), op.name, typeNameNoMod(op.right))
	return nil
}

func (s *scope) intOperator(op *operRow, l, r *expr) *expr {
	l, r = widen(l, r, op.result)
	switch op.name {
	case "+", "-", "*":
		return call(op.result, "($1 "+op.name+" $2)", l, r)
	case "/":
		if r.kind == kConst && !r.null && strings.Trim(r.lit, "0") != "" && r.lit != "-1" {
			return call(op.result, "($1 // $2)", l, r)
		}
		return call(op.result, "skade_fn.div($1, $2)", l, r)
	case "%":
		if r.kind == kConst && !r.null && strings.Trim(r.lit, "0") != "" && r.lit != "-1" {
			return call(op.result, "($1 % $2)", l, r)
		}
		return call(op.result, "skade_fn.mod($1, $2)", l, r)
	}
	return nil
}

// numericOperator follows PostgreSQL's scales: max for + and -, the sum for *, select_div_scale for /.
func (s *scope) numericOperator(op *operRow, l, r *expr, loc int32) *expr {
	switch op.name {
	case "+", "-":
		sc, loose := max(l.scale, r.scale), l.loose || r.loose
		p := max(l.prec-l.scale, r.prec-r.scale) + sc + 1
		if p > 18 {
			l = decimalCast(l, min(38, p), sc)
		}
		e := call(op.result, "($1 "+op.name+" $2)", l, r)
		e.prec, e.scale, e.loose = min(38, p), sc, loose
		return e
	case "*":
		loose := l.loose || r.loose
		p, sc := l.prec+r.prec, l.scale+r.scale
		if p > 38 && sc > maxProductScale {
			l, r, loose = reduceScale(l, r), reduceScale(r, l), true
			p, sc = l.prec+r.prec, l.scale+r.scale
		}
		if p > 18 && l.prec <= 18 && r.prec <= 18 {
			l = decimalCast(l, max(19, l.prec), l.scale)
		}
		e := call(op.result, "($1 * $2)", l, r)
		e.prec, e.scale, e.loose = min(38, p), sc, loose
		return e
	case "/":
		return exactNumeric("skade_num_div($t1, $t2)", l, r)
	case "%":
		e := call(op.result, "skade_fn.mod($1, $2)", l, r)
		e.prec, e.scale, e.loose = max(l.prec, r.prec), max(l.scale, r.scale), l.loose || r.loose
		e.prec = min(38, max(l.prec-l.scale, r.prec-r.scale)+e.scale)
		return e
	case "^":
		return exactNumeric("skade_num_power($t1, $t2)", l, r)
	}
	s.az.unsupported(loc, "operator numeric %s numeric", op.name)
	return nil
}

// maxProductScale leaves twenty digits before the point in a product whose operands are not known to be small.
const maxProductScale = 18

func reduceScale(e, other *expr) *expr {
	room := maxProductScale - min(other.scale, maxProductScale/2)
	if e.scale <= room {
		return e
	}
	c := decimalCast(e, 38, max(room, maxProductScale/2))
	c.loose = true
	return c
}

func (s *scope) regexOperator(name string, l, r *expr) *expr {
	flags := "'s'"
	if strings.HasSuffix(name, "*") {
		flags = "'is'"
	}
	tmpl := "regexp_matches($1, $2, " + flags + ")"
	if strings.HasPrefix(name, "!") {
		tmpl = "(NOT " + tmpl + ")"
	}
	e := call(pgtype.Bool, tmpl, l, s.regex(r))
	return e
}

// regex translates a pattern from PostgreSQL's advanced regular expressions to RE2's.
func (s *scope) regex(p *expr) *expr {
	if p.kind == kConst {
		if p.null {
			return p
		}
		text, err := translateRegex(p.lit)
		if err != nil {
			s.az.check(err, -1)
		}
		return constant(pgtype.Text, text, p.loc)
	}
	return call(pgtype.Text, "skade_regex($1)", p)
}
