package test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// fullDisk has no room for files whose path holds a text, after some writes to them.
type fullDisk struct {
	match atomic.Pointer[string]
	left  atomic.Int64
	hit   atomic.Int64
}

func (d *fullDisk) before(op storeio.Op, path string) error {
	m := d.match.Load()
	if m == nil || !slices.Contains([]storeio.Op{storeio.OpCreate, storeio.OpWrite, storeio.OpStore}, op) || !strings.Contains(string(op)+" "+path, *m) {
		return nil
	}
	if d.left.Add(-1) >= 0 {
		return nil
	}
	d.hit.Add(1)
	return &fs.PathError{Op: string(op), Path: path, Err: syscall.ENOSPC}
}

func (d *fullDisk) fill(match string, after int64) {
	d.left.Store(after)
	d.hit.Store(0)
	d.match.Store(&match)
}

func (d *fullDisk) empty() { d.match.Store(nil) }

// startSmall serves with little memory, so that a few thousand rows spill.
func startSmall(t testing.TB, hooks *storeio.Hooks) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), configure: func(c *cli.Config) { c.HeapLimit, c.Hooks = "16MB", hooks }}
	g.open()
	t.Cleanup(g.close)
	return g
}

// allFiles are the files of the warehouse and the temporary folder.
func (g *gateway) allFiles() (out []string) {
	g.t.Helper()
	for _, dir := range []string{"warehouse", "tmp"} {
		err := filepath.WalkDir(filepath.Join(g.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) {
				return nil
			}
			if err == nil && !d.IsDir() {
				out = append(out, path)
			}
			return err
		})
		require.NoError(g.t, err)
	}
	return out
}

// copyText sends rows to a table and returns COPY's error.
func copyText(c *pgx.Conn, sql string, row func(i int) string, n int) (pgconn.CommandTag, error) {
	return c.PgConn().CopyFrom(context.Background(), &lines{row: row, n: n}, sql)
}

// lines makes rows when they are read.
type lines struct {
	row func(i int) string
	i   int
	n   int
	buf []byte
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.buf) < len(p) && l.i < l.n {
		l.i++
		l.buf = append(append(l.buf, l.row(l.i)...), '\n')
	}
	if len(l.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.buf)
	l.buf = append(l.buf[:0], l.buf[n:]...)
	return n, nil
}

