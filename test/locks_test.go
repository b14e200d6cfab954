package test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// asked is a statement that runs in the background.
type asked struct {
	t    *testing.T
	sql  string
	done chan error
	rows [][]string
}

// ask starts a statement and waits until its session stands in a lock's queue; look watches from another session.
func ask(t *testing.T, look, c *pgx.Conn, sql string) *asked {
	t.Helper()
	a := &asked{t: t, sql: sql, done: make(chan error, 1)}
	pid := c.PgConn().PID()
	go func() {
		res, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
		if err == nil && len(res) > 0 {
			for _, r := range res[len(res)-1].Rows {
				var row []string
				for _, v := range r {
					row = append(row, string(v))
				}
				a.rows = append(a.rows, row)
			}
		}
		a.done <- err
	}()
	require.Eventually(t, func() bool {
		return len(rows(t, look, fmt.Sprintf("SELECT 1 FROM pg_locks WHERE pid = %d AND NOT granted", pid))) > 0
	}, 30*time.Second, time.Millisecond, "%s does not wait", sql)
	return a
}

// ends waits for the statement and returns its SQLSTATE, "" for success.
func (a *asked) ends() string {
	a.t.Helper()
	select {
	case err := <-a.done:
		if err == nil {
			return ""
		}
		var pe *pgconn.PgError
		require.ErrorAs(a.t, err, &pe, a.sql)
		return pe.Code
	case <-time.After(30 * time.Second):
		require.Fail(a.t, "still waiting: "+a.sql)
		return ""
	}
}

func TestAdvisoryLocks(t *testing.T) {
	g := start(t)
	a, b, look := g.connect(), g.connect(), g.connect()
	one := func(c *pgx.Conn, expr string) string { return rows(t, c, "SELECT "+expr)[0][0] }

	require.Equal(t, "", one(a, "pg_advisory_lock(5)"))
	require.Equal(t, "t", one(a, "pg_try_advisory_lock(5)")) // counted
	require.Equal(t, "f", one(b, "pg_try_advisory_lock(5)"))
	require.Equal(t, "f", one(b, "pg_try_advisory_xact_lock_shared(5)"))
	require.Equal(t, "t", one(b, "pg_try_advisory_lock(0, 5)"), "two integers are another space")
	require.Equal(t, [][]string{
		{"advisory", "0", "5", "1", "ExclusiveLock", "t"},
		{"advisory", "0", "5", "2", "ExclusiveLock", "t"},
	}, rows(t, look, "SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY objsubid"))

	w := ask(t, look, b, "SELECT pg_advisory_lock_shared(5)")
	require.Equal(t, fmt.Sprintf("{%d}", a.PgConn().PID()), one(look, fmt.Sprintf("pg_blocking_pids(%d)", b.PgConn().PID())))
	require.Equal(t, [][]string{{"Lock", "advisory", "active"}},
		rows(t, look, fmt.Sprintf("SELECT wait_event_type, wait_event, state FROM pg_stat_activity WHERE pid = %d", b.PgConn().PID())))
	require.Equal(t, "f", one(look, fmt.Sprintf("waitstart IS NULL FROM pg_locks WHERE pid = %d AND NOT granted", b.PgConn().PID())))
	require.Equal(t, "t", one(a, "pg_advisory_unlock(5)"))
	require.Equal(t, "t", one(a, "pg_advisory_unlock(5)"))
	require.Equal(t, "", w.ends())
	require.Equal(t, "t", one(a, "pg_try_advisory_lock_shared(5)"))
	require.Equal(t, "f", one(a, "pg_advisory_unlock(5)"), "held, but shared")
	require.Equal(t, "", one(b, "pg_advisory_unlock_all()"))
	require.Equal(t, "t", one(a, "pg_advisory_unlock_shared(5)"))

	// Transaction level: the end of the transaction, ROLLBACK TO, an error.
	run(t, a, "BEGIN")
	one(a, "pg_advisory_xact_lock(-1)")
	run(t, a, "SAVEPOINT s")
	one(a, "pg_advisory_xact_lock(-2)")
	one(a, "pg_advisory_lock(-3)")
	run(t, a, "ROLLBACK TO s")
	require.Equal(t, "f", one(b, "pg_try_advisory_xact_lock(-1)"))
	require.Equal(t, "t", one(b, "pg_try_advisory_xact_lock(-2)"))
	require.Equal(t, "f", one(b, "pg_try_advisory_lock(-3)"), "a session lock outlives ROLLBACK TO")
	require.Equal(t, "22012", sqlstate(t, a, "SELECT 1 / 0").Code)
	require.Equal(t, "f", one(b, "pg_try_advisory_xact_lock(-1)"), "the error undid what came after the savepoint only")
	run(t, a, "ROLLBACK")
	require.Equal(t, "t", one(b, "pg_try_advisory_xact_lock(-1)"))

	// A lock given back by a disconnect.
	w = ask(t, look, b, "SELECT pg_advisory_lock(-3)")
	require.NoError(t, a.Close(context.Background()))
	require.Equal(t, "", w.ends())
	require.Equal(t, "t", one(b, "pg_advisory_unlock(-3)"))
}

