package test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMerge: PostgreSQL 15's answers to MERGE, and what the change log says of it.
func TestMerge(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text, n int DEFAULT 7)")
	run(t, c, "CREATE TABLE s (id int, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (5, 'e')")
	run(t, c, "INSERT INTO s VALUES (2, 'B'), (3, 'C'), (4, 'D'), (5, NULL)")
	from := rows(t, c, "SELECT current_commit_seq()")[0][0]
	tag := run(t, c, `MERGE INTO t USING s ON t.id = s.id
		WHEN MATCHED AND s.v IS NULL THEN DELETE
		WHEN MATCHED AND t.id = 3 THEN DO NOTHING
		WHEN MATCHED THEN UPDATE SET v = t.v || s.v, n = DEFAULT
		WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)`)
	require.Equal(t, "MERGE 3", tag.String())
	require.Equal(t, [][]string{{"1", "a", "7"}, {"2", "bB", "7"}, {"3", "c", "7"}, {"4", "D", "7"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, [][]string{{"2", "UPDATE_BEFORE", "b"}, {"2", "UPDATE_AFTER", "bB"}, {"4", "INSERT", "D"}, {"5", "DELETE", "e"}},
		rows(t, c, "SELECT id, _change_type, v FROM table_changes('t', 'seq:"+from+"') ORDER BY id, _change_row"), "an update keeps its before image")

	// Sources: VALUES, a subquery, a CTE, a CTE that changes data.
	require.Equal(t, "MERGE 2", run(t, c, "MERGE INTO t AS x USING (VALUES (1, 'v'), (6, 'v')) q(id, v) ON x.id = q.id WHEN MATCHED THEN UPDATE SET v = q.v WHEN NOT MATCHED THEN INSERT VALUES (q.id, q.v, 0)").String())
	require.Equal(t, "MERGE 1", run(t, c, "WITH w AS (SELECT 6 AS k) MERGE INTO t USING (SELECT k FROM w) q ON t.id = q.k WHEN MATCHED AND t.n = 0 THEN DELETE").String())
	require.Equal(t, "MERGE 1", run(t, c, "WITH w AS (INSERT INTO s VALUES (9, 'nine') RETURNING *) MERGE INTO t USING w ON t.id = w.id WHEN NOT MATCHED THEN INSERT VALUES (w.id, w.v)").String())
	require.Equal(t, "MERGE 0", run(t, c, "MERGE INTO t USING s ON false WHEN MATCHED THEN DELETE").String())
	require.Equal(t, [][]string{{"1", "v"}, {"2", "bB"}, {"3", "c"}, {"4", "D"}, {"9", "nine"}}, rows(t, c, "SELECT id, v FROM t ORDER BY id"))

	for _, bad := range []struct{ sql, code, message string }{
		{"MERGE INTO t USING (VALUES (1), (1)) q(id) ON t.id = q.id WHEN MATCHED THEN DELETE", "21000", "MERGE command cannot affect row a second time"},
		{"MERGE INTO t USING (VALUES (70), (70)) q(id) ON t.id = q.id WHEN NOT MATCHED THEN INSERT (id) VALUES (q.id)", "23505", `duplicate key value violates unique constraint "t_pkey"`},
		{"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING", "42601", "unreachable WHEN clause specified after unconditional WHEN clause"},
		{"MERGE INTO t USING s t ON true WHEN MATCHED THEN DELETE", "42712", `name "t" specified more than once`},
		{"MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (t.id)", "42P01", `invalid reference to FROM-clause entry for table "t"`},
		{"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nosuch = 1", "42703", `column "nosuch" of relation "t" does not exist`},
		{"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v THEN DELETE", "42804", "argument of WHEN must be type boolean, not type text"},
		{"WITH RECURSIVE w AS (SELECT 1 AS k) MERGE INTO t USING w ON t.id = k WHEN MATCHED THEN DELETE", "42601", "WITH RECURSIVE is not supported for MERGE statement"},
		{"WITH m AS (MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE) SELECT 1", "0A000", "MERGE not supported in WITH query"},
	} {
		e := sqlstate(t, c, bad.sql)
		require.Equal(t, bad.code, e.Code, bad.sql)
		require.Equal(t, bad.message, e.Message, bad.sql)
	}
	require.Len(t, rows(t, c, "SELECT * FROM t"), 5, "a failed statement changes nothing")
}

// TestDataModifyingWith: the parts of one statement see one snapshot, and each other only through RETURNING. Values are PostgreSQL 15's.
func TestDataModifyingWith(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE y (a int)")
	run(t, c, "INSERT INTO y SELECT generate_series(1, 10)")
	for _, st := range []struct {
		sql  string
		want [][]string
	}{
		{"WITH t AS (UPDATE y SET a = a * 100 RETURNING a) SELECT count(y.a), sum(t.a) FROM t LEFT JOIN y USING (a)", [][]string{{"0", "5500"}}},
		{"WITH i AS (INSERT INTO y VALUES (100), (7) RETURNING a) SELECT count(*), (SELECT count(*) FROM y) FROM i, y WHERE y.a = i.a", [][]string{{"1", "10"}}},
		{"WITH d AS (DELETE FROM y WHERE a <= 100 RETURNING a), c AS (SELECT count(*) AS n FROM d) SELECT n, (SELECT count(*) FROM y) FROM c", [][]string{{"3", "12"}}},
		{"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5), i AS (INSERT INTO y SELECT -n FROM r RETURNING a) SELECT count(*), sum(a), (SELECT max(n) FROM r) FROM i", [][]string{{"5", "-15", "5"}}},
		{"WITH a AS (UPDATE y SET a = -10 WHERE a = -1), b AS (UPDATE y SET a = -20 WHERE a = -1) SELECT 1", [][]string{{"1"}}},
		{"SELECT count(*) FILTER (WHERE a = -10), count(*) FILTER (WHERE a = -20), count(*) FROM y", [][]string{{"0", "1", "14"}}},
		{"WITH d AS (DELETE FROM y WHERE a < 0) DELETE FROM y WHERE a > 900 RETURNING a", [][]string{{"1000"}}},
		{"SELECT count(*) FROM y", [][]string{{"8"}}},
	} {
		require.Equal(t, st.want, rows(t, c, st.sql), st.sql)
	}

	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, v text, u uuid, i interval, d numeric(6,2), arr int[])")
	run(t, c, "INSERT INTO k VALUES (1, 'x', '11111111-1111-1111-1111-111111111111', '1 day 02:00', 1.50, '{1,NULL}')")
	require.Equal(t, [][]string{{"1", "x", "11111111-1111-1111-1111-111111111111", "1 day 02:00:00", "1.50", "{1,NULL}"}},
		rows(t, c, "WITH d AS (DELETE FROM k RETURNING *) SELECT * FROM d"), "every type passes")
	require.Equal(t, [][]string{{"1", "1"}}, rows(t, c, "WITH s AS (SELECT 1 AS id) INSERT INTO k (id) SELECT id FROM s RETURNING id, (SELECT count(*) FROM s)"))
	require.Equal(t, [][]string{{"2", "1"}}, rows(t, c, "INSERT INTO k (id) VALUES (2) RETURNING id, (SELECT count(*) FROM k)"), "RETURNING's subquery sees the snapshot")
	require.Equal(t, "23505", sqlstate(t, c, "WITH a AS (INSERT INTO k (id) VALUES (9)), b AS (INSERT INTO k (id) VALUES (9)) SELECT 1").Code)
	require.Equal(t, "21000", sqlstate(t, c, "WITH a AS (INSERT INTO k (id) VALUES (4) RETURNING 1) INSERT INTO k (id) SELECT 4 FROM a ON CONFLICT (id) DO UPDATE SET v = 'z'").Code)
	require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT count(*) FROM k"), "a failed statement leaves nothing of its parts")
	require.Equal(t, "SELECT 1", run(t, c, "CREATE TABLE cta AS WITH i AS (INSERT INTO y VALUES (77) RETURNING a) SELECT a FROM i").String())
	require.Equal(t, [][]string{{"1", "1"}}, rows(t, c, "SELECT (SELECT count(*) FROM cta), (SELECT count(*) FROM y WHERE a = 77)"))

	for _, bad := range []struct{ sql, code string }{
		{"SELECT * FROM (WITH i AS (INSERT INTO y VALUES (1) RETURNING a) SELECT * FROM i) q", "0A000"},
		{"WITH i AS (INSERT INTO y VALUES (1)) SELECT * FROM i", "0A000"},
		{"WITH RECURSIVE i AS (INSERT INTO y SELECT a FROM i) SELECT 1", "42P19"},
		{"CREATE VIEW v AS WITH i AS (INSERT INTO y VALUES (1) RETURNING a) SELECT * FROM i", "0A000"},
	} {
		require.Equal(t, bad.code, sqlstate(t, c, bad.sql).Code, bad.sql)
	}
	run(t, c, "BEGIN READ ONLY")
	require.Equal(t, "25006", sqlstate(t, c, "WITH i AS (INSERT INTO y VALUES (1)) SELECT 1").Code)
	run(t, c, "ROLLBACK")
}

