package pgsql

// macros are the functions of FuncSchema in DuckDB's SQL. DuckDB's macros are not hygienic: a parameter may be evaluated more than once.
var macros = []string{
	"interval_micros(a) AS skade_interval_part(a, 'us')",
	"div(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('skade:22012 division by zero') ELSE a // b END",
	"mod(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('skade:22012 division by zero') ELSE a % b END",
	"fdiv(a, b) AS CASE WHEN b = 0 AND a IS NOT NULL THEN error('skade:22012 division by zero') ELSE a / b END",
	"power(a, b) AS CASE WHEN a = 0 AND b < 0 THEN error('skade:2201F zero raised to a negative power is undefined') " +
		"WHEN a < 0 AND b <> floor(b) THEN error('skade:2201F a negative number raised to a non-integer power yields a complex result') ELSE pow(a, b) END",
	"ln(a) AS CASE WHEN a = 0 THEN error('skade:2201E cannot take logarithm of zero') WHEN a < 0 THEN error('skade:2201E cannot take logarithm of a negative number') ELSE ln(a) END",
	"log10(a) AS CASE WHEN a = 0 THEN error('skade:2201E cannot take logarithm of zero') WHEN a < 0 THEN error('skade:2201E cannot take logarithm of a negative number') ELSE log10(a) END",
	"sqrt(a) AS CASE WHEN a < 0 THEN error('skade:2201F cannot take square root of a negative number') ELSE sqrt(a) END",
	"acosh(a) AS CASE WHEN a < 1 THEN error('skade:22003 input is out of range') ELSE acosh(a) END",
	"round_even(a) AS CASE WHEN isfinite(a) THEN round_even(a, 0) ELSE a END",
	"shl2(a, b) AS skade_shl(CAST(a AS BIGINT), CAST(b AS BIGINT), CAST(16 AS BIGINT))::SMALLINT",
	"shl4(a, b) AS skade_shl(CAST(a AS BIGINT), CAST(b AS BIGINT), CAST(32 AS BIGINT))::INTEGER",
	"shl8(a, b) AS skade_shl(CAST(a AS BIGINT), CAST(b AS BIGINT), CAST(64 AS BIGINT))",

	"num_trim(a) AS CASE WHEN strpos(CAST(a AS VARCHAR), '.') > 0 THEN rtrim(rtrim(CAST(a AS VARCHAR), '0'), '.') ELSE CAST(a AS VARCHAR) END",
	"store_numeric(a, b, c) AS CASE WHEN a = b OR a IS NULL THEN b ELSE error('skade:22003 value does not fit column \"' || c || '\": too many digits after the decimal point') END",
	"store_numeric_text(a, c) AS CAST(skade_num_store(a, c) AS DECIMAL(38,9))",

	"length_check(a, n, t) AS CASE WHEN a IS NULL OR length(a) <= n THEN a WHEN length(rtrim(a, ' ')) <= n THEN left(a, n) ELSE error('skade:22001 value too long for type ' || t) END",
	"int2_in(a) AS CAST(skade_int_in(a, CAST(16 AS BIGINT)) AS SMALLINT)",
	"int4_in(a) AS CAST(skade_int_in(a, CAST(32 AS BIGINT)) AS INTEGER)",
	"int8_in(a) AS skade_int_in(a, CAST(64 AS BIGINT))",
	"oid_in(a) AS skade_int_in(a, CAST(0 AS BIGINT))",

	"lpad(a, n, p) AS skade_pad(a, CAST(n AS BIGINT), p, true)",
	"rpad(a, n, p) AS skade_pad(a, CAST(n AS BIGINT), p, false)",
	"substr2(a, p) AS CASE WHEN p IS NOT NULL THEN substring(a, greatest(p, CAST(1 AS BIGINT))) END",
	"substr3(a, p, n) AS CASE WHEN a IS NULL OR p IS NULL OR n IS NULL THEN NULL WHEN n < 0 THEN error('skade:22011 negative substring length not allowed') " +
		"ELSE substring(a, greatest(p, CAST(1 AS BIGINT)), greatest(least(p, CAST(1 AS BIGINT)) + n - 1, CAST(0 AS BIGINT))) END",
	"overlay4(a, b, p, n) AS CASE WHEN p <= 0 AND a IS NOT NULL AND b IS NOT NULL AND n IS NOT NULL THEN error('skade:22011 negative substring length not allowed') ELSE substring(a, CAST(1 AS BIGINT), p - 1) || b || substring(a, p + n) END",
	"split_part(a, d, n) AS CASE WHEN a IS NULL OR d IS NULL THEN NULL WHEN n = 0 THEN error('skade:22023 field position must not be zero') WHEN d = '' THEN CASE WHEN n IN (1, -1) THEN a ELSE '' END ELSE split_part(a, d, CAST(n AS BIGINT)) END",
	"string_to_array(a, d) AS CASE WHEN a IS NULL THEN NULL WHEN a = '' THEN CAST([] AS VARCHAR[]) WHEN d IS NULL THEN string_split(a, '') WHEN d = '' THEN [a] ELSE string_split(a, d) END",
	"array_to_string2(a, d) AS CASE WHEN a IS NULL OR d IS NULL THEN NULL ELSE coalesce(array_to_string(list_filter(a, lambda x: x IS NOT NULL), d), '') END",
	"array_to_string3(a, d, n) AS CASE WHEN a IS NULL OR d IS NULL THEN NULL ELSE coalesce(array_to_string(list_filter(list_transform(a, lambda x: coalesce(x, n)), lambda x: x IS NOT NULL), d), '') END",

	"ts_round(a, u) AS CASE WHEN isfinite(a) THEN make_timestamp(skade_round_to(epoch_us(a), CAST(u AS BIGINT))) ELSE a END",
	"tstz_round(a, u) AS CASE WHEN isfinite(a) THEN make_timestamptz(skade_round_to(epoch_us(a), CAST(u AS BIGINT))) ELSE a END",
	"time_round(a, u) AS (TIME '00:00:00' + to_microseconds(skade_round_to(date_diff('microsecond', TIME '00:00:00', a), CAST(u AS BIGINT))))",
	"time_interval(a) AS to_microseconds(date_diff('microsecond', TIME '00:00:00', a))",
	"interval_time(a) AS (TIME '00:00:00' + to_microseconds(skade_fn.interval_micros(a)))",
	"utc_offset(a) AS skade_utc_offset(a)",
	"timestamptz_out(a) AS skade_timestamptz_out(CAST(a AS TIMESTAMP), CASE WHEN isfinite(a) THEN CAST(date_part('timezone', a) AS BIGINT) ELSE 0 END)",
	"timestamptz_json(a) AS skade_timestamptz_json(CAST(a AS TIMESTAMP), CASE WHEN isfinite(a) THEN CAST(date_part('timezone', a) AS BIGINT) ELSE 0 END)",
	"timestamptz_in(a) AS skade_timestamptz_in(a, current_setting('TimeZone'))",
	"make_date(y, m, d) AS skade_make_date(CAST(y AS BIGINT), CAST(m AS BIGINT), CAST(d AS BIGINT))",
	"overlaps(a, b, c, d) AS (least(a, b) = least(c, d) OR (least(a, b) < greatest(c, d) AND least(c, d) < greatest(a, b)))",

	// Without len: DuckDB leaves its type open when it sees a parameter.
	"any_eq(x, l) AS CASE WHEN l IS NULL THEN NULL WHEN x IS NULL THEN CASE WHEN list_count(list_transform(l, lambda e: true)) > 0 THEN NULL ELSE false END " +
		"WHEN list_contains(l, x) THEN true WHEN list_contains(list_transform(l, lambda e: e IS NULL), true) THEN NULL ELSE false END",
	"bool_any(l) AS CASE WHEN l IS NULL THEN NULL WHEN list_contains(l, true) THEN true WHEN list_contains(list_transform(l, lambda e: e IS NULL), true) THEN NULL ELSE false END",
	"bool_all(l) AS CASE WHEN l IS NULL THEN NULL WHEN list_contains(l, false) THEN false WHEN list_contains(list_transform(l, lambda e: e IS NULL), true) THEN NULL ELSE true END",
	"item(l, i) AS CASE WHEN i >= 1 THEN l[i] END",
	"slice(l, a, b) AS CASE WHEN a IS NULL OR b IS NULL THEN NULL WHEN greatest(a, 1) > least(b, len(l)) THEN l[1:0] ELSE l[greatest(a, 1):least(b, len(l))] END",
	// A struct in a list of one, so that each argument is evaluated once.
	"array_set(l, i, v) AS list_transform([{'l': l, 'i': i, 'v': v}], lambda s: CASE WHEN s.i IS NULL THEN error('skade:22004 array subscript in assignment must not be null') " +
		"WHEN s.i < 1 OR s.i > 1 AND coalesce(len(s.l), 0) = 0 THEN error('skade:0A000 arrays with a lower bound other than 1 are not supported') " +
		"WHEN s.i <= len(s.l) THEN s.l[1:s.i - 1] || [s.v] || s.l[s.i + 1:] ELSE list_resize(coalesce(s.l, []), s.i - 1) || [s.v] END)[1]",
	"array_set_slice(l, i, j, v) AS list_transform([{'l': l, 'i': i, 'j': j, 'v': v}], lambda s: CASE WHEN s.i IS NULL OR s.j IS NULL THEN error('skade:22004 array subscript in assignment must not be null') " +
		"WHEN s.v IS NULL THEN s.l WHEN s.i > s.j + 1 OR s.i > s.j AND coalesce(len(s.l), 0) > 0 THEN error('skade:2202E upper bound cannot be less than lower bound') " +
		"WHEN len(s.v) < s.j - s.i + 1 THEN error('skade:2202E source array too small') " +
		"WHEN s.i < 1 OR s.i > 1 AND coalesce(len(s.l), 0) = 0 THEN error('skade:0A000 arrays with a lower bound other than 1 are not supported') " +
		"ELSE list_resize(coalesce(s.l, []), s.i - 1) || s.v[1:s.j - s.i + 1] || coalesce(s.l, [])[s.j + 1:] END)[1]",
	"array_position(l, x) AS CAST(CASE WHEN x IS NULL THEN nullif(list_position(list_transform(l, lambda e: e IS NULL), true), 0) ELSE nullif(list_position(l, x), 0) END AS INTEGER)",
	"array_lower(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN CAST(1 AS INTEGER) END",
	"array_item(x) AS CASE WHEN x IS NULL THEN 'NULL' ELSE skade_array_quote(x) END",
	"array_out(l) AS CASE WHEN l IS NULL THEN NULL ELSE '{' || coalesce(array_to_string(l, ','), '') || '}' END",
	"array2_out(l) AS CASE WHEN l IS NULL THEN NULL ELSE '{' || array_to_string(list_transform(l, lambda r: '{' || array_to_string(r, ',') || '}'), ',') || '}' END",
	"record_field(x) AS coalesce(skade_record_quote(x), '')",
}

// InitSQL lists the statements that define FuncSchema and its macros. GoFuncs are registered before.
func InitSQL() []string {
	out := []string{"CREATE SCHEMA IF NOT EXISTS " + FuncSchema}
	for _, m := range macros {
		out = append(out, "CREATE OR REPLACE MACRO "+FuncSchema+"."+m)
	}
	return out
}
