package duck

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// TestStreamConstantMemory holds D2: a result of about 1 GB passes with the process's memory bounded, and DuckDB runs ahead of
// the reader by no more than its buffer, counted in rows that a function of ours has computed.
func TestStreamConstantMemory(t *testing.T) {
	computed := 0
	var mu sync.Mutex
	db := openTest(t, Options{MemoryLimit: 256 << 20, Funcs: []Func{{
		Name: "skade_wide", Args: []string{"BIGINT"}, Ret: "VARCHAR", Volatile: true,
		Fn: func(a []Value) (Value, error) {
			mu.Lock()
			computed++
			mu.Unlock()
			return Value{S: strings.Repeat("x", 2000)}, nil
		},
	}}})
	c := connTest(t, db)
	s, err := c.Prepare(context.Background(), "SELECT skade_wide(i) FROM range(500000) t(i)")
	require.NoError(t, err)
	defer s.Close()
	r, err := s.Query(context.Background(), nil)
	require.NoError(t, err)
	defer r.Close()
	var buf []byte
	sent, bytes, ahead, largest := 0, 0, 0, 0
	for done := false; !done; {
		var n int
		buf, n, done, err = r.AppendDataRows(buf[:0], nil, nil, nil, 0)
		require.NoError(t, err)
		sent += n
		bytes += len(buf)
		largest = max(largest, len(buf))
		mu.Lock()
		ahead = max(ahead, computed-sent)
		mu.Unlock()
	}
	require.Equal(t, 500_000, sent)
	require.Greater(t, bytes, 1_000_000_000)
	require.Less(t, largest, softLimit+4096)
	require.Less(t, ahead, 20*vectorSize, "rows computed before the reader wanted them")
}

// TestStreamResume: a row limit stops inside a chunk and goes on there.
func TestStreamResume(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	for _, limit := range []int{1, 7, 2048, 5000} {
		rows, err := rowsOf(c, "SELECT i FROM range(5000) t(i)", request{max: limit})
		require.NoError(t, err)
		require.Len(t, rows, 5000)
		for i, r := range rows {
			require.Equal(t, fmt.Sprint(i), string(r[0]))
		}
	}
	// A batch takes what is left of a chunk.
	s, err := c.Prepare(context.Background(), "SELECT i FROM range(3000) t(i)")
	require.NoError(t, err)
	defer s.Close()
	r, err := s.Query(context.Background(), nil)
	require.NoError(t, err)
	_, n, done, err := r.AppendDataRows(nil, nil, nil, nil, 10)
	require.NoError(t, err)
	require.Equal(t, 10, n)
	require.False(t, done)
	total := int64(0)
	for {
		rec, err := r.NextBatch(context.Background())
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		total += rec.NumRows()
		rec.Release()
	}
	require.Equal(t, int64(2990), total)
	r.Close()
	r.Close()
	_, _, _, err = r.AppendDataRows(nil, nil, nil, nil, 0)
	require.ErrorIs(t, err, ErrClosed)
}

// TestStreamWide: a chunk larger than DuckDB's stream buffer still passes.
func TestStreamWide(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	cols := make([]string, 400)
	for i := range cols {
		cols[i] = fmt.Sprintf("'a rather long string ' || (i + %d)", i)
	}
	rows, err := rowsOf(c, "SELECT "+strings.Join(cols, ", ")+" FROM range(6000) t(i)", request{})
	require.NoError(t, err)
	require.Len(t, rows, 6000)
	require.Len(t, rows[0], 400)
}

// TestStreamNoAllocation holds D4.
func TestStreamNoAllocation(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	const sql = "SELECT i, i::INTEGER, (i * 1.5)::DECIMAL(12,2), i::DOUBLE / 7, 'text ' || i, DATE '2020-01-01' + (i % 100)::INTEGER, TIMESTAMPTZ '2020-01-01 00:00:00+00' + INTERVAL (i) SECOND, [i, i + 1] FROM range(200000) t(i)"
	for format := range int16(2) {
		s, err := c.Prepare(context.Background(), sql)
		require.NoError(t, err)
		r, err := s.Query(context.Background(), nil)
		require.NoError(t, err)
		oslo, _ := time.LoadLocation("Europe/Oslo")
		formats := []int16{format}
		buf := make([]byte, 0, 4<<20)
		var before, after runtime.MemStats
		_, _, _, err = r.AppendDataRows(buf, formats, nil, oslo, 0)
		require.NoError(t, err)
		runtime.ReadMemStats(&before)
		rows := 0
		for done := false; !done; {
			var n int
			_, n, done, err = r.AppendDataRows(buf, formats, nil, oslo, 0)
			require.NoError(t, err)
			rows += n
		}
		runtime.ReadMemStats(&after)
		perRow := float64(after.Mallocs-before.Mallocs) / float64(rows)
		require.Less(t, perRow, 0.05, "allocations a row, format %d", format)
		r.Close()
		s.Close()
	}
}