// A disk that fills while rows are spilled, sorted, kept for RETURNING or committed is 53100: nothing is visible, nothing is left, and the next
// commit works once there is room.
func TestFullDisk(t *testing.T) {
	const many = 60_000
	shuffled := func(i int) string { return strconv.Itoa(i*7919%1_000_003) + "\t" + strings.Repeat("some words ", 20) }
	fill := func(c *pgx.Conn) error {
		_, err := copyText(c, "COPY t FROM STDIN", shuffled, many)
		return err
	}
	exec := func(sql string) func(c *pgx.Conn) error {
		return func(c *pgx.Conn) error {
			res, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
			for _, r := range res {
				if err == nil {
					err = r.Err
				}
			}
			return err
		}
	}
	cases := []struct {
		name, match string
		after       int64
		in, commit  func(c *pgx.Conn) error // the one that fails
	}{
		{"spill of COPY", ".parquet", 0, fill, nil},
		{"spill of COPY, later", ".parquet", 5, fill, nil},
		{"INSERT … SELECT", ".parquet", 5, exec("INSERT INTO t SELECT i * 7919 % 1000003, repeat('some words ', 20) FROM generate_series(1, 60000) i"), nil},
		{"RETURNING", "rows-", 3, exec("INSERT INTO t SELECT i + 5000000, repeat('some words ', 60) FROM generate_series(1, 60000) i RETURNING *"), nil},
		{"sorted runs at COMMIT", "skade-run", 3, nil, func(c *pgx.Conn) error { // files with dead rows are written again
			return errors.Join(fill(c), exec("DELETE FROM t WHERE id % 10 = 0")(c))
		}},
		{"data file at COMMIT", ".parquet", 0, nil, exec("INSERT INTO t VALUES (10000001, 'x')")},
		{"delete file at COMMIT", ".parquet", 0, nil, exec("DELETE FROM t WHERE id = 1")},
		{"manifest", ".avro", 0, nil, exec("INSERT INTO t VALUES (10000001, 'x')")},
		{"manifest list", "snap-", 0, nil, exec("INSERT INTO t VALUES (10000001, 'x')")},
		{"metadata file", "metadata.json", 0, nil, exec("INSERT INTO t VALUES (10000001, 'x')")},
		{"catalog", "store ", 0, nil, exec("INSERT INTO t VALUES (10000001, 'x')")},
	}
	d := &fullDisk{}
	g := startSmall(t, &storeio.Hooks{Before: d.before})
	c := g.connect()
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'first'), (2, 'second')")
	total := 2
	for _, k := range cases {
		t.Run(k.name, func(t *testing.T) {
			c := g.connect()
			defer d.empty()
			before := g.allFiles()
			seq := rows(t, c, "SELECT max(commit_seq) FROM skade.commits")
			run(t, c, "BEGIN")
			var err error
			if k.in != nil {
				d.fill(k.match, k.after)
				err = k.in(c)
			} else {
				require.NoError(t, k.commit(c))
				d.fill(k.match, k.after)
				_, err = c.Exec(context.Background(), "COMMIT")
			}
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe)
			require.Equal(t, "53100", pe.Code, pe.Message)
			require.Positive(t, d.hit.Load())
			if k.in != nil {
				require.Equal(t, "25P02", sqlstate(t, c, "SELECT 1").Code)
				run(t, c, "ROLLBACK")
			}
			d.empty()
			require.Equal(t, [][]string{{strconv.Itoa(total)}}, rows(t, c, "SELECT count(*) FROM t"))
			require.Equal(t, seq, rows(t, c, "SELECT max(commit_seq) FROM skade.commits"))
			require.Equal(t, before, g.allFiles(), "files are left")
			run(t, c, "INSERT INTO t VALUES ("+strconv.Itoa(20_000_000+total)+", 'there is room again')")
			total++
			require.Equal(t, [][]string{{strconv.Itoa(total)}}, rows(t, c, "SELECT count(*) FROM t"))
		})
	}
}

// A disk that has no room for key indexes has room for the rows: nothing fails, and lookups work.
func TestFullDiskKeyIndex(t *testing.T) {
	d := &fullDisk{}
	g := startSmall(t, &storeio.Hooks{Before: d.before})
	c := g.connect()
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	d.fill(".keyidx", 0)
	run(t, c, "INSERT INTO t SELECT i, 'value ' || i FROM generate_series(1, 30000) i")
	run(t, c, "DELETE FROM t WHERE id % 3 = 0")
	require.Equal(t, [][]string{{"value 29999"}}, rows(t, c, "SELECT v FROM lookup('t', 29999)"))
	require.Empty(t, rows(t, c, "SELECT v FROM t WHERE id = 30000"))
	run(t, c, "VACUUM (FULL) t")
	require.Equal(t, [][]string{{"value 77"}}, rows(t, c, "SELECT v FROM t WHERE id = 77"))
	require.GreaterOrEqual(t, d.hit.Load(), int64(2), "written with the rows, at compaction")
	for _, f := range g.allFiles() {
		require.NotContains(t, f, ".keyidx")
	}
}

// A server under ulimit -f meets the limit as an error, and goes on.
func TestFileSizeLimit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	k := startCommand(t, dir, exec.Command("bash", "-c", `ulimit -f 4096; exec "$0"`, os.Args[0])) // 4 MiB
	c := k.connect(t)
	defer c.Close(context.Background())
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	require.Equal(t, "53100", sqlstate(t, c, "INSERT INTO t SELECT i, md5((i * 7)::text) || md5(i::text) FROM generate_series(1, 200000) i").Code)
	run(t, c, "INSERT INTO t VALUES (1, 'small')")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM t"))
}
