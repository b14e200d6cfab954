package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func one(t testing.TB, c *pgx.Conn, sql string) string {
	t.Helper()
	got := rows(t, c, sql)
	require.Len(t, got, 1, sql)
	require.Len(t, got[0], 1, sql)
	return got[0][0]
}

// Tags name snapshots for ever; every bound form and the bare name read them; names clash as PostgreSQL's objects do.
func TestTags(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	require.Equal(t, "55000", sqlstate(t, c, "SELECT skade.create_tag('t', 'v0')").Code)
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	first := one(t, c, "SELECT skade.create_tag('t', 'v1')")
	require.Equal(t, first, one(t, c, "SELECT skade.snapshot_at('t', 'now')"))
	run(t, c, "UPDATE t SET v = 'c' WHERE id = 2")
	run(t, c, "DELETE FROM t WHERE id = 1")
	for _, bound := range []string{"'v1'", "'tag:v1'", first, "'" + first + "'"} {
		require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, c, "SELECT * FROM table_at('t', "+bound+") ORDER BY id"), bound)
	}
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, "SELECT * FROM lookup('t', 1, 'v1')"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM table_at('t', 'v1') WHERE id = 2"))
	require.Equal(t, [][]string{{"UPDATE_BEFORE", "2"}, {"UPDATE_AFTER", "2"}, {"DELETE", "1"}},
		rows(t, c, "SELECT _change_type, id FROM table_changes('t', 'tag:v1')"))
	run(t, c, "SET skade.as_of = 'tag:v1'")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM t"))
	run(t, c, "RESET skade.as_of")
	require.Equal(t, [][]string{{"ref", "v1", first, "∅"}},
		rows(t, c, "SELECT kind, ref, snapshot_id, parent_snapshot_id FROM skade.commits WHERE kind = 'ref'"))

	for sql, code := range map[string]string{
		"SELECT skade.create_tag('t', 'v1')":                               "42710",
		"SELECT skade.create_branch('t', 'v1')":                            "42710",
		"SELECT skade.create_tag('t', 'main')":                             "42710",
		"SELECT skade.create_tag('t', '')":                                 "22023",
		"SELECT skade.create_tag('t', NULL)":                               "22023",
		"SELECT skade.create_tag('nope', 'v2')":                            "42P01",
		"SELECT skade.create_tag('t', 'v2', 12345)":                        "42704",
		"SELECT skade.create_tag('t', 'v2', 'tag:nope')":                   "42704",
		"SELECT skade.create_tag('t', 'v2', 'rubbish')":                    "22023",
		"SELECT skade.create_tag('t', 'v2', retain => '-1 day')":           "22023",
		"SELECT skade.create_tag('t', 'v2', retain => 'no')":               "22007",
		"SELECT skade.create_tag('t', 'v2', 'seq:1')":                      "55000",
		"SELECT skade.create_branch('t', 'b', min_snapshots_to_keep => 0)": "22023",
		"SELECT skade.drop_ref('t', 'nope')":                               "42704",
		"SELECT skade.drop_ref('t', 'main')":                               "55000",
		"SELECT skade.fast_forward('t', 'main', 'nope')":                   "42704",
		"SELECT skade.fast_forward('t', 'nope', 'v1')":                     "42704",
		"SELECT skade.fast_forward('t', 'v1', 'main')":                     "55000",
		"SELECT skade.fast_forward('t', 'main', 'v1')":                     "55000",
	} {
		require.Equal(t, code, sqlstate(t, c, sql).Code, sql)
	}
	run(t, c, "BEGIN READ ONLY")
	require.Equal(t, "25006", sqlstate(t, c, "SELECT skade.create_tag('t', 'v2')").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, first, one(t, c, "SELECT skade.drop_ref('t', 'v1')"))
	require.Equal(t, "42704", sqlstate(t, c, "SELECT * FROM table_at('t', 'tag:v1')").Code)
	g.close()
	g.open()
	require.Equal(t, "1", one(t, g.connect(), "SELECT count(*) FROM t"))
}

