package lookup_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/lookup"
)

// BenchmarkGet probes one key of an upserted table (int8, int8, text20): hot keys come from the row cache, cold ones from
// the index and one page a column.
func BenchmarkGet(b *testing.B) {
	k := testkit.Open(b)
	const n = 1_000_000
	ident := wide(b, k, n, 100_000)
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
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				id := rng.Int64N(c.keys)
				rec, err := p.Get(ctx, key.Reset().Int(id))
				if err != nil || rec.NumRows() != 1 {
					b.Fatalf("key %d: %v %v", id, rec, err)
				}
				rec.Release()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
		})
	}
}
