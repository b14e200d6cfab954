package test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// TestFirstSteps is what a newcomer does: a table, rows, changes, a lookup, a notification.
func TestFirstSteps(t *testing.T) {
	g := start(t)
	c := g.connect()
	require.Equal(t, "CREATE TABLE", run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name text, amount numeric(10,2))").String())
	require.Equal(t, "INSERT 0 3", run(t, c, "INSERT INTO t VALUES (1, 'one', 1.5), (2, 'two', 2), (3, 'three', NULL)").String())
	require.Equal(t, [][]string{{"1", "one", "1.50"}, {"2", "two", "2.00"}, {"3", "three", "∅"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
	seq := rows(t, c, "SELECT current_commit_seq()")[0][0]
	require.Equal(t, "UPDATE 1", run(t, c, "UPDATE t SET amount = amount * 2 WHERE id = 1").String())
	require.Equal(t, "DELETE 1", run(t, c, "DELETE FROM t WHERE id = 3").String())
	require.Equal(t, "INSERT 0 1", run(t, c, "INSERT INTO t VALUES (2, 'deux', 22) ON CONFLICT (id) DO UPDATE SET name = excluded.name").String())
	require.Equal(t, [][]string{
		{"1", "one", "1.50", "UPDATE_BEFORE"}, {"1", "one", "3.00", "UPDATE_AFTER"},
		{"3", "three", "∅", "DELETE"},
		{"2", "two", "2.00", "UPDATE_BEFORE"}, {"2", "deux", "2.00", "UPDATE_AFTER"},
	}, rows(t, c, "SELECT id, name, amount, _change_type FROM table_changes('t', 'seq:"+seq+"', NULL)"))
	require.Equal(t, [][]string{{"1", "one", "3.00"}}, rows(t, c, "SELECT * FROM lookup('t', 1)"))
	require.Equal(t, [][]string{{"1", "one", "1.50"}}, rows(t, c, "SELECT * FROM lookup('t', 1, 'seq:"+seq+"')"))
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('t', 3)"))
	require.Equal(t, [][]string{{"3", "three", "∅"}}, rows(t, c, "SELECT * FROM table_at('t', 'seq:"+seq+"') WHERE id = 3"))
	require.Equal(t, [][]string{{"2", "deux", "2.00"}}, rows(t, c, "SELECT * FROM t WHERE id = 2"))
}

// TestNotify: one notification per commit, after it is visible, none for a rollback.
func TestNotify(t *testing.T) {
	g := start(t)
	w, l := g.connect(), g.connect()
	run(t, w, "CREATE TABLE n (id int PRIMARY KEY)")
	run(t, l, "LISTEN skade_commits")
	run(t, w, "INSERT INTO n VALUES (1)")
	run(t, w, "BEGIN")
	run(t, w, "INSERT INTO n VALUES (2)")
	run(t, w, "ROLLBACK")
	run(t, w, "INSERT INTO n VALUES (3)")
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		n, err := l.WaitForNotification(ctx)
		cancel()
		require.NoError(t, err)
		require.Equal(t, "skade_commits", n.Channel)
		require.Contains(t, n.Payload, `"t":"public.n"`)
		require.Contains(t, n.Payload, `"ins":1,"del":0`)
	}
	require.Equal(t, [][]string{{"1"}, {"3"}}, rows(t, l, "SELECT id FROM n ORDER BY id"))
}

// TestSnapshotIsolation is S1: one cut per transaction plus its own writes, first committer wins.
func TestSnapshotIsolation(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE s (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO s VALUES (1, 10), (2, 20)")
	run(t, a, "BEGIN")
	require.Equal(t, [][]string{{"30"}}, rows(t, a, "SELECT sum(v) FROM s"))
	run(t, b, "UPDATE s SET v = v + 1 WHERE id = 2")
	require.Equal(t, [][]string{{"30"}}, rows(t, a, "SELECT sum(v) FROM s"))
	run(t, a, "UPDATE s SET v = 0 WHERE id = 1")
	require.Equal(t, [][]string{{"0"}, {"20"}}, rows(t, a, "SELECT v FROM s ORDER BY id"))
	run(t, a, "COMMIT") // disjoint rows: both succeed
	require.Equal(t, [][]string{{"0"}, {"21"}}, rows(t, a, "SELECT v FROM s ORDER BY id"))

	run(t, a, "BEGIN")
	run(t, a, "UPDATE s SET v = 1 WHERE id = 1")
	run(t, b, "UPDATE s SET v = 2 WHERE id = 1")
	require.Equal(t, "40001", sqlstate(t, a, "COMMIT").Code)
	require.Equal(t, byte('I'), a.PgConn().TxStatus())
	require.Equal(t, [][]string{{"2"}}, rows(t, a, "SELECT v FROM s WHERE id = 1"))
}

// TestTransactionState: the state that clients are told is the state there is.
func TestTransactionState(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE x (id int PRIMARY KEY)")
	run(t, c, "BEGIN")
	require.Equal(t, byte('T'), c.PgConn().TxStatus())
	run(t, c, "INSERT INTO x VALUES (1)")
	run(t, c, "SAVEPOINT a")
	require.Equal(t, "23505", sqlstate(t, c, "INSERT INTO x VALUES (1)").Code)
	require.Equal(t, byte('E'), c.PgConn().TxStatus())
	require.Equal(t, "25P02", sqlstate(t, c, "SELECT 1").Code)
	run(t, c, "ROLLBACK TO a")
	run(t, c, "INSERT INTO x VALUES (2)")
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"1"}, {"2"}}, rows(t, c, "SELECT id FROM x ORDER BY id"))
}

