package parquetio

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// TestScanPassesOverPages: rows behind long gaps are the right ones, in dictionary and plain columns with NULLs.
func TestScanPassesOverPages(t *testing.T) {
	ctx := context.Background()
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "kind", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "v", Type: iceberg.PrimitiveTypes.Float64})
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	w, err := NewWriter(ctx, t.TempDir(), WriterOptions{FS: fs, Schema: sc, Spec: *iceberg.UnpartitionedSpec, RowGroupRows: 150_000})
	require.NoError(t, err)
	const rows = 200_000 // doubles that do not compress: gaps are longer than seekGap
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("kind-", i%7))
		if i%5 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.Float64Builder).Append(float64(i*7919) / 3)
		}
	}
	require.NoError(t, w.Write(b.NewRecordBatch()))
	files, err := w.Close(ctx)
	require.NoError(t, err)
	r, err := Open(ctx, fs, files[0].Path, 0)
	require.NoError(t, err)
	defer r.Close()

	want := roaring.New()
	want.AddRange(20_001, 25_000)
	want.AddRange(100_000, 100_003)
	want.AddRange(140_000, 160_000)
	want.AddRange(199_999, 200_000)
	it := want.Iterator()
	for rec, err := range r.Scan(ctx, ReadOptions{Schema: sc, Positions: want, BatchRows: 5000}) {
		require.NoError(t, err)
		for k := range int(rec.NumRows()) {
			i := it.Next()
			require.Equal(t, int64(i), rec.Column(0).(*array.Int64).Value(k))
			require.Equal(t, fmt.Sprint("kind-", i%7), rec.Column(1).(*array.String).Value(k))
			require.Equal(t, i%5 == 0, rec.Column(2).IsNull(k))
			if i%5 != 0 {
				require.Equal(t, float64(i*7919)/3, rec.Column(2).(*array.Float64).Value(k))
			}
		}
		rec.Release()
	}
	require.False(t, it.HasNext())
}
