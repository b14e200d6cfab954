package test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// connections opens n connections at once.
func (g *gateway) connections(n int) []*pgx.Conn {
	g.t.Helper()
	out := make([]*pgx.Conn, n)
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { out[i] = g.connect() })
	}
	wg.Wait()
	return out
}

// together runs f once a connection, all at the same time, and returns the SQLSTATEs ("" is success).
var _ = time.Now

func together(t *testing.T, conns []*pgx.Conn, f func(i int, c *pgx.Conn) error) map[string]int {
	t.Helper()
	var mu sync.Mutex
	codes := map[string]int{}
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() {
			code := ""
			if err := f(i, c); err != nil {
				var pe *pgconn.PgError
				if code = err.Error(); errors.As(err, &pe) {
					code = pe.Code
				}
			}
			mu.Lock()
			codes[code]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return codes
}

func execute(c *pgx.Conn, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	_, err := c.Exec(ctx, sql, args...)
	return err
}

// TestHundredSessions: disjoint rows never conflict; of one key exactly one insert wins; a counter loses no update, because an
// autocommit statement that loses a row runs again.
func TestHundredSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	g := start(t)
	a := g.connect()
	run(t, a, "CREATE TABLE h (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO h VALUES (0, 0)")
	conns := g.connections(99)
	n := len(conns)
	require.Equal(t, map[string]int{"": n}, together(t, conns, func(i int, c *pgx.Conn) error {
		return execute(c, "INSERT INTO h VALUES ($1, 0)", 1000+i)
	}))
	require.Equal(t, map[string]int{"": n}, together(t, conns, func(i int, c *pgx.Conn) error {
		return execute(c, "UPDATE h SET v = v + 1 WHERE id = $1", 1000+i)
	}))
	require.Equal(t, [][]string{{"100", "99"}}, rows(t, a, "SELECT count(*), sum(v) FROM h"))

	codes := together(t, conns, func(_ int, c *pgx.Conn) error { return execute(c, "INSERT INTO h VALUES (1, 7)") })
	require.Equal(t, map[string]int{"": 1, "23505": n - 1}, codes)

	conns = conns[:30] // one row is a queue
	n = len(conns)
	require.Equal(t, map[string]int{"": n}, together(t, conns, func(i int, c *pgx.Conn) error {
		if i%2 == 0 { // the simple protocol
			return c.PgConn().Exec(context.Background(), "UPDATE h SET v = v + 1 WHERE id = 0").Close()
		}
		return execute(c, "UPDATE h SET v = v + 1 WHERE id = 0")
	}))
	require.Equal(t, [][]string{{fmt.Sprint(n)}}, rows(t, a, "SELECT v FROM h WHERE id = 0"))

	require.Equal(t, map[string]int{"": n}, together(t, conns, func(_ int, c *pgx.Conn) error {
		return execute(c, "INSERT INTO h VALUES (2, 1) ON CONFLICT (id) DO UPDATE SET v = h.v + 1")
	}))
	require.Equal(t, [][]string{{fmt.Sprint(n)}}, rows(t, a, "SELECT v FROM h WHERE id = 2"))

	// In transactions the client repeats: one winner a round, the others 40001, nothing half done.
	codes = together(t, conns[:20], func(i int, c *pgx.Conn) error {
		return pgx.BeginFunc(context.Background(), c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(context.Background(), "INSERT INTO h VALUES ($1, 0)", 5000+i); err != nil {
				return err
			}
			_, err := tx.Exec(context.Background(), "UPDATE h SET v = v + 1 WHERE id = 1")
			return err
		})
	})
	won := codes[""]
	require.Equal(t, 20, won+codes["40001"], codes)
	require.GreaterOrEqual(t, won, 1)
	require.Equal(t, [][]string{{fmt.Sprint(7 + won), fmt.Sprint(won)}},
		rows(t, a, "SELECT (SELECT v FROM h WHERE id = 1), (SELECT count(*) FROM h WHERE id >= 5000)"))

	// One row deleted by all: gone once.
	deleted := 0
	var mu sync.Mutex
	codes = together(t, conns, func(_ int, c *pgx.Conn) error {
		res, err := c.PgConn().Exec(context.Background(), "DELETE FROM h WHERE id = 2").ReadAll()
		if err == nil && res[0].CommandTag.RowsAffected() == 1 {
			mu.Lock()
			deleted++
			mu.Unlock()
		}
		return err
	})
	require.Equal(t, map[string]int{"": n}, codes)
	require.Equal(t, 1, deleted)
}

// TestTooManyConnections: one more is refused with 53300, as PostgreSQL does, and a free place is usable again.
func TestTooManyConnections(t *testing.T) {
	g := start(t)
	conns := g.connections(100)
	cfg, err := pgx.ParseConfig(g.srv.URL())
	require.NoError(t, err)
	_, err = pgx.ConnectConfig(context.Background(), cfg)
	var pe *pgconn.PgError
	require.ErrorAs(t, err, &pe)
	require.Equal(t, "53300", pe.Code)
	require.NoError(t, conns[0].Close(context.Background()))
	require.Eventually(t, func() bool {
		c, err := pgx.ConnectConfig(context.Background(), cfg)
		if err != nil {
			return false
		}
		return c.Close(context.Background()) == nil
	}, 30*time.Second, 20*time.Millisecond)
}

