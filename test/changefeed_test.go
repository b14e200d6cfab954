package test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

// consumeOne takes a feed's next window to the table copied, and acknowledges it in the same transaction; crash tells whether the consumer
// dies at a step. It reports whether there was a window.
func consumeOne(c *pgx.Conn, shard, shards int, crash func() bool) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var window, from, to int64
	var token string
	var tables []string
	err := c.QueryRow(ctx, "SELECT window_id, from_seq, to_seq, lease_token, tables FROM changefeed_window('f', 7, shard => $1)", shard).
		Scan(&window, &from, &to, &token, &tables)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if crash() {
		return false, c.Close(ctx)
	}
	tx, err := c.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	for _, t := range tables {
		_, err := tx.Exec(ctx, fmt.Sprintf(`INSERT INTO copied SELECT '%s', id, n, _change_type, _commit_seq, _change_row
			FROM table_changes('%s', $1, $2, shard => $3)`, t, t), fmt.Sprintf("seq:%d", from), fmt.Sprintf("seq:%d", to), fmt.Sprintf("%d/%d", shard, shards))
		if err != nil {
			return false, err
		}
	}
	if crash() {
		return false, c.Close(ctx)
	}
	if _, err := tx.Exec(ctx, "SELECT changefeed_ack('f', $1, $2)", window, token); err != nil {
		return false, err
	}
	if crash() {
		return false, c.Close(ctx)
	}
	return true, tx.Commit(ctx)
}

// TestChangefeedExactlyOnce: consumers of both shards die at random at every step of their transaction, two of them work on the same shard,
// and the server is started anew in between; in the end the copy holds every change of both tables once.
func TestChangefeedExactlyOnce(t *testing.T) {
	const shards, writes = 2, 60
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE a (id int PRIMARY KEY, n int)")
	run(t, c, "CREATE TABLE b (id int, n int)")
	run(t, c, "CREATE TABLE copied (tbl text, id int, n int, op text, seq int8, at int8)")
	run(t, c, "SELECT changefeed_create('f', ARRAY['a', 'b'], shards => $1)", shards)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var produced atomic.Bool
	work := func(writer int) error {
		r := rand.New(rand.NewPCG(seed, uint64(writer)))
		c := g.connect()
		for n := range writes / 2 {
			if err := execute(c, "INSERT INTO a VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = excluded.n", r.IntN(10), n); err != nil {
				return err
			}
			if err := execute(c, "INSERT INTO b VALUES ($1, $2)", r.IntN(10), n); err != nil {
				return err
			}
		}
		return nil
	}
	consume := func(consumer int) error {
		r := rand.New(rand.NewPCG(seed, uint64(100+consumer)))
		crash := func() bool { return r.IntN(6) == 0 }
		for {
			c := g.connect()
			for !c.IsClosed() {
				last := produced.Load()
				did, err := consumeOne(c, consumer%shards, shards, crash)
				var pe *pgconn.PgError
				switch {
				case errors.As(err, &pe) && (pe.Code == "40001" || pe.Code == "55006"): // the other one of the shard
					time.Sleep(time.Millisecond)
				case err != nil:
					return err
				case !did && last && !c.IsClosed():
					return nil
				}
			}
		}
	}
	codes := together(t, g.connections(1+shards+1), func(i int, _ *pgx.Conn) error {
		if i == 0 {
			defer produced.Store(true)
			return work(i)
		}
		return consume(i)
	})
	require.Equal(t, map[string]int{"": shards + 2}, codes)
	for _, tbl := range []string{"a", "b"} {
		want := fmt.Sprintf("SELECT 'public.%s' AS tbl, id, n, _change_type AS op, _commit_seq AS seq, _change_row AS at FROM table_changes('%s', NULL)", tbl, tbl)
		got := fmt.Sprintf("SELECT tbl, id, n, op, seq, at FROM copied WHERE tbl = 'public.%s'", tbl)
		require.Equal(t, rows(t, c, want+" ORDER BY 5, 6"), rows(t, c, got+" ORDER BY 5, 6"), "each change once")
	}
	require.NotEqual(t, "0", one(t, c, "SELECT count(*) FROM copied WHERE op = 'UPDATE_AFTER'"))
	// A sum over windows that were acknowledged is all there was: nothing is left.
	require.Empty(t, rows(t, c, "SELECT * FROM changefeed_window('f')"))
	g.close()
	g.open()
	require.Empty(t, rows(t, g.connect(), "SELECT * FROM changefeed_window('f', shard => 1)"))
}