// A ref is part of its transaction: it is gone with ROLLBACK, and names the rows that the transaction wrote before it.
func TestRefsInTransactions(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO t VALUES (1)")
	run(t, c, "BEGIN")
	run(t, c, "SELECT skade.create_tag('t', 'gone')")
	require.Equal(t, "42710", sqlstate(t, c, "SELECT skade.create_tag('t', 'gone')").Code)
	run(t, c, "ROLLBACK")
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO t VALUES (2)")
	require.Equal(t, "∅", one(t, c, "SELECT skade.create_tag('t', 'two')"))
	run(t, c, "SAVEPOINT s")
	require.Equal(t, "55000", sqlstate(t, c, "INSERT INTO t VALUES (3)").Code)
	run(t, c, "ROLLBACK TO s")
	require.Equal(t, "42704", sqlstate(t, other, "SELECT * FROM table_at('t', 'tag:two')").Code)
	run(t, c, "COMMIT")
	run(t, c, "INSERT INTO t VALUES (3)")
	require.Equal(t, [][]string{{"1"}, {"2"}}, rows(t, c, "SELECT id FROM table_at('t', 'two') ORDER BY 1"))
	// ROLLBACK TO takes the tag back, and with it the seal.
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO t VALUES (4)")
	run(t, c, "SAVEPOINT s")
	run(t, c, "SELECT skade.create_tag('t', 'four')")
	run(t, c, "ROLLBACK TO s")
	run(t, c, "INSERT INTO t VALUES (5)")
	run(t, c, "COMMIT")
	require.Equal(t, "42704", sqlstate(t, c, "SELECT * FROM table_at('t', 'tag:four')").Code)
	require.Equal(t, "5", one(t, c, "SELECT count(*) FROM t"))
	// The same name twice at once: one is made.
	codes := together(t, g.connections(8), func(_ int, c *pgx.Conn) error { return execute(c, "SELECT skade.create_tag('t', 'race')") })
	require.Equal(t, map[string]int{"": 1, "42710": 7}, codes)
}