// TestCancel holds D3: before, during and between fetches.
func TestCancel(t *testing.T) {
	db := openTest(t, Options{})
	c := connTest(t, db)
	const heavy = "SELECT count(*) FROM range(100000000) a(i), range(100000) b(j) WHERE (i * j) % 7 = 3"
	cause := pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
	for name, after := range map[string]time.Duration{"at once": 0, "running": 30 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			s, err := c.Prepare(context.Background(), heavy)
			require.NoError(t, err)
			defer s.Close()
			ctx, cancel := context.WithCancelCause(context.Background())
			timer := time.AfterFunc(after, func() { cancel(cause) })
			defer timer.Stop()
			_, err = s.Query(ctx, nil)
			require.ErrorIs(t, err, cause)
			require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
		})
	}
	t.Run("between fetches", func(t *testing.T) {
		s, err := c.Prepare(context.Background(), "SELECT i FROM range(100000000) t(i)")
		require.NoError(t, err)
		defer s.Close()
		ctx, cancel := context.WithCancelCause(context.Background())
		r, err := s.Query(ctx, nil)
		require.NoError(t, err)
		_, _, _, err = r.AppendDataRows(nil, nil, nil, nil, 0)
		require.NoError(t, err)
		cancel(cause)
		for err == nil {
			_, _, _, err = r.AppendDataRows(nil, nil, nil, nil, 0)
		}
		require.ErrorIs(t, err, cause)
		_, err = s.Query(context.Background(), nil)
		require.ErrorIs(t, err, ErrBusy)
		r.Close()
		require.Equal(t, [][]string{{"1"}}, textOf(t, c, "SELECT 1"))
	})
	t.Run("exec", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := c.Exec(ctx, heavy)
		require.Equal(t, pgerr.QueryCanceled, pgerr.CodeOf(err))
	})
}

// TestClosedEarly: a stream that nobody reads to its end leaves nothing behind.
func TestClosedEarly(t *testing.T) {
	db := openTest(t, Options{})
	for range 20 {
		c, err := db.Conn(context.Background())
		require.NoError(t, err)
		s, err := c.Prepare(context.Background(), "SELECT i, repeat('x', 1000) FROM range(10000000) t(i)")
		require.NoError(t, err)
		_, err = s.Query(context.Background(), nil)
		require.NoError(t, err)
		s.Close()
		c.Close()
		c.Close()
	}
	require.Len(t, db.mu.idle, 1)
}

// TestLockDown holds D1 and the second door of S2.
func TestLockDown(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	secret := filepath.Join(other, "secret.csv")
	require.NoError(t, os.WriteFile(secret, []byte("a\n1\n"), 0o600))
	db := openTest(t, Options{AllowedDirs: []string{dir}, TempDir: t.TempDir(), InitSQL: []string{"CREATE SCHEMA sk", "CREATE MACRO sk.twice(x) AS x * 2"}})
	c := connTest(t, db)
	require.Equal(t, [][]string{{"4"}}, textOf(t, c, "SELECT sk.twice(2)"))
	for _, sql := range []string{
		"SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_csv('" + secret + "')", "SELECT * FROM '" + secret + "'",
		"SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM read_blob('" + dir + "/../" + filepath.Base(other) + "/secret.csv')", "SELECT * FROM read_parquet('/etc/passwd')",
		"COPY (SELECT 1) TO '" + filepath.Join(other, "x.csv") + "'", "ATTACH '" + filepath.Join(other, "x.db") + "'", "EXPORT DATABASE '" + other + "'",
		"INSTALL httpfs", "LOAD httpfs", "SELECT * FROM read_csv('https://example.com/x.csv')", "SELECT * FROM glob('/etc/*')",
		"SET memory_limit = '1GB'", "SET threads = 64", "SET enable_external_access = true", "SET lock_configuration = false", "RESET allowed_directories",
		"SET allowed_directories = ['/']", "SET temp_directory = '/'", "SET profiling_output = '/tmp/x'", "PRAGMA profiling_output = '/tmp/x'", "SET enable_profiling = 'json'", "CREATE PERSISTENT SECRET s (TYPE s3)",
	} {
		_, err := c.Exec(context.Background(), sql)
		if strings.HasPrefix(sql, "SELECT * FROM glob") && err == nil {
			require.Empty(t, textOf(t, c, sql))
			continue
		}
		require.Error(t, err, sql)
		noLeak(t, pgerr.As(err))
	}
	entries, err := os.ReadDir(other)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was written")
	require.NoError(t, c.SetTimeZone(context.Background(), "Europe/Oslo"))
	require.Equal(t, pgerr.InvalidParameterValue, pgerr.CodeOf(c.SetTimeZone(context.Background(), "Nowhere/Land")))
}

