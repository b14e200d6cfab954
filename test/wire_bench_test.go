package test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkWire runs small prepared statements over a connection, for profiles of the way from the wire to the answer and back.
func BenchmarkWire(b *testing.B) {
	g := start(b)
	c := g.connect()
	ctx := context.Background()
	run(b, c, "CREATE TABLE r (id bigint PRIMARY KEY, n integer, ts timestamp, name varchar(20))")
	run(b, c, "INSERT INTO r SELECT i, i % 100, timestamp '2020-01-01' + i * interval '1 second', 'name-' || i FROM generate_series(0, 99999) i")
	for _, w := range []struct {
		name, sql string
		spread    int // of the keys; 0 is one key
	}{
		{"one", "SELECT 1", 0},
		{"plus", "SELECT $1::int + 1", 0},
		{"lookup", "SELECT n, ts, name FROM r WHERE id = $1", 0},
		{"lookups", "SELECT n, ts, name FROM r WHERE id = $1", 100_000},
		{"scan", "SELECT count(*), sum(n) FROM r WHERE n > 50", 0},
	} {
		b.Run(w.name, func(b *testing.B) {
			pc := c.PgConn()
			sd, err := pc.Prepare(ctx, w.name, w.sql, nil)
			require.NoError(b, err)
			var args [][]byte
			for range sd.ParamOIDs {
				args = append(args, []byte("77"))
			}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				if w.spread > 0 {
					n = (n + 7919) % w.spread
					args[0] = strconv.AppendInt(args[0][:0], int64(n), 10)
				}
				r := pc.ExecPrepared(ctx, w.name, args, nil, nil).Read()
				if r.Err != nil || len(r.Rows) != 1 {
					b.Fatal(r.Err, len(r.Rows))
				}
			}
		})
	}
	b.Run("simple", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.PgConn().Exec(ctx, "SELECT 1").ReadAll(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCopyIn loads 200,000 csv rows with a key.
func BenchmarkCopyIn(b *testing.B) {
	g := start(b)
	c := g.connect()
	ctx := context.Background()
	run(b, c, "CREATE TABLE r (id bigint PRIMARY KEY, n integer, x double precision, d date, ts timestamp, name varchar(20))")
	var csv bytes.Buffer
	for i := range 200_000 {
		fmt.Fprintf(&csv, "%d,%d,%v,2021-03-%02d,2020-01-01 00:%02d:%02d,name-of-%010d\n", i, i*7919%100003, float64(i)/7, i%28+1, i/60%60, i%60, i)
	}
	b.SetBytes(int64(csv.Len()))
	for b.Loop() {
		run(b, c, "TRUNCATE r")
		tag, err := c.PgConn().CopyFrom(ctx, bytes.NewReader(csv.Bytes()), "COPY r FROM STDIN (FORMAT csv)")
		require.NoError(b, err)
		require.Equal(b, "COPY 200000", tag.String())
	}
}

// BenchmarkTableChanges aggregates the changes of an update of neighbouring rows.
func BenchmarkTableChanges(b *testing.B) {
	g := start(b)
	c := g.connect()
	run(b, c, "CREATE TABLE r (id bigint PRIMARY KEY, a bigint, b varchar(20))")
	run(b, c, "INSERT INTO r SELECT i, i * 7, 'row ' || i FROM generate_series(1, 1000000) i")
	seq := rows(b, c, "SELECT current_commit_seq()")[0][0]
	run(b, c, "UPDATE r SET a = a + 1 WHERE id BETWEEN 300001 AND 400000")
	for b.Loop() {
		got := rows(b, c, "SELECT _change_type, count(*), sum(a), min(b), max(b) FROM table_changes('r', 'seq:"+seq+"', 'now') GROUP BY 1 ORDER BY 1")
		require.Len(b, got, 2)
		require.Equal(b, "100000", got[0][1])
	}
}

// BenchmarkUpsertCommit is P9's work from one writer: a prepared upsert of one row, a commit each.
func BenchmarkUpsertCommit(b *testing.B) {
	g := start(b)
	c := g.connect()
	run(b, c, "CREATE TABLE w (id bigint PRIMARY KEY, v int, t text)")
	ctx := context.Background()
	b.ResetTimer()
	for i := range b.N {
		if _, err := c.Exec(ctx, "INSERT INTO w VALUES ($1, 1, 'text') ON CONFLICT (id) DO UPDATE SET v = w.v + 1", i*7919%10_000); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}
