package lookup_test

import (
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/lookup"
)

var benchRows = flag.Int("bench.rows", 1_000_000, "rows of the table that BenchmarkGet probes, in 100 commits and an upsert of every tenth")

// BenchmarkGet probes one key of an upserted table (int8, int8, text20): hot keys come from the row cache, cold ones from
// the index and one page a column.
func BenchmarkGet(b *testing.B) {
	k := testkit.Open(b)
	n := int64(*benchRows)
	ident := wide(b, k, int(n), int(n)/100)
	for _, c := range []struct {
		name  string
		keys  int64
		cache int64
	}{{"hot", 1000, 0}, {"uniform", n, -1}} {
		b.Run(c.name, func(b *testing.B) {
			l := lookup.New(lookup.Options{Live: k.Live, CacheBytes: c.cache})
			p, err := l.Prepare(ctx, lookup.Target{Cut: k.Catalog.Cut(), Ident: ident})
			require.NoError(b, err)
			key, rng := p.NewKey(), rand.New(rand.NewPCG(1, 1))
			for range 2000 {
				rec, err := p.Get(ctx, key.Reset().Int(rng.Int64N(c.keys)))
				require.NoError(b, err)
				rec.Release()
			}
			var count parquetio.Counters
			counted, opens := parquetio.WithCounters(ctx, &count), k.FS.Counters().Opens.Load()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				id := rng.Int64N(c.keys)
				rec, err := p.Get(counted, key.Reset().Int(id))
				if err != nil || rec.NumRows() != 1 {
					b.Fatalf("key %d: %v %v", id, rec, err)
				}
				rec.Release()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
			per := func(v int64) float64 { return float64(v) / float64(b.N) }
			b.ReportMetric(per(count.Reads.Load()), "reads/op")
			b.ReportMetric(per(count.Bytes.Load()), "bytes/op")
			b.ReportMetric(per(count.Rows.Load()), "decoded/op")
			b.ReportMetric(per(k.FS.Counters().Opens.Load()-opens), "opens/op")
		})
	}
}
