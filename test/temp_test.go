package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// tempFolders are the folders of temporary tables in the server's data folder.
func (g *gateway) tempFolders() []string {
	g.t.Helper()
	found, err := filepath.Glob(filepath.Join(g.dir, "tmp", "temp-*"))
	require.NoError(g.t, err)
	return found
}

// dataFiles are the data files below a folder.
func dataFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(d.Name(), ".parquet") {
			n++
		}
		return err
	}))
	return n
}

func TestTempTablesAreTheSessionsOwn(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE p (id int PRIMARY KEY, v text)")
	run(t, a, "INSERT INTO p VALUES (1, 'permanent')")
	before := rows(t, a, "SELECT current_commit_seq()")
	run(t, a, "CREATE TEMP TABLE p (id int PRIMARY KEY, v text)")
	run(t, b, "CREATE TEMP TABLE p (id int PRIMARY KEY, w int)") // one name, two tables
	run(t, a, "INSERT INTO p SELECT g, 't' || g FROM generate_series(1, 100) g")
	run(t, b, "INSERT INTO p VALUES (7, 7)")
	require.Equal(t, [][]string{{"100"}}, rows(t, a, "SELECT count(*) FROM p"))
	require.Equal(t, [][]string{{"7", "7"}}, rows(t, b, "TABLE p"))
	require.Equal(t, [][]string{{"1", "permanent"}}, rows(t, a, "SELECT * FROM public.p"))
	require.Equal(t, [][]string{{"t2"}}, rows(t, a, "SELECT v FROM p WHERE id = 2"))
	require.Equal(t, "23505", sqlstate(t, a, "INSERT INTO p VALUES (100, 'again')").Code)
	require.Equal(t, [][]string{{"1", "t1", "permanent"}}, rows(t, a, "SELECT t.id, t.v, q.v FROM p t JOIN public.p q USING (id)"))

	// Only its session knows that it is there.
	name := rows(t, a, "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()")[0][0]
	require.Regexp(t, `^pg_temp_\d+$`, name)
	require.Equal(t, "42P01", sqlstate(t, b, "SELECT v FROM "+name+".p").Code)
	require.Empty(t, rows(t, b, "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = '"+name+"'"))
	require.Equal(t, [][]string{{"p", "t", "r", "true"}}, rows(t, a, "SELECT relname, relpersistence, relkind, pg_table_is_visible(oid)::text FROM pg_class WHERE relnamespace = pg_my_temp_schema() AND relkind = 'r'"))
	require.Equal(t, "42P16", sqlstate(t, b, "CREATE TABLE "+name+".x (a int)").Code)

	// And nothing else: no commit, no change feed.
	require.Equal(t, before, rows(t, a, "SELECT current_commit_seq()"))
	e := sqlstate(t, a, "SELECT * FROM table_changes('p', NULL, NULL)")
	require.Equal(t, [...]string{"0A000", `"p" is a temporary table`}, [...]string{e.Code, e.Message})
	require.Equal(t, [][]string{{"1"}}, rows(t, a, "SELECT count(*) FROM table_changes('public.p', NULL, NULL)"))

	require.Equal(t, "0A000", sqlstate(t, a, "SELECT skade.create_tag('p', 'x')").Code)
	require.Equal(t, [][]string{{"3", "t3"}}, rows(t, a, "SELECT * FROM lookup('p', 3)"))
	require.Equal(t, [][]string{{"1", "permanent"}}, rows(t, a, "SELECT * FROM lookup('public.p', 1)"))
	require.Equal(t, "0A000", sqlstate(t, a, "SELECT * FROM lookup('p', 3, 'now')").Code)

	run(t, a, "DROP TABLE p")
	require.Equal(t, [][]string{{"1", "permanent"}}, rows(t, a, "TABLE p"))
	require.Equal(t, [][]string{{"1", "permanent"}}, rows(t, a, "SELECT * FROM lookup('p', 1)"))
	run(t, a, "BEGIN; CREATE TABLE made (id int PRIMARY KEY, v text); INSERT INTO made VALUES (1, 'a')")
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, a, "SELECT * FROM lookup('made', 1)"))
	run(t, a, "ROLLBACK")
	require.Equal(t, [][]string{{"7", "7"}}, rows(t, b, "TABLE p"))
}