// A session on a branch reads and writes it; main does not move; fast_forward publishes.
func TestBranches(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "CREATE TABLE u (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	run(t, c, "INSERT INTO u VALUES (1)")
	start := one(t, c, "SELECT skade.create_branch('t', 'audit')")
	run(t, c, "SET skade.branch = 'audit'")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM t"))
	run(t, c, "INSERT INTO t VALUES (3, 'c')")
	run(t, c, "UPDATE t SET v = 'A' WHERE id = 1")
	run(t, c, "DELETE FROM t WHERE id = 2")
	on := [][]string{{"1", "A"}, {"3", "c"}}
	require.Equal(t, on, rows(t, c, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, [][]string{{"1", "A"}}, rows(t, c, "SELECT * FROM t WHERE id = 1"))
	require.Equal(t, [][]string{{"1", "A"}}, rows(t, c, "SELECT * FROM lookup('t', 1)"))
	require.Equal(t, "23505", sqlstate(t, c, "INSERT INTO t VALUES (3, 'x')").Code)
	require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, other, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, on, rows(t, other, "SELECT * FROM table_at('t', 'audit') ORDER BY id"))
	require.Equal(t, on, rows(t, other, "SELECT * FROM table_at('t', 'branch:audit') ORDER BY id"))
	require.Equal(t, [][]string{{"1", "A"}}, rows(t, other, "SELECT * FROM lookup('t', 1, 'branch:audit')"))
	require.Equal(t, "4", one(t, other, "SELECT count(*) FROM table_changes('t', "+start+", 'branch:audit')"))
	require.Equal(t, "0", one(t, other, "SELECT count(*) FROM table_changes('t', "+start+")"))
	require.Equal(t, "3", one(t, other, "SELECT count(*) FROM skade.commits WHERE ref = 'audit' AND kind = 'commit'"))

	// A table without the branch: read from main, not written.
	require.Equal(t, "1", one(t, c, "SELECT count(*) FROM u"))
	e := sqlstate(t, c, "INSERT INTO u VALUES (2)")
	require.Equal(t, "42704", e.Code)
	require.Contains(t, e.Hint, "create_branch")
	for _, ddl := range []string{"ALTER TABLE t RENAME TO x", "DROP TABLE t", "CREATE TABLE n (a int)"} {
		require.Equal(t, "55000", sqlstate(t, c, ddl).Code, ddl)
	}
	require.Equal(t, "55000", sqlstate(t, c, "SELECT skade.create_branch('t', 'audit2', 'audit'), skade.drop_ref('t', 'main')").Code)

	run(t, other, "SELECT skade.fast_forward('t', 'main', 'audit')")
	require.Equal(t, on, rows(t, other, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, "4", one(t, other, "SELECT count(*) FROM table_changes('t', "+start+")"))
	run(t, c, "TRUNCATE t")
	require.Equal(t, "0", one(t, c, "SELECT count(*) FROM t"))
	require.Equal(t, "2", one(t, other, "SELECT count(*) FROM t"))
	run(t, c, "RESET skade.branch")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM t"))
	run(t, c, "SELECT skade.drop_ref('t', 'audit')")
	run(t, c, "SET skade.branch = 'audit'")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM t"))
	require.Equal(t, "42704", sqlstate(t, c, "DELETE FROM t").Code)
}

// skade.branch follows the transaction: SET LOCAL, ROLLBACK, savepoints; one transaction writes one branch.
func TestBranchSetting(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO t VALUES (1)")
	run(t, c, "SELECT skade.create_branch('t', 'b')")
	count := func() string { return one(t, c, "SELECT count(*) FROM t") }
	run(t, c, "BEGIN")
	require.Equal(t, "1", count())
	run(t, c, "SET LOCAL skade.branch = 'b'")
	run(t, c, "INSERT INTO t VALUES (2), (3)")
	require.Equal(t, "3", count())
	require.Equal(t, "25001", sqlstate(t, c, "SET skade.branch = ''").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, "1", count())

	run(t, c, "BEGIN")
	require.Equal(t, "1", count())
	run(t, c, "SAVEPOINT s")
	run(t, c, "SET skade.branch = 'b'")
	run(t, c, "INSERT INTO t VALUES (2), (3)")
	require.Equal(t, "3", count())
	run(t, c, "ROLLBACK TO s")
	require.Equal(t, "1", count())
	run(t, c, "INSERT INTO t VALUES (9)")
	require.Equal(t, "25001", sqlstate(t, c, "SELECT set_config('skade.branch', 'b', true)").Code)
	run(t, c, "ROLLBACK")
	run(t, c, "BEGIN")
	run(t, c, "SET LOCAL skade.branch = 'b'")
	run(t, c, "INSERT INTO t VALUES (2), (3)")
	run(t, c, "COMMIT")
	require.Equal(t, "1", count())
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM table_at('t', 'b')"))
	require.Equal(t, "1", one(t, g.connect("skade.branch", "nope"), "SELECT count(*) FROM t"))
	require.Equal(t, "3", one(t, g.connect("skade.branch", "b"), "SELECT count(*) FROM t"))

	// Spark's write-audit-publish: the table's property lets the write make the branch.
	run(t, c, `CREATE TABLE w (id int PRIMARY KEY) WITH ("write.wap.enabled" = 'true')`)
	run(t, c, "INSERT INTO w VALUES (1)")
	run(t, c, "SET skade.branch = 'fresh'")
	require.Equal(t, "1", one(t, c, "SELECT count(*) FROM w"))
	run(t, c, "INSERT INTO w VALUES (2)")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM w"))
	run(t, c, "RESET skade.branch")
	require.Equal(t, "1", one(t, c, "SELECT count(*) FROM w"))
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM table_at('w', 'fresh')"))
	run(t, c, "SELECT skade.create_tag('w', 'tagged')")
	run(t, c, "SET skade.branch = 'tagged'")
	require.Equal(t, "55000", sqlstate(t, c, "SELECT count(*) FROM w").Code)
}

// Two sessions on one branch: disjoint rows both commit, one row is won by the first.
func TestBranchConflicts(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	run(t, c, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 20) i")
	run(t, c, "SELECT skade.create_branch('t', 'b')")
	a, b := g.connect("skade.branch", "b"), g.connect("skade.branch", "b")
	for _, s := range []*pgx.Conn{a, b} {
		run(t, s, "BEGIN")
		require.Equal(t, "20", one(t, s, "SELECT count(*) FROM t"))
	}
	run(t, a, "UPDATE t SET v = 1 WHERE id = 1")
	run(t, b, "UPDATE t SET v = 1 WHERE id = 2")
	run(t, c, "UPDATE t SET v = 7 WHERE id < 3") // main is another line
	run(t, a, "COMMIT")
	run(t, b, "COMMIT")
	require.Equal(t, "2", one(t, a, "SELECT sum(v) FROM t"))
	for _, s := range []*pgx.Conn{a, b} {
		run(t, s, "BEGIN")
		run(t, s, "UPDATE t SET v = v + 1 WHERE id = 3")
	}
	run(t, a, "COMMIT")
	require.Equal(t, "40001", sqlstate(t, b, "COMMIT").Code)
	run(t, a, "BEGIN")
	require.Equal(t, "20", one(t, a, "SELECT count(*) FROM t"))
	run(t, b, "UPDATE t SET v = v + 1 WHERE id = 5")
	run(t, c, "VACUUM FULL t")
	run(t, a, "UPDATE t SET v = v + 1 WHERE id = 4") // other commits to the branch and to main are none of its row
	run(t, c, "SELECT skade.drop_ref('t', 'b')")
	require.Equal(t, "40001", sqlstate(t, a, "COMMIT").Code)
	codes := together(t, g.connections(8), func(i int, c *pgx.Conn) error {
		return execute(c, fmt.Sprintf("UPDATE t SET v = v + 1 WHERE id = %d", 10+i))
	})
	require.Equal(t, map[string]int{"": 8}, codes)
}

// rollback_to is one commit whose change is the difference of the two heads; a concurrent commit makes it lose.
func TestRollback(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	s1, q1 := one(t, c, "SELECT skade.snapshot_at('t', 'now')"), one(t, c, "SELECT skade.current_commit_seq()")
	run(t, c, "UPDATE t SET v = 'B' WHERE id = 2")
	run(t, c, "INSERT INTO t VALUES (3, 'c')")
	s3, q3 := one(t, c, "SELECT skade.snapshot_at('t', 'now')"), one(t, c, "SELECT skade.current_commit_seq()")
	run(t, c, "BEGIN")
	require.Equal(t, s1, one(t, c, "SELECT skade.rollback_to('t', "+s1+")"))
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM t"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM t WHERE id = 2"))
	run(t, c, "ROLLBACK")
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM t"))
	require.Equal(t, s1, one(t, c, "SELECT skade.rollback_to('t', 'seq:"+q1+"')"))
	require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, [][]string{{s1, s3, "main"}}, rows(t, c, "SELECT snapshot_id, parent_snapshot_id, ref FROM skade.commits WHERE kind = 'ref'"))
	require.Equal(t, [][]string{{"UPDATE_BEFORE", "2", "B"}, {"UPDATE_AFTER", "2", "b"}, {"DELETE", "3", "c"}},
		rows(t, c, "SELECT _change_type, id, v FROM table_changes('t', 'seq:"+q3+"') ORDER BY _change_row"))
	e := sqlstate(t, c, "SELECT * FROM table_changes('t', "+s3+", 'now')")
	require.Equal(t, "22023", e.Code) // s3 descends from now
	require.Equal(t, "55000", sqlstate(t, c, "SELECT skade.rollback_to('t', "+s3+")").Code)
	require.Equal(t, s3, one(t, c, "SELECT skade.set_current_snapshot('t', "+s3+")"))
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM t"))

	// In one transaction: back, then on; the new snapshot's parent is the old one.
	run(t, c, "BEGIN")
	run(t, c, "SELECT skade.rollback_to('t', "+s1+")")
	run(t, c, "INSERT INTO t VALUES (9, 'z')")
	require.Equal(t, "55000", sqlstate(t, c, "SELECT skade.rollback_to('t', "+s1+")").Code)
	run(t, c, "ROLLBACK")
	run(t, c, "BEGIN")
	run(t, c, "SELECT skade.rollback_to('t', "+s1+")")
	run(t, c, "SAVEPOINT s")
	run(t, c, "INSERT INTO t VALUES (8, 'y')")
	run(t, c, "ROLLBACK TO s")
	run(t, c, "INSERT INTO t VALUES (9, 'z')")
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"1"}, {"2"}, {"9"}}, rows(t, c, "SELECT id FROM t ORDER BY id"))
	require.Equal(t, s1, one(t, c, "SELECT parent_id FROM skade.snapshots WHERE is_current"))

	// A commit in between: the rollback loses.
	run(t, c, "BEGIN")
	run(t, c, "SELECT skade.rollback_to('t', "+s1+")")
	run(t, other, "INSERT INTO t VALUES (10, 'n')")
	require.Equal(t, "40001", sqlstate(t, c, "COMMIT").Code)
	// And a writer that was on the rolled back rows loses to the rollback.
	run(t, c, "BEGIN")
	run(t, c, "UPDATE t SET v = 'q' WHERE id = 10")
	run(t, other, "SELECT skade.rollback_to('t', "+s1+")")
	require.Equal(t, "40001", sqlstate(t, c, "COMMIT").Code)
	// One with the bare name of a tag, through the extended protocol.
	run(t, c, "SELECT skade.create_tag('t', 'here')")
	run(t, c, "INSERT INTO t VALUES (11, 'n')")
	var id int64
	require.NoError(t, c.QueryRow(context.Background(), "SELECT skade.rollback_to($1, $2::text)", "t", "here").Scan(&id))
	require.Equal(t, s1, fmt.Sprint(id))
}

