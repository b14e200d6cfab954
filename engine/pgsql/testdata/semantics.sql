# The lines of the semantics study.
select substring('abcdef' from 2 for 3), position('c' in 'abc'), trim(both 'x' from 'xax'), overlay('abcdef' placing 'ZZ' from 2 for 2)
select 1 is distinct from null, null is not distinct from null, 3 between symmetric 5 and 1
select 'a_c' like 'a\_c', 'abc' like 'a%' escape '!', 'ABC' ilike 'a%', 'abc' similar to '(a|b)%'
select array[1,2,3], array[[1,2],[3,4]], '{1,2}'::int[], (array[1,2,3])[2:3], array_length(array[1,2],1), cardinality(array[1,2]), 1 = any(array[1,2])
select x from (values (3),(1),(2),(2)) t(x) order by x fetch first 2 rows with ties
select interval '1' day, interval '1 year 2 months 3 days 04:05:06', interval '90 minutes', interval '1.5 hours'
select 7/2, -7/2, 7%3, -7%3, 7.0/2, 1/3.0, 2^10, 10::numeric/3
select round(2.5), round(3.5), round(-2.5), round(2.5::float8), trunc(2.7), ceil(2.1), floor(-2.1), round(2.345,2)
select to_char(timestamp '2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS'), to_char(1234.5, '9,999.99')
select to_date('2024-05-06','YYYY-MM-DD'), to_timestamp('2024-05-06','YYYY-MM-DD')
select md5('a'), length('héllo'), octet_length('héllo'), upper('é'), reverse('abc'), lpad('a',3,'x'), repeat('ab',2), left('abc',2), right('abc',2), strpos('abc','c'), initcap('hello world'), ascii('a'), chr(97)
select regexp_replace('foobar','o','0'), regexp_replace('foobar','o','0','g'), 'foobar' ~ 'oo', 'foobar' !~ 'x', 'FOO' ~* 'o', regexp_match('foobar','o+'), split_part('a,b,c',',',2), string_to_array('a,b',',')
select string_agg(x, ',' order by x desc), array_agg(x order by x), bool_and(true), every(true), count(distinct x) from (values ('a'),('b')) t(x)
select percentile_cont(0.5) within group (order by x), percentile_disc(0.5) within group (order by x), mode() within group (order by x), stddev(x), variance(x), corr(x,x) from (values (1.0),(2.0),(4.0)) t(x)
select sum(x), avg(x), sum(y), avg(y) from (values (1,1.5),(2,2.5)) t(x,y)
select '{"a":{"b":[1,2]}}'::json -> 'a' ->> 'b', '{"a":1}'::jsonb -> 'a', '{"a":1}'::jsonb ->> 'a', '{"a":{"b":2}}'::jsonb #>> '{a,b}', jsonb_typeof('[1]'::jsonb), '{"a":1}'::jsonb ? 'a'
select json_build_object('a',1), jsonb_agg(x) from (values (1),(2)) t(x)
select generate_series(1,3)
select * from unnest(array[1,2], array['a','b']) with ordinality as u(a,b,n)
select date_trunc('week', timestamp '2024-05-08 10:00'), age(timestamp '2024-05-08', timestamp '2023-01-01'), make_date(2024,1,2), justify_hours(interval '27 hours')
select current_schema, current_database(), current_user, session_user
select 0.1+0.2, 0.1::float8+0.2::float8, 1e20::float8, 1e15::float8, 123456789.123::float4, 'NaN'::float8, 'Infinity'::float8
select 1::numeric, 1.10::numeric(5,2), 12345678901234567890.123::numeric, 99999999999::numeric(12,2)*2
select '\x41'::bytea, encode('abc','hex'), decode('616263','hex'), 'abc'::bytea
select 'abc'::char(5) || 'x', 'abcdef'::varchar(3), 'abcdef'::char(2)
select count(*) from (values (1),(2)) t(x) tablesample bernoulli (100)
select pg_typeof(1), pg_typeof('a'::text), pg_typeof(now())
select now() - interval '1 day' < now(), clock_timestamp() > now() - interval '1 hour', extract(epoch from interval '1 day'), localtimestamp is not null
select quote_ident('a b'), quote_literal('it''s'), format('%s-%I', 'a', 'b c')
select width_bucket(5, 0, 10, 5), gcd(12, 8), div(7,2), mod(7,2), sign(-3), power(2,3), log(100), ln(1), exp(0), sqrt(4), cbrt(27), degrees(pi()), abs(-1)
select 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 3, 8 >> 1
select translate('abc','ab','xy'), btrim('  a '), rtrim('a  '), ltrim('  a'), char_length('abc'), substr('abc',2)
select array_append(array[1],2), array_cat(array[1],array[2]), array_position(array[1,2],2), array[1,2] || 3, array[1,2] @> array[1], array[1,2] && array[2,3]
# Constants, types, names.
select 1, 'a', 1.5, true, null, 2147483648, 9223372036854775808, 1e3, -5, - 5, +3, 0.000, 1.50
select 1 as a, 2 b, count(*), coalesce(1,2), case when true then 1 end, 'x'::text, cast(1 as bigint), array[1], row(1,2) is null, exists (select 1), nullif(1,2), greatest(1,2), current_date is null
select 'yes'::bool, 'off'::bool, ' 12 '::int, '1e3'::float8, '2024-01-05'::date, 'epoch'::timestamp, 'P1Y2M3DT4H5M6S'::interval, '12:34:56.789'::time
select 1::int2, 1::int8, 1::float4, 1::numeric(5,2), 1::text, 1::varchar, 1::bool, true::int, true::text, 1.5::int, 2.5::int, -2.5::int, 2.5::float8::int
select '2024-02-29'::date + 1, '2024-02-29'::date - 1, date '2024-03-01' - date '2024-02-01', date '2024-01-31' + interval '1 month', timestamp '2024-01-01 10:00' - timestamp '2023-12-30 12:30'
select timestamp '2024-01-01 10:00:00.123456'::timestamp(0), timestamp '2024-01-01 10:00:00.123456'::timestamp(3), time '10:00:00.56'::time(1)
select timestamptz '2024-07-01 12:00:00+02', timestamptz '2024-07-01 12:00:00', timestamptz '2024-07-01 12:00:00+02' at time zone 'Europe/Oslo', timestamp '2024-07-01 12:00' at time zone 'Europe/Oslo'
select interval '1 month' * 2, interval '1 day' / 2, interval '1 month' * 1.5, interval '1 day' < interval '25 hours', interval '1 month' = interval '30 days', -interval '1 day 2 hours', interval '3 days' + interval '2 hours'
select time '10:00' + interval '1 hour', time '10:00' - time '09:30', date '2024-01-01' + time '10:00'
select extract(year from date '2024-05-06'), extract(dow from date '2024-05-05'), extract(epoch from timestamp '2024-01-01 00:00:00.5'), extract(second from timestamp '2024-01-01 00:00:01.5'), date_part('month', timestamp '2024-05-06'), extract(week from date '2024-01-01'), extract(milliseconds from time '00:00:01.25')
select date_trunc('month', date '2024-05-06'), date_trunc('hour', timestamp '2024-05-06 07:08:09'), date_trunc('day', interval '3 days 04:05:06'), date_trunc('quarter', timestamptz '2024-05-06 07:08:09+00')
select age(date '2024-05-08', date '2023-01-01'), age(timestamp '2023-01-01', timestamp '2024-05-08'), justify_days(interval '35 days'), justify_interval(interval '1 mon -1 hour')
select make_interval(days => 10, hours => 5), make_timestamp(2024,1,2,3,4,5.5), make_time(1,2,3.5), to_timestamp(0)
select to_char(date '2024-05-06', 'Day, DD Month YYYY'), to_char(timestamp '2024-05-06 17:08:09.123', 'HH12:MI:SS.MS AM'), to_char(timestamp '2024-05-06', 'IYYY-IW-ID Q DDD'), to_char(timestamp '2024-05-06', 'FMMonth FMDD, YYYY'), to_char(timestamp '2024-05-01', 'DDth Mon YY')
select to_char(-1.5, '9999.99'), to_char(1234567.891, 'FM9,999,999.00'), to_char(0.5, '0.00'), to_char(12, '0000'), to_char(-12, 'S9999'), to_char(12, '999MI'), to_char(485, 'RN'), to_char(1234, 'L9G999'), to_char(0, '9.99'), to_char(99999, '999')
select to_date('06 May 2024', 'DD Mon YYYY'), to_timestamp('2024-05-06 17:08:09', 'YYYY-MM-DD HH24:MI:SS'), to_date('20240506', 'YYYYMMDD'), to_number('1,234.50', '9,999.99')
# Numerics
select 1.0 + 1.00, 1.5 * 1.25, 10.00 / 4, 7 / 2.0, 1::numeric / 7, 100000::numeric / 3, 0.0001 / 3, 2.5 % 2, -7.5 % 2
select sum(n), avg(n), min(n), max(n), count(n), sum(a), avg(a), sum(a::bigint), avg(a::float8), stddev(a), var_pop(a) from u
select round(1234.5678, 2), round(1234.5678, -2), trunc(1234.5678, 2), round(0.5), round(1.5), round(-0.5), ceil(-1.5), sign(-2.5), abs(-2.50), scale(1.500), mod(7.5, 2)
select 2::numeric ^ 3, power(2, 0.5), sqrt(2::numeric), ln(2::numeric), log(2, 8), exp(1::numeric), log(100.0)
select 12345678901234567890::numeric * 10, 0.1::numeric * 0.1, 1.10 = 1.1, 1.10::text, (1.10 + 1)::text, 5.0::float8::text, 1e20::numeric, 1.5e-5
select 1.5::float8 + 1, 1.5::float4 * 2, 1::float8 / 3, 1e300::float8 * 10
select 5::float8 % 2::int
select a, a / 2, a::numeric / 2, n * 2, n / 2, n + a from u order by a, n
select 3 + 2::int2, pg_typeof(3::int2 + 2::int2), pg_typeof(3::int2 + 2), pg_typeof(3 + 2::bigint), pg_typeof(1 + 1.5), pg_typeof(1.5 + 1::float8), pg_typeof(1::float4 + 1)
select 32767::int2 + 1::int2
select 2147483647 + 1
select 9223372036854775807 + 1
select 1/0
select 1.0/0
select 1::float8/0
select 5 % 0
select 300::int2 * 300::int2
select 99999::int2
select '99999'::int2
select 'abc'::int
select ''::int
select '1.5'::int
select 'abc'::numeric
select 'maybe'::bool
select '2024-13-01'::date
select 'abc'::date
select 'zz'::uuid
select '{'::json
select '{1,x}'::int[]
select 99999::numeric(4,2)
select sqrt(-1)
select ln(0)
# Strings
select 'a' || 'b', 'a' || 1, 1 || 'a', 'a' || null, 'a' || 1.50, 'a' || true, 'a' || date '2024-01-01', array[1] || array[2,3], 'x' || array['y']::text
select upper('abc'), lower('ABC'), initcap('o''neil mc-donald'), length(''), lpad('abc', 5), lpad('abc', 2), rpad('abc', 5, 'xy'), ltrim('xxabc', 'x'), trim('  a  '), trim(leading 'x' from 'xxa'), btrim('xyax', 'xy')
select substring('abcdef', 2), substring('abcdef', 0, 3), substring('abcdef' from -1 for 4), substring('abcdef' from 'c.e'), substring('foobar' from 'o(.)b'), left('abc', -1), right('abc', -1), left('abc', 10)
select split_part('a,b,c', ',', 1), split_part('a,b,c', ',', 5), split_part('a,b,c', ',', -1), replace('abcabc', 'b', 'XX'), position('z' in 'abc'), strpos('abc', ''), starts_with('abc', 'ab'), concat('a', null, 1, true), concat_ws('-', 'a', null, 'b')
select chr(8364), ascii('€'), to_hex(255), encode('\x0001ff'::bytea, 'base64'), encode('\x0001ff'::bytea, 'escape'), decode('AAH/', 'base64'), md5('\x00'::bytea), sha256('abc'::bytea)
select quote_literal('a\b'), quote_nullable(null), quote_ident('select'), quote_ident('abc'), format('%s %L %I %%', 'x', 'y', 'Z'), format('%2$s %1$s', 'a', 'b'), format('[%5s] [%-5s]', 'a', 'b')
select regexp_replace('abc', '(b)', '[\1]'), regexp_replace('aaa', 'a', 'b', 'g'), regexp_replace('Hello', 'l', 'L', 'gi'), regexp_match('abcd', '(b)(c)'), regexp_match('abc', 'x'), regexp_split_to_array('a1b2c', '[0-9]'), regexp_count('abcabc', 'b'), regexp_like('ABC', 'b', 'i'), regexp_substr('foobar', 'o+')
select 'abc' ~ '^a', 'abc' ~ 'B', 'abc' ~* 'B', 'abc' !~* 'z', 'a.c' ~ 'a\.c', 'foo bar' ~ '\mbar\M', 'abc' ~ '[[:alpha:]]+', E'a\nb' ~ 'a.b', 'x' similar to 'x|y', 'abc' similar to 'a_c', 'abc' not similar to '%z'
select 'abc' like 'a%', 'abc' like '_b_', 'a%c' like 'a\%c', 'abc' not like 'a%', 'ABC' ilike 'a%', 'abc' ~~ 'a%', 'a' like null, 'abc' like 'abc', 'a\b' like 'a\\b'
select string_to_array('a,b,,c', ','), string_to_array('abc', null), string_to_array('', ','), string_to_array('a,b', ',', 'b'), array_to_string(array['a',null,'b'], ','), array_to_string(array['a',null,'b'], ',', '*'), array_to_string(array[1,2], '-'), array_to_string(array[]::int[], ',')
select repeat('x', 0), reverse('héllo'), translate('12345', '143', 'ax'), overlay('abcdef' placing 'X' from 3), bit_length('abc'), char_length('€'), octet_length('€'), 'abc' collate "C", 'a' < 'B' collate "C"
select 'abc'::varchar(2), 'abc'::char(5), length('abc  '::char(5)), 'ab'::char(5) = 'ab   ', 'abc'::name, 'a'::"char", cast('abcdef' as char(3)), 'x'::bpchar
# Arrays
select (array[1,2,3])[1], (array[1,2,3])[5], array[1,2] = array[1,2], array[1,2] < array[1,3], '{a,"b c",NULL}'::text[], '{}'::int[], array[null]::int[], array['a','b'], array[1.5, 2], (array[[1,2],[3,4]])[2][1]
select array_length(array[1,2,3], 1), array_length('{}'::int[], 1), array_upper(array[1,2], 1), array_lower(array[1,2], 1), array_ndims(array[[1],[2]]), array_dims(array[1,2]), array_remove(array[1,2,1], 1), array_replace(array[1,2,1], 1, 9), array_positions(array[1,2,1], 1), array_prepend(0, array[1]), cardinality('{}'::int[])
select 1 = any('{1,2}'), 3 = any(array[1,2]), 1 <> all(array[2,3]), null = any(array[1]), 1 = any(array[null,1]), 2 = any(array[null,1]), 5 > any(array[4,6]), 5 > all(array[1,2]), 'abc' like any(array['a%', 'z%']), 1 = any('{}'::int[])
select unnest(array[1,2]), unnest(array['a','b','c'])
select unnest('{1,2}'::int[]) + 1
select * from unnest(array['a','b']) with ordinality
select * from unnest(array[1,2]) x
select x, x.x from unnest(array[1,2]) x(x)
select * from generate_series(1, 10, 3) g, generate_series(1, g) h where g < 5 order by 1, 2
select * from generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day') d
select generate_series(date '2024-01-01', date '2024-01-02', interval '1 day')
select generate_series(3, 1, -1), 'x'
select * from generate_series(1.0, 2.0, 0.5)
select array(select a from t order by a desc), array(select 1 where false)
select array_agg(a order by b desc nulls last), array_agg(distinct c order by c), array_agg(a) filter (where a > 2) from t
# JSON
select '{"b":1,"a":2,"a":3}'::jsonb, '{"b":1,"a":2}'::json, '[1, 2,3]'::jsonb, '"x"'::jsonb, '1.50'::jsonb, 'null'::jsonb, '{"a": {"b": [1,2,{"c":"d"}]}}'::jsonb #> '{a,b,2}', '{"a":[1,2]}'::json -> 'a' -> 1, '[1,2]'::jsonb -> -1, '{"a":null}'::jsonb ->> 'a'
select json_build_object('a', 1, 'b', 'x', 'c', null, 'd', true, 'e', array[1,2]), jsonb_build_object('z', 1, 'a', 2.50), json_build_array(1, 'a', null), jsonb_build_array(1, 'a'), to_json('x'::text), to_jsonb(1.5), to_json(array[1,2]), to_jsonb(true), to_json(date '2024-01-01'), to_json(timestamp '2024-01-01 10:00')
select json_agg(a), jsonb_agg(b), json_object_agg(a, b), jsonb_object_agg(a, c) from t where a < 4
select row_to_json(t) from t where a = 1
select to_jsonb(t), json_agg(t) from t where a = 2 group by t.a
select jsonb_set('{"a":1}', '{b}', '2'), jsonb_set('{"a":[1,2]}', '{a,0}', '9'), '{"a":1}'::jsonb || '{"b":2}', '{"a":1,"b":2}'::jsonb - 'a', '[1,2,3]'::jsonb - 1, '{"a":{"b":1}}'::jsonb #- '{a,b}', jsonb_pretty('{"a":[1,2]}'), jsonb_strip_nulls('{"a":null,"b":1}'), json_array_length('[1,2]'), jsonb_array_length('[]')
select '{"a":1}'::jsonb @> '{"a":1}', '{"a":1,"b":2}'::jsonb @> '{"a":1}', '[1,2,3]'::jsonb @> '[2]', '{"a":1}'::jsonb <@ '{"a":1,"b":2}', '{"a":1}'::jsonb ?| array['a','x'], '{"a":1}'::jsonb ?& array['a','x'], '{"a":1}'::jsonb = '{"a":1.0}'::jsonb, '{"a":"x"}'::jsonb ->> 'a' = 'x'
select * from json_each('{"a":1,"b":"x"}'), jsonb_array_elements('[1,{"a":2}]') e order by 1, 3
select * from jsonb_array_elements_text('["a",1,null]'), json_object_keys('{"k":1}') k
select jsonb_typeof('{}'), json_typeof('1'), jsonb_typeof('null'), json_extract_path_text('{"a":{"b":"c"}}', 'a', 'b'), jsonb_extract_path('{"a":{"b":1}}', 'a'), ('{"a":5}'::jsonb ->> 'a')::int + 1, ('{"a":5}'::jsonb -> 'a')::int
# Queries
select a, b from t order by 1 desc
select a, b from t order by b
select a, b from t order by b desc
select b from t order by b nulls first, a
select a as x, c from t order by x + 1
select a as x, c from t order by -a limit 2 offset 1
select count(*), count(b), sum(c), min(b), max(a), avg(c) from t
select c, count(*) from t group by c order by c
select c % 20 as m, sum(a) from t group by m order by m
select c, array_agg(a order by a) from t group by 1 having count(*) > 1
select c, sum(a), grouping(c) from t group by grouping sets ((c), ()) order by c nulls last
select c, b, count(*) from t group by rollup (c, b) order by 1, 2, 3
select t.*, u.n from t left join u on t.a = u.a order by t.a, u.n
select * from t join u using (a) order by a, n
select * from t natural join u order by 1, 4
select t.a, u.a from t full join u on t.a = u.a order by 1, 2
select t.a from t cross join u where t.a = u.a order by 1
select x.a, y.m from t x, lateral (select max(n) as m from u where u.a = x.a) y order by 1
select a from t where a in (select a from u) order by 1
select a from t where a not in (select a from u where a is not null) order by 1
select a, (select count(*) from u where u.a = t.a) as n, exists (select 1 from u where u.a = t.a) from t order by a
select a from t where (a, c) in ((1, 10), (2, 20), (3, 99)) order by a
select a from t where (a, c) > (2, 15) order by a
select (1, 2) = (1, 2), (1, null) = (2, 1), row(1, 'a') < row(1, 'b'), (1,2) is distinct from (1,3), row(null, null) is null, row(1, null) is not null
select distinct c from t order by c
select distinct on (c) c, a from t order by c, a desc
select a from t union select a from u order by 1
select a from t union all select a from u order by a desc limit 3
select a from t intersect select a from u order by 1
select a from t except select a from u order by a
select 1 union select 2.5 order by 1
select 'a' union all select 'b' order by 1
select null union select 1 order by 1
(select a from t order by a limit 1) union all (select a from u order by a desc limit 1)
with x as (select a from t), y as (select count(*) as n from x) select * from y
with recursive r(n) as (select 1 union all select n + 1 from r where n < 4) select * from r
with recursive r as (select 1 as i, 'x' as p union all select i + 1, p || 'y' from r where i < 3) select * from r order by i
with x(p, q) as (values (1, 'a'), (2, 'b')) select q, p from x order by p
values (1, 'a'), (2, null), (3, 'c')
select * from (values (1, 'x'), (2, 'y')) as v(n, s) where n > 1
select a, sum(a) over (order by a), row_number() over (order by a desc), rank() over (order by c), dense_rank() over (order by c), lag(a) over (order by a), lead(a, 1, 0) over (order by a), first_value(b) over (order by a), ntile(2) over (order by a) from t order by a
select a, sum(a) over (partition by c), avg(a) over w, count(*) over () from t window w as (partition by c order by a rows between unbounded preceding and current row) order by a
select a, sum(a) over (order by a rows between 1 preceding and 1 following), sum(a) over (order by a range between 1 preceding and current row), max(a) over (order by a groups between current row and 1 following exclude current row) from t order by a
select sum(c) filter (where a > 1), count(*) filter (where b is null), string_agg(b, '-' order by a) filter (where a < 3) from t
select case a when 1 then 'one' when 2 then 'two' else 'many' end, case when a > 2 then 1.5 else 2 end from t order by a
select coalesce(b, 'none'), coalesce(null, n, 0), nullif(a, 1), greatest(a, 2), least(null, a) from t left join u using (a) order by a, n
select a from t where b is null or b = 'one' order by a
select a from t where a between 2 and 3 order by a
select a from t where a not between 2 and 3 order by a
select a is null, a is not null, b is null, (a > 1) is true, (b = 'x') is unknown, (b = 'x') is not true from t order by a
select "X", x, "order" from "Mixed"
select * from "Mixed" m where m."X" = 1
select * from v order by a
select id, amt from sales.ov order by id limit 2
select * from sales.orders where id = 3
select id, ts, d, amt, tags[2], doc -> 'a' -> 0, f, g, vc, tm, iv * 2, by, sm + 1, i / 3 from sales.orders order by id
select orders.id, sales.orders.note from sales.orders where sales.orders.id < 3 order by 1
select count(*) from sales.orders where ts >= '2026-01-01 00:03' and ts < timestamptz '2026-01-01 00:05+00'
select count(*) from sales.orders where d = '2026-01-03' or d in ('2026-01-04', date '2026-01-05')
select count(*) from sales.orders where amt > 3 and amt <= 7.5 and uid <> '00000000-0000-4000-8000-000000000004'
select id from sales.orders where tags @> '{a,b2}' or note like '%6' order by 1
select sum(amt), avg(amt), sum(f), sum(g), avg(g), max(ts), min(d), sum(iv), sum(sm), avg(sm) from sales.orders
select date_trunc('minute', ts) as m, count(*) from sales.orders group by 1 order by 1 limit 2
select doc ->> 'k', count(*) from sales.orders group by doc ->> 'k'
select t.a, t from t where a = 1
select count(t) from t
select (t).b, (t.*) is null from t where a = 2
select row(1, 'a', null), row(a, b) from t where a = 1
select x.a + y.b from (select 1 as a) x, (select 2 as b) y
select a, b from t order by a fetch first 2 rows only
select a from t order by a offset 1 row fetch next 1 row only
select c from t order by c fetch first 1 row with ties
select a from t limit null
select 1 where false
select
select from t
select 1 as "A", 2 as "a", 3 as select_
select t.a as b, t.b as a from t where t.a = 1 order by b
select sum(x) from (select a as x from t union all select c from t) s
select * from (select a, row_number() over (order by a) as rn from t) s where rn <= 2
select a, b from t where b = any(array['one', 'two']) order by a
select lower(b) from t group by lower(b) order by 1
select a, b from t group by a order by a
select t.a, count(*) from t join u on u.a = t.a group by t.a order by 1
select max(a) + 1, sum(c) / count(*), count(*) * 2 from t
select exists (select 1 from t where a > 100), not exists (select 1 from u)
select (select b from t where a = 1), (select max(n) from u)
select * from t, u where t.a = u.a and u.n > 1 order by t.a
select current_date = now()::date, current_timestamp = now(), localtime is not null, transaction_timestamp() = now()
select version() like 'PostgreSQL 15%', pg_backend_pid() > 0, current_setting('server_version_num') is not null
select pg_typeof(null), pg_typeof('a'), pg_typeof(array[1]), pg_typeof(1.5), pg_typeof(interval '1 day'), pg_typeof(row(1,2)), pg_typeof('{}'::jsonb)
select 't'::regclass::oid > 0, 'int4'::regtype, 'integer'::regtype::text, 23::regtype
select bool_or(a > 3), bit_and(a), bit_or(a), bit_xor(a), every(a > 0) from t
select regr_slope(a, c), covar_pop(a, c), regr_count(a, c) from t
select count(distinct (a, c)), count(distinct c) from t
select string_agg(distinct b, ',' order by b) from t
select * from t tablesample system (100) order by a
select (array[10,20,30])[a] from t order by a
select array[a, c] from t order by a
select t.* from t where t.* is not null order by a
select * from (select * from t order by a desc limit 2) s order by a
select $$dollar$$, E'tab\t', U&'\0041'
select overlaps(1, 2)
select (timestamp '2024-01-01', timestamp '2024-01-03') overlaps (timestamp '2024-01-02', timestamp '2024-01-04')
select gen_random_uuid() is not null, random() < 1
select num_nulls(1, null, 2), num_nonnulls(1, null)
select interval '1-2', interval '3 4:05:06', interval '1' year, interval '10' second, interval '1 day ago', '00:00:01'::interval, interval '-1 day +02:03'
select timestamp 'infinity', date '-infinity', timestamp 'infinity' > now()::timestamp, isfinite(date '2024-01-01')
select date '0044-03-15 BC', timestamp '0001-01-01', date '9999-12-31', timestamptz '2024-01-01 00:00:00.000001+00'
select 1 << 33, 1::bigint << 33, (-8) >> 1, 5::int2 & 3::int2
select * from t where false
select a::text || '-' || coalesce(b, '') from t order by a
select to_char(sum(c), 'FM999,999') from t
select extract(day from ts), date_part('hour', ts), ts::date, ts::time, ts at time zone 'UTC' from sales.orders where id = 1
select a, case when count(*) > 1 then 'many' else 'one' end from u group by a order by a
select u.s, length(u.s), u.s || 'x', upper(u.s) from u order by 1
select n::int, n::text, n::float8, n::numeric(10,1), round(n), n = 1.5, n > 1 from u order by a, u.n
# Errors of binding
select nosuch from t
select t.nosuch from t
select nosuch.a from t
select x.a from t
select a from nosuch
select a from nosuch.t
select a from t, u
select t.a from t x
select aa from t
select a from t where nosuch = 1
select a from t group by b
select a, count(*) from t
select count(*) from t where count(*) > 1
select sum(sum(a)) from t
select nosuch(1)
select lower(1)
select lower(1, 2)
select 1 + 'a'::text
select 1 = 'a'
select 'a' + 'b'
select a || 1.5 from nosuch
select t.a + t.b from t
select not 1
select 1 and true
select * from t where a
select case when 1 then 2 end
select coalesce(1, 'x'::text)
select 1 union select 'a'::text
select 1, 2 union select 1
select array[1, 'a'::text]
select a from t order by 5
select a from t order by nosuch
select distinct a from t order by c
select distinct on (a) a from t order by c
select a from t limit a
select a from t limit 'x'
select a from t limit -1
select (select a, b from t)
select * from (select 1)
select * from t a, t a
select * from t join u using (nosuch)
select * from t join u on t.a
select 1::nosuch
select cast(1 as date)
select date '2024-01-01'::int
select true::date
select extract(nosuch from date '2024-01-01')
select date_trunc('nosuch', now())
select row_number() from t
select rank() over (order by a) from t where rank() over (order by a) = 1
select sum(a) over (order by nosuch) from t
select sum(a) over w from t
select generate_series(1, 2) from t where generate_series(1, 2) = 1
select abs('x')
select f(1) from t
select * from t for update
select a from t group by 1, 2
select 1 from t having a > 1
select interval 'x'
select 'a' like 'a' escape 'xy'
select 'abc' ~ '('
with x as (select 1), x as (select 2) select * from x
with recursive r as (select 1 union all select n + 1 from r) select * from r
select * from generate_series(1)
select max(a, b) from t
select count() from t
select length(*) from t
select a from t where b > any (select a from u)
select t.a from t left join lateral (select u.a from u where u.a = x.a) s on true
select array_append(1, 2)
select json_build_object('a')
select 1 is distinct from 'x'
select a.b.c.d.e from t
select "nosuch" from "Mixed"
select X from "Mixed" where "x" = 2
# Syntax errors
select 1 +
selec 1
select * frm t
select 'abc
select "abc
select (1
select 1)
select * from t where
select * from t order
insert into
select 1 as
select ;x
select é from t where ü = = 1
/* unterminated
select 1limit
select $1a
