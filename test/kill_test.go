package test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// killable is a server in a process of its own.
type killable struct {
	cmd *exec.Cmd
	url string
}

func startKillable(t *testing.T, dir string) *killable {
	t.Helper()
	return startCommand(t, dir, exec.Command(os.Args[0]))
}

// startCommand runs a command that becomes this program; its Env is added to this process's.
func startCommand(t *testing.T, dir string, cmd *exec.Cmd) *killable {
	t.Helper()
	cmd.Env = append(append(os.Environ(), cmd.Env...), serveFolder+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	k := &killable{cmd: cmd}
	t.Cleanup(k.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	k.url = strings.TrimSpace(line)
	require.Contains(t, k.url, "postgres://", "the server did not start")
	return k
}

// kill ends it as a power cut would, but for the page cache.
func (k *killable) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait() // it was killed: that is its error
}

func (k *killable) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, k.url)
	require.NoError(t, err)
	return c
}

// TestKill (C1–C4): a server is killed in the middle of transactions over three tables, again and again. Each transaction n of a worker
// inserts n into two tables and sets its counter to n: afterwards all three agree, nothing acknowledged is lost, at most the one
// transaction whose COMMIT was on its way is there beside them, no seq is missing, and the check is clean.
func TestKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	const workers = 3
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	k := startKillable(t, dir)
	c := k.connect(t)
	run(t, c, "CREATE TABLE one (worker int, n int, PRIMARY KEY (worker, n))")
	run(t, c, "CREATE TABLE two (worker int, n int, filler text)")
	run(t, c, "CREATE TABLE counters (worker int PRIMARY KEY, n int)")
	for w := range workers {
		run(t, c, "INSERT INTO counters VALUES ($1, 0)", w)
	}
	_ = c.Close(context.Background())
	var acked [workers]atomic.Int64
	for round := range rounds {
		var wg sync.WaitGroup
		var done atomic.Int64
		for w := range workers {
			wg.Go(func() { transferUntilKilled(k.url, w, &acked[w], &done) })
		}
		require.Eventually(t, func() bool { return done.Load() >= int64(3+4*round) }, time.Minute, time.Millisecond)
		k.kill()
		wg.Wait()
		k = startKillable(t, dir)
		c := k.connect(t)
		for w := range workers {
			got := rows(t, c, fmt.Sprintf(`SELECT (SELECT n FROM counters WHERE worker = %[1]d),
				(SELECT count(*) FROM one WHERE worker = %[1]d), (SELECT coalesce(max(n), 0) FROM one WHERE worker = %[1]d),
				(SELECT count(*) FROM two WHERE worker = %[1]d), (SELECT coalesce(max(n), 0) FROM two WHERE worker = %[1]d)`, w))[0]
			for _, v := range got[1:] {
				require.Equal(t, got[0], v, "worker %d: half a transaction: %v", w, got)
			}
			var n int64
			_, err := fmt.Sscan(got[0], &n)
			require.NoError(t, err)
			a := acked[w].Load()
			require.GreaterOrEqual(t, n, a, "worker %d lost what was acknowledged", w)
			require.LessOrEqual(t, n, a+1, "worker %d", w)
			acked[w].Store(n)
		}
		require.Equal(t, [][]string{{"t"}}, rows(t, c, "SELECT count(*) = max(commit_seq) AND min(commit_seq) = 1 FROM (SELECT DISTINCT commit_seq FROM skade.commits) s"))
		_ = c.Close(context.Background())
	}
	k.kill()
	checkFolder(t, dir)
}

// transferUntilKilled runs transactions one after the other until the connection breaks.
func transferUntilKilled(url string, worker int, acked, done *atomic.Int64) {
	ctx := context.Background()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return
	}
	defer c.Close(ctx)
	for {
		n := acked.Load() + 1
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for _, sql := range []string{
				"INSERT INTO one VALUES ($1, $2)", "INSERT INTO two VALUES ($1, $2, repeat('x', 100))", "UPDATE counters SET n = $2 WHERE worker = $1",
			} {
				if _, err := tx.Exec(ctx, sql, worker, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return
		}
		acked.Store(n)
		done.Add(1)
	}
}