// Every way of writing and reading is on the branch: COPY, upserts, RETURNING, cursors, prepared statements.
func TestBranchStatements(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a')")
	run(t, c, "PREPARE get(int) AS SELECT v FROM t WHERE id = $1")
	run(t, c, "PREPARE n AS SELECT count(*) FROM t")
	require.Equal(t, "a", one(t, c, "EXECUTE get(1)"))
	run(t, c, "SELECT skade.create_branch('t', 'b')")
	run(t, c, "SET skade.branch = 'b'")
	_, err := c.PgConn().CopyFrom(t.Context(), strings.NewReader("2\tb\n3\tc\n"), "COPY t FROM STDIN")
	require.NoError(t, err)
	require.Equal(t, "A", one(t, c, "INSERT INTO t VALUES (1, 'A') ON CONFLICT (id) DO UPDATE SET v = excluded.v RETURNING v"))
	require.Equal(t, "A", one(t, c, "EXECUTE get(1)"))
	require.Equal(t, "3", one(t, c, "EXECUTE n"))
	run(t, c, "BEGIN")
	run(t, c, "DECLARE k CURSOR FOR SELECT id FROM t ORDER BY id")
	require.Len(t, rows(t, c, "FETCH 10 FROM k"), 3)
	run(t, c, "COMMIT")
	run(t, c, "CREATE VIEW seen AS SELECT count(*) FROM t")
	require.Equal(t, "3", one(t, c, "SELECT * FROM seen"))
	run(t, c, "RESET skade.branch")
	require.Equal(t, "1", one(t, c, "SELECT * FROM seen"))
	require.Equal(t, "a", one(t, c, "EXECUTE get(1)"))
	require.Equal(t, "1", one(t, c, "EXECUTE n"))
	// A branch lives through VACUUM, and through the drop of the table that has it.
	run(t, c, "VACUUM FULL t")
	run(t, c, "DROP TABLE t CASCADE")
	run(t, c, "SELECT skade.undrop('t')")
	require.Equal(t, "3", one(t, c, "SELECT count(*) FROM table_at('t', 'b')"))
}