// TestReturningOrder: RETURNING gives the rows in the order of the input, whatever became of each.
func TestReturningOrder(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, v text)")
	require.Equal(t, [][]string{{"5"}, {"1"}, {"3"}}, rows(t, c, "INSERT INTO k VALUES (5), (1), (3) RETURNING id"))
	require.Equal(t, [][]string{{"3", "u"}, {"9", "n"}, {"1", "u"}, {"7", "n"}, {"5", "u"}},
		rows(t, c, "INSERT INTO k VALUES (3, 'n'), (9, 'n'), (1, 'n'), (7, 'n'), (5, 'n') ON CONFLICT (id) DO UPDATE SET v = 'u' RETURNING id, v"))
	require.Equal(t, [][]string{{"8"}, {"2"}}, rows(t, c, "INSERT INTO k VALUES (3), (8), (9), (2) ON CONFLICT DO NOTHING RETURNING id"))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "INSERT INTO k VALUES (1), (3) ON CONFLICT (id) WHERE v <> '' DO UPDATE SET v = 'w' WHERE k.id < excluded.id + 1 AND k.id = 1 RETURNING id"))
	got := rows(t, c, "INSERT INTO k SELECT 100000 - n FROM generate_series(1, 50000) n RETURNING id")
	require.Len(t, got, 50000)
	for i, r := range got {
		require.Equal(t, strconv.Itoa(99999-i), r[0])
	}
}