func TestChangefeedLeases(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE s (id int PRIMARY KEY)")
	run(t, a, "CREATE TABLE other (id int)")
	require.Equal(t, one(t, a, "SELECT current_commit_seq()"), one(t, a, "SELECT changefeed_create('f', ARRAY['s'])"))
	require.Equal(t, "42710", sqlstate(t, a, "SELECT changefeed_create('f')").Code)
	require.Empty(t, rows(t, a, "SELECT * FROM changefeed_window('f')"))
	run(t, a, "INSERT INTO other VALUES (1)")
	require.Empty(t, rows(t, a, "SELECT * FROM changefeed_window('f')"), "another table")
	run(t, a, "INSERT INTO s VALUES (1)")
	const window = "SELECT window_id, from_seq, to_seq, tables, lease_token FROM changefeed_window('f')"
	w := rows(t, a, window)
	require.Len(t, w, 1)
	require.Equal(t, "{public.s}", w[0][3])
	run(t, a, "INSERT INTO s VALUES (2)")
	require.Equal(t, w, rows(t, a, window), "the window in hand")
	require.Equal(t, "55006", sqlstate(t, b, window).Code)
	require.Equal(t, [][]string{{"f", "0", "leased", "1"}}, rows(t, b, "SELECT name, shard, state, window_id FROM skade.changefeeds"))

	// An acknowledgement is part of its transaction, and of its savepoint.
	ack := fmt.Sprintf("SELECT changefeed_ack('f', %s, '%s')", w[0][0], w[0][4])
	position := func() string { return one(t, b, "SELECT position FROM skade.changefeeds") }
	run(t, a, "BEGIN")
	run(t, a, ack)
	run(t, a, "ROLLBACK")
	run(t, a, "BEGIN")
	run(t, a, "SAVEPOINT x")
	run(t, a, ack)
	run(t, a, "ROLLBACK TO x")
	run(t, a, "COMMIT")
	require.Equal(t, w[0][1], position())
	seq := one(t, a, "SELECT current_commit_seq()")
	require.Equal(t, w[0][2], one(t, a, ack))
	require.Equal(t, w[0][2], position())
	require.Equal(t, seq, one(t, a, "SELECT current_commit_seq()"), "without writes it takes no seq")
	require.Equal(t, "40001", sqlstate(t, a, ack).Code, "once")

	// Of two transactions that acknowledge one window, one commits.
	w = rows(t, a, window)
	ack = fmt.Sprintf("SELECT changefeed_ack('f', %s, '%s')", w[0][0], w[0][4])
	for _, c := range []*pgx.Conn{a, b} {
		run(t, c, "BEGIN")
		run(t, c, "INSERT INTO other VALUES (2)")
		run(t, c, ack)
	}
	run(t, b, "COMMIT")
	require.Equal(t, "40001", sqlstate(t, a, "COMMIT").Code)
	require.Equal(t, "2", one(t, a, "SELECT count(*) FROM other"), "the loser's row is not there")

	// A session that ends lets others in; what it had in hand is fenced from then on.
	run(t, b, "INSERT INTO s VALUES (3)")
	w = rows(t, a, window)
	require.NoError(t, a.Close(context.Background()))
	require.Eventually(t, func() bool { return one(t, b, "SELECT state FROM skade.changefeeds") == "idle" }, 30*time.Second, 10*time.Millisecond)
	w2 := rows(t, b, window)
	require.Equal(t, w[0][1:3], w2[0][1:3], "the same commits")
	require.NotEqual(t, w[0][4], w2[0][4])
	require.Equal(t, "40001", sqlstate(t, b, fmt.Sprintf("SELECT changefeed_ack('f', %s, '%s')", w[0][0], w[0][4])).Code)

	// Seek takes back what is in hand, and reads again.
	require.Equal(t, "0", one(t, b, "SELECT changefeed_seek('f', 'earliest')"))
	require.Equal(t, "40001", sqlstate(t, b, fmt.Sprintf("SELECT changefeed_ack('f', %s, '%s')", w2[0][0], w2[0][4])).Code)
	w = rows(t, b, window)
	require.Equal(t, "0", w[0][1])
	require.Equal(t, "3", one(t, b, fmt.Sprintf("SELECT count(*) FROM table_changes('s', 'seq:%s', 'seq:%s')", w[0][1], w[0][2])))

	// A name survives a rename; a dropped table is not told any more.
	run(t, b, `ALTER TABLE s RENAME TO "S t"`)
	run(t, b, "SELECT changefeed_seek('f', 'earliest')")
	require.Equal(t, `{"public.\"S t\""}`, rows(t, b, window)[0][3])
	run(t, b, `DROP TABLE "S t"`)
	run(t, b, "SELECT changefeed_seek('f', 'seq:0')")
	require.Equal(t, "{}", rows(t, b, window)[0][3])

	for sql, code := range map[string]string{
		"SELECT * FROM changefeed_window('none')":                          "42704",
		"SELECT * FROM changefeed_window('f', shard => 1)":                 "42704",
		"SELECT * FROM changefeed_window('f', 0)":                          "22023",
		"SELECT * FROM changefeed_window('f', lease => '0.1 s')":           "22023",
		"SELECT * FROM changefeed_window('f', max_wait => '-1 s')":         "22023",
		"SELECT * FROM changefeed_window(NULL)":                            "22023",
		"SELECT changefeed_ack('none', 1, 'x')":                            "42704",
		"SELECT changefeed_ack('f', 99, 'x')":                              "40001",
		"SELECT changefeed_ack('f', 'x', 'x')":                             "22P02",
		"SELECT changefeed_seek('f', 'seq:99999')":                         "42704",
		"SELECT changefeed_seek('f', 'tag:x')":                             "22023",
		"SELECT changefeed_seek('f', 'seq:1/0/1')":                         "22023",
		"SELECT changefeed_create('g', ARRAY['none'])":                     "42P01",
		"SELECT changefeed_create('g', ARRAY[]::text[])":                   "22023",
		"SELECT changefeed_create('g', shards => 0)":                       "22023",
		"SELECT changefeed_create('g', max_pin => '-1 day')":               "22023",
		"SELECT changefeed_create('')":                                     "42602",
		"SELECT changefeed_drop('none')":                                   "42704",
		"SELECT wait_for_commit(-1, '1 s')":                                "22023",
		"BEGIN READ ONLY; SELECT changefeed_create('g')":                   "25006",
		"ROLLBACK; BEGIN READ ONLY; SELECT * FROM changefeed_window('f')":  "25006",
		"ROLLBACK; BEGIN READ ONLY; SELECT changefeed_drop('f'); ROLLBACK": "25006",
	} {
		_, err := b.PgConn().Exec(context.Background(), sql).ReadAll()
		var pe *pgconn.PgError
		require.ErrorAs(t, err, &pe, sql)
		require.Equal(t, code, pe.Code, sql)
		_, _ = b.Exec(context.Background(), "ROLLBACK")
	}
}