func TestLockWaitsEnd(t *testing.T) {
	g := start(t)
	a, b, look := g.connect(), g.connect(), g.connect()
	run(t, a, "SELECT pg_advisory_lock(1)")

	run(t, b, "SET lock_timeout = '20ms'")
	e := sqlstate(t, b, "SELECT pg_advisory_lock(1)")
	require.Equal(t, []string{"55P03", "canceling statement due to lock timeout"}, []string{e.Code, e.Message})
	run(t, b, "SET lock_timeout = 0")
	run(t, b, "SET statement_timeout = '20ms'")
	require.Equal(t, "57014", sqlstate(t, b, "SELECT pg_advisory_lock(1)").Code)
	run(t, b, "SET statement_timeout = 0")
	w := ask(t, look, b, "SELECT pg_advisory_lock(1)")
	run(t, look, "SELECT pg_cancel_backend($1)", int32(b.PgConn().PID()))
	require.Equal(t, "57014", w.ends())
	w = ask(t, look, b, "SELECT pg_advisory_lock(1)")
	run(t, look, "SELECT pg_terminate_backend($1)", int32(b.PgConn().PID()))
	require.Equal(t, "57P01", w.ends())
	require.Empty(t, rows(t, look, "SELECT * FROM pg_locks WHERE NOT granted"))
}

func TestDeadlock(t *testing.T) {
	g := start(t)
	a, b, look := g.connect(), g.connect(), g.connect()
	run(t, a, "CREATE TABLE x (id int PRIMARY KEY)")
	run(t, a, "CREATE TABLE y (id int PRIMARY KEY)")
	run(t, a, "SET deadlock_timeout = '1h'")
	run(t, b, "SET deadlock_timeout = '1ms'")
	for _, c := range []*pgx.Conn{a, b} {
		run(t, c, "BEGIN")
	}
	run(t, a, "LOCK TABLE x")
	run(t, b, "LOCK TABLE y IN EXCLUSIVE MODE")
	w := ask(t, look, a, "LOCK TABLE y IN SHARE MODE")
	e := sqlstate(t, b, "INSERT INTO x VALUES (1)")
	require.Equal(t, []string{"40P01", "deadlock detected"}, []string{e.Code, e.Message})
	require.Regexp(t, fmt.Sprintf(`^Process %[2]d waits for RowExclusiveLock on relation \d+ of database 16383; blocked by process %[1]d\.`+"\n"+
		`Process %[1]d waits for ShareLock on relation \d+ of database 16383; blocked by process %[2]d\.$`, a.PgConn().PID(), b.PgConn().PID()), e.Detail)
	require.Equal(t, "", w.ends(), "the victim's locks are gone before its ROLLBACK")
	require.Equal(t, "25P02", sqlstate(t, b, "SELECT 1").Code)
	run(t, b, "ROLLBACK")
	run(t, a, "COMMIT")
}

