package lookup_test

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

var benchRows = flag.Int("bench.rows", 1_000_000, "rows of the tables that BenchmarkGet probes, written in 100 commits, then every tenth upserted")

// benchTable is a table of rows (id, n, name) whose ids, or names when text is the key, are those of even numbers.
type benchTable struct {
	k     *testkit.Kit
	ident table.Identifier
	text  bool
	rows  int64
	plain bool // nothing was upserted

	data, index int64 // bytes of the table's data files and key indexes
}

func (x *benchTable) name(id int64) string { return fmt.Sprintf("name-of-%012d", id) }

// value is what n is: the upsert changes it where the number of the row is divisible by ten.
func (x *benchTable) value(row int64) int64 {
	if row%10 == 0 && !x.plain {
		return 2*row + 1
	}
	return 2 * row
}

func (x *benchTable) batch(rows []int64, salt int64) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "n", Type: arrow.PrimitiveTypes.Int64}, {Name: "name", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(2 * r)
		b.Field(1).(*array.Int64Builder).Append(2*r + salt)
		b.Field(2).(*array.StringBuilder).Append(x.name(2 * r))
	}
	return b.NewRecordBatch()
}

func newBenchTable(b *testing.B, rows, commits int64, upsert, text bool) *benchTable {
	b.Helper()
	x := &benchTable{k: testkit.Open(b), text: text, rows: rows, plain: !upsert}
	key := "id"
	if text {
		key = "name"
	}
	sc := testkit.Columns([]string{key}, "id long", "n long", "name string")
	x.ident = x.k.Table(b, "s.bench", 2, sc)
	as, err := parquetio.ArrowSchema(sc, false)
	require.NoError(b, err)
	typed := func(rec arrow.RecordBatch) arrow.RecordBatch {
		return array.NewRecordBatch(as, rec.Columns(), rec.NumRows())
	}
	per := rows / commits
	for lo := int64(0); lo < rows; lo += per {
		ids := make([]int64, 0, per)
		for r := lo; r < min(lo+per, rows); r++ {
			ids = append(ids, r)
		}
		x.k.Append(b, x.ident, typed(x.batch(ids, 0)))
	}
	const most = 10_000_000 // rows whose tenth is upserted at once
	for lo := int64(0); upsert && lo < rows; lo += most {
		var tenth []int64
		for r := lo; r < min(lo+most, rows); r += 10 {
			tenth = append(tenth, r)
		}
		x.k.Do(b, x.ident, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, typed(x.batch(tenth, 1)), warehouse.Replace)
			return err
		})
	}
	x.sizes(b)
	return x
}

// sizes finds what the table's files take.
func (x *benchTable) sizes(b *testing.B) {
	require.NoError(b, filepath.WalkDir(x.k.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		switch filepath.Ext(path) {
		case ".parquet":
			x.data += st.Size()
		case ".keyidx":
			x.index += st.Size()
		}
		return nil
	}))
}

// processorTime is what the process has used so far, of all cores and the collector's: of use where others share the machine.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// probe looks up the row and checks the answer; odd ids are absent.
func (x *benchTable) probe(b *testing.B, ctx context.Context, p *lookup.Lookuper, key *lookup.Key, id int64) {
	key.Reset()
	if x.text {
		key.String(x.name(id))
	} else {
		key.Int(id)
	}
	rec, err := p.Get(ctx, key)
	if err != nil {
		b.Fatal(err)
	}
	switch {
	case id%2 == 1 && rec.NumRows() != 0, id%2 == 0 && rec.NumRows() != 1:
		b.Fatalf("key %d: %d rows", id, rec.NumRows())
	case id%2 == 0:
		if n := rec.Column(1).(*array.Int64).Value(0); n != x.value(id/2) || rec.Column(0).(*array.Int64).Value(0) != id {
			b.Fatalf("key %d: %v", id, rec)
		}
	}
	rec.Release()
}

// run probes b.N ids and reports what one cost. cache is of rows, in bytes; negative is none.
func (x *benchTable) run(b *testing.B, cache int64, next func(rng *rand.Rand) int64) {
	x.runOn(b, x.k.Live, cache, next)
}