// Cuts see the refs of their own commit, in the history too.
func TestRefsAtOlderCuts(t *testing.T) {
	g := start(t)
	c, old := g.connect(), g.connect()
	run(t, c, `CREATE TABLE t (id int PRIMARY KEY) WITH ("write.metadata.previous-versions-max" = '2')`)
	run(t, c, "INSERT INTO t VALUES (1)")
	run(t, c, "SELECT skade.create_branch('t', 'b')")
	run(t, old, "BEGIN")
	require.Equal(t, "1", one(t, old, "SELECT count(*) FROM table_at('t', 'b')"))
	w := g.connect("skade.branch", "b")
	for i := range 6 {
		run(t, w, fmt.Sprintf("INSERT INTO t VALUES (%d)", 10+i))
	}
	run(t, c, "SELECT skade.create_tag('t', 'late', 'b')")
	run(t, c, "VACUUM t") // removes the metadata file that old read
	require.Equal(t, "1", one(t, old, "SELECT count(*) FROM table_at('t', 'b')"))
	require.Equal(t, "42704", sqlstate(t, old, "SELECT count(*) FROM table_at('t', 'tag:late')").Code)
	run(t, old, "ROLLBACK")
	require.Equal(t, "7", one(t, old, "SELECT count(*) FROM table_at('t', 'late')"))
}
