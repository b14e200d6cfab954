package test

import (
	"context"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// resident is the process's memory in bytes: Go's heap and DuckDB's.
func resident(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, m)
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return kb << 10
}

// TestLargeResultStreams: a result of 1 GB from a stored table passes with the process's memory bounded, while the client reads
// and while it does not, and the rows are all there. Client and server share the process.
func TestLargeResultStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const (
		wide   = 250_000
		length = 4096
		bound  = 192 << 20
	)
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE wide (id bigint PRIMARY KEY, n int)")
	run(t, c, "INSERT INTO wide SELECT i, i % 1000 FROM generate_series(1, "+strconv.Itoa(wide)+") i")
	// The same way once, so that what stays allocated is there before.
	query := "SELECT id, n, repeat('x', " + strconv.Itoa(length) + ") FROM wide"
	require.Len(t, rows(t, c, query+" LIMIT 10000"), 10000)

	h, err := c.PgConn().Hijack()
	require.NoError(t, err)
	defer h.Conn.Close()
	msg, err := (&pgproto3.Query{String: query}).Encode(nil)
	require.NoError(t, err)
	runtime.GC()
	before := resident(t)
	_, err = h.Conn.Write(msg)
	require.NoError(t, err)

	// Nobody reads: the server fills the socket's buffers and then waits. It is given the time to do more.
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	stuck := before
	for ctx.Err() == nil {
		stuck = max(stuck, resident(t))
		time.Sleep(20 * time.Millisecond)
	}
	require.Less(t, stuck-before, int64(bound), "memory of a result that nobody reads")

	var n, size, peak int64
	front := pgproto3.NewFrontend(h.Conn, io.Discard)
	for done := false; !done; {
		m, err := front.Receive()
		require.NoError(t, err)
		switch m := m.(type) {
		case *pgproto3.DataRow:
			n++
			for _, v := range m.Values {
				size += int64(len(v))
			}
			if n%10_000 == 0 {
				peak = max(peak, resident(t))
			}
		case *pgproto3.ErrorResponse:
			t.Fatal(m.Code, m.Message)
		case *pgproto3.ReadyForQuery:
			done = true
		}
	}
	require.Equal(t, int64(wide), n)
	require.Greater(t, size, int64(1_000_000_000))
	require.Less(t, peak-before, int64(bound), "memory while 1 GB passes")
	t.Logf("1 GB in %d rows: memory grew by %d MiB with nobody reading, %d MiB at most", n, (stuck-before)>>20, (peak-before)>>20)
}
