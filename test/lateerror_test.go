package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// binaryRow is a tuple of COPY's binary format: int, text, int; nil is NULL.
func binaryRow(b *bytes.Buffer, id int, v any, n int) {
	put := func(x any) { _ = binary.Write(b, binary.BigEndian, x) }
	put(int16(3))
	put(int32(4))
	put(int32(id))
	if s, ok := v.(string); ok {
		put(int32(len(s)))
		b.WriteString(s)
	} else {
		put(int32(-1))
	}
	put(int32(4))
	put(int32(n))
}

// An error in row 90,000 of COPY or INSERT … SELECT, after rows were spilled to files, is PostgreSQL 15's, with the line; nothing is left of
// the statement and the session goes on. The expected texts are what PostgreSQL 15 gives for the same table and rows.
func TestLateErrors(t *testing.T) {
	const last = 90_000
	g := startSmall(t, nil)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v varchar(5) NOT NULL, n int CHECK (n >= 0), g int GENERATED ALWAYS AS (n * 2) STORED, s serial)")
	run(t, c, "CREATE TABLE src (id int, v text, n int)")
	run(t, c, fmt.Sprintf("INSERT INTO src SELECT i, 'v', i FROM generate_series(1, %d) i", last-1))
	before := g.allFiles()
	check := func(t *testing.T, name string, err error, code, message, detail, where string) {
		t.Helper()
		var pe *pgconn.PgError
		require.ErrorAs(t, err, &pe, name)
		require.Equal(t, []string{code, message, where}, []string{pe.Code, pe.Message, pe.Where}, name)
		require.True(t, strings.HasPrefix(pe.Detail, detail), "%s: %s", name, pe.Detail)
		require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM t"), name)
		require.Equal(t, before, g.allFiles(), "%s: files are left", name)
	}
	for _, k := range []struct {
		code, message, detail string
		id                    int
		v                     any
		n                     int
		text, bin             string // what follows the line in CONTEXT
	}{
		{"23514", `new row for relation "t" violates check constraint "t_n_check"`, "Failing row contains (90000, v, -1, -2, ", last, "v", -1, `: "%s"`, ""},
		{"22001", `value too long for type character varying(5)`, "", last, "toolong", 1, `, column v: "toolong"`, ", column v"},
		{"23502", `null value in column "v" of relation "t" violates not-null constraint`, "Failing row contains (90000, null, 1, 2, ", last, nil, 1, `: "%s"`, ""},
		{"23505", `duplicate key value violates unique constraint "t_pkey"`, "Key (id)=(5) already exists.", 5, "v", 1, "", ""},
	} {
		for _, format := range []string{"text", "csv", "binary"} {
			sep, null := "\t", `\N`
			if format == "csv" {
				sep, null = ",", ""
			}
			line := func(id int, v any, n int) string {
				if v == nil {
					v = null
				}
				return fmt.Sprint(id, sep, v, sep, n)
			}
			var data io.Reader = &lines{n: last, row: func(i int) string {
				if i == last {
					return line(k.id, k.v, k.n)
				}
				return line(i, "v", i)
			}}
			where := "COPY t, line 90000" + strings.ReplaceAll(k.text, "%s", line(k.id, k.v, k.n))
			if format == "binary" {
				b := bytes.NewBufferString("PGCOPY\n\xff\r\n\x00" + strings.Repeat("\x00", 8))
				for i := 1; i < last; i++ {
					binaryRow(b, i, "v", i)
				}
				binaryRow(b, k.id, k.v, k.n)
				b.WriteString("\xff\xff")
				data, where = b, "COPY t, line 90000"+k.bin
			}
			_, err := c.PgConn().CopyFrom(context.Background(), data, "COPY t (id, v, n) FROM STDIN (FORMAT "+format+")")
			check(t, format, err, k.code, k.message, k.detail, where)
		}
		v := "NULL"
		if k.v != nil {
			v = "'" + k.v.(string) + "'"
		}
		_, err := c.Exec(context.Background(), fmt.Sprintf("INSERT INTO t (id, v, n) SELECT * FROM (SELECT * FROM src UNION ALL SELECT %d, %s, %d) x", k.id, v, k.n))
		check(t, "INSERT … SELECT", err, k.code, k.message, k.detail, "")
	}
	_, err := c.PgConn().CopyFrom(context.Background(), &lines{n: last, row: func(i int) string {
		return strconv.Itoa(i) + ",v," + strings.Repeat("x", i/last) + "1"
	}}, "COPY t (id, v, n) FROM STDIN (FORMAT csv)")
	// Of two bad rows the first counts, whatever is wrong with it.
	_, twice := copyText(c, "COPY t (id, v, n) FROM STDIN (FORMAT csv)", func(i int) string {
		return []string{"1,v,-1", "x,v,1"}[i/2]
	}, 2)
	check(t, "two", twice, "23514", `new row for relation "t" violates check constraint "t_n_check"`, "Failing row contains (1, v, -1, -2, ", `COPY t, line 1: "1,v,-1"`)
	check(t, "bad number", err, "22P02", `invalid input syntax for type integer: "x1"`, "", `COPY t, line 90000, column n: "x1"`)
}

