package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// keyConditions are conditions on a key (a int, b text, c numeric(6,2)), some of its parts, or none of it.
var keyConditions = []string{
	"a = 1 AND b = 'x' AND c = 1", "a = 1 AND b = 'x' AND c = 1.00", "a = 1 AND b = 'x' AND c = 1.001", "a = 1.0 AND b = 'x' AND c = 1", "a = 1.5 AND b = 'x' AND c = 1",
	"a = 1::float8 AND b = 'x' AND c = 1", "a = 1::bigint AND b = 'x'::varchar AND c = 1::smallint", "a = '1' AND b = 'x' AND c = '1.0'", "a = 99999999999 AND b = 'x' AND c = 1",
	"a IN (1, 2, 1, NULL) AND b = 'x' AND c = 1", "a IN (2, 1) AND b IN ('x', 'y', 'zz') AND c IN (1, 2.5)", "a = ANY('{1,2}') AND b = ANY(ARRAY['x', NULL, 'y']) AND c = ANY('{1,2.50,9}'::numeric[])",
	"a = ANY('{}'::int[]) AND b = 'x' AND c = 1", "a = ANY(NULL::int[]) AND b = 'x' AND c = 1", "a = NULL AND b = 'x' AND c = 1", "a = ANY('{{1,2},{3,1}}') AND b = 'x' AND c = 1",
	"(a, b, c) = (1, 'x', 1)", "(a, b, c) IN ((1, 'x', 1), (2, 'y', 2.5), (1, 'x', 1), (NULL, 'x', 1))", "(b, a) IN (('x', 1), ('y', 2)) AND c = 1", "(a = 1 AND b = 'x' OR a = 2 AND b = 'y') AND c IN (1, 2.5)",
	"a = 1 AND b = 'x'", "a IN (1, 2)", "a = 2 AND b > 'x'", "a = 1 OR a = 3", "a = 1 AND (b = 'x' OR c = 2.5)", "b = 'x' AND c = 1", "a = 1 AND b = 'x' AND c = 1 AND v > 100", "a = 1 AND b = 'x' AND c = 1 AND a = 2",
	"a = 1 AND b = 'x' AND c = NULL", "NOT (a = 1 AND b = 'x' AND c = 1)", "a = 1 AND b = 'x' AND c = 1 OR v = 6", "a::text = '1' AND b = 'x' AND c = 1", "a = v AND b = 'x' AND c = 1",
	"a + 0 = 1 AND b = 'x' AND c = 1", "a = 2 - 1 AND b = lower('X') AND c = 1", "a = (SELECT min(a) FROM k) AND b = 'x' AND c = 1", "a BETWEEN 1 AND 2 AND b = 'x' AND c = 1",
}

