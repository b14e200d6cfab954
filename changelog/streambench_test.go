package changelog_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// BenchmarkStreamHop is the time from the moment a commit of one row has returned to the moment a waiting Stream has its rows: µs-p50 and
// µs-p99. µs-wake is the part of it until a bare subscription has the commit (p50): on a busy machine both wait for a processor. Commits
// come one by one, as an upsert each, into a table that has some already.
func BenchmarkStreamHop(b *testing.B) {
	ctx := context.Background()
	k := testkit.Open(b)
	sc := testkit.Columns([]string{"id"}, "id long", "n long", "name string", "v double")
	ident := k.Table(b, "s.t", 2, sc)
	upsert := func(i int) uint64 {
		return k.Do(b, ident, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, testkit.Batch(sc, []any{i % 100, i, "name", 0.5}), warehouse.Replace)
			return err
		}).Seq
	}
	for i := range 200 {
		upsert(i)
	}
	r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: k.Live, TempDir: b.TempDir()})
	type arrival struct {
		seq uint64
		at  time.Time
	}
	arrivals, ready := make(chan arrival, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sub, woken := k.Catalog.SubscribeCommits(), make(chan time.Time, 1)
	defer sub.Close()
	go func() {
		defer close(woken)
		for {
			if _, err := sub.Next(ctx); err != nil {
				return
			}
			woken <- time.Now()
		}
	}()
	r.SetStreamHooks(func() { close(ready) }, nil)
	go func() {
		defer close(arrivals)
		for batch, err := range r.Stream(ctx, ident, changelog.Null, changelog.StreamOptions{}) {
			if err != nil {
				return
			}
			arrivals <- arrival{batch.To.Seq, time.Now()}
		}
	}()
	<-ready
	var hops, wakes []time.Duration
	b.ResetTimer()
	for i := range b.N {
		seq := upsert(i)
		committed := time.Now()
		a := <-arrivals
		require.Equal(b, seq, a.seq)
		hops = append(hops, max(a.at.Sub(committed), 0))
		wakes = append(wakes, max((<-woken).Sub(committed), 0))
	}
	b.StopTimer()
	cancel()
	for range arrivals {
	}
	for range woken {
	}
	slices.Sort(hops)
	slices.Sort(wakes)
	b.ReportMetric(float64(wakes[len(wakes)/2].Nanoseconds())/1e3, "µs-wake")
	b.ReportMetric(float64(hops[len(hops)/2].Nanoseconds())/1e3, "µs-p50")
	b.ReportMetric(float64(hops[len(hops)*99/100].Nanoseconds())/1e3, "µs-p99")
}
