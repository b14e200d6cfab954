package pgsql

import (
	"strings"
	"sync"
)

// funcTemplate writes a function: $1 … are arguments, $t1 their PostgreSQL text, $* all of them.
type funcTemplate struct {
	// args are the declared types it is for; nil means every overload of that name with n arguments (any number when n is -1).
	args []uint32
	n    int
	tmpl string
	// exact results are PostgreSQL's text of a numeric.
	exact bool
	// scale is the scale of a numeric result (-1: that of the first numeric argument); loose says that it is not PostgreSQL's.
	scale   int
	loose   bool
	special func(*scope, *funcCallInfo) *expr
}

// functionText is the allow-list of scalar functions (G2): name(types) template, or name/count template for all overloads.
// "num:" marks a template that yields a numeric's text; "dec9:" a DECIMAL(38,9).
const functionText = `
ascii(text)              CAST(ascii($1) AS INTEGER)
bit_length(text)         CAST(bit_length(CAST($1 AS VARCHAR)) AS INTEGER)
bit_length(bytea)        CAST(octet_length($1) * 8 AS INTEGER)
btrim(text)              trim($1, ' ')
btrim(text,text)         trim($1, $2)
char_length(text)        CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
char_length(bpchar)      CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
character_length(text)   CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
character_length(bpchar) CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
chr(int4)                skade_chr(CAST($1 AS BIGINT))
convert_from(bytea,name) skade_convert_from($1, $2)
convert_to(text,name)    skade_convert_to($1, $2)
decode(text,text)        skade_decode($1, $2)
encode(bytea,text)       skade_encode($1, $2)
get_byte(bytea,int4)     skade_get_byte($1, CAST($2 AS BIGINT))
initcap(text)            skade_initcap($1)
left(text,int4)          left($1, CAST($2 AS BIGINT))
length(text)             CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
length(bpchar)           CAST(length(CAST($1 AS VARCHAR)) AS INTEGER)
length(bytea)            CAST(octet_length($1) AS INTEGER)
lower(text)              lower($1)
lpad(text,int4)          skade_fn.lpad($1, $2, ' ')
lpad(text,int4,text)     skade_fn.lpad($1, $2, $3)
ltrim(text)              ltrim($1, ' ')
ltrim(text,text)         ltrim($1, $2)
md5(text)                md5(CAST($1 AS VARCHAR))
md5(bytea)               md5($1)
octet_length(text)       CAST(strlen(CAST($1 AS VARCHAR)) AS INTEGER)
octet_length(bytea)      CAST(octet_length($1) AS INTEGER)
overlay(text,text,int4,int4) skade_fn.overlay4($1, $2, CAST($3 AS BIGINT), CAST($4 AS BIGINT))
overlay(text,text,int4)      skade_fn.overlay4($1, $2, CAST($3 AS BIGINT), length(CAST($2 AS VARCHAR)))
position(text,text)      CAST(strpos($1, $2) AS INTEGER)
quote_ident(text)        skade_quote_ident($1)
quote_literal(text)      skade_quote_literal($1)
quote_literal(anyelement) skade_quote_literal($t1)
quote_nullable(text)     coalesce(skade_quote_literal($1), 'NULL')
quote_nullable(anyelement) coalesce(skade_quote_literal($t1), 'NULL')
regexp_count(text,text)  skade_regexp_count($1, $2, CAST(1 AS BIGINT), '')
regexp_count(text,text,int4)  skade_regexp_count($1, $2, CAST($3 AS BIGINT), '')
regexp_count(text,text,int4,text)  skade_regexp_count($1, $2, CAST($3 AS BIGINT), $4)
regexp_like(text,text)   skade_regexp_like($1, $2, '')
regexp_like(text,text,text) skade_regexp_like($1, $2, $3)
regexp_match(text,text)  skade_regexp_match($1, $2, '')
regexp_match(text,text,text) skade_regexp_match($1, $2, $3)
regexp_replace(text,text,text) skade_regexp_replace($1, $2, $3, '')
regexp_replace(text,text,text,text) skade_regexp_replace($1, $2, $3, $4)
regexp_split_to_array(text,text) skade_regexp_split($1, $2, '')
regexp_split_to_array(text,text,text) skade_regexp_split($1, $2, $3)
regexp_substr(text,text) skade_regexp_substr($1, $2, '')
repeat(text,int4)        repeat($1, CAST($2 AS BIGINT))
replace(text,text,text)  replace($1, $2, $3)
reverse(text)            reverse($1)
right(text,int4)         right($1, CAST($2 AS BIGINT))
rpad(text,int4)          skade_fn.rpad($1, $2, ' ')
rpad(text,int4,text)     skade_fn.rpad($1, $2, $3)
rtrim(text)              rtrim($1, ' ')
rtrim(text,text)         rtrim($1, $2)
split_part(text,text,int4) skade_fn.split_part($1, $2, CAST($3 AS BIGINT))
starts_with(text,text)   starts_with($1, $2)
string_to_array(text,text) skade_fn.string_to_array($1, $2)
string_to_array(text,text,text) list_transform(skade_fn.string_to_array($1, $2), lambda v: nullif(v, $3))
strpos(text,text)        CAST(strpos($1, $2) AS INTEGER)
substr(text,int4)        skade_fn.substr2($1, CAST($2 AS BIGINT))
substr(text,int4,int4)   skade_fn.substr3($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT))
substring(text,int4)     skade_fn.substr2($1, CAST($2 AS BIGINT))
substring(text,int4,int4) skade_fn.substr3($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT))
substr(bytea,int4)       skade_bytea_substr($1, CAST($2 AS BIGINT), CAST(2147483647 AS BIGINT))
substr(bytea,int4,int4)  skade_bytea_substr($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT))
substring(bytea,int4)    skade_bytea_substr($1, CAST($2 AS BIGINT), CAST(2147483647 AS BIGINT))
substring(bytea,int4,int4) skade_bytea_substr($1, CAST($2 AS BIGINT), CAST($3 AS BIGINT))
substring(text,text,text) skade_substring_similar($1, $2, $3)
substring(text,text)     skade_regexp_substring($1, $2)
sha224(bytea)            skade_sha('224', $1)
sha256(bytea)            skade_sha('256', $1)
sha384(bytea)            skade_sha('384', $1)
sha512(bytea)            skade_sha('512', $1)
to_hex(int4)             skade_to_hex(CAST($1 AS BIGINT), false)
to_hex(int8)             skade_to_hex($1, true)
translate(text,text,text) skade_translate($1, $2, $3)
upper(text)              upper($1)
name(text)               $1
name(varchar)            $1
name(bpchar)             $1
text(bool)               CAST($1 AS VARCHAR)
gen_random_uuid()        gen_random_uuid()

abs(int2)     abs($1)
abs(int4)     abs($1)
abs(int8)     abs($1)
abs(float4)   abs($1)
abs(float8)   abs($1)
abs(numeric)  abs($1)
acos(float8)  acos($1)
asin(float8)  asin($1)
atan(float8)  atan($1)
atan2(float8,float8) atan2($1, $2)
acosh(float8) skade_fn.acosh($1)
asinh(float8) asinh($1)
atanh(float8) atanh($1)
cbrt(float8)  cbrt($1)
ceil(float8)  ceil($1)
ceiling(float8) ceil($1)
floor(float8) floor($1)
cos(float8)   cos($1)
cosh(float8)  cosh($1)
cot(float8)   cot($1)
degrees(float8) skade_over(degrees($1), $1)
radians(float8) radians($1)
exp(float8)   skade_exp_check(exp($1), $1)
ln(float8)    skade_fn.ln($1)
log(float8)   skade_fn.log10($1)
log10(float8) skade_fn.log10($1)
pi()          pi()
power(float8,float8) skade_power_check(skade_fn.power($1, $2), $1, $2)
pow(float8,float8)   skade_fn.power($1, $2)
random()      random()
round(float8) skade_fn.round_even($1)
sign(float8)  CAST(sign($1) AS DOUBLE)
sin(float8)   sin($1)
sinh(float8)  sinh($1)
sqrt(float8)  skade_fn.sqrt($1)
tan(float8)   tan($1)
tanh(float8)  tanh($1)
trunc(float8) trunc($1)
exp(numeric)  num:skade_num_exp($t1)
ln(numeric)   num:skade_num_ln($t1)
log(numeric)  num:skade_num_log('10', $t1)
log10(numeric) num:skade_num_log('10', $t1)
log(numeric,numeric) num:skade_num_log($t1, $t2)
power(numeric,numeric) num:skade_num_power($t1, $t2)
pow(numeric,numeric)   num:skade_num_power($t1, $t2)
sqrt(numeric) num:skade_num_sqrt($t1)
div(numeric,numeric) num:skade_num_idiv($t1, $t2)
trim_scale(numeric) num:skade_fn.num_trim($1)
min_scale(numeric) CAST(CASE WHEN strpos($t1, '.') = 0 THEN 0 ELSE length(rtrim($t1, '0')) - strpos($t1, '.') END AS INTEGER)
scale(numeric) CAST(CASE WHEN strpos($t1, '.') = 0 THEN 0 ELSE length($t1) - strpos($t1, '.') END AS INTEGER)
factorial(int8) num:skade_num_factorial($1)
mod(int2,int2) skade_fn.mod($1, $2)
mod(int4,int4) skade_fn.mod($1, $2)
mod(int8,int8) skade_fn.mod($1, $2)
gcd(int4,int4) CAST(gcd($1, $2) AS INTEGER)
gcd(int8,int8) CAST(gcd($1, $2) AS BIGINT)
lcm(int4,int4) CAST(lcm($1, $2) AS INTEGER)
lcm(int8,int8) CAST(lcm($1, $2) AS BIGINT)
width_bucket(float8,float8,float8,int4) skade_width_bucket($1, $2, $3, CAST($4 AS BIGINT))
width_bucket(numeric,numeric,numeric,int4) skade_width_bucket(CAST($1 AS DOUBLE), CAST($2 AS DOUBLE), CAST($3 AS DOUBLE), CAST($4 AS BIGINT))

age(timestamp,timestamp)     age($1, $2)
age(timestamptz,timestamptz) age($1, $2)
clock_timestamp()            skade_clock()
date(timestamp)              CAST($1 AS DATE)
date(timestamptz)            CAST($1 AS DATE)
isfinite(date)               isfinite($1)
isfinite(timestamp)          isfinite($1)
isfinite(timestamptz)        isfinite($1)
isfinite(interval)           ($1 IS NOT NULL)
justify_days(interval)       skade_justify($1, 'days')
justify_hours(interval)      skade_justify($1, 'hours')
justify_interval(interval)   skade_justify($1, 'interval')
make_date(int4,int4,int4)    skade_fn.make_date($1, $2, $3)
make_time(int4,int4,float8)  make_time($1, $2, $3)
make_timestamp(int4,int4,int4,int4,int4,float8) make_timestamp($1, $2, $3, $4, $5, $6)
make_timestamptz(int4,int4,int4,int4,int4,float8) CAST(make_timestamp($1, $2, $3, $4, $5, $6) AS TIMESTAMPTZ)
timeofday()                  skade_fn.timestamptz_out(skade_clock())
to_char(timestamp,text)      skade_to_char_ts($1, $2, 'UTC', CAST(0 AS BIGINT))
to_char(timestamptz,text)    skade_to_char_ts(CAST($1 AS TIMESTAMP), $2, current_setting('TimeZone'), CAST(date_part('timezone', $1) AS BIGINT))
to_char(interval,text)       skade_to_char_interval($1, $2)
to_char(int4,text)           skade_to_char_num(CAST($1 AS VARCHAR), $2)
to_char(int8,text)           skade_to_char_num(CAST($1 AS VARCHAR), $2)
to_char(numeric,text)        skade_to_char_num($t1, $2)
to_char(float4,text)         skade_to_char_num(skade_num_from_float4(CAST($1 AS DOUBLE)), $2)
to_char(float8,text)         skade_to_char_num(skade_num_from_float8($1), $2)
to_date(text,text)           CAST(skade_to_timestamp($1, $2) AS DATE)
to_timestamp(text,text)      CAST(skade_to_timestamp($1, $2) AS TIMESTAMPTZ)
to_timestamp(float8)         to_timestamp($1)
to_number(text,text)         num:skade_to_number($1, $2)
timezone(text,timestamp)     timezone($1, $2)
timezone(text,timestamptz)   timezone($1, $2)
timezone(interval,timestamp) timezone(skade_fn.utc_offset($1), $2)
date_bin(interval,timestamp,timestamp)       time_bucket($1, $2, $3)
date_bin(interval,timestamptz,timestamptz)   time_bucket($1, $2, $3)
overlaps(timestamptz,timestamptz,timestamptz,timestamptz) skade_fn.overlaps($1, $2, $3, $4)
overlaps(timestamp,timestamp,timestamp,timestamp)         skade_fn.overlaps($1, $2, $3, $4)
overlaps(timestamptz,interval,timestamptz,interval)       skade_fn.overlaps($1, $1 + $2, $3, $3 + $4)
overlaps(timestamp,interval,timestamp,interval)           skade_fn.overlaps($1, $1 + $2, $3, $3 + $4)
overlaps(time,time,time,time)                             skade_fn.overlaps($1, $2, $3, $4)

json_array_length(json)      skade_json_length($1)
jsonb_array_length(jsonb)    skade_json_length($1)
json_typeof(json)            skade_json_typeof($1)
jsonb_typeof(jsonb)          skade_json_typeof($1)
jsonb_set(jsonb,_text,jsonb) skade_jsonb_set($1, $2, $3, true)
jsonb_set(jsonb,_text,jsonb,bool) skade_jsonb_set($1, $2, $3, $4)
jsonb_insert(jsonb,_text,jsonb) skade_jsonb_insert($1, $2, $3, false)
jsonb_insert(jsonb,_text,jsonb,bool) skade_jsonb_insert($1, $2, $3, $4)
jsonb_pretty(jsonb)          skade_jsonb_pretty($1)
json_strip_nulls(json)       skade_json_strip($1)
jsonb_strip_nulls(jsonb)     skade_jsonb_strip($1)
json_object(_text)           skade_json_object($1)
jsonb_object(_text)          skade_jsonb_in(skade_json_object($1))
jsonb_exists(jsonb,text)     skade_jsonb_exists($1, $2)
jsonb_contains(jsonb,jsonb)  skade_jsonb_contains($1, $2)
jsonb_concat(jsonb,jsonb)    skade_jsonb_concat($1, $2)

array_append(anycompatiblearray,anycompatible)       list_append(coalesce($1, []), $2)
array_prepend(anycompatible,anycompatiblearray)      list_prepend($1, coalesce($2, []))
array_cat(anycompatiblearray,anycompatiblearray)     list_concat($1, $2)
array_position(anycompatiblearray,anycompatible)     skade_fn.array_position($1, $2)
array_positions(anycompatiblearray,anycompatible)    CAST(list_filter(generate_series(1, len($1)), lambda i: $1[i] IS NOT DISTINCT FROM $2) AS INTEGER[])
array_remove(anycompatiblearray,anycompatible)       list_filter($1, lambda v: v IS DISTINCT FROM $2)
array_replace(anycompatiblearray,anycompatible,anycompatible) list_transform($1, lambda v: CASE WHEN v IS NOT DISTINCT FROM $2 THEN $3 ELSE v END)
array_lower(anyarray,int4)   skade_fn.array_lower($1, $2)
trim_array(anyarray,int4)    skade_fn.slice($1, 1, len($1) - $2)
array_fill(anyelement,_int4) list_transform(generate_series(1, $2[1]), lambda i: $1)

pg_sleep(float8)             skade_sleep($1)
hashtext(text)               CAST(hash($1) % 2147483647 AS INTEGER)
inet_client_addr()           skade_pg.inet_client_addr()
pg_current_xact_id()         skade_pg.pg_current_xact_id()
pg_stat_reset()              CAST('' AS VARCHAR)
`