// A condition on a key gives the rows that a scan gives, as it stands, in joins, as an aggregate, in a view, in the past, and in a transaction that has written.
func TestKeyConditionsGiveTheRowsOfAScan(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE k (c numeric(6,2), v int, a int, b text, PRIMARY KEY (a, b, c))")
	run(t, c, "INSERT INTO k (a, b, c, v) VALUES (1, 'x', 1, 1), (1, 'x', 2.5, 2), (1, 'y', 1, 3), (2, 'x', 1, 4)")
	run(t, c, "INSERT INTO k (a, b, c, v) VALUES (2, 'y', 2.5, 5), (3, 'x', 1, 6), (-4, '', 0, 7), (5, 'x''y', -1, 5)")
	run(t, c, "INSERT INTO k (a, b, c, v) VALUES (1, 'x', 1, 1) ON CONFLICT (a, b, c) DO UPDATE SET v = 8")
	run(t, c, "DELETE FROM k WHERE a = 3")
	run(t, c, "CREATE VIEW kv AS SELECT b AS bb, a AS aa, c AS cc, v FROM k WHERE v <> 77")
	check := func(wide bool) {
		t.Helper()
		for i, cond := range keyConditions {
			scan := func(target, from, where string) string {
				return "SELECT " + target + " FROM (SELECT * FROM " + from + " OFFSET 0) k WHERE " + where
			}
			same := func(want, got string) {
				t.Helper()
				require.ElementsMatch(t, rows(t, c, want), rows(t, c, got), got)
			}
			same(scan("*", "k", cond), "SELECT * FROM k WHERE "+cond)
			if !wide && i%3 > 0 {
				continue
			}
			same(scan("7, v, 'x', b, NULL, a", "k", cond), "SELECT 7, v, 'x', b, NULL, a FROM k WHERE "+cond)
			same(scan("count(*), sum(v), max(b)", "k", cond), "SELECT count(*), sum(v), max(b) FROM k WHERE "+cond)
			if i%3 > 0 {
				continue
			}
			same(scan("*", "table_at('k', 'seq:3')", cond), "SELECT * FROM table_at('k', 'seq:3') k WHERE "+cond)
			if !wide || strings.Contains(cond, "SELECT") {
				continue
			}
			same("SELECT u.x, k.v FROM generate_series(1, 2) u(x) LEFT JOIN (SELECT * FROM k OFFSET 0) k ON ("+cond+") AND u.x = k.a ORDER BY 1, 2",
				"SELECT u.x, k.v FROM generate_series(1, 2) u(x) LEFT JOIN k ON ("+cond+") AND u.x = k.a ORDER BY 1, 2")
			same("SELECT u.x, k.v FROM generate_series(1, 2) u(x) RIGHT JOIN (SELECT * FROM k OFFSET 0) k ON ("+cond+") AND u.x = k.a",
				"SELECT u.x, k.v FROM generate_series(1, 2) u(x) RIGHT JOIN k ON ("+cond+") AND u.x = k.a")
			same("SELECT x FROM generate_series(1, 3) x WHERE EXISTS (SELECT 1 FROM (SELECT * FROM k OFFSET 0) k WHERE ("+cond+") AND k.a = x)",
				"SELECT x FROM generate_series(1, 3) x WHERE EXISTS (SELECT 1 FROM k WHERE ("+cond+") AND k.a = x)")
			if !strings.ContainsAny(cond, ":+") {
				in := strings.NewReplacer("a ", "aa ", "b ", "bb ", "c ", "cc ", "(a,", "(aa,", " b,", " bb,", " c)", " cc)", "(b,", "(bb,", " a)", " aa)").Replace(cond)
				same("SELECT * FROM (SELECT * FROM kv OFFSET 0) x WHERE "+in, "SELECT * FROM kv WHERE "+in)
			}
		}
	}
	check(true)
	run(t, c, "BEGIN")
	run(t, c, "UPDATE k SET v = v + 100 WHERE a = 1 AND b IN ('x', 'y')")
	run(t, c, "INSERT INTO k (a, b, c, v) VALUES (3, 'x', 1, 9), (1, 'z', 1, 10)")
	run(t, c, "DELETE FROM k WHERE (a, b, c) IN ((2, 'x', 1), (9, 'x', 1))")
	check(false)
	run(t, c, "ROLLBACK")
	for i, cond := range keyConditions { // the rows that a change finds
		if i%3 == 2 {
			continue
		}
		want := rows(t, c, "SELECT count(*) FROM (SELECT * FROM k OFFSET 0) k WHERE "+cond)[0][0]
		run(t, c, "BEGIN")
		require.Equal(t, "UPDATE "+want, run(t, c, "UPDATE k SET v = 0 WHERE "+cond).String(), cond)
		require.Equal(t, "DELETE "+want, run(t, c, "DELETE FROM k WHERE "+cond).String(), cond)
		require.Equal(t, "0", rows(t, c, "SELECT count(*) FROM (SELECT * FROM k OFFSET 0) k WHERE "+cond)[0][0], cond)
		run(t, c, "ROLLBACK")
	}
}