// TestTimeZoneOfPooledConn: a zone does not leak to the next user of the connection.
func TestTimeZoneOfPooledConn(t *testing.T) {
	db := openTest(t, Options{})
	c, err := db.Conn(context.Background())
	require.NoError(t, err)
	require.NoError(t, c.SetTimeZone(context.Background(), "Asia/Tokyo"))
	require.Equal(t, [][]string{{"9"}}, textOf(t, c, "SELECT hour(TIMESTAMPTZ '2020-01-01 00:00:00+00')"))
	c.Close()
	next := connTest(t, db)
	require.Same(t, c, next, "pooled")
	first := textOf(t, next, "SELECT hour(TIMESTAMPTZ '2020-01-01 00:00:00+00')")
	fresh, err := db.connect()
	require.NoError(t, err)
	defer fresh.discard()
	require.Equal(t, textOf(t, fresh, "SELECT hour(TIMESTAMPTZ '2020-01-01 00:00:00+00')"), first)
}

// TestPostgresSettings: division and the order of NULLs.
func TestPostgresSettings(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	require.Equal(t, [][]string{{"3"}}, textOf(t, c, "SELECT 7 / 2"))
	require.Equal(t, [][]string{{"1"}, {"∅"}}, textOf(t, c, "SELECT * FROM (VALUES (NULL), (1)) t(a) ORDER BY a"))
	require.Equal(t, [][]string{{"∅"}, {"1"}}, textOf(t, c, "SELECT * FROM (VALUES (NULL), (1)) t(a) ORDER BY a DESC"))
}

// TestDescribe: parameters and columns before execution; unresolved ones are reported.
func TestDescribe(t *testing.T) {
	c := connTest(t, openTest(t, Options{}))
	s, err := c.Prepare(context.Background(), "SELECT $1::INTEGER AS a, $2::VARCHAR AS b, 1.50::DECIMAL(9,2) AS d")
	require.NoError(t, err)
	require.True(t, s.Resolved())
	require.Equal(t, []Param{{pgtype.Int4, "INTEGER"}, {pgtype.Text, "VARCHAR"}}, s.Params())
	require.Equal(t, []Column{{"a", pgtype.Int4, 4, -1, "INTEGER"}, {"b", pgtype.Text, -1, -1, "VARCHAR"}, {"d", pgtype.Numeric, -1, 9<<16 + 2 + 4, "DECIMAL(9,2)"}}, s.Columns())
	_, err = s.Query(context.Background(), []any{int32(1)})
	require.ErrorIs(t, err, ErrArguments)
	s.Close()
	s, err = c.Prepare(context.Background(), "SELECT $1 + 1 AS a")
	require.NoError(t, err)
	defer s.Close()
	require.False(t, s.Resolved())
	require.Nil(t, s.Columns())
	require.Equal(t, 1, s.NumParams())
	require.Zero(t, s.Params()[0].TypeOID)
	for _, arg := range []any{int64(41), 0.5, Date(3), int64(1)} {
		r, err := s.Query(context.Background(), []any{arg})
		require.NoError(t, err)
		_, n, _, err := r.AppendDataRows(nil, nil, nil, nil, 0)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		r.Close()
	}
	_, err = s.Query(context.Background(), []any{"7"})
	require.Equal(t, pgerr.AmbiguousFunction, pgerr.CodeOf(err), "%v", err)
	require.Equal(t, "operator is not unique: unknown + integer", pgerr.As(err).Message)
	// It runs all the same, with the value's type; so does a parameter of a table function, which DuckDB leaves open.
	open, err := c.Prepare(context.Background(), "SELECT a FROM generate_series(1, $1::BIGINT) t(a)")
	require.NoError(t, err)
	require.False(t, open.Resolved())
	open.Close()
	require.Equal(t, [][]string{{"1"}, {"2"}}, textOf(t, c, "SELECT a FROM generate_series(1, $1::BIGINT) t(a)", int64(2)))
	require.Equal(t, [][]string{{"42"}}, textOf(t, c, "SELECT $1 + 1 AS a", int64(41)))
}