// catalogMacros are functions of system catalogs that engine/pgcatalog defines in CatalogSchema, under every overload that PostgreSQL has.
const catalogMacros = `col_description format_type getdatabaseencoding has_any_column_privilege has_column_privilege has_database_privilege
has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege has_parameter_privilege has_schema_privilege has_sequence_privilege
has_server_privilege has_table_privilege has_tablespace_privilege has_type_privilege obj_description pg_blocking_pids pg_char_to_encoding
pg_client_encoding pg_collation_actual_version pg_collation_is_visible pg_column_is_updatable pg_conversion_is_visible
pg_database_collation_actual_version pg_database_size pg_encoding_to_char pg_filenode_relation pg_function_is_visible pg_get_constraintdef pg_get_expr
pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result pg_get_function_sqlbody
pg_get_functiondef pg_get_indexdef pg_get_partition_constraintdef pg_get_partkeydef pg_get_replica_identity_index pg_get_ruledef
pg_get_serial_sequence pg_get_statisticsobjdef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_userbyid
pg_get_viewdef pg_has_role pg_index_column_has_property pg_index_has_property pg_indexam_has_property pg_indexes_size pg_is_in_recovery
pg_is_other_temp_schema pg_is_wal_replay_paused pg_jit_available pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible
pg_opfamily_is_visible pg_relation_filenode pg_relation_filepath pg_relation_is_publishable pg_relation_is_updatable pg_relation_size
pg_safe_snapshot_blocking_pids pg_size_bytes pg_size_pretty pg_stat_get_dead_tuples pg_stat_get_live_tuples pg_stat_get_numscans
pg_statistics_obj_is_visible pg_table_is_visible pg_table_size pg_tablespace_location pg_tablespace_size pg_total_relation_size pg_trigger_depth
pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible row_security_active
shobj_description to_regclass to_regcollation to_regnamespace to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype
txid_current txid_current_if_assigned`