// Keys of every type that can be one, with values of the types that PostgreSQL compares with it. The counts are PostgreSQL 15's.
func TestKeyTypes(t *testing.T) {
	g := start(t)
	c := g.connect("timezone", "Europe/Oslo")
	for i, k := range []struct {
		typ, values string
		counts      map[string]string
	}{
		{"boolean", "true, false", map[string]string{"= true": "1", "IN (true, false, NULL)": "2", "= 'f'": "1"}},
		{"smallint", "1, -2, 32767", map[string]string{"= 1": "1", "= 99999": "0", "IN (1, -2, 7)": "2", "= 1.5": "0", "= 32767::bigint": "1", "= -2::real": "1"}},
		{"integer", "1, -2, 2147483647", map[string]string{"= 2147483648": "0", "= 2147483647.0": "1", "= ANY('{1,-2,3}')": "2", "= ANY(ARRAY[1.0, -2.5])": "1", "= 'NaN'::float8": "0", "= 1e0": "1"}},
		{"bigint", "1, 9007199254740993, -9223372036854775808", map[string]string{"= 9007199254740993": "1", "= 9007199254740992::float8": "1", "= 9007199254740992": "0", "= 1::float8": "1",
			"= 99999999999999999999": "0", "IN (1, 9007199254740993.0)": "2"}},
		{"numeric(10,2)", "1, 1.5, -2.25", map[string]string{"= 1": "1", "= 1.50": "1", "= 1.505": "0", "= 1.5::float8": "1", "IN (1, 1.5, 99999999999)": "2"}},
		{"numeric", "1, 1.5, -2.25", map[string]string{"= 1.000000000000": "1", "= -2.25": "1", "IN (1, 1.5, 1.50)": "2", "= 1::smallint": "1"}},
		{"text", "'a', 'b ', '', 'é'", map[string]string{"= 'a'": "1", "= 'b'": "0", "= 'b '": "1", "= ''": "1", "= 'é'::varchar": "1", "IN ('a', 'b ', NULL)": "2", "= 'a'::name": "1", "= 'b '::char(2)": "0"}},
		{"varchar(4)", "'a', 'b '", map[string]string{"= 'a'": "1", "= 'b'::text": "0", "IN ('a', 'b ')": "2", "= 'abcde'": "0"}},
		{"char(3)", "'a', 'b ', 'abc'", map[string]string{"= 'a'": "1", "= 'b  '": "1", "= 'a '::text": "0", "= 'a'::text": "1", "IN ('a   ', 'abc', 'abcd')": "2", "= ANY('{a,b}')": "2"}},
		{"date", "'2026-01-01', '2026-02-01'", map[string]string{"= '2026-01-01'": "1", "= '2026-01-01 00:00'::timestamp": "1", "= '2026-01-01 01:00'::timestamp": "0",
			"= '2026-01-01 00:00+01'::timestamptz": "1", "= 'infinity'": "0", "IN ('2026-01-01', '2026-02-01')": "2"}},
		{"time", "'10:00', '10:00:00.000001'", map[string]string{"= '10:00'": "1", "IN ('10:00', '10:00:00.000001')": "2"}},
		{"timestamp", "'2026-01-01', '1969-12-31 23:59:59.999999'", map[string]string{"= '2026-01-01'": "1", "= '2026-01-01'::date": "1", "= '2026-01-01 00:00+01'::timestamptz": "1",
			"= '1969-12-31 23:59:59.999999'": "1", "= '-infinity'": "0", "= 'infinity'::date": "0"}},
		{"timestamptz", "'2026-01-01 00:00+01', '2026-06-01 12:00+02'", map[string]string{"= '2026-01-01'": "1", "= '2026-06-01 10:00Z'": "1", "= '2026-01-01'::date": "1", "= '2026-06-01 12:00'::timestamp": "1"}},
		{"uuid", "'00000000-0000-4000-8000-000000000001', 'ffffffff-0000-4000-8000-000000000001'", map[string]string{"= '{FFFFFFFF-0000-4000-8000-000000000001}'": "1",
			"IN ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002')": "1"}},
		{"bytea", `'\x00ff', ''`, map[string]string{`= '\x00ff'`: "1", `= '\000\377'`: "1", "= ''": "1", `IN ('\x00', '\x00ff')`: "1"}},
		{"interval", "'1 day', '2 hours'", map[string]string{"= '24 hours'": "1", "= '120 minutes'": "1"}},
	} {
		name := fmt.Sprintf("t%d", i)
		run(t, c, fmt.Sprintf("CREATE TABLE %s (id %s PRIMARY KEY)", name, k.typ))
		run(t, c, fmt.Sprintf("INSERT INTO %s SELECT x::%s FROM unnest(ARRAY[%s]) x", name, k.typ, k.values))
		for cond, want := range k.counts {
			require.Len(t, rows(t, c, fmt.Sprintf("SELECT id FROM %s WHERE id %s", name, cond)), int(want[0]-'0'), k.typ+" "+cond)
			require.Equal(t, want, rows(t, c, fmt.Sprintf("SELECT count(*) FROM %s WHERE id %s", name, cond))[0][0], k.typ+" "+cond)
		}
	}
}

