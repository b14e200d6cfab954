PARAMS select * from t where a = $1
PARAMS select * from sales.orders where id = $1 and ts > $2 and amt < $3 and note like $4
PARAMS select $1
PARAMS select $1::int, $2::text[]
PARAMS select $1 + 1
PARAMS select $1 || 'x'
PARAMS select now() - $1
PARAMS select $1 + $2
PARAMS select * from t where a = any($1)
PARAMS select * from t where a in ($1, $2)
PARAMS select * from t where b in ($1, 'x')
PARAMS select * from t limit $1 offset $2
PARAMS select * from t where a between $1 and $2
PARAMS select * from t where $1
PARAMS select coalesce($1, 1)
PARAMS select coalesce($1, $2)
PARAMS select case when $1 then $2 else 3 end
PARAMS select lower($1), length($2), substring($3, $4, $5)
PARAMS select date_trunc('day', $1::timestamp), date_trunc($2, now())
PARAMS select extract(year from $1::date)
PARAMS select $1::timestamptz at time zone $2
PARAMS select * from generate_series(1, $1) g
PARAMS select * from t where (a, c) = ($1, $2)
PARAMS select * from t where b is null and c > $1 * 2
PARAMS select '{"a":1}'::jsonb -> $1
PARAMS select '{"a":1}'::jsonb ->> $1, '{"a":1}'::jsonb @> $2
PARAMS select array[$1, 2], array[$2::text, $3]
PARAMS insert into t values ($1, $2, $3)
PARAMS insert into t (b, a) values ($1, $2), ($3, $4)
PARAMS insert into t (a, b) select $1, $2
PARAMS insert into sales.orders (id, ts, amt, tags, doc, uid, iv, by, sm, vc) values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)
PARAMS insert into t (a, b) values ($1, $2) on conflict (a) do update set b = excluded.b, c = $3 where t.c < $4 returning a, b
PARAMS update t set b = $1, c = c + $2 where a = $3 returning *
PARAMS update t set c = $1::int8 where a = $2
PARAMS delete from t where a = $1
PARAMS delete from t using u where t.a = u.a and u.n > $1
PARAMS select $1 = $2
PARAMS select $1 is null
PARAMS select $1::varchar(3), $2::numeric(5,2)
PARAMS select nullif($1, 1), greatest($2, 1.5)
PARAMS select * from t where b ilike $1 or b ~ $2
PARAMS select sum(a) filter (where c > $1) from t having count(*) > $2
PARAMS select a from t union select $1
PARAMS select $1 union select 1
PARAMS select * from (values ($1, 1), (2, $2)) v
PARAMS select (select $1::int) + $2
PARAMS select a from t where exists (select 1 from u where u.a = t.a and u.s = $1)
PARAMS select a from t order by case when $1 then a end
PARAMS with x as (select $1::int as p) select * from x where p = $2
PARAMS select interval '1 day' * $1
PARAMS select $1 * interval '1 day'
PARAMS select to_char($1::numeric, $2)
PARAMS select concat($1, $2)
PARAMS select format('%s', $1)
PARAMS select json_build_object('a', $1)
PARAMS select string_agg(b, $1) from t
PARAMS select round($1, 2)
PARAMS select round($1)
PARAMS select abs($1)
PARAMS select make_date($1, $2, $3)
PARAMS select unnest($1::int[])
PARAMS select array_append($1::int[], $2)
PARAMS select $1[1]
PARAMS select ($1::int[])[1]
PARAMS select not $1
PARAMS select $1 and $2
PARAMS select a from t where b = $1 and $1 = 'x'
PARAMS select a from t where a = $1 and b = $1
PARAMS select $2::int
PARAMS select row_number() over (order by $1), lag(a, $2) over (order by a) from t
PARAMS select * from t a join u b on a.a = b.a and b.n = $1
PARAMS select * from t fetch first $1 rows only
PARAMS select date '2024-01-01' + $1, date '2024-01-01' - $2
PARAMS select a::text = $1 from t
PARAMS select c / $1 from t
PARAMS select g / $1, f * $2, amt + $3 from sales.orders
PARAMS select id from sales.orders where uid = $1 or b = $2 or by = $3 or iv > $4 or tm < $5 or d = $6
PARAMS select id from sales.orders where tags && $1 or $2 = any(tags) or doc ? $3
PARAMS values ($1, 1), (2, $2)
PARAMS select null = $1
PARAMS select pg_typeof($1)
# Errors of INSERT, UPDATE, DELETE.
PARAMS insert into t (a, nosuch) values (1, 2)
PARAMS insert into t (a, a) values (1, 2)
PARAMS insert into t values (1, 2, 3, 4)
PARAMS insert into t (a, b) values (1)
PARAMS insert into t values (1), (1, 2)
PARAMS insert into t (a) values (date '2024-01-01')
PARAMS insert into t (a) select b from t
PARAMS insert into nosuch values (1)
PARAMS insert into t values ('x')
PARAMS insert into t values (1) on conflict do update set b = 'x'
PARAMS insert into t values (1) on conflict on constraint x do nothing
PARAMS insert into t values (1) returning nosuch
PARAMS insert into t values (a)
PARAMS update t set nosuch = 1
PARAMS update t set a = 1, a = 2
PARAMS update t set a = 'x'::text
PARAMS update t set b = 1 where nosuch
PARAMS update t set a = count(*)
PARAMS delete from t where a
PARAMS delete from nosuch
PARAMS insert into t (a) values (1) on conflict (nosuch) do nothing
PARAMS update t set (a, b) = (1, 2, 3)
PARAMS update t x set x.a = 1
PARAMS update t set a = 1 from t
PARAMS delete from t using t
PARAMS insert into t (a) values (1) returning count(*)
PARAMS insert into t default values returning a
PARAMS insert into t values (default, default)
PARAMS insert into t select 1, 'x', 3, 4
PARAMS insert into t (a) select 'x'
PARAMS insert into t (a) values (1.5), ('x')
PARAMS insert into t (a) values ((select b from t))
PARAMS insert into t values (1) on conflict (a) do update set a = nosuch
PARAMS insert into t values (1) on conflict (a) do update set a = excluded.nosuch
PARAMS insert into t values (1) on conflict (a) do update set b = b
PARAMS insert into sales.orders (id, tags) values (1, 'x')
PARAMS insert into u (s) values ('too long for it')
PARAMS update t set c = $1 + 'x'
PARAMS update t set b = 5
PARAMS update t set a = true
PARAMS delete from t returning nosuch
PARAMS delete from t x where t.a = 1