// max_wait and wait_for_commit wake for a commit of another session, end in time, and can be cancelled.
func TestWaitForCommits(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE s (id int)")
	run(t, a, "SELECT changefeed_create('f')")
	done := make(chan error, 1)
	go func() {
		var to int64
		done <- b.QueryRow(context.Background(), "SELECT to_seq FROM changefeed_window('f', max_wait => '1 min')").Scan(&to)
	}()
	waits := func() bool {
		return one(t, a, "SELECT state FROM pg_stat_activity WHERE pid <> pg_backend_pid()") == "active"
	}
	require.Eventually(t, waits, 30*time.Second, 5*time.Millisecond)
	run(t, a, "INSERT INTO s VALUES (1)")
	require.NoError(t, <-done)
	seq := one(t, a, "SELECT current_commit_seq()")
	require.Equal(t, seq, one(t, b, "SELECT wait_for_commit("+seq+")"))
	require.Equal(t, "∅", one(t, b, "SELECT wait_for_commit("+seq+" + 1, '10 ms')"))
	go func() {
		var now int64
		err := b.QueryRow(context.Background(), "SELECT wait_for_commit("+seq+" + 1, '1 min')").Scan(&now)
		if at, _ := strconv.ParseInt(seq, 10, 64); err == nil && now <= at {
			err = fmt.Errorf("woken at %d", now)
		}
		done <- err
	}()
	require.Eventually(t, waits, 30*time.Second, 5*time.Millisecond)
	run(t, a, "INSERT INTO s VALUES (2)")
	require.NoError(t, <-done)

	run(t, b, "SET statement_timeout = '50ms'")
	require.Equal(t, "57014", sqlstate(t, b, "SELECT wait_for_commit(99999, '1 min')").Code)
	run(t, b, "SELECT changefeed_create('quiet', ARRAY['s'])")
	require.Equal(t, "57014", sqlstate(t, b, "SELECT * FROM changefeed_window('quiet', max_wait => '1 min')").Code)

	// A transaction with one cut gets no window that it could not read.
	run(t, b, "RESET statement_timeout")
	run(t, b, "BEGIN")
	one(t, b, "SELECT count(*) FROM s")
	run(t, a, "INSERT INTO s VALUES (3)")
	require.Empty(t, rows(t, b, "SELECT * FROM changefeed_window('quiet')"))
	run(t, b, "COMMIT")
	require.Len(t, rows(t, b, "SELECT * FROM changefeed_window('quiet')"), 1)
}