// Prepared key queries: parameters of the types that clients send, arrays, changed tables in between, LIMIT and OFFSET as parameters.
func TestPreparedKeySelect(t *testing.T) {
	g := start(t)
	c := g.connect()
	ctx := context.Background()
	run(t, c, "CREATE TABLE k (id bigint PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO k SELECT i, 'v' || i FROM generate_series(1, 3000) i")
	list := func(sql string, args ...any) (out []string) {
		t.Helper()
		r, err := c.Query(ctx, sql, args...)
		require.NoError(t, err, sql)
		for r.Next() {
			vals, err := r.Values()
			require.NoError(t, err)
			out = append(out, strings.TrimSpace(fmt.Sprintln(vals...)))
		}
		require.NoError(t, r.Err(), sql)
		return out
	}
	for range 2 {
		require.Equal(t, []string{"v7"}, list("SELECT v FROM k WHERE id = $1", 7))
		require.Empty(t, list("SELECT v FROM k WHERE id = $1", nil))
		require.Equal(t, []string{"v7"}, list("SELECT v FROM k WHERE id = $1::int4", 7))
		require.Equal(t, []string{"v7"}, list("SELECT v FROM k WHERE id = $1::numeric", "7.0"))
		require.Equal(t, []string{"v8"}, list("SELECT v FROM k WHERE id = $1 + 1", 7))
		require.Equal(t, []string{"v3", "v5"}, list("SELECT v FROM k WHERE id = ANY($1)", []int64{5, 3, 5, -1}))
		require.Equal(t, []string{"v5", "v3"}, list("SELECT v FROM k WHERE id = ANY($1::int[]) ORDER BY id DESC", []int32{5, 3, 5, -1}))
		require.Equal(t, []string{"v3"}, list("SELECT v FROM k WHERE id = ANY($1)", []*int64{nil, new(int64(3))}))
		require.Empty(t, list("SELECT v FROM k WHERE id = ANY($1)", []int64{}))
		require.Empty(t, list("SELECT v FROM k WHERE id = ANY($1)", nil))
		require.Equal(t, []string{"v2", "v3"}, list("SELECT v FROM k WHERE id IN ($1, $2, $3, $4) ORDER BY id LIMIT $5 OFFSET $6", 3, 4, 1, 2, 2, 1))
		require.Equal(t, []string{"9 x v1 2026-01-01 00:00:00 +0000 UTC"}, list("SELECT $2::int, 'x', v, $3::date FROM k WHERE id = $1", 1, 9, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	many := make([]int64, 0, 2500)
	for i := range 2500 {
		many = append(many, int64(2499-i))
	}
	got := list("SELECT v FROM k WHERE id = ANY($1) ORDER BY id", many)
	require.Len(t, got, 2499)
	require.Equal(t, "v2499", got[2498])
	require.Len(t, list("SELECT v FROM k WHERE id = ANY($1) LIMIT 1500", many), 1500)
	require.Equal(t, []string{"2499 2499"}, list("SELECT count(*), count(DISTINCT v) FROM k WHERE id = ANY($1)", many))
	run(t, c, "UPDATE k SET v = 'new' WHERE id = ANY($1)", []int64{3, 4})
	require.Equal(t, []string{"new", "v5"}, list("SELECT v FROM k WHERE id = ANY($1)", []int64{3, 5}))
	require.Equal(t, "2201W", sqlstate(t, c, "SELECT v FROM k WHERE id = $1 LIMIT $2", 1, -1).Code)
	require.Equal(t, []string{"v1"}, list("SELECT v FROM k WHERE id = $1 LIMIT $2", 1, nil))
	// Portals that are read in pieces.
	require.NoError(t, pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		run(t, c, "DECLARE p CURSOR FOR SELECT id FROM k WHERE id IN (1, 2, 3, 4, 5) ORDER BY id DESC")
		require.Equal(t, [][]string{{"5"}, {"4"}}, rows(t, c, "FETCH 2 FROM p"))
		require.Equal(t, [][]string{{"3"}, {"2"}, {"1"}}, rows(t, c, "FETCH ALL FROM p"))
		return nil
	}))
}