func TestTempTablesInTransactions(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE p (id int PRIMARY KEY)")
	both := func() [][]string { return rows(t, c, "SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM tmp)") }

	// Made, filled and rolled back with the rest.
	run(t, c, "BEGIN; INSERT INTO p VALUES (1); CREATE TEMP TABLE tmp (id int); INSERT INTO tmp VALUES (1); ROLLBACK")
	require.Equal(t, "42P01", sqlstate(t, c, "TABLE tmp").Code)
	run(t, c, "CREATE TEMP TABLE tmp (id int)")
	run(t, c, "BEGIN; INSERT INTO p VALUES (1); INSERT INTO tmp VALUES (1); SAVEPOINT a; DELETE FROM p; DELETE FROM tmp; INSERT INTO tmp VALUES (5), (6)")
	require.Equal(t, [][]string{{"0", "2"}}, both())
	run(t, c, "SAVEPOINT b; ALTER TABLE tmp ADD COLUMN x int; TRUNCATE tmp; DROP TABLE tmp; ROLLBACK TO b")
	require.Equal(t, [][]string{{"0", "2"}}, both())
	run(t, c, "ROLLBACK TO a; RELEASE a")
	require.Equal(t, [][]string{{"1", "1"}}, both())
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"1", "1"}}, both())

	// A statement that fails leaves both sides as they were; so does a commit that loses.
	require.Equal(t, "22012", sqlstate(t, c, "WITH i AS (INSERT INTO tmp VALUES (2) RETURNING id) INSERT INTO p SELECT id / 0 FROM i").Code)
	require.Equal(t, [][]string{{"1", "1"}}, both())
	run(t, c, "BEGIN; INSERT INTO tmp VALUES (2); INSERT INTO p VALUES (2)")
	run(t, other, "INSERT INTO p VALUES (2)")
	require.Equal(t, "23505", sqlstate(t, c, "COMMIT").Code)
	require.Equal(t, [][]string{{"2", "1"}}, both())
	run(t, c, "WITH d AS (DELETE FROM tmp RETURNING id) INSERT INTO p SELECT id + 10 FROM d")
	require.Equal(t, [][]string{{"3", "0"}}, both())

	// Read-only transactions write temporary tables, and make none.
	run(t, c, "BEGIN READ ONLY; INSERT INTO tmp VALUES (9); UPDATE tmp SET id = 10; COMMIT")
	require.Equal(t, [][]string{{"10"}}, rows(t, c, "TABLE tmp"))
	run(t, c, "BEGIN READ ONLY")
	require.Equal(t, "25006", sqlstate(t, c, "CREATE TEMP TABLE no (a int)").Code)
	run(t, c, "ROLLBACK")

	// An aborted statement in a transaction keeps what the transaction had.
	run(t, c, "BEGIN; INSERT INTO tmp VALUES (11); SAVEPOINT s")
	require.Equal(t, "22P02", sqlstate(t, c, "INSERT INTO tmp VALUES ('x')").Code)
	run(t, c, "ROLLBACK TO s; COMMIT")
	require.Equal(t, [][]string{{"10"}, {"11"}}, rows(t, c, "SELECT * FROM tmp ORDER BY 1"))
}

func TestTempOnCommit(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE p (id int PRIMARY KEY)")
	run(t, c, "CREATE TEMP TABLE keep (a int) ON COMMIT PRESERVE ROWS")
	run(t, c, "CREATE TEMP TABLE del (a int) ON COMMIT DELETE ROWS")
	counts := func() [][]string { return rows(t, c, "SELECT (SELECT count(*) FROM keep), (SELECT count(*) FROM del)") }
	run(t, c, "BEGIN; INSERT INTO keep VALUES (1); INSERT INTO del VALUES (1); CREATE TEMP TABLE gone ON COMMIT DROP AS SELECT 1 AS a; CREATE TEMP VIEW over AS SELECT * FROM gone")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "TABLE over"))
	require.Equal(t, [][]string{{"1", "1"}}, counts())
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"1", "0"}}, counts())
	require.Equal(t, "42P01", sqlstate(t, c, "TABLE gone").Code)
	require.Equal(t, "42P01", sqlstate(t, c, "TABLE over").Code)

	// A commit that loses does none of it.
	run(t, c, "BEGIN; INSERT INTO p VALUES (1); INSERT INTO keep VALUES (2); DROP TABLE del")
	run(t, other, "INSERT INTO p VALUES (1)")
	require.Equal(t, "23505", sqlstate(t, c, "COMMIT").Code)
	require.Equal(t, [][]string{{"1", "0"}}, counts())

	// A cursor WITH HOLD reads the rows before they go.
	run(t, c, "BEGIN; INSERT INTO del VALUES (1), (2); DECLARE h CURSOR WITH HOLD FOR SELECT * FROM del ORDER BY a; COMMIT")
	require.Equal(t, [][]string{{"1"}, {"2"}}, rows(t, c, "FETCH ALL FROM h"))
	require.Equal(t, "42P16", sqlstate(t, c, "CREATE TABLE t (a int) ON COMMIT DROP").Code)
}

