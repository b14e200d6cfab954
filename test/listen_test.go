package test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// ear is a session that listens.
type ear struct {
	t *testing.T
	*pgx.Conn
}

func (g *gateway) ear(channels ...string) *ear {
	g.t.Helper()
	e := &ear{g.t.(*testing.T), g.connect()}
	for _, c := range channels {
		run(g.t, e.Conn, "LISTEN "+pgx.Identifier{c}.Sanitize())
	}
	return e
}

// hear waits for the next notification.
func (e *ear) hear() *pgconn.Notification {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n, err := e.WaitForNotification(ctx)
	require.NoError(e.t, err)
	return n
}

// told is a commit's payload as clients read it.
type told struct {
	V      int    `json:"v"`
	Seq    string `json:"seq"`
	TS     string `json:"ts"`
	Tables []struct {
		T    string `json:"t"`
		Snap string `json:"snap"`
		Op   string `json:"op"`
		Ins  int64  `json:"ins"`
		Del  int64  `json:"del"`
	} `json:"tables"`
	More   bool   `json:"more"`
	Lagged bool   `json:"lagged"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// commit waits for the next notification, which is of a commit.
func (e *ear) commit() told {
	e.t.Helper()
	n := e.hear()
	require.Less(e.t, len(n.Payload), 8000)
	var p told
	d := json.NewDecoder(strings.NewReader(n.Payload))
	d.DisallowUnknownFields()
	require.NoError(e.t, d.Decode(&p), n.Payload)
	require.Zero(e.t, n.PID, "the server itself notifies")
	return p
}

// brief is "table op" of every table.
func (p told) brief() string {
	var out []string
	for _, t := range p.Tables {
		out = append(out, t.T+" "+t.Op)
	}
	return strings.Join(out, ", ")
}

// TestNotifyRules: what a session hears of its own notifications. Expected are PostgreSQL 15's answers to the same statements.
func TestNotifyRules(t *testing.T) {
	g := start(t)
	cfg, err := pgconn.ParseConfig(g.srv.URL())
	require.NoError(t, err)
	var heard []string
	cfg.OnNotification = func(c *pgconn.PgConn, n *pgconn.Notification) {
		require.Equal(t, c.PID(), n.PID)
		if len(n.Payload) > 100 {
			n.Payload = strconv.Itoa(len(n.Payload))
		}
		heard = append(heard, n.Channel+":"+n.Payload)
	}
	c, err := pgconn.ConnectConfig(context.Background(), cfg)
	require.NoError(t, err)
	defer c.Close(context.Background())
	long := strings.Repeat("c", 70)
	for _, s := range []struct {
		sql   string
		code  string
		heard []string
	}{
		{sql: "LISTEN a; NOTIFY a", heard: []string{"a:"}},
		{sql: "BEGIN; NOTIFY a,'1'; NOTIFY a,'2'; NOTIFY a,'1'; SAVEPOINT s; NOTIFY a,'3'; NOTIFY a,'2'; ROLLBACK TO s; NOTIFY a,'4'; COMMIT",
			heard: []string{"a:1", "a:2", "a:4"}},
		{sql: "BEGIN; SAVEPOINT s; NOTIFY a,'5'; RELEASE s; NOTIFY a,'5'; COMMIT", heard: []string{"a:5"}},
		{sql: "BEGIN; NOTIFY a,'gone'; ROLLBACK"},
		{sql: "NOTIFY a, 'm1'; NOTIFY a, 'm2'; NOTIFY a, 'm1'", heard: []string{"a:m1", "a:m2"}},
		{sql: "SELECT pg_notify('a', 'f')", heard: []string{"a:f"}},
		{sql: "SELECT pg_notify('a', NULL)", heard: []string{"a:"}},
		{sql: "SELECT n, pg_notify('a', n::text) FROM generate_series(1,3) n", heard: []string{"a:1", "a:2", "a:3"}},
		{sql: "SELECT pg_notify(NULL, 'x')", code: "22023"},
		{sql: "SELECT pg_notify('', 'x')", code: "22023"},
		{sql: "SELECT pg_notify('a', repeat('y', 7999))", heard: []string{"a:7999"}},
		{sql: "SELECT pg_notify('a', repeat('y', 8000))", code: "22023"},
		{sql: "SELECT pg_notify(repeat('c', 64), 'x')", code: "22023"},
		{sql: "LISTEN " + long + "; NOTIFY " + long + ", 'l'", heard: []string{long[:63] + ":l"}},
		{sql: "UNLISTEN " + long + "; NOTIFY " + long + ", 'l'"},
		{sql: `LISTEN "Big Ünï"; SELECT pg_notify('Big Ünï', 'ü'); SELECT pg_notify('big ünï', 'other')`, heard: []string{"Big Ünï:ü"}},
		{sql: "BEGIN; LISTEN b; NOTIFY b, 'same'; COMMIT", heard: []string{"b:same"}},
		{sql: "BEGIN; LISTEN c; ROLLBACK; NOTIFY c, 'no'"},
		{sql: "BEGIN; UNLISTEN b; NOTIFY b, 'no'; COMMIT"},
		{sql: "BEGIN; LISTEN d; UNLISTEN d; NOTIFY d, 'no'; COMMIT"},
		{sql: "BEGIN; UNLISTEN a; LISTEN a; NOTIFY a, 'yes'; COMMIT", heard: []string{"a:yes"}},
		{sql: "BEGIN; UNLISTEN a; ROLLBACK; NOTIFY a, 'still'", heard: []string{"a:still"}},
		{sql: "BEGIN; SAVEPOINT s; LISTEN e; ROLLBACK TO s; COMMIT; NOTIFY e, 'no'"},
		{sql: "BEGIN READ ONLY; NOTIFY a, 'ro'; LISTEN f; COMMIT; NOTIFY f, 'f'", heard: []string{"a:ro", "f:f"}},
		{sql: "SELECT pg_notify('a','q1'); SELECT 1/0; SELECT pg_notify('a','q2')", code: "22012"},
		{sql: "BEGIN; SELECT 1/0; NOTIFY a; COMMIT", code: "22012"},
		{sql: "ROLLBACK; NOTIFY a, E'tab\\tnew\\nline'", heard: []string{"a:tab\tnew\nline"}},
		{sql: "NOTIFY a, 5", code: "42601"},
		{sql: "UNLISTEN nothing; UNLISTEN *; NOTIFY a, 'no'"},
		{sql: "LISTEN a; NOTIFY a"}, // DISCARD ALL must not stand in a block
		{sql: "DISCARD ALL"},
		{sql: "NOTIFY a, 'no'"},
		{sql: "SELECT 1 WHERE pg_notification_queue_usage() > 0"},
	} {
		if strings.HasPrefix(s.sql, "LISTEN a; NOTIFY a") && s.heard == nil {
			s.heard = []string{"a:"}
		}
		heard = nil
		_, err := c.Exec(context.Background(), s.sql).ReadAll()
		code := ""
		if pe, ok := err.(*pgconn.PgError); ok {
			code = pe.Code
		}
		require.Equal(t, s.code, code, "%s: %v", s.sql, err)
		require.Equal(t, s.heard, heard, s.sql)
	}
}

// TestNotifyOthers: sessions hear in one order, when they are idle outside a transaction.
func TestNotifyOthers(t *testing.T) {
	g := start(t)
	w, a, b := g.connect(), g.ear("x", "y"), g.ear("y", "x")
	run(t, a.Conn, "BEGIN")
	for i := range 20 {
		run(t, w, "BEGIN")
		run(t, w, fmt.Sprintf("NOTIFY x, '%d'", i))
		run(t, w, fmt.Sprintf("NOTIFY y, '%d'", i))
		run(t, w, "COMMIT")
	}
	run(t, a.Conn, "SELECT 1")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	_, err := a.WaitForNotification(ctx)
	cancel()
	require.ErrorIs(t, err, context.DeadlineExceeded, "inside a transaction")
	run(t, a.Conn, "COMMIT")
	for i := range 20 {
		for _, channel := range []string{"x", "y"} {
			want := &pgconn.Notification{PID: w.PgConn().PID(), Channel: channel, Payload: strconv.Itoa(i)}
			require.Equal(t, want, a.hear())
			require.Equal(t, want, b.hear())
		}
	}
}

// TestNotifyQueueFull: a client that reads nothing costs notifiers on its channel 54000 in the end, as in PostgreSQL, and nobody else anything.
func TestNotifyQueueFull(t *testing.T) {
	g := start(t)
	w := g.connect()
	run(t, w, "CREATE TABLE l (id int PRIMARY KEY)")
	stuck := g.raw()
	stuck.send(&pgproto3.Query{String: "LISTEN fill"})
	stuck.untilReady()
	other := g.ear("other")
	fill := "SELECT count(pg_notify('fill', n || repeat('x', 7900))) FROM generate_series(1, 3000) n"
	var last *pgconn.PgError
	for range 10 {
		run(t, w, "BEGIN")
		run(t, w, "INSERT INTO l SELECT count(*) FROM l")
		run(t, w, fill)
		if _, err := w.Exec(context.Background(), "COMMIT"); err != nil {
			require.ErrorAs(t, err, &last)
			break
		}
	}
	require.NotNil(t, last)
	require.Equal(t, "54000", last.Code)
	require.Equal(t, "too many notifications in the NOTIFY queue", last.Message)
	require.Equal(t, "1", one(t, w, "SELECT pg_notification_queue_usage()"))
	n := one(t, w, "SELECT count(*) FROM l")
	require.NotEqual(t, "10", n, "what could not be told did not happen")
	run(t, w, "NOTIFY other, 'x'")
	require.Equal(t, "x", other.hear().Payload)
	run(t, w, "INSERT INTO l VALUES (100)")
	// It reads again, and everything is there.
	count, err := strconv.Atoi(n)
	require.NoError(t, err)
	for i := range 3000 * count {
		m, err := stuck.fe.Receive()
		require.NoError(t, err)
		got, ok := m.(*pgproto3.NotificationResponse)
		require.True(t, ok, "%T", m)
		require.True(t, strings.HasPrefix(got.Payload, strconv.Itoa(i%3000+1)+"x"))
	}
	require.Eventually(t, func() bool { return one(t, w, "SELECT pg_notification_queue_usage()") == "0" }, 30*time.Second, 5*time.Millisecond)
	run(t, w, "NOTIFY fill")
}

// TestCommitChannels: what the channels tell of a table through its life, and what of another one of its name.
func TestCommitChannels(t *testing.T) {
	g := start(t)
	w := g.connect()
	run(t, w, "CREATE SCHEMA s")
	run(t, w, "CREATE TABLE s.a (id int PRIMARY KEY)")
	channel := one(t, w, "SELECT commit_channel('s.a')")
	all, a := g.ear("skade_commits"), g.ear(channel)
	life := []struct{ sql, all, a string }{
		{"INSERT INTO s.a VALUES (1), (2)", "s.a append", "s.a append"},
		{"UPDATE s.a SET id = 3 WHERE id = 1", "s.a overwrite", "s.a overwrite"},
		{"ALTER TABLE s.a RENAME TO b", "s.b rename", "s.b rename"},
		{"CREATE TABLE s.a (id int)", "s.a create", ""}, // another table
		{"INSERT INTO s.a VALUES (1)", "s.a append", ""},
		{"ALTER SCHEMA s RENAME TO r", "r.a rename, r.b rename", "r.a rename, r.b rename"},
		{"ALTER TABLE r.b SET SCHEMA public", "public.b rename", "public.b rename"},
		{"ALTER TABLE b ADD COLUMN v text", "public.b metadata", "public.b metadata"},
		{"TRUNCATE b", "public.b delete", "public.b delete"},
		{"CREATE VIEW v AS SELECT 1", "", ""}, // a commit without tables
		{"DROP TABLE b", "public.b drop", "public.b drop"},
		{"CREATE TABLE b (id int)", "public.b create", ""},
		{"ALTER TABLE b RENAME TO c", "public.c rename", ""},
	}
	for _, s := range life {
		run(t, w, s.sql)
		seq := one(t, w, "SELECT current_commit_seq()")
		got := all.commit()
		require.Equal(t, s.all, got.brief(), s.sql)
		require.Equal(t, seq, got.Seq, s.sql)
		if s.a != "" {
			require.Equal(t, s.a, a.commit().brief(), s.sql)
		}
	}
	require.NotEqual(t, channel, one(t, w, "SELECT commit_channel('c')"))
	// The dropped table comes back under the channel that it had.
	run(t, w, "SELECT undrop('public.b')")
	require.Equal(t, channel, one(t, w, "SELECT commit_channel('b')"))
	require.Contains(t, a.commit().brief(), "public.b ")

	// The exact text.
	seq, snap := one(t, w, "SELECT current_commit_seq()"), ""
	all.commit()
	run(t, w, "INSERT INTO c VALUES (7), (8)")
	snap = one(t, w, "SELECT max(snapshot_id) FROM skade.commits WHERE commit_seq = "+seq+" + 1")
	n, _ := strconv.Atoi(seq)
	require.Regexp(t, regexp.MustCompile(fmt.Sprintf(
		`^\{"v":1,"seq":"%d","ts":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z","tables":\[\{"t":"public.c","snap":"%s","op":"append","ins":2,"del":0\}\]\}$`, n+1, snap)), all.hear().Payload)
	for _, name := range []string{strings.Repeat("long_", 12), `quoted "x" . y`, "Ünïcödé ☃"} {
		quoted := pgx.Identifier{name}.Sanitize()
		run(t, w, "CREATE TABLE "+quoted+" (id int)")
		all.commit()
		channel := one(t, w, "SELECT commit_channel('"+quoted+"')")
		require.LessOrEqual(t, len(channel), 63, name)
		require.Regexp(t, `^skade_commits_[0-9a-f]{32}$`, channel, "it needs no quotes")
		e := g.ear(channel)
		run(t, w, "INSERT INTO "+quoted+" VALUES (1)")
		require.Equal(t, all.commit(), e.commit(), name)
	}
	require.Equal(t, "42P01", sqlstate(t, w, "SELECT commit_channel('none')").Code)
}

// TestCommitsOfManyTables: a payload stays below PostgreSQL's 8,000 bytes: it says that there are more tables, and never loses the seq.
func TestCommitsOfManyTables(t *testing.T) {
	g := start(t)
	w, l := g.connect(), g.ear("skade_commits")
	run(t, w, "BEGIN")
	var ddl []string
	const tables = 250
	for i := range tables {
		ddl = append(ddl, fmt.Sprintf("CREATE TABLE t_%04d (id int)", i))
	}
	_, err := w.PgConn().Exec(context.Background(), strings.Join(ddl, ";")).ReadAll()
	require.NoError(t, err)
	run(t, w, "COMMIT")
	seq := one(t, w, "SELECT current_commit_seq()")
	last := g.ear(one(t, w, "SELECT commit_channel('t_0249')"))
	p := l.commit()
	require.True(t, p.More)
	require.Equal(t, seq, p.Seq)
	require.Greater(t, len(p.Tables), 100, "as many as fit")
	require.Equal(t, strconv.Itoa(tables), one(t, w, "SELECT count(*) FROM commits_since("+seq+" - 1)"), "the log has them all")
	run(t, w, "INSERT INTO t_0249 VALUES (1)")
	require.Equal(t, "public.t_0249 append", last.commit().brief())
}

// commits makes n commits of no table over some connections.
func (g *gateway) commits(n int) {
	g.t.Helper()
	const writers = 8
	codes := together(g.t.(*testing.T), g.connections(writers), func(i int, c *pgx.Conn) error {
		v := "v" + strconv.Itoa(i)
		if err := execute(c, "CREATE OR REPLACE VIEW "+v+" AS SELECT 1"); err != nil {
			return err
		}
		for range (n + writers - 1) / writers {
			if err := execute(c, "COMMENT ON VIEW "+v+" IS '"+strconv.Itoa(i)+"'"); err != nil {
				return err
			}
			i += writers
		}
		return nil
	})
	require.Equal(g.t, map[string]int{"": writers}, codes)
}

// TestLaggedListener: who does not listen for more commits than are remembered learns once what it missed, whether it is in a transaction or
// does not read; writers do not notice. Then it hears again.
func TestLaggedListener(t *testing.T) {
	g := start(t)
	w := g.connect()
	run(t, w, "CREATE TABLE l (id int PRIMARY KEY)")
	run(t, w, "CREATE TABLE quiet (id int PRIMARY KEY)")
	quiet := g.ear(one(t, w, "SELECT commit_channel('quiet')"))
	busy := g.ear("skade_commits")
	stuck := g.raw()
	stuck.send(&pgproto3.Query{String: "LISTEN skade_commits; LISTEN fill"})
	stuck.untilReady()
	// Its socket is full.
	run(t, w, "SELECT count(pg_notify('fill', n || repeat('x', 7900))) FROM generate_series(1, 3000) n")
	run(t, busy.Conn, "BEGIN")
	from := one(t, w, "SELECT current_commit_seq()")
	g.commits(1100)
	to := one(t, w, "SELECT current_commit_seq()")
	run(t, busy.Conn, "COMMIT")
	// The notice may be written before the feed has heard of the last commits: they follow it.
	lagged := regexp.MustCompile(fmt.Sprintf(`^{"v":1,"lagged":true,"from":"%s","to":"(\d+)"}$`, from)).FindStringSubmatch(busy.hear().Payload)
	require.Len(t, lagged, 2)
	last, err := strconv.Atoi(lagged[1])
	require.NoError(t, err)
	newest, err := strconv.Atoi(to)
	require.NoError(t, err)
	for seq := last + 1; seq <= newest; seq++ {
		require.Equal(t, strconv.Itoa(seq), busy.commit().Seq)
	}
	require.Equal(t, one(t, w, "SELECT "+to+" - "+from), one(t, busy.Conn, "SELECT count(*) FROM commits_since("+from+")"), "the log has what it missed")
	run(t, w, "INSERT INTO quiet VALUES (1)")
	require.Equal(t, "public.quiet append", busy.commit().brief())
	require.Equal(t, "public.quiet append", quiet.commit().brief(), "who misses nothing does not lag")

	var heard []string
	for len(heard) < 2 {
		m, err := stuck.fe.Receive()
		require.NoError(t, err)
		if n, ok := m.(*pgproto3.NotificationResponse); ok && n.Channel == "skade_commits" {
			heard = append(heard, n.Payload)
			if len(heard) == 1 {
				run(t, w, "INSERT INTO quiet VALUES (2)")
			}
		}
	}
	var p told
	require.NoError(t, json.Unmarshal([]byte(heard[0]), &p))
	require.True(t, p.Lagged)
	require.Equal(t, from, p.From)
	require.NotContains(t, heard[1], "lagged")
}

// TestListenInTransaction: LISTEN begins with COMMIT, tells nothing from before, and of what came since nothing is lost.
func TestListenInTransaction(t *testing.T) {
	g := start(t)
	w, l := g.connect(), g.ear()
	run(t, w, "CREATE TABLE l (id int PRIMARY KEY)")
	run(t, l.Conn, "BEGIN")
	run(t, l.Conn, "LISTEN skade_commits")
	run(t, w, "INSERT INTO l VALUES (1)")
	run(t, l.Conn, "COMMIT")
	run(t, w, "INSERT INTO l VALUES (2), (3)")
	require.EqualValues(t, 2, l.commit().Tables[0].Ins)
	run(t, l.Conn, "BEGIN")
	run(t, l.Conn, "UNLISTEN *")
	run(t, l.Conn, "ROLLBACK")
	run(t, w, "INSERT INTO l VALUES (4), (5), (6)")
	require.EqualValues(t, 3, l.commit().Tables[0].Ins)
	// Its own commits it hears, too.
	run(t, l.Conn, "DELETE FROM l WHERE id < 3")
	require.EqualValues(t, 2, l.commit().Tables[0].Del)
	// Told when it is idle outside a transaction: with the end of its own.
	run(t, l.Conn, "BEGIN")
	run(t, w, "INSERT INTO l VALUES (10)")
	run(t, l.Conn, "UNLISTEN skade_commits")
	run(t, l.Conn, "LISTEN skade_commits")
	run(t, l.Conn, "COMMIT")
	run(t, w, "INSERT INTO l VALUES (11), (12)")
	for p := l.commit(); p.Tables[0].Ins != 2; p = l.commit() {
		require.EqualValues(t, 1, p.Tables[0].Ins)
	}
	run(t, l.Conn, "UNLISTEN *")
	run(t, w, "INSERT INTO l VALUES (13)")
	run(t, l.Conn, "LISTEN again")
	run(t, w, "NOTIFY again")
	require.Equal(t, "again", l.hear().Channel)
	require.Equal(t, "42501", sqlstate(t, w, "NOTIFY skade_commits, 'forged'").Code)
	require.Equal(t, "42501", sqlstate(t, w, "SELECT pg_notify('skade_commits_x', 'forged')").Code)
}
