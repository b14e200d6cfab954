package test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgress: other sessions see how far a COPY has come, and a cancelled write leaves nothing.
func TestProgress(t *testing.T) {
	g := start(t)
	c, watch := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	oid := rows(t, c, "SELECT 't'::regclass::oid")[0][0]
	rd, wr := io.Pipe()
	done := make(chan error, 1)
	go func() {
		_, err := c.PgConn().CopyFrom(context.Background(), rd, "COPY t FROM STDIN")
		done <- err
	}()
	_, err := wr.Write([]byte("1\ta\n2\tb\n3\tc\n"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		got := rows(t, watch, "SELECT command, type, relid, tuples_processed, bytes_processed, bytes_total, tuples_excluded, datname FROM pg_stat_progress_copy")
		return len(got) == 1 && got[0][3] == "3" && got[0][4] == "12" && got[0][2] == oid && got[0][0] == "COPY FROM" && got[0][1] == "PIPE" && got[0][5] == "0" && got[0][7] == "skade"
	}, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, [][]string{{"public.t", "COPY FROM", "reading", "3", "0"}},
		rows(t, watch, `SELECT replace(table_name, '"', ''), command, phase, rows_processed, files_written FROM skade.progress`))
	require.NoError(t, wr.Close())
	require.NoError(t, <-done)
	require.Empty(t, rows(t, watch, "SELECT * FROM pg_stat_progress_copy"))
	require.Empty(t, rows(t, watch, "SELECT * FROM skade.progress"))
	for _, v := range []string{"cluster", "create_index", "vacuum", "analyze", "basebackup"} {
		require.Empty(t, rows(t, watch, "SELECT * FROM pg_stat_progress_"+v))
	}

	// An INSERT … SELECT without end: seen at work, then cancelled.
	pid := rows(t, c, "SELECT pg_backend_pid()")[0][0]
	go func() {
		_, err := c.Exec(context.Background(), "INSERT INTO t SELECT 10 + a.n * 100000 + b.n, 'x' FROM generate_series(0, 10000) a(n), generate_series(0, 99999) b(n)")
		done <- err
	}()
	require.Eventually(t, func() bool {
		got := rows(t, watch, "SELECT rows_processed > 0 FROM skade.progress WHERE command = 'INSERT' AND pid = "+pid)
		return len(got) == 1 && got[0][0] == "t"
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, [][]string{{"t"}}, rows(t, watch, "SELECT pg_cancel_backend("+pid+")"))
	require.ErrorContains(t, <-done, "57014")
	require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT count(*) FROM t"))
}