// What a feed has not acknowledged stays for max_pin, however short the retention; then the feed is lost, and says so.
func TestChangefeedPins(t *testing.T) {
	var ahead atomic.Int64 // of the catalog's clock
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data")}
	g.configure = func(cfg *cli.Config) {
		cfg.RetainLog, cfg.MaintenanceInterval = time.Hour, 20*time.Millisecond
		cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	g.open()
	t.Cleanup(g.close)
	c := g.connect()
	run(t, c, `CREATE TABLE s (id int PRIMARY KEY, n int) WITH ("history.expire.min-snapshots-to-keep" = '1', "history.expire.max-snapshot-age-ms" = '60000')`)
	run(t, c, "SELECT changefeed_create('patient', ARRAY['s'], max_pin => '1 day')")
	run(t, c, "SELECT changefeed_create('hasty', max_pin => '1 hour')")
	for i := range 5 {
		run(t, c, "INSERT INTO s VALUES ($1, 0)", i)
		run(t, c, "UPDATE s SET n = n + 1")
	}
	ahead.Store(int64(3 * time.Hour))
	run(t, c, "VACUUM s")
	state := func(name string) string {
		return one(t, c, "SELECT state FROM skade.changefeeds WHERE name = '"+name+"'")
	}
	require.Equal(t, "idle", state("hasty"), "what it needs is there as long as another feed holds it")
	w := rows(t, c, "SELECT from_seq, to_seq, window_id, lease_token FROM changefeed_window('patient')")[0]
	changes := fmt.Sprintf("SELECT count(*) FROM table_changes('s', 'seq:%s', 'seq:%s')", w[0], w[1])
	require.Equal(t, "35", one(t, c, changes), "5 inserts and 15 pairs")
	run(t, c, "VACUUM s")
	require.Equal(t, "35", one(t, c, changes))

	// Once it is acknowledged everything may go: snapshots and commits.
	run(t, c, fmt.Sprintf("SELECT changefeed_ack('patient', %s, '%s')", w[2], w[3]))
	run(t, c, "VACUUM s")
	require.Equal(t, "72000", sqlstate(t, c, changes).Code)
	require.Equal(t, "lost", state("hasty"))
	e := sqlstate(t, c, "SELECT * FROM changefeed_window('hasty')")
	require.Equal(t, "55000", e.Code)
	require.Contains(t, e.Hint, "changefeed_seek")
	require.Eventually(t, func() bool { return one(t, c, "SELECT min(commit_seq) FROM skade.commits") == w[1] }, 30*time.Second, 10*time.Millisecond,
		"the log begins where the feed stands")
	e = sqlstate(t, c, "SELECT * FROM commits_since(1)")
	require.Equal(t, "72000", e.Code)
	require.NotEmpty(t, e.Hint)
	require.Equal(t, "72000", sqlstate(t, c, "SELECT changefeed_create('late', start => 'seq:1')").Code)
	require.Equal(t, "72000", sqlstate(t, c, "SELECT changefeed_seek('hasty', 'seq:1')").Code)

	// A lost feed lives again.
	at := one(t, c, "SELECT changefeed_seek('hasty', 'earliest')")
	require.Equal(t, "idle", state("hasty"))
	run(t, c, "INSERT INTO s VALUES (9, 9)")
	w = rows(t, c, "SELECT from_seq, to_seq FROM changefeed_window('hasty')")[0]
	require.Equal(t, at, w[0])
	require.Equal(t, "1", one(t, c, fmt.Sprintf("SELECT count(*) FROM table_changes('s', 'seq:%s', 'seq:%s')", w[0], w[1])))
	require.Equal(t, "6", one(t, c, "SELECT count(*) FROM s WHERE n > 0"))
}
