package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// peakMemory is a process's largest resident memory so far, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, m)
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return kb << 10
}

// openTemp are the open files of a process in its folder's tmp, named or not.
func openTemp(t *testing.T, pid int, dir string) (open []string) {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	temp := regexp.MustCompile(`^` + regexp.QuoteMeta(dir) + `/tmp/changes-`)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && temp.MatchString(to) {
			open = append(open, to)
		}
	}
	return open
}

// TestChangesMemory: the changes and the net effect of a window that updates every row of a table pass through a server of
// bounded memory, told by what is resident, its client apart. Beyond --temp-limit the statement is 54000 and the session
// lives on; a cancelled statement leaves no file. SKADE_BIG_CHANGES=10000000 is the full size: 512 MB.
func TestChangesMemory(t *testing.T) {
	size, width, bound := 300_000, 130, int64(384<<20)
	if s := os.Getenv("SKADE_BIG_CHANGES"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		size, width, bound = n, 0, 512<<20
	} else if testing.Short() {
		t.Skip("takes seconds")
	}
	dir := filepath.Join(t.TempDir(), "data")
	serve := func(temp string) *killable {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{serveHeap + "=160MB", serveTemp + "=" + temp, "GOMEMLIMIT=160MiB"}
		return startCommand(t, dir, cmd)
	}
	// The table is made by a server of its own: what writing takes is not the question.
	writer := startKillable(t, dir)
	c := writer.connect(t)
	run(t, c, "CREATE TABLE big (id bigint PRIMARY KEY, n integer, v double precision, name text)")
	run(t, c, fmt.Sprintf("INSERT INTO big SELECT i, i %% 1000, i / 7.0, 'name of row ' || i || repeat('.', %d) FROM generate_series(1, %d) i", width, size))
	run(t, c, "UPDATE big SET n = n + 1")
	var last int64
	require.NoError(t, c.QueryRow(context.Background(), "SELECT current_commit_seq()").Scan(&last))
	writer.kill()

	k := serve("8GB")
	c = k.connect(t)
	idle := peakMemory(t, k.cmd.Process.Pid)
	for _, f := range []string{"table_changes", "table_changes_net"} {
		got := rows(t, c, fmt.Sprintf("SELECT _change_type, count(*), sum(n::bigint), min(name), max(id) FROM %s('big', 'seq:%d', 'seq:%d') GROUP BY 1 ORDER BY 1", f, last-1, last))
		require.Len(t, got, 2)
		for _, r := range got {
			require.Equal(t, strconv.Itoa(size), r[1], "%s", f)
		}
		peak := peakMemory(t, k.cmd.Process.Pid)
		t.Logf("%s of %d updates: %d MiB resident at the peak, %d MiB when idle", f, size, peak>>20, idle>>20)
		require.Less(t, peak, bound, "resident memory of the server during %s", f)
	}
	require.Empty(t, openTemp(t, k.cmd.Process.Pid, dir))

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil && len(openTemp(t, k.cmd.Process.Pid, dir)) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := c.Exec(ctx, fmt.Sprintf("SELECT count(*) FROM table_changes('big', 'seq:%d', 'seq:%d')", last-1, last))
	require.Error(t, err, "it spilled and was cancelled")
	require.Eventually(t, func() bool { return len(openTemp(t, k.cmd.Process.Pid, dir)) == 0 }, 30*time.Second, 10*time.Millisecond)
	k.kill()

	k = serve("16MB")
	c = k.connect(t)
	e := sqlstate(t, c, fmt.Sprintf("SELECT count(*) FROM table_changes('big', 'seq:%d', 'seq:%d')", last-1, last))
	require.Equal(t, "54000", e.Code)
	require.Contains(t, e.Message, "temporary space")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"))
	require.Empty(t, openTemp(t, k.cmd.Process.Pid, dir))
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "changes-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