// TestNothingEscapes is S2: no statement reaches the server's files, environment or DuckDB's settings.
func TestNothingEscapes(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int)")
	for _, sql := range []string{
		"SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM read_text('/etc/passwd')",
		"SELECT * FROM '/etc/passwd'",
		`SELECT * FROM "/etc/passwd"`,
		"SELECT * FROM glob('/*')",
		"WITH x AS (SELECT * FROM read_csv('/etc/passwd')) SELECT * FROM x",
		"SELECT (SELECT count(*) FROM read_parquet('/x'))",
		"SELECT getenv('HOME')",
		"SELECT * FROM duckdb_settings()",
		"COPY t TO '/tmp/x'",
		"COPY t FROM '/etc/passwd'",
		"COPY t FROM PROGRAM 'id'",
		"COPY (SELECT * FROM read_csv('/etc/passwd')) TO STDOUT",
		"ATTACH 'x.db'",
		"INSTALL httpfs",
		"LOAD httpfs",
		"PRAGMA database_list",
		"EXPLAIN SELECT * FROM read_csv('/etc/passwd')",
		"PREPARE p AS SELECT * FROM read_csv('/etc/passwd')",
		"CREATE VIEW v AS SELECT * FROM read_csv('/etc/passwd')",
		"CREATE TABLE u AS SELECT * FROM read_csv('/etc/passwd')",
		"INSERT INTO t SELECT 1 FROM read_csv('/etc/passwd')",
		"SELECT skade_rel('x')",
		"SELECT * FROM skade_rel('x')",
	} {
		pe := sqlstate(t, c, sql)
		require.Contains(t, []string{"42601", "42883", "42P01", "0A000", "42501", "42704"}, pe.Code, "%s: %s", sql, pe.Message)
	}
}

// TestRowLimits: an Execute with a row limit suspends the portal, and the next goes on (fetchSize).
func TestRowLimits(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "BEGIN")
	run(t, c, "DECLARE c CURSOR FOR SELECT n FROM generate_series(1, 5000) n")
	total := 0
	for {
		n := len(rows(t, c, "FETCH 700 FROM c"))
		total += n
		if n < 700 {
			break
		}
	}
	require.Equal(t, 5000, total)
	run(t, c, "COMMIT")
}

