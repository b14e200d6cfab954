package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
)

// joinModes are the settings of skade.key_joins.
var joinModes = []string{"off", "auto", "always"}

// everyWay expects a query's rows, in any order, in every mode of joins by key: columns joined by commas, rows by spaces.
func everyWay(t *testing.T, c *pgx.Conn, sql, want string) {
	t.Helper()
	for _, mode := range joinModes {
		run(t, c, "SET skade.key_joins = "+mode)
		var got []string
		for _, r := range rows(t, c, sql) {
			got = append(got, strings.Join(r, ","))
		}
		slices.Sort(got)
		assert.Equal(t, want, strings.Join(got, " "), mode+": "+sql)
	}
	run(t, c, "RESET skade.key_joins")
}

// What drives a join by key must give every key that a row of the answer needs, and no outer join may find a row missing for want of it. The answers are
// PostgreSQL 15's.
func TestJoinsByKeyOfRowsThatMayBeMissing(t *testing.T) {
	c := start(t).connect()
	run(t, c, `CREATE TABLE big (id int PRIMARY KEY, v text);
		CREATE TABLE d0 (a int, k int); INSERT INTO d0 VALUES (1, 3), (2, 4);
		CREATE TABLE x0 (x int); INSERT INTO x0 VALUES (1), (2), (3), (4);
		CREATE TABLE d (a int, b int);
		CREATE TABLE ar (n int, p int[], q int[]); INSERT INTO ar VALUES (1, '{1,2}', '{10,20,30}'), (2, '{}', '{5}'), (3, NULL, '{6,7}'), (4, '{9}', NULL)`)
	run(t, c, "INSERT INTO big SELECT i, 'v' || i FROM generate_series(1, 120000) i")
	run(t, c, "INSERT INTO d SELECT CASE WHEN i % 7 = 0 THEN NULL ELSE i END, i % 5 FROM generate_series(1, 60) i")
	for _, q := range [][2]string{
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a is null", "1 2"},
		{"select x from (d0 join big on big.id=d0.k) right join x0 on big.id=x where d0.a is null", "1 2"},
		{"select x from x0 full join (d0 join big on big.id=d0.k) on big.id=x where d0.a is null", "1 2"},
		{"select x from x0 left join (d0 left join big on big.id=d0.k) on big.id=x where d0.a is null", "1 2"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where coalesce(d0.a,9)=9", "1 2"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a is distinct from 1", "1 2 4"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where (d0.a is not null)=false", "1 2"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where not (d0.a is not null)", "1 2"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a = 1 or d0.a is null", "1 2 3"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a is not distinct from null", "1 2"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where (d0.a > 1) is not true", "1 2 3"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where (case when d0.a is null then 1 else 0 end) = 1", "1 2"},
		{"select x from x0 left join (d0 join big on big.id in (select d0.k)) on big.id=x where d0.a is null", "1 2"},
		{"select x from x0 left join (d0 join big on exists (select where big.id = d0.k)) on big.id=x where d0.a is null", "1 2"},
		{"select x from x0 left join (select d0.a, big.id from d0 join big on big.id=d0.k) s on s.id=x where s.a is null", "1 2"},
		{"select x from x0 left join lateral (select d0.a, big.id from d0 join big on big.id=d0.k where big.id=x) s on true where s.a is null", "1 2"},
		{"select x, d0.a from x0 left join (d0 cross join lateral (select * from big where big.id=d0.k) b) on b.id=x where d0.a is null", "1,∅ 2,∅"},
		{"select x, l.v from x0 left join d0 on d0.k = x left join big l on l.id = coalesce(d0.k, 7) where d0.a is null", "1,v7 2,v7"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a = 1", "3"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a in (2, 3) and d0.k is not null", "4"},
		{"select x, y.x0x from x0 left join (select x0.x as x0x from x0 left join (d0 join big on big.id=d0.k) on big.id=x0.x where d0.a is null) y on y.x0x = x", "1,1 2,2 3,∅ 4,∅"},
		{"select x from x0 left join (x0 y(yx) left join (d0 join big on big.id=d0.k) on big.id=yx) on yx = x and d0.a is null where yx is null", "3 4"},
		{"with w as (select x, d0.a from x0 left join (d0 join big on big.id=d0.k) on big.id=x where d0.a is null) select x from w", "1 2"},
		{"select x from x0 where x in (select y.x from x0 y left join (d0 join big on big.id=d0.k) on big.id=y.x where d0.a is null)", "1 2"},
		{"select x from x0 where exists (select from x0 y left join (d0 join big on big.id=d0.k) on big.id=y.x where d0.a is null and y.x = x0.x)", "1 2"},
		{"select x from x0 natural left join (d0 join big on big.id=d0.k) s(x,k,i,v) where s.k is null", "3 4"},
		{"select x from x0 left join (d0 join big on big.id=d0.k) on big.id=x group by x, d0.a having d0.a is null", "1 2"},
		{"select count(*) from big where id in (select coalesce(b,7)+a from d group by rollup(a,b))", "64"},
		{"select count(*) from big where id in (select coalesce(b,7)+a from d group by cube(a,b))", "64"},
		{"select count(*) from big where id in (select coalesce(b,7)+a from d group by grouping sets ((a),(b),()))", "52"},
		{"select count(*) from big where id in (select coalesce(b,7)+a from d group by a, rollup(b))", "64"},
		{"select count(*) from big where id in (select coalesce(s.b,7)+s.a from (select a,b from d group by rollup(a,b)) s)", "64"},
		{"select count(*) from (select a,b,count(*) n from d group by grouping sets ((a),(a,b))) s join big on big.id = coalesce(s.b,9)*10+s.a", "104"},
		{"select count(*) from big where id in (select coalesce(b,7)+a from d group by (a,b))", "52"},
		{"select count(*) from big where id in (select 10*grouping(a,b)+coalesce(a,b,0) from d group by rollup(a,b))", "68"},
		{"select big.id from (select n, unnest(p) as a, unnest(q) as b from ar) s join big on big.id = coalesce(s.a,70)+s.n", "13 2 3 71 72 73 73"},
		{"select big.id from (select n, unnest(p) as a, unnest(q) as b from ar) s join big on big.id = coalesce(s.a,70)+s.b", "100 11 22 75 76 77"},
		{"select big.id from ar left join lateral unnest(p,q) s(a,b) on true join big on big.id = coalesce(s.a,70)+coalesce(s.b,100)", "100 109 11 22 75 76 77"},
		{"select big.id from ar left join lateral unnest(p) s(a) on true join big on big.id = coalesce(s.a,70)", "1 2 70 70 9"},
		{"select big.id from ar, lateral rows from (unnest(p), generate_series(1,n)) s(a,b) join big on big.id = coalesce(s.a,70)+s.b", "10 2 71 71 72 72 72 73 73 74"},
		{"select big.id from (select max(k) m, count(*) c from d0) s join big on big.id = s.m + s.c", "6"},
		{"select big.id from (select a, lag(k,1,77) over (order by a) as l from d0) s join big on big.id = s.l + s.a", "5 78"},
		{"select big.id from (select distinct on (b) b, a from d order by b, a) s join big on big.id = coalesce(s.a, 500) + s.b", "2 4 5 6 8"},
		{"select big.id, u from (select coalesce(x0.x, d0.k+100) as u from x0 full join d0 on d0.k = x0.x + 1) s join big on big.id = u", "1,1 2,2 3,3 4,4"},
		{"select big.id from (x0 full join d0 y(z,x) using (x)) join big on big.id = x + coalesce(z, 10)", "11 12 4 6"},
		{"with recursive r(i, j) as (select 1, 2 union all select i + 1, k * 10 from r join d0 on d0.a = i where i < 4) select big.id from r join big on big.id = r.j", "2 30 40"},
		{"select big.id from (select k from d0 except select x from x0 where x = 3 intersect select a from d) s join big on big.id = coalesce(s.k, 4) * 2", "8"},
		{"select big.id from (select k from d0 order by a desc limit 1) s join big on big.id = s.k", "4"},
		{"select big.id from (values (1, null), (2, 5)) s(p, q) left join d0 on d0.a = s.q join big on big.id = coalesce(d0.k, s.p + 40)", "41 42"},
		{"select d.a, big.id from d left join big on big.id = (select max(k) from d0 where d0.a <= d.a) where d.b = 3 and d.a < 20", "13,4 18,4 3,4 8,4"},
	} {
		everyWay(t, c, q[0], q[1])
	}
}
