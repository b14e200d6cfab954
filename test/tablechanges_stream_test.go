package test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// A window is read as the client takes it: commit by commit, with bounded memory whoever waits, and a cancel in the middle ends it.
func TestTableChangesStream(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const (
		commits = 12
		each    = 60_000
		length  = 1500
		bound   = 192 << 20
	)
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE w (id int, v text)")
	run(t, c, fmt.Sprintf("INSERT INTO w SELECT n, md5(n::text) FROM generate_series(1, %d) n", each))
	for i := 1; i < commits; i++ {
		run(t, c, "INSERT INTO w SELECT id + "+fmt.Sprint(i*each)+", v FROM w WHERE id <= "+fmt.Sprint(each))
	}
	query := "SELECT id, _commit_seq, repeat(v, " + fmt.Sprint(length/32) + ") FROM table_changes('w', NULL)"
	require.Len(t, rows(t, c, query+" LIMIT 10000"), 10000)
	pid := c.PgConn().PID()

	h, err := c.PgConn().Hijack()
	require.NoError(t, err)
	defer h.Conn.Close()
	msg, err := (&pgproto3.Query{String: query}).Encode(nil)
	require.NoError(t, err)
	runtime.GC()
	before := resident(t)
	_, err = h.Conn.Write(msg)
	require.NoError(t, err)

	// Nobody reads: the server fills the socket's buffers and waits. It is given the time to do more.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	stuck := before
	for ctx.Err() == nil {
		stuck = max(stuck, resident(t))
		time.Sleep(20 * time.Millisecond)
	}
	require.Less(t, stuck-before, int64(bound), "memory of a window that nobody reads")

	// A third of it passes, in the order of the commits; then another session cancels it.
	front := pgproto3.NewFrontend(h.Conn, io.Discard)
	n, last, peak, cancelled := 0, "", int64(0), false
	for done := false; !done; {
		m, err := front.Receive()
		require.NoError(t, err)
		switch m := m.(type) {
		case *pgproto3.DataRow:
			if n++; n%each == 1 {
				require.NotEqual(t, last, string(m.Values[1]), "the next commit")
				last = string(m.Values[1])
				peak = max(peak, resident(t))
			} else if string(m.Values[1]) != last {
				t.Fatalf("row %d is of commit %s, not %s", n, m.Values[1], last)
			}
			if n == commits/3*each {
				require.Equal(t, [][]string{{"t"}}, rows(t, g.connect(), fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid)))
			}
		case *pgproto3.ErrorResponse:
			require.Equal(t, "57014", m.Code, m.Message)
			cancelled = true
		case *pgproto3.ReadyForQuery:
			done = true
		}
	}
	require.True(t, cancelled)
	require.Less(t, n, commits*each, "the rest was not read")
	require.Less(t, peak-before, int64(bound), "memory while the window passes")

	// A cursor takes as much as it is asked for.
	c = g.connect()
	run(t, c, "BEGIN; DECLARE k CURSOR FOR "+query)
	before = resident(t)
	for i := range 3 {
		require.Len(t, rows(t, c, "FETCH 1000 FROM k"), 1000, i)
	}
	require.Less(t, resident(t)-before, int64(bound))
	run(t, c, "COMMIT")
}

// EXPLAIN shows what a window reads, without reading it: what changed, not the table.
func TestTableChangesExplain(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE e (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO e SELECT n, md5(n::text) FROM generate_series(1, 30000) n")
	from := number(t, c, "SELECT current_commit_seq()")
	run(t, c, "INSERT INTO e VALUES (40000, 'x')")
	run(t, c, "DELETE FROM e WHERE id = 7")
	run(t, c, "UPDATE e SET v = 'y' WHERE id = 40000")
	type plan struct {
		Plan struct {
			Plans []map[string]any `json:"Plans"`
			Rows  *int             `json:"Actual Rows"`
		}
	}
	explain := func(options, sql string) plan {
		var out []plan
		require.NoError(t, json.Unmarshal([]byte(rows(t, c, "EXPLAIN ("+options+"FORMAT json) "+sql)[0][0]), &out))
		return out[0]
	}
	window := fmt.Sprintf("('e', 'seq:%d', 'now')", from)
	for fn, want := range map[string][3]float64{"table_changes": {3, 3, 4}, "table_changes_net": {1, 2, 2}} {
		p := explain("", "SELECT * FROM "+fn+window)
		require.Nil(t, p.Plan.Rows)
		f := p.Plan.Plans[0]
		require.Equal(t, fn, f["Function Name"])
		require.Equal(t, want, [3]float64{f["Steps"].(float64), f["Files Opened"].(float64), f["Rows"].(float64)}, "%v", f)
		require.GreaterOrEqual(t, f["Files Considered"].(float64), f["Files Opened"].(float64))
		require.Less(t, f["Bytes"].(float64), 20_000.0, "of what changed")
		p = explain("ANALYZE, ", "SELECT * FROM "+fn+window)
		require.Equal(t, map[string]int{"table_changes": 4, "table_changes_net": 2}[fn], *p.Plan.Rows)
		text := rows(t, c, "EXPLAIN SELECT * FROM "+fn+window)
		require.Equal(t, "  ->  Function Scan on "+fn, text[1][0])
		require.Regexp(t, `^        Steps: \d$`, text[2][0])
		require.Equal(t, "22023", sqlstate(t, c, "EXPLAIN SELECT * FROM "+fn+"('e', 'seq:x')").Code)
	}
	require.Empty(t, explain("", "SELECT * FROM table_changes('e', 'now')").Plan.Plans[0]["Bytes"])
}