func TestTempObjects(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE p (id int)")
	run(t, c, `CREATE TEMP TABLE s (id serial PRIMARY KEY, i int GENERATED ALWAYS AS IDENTITY, twice int GENERATED ALWAYS AS (id * 2) STORED, v text DEFAULT 'none', CHECK (v <> ''))`)
	require.Equal(t, [][]string{{"1", "1", "2", "none"}, {"2", "2", "4", "b"}}, rows(t, c, "INSERT INTO s (v) VALUES (DEFAULT), ('b') RETURNING *"))
	require.Equal(t, "23514", sqlstate(t, c, "INSERT INTO s (v) VALUES ('')").Code)
	require.Equal(t, "428C9", sqlstate(t, c, "INSERT INTO s (i) VALUES (3)").Code)
	run(t, c, "CREATE TEMP TABLE l (LIKE s INCLUDING ALL)")
	require.Equal(t, [][]string{{"4", "1", "8", "none"}}, rows(t, c, "INSERT INTO l DEFAULT VALUES RETURNING *"))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT nextval(pg_get_serial_sequence('l', 'i')) - 1"))
	run(t, c, "CREATE TEMP SEQUENCE q START 5 INCREMENT 5")
	require.Equal(t, [][]string{{"5", "10", "10"}}, rows(t, c, "SELECT nextval('q'), nextval('pg_temp.q'), currval('q')"))
	require.Equal(t, [][]string{{"10"}}, rows(t, c, "SELECT last_value FROM q"))
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP SEQUENCE s_id_seq").Code)

	// A view over a temporary table is one.
	run(t, c, "CREATE VIEW v AS SELECT s.id FROM s JOIN p ON p.id = s.id")
	require.Equal(t, [][]string{{"t"}}, rows(t, c, "SELECT relpersistence FROM pg_class WHERE relname = 'v'"))
	run(t, c, "CREATE VIEW vv AS SELECT * FROM v")
	require.Equal(t, "42P16", sqlstate(t, c, "CREATE VIEW public.x AS SELECT * FROM s").Code)
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE s").Code)
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE p").Code)
	require.Equal(t, [][]string{{"LOCAL TEMPORARY"}, {"LOCAL TEMPORARY"}, {"BASE TABLE"}, {"LOCAL TEMPORARY"}},
		rows(t, c, "SELECT table_type FROM information_schema.tables WHERE table_name IN ('v', 'vv', 'p', 's') ORDER BY table_name = 's', table_name = 'p', table_name"))
	run(t, c, "ALTER TABLE s RENAME TO s2; ALTER TABLE s2 RENAME COLUMN v TO w; ALTER TABLE s2 ADD COLUMN z int DEFAULT 7")
	require.Equal(t, [][]string{{"2", "b", "7"}}, rows(t, c, "SELECT id, w, z FROM s2 WHERE id = 2"))
	require.Equal(t, "0A000", sqlstate(t, c, "ALTER TABLE s2 SET SCHEMA public").Code)
	require.Equal(t, "42P16", sqlstate(t, c, "CREATE TEMP TABLE public.t (a int)").Code)
	require.Equal(t, "3F000", sqlstate(t, c, "CREATE TEMP TABLE nosuch.t (a int)").Code)
	run(t, c, "CREATE TABLE pg_temp.t (a int); DROP TABLE s2 CASCADE")
	require.Equal(t, "42P01", sqlstate(t, c, "TABLE vv").Code)
	run(t, c, "DISCARD TEMP")
	require.Empty(t, rows(t, c, "SELECT relname FROM pg_class WHERE relnamespace = pg_my_temp_schema()"))
	run(t, c, "SET search_path = pg_temp, public; CREATE TABLE first (a int)")
	require.Equal(t, [][]string{{"t"}}, rows(t, c, "SELECT relpersistence FROM pg_class WHERE relname = 'first'"))
	run(t, c, "DISCARD ALL")
	require.Equal(t, "42P01", sqlstate(t, c, "TABLE first").Code)
}

