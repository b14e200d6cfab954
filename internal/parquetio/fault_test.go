package parquetio

import (
	"os"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// TestFullDisk: whichever operation fails, an unsuccessful Close leaves no file behind, so that a full disk gets its room back. What fails for the key index
// costs the key index only.
func TestFullDisk(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}, field(2, "s", iceberg.PrimitiveTypes.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	ids := make([]int64, KeyIndexMinRows+1)
	for i := range ids {
		ids[i] = int64(i)
	}
	rec := randomBatch(t, as, newRand(t), ids)
	spared := 0
	for k := int64(0); ; k++ {
		dir := t.TempDir()
		inj := &storeio.Injector{K: k}
		w, err := NewWriter(t.Context(), dir, WriterOptions{FS: storeio.NewFS(storeio.Options{Hooks: inj.Hooks()}), Schema: sc, SortIDs: []int{1}, RowGroupRows: 4000})
		require.NoError(t, err)
		err = w.Write(rec)
		var files []WrittenFile
		if err == nil {
			files, err = w.Close(t.Context())
		}
		if inj.Failed() == 0 {
			require.NoError(t, err)
			require.Greater(t, k, int64(4), "no operation was made to fail")
			require.NotEmpty(t, files[0].KeyIndexPath)
			require.Equal(t, 2, spared, "create and write of the key index")
			return
		}
		if err == nil {
			spared++
			require.Len(t, files, 1)
			require.Empty(t, files[0].KeyIndexPath)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 1, "operation %d", k)
			continue
		}
		require.ErrorIs(t, err, storeio.ErrInjected, "operation %d", k)
		w.Abort()
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "operation %d", k)
	}
}