// TestCreateDropLoop: names come and go under readers and writers; an open cursor keeps its rows.
func TestCreateDropLoop(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	for i := range 30 {
		run(t, a, fmt.Sprintf("CREATE TABLE d (id int PRIMARY KEY, v text DEFAULT 'x%d')", i))
		run(t, a, "INSERT INTO d (id) SELECT generate_series(1, 10)")
		require.Equal(t, [][]string{{"10", fmt.Sprintf("x%d", i)}}, rows(t, b, "SELECT count(*), min(v) FROM d"))
		if i == 7 {
			run(t, b, "BEGIN")
			run(t, b, "DECLARE c CURSOR FOR SELECT id FROM d ORDER BY id")
			require.Len(t, rows(t, b, "FETCH 3 FROM c"), 3)
		}
		run(t, a, "DROP TABLE d")
		if i == 7 {
			require.Len(t, rows(t, b, "FETCH ALL FROM c"), 7)
			run(t, b, "COMMIT")
		}
		require.Equal(t, "42P01", sqlstate(t, b, "SELECT * FROM d").Code)
	}
	require.Equal(t, "42P01", sqlstate(t, a, "DROP TABLE d").Code)
	run(t, a, "DROP TABLE IF EXISTS d")

	codes := together(t, g.connections(16), func(_ int, c *pgx.Conn) error { return execute(c, "CREATE TABLE same (id int)") })
	require.Equal(t, 1, codes[""], codes)
	require.Equal(t, 16, codes[""]+codes["42P07"], codes)
	codes = together(t, g.connections(16), func(_ int, c *pgx.Conn) error { return execute(c, "DROP TABLE IF EXISTS same") })
	require.Equal(t, 16, codes[""], codes)
}

// TestRenameUnderReader: the reader's cut keeps the old name.
func TestRenameUnderReader(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE old_name (id int PRIMARY KEY)")
	run(t, a, "INSERT INTO old_name VALUES (1), (2)")
	run(t, b, "BEGIN")
	require.Equal(t, [][]string{{"2"}}, rows(t, b, "SELECT count(*) FROM old_name"))
	run(t, a, "ALTER TABLE old_name RENAME TO new_name")
	require.Equal(t, [][]string{{"2"}}, rows(t, b, "SELECT count(*) FROM old_name"))
	require.Equal(t, "42P01", sqlstate(t, a, "SELECT * FROM old_name").Code)
	run(t, b, "COMMIT")
	require.Equal(t, [][]string{{"2"}}, rows(t, b, "SELECT count(*) FROM new_name"))
	require.Equal(t, "42P01", sqlstate(t, b, "SELECT count(*) FROM old_name").Code)
}

// TestDDLRollback: what a transaction created, dropped and renamed is as before after ROLLBACK, and after ROLLBACK TO.
func TestDDLRollback(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE keep (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO keep VALUES (1)")
	run(t, c, "BEGIN")
	run(t, c, "CREATE SCHEMA s")
	run(t, c, "CREATE TABLE s.t (a int)")
	run(t, c, "INSERT INTO s.t VALUES (1), (2)")
	run(t, c, "CREATE VIEW v AS SELECT * FROM s.t")
	require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT count(*) FROM v"))
	run(t, c, "DROP TABLE keep")
	require.Equal(t, [][]string{{"1"}}, rows(t, other, "SELECT count(*) FROM keep"))
	require.Equal(t, "42P01", sqlstate(t, other, "SELECT * FROM s.t").Code)
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM keep").Code)
	require.Equal(t, "25P02", sqlstate(t, c, "SELECT 1").Code)
	require.Equal(t, "ROLLBACK", run(t, c, "COMMIT").String())
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM keep"))
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM s.t").Code)
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM v").Code)

	run(t, c, "BEGIN")
	run(t, c, "CREATE TABLE one (a int PRIMARY KEY)")
	run(t, c, "INSERT INTO one VALUES (1)")
	run(t, c, "SAVEPOINT a")
	run(t, c, "INSERT INTO one VALUES (2)")
	run(t, c, "CREATE TABLE two (a int)")
	run(t, c, "ALTER TABLE keep RENAME TO kept")
	run(t, c, "SAVEPOINT b")
	run(t, c, "TRUNCATE one")
	require.Equal(t, "22012", sqlstate(t, c, "INSERT INTO two SELECT 1 / 0").Code)
	run(t, c, "ROLLBACK TO b")
	require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT count(*) FROM one"))
	run(t, c, "ROLLBACK TO a")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM one"))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM keep"))
	require.Equal(t, "3B001", sqlstate(t, c, "RELEASE b").Code)
	run(t, c, "ROLLBACK TO a")
	run(t, c, "RELEASE a")
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"1"}}, rows(t, other, "SELECT a FROM one"))
	require.Equal(t, "42P01", sqlstate(t, other, "SELECT * FROM two").Code)
}
