package warehouse_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// BenchmarkBulkAppend appends 1M keyed rows of (long, string, int) in one transaction, keys in random order.
func BenchmarkBulkAppend(b *testing.B) {
	const batches, rows = 100, 10_000
	recs := make([]arrow.RecordBatch, batches)
	for i := range recs {
		var rs [][]any
		for j := range rows {
			n := i*rows + j
			rs = append(rs, person(int(uint32(n*2654435761)), fmt.Sprint("name ", n%1000), n))
		}
		recs[i] = rowsOf(people(), rs...)
	}
	k := testkit.OpenWith(b, testkit.Options{Sync: true})
	b.ResetTimer()
	for i := range b.N {
		id := k.Table(b, fmt.Sprint("s.t", i), 2, people())
		k.Do(b, id, func(tt *warehouse.TxTable) error {
			for _, r := range recs {
				if err := tt.Append(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(float64(batches*rows*b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkUpsertCommit is commits of one upserted row, one after the other.
func BenchmarkUpsertCommit(b *testing.B) {
	for _, v := range []int{2, 3} {
		b.Run(fmt.Sprintf("v%d", v), func(b *testing.B) {
			k := testkit.OpenWith(b, testkit.Options{Sync: true})
			id := k.Table(b, "s.t", v, people())
			for i := range b.N {
				k.Do(b, id, func(tt *warehouse.TxTable) error {
					_, err := tt.Upsert(ctx, rowsOf(people(), person(i%100, "x", i)), warehouse.Replace)
					require.NoError(b, err)
					return nil
				})
			}
		})
	}
}

// BenchmarkOneTableWriters is commits of one upserted row by 64 writers on one table.
func BenchmarkOneTableWriters(b *testing.B) {
	k := testkit.OpenWith(b, testkit.Options{Sync: true})
	id := k.Table(b, "s.t", 2, people())
	before := k.FS.Counters().Fsyncs.Load()
	work := make(chan int)
	done := make(chan error)
	for range 64 {
		go func() {
			var err error
			for i := range work {
				_, e := k.TryDo(id, func(tt *warehouse.TxTable) error { return tt.Append(ctx, rowsOf(people(), person(i, "x", i))) })
				if e != nil {
					err = e
				}
			}
			done <- err
		}()
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	for range 64 {
		require.NoError(b, <-done)
	}
	b.ReportMetric(float64(k.FS.Counters().Fsyncs.Load()-before)/float64(b.N), "fsyncs/commit")
}