// A statement prepared before a temporary table hides what it reads, reads the temporary one; when that is gone, the other again.
func TestTempTableHidesFromPrepared(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE p (id int)")
	run(t, c, "INSERT INTO p VALUES (1)")
	_, err := c.Prepare(context.Background(), "q", "SELECT id FROM p")
	require.NoError(t, err)
	read := func() (id int) {
		require.NoError(t, c.QueryRow(context.Background(), "q").Scan(&id))
		return id
	}
	require.Equal(t, 1, read())
	run(t, c, "CREATE TEMP TABLE p (id int)")
	run(t, c, "INSERT INTO p VALUES (2)")
	require.Equal(t, 2, read())
	run(t, c, "DROP TABLE p")
	require.Equal(t, 1, read())
}

func TestTempCopy(t *testing.T) {
	g := start(t)
	c := g.connect()
	ctx := context.Background()
	run(t, c, "CREATE TEMP TABLE t (id int PRIMARY KEY, v text)")
	n, err := c.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"id", "v"}, pgx.CopyFromSlice(3000, func(i int) ([]any, error) { return []any{i, fmt.Sprint(i)}, nil }))
	require.NoError(t, err)
	require.EqualValues(t, 3000, n)
	_, err = c.PgConn().CopyFrom(ctx, strings.NewReader("3000,a\n0,b\n"), "COPY pg_temp.t FROM STDIN (FORMAT csv)")
	require.ErrorContains(t, err, "duplicate key")
	var out strings.Builder
	_, err = c.PgConn().CopyTo(ctx, &out, "COPY (SELECT * FROM t WHERE id > 2997 ORDER BY id) TO STDOUT")
	require.NoError(t, err)
	require.Equal(t, "2998\t2998\n2999\t2999\n", out.String())
	require.Equal(t, [][]string{{"3000"}}, rows(t, c, "SELECT count(*) FROM t"))
}

// What a session wrote is gone with it, what it no longer needs before.
func TestTempFilesGo(t *testing.T) {
	g := start(t)
	idle, c := g.connect(), g.connect()
	run(t, idle, "SELECT 1")
	require.Empty(t, g.tempFolders())
	run(t, c, "CREATE TEMP TABLE t (id int PRIMARY KEY, n int, pad text)")
	run(t, c, "INSERT INTO t SELECT g, 0, 'padding ' || md5(g::text) FROM generate_series(1, 30000) g")
	update := func(times int) {
		for range times {
			run(t, c, "UPDATE t SET n = n + 1 WHERE id <= 10000")
		}
	}
	update(20)
	require.Equal(t, [][]string{{"30000", "200000"}}, rows(t, c, "SELECT count(*), sum(n) FROM t"))
	folders := g.tempFolders()
	require.Len(t, folders, 1)
	require.LessOrEqual(t, dataFiles(t, folders[0]), 10)
	run(t, c, "BEGIN")
	update(12)
	run(t, c, "SAVEPOINT s")
	update(12)
	require.Equal(t, [][]string{{"30000", "440000"}}, rows(t, c, "SELECT count(*), sum(n) FROM t"))
	run(t, c, "ROLLBACK TO s; COMMIT")
	require.Equal(t, [][]string{{"30000", "320000"}}, rows(t, c, "SELECT count(*), sum(n) FROM t"))
	require.LessOrEqual(t, dataFiles(t, folders[0]), 10)
	run(t, c, "BEGIN")
	update(12)
	run(t, c, "DELETE FROM t WHERE id > 5000")
	run(t, c, "ROLLBACK")
	require.Equal(t, [][]string{{"30000", "320000"}}, rows(t, c, "SELECT count(*), sum(n) FROM t"))
	require.LessOrEqual(t, dataFiles(t, folders[0]), 10)
	run(t, c, "TRUNCATE t")
	require.Zero(t, dataFiles(t, folders[0]))
	run(t, c, "INSERT INTO t SELECT g, 0, 'padding ' || md5(g::text) FROM generate_series(1, 30000) g")
	require.NotZero(t, dataFiles(t, folders[0]))
	run(t, c, "DROP TABLE t")
	require.Zero(t, dataFiles(t, folders[0]))
	run(t, c, "CREATE TEMP TABLE t AS SELECT g, md5(g::text) FROM generate_series(1, 30000) g")
	require.NotZero(t, dataFiles(t, folders[0]))
	require.NoError(t, c.Close(context.Background()))
	require.Eventually(t, func() bool { return len(g.tempFolders()) == 0 }, 10*time.Second, 5*time.Millisecond)

	// What a killed server leaves goes when the next one starts.
	left := filepath.Join(g.dir, "tmp", "temp-9-9", "x")
	require.NoError(t, os.MkdirAll(left, 0o700))
	g.close()
	g.open()
	require.Empty(t, g.tempFolders())
}

