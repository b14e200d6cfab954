package changelog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// BenchmarkChanges reads the changes of one commit: an append, an upsert of neighbouring keys, one of scattered keys and a
// delete, in a table (id, n, name, v).
func BenchmarkChanges(b *testing.B) {
	const rows, changed = 2_000_000, 200_000
	ctx := context.Background()
	k := testkit.Open(b)
	sc := testkit.Columns([]string{"id"}, "id long", "n long", "name string", "v double")
	ident := k.Table(b, "s.t", 2, sc)
	as, err := parquetio.ArrowSchema(sc, false)
	require.NoError(b, err)
	fill := func(first, step, n int, salt int64) arrow.RecordBatch {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, as)
		defer rb.Release()
		for i := range n {
			id := int64(first + i*step)
			rb.Field(0).(*array.Int64Builder).Append(id)
			rb.Field(1).(*array.Int64Builder).Append(id + salt)
			rb.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name-of-%09d", id))
			rb.Field(3).(*array.Float64Builder).Append(float64(id) / 7)
		}
		return rb.NewRecordBatch()
	}
	upsert := func(first, step int, salt int64) uint64 {
		return k.Do(b, ident, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, fill(first, step, changed, salt), warehouse.Replace)
			return err
		}).Seq
	}
	appended := k.Append(b, ident, fill(0, 1, rows, 0)).Seq
	seqs := []struct {
		name string
		seq  uint64
	}{{"append", appended}, {"clustered", upsert(rows/2, 1, 1)}, {"scattered", upsert(0, rows/changed, 2)}}
	r := changelog.New(changelog.Options{Catalog: k.Catalog, Live: k.Live, TempDir: b.TempDir()})
	for _, s := range seqs {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			n := int64(0)
			for range b.N {
				x, err := r.Changes(ctx, changelog.Request{Cut: k.Catalog.Cut(), Ident: ident, From: changelog.Seq(s.seq - 1), To: changelog.Seq(s.seq)})
				require.NoError(b, err)
				for rec, err := range x.Batches(ctx) {
					require.NoError(b, err)
					n += rec.NumRows()
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(n)/float64(b.N), "rows")
		})
	}
}