func (x *benchTable) runOn(b *testing.B, live *liveset.Cache, cache int64, next func(rng *rand.Rand) int64) {
	l := lookup.New(lookup.Options{Live: live, CacheBytes: cache})
	p, err := l.Prepare(ctx, lookup.Target{Cut: x.k.Catalog.Cut(), Ident: x.ident})
	require.NoError(b, err)
	key, rng := p.NewKey(), rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		x.probe(b, ctx, p, key, next(rng))
	}
	before, began := live.ProbeCounts(), processorTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		x.probe(b, ctx, p, key, next(rng))
	}
	x.report(b, live.ProbeCounts().Sub(before), processorTime(b)-began)
}

func (x *benchTable) report(b *testing.B, n liveset.ProbeCounts, cpu time.Duration) {
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(x.index)/float64(x.rows), "index-bytes/row")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
	for unit, v := range map[string]int64{"reads/op": n.Reads, "bytes/op": n.Bytes, "decoded/op": n.Decoded, "opens/op": n.Opens, "needless/op": n.Needless} {
		b.ReportMetric(float64(v)/float64(b.N), unit)
	}
}

func (x *benchTable) present(rng *rand.Rand) int64 { return 2 * rng.Int64N(x.rows) }
func (x *benchTable) absent(rng *rand.Rand) int64  { return 2*rng.Int64N(x.rows) + 1 }

// BenchmarkGet probes one key of an upserted table (int8, int8, text20) by its int8: hot keys come from the row cache, uniform ones from the index and one
// page a column, absent ones end at the index; pages is uniform with a cache that holds a tenth of the pages.
func BenchmarkGet(b *testing.B) {
	x := newBenchTable(b, int64(*benchRows), 100, true, false)
	b.Run("hot", func(b *testing.B) { x.run(b, 0, func(rng *rand.Rand) int64 { return 2 * rng.Int64N(1000) }) })
	b.Run("uniform", func(b *testing.B) { x.run(b, -1, x.present) })
	b.Run("absent", func(b *testing.B) { x.run(b, -1, x.absent) })
	// Beyond the cache: indexes and a tenth of the pages fit.
	few := liveset.NewCache(liveset.Options{FS: x.k.FS, Budget: 8 << 20 * x.rows / 1_000_000})
	b.Run("pages", func(b *testing.B) { x.runOn(b, few, -1, x.present) })
}

// BenchmarkGetText is BenchmarkGet by the text: an index of fingerprints.
func BenchmarkGetText(b *testing.B) {
	x := newBenchTable(b, int64(*benchRows), 100, true, true)
	b.Run("hot", func(b *testing.B) { x.run(b, 0, func(rng *rand.Rand) int64 { return 2 * rng.Int64N(1000) }) })
	b.Run("uniform", func(b *testing.B) { x.run(b, -1, x.present) })
	b.Run("absent", func(b *testing.B) { x.run(b, -1, x.absent) })
}

// BenchmarkCold is the first lookup of a process that has read nothing of the table: its live set, then one key.
func BenchmarkCold(b *testing.B) { newBenchTable(b, int64(*benchRows), 100, true, false).cold(b) }

// BenchmarkReference has the shape of another system's published figure: 32 appended files of one row group of 1,000 rows, nothing suppressed, 200 keys.
func BenchmarkReference(b *testing.B) {
	x := newBenchTable(b, 32_000, 32, false, false)
	for name, cache := range map[string]int64{"cached": 0, "uncached": -1} {
		b.Run(name, func(b *testing.B) {
			i := int64(0)
			x.run(b, cache, func(*rand.Rand) int64 { i++; return 2 * (i % 200 * 7919 % x.rows) })
		})
	}
}

func (x *benchTable) cold(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	var n liveset.ProbeCounters
	counted := liveset.WithProbeCounters(ctx, &n)
	began := processorTime(b)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		live := liveset.NewCache(liveset.Options{FS: storeio.NewFS(storeio.Options{NoSync: true})})
		p, err := lookup.New(lookup.Options{Live: live}).Prepare(counted, lookup.Target{Cut: x.k.Catalog.Cut(), Ident: x.ident})
		require.NoError(b, err)
		x.probe(b, counted, p, p.NewKey(), 2*rng.Int64N(x.rows))
	}
	x.report(b, n.Counts(), processorTime(b)-began)
}