func TestLockTable(t *testing.T) {
	g := start(t)
	a, b, look := g.connect(), g.connect(), g.connect()
	run(t, a, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO t VALUES (1, 1)")
	require.Equal(t, "25P01", sqlstate(t, a, "LOCK TABLE t").Code)

	run(t, a, "BEGIN")
	run(t, a, "LOCK TABLE t IN SHARE MODE")
	require.Equal(t, [][]string{{"relation", "16383", "t", "ShareLock", "t"}},
		rows(t, look, "SELECT locktype, database, relation::regclass, mode, granted FROM pg_locks WHERE locktype = 'relation'"))
	require.Equal(t, [][]string{{"1"}}, rows(t, b, "SELECT count(*) FROM t"))
	run(t, b, "BEGIN")
	e := sqlstate(t, b, "LOCK TABLE t IN ROW EXCLUSIVE MODE NOWAIT")
	require.Equal(t, []string{"55P03", `could not obtain lock on relation "t"`}, []string{e.Code, e.Message})
	run(t, b, "ROLLBACK")
	for _, sql := range []string{"INSERT INTO t VALUES (2, 2)", "UPDATE t SET v = 2", "DELETE FROM t WHERE id = 2", "TRUNCATE t", "ALTER TABLE t RENAME TO t2"} {
		w := ask(t, look, b, sql)
		run(t, look, "SELECT pg_cancel_backend($1)", int32(b.PgConn().PID()))
		require.Equal(t, "57014", w.ends(), sql)
	}
	w := ask(t, look, b, "UPDATE t SET v = v + 10")
	run(t, a, "UPDATE t SET v = 7")
	run(t, a, "COMMIT")
	require.Equal(t, "", w.ends())
	require.Equal(t, [][]string{{"17"}}, rows(t, look, "SELECT v FROM t"), "the writer that waited read what the holder left")

	// ACCESS EXCLUSIVE stops readers; the lock of a DDL statement does not.
	run(t, a, "BEGIN")
	run(t, a, "LOCK t")
	w = ask(t, look, b, "SELECT v FROM t")
	run(t, a, "DELETE FROM t")
	run(t, a, "COMMIT")
	require.Equal(t, "", w.ends())
	require.Empty(t, w.rows)
	run(t, a, "BEGIN")
	run(t, a, "ALTER TABLE t RENAME TO u")
	require.Equal(t, [][]string{{"0"}}, rows(t, b, "SELECT count(*) FROM t"))
	w = ask(t, look, b, "INSERT INTO t VALUES (5, 5)")
	run(t, a, "COMMIT")
	require.Equal(t, "42P01", w.ends())

	// A transaction that begins with LOCK TABLE reads what is there once it has the lock.
	run(t, b, "BEGIN")
	run(t, b, "INSERT INTO u VALUES (9, 9)")
	run(t, a, "BEGIN")
	w = ask(t, look, a, "LOCK TABLE u IN SHARE MODE")
	run(t, b, "COMMIT")
	require.Equal(t, "", w.ends())
	require.Equal(t, [][]string{{"9"}}, rows(t, a, "SELECT id FROM u"))
	run(t, a, "COMMIT")
}

// TestForUpdate: rows are locked by key until the end of the transaction, against writers and against one another, as in PostgreSQL.
func TestForUpdate(t *testing.T) {
	g := start(t)
	a, b, look := g.connect(), g.connect(), g.connect()
	run(t, a, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO t SELECT i, i * 10 FROM generate_series(1, 5) i")
	run(t, a, "BEGIN")
	require.Equal(t, [][]string{{"2", "20"}}, rows(t, a, "SELECT * FROM t WHERE id = 2 FOR UPDATE"))
	require.Equal(t, [][]string{{"tuple", "AccessExclusiveLock"}}, rows(t, look, "SELECT locktype, mode FROM pg_locks WHERE locktype = 'tuple'"))

	e := sqlstate(t, b, "SELECT * FROM t FOR SHARE NOWAIT")
	require.Equal(t, []string{"55P03", `could not obtain lock on row in relation "t"`}, []string{e.Code, e.Message})
	require.Equal(t, [][]string{{"1"}, {"3"}}, rows(t, b, "SELECT id FROM t ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED"))
	require.Equal(t, [][]string{{"3"}}, rows(t, b, "SELECT id FROM t ORDER BY id OFFSET 1 LIMIT 1 FOR UPDATE SKIP LOCKED"))
	run(t, b, "UPDATE t SET v = 11 WHERE id = 1")
	run(t, b, "INSERT INTO t VALUES (6, 60)")
	run(t, b, "INSERT INTO t VALUES (6, 1) ON CONFLICT (id) DO UPDATE SET v = 61")

	// A writer of its own waits and then sees what was written.
	for _, c := range []struct{ sql, want string }{
		{"UPDATE t SET v = v + 1 WHERE id = 2", "22"},
		{"INSERT INTO t VALUES (2, 0) ON CONFLICT (id) DO UPDATE SET v = t.v + 1", "24"},
	} {
		w := ask(t, look, b, c.sql)
		run(t, a, "UPDATE t SET v = v + 1 WHERE id = 2")
		run(t, a, "COMMIT")
		require.Equal(t, "", w.ends(), c.sql)
		require.Equal(t, [][]string{{c.want}}, rows(t, look, "SELECT v FROM t WHERE id = 2"), c.sql)
		run(t, a, "BEGIN")
		run(t, a, "SELECT 1 FROM t WHERE id = 2 FOR NO KEY UPDATE")
	}
	w := ask(t, look, b, "DELETE FROM t WHERE id = 2")
	run(t, a, "ROLLBACK")
	require.Equal(t, "", w.ends())
	require.Equal(t, [][]string{{"5"}}, rows(t, look, "SELECT count(*) FROM t"))

	// A key share lets change what is no key.
	run(t, a, "BEGIN")
	run(t, a, "SELECT 1 FROM t WHERE id = 3 FOR KEY SHARE")
	run(t, b, "UPDATE t SET v = 31 WHERE id = 3")
	w = ask(t, look, b, "UPDATE t SET id = 33 WHERE id = 3")
	run(t, a, "COMMIT")
	require.Equal(t, "", w.ends())

	// FOR UPDATE waits for a writer: REPEATABLE READ finds that its row changed, READ COMMITTED looks again.
	for _, level := range []string{"REPEATABLE READ", "READ COMMITTED"} {
		run(t, a, "UPDATE t SET v = 40 WHERE id = 4")
		run(t, a, "BEGIN")
		run(t, a, "UPDATE t SET v = 41 WHERE id = 4")
		run(t, b, "BEGIN ISOLATION LEVEL "+level)
		run(t, b, "SELECT count(*) FROM t")
		w := ask(t, look, b, "SELECT v FROM t WHERE id = 4 AND v < 42 FOR UPDATE")
		run(t, a, "COMMIT")
		if level == "READ COMMITTED" {
			require.Equal(t, "", w.ends())
			require.Equal(t, [][]string{{"41"}}, w.rows)
			run(t, b, "UPDATE t SET v = v + 1 WHERE id = 4")
			run(t, b, "COMMIT")
			require.Equal(t, [][]string{{"42"}}, rows(t, b, "SELECT v FROM t WHERE id = 4"))
		} else {
			require.Equal(t, "40001", w.ends())
			run(t, b, "ROLLBACK")
		}
	}
	run(t, a, "BEGIN")
	run(t, a, "UPDATE t SET v = 99 WHERE id = 4")
	run(t, b, "BEGIN")
	run(t, b, "SELECT count(*) FROM t")
	w = ask(t, look, b, "SELECT v FROM t WHERE id = 4 FOR UPDATE")
	run(t, a, "ROLLBACK")
	require.Equal(t, "", w.ends(), "rolled back: nothing changed")
	require.Equal(t, [][]string{{"42"}}, w.rows)
	run(t, b, "COMMIT")

	// The lock goes with the savepoint.
	run(t, a, "BEGIN")
	run(t, a, "SAVEPOINT s")
	run(t, a, "SELECT 1 FROM t WHERE id = 5 FOR UPDATE")
	w = ask(t, look, b, "UPDATE t SET v = 51 WHERE id = 5")
	run(t, a, "ROLLBACK TO s")
	require.Equal(t, "", w.ends())
	run(t, a, "COMMIT")
}

// TestForUpdateInside: locking clauses in subqueries, WITH, views and joins; the queue of jobs.
func TestForUpdateInside(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE jobs (id int PRIMARY KEY, state text, owner int)")
	run(t, a, "INSERT INTO jobs SELECT i, 'new', i % 2 FROM generate_series(1, 6) i")
	run(t, a, "CREATE TABLE owners (id int PRIMARY KEY, name text)")
	run(t, a, "INSERT INTO owners VALUES (0, 'zero'), (1, 'one')")
	run(t, a, "CREATE TABLE log (line text)")
	run(t, a, "INSERT INTO log VALUES ('x'), ('y')")
	run(t, a, "CREATE VIEW open AS SELECT id, owner AS o FROM jobs WHERE state = 'new'")
	ids := func(c *pgx.Conn, sql string) (out string) {
		for _, r := range rows(t, c, sql) {
			out += r[0] + " "
		}
		return out
	}
	run(t, a, "BEGIN ISOLATION LEVEL READ COMMITTED")
	require.Equal(t, "1 ", ids(a, "UPDATE jobs SET state = 'run' WHERE id = (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"))
	require.Equal(t, "2 ", ids(b, "UPDATE jobs SET state = 'run' WHERE id = (SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"))
	require.Equal(t, "3 4 ", ids(a, "WITH c AS (SELECT id FROM jobs WHERE state = 'new' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 2) SELECT * FROM c ORDER BY 1"))
	require.Equal(t, "5 6 ", ids(b, "SELECT id FROM open ORDER BY id FOR UPDATE SKIP LOCKED"))
	require.Equal(t, "5 ", ids(b, "SELECT s.id FROM (SELECT * FROM jobs WHERE owner = 1) s WHERE state = 'new' FOR UPDATE SKIP LOCKED"))
	require.Equal(t, "5 ", ids(b, "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 'new' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id"))
	require.Equal(t, "zero ", ids(a, "SELECT o.name FROM jobs j JOIN owners o ON o.id = j.owner WHERE j.id = 4 FOR SHARE OF o"))
	require.Equal(t, "55P03", sqlstate(t, b, "SELECT * FROM owners WHERE id = 0 FOR UPDATE NOWAIT").Code)
	require.Equal(t, "0 1 ", ids(b, "SELECT id FROM owners ORDER BY id FOR KEY SHARE NOWAIT"))
	require.Equal(t, "x ", ids(a, "SELECT line FROM log WHERE line = 'x' FOR UPDATE"), "without a key: by place")
	require.Equal(t, "y ", ids(b, "SELECT line FROM log FOR UPDATE SKIP LOCKED"))
	run(t, a, "ROLLBACK")
	require.Equal(t, "1 3 4 6 ", ids(b, "SELECT id FROM open ORDER BY id FOR UPDATE NOWAIT"))

	// Parameters, cursors, INSERT … SELECT.
	run(t, a, "BEGIN")
	var id int
	require.NoError(t, a.QueryRow(context.Background(), "SELECT id FROM jobs WHERE id >= $1 ORDER BY id LIMIT $2 FOR UPDATE", 3, 1).Scan(&id))
	require.Equal(t, 3, id)
	run(t, a, "DECLARE c CURSOR FOR SELECT id FROM jobs WHERE id = 4 FOR UPDATE")
	require.Equal(t, "4 ", ids(a, "FETCH c"))
	run(t, a, "INSERT INTO log SELECT id::text FROM jobs WHERE id = 6 FOR UPDATE")
	require.Equal(t, "1 2 ", ids(b, "SELECT id FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED"))
	run(t, a, "COMMIT")

	run(t, a, "BEGIN READ ONLY")
	e := sqlstate(t, a, "SELECT id FROM jobs FOR SHARE")
	require.Equal(t, []string{"25006", "cannot execute SELECT FOR SHARE in a read-only transaction"}, []string{e.Code, e.Message})
	run(t, a, "ROLLBACK")
	for sql, want := range map[string]string{
		"SELECT count(*) FROM jobs FOR UPDATE":                                                 "FOR UPDATE is not allowed with aggregate functions",
		"SELECT owner FROM jobs GROUP BY owner FOR SHARE":                                      "FOR SHARE is not allowed with GROUP BY clause",
		"SELECT DISTINCT owner FROM jobs FOR NO KEY UPDATE":                                    "FOR NO KEY UPDATE is not allowed with DISTINCT clause",
		"SELECT id FROM jobs UNION SELECT 1 FOR KEY SHARE":                                     "FOR KEY SHARE is not allowed with UNION/INTERSECT/EXCEPT",
		"SELECT rank() OVER () FROM jobs FOR UPDATE":                                           "FOR UPDATE is not allowed with window functions",
		"SELECT * FROM jobs LEFT JOIN owners o ON o.id = owner FOR UPDATE":                     "FOR UPDATE cannot be applied to the nullable side of an outer join",
		"WITH c AS (SELECT * FROM jobs) SELECT * FROM c FOR UPDATE OF c":                       "FOR UPDATE cannot be applied to a WITH query",
		"VALUES (1) FOR UPDATE":                                                                "FOR UPDATE cannot be applied to VALUES",
		"SELECT * FROM generate_series(1, 2) g FOR UPDATE OF g":                                "FOR UPDATE cannot be applied to a function",
		"SELECT * FROM (SELECT count(*) FROM jobs) s FOR UPDATE":                               "FOR UPDATE is not allowed with aggregate functions",
		"SELECT * FROM owners o WHERE 0 < (SELECT id FROM jobs WHERE owner = o.id FOR UPDATE)": "a locking clause in a correlated subquery is not supported",
	} {
		e := sqlstate(t, a, sql)
		require.Equal(t, []string{"0A000", want}, []string{e.Code, e.Message}, sql)
	}
	require.Equal(t, "42P01", sqlstate(t, a, "SELECT * FROM jobs FOR UPDATE OF nope").Code)
	require.Equal(t, "42601", sqlstate(t, a, "SELECT * FROM public.jobs FOR UPDATE OF public.jobs").Code)
	run(t, a, "SELECT * FROM jobs LEFT JOIN owners o ON o.id = owner FOR UPDATE OF jobs")
}