// CatalogMacros lists the functions that are written as CatalogSchema.name(args).
func CatalogMacros() []string { return strings.Fields(catalogMacros) }

var functionTable = sync.OnceValue(func() map[string][]*funcTemplate {
	out := map[string][]*funcTemplate{}
	for line := range strings.Lines(functionText) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		open := strings.IndexByte(line, '(')
		end := strings.IndexByte(line, ')')
		t := &funcTemplate{tmpl: strings.TrimSpace(line[end+1:]), scale: -1, args: []uint32{}}
		for _, a := range strings.Split(line[open+1:end], ",") {
			if a != "" {
				t.args = append(t.args, wildType(a))
			}
		}
		if rest, ok := strings.CutPrefix(t.tmpl, "num:"); ok {
			t.tmpl, t.exact = rest, true
		}
		out[line[:open]] = append(out[line[:open]], t)
	}
	for _, name := range CatalogMacros() {
		out[name] = append(out[name], &funcTemplate{n: -1, tmpl: CatalogSchema + "." + name + "($*)", scale: -1})
	}
	for name, f := range specialFunctions {
		out[name] = append(out[name], &funcTemplate{n: -1, special: f, scale: -1})
	}
	return out
})

// findTemplate is the gate for scalar functions.
func findTemplate(name string, p *procRow, n int) *funcTemplate {
	for _, t := range functionTable()[name] {
		if t.args == nil && (t.n < 0 || t.n == n) {
			return t
		}
		if t.args == nil || len(t.args) != n || len(t.args) > len(p.args) {
			continue
		}
		if sameTypes(t.args, p.args[:n]) {
			return t
		}
	}
	return nil
}