// TestKeyUpdate: keys are checked row by row, as PostgreSQL's unique index does.
func TestKeyUpdate(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO k VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	require.Equal(t, "23505", sqlstate(t, c, "UPDATE k SET id = 3 - id WHERE id < 3").Code, "swapped keys")
	require.Equal(t, "23505", sqlstate(t, c, "UPDATE k SET id = id + 1").Code)
	run(t, c, "UPDATE k SET id = id - 1")
	run(t, c, "UPDATE k SET id = id, v = v || '!'")
	require.Equal(t, [][]string{{"0", "a!"}, {"1", "b!"}, {"2", "c!"}}, rows(t, c, "SELECT * FROM k ORDER BY id"))
}

// TestArrayElements: assignment to elements and slices; expected values are PostgreSQL 15's.
func TestArrayElements(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE ar (id int, a int[], n numeric(5,2)[])")
	run(t, c, "INSERT INTO ar VALUES (1, '{1,2,3}'), (2, NULL)")
	for _, st := range []struct{ sql, want string }{
		{"UPDATE ar SET a[2] = 20 WHERE id = 1 RETURNING a", "{1,20,3}"},
		{"UPDATE ar SET a[5] = 50 WHERE id = 1 RETURNING a", "{1,20,3,NULL,50}"},
		{"UPDATE ar SET a[1] = 5 WHERE id = 2 RETURNING a", "{5}"},
		{"UPDATE ar SET a[1:2] = '{7,8}' WHERE id = 1 RETURNING a", "{7,8,3,NULL,50}"},
		{"UPDATE ar SET (a[1], a[2]) = (SELECT 80, 90) WHERE id = 2 RETURNING a", "{80,90}"},
		{"UPDATE ar SET n[1] = 1.005, n[2] = id WHERE id = 2 RETURNING n", "{1.01,2.00}"},
		{"INSERT INTO ar (id, a[1], a[3]) VALUES (3, 1, 3) RETURNING a", "{1,NULL,3}"},
		{"INSERT INTO ar (id, a[1:2]) SELECT 4, '{1,2}' RETURNING a", "{1,2}"},
	} {
		require.Equal(t, [][]string{{st.want}}, rows(t, c, st.sql), st.sql)
	}
	for _, bad := range []struct{ sql, code string }{
		{"UPDATE ar SET a[NULL] = 5", "22004"}, {"UPDATE ar SET a[1:2] = '{7}'", "2202E"}, {"UPDATE ar SET a[1] = 'x'", "22P02"},
		{"UPDATE ar SET a[1] = DEFAULT", "0A000"}, {"UPDATE ar SET a[1] = 1, a = '{}'", "42601"}, {"UPDATE ar SET id[1] = 1", "42804"},
		{"INSERT INTO ar (a[1], a) VALUES (1, '{}')", "42701"}, {"UPDATE ar SET a[0] = 1", "0A000"},
		{"INSERT INTO ar (id, a) VALUES (9, '[2:3]={1,2}')", "0A000"}, {"UPDATE ar SET a = '[0:1]={1,2}'", "0A000"}, {"SELECT ('[2:3]={1,2}'::text)::int[]", "0A000"},
		{"INSERT INTO ar (id, a) VALUES (9, '{{1,2},{3,4}}')", "0A000"}, {"UPDATE ar SET a = ARRAY[[1,2],[3,4]]", "0A000"},
	} {
		require.Equal(t, bad.code, sqlstate(t, c, bad.sql).Code, bad.sql)
	}
}

// A part of a WITH that fails after the statement's own RETURNING was opened leaves no connection behind: the gateway's Close tells of those.
func TestFailedPartsLeaveNothingOpen(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE a (id int PRIMARY KEY, v text NOT NULL)")
	for range 3 {
		require.Equal(t, "23502", sqlstate(t, c, "WITH w AS (INSERT INTO a VALUES (1, NULL) RETURNING *) INSERT INTO a VALUES (2, 'b') RETURNING *").Code)
	}
	require.Empty(t, rows(t, c, "SELECT * FROM a"))
}
