package parquetio

import (
	"os"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// TestFullDisk: whichever operation fails, an unsuccessful Close leaves no file behind, so that a full disk gets its room back.
func TestFullDisk(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}, field(2, "s", iceberg.PrimitiveTypes.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	ids := make([]int64, KeyIndexMinRows+1)
	for i := range ids {
		ids[i] = int64(i)
	}
	rec := randomBatch(t, as, newRand(t), ids)
	for k := int64(0); ; k++ {
		dir := t.TempDir()
		inj := &storeio.Injector{K: k}
		w, err := NewWriter(t.Context(), dir, WriterOptions{FS: storeio.NewFS(storeio.Options{Hooks: inj.Hooks()}), Schema: sc, SortIDs: []int{1}, RowGroupRows: 4000})
		require.NoError(t, err)
		err = w.Write(rec)
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if inj.Failed() == 0 {
			require.NoError(t, err)
			require.Greater(t, k, int64(4), "no operation was made to fail")
			return
		}
		require.ErrorIs(t, err, storeio.ErrInjected, "operation %d", k)
		w.Abort()
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "operation %d", k)
	}
}