// Statements that lose a race run again, with what they did to temporary tables taken back.
func TestTempTablesWhenStatementsRunAgain(t *testing.T) {
	g := start(t)
	const sessions, jobs = 6, 12
	c := g.connect()
	run(t, c, "CREATE TABLE total (id int PRIMARY KEY, n int); INSERT INTO total VALUES (1, 0)")
	done := make(chan error, sessions)
	for range sessions {
		s := g.connect()
		run(t, s, "CREATE TEMP TABLE jobs AS SELECT g AS id FROM generate_series(1, 12) g")
		go func() {
			for i := range jobs {
				if _, err := s.Exec(context.Background(), "WITH j AS (DELETE FROM jobs WHERE id = $1 RETURNING id) UPDATE total SET n = n + 1 FROM j WHERE total.id = 1", i+1); err != nil {
					done <- err
					return
				}
			}
			var left int
			err := s.QueryRow(context.Background(), "SELECT count(*) FROM jobs").Scan(&left)
			if err == nil && left != 0 {
				err = fmt.Errorf("%d jobs are left", left)
			}
			done <- err
		}()
	}
	for range sessions {
		require.NoError(t, <-done)
	}
	require.Equal(t, [][]string{{fmt.Sprint(sessions * jobs)}}, rows(t, c, "SELECT n FROM total"))
}

// READ COMMITTED moves from cut to cut beside temporary tables.
func TestTempTablesUnderReadCommitted(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE p (id int PRIMARY KEY)")
	run(t, c, "CREATE TEMP TABLE tmp (id int)")
	run(t, c, "BEGIN ISOLATION LEVEL READ COMMITTED; INSERT INTO tmp VALUES (1); SAVEPOINT s; INSERT INTO tmp VALUES (2)")
	for i := range 3 {
		run(t, other, "INSERT INTO p VALUES ($1)", i)
		require.Equal(t, [][]string{{fmt.Sprint(i + 1), "2"}}, rows(t, c, "SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM tmp)"))
	}
	run(t, c, "ROLLBACK TO s; INSERT INTO tmp SELECT id + 10 FROM p; COMMIT")
	require.Equal(t, [][]string{{"1"}, {"10"}, {"11"}, {"12"}}, rows(t, c, "SELECT id FROM tmp ORDER BY id"))

	// The first temporary object of a session, made after savepoints.
	run(t, other, "BEGIN; INSERT INTO p VALUES (7); SAVEPOINT a; CREATE TEMP TABLE x (a int); INSERT INTO x VALUES (1); SAVEPOINT b; INSERT INTO x VALUES (2); ROLLBACK TO b")
	require.Equal(t, [][]string{{"1"}}, rows(t, other, "TABLE x"))
	run(t, other, "ROLLBACK TO a")
	require.Equal(t, "42P01", sqlstate(t, other, "TABLE x").Code)
	run(t, other, "ROLLBACK TO a; CREATE TEMP TABLE x (a int); COMMIT; INSERT INTO x VALUES (1)")
	require.Equal(t, [][]string{{"1"}}, rows(t, other, "TABLE x"))
}