// A cancel in the middle of COPY, INSERT … SELECT, UPDATE, DELETE and MERGE of many rows ends it at once and leaves nothing.
func TestCancelBulkWrites(t *testing.T) {
	g := startSmall(t, nil)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t SELECT i, 'v' FROM generate_series(1, 20000) i")
	before := g.allFiles()
	endless := "SELECT i * 7919 % 100000000007 + 1000000, repeat('words ', 20) FROM generate_series(1::bigint, 50000000) i"
	writes := func() bool { return len(g.allFiles()) > len(before) }
	busy := func() bool {
		return len(rows(t, other, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%words%' AND query_start < clock_timestamp() - interval '300 ms' AND pid <> pg_backend_pid()")) > 0
	}
	for _, k := range []struct {
		sql  string
		when func() bool
	}{
		{"COPY t FROM STDIN", writes},
		{"INSERT INTO t " + endless, writes},
		{"INSERT INTO t " + endless + " ON CONFLICT (id) DO UPDATE SET v = excluded.v", writes},
		{"INSERT INTO t " + endless + " RETURNING *", writes},
		{"MERGE INTO t USING (" + endless + ") s (id, v) ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)", writes},
		{"UPDATE t SET v = s.v FROM (" + endless + ") s (id, v) WHERE t.id = s.id % 20000 + 1 AND length(s.v) > 3 AND (t.id + s.id) % 3 = 0", busy},
		{"DELETE FROM t USING (" + endless + ") s (id, v) WHERE t.id + 100000000008 = s.id", busy},
	} {
		done := make(chan error, 1)
		go func() { done <- bulk(c, k.sql) }()
		require.Eventually(t, k.when, 60*time.Second, 10*time.Millisecond, k.sql)
		require.Equal(t, [][]string{{"t"}}, rows(t, other, "SELECT pg_cancel_backend("+strconv.Itoa(int(c.PgConn().PID()))+")"))
		select {
		case err := <-done:
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe, k.sql)
			require.Equal(t, "57014", pe.Code, k.sql)
		case <-time.After(30 * time.Second):
			t.Fatalf("not cancelled: %s", k.sql)
		}
		require.Equal(t, [][]string{{"20000"}}, rows(t, c, "SELECT count(*) FROM t"), k.sql)
		require.Equal(t, before, g.allFiles(), "files are left: %s", k.sql)
		require.Empty(t, rows(t, other, "SELECT * FROM skade.progress"), k.sql)
	}
}

// bulk runs a statement, feeding COPY without end.
func bulk(c *pgx.Conn, sql string) error {
	if strings.HasPrefix(sql, "COPY") {
		_, err := copyText(c, sql, func(i int) string { return strconv.Itoa(i+100_000) + "\twords and words and words" }, 1<<40)
		return err
	}
	_, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	return err
}