// TestCopy: rows go in and come out as they were.
func TestCopy(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE c (id int PRIMARY KEY, a text, b timestamptz, d numeric(8,3))")
	var buf []byte
	for i := range 1000 {
		buf = fmt.Appendf(buf, "%d,\"row, \"\"%d\"\"\n\",2026-01-01 00:00:%02d+00,%d.125\n", i, i, i%60, i)
	}
	tag, err := c.PgConn().CopyFrom(context.Background(), newReader(buf), "COPY c FROM STDIN WITH (FORMAT csv)")
	require.NoError(t, err)
	require.Equal(t, "COPY 1000", tag.String())
	require.Equal(t, [][]string{{"1000", "499500", "999.125"}}, rows(t, c, "SELECT count(*), sum(id), max(d) FROM c"))
	bad := append([]byte("2000,x,2026-01-01,1\n"), []byte("2001,x,never,1\n")...)
	_, err = c.PgConn().CopyFrom(context.Background(), newReader(bad), "COPY c FROM STDIN WITH (FORMAT csv)")
	require.Error(t, err)
	require.Equal(t, [][]string{{"1000"}}, rows(t, c, "SELECT count(*) FROM c"))
}

// TestCursorWithHold: it outlives its transaction and shows the rows of its snapshot.
func TestCursorWithHold(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE h (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO h SELECT n FROM generate_series(1, 5000) n")
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO h VALUES (5001)")
	run(t, c, "DECLARE keep CURSOR WITH HOLD FOR SELECT id FROM h ORDER BY id")
	require.Len(t, rows(t, c, "FETCH 10 FROM keep"), 10)
	run(t, c, "COMMIT")
	run(t, c, "DELETE FROM h")
	require.Equal(t, [][]string{{"11"}, {"12"}}, rows(t, c, "FETCH 2 FROM keep"))
	require.Len(t, rows(t, c, "FETCH ALL FROM keep"), 5001-12)
	run(t, c, "CLOSE keep")
	require.Equal(t, "34000", sqlstate(t, c, "FETCH 1 FROM keep").Code)
}

// TestIcebergGoReadsTheSameRows: the files alone, read by iceberg-go, are what SQL shows.
func TestIcebergGoReadsTheSameRows(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			g := start(t)
			c := g.connect()
			run(t, c, fmt.Sprintf("CREATE TABLE f (id bigint PRIMARY KEY, v text) WITH (format_version = %d)", version))
			run(t, c, "INSERT INTO f SELECT n, 'v' || n FROM generate_series(1, 1000) n")
			run(t, c, "DELETE FROM f WHERE id % 10 = 3")
			run(t, c, "UPDATE f SET v = 'changed' WHERE id % 10 = 4")
			run(t, c, "INSERT INTO f VALUES (5, 'five'), (2000, 'new') ON CONFLICT (id) DO UPDATE SET v = excluded.v")
			var location string
			require.NoError(t, c.QueryRow(context.Background(), "SELECT metadata_location FROM skade.commits WHERE table_name = 'public.f' ORDER BY commit_seq DESC LIMIT 1").Scan(&location))
			want := map[int64]string{}
			for _, r := range rows(t, c, "SELECT id, v FROM f") {
				id, err := strconv.ParseInt(r[0], 10, 64)
				require.NoError(t, err)
				want[id] = r[1]
			}
			require.Len(t, want, 901)
			require.Equal(t, want, scanWithIcebergGo(t, location))
		})
	}
}

func scanWithIcebergGo(t *testing.T, location string) map[int64]string {
	t.Helper()
	ctx := context.Background()
	tbl, err := table.NewFromLocation(ctx, table.Identifier{"public", "f"}, location, iceio.LoadFSFunc(nil, location), nil)
	require.NoError(t, err)
	_, batches, err := tbl.Scan().ToArrowRecords(ctx)
	require.NoError(t, err)
	got := map[int64]string{}
	for rec, err := range batches {
		require.NoError(t, err)
		ids, vs := rec.Column(0).(*array.Int64), rec.Column(1).(*array.String)
		for i := range int(rec.NumRows()) {
			got[ids.Value(i)] = vs.Value(i)
		}
		rec.Release()
	}
	return got
}

