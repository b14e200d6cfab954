package duck

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// run reads sql to its end and returns the number of rows.
func run(b testing.TB, c *Conn, sql string, formats []int16, buf []byte) ([]byte, int) {
	s, err := c.Prepare(context.Background(), sql)
	require.NoError(b, err)
	defer s.Close()
	r, err := s.Query(context.Background(), nil)
	require.NoError(b, err)
	defer r.Close()
	rows := 0
	for done := false; !done; {
		var n int
		buf, n, done, err = r.AppendDataRows(buf[:0], formats, nil, nil, 0)
		require.NoError(b, err)
		rows += n
	}
	return buf, rows
}

// BenchmarkRows encodes 1M rows × 6 columns (P7).
func BenchmarkRows(b *testing.B) {
	db := openTest(b, Options{InitSQL: []string{`CREATE TABLE t AS SELECT i::INTEGER AS a, i AS b, i * 0.25::DOUBLE AS c, ('name ' || (i % 1000)) AS d,
		DATE '2020-01-01' + (i % 1000)::INTEGER AS e, TIMESTAMP '2020-01-01 00:00:00' + INTERVAL (i) SECOND AS f FROM range(1000000) t(i)`}})
	c := connTest(b, db)
	for name, formats := range map[string][]int16{"text": nil, "binary": {1}} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			n := 0
			for b.Loop() {
				var k int
				buf, k = run(b, c, "SELECT * FROM t", formats, buf)
				n += k
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkSuppressed compares ways to leave suppressed rows out, as ratios to a clean scan, each way's best of rounds that
// take turns: docs/decisions/0002-suppressed-rows.md.
func BenchmarkSuppressed(b *testing.B) {
	const rows = 1_000_000
	dir := b.TempDir()
	path := dir + "/f.parquet"
	writeParquet(b, path, fmt.Sprintf("SELECT i AS id, i * 2 AS v, 'name' || (i %% 1000) AS s, (i %% 100)::DECIMAL(10,2) AS d FROM range(%d) t(i)", rows), "FIELD_IDS {id: 1, v: 2, s: 3, d: 4}")
	db := openTest(b, Options{AllowedDirs: []string{dir}, Threads: 1})
	c := connTest(b, db)
	cols := append(idColumns[:1:1], ScanColumn{FieldID: 2, Name: "v", DuckType: "BIGINT"}, ScanColumn{FieldID: 3, Name: "s", DuckType: "VARCHAR"}, ScanColumn{FieldID: 4, Name: "d", DuckType: "DECIMAL(10,2)"})
	type way struct{ name, sql string }
	var ways []way
	for n, q := range map[int]string{2: "sum(id), sum(v)", 4: "sum(id), sum(v), max(s), sum(d)"} {
		for _, every := range []int{0, 100, 10} {
			sc := Scan{Files: []ScanFile{{Path: path, Rows: rows}}, Columns: cols}
			var pos []int64
			if every > 0 {
				bm := roaring.New()
				for i := 0; i < rows; i += every {
					bm.Add(uint32(i))
					pos = append(pos, int64(i))
				}
				sc.Files[0].Suppressed = bm
				ways = append(ways, way{fmt.Sprintf("%dcol/1in%d/antijoin", n, every), "SELECT " + q + " FROM " + antiJoin(b, db, sc, pos)})
			}
			ways = append(ways, way{fmt.Sprintf("%dcol/1in%d/filter", n, every), "SELECT " + q + " FROM " + scanItem(b, db, sc)})
		}
	}
	best := map[string]float64{}
	for b.Loop() {
		for _, w := range ways {
			start := time.Now()
			run(b, c, w.sql, nil, nil)
			if d := time.Since(start).Seconds(); best[w.name] == 0 || d < best[w.name] {
				best[w.name] = d
			}
		}
	}
	for _, w := range ways {
		b.ReportMetric(best[w.name]/best[w.name[:4]+"/1in0/filter"], w.name+"_x")
	}
}

func antiJoin(b *testing.B, db *DB, sc Scan, pos []int64) string {
	schema := arrow.NewSchema([]arrow.Field{{Name: "f", Type: arrow.PrimitiveTypes.Int64}, {Name: "p", Type: arrow.PrimitiveTypes.Int64}}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	rb.Field(0).(*array.Int64Builder).AppendValues(make([]int64, len(pos)), nil)
	rb.Field(1).(*array.Int64Builder).AppendValues(pos, nil)
	rec := rb.NewRecordBatch()
	id, release, err := db.RegisterRelation(schema, int64(len(pos)), oneBatch(rec))
	require.NoError(b, err)
	b.Cleanup(release)
	rel := "skade_rel('" + id + "')"
	sc.Files = []ScanFile{sc.Files[0]}
	sc.Files[0].Suppressed = nil
	clean := sc.readSQL([]int{0}, " r ANTI JOIN "+rel+" d ON d.f = r.file_index::BIGINT AND d.p = r.file_row_number")
	return "(" + clean + ")"
}

// BenchmarkRelation aggregates 2M rows that come from Go.
func BenchmarkRelation(b *testing.B) {
	db := openTest(b, Options{})
	c := connTest(b, db)
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range 2_000_000 {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("name number %d", i%1000))
	}
	rec := rb.NewRecordBatch()
	rel := relationTest(b, db, schema, oneBatch(rec))
	for _, q := range []string{"sum(a)", "max(s)"} {
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				run(b, c, "SELECT "+q+" FROM "+rel, nil, nil)
			}
			b.ReportMetric(2e6*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkStatement is the overhead of a statement (P8).
func BenchmarkStatement(b *testing.B) {
	db := openTest(b, Options{})
	c := connTest(b, db)
	b.Run("prepare", func(b *testing.B) {
		for b.Loop() {
			s, err := c.Prepare(context.Background(), "SELECT 1")
			require.NoError(b, err)
			s.Close()
		}
	})
	b.Run("run", func(b *testing.B) {
		for b.Loop() {
			run(b, c, "SELECT 1", nil, nil)
		}
	})
	b.Run("conn", func(b *testing.B) {
		for b.Loop() {
			c, err := db.connect()
			require.NoError(b, err)
			c.discard()
		}
	})
}