// TestIdleTimeouts: a silent client is ended with PostgreSQL's codes.
func TestIdleTimeouts(t *testing.T) {
	g := start(t)
	for _, c := range []struct{ setting, before, code string }{
		{"idle_session_timeout", "SELECT 1", "57P05"},
		{"idle_in_transaction_session_timeout", "BEGIN", "25P03"},
	} {
		conn := g.connect(c.setting, "50ms")
		run(t, conn, c.before)
		// The server speaks first: the message waits in the socket until the next read.
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		_, err := conn.WaitForNotification(ctx)
		cancel()
		var pe *pgconn.PgError
		require.ErrorAs(t, err, &pe, c.setting)
		require.Equal(t, c.code, pe.Code)
	}
}

// TestTableChannel: a table's channel tells its commits only, and keeps its listeners through a rename.
func TestTableChannel(t *testing.T) {
	g := start(t)
	w, l := g.connect(), g.connect()
	run(t, w, "CREATE TABLE a (id int PRIMARY KEY)")
	run(t, w, "CREATE TABLE b (id int PRIMARY KEY)")
	channel := rows(t, l, "SELECT commit_channel('a')")[0][0]
	require.LessOrEqual(t, len(channel), 63)
	run(t, l, "LISTEN "+channel)
	run(t, w, "INSERT INTO b VALUES (1)")
	run(t, w, "INSERT INTO a VALUES (1)")
	run(t, w, "ALTER TABLE a RENAME TO c")
	run(t, w, "INSERT INTO c VALUES (2)")
	for _, want := range []string{`"t":"public.a"`, `"op":"rename"`, `"t":"public.c"`} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		n, err := l.WaitForNotification(ctx)
		cancel()
		require.NoError(t, err)
		require.Equal(t, channel, n.Channel)
		require.Contains(t, n.Payload, want)
	}
	// A user's own channel, at commit only.
	run(t, l, "LISTEN mine")
	run(t, w, "BEGIN")
	run(t, w, "NOTIFY mine, 'one'")
	run(t, w, "SELECT pg_notify('mine', 'two')")
	run(t, w, "COMMIT")
	for _, want := range []string{"one", "two"} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		n, err := l.WaitForNotification(ctx)
		cancel()
		require.NoError(t, err)
		require.Equal(t, want, n.Payload)
		require.Equal(t, w.PgConn().PID(), n.PID)
	}
	require.Equal(t, "42501", sqlstate(t, w, "NOTIFY skade_commits, 'forged'").Code)
}

// The error of a worker thread is the client's, also when rows were being written while it came. Answers are PostgreSQL's.
func TestErrorsOfWorkers(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE keyed (id bigint PRIMARY KEY, t text)")
	run(t, c, "CREATE TABLE plain (id bigint, t text)")
	for _, table := range []string{"keyed", "plain"} {
		e := sqlstate(t, c, "INSERT INTO "+table+" SELECT (i * 7919) % 10000019, 'text ' || i FROM generate_series(1, 1000000) i")
		require.Equal(t, "22003", e.Code, table)
		require.Equal(t, "integer out of range", e.Message, table)
		require.Equal(t, "0", one(t, c, "SELECT count(*) FROM "+table))
	}
	require.Equal(t, "22012", sqlstate(t, c, "INSERT INTO keyed SELECT i, (1 / (i - 900000))::text FROM generate_series(1, 1000000) i").Code)
	require.Equal(t, "22003", sqlstate(t, c, "CREATE TEMP TABLE w AS SELECT (i * 7919) % 10000019 FROM generate_series(1, 1000000) i").Code)
}
