package warehouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// Compaction is invisible (L5): many small files and delete files become one sorted file, rows stay.
func TestCompact(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		m := model{}
		for i := range 12 {
			k.Append(t, id, rowsOf(people(), row(2*i, "x"), row(2*i+1, "y")))
			m[2*i], m[2*i+1] = "x", "y"
			if i%3 == 2 {
				k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, i)); return err })
				delete(m, i)
			}
		}
		names := testkit.Columns(nil, "id long")
		k.Do(t, id, func(tt *warehouse.TxTable) error { return tt.DeleteEquality(ctx, []int{1}, rowsOf(names, []any{20})) })
		delete(m, 20)
		sameRows(t, k, id, m.texts())
		start := k.Metadata(t, id).CurrentSnapshot().SequenceNumber
		res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{})
		require.NoError(t, err)
		require.Equal(t, 1, res.FilesAdded)
		require.Equal(t, start, entries(t, k, id, iceberg.ManifestContentData)[0].SequenceNum(), "later equality deletes must reach the rows")
		require.Equal(t, "replace", res.Record.Tables[0].Operation)
		sameRows(t, k, id, m.texts())
		_, set := k.Set(t, id)
		require.Equal(t, 1, set.NumFiles())
		require.Empty(t, entries(t, k, id, iceberg.ManifestContentDeletes), "no delete file is left")
		p := k.Metadata(t, id).CurrentSnapshot().Summary.Properties
		require.Equal(t, fmt.Sprint(len(m)), p["total-records"])
		require.Equal(t, "0", p["total-delete-files"])
		require.Equal(t, "0", p["total-equality-deletes"])
		res, err = k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{})
		require.NoError(t, err)
		require.Nil(t, res.Record, "nothing left to do")
	})
}

// A data file that stays keeps its suppressed rows when its scattered delete files are joined.
func TestCompactJoinsDeleteFiles(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		var rows [][]any
		m := model{}
		for i := range 200 {
			rows, m[i] = append(rows, row(i, "x")), "x"
		}
		k.Append(t, id, rowsOf(people(), rows...))
		names := testkit.Columns(nil, "id long")
		for i := range 12 {
			if i%2 == 0 {
				k.Do(t, id, func(tt *warehouse.TxTable) error { return tt.DeleteEquality(ctx, []int{1}, rowsOf(names, []any{i})) })
			} else {
				k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, i)); return err })
			}
			delete(m, i)
		}
		res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MaxDeleteFiles: 4})
		require.NoError(t, err)
		require.Zero(t, res.FilesRemoved)
		require.Equal(t, 1, res.DeleteFilesAdded)
		require.Len(t, entries(t, k, id, iceberg.ManifestContentDeletes), 1)
		sameRows(t, k, id, m.texts())
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, rowsOf(people(), row(0, "back"), row(100, "up")), warehouse.Replace)
			return err
		})
		m[0], m[100] = "back", "up"
		sameRows(t, k, id, m.texts())
	})
}

// Expiry removes the files only old snapshots name, and nothing else.
func TestExpireSnapshots(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		m := model{}
		for i := range 10 {
			k.Append(t, id, rowsOf(people(), row(i, "x")))
			m[i] = "x"
		}
		k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 3)); return err })
		delete(m, 3)
		_, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{})
		require.NoError(t, err)
		before := len(tableFiles(t, k, id))
		res, err := k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 2})
		require.NoError(t, err)
		require.Equal(t, 10, res.Snapshots)
		require.Positive(t, res.FilesRemoved)
		after := tableFiles(t, k, id)
		require.Less(t, len(after), before)
		sameRows(t, k, id, m.texts())
		require.Len(t, k.Metadata(t, id).Snapshots(), 2)
		res, err = k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 1})
		require.NoError(t, err)
		require.Equal(t, 1, res.Snapshots)
		require.Len(t, dataFiles(t, k, id), 1)
		sameRows(t, k, id, m.texts())
		res, err = k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 1})
		require.NoError(t, err)
		require.Nil(t, res.Record)
	})
}

// A stream of small writes with maintenance stays bounded: files, manifests and snapshots do not grow with commits.
func TestMaintenanceKeepsATableBounded(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	m := model{}
	for i := range 120 {
		key := i % 30
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, rowsOf(people(), row(key, fmt.Sprint(i))), warehouse.Replace)
			return err
		})
		m[key] = fmt.Sprint(i)
		if i%20 == 19 {
			_, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{})
			require.NoError(t, err)
			_, err = k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 5})
			require.NoError(t, err)
		}
	}
	sameRows(t, k, id, m.texts())
	require.LessOrEqual(t, len(dataFiles(t, k, id)), 64) // two cycles of 20 commits, a data and a delete file each
	require.LessOrEqual(t, len(k.Metadata(t, id).Snapshots()), 5)
}

// tableFiles are all files below a table's location.
func tableFiles(t *testing.T, k *testkit.Kit, id icetable.Identifier) []string {
	t.Helper()
	var out []string
	root := storeio.PathOf(k.Metadata(t, id).Location())
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(p, ".metadata.json") {
			out = append(out, p)
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// What a crash leaves behind goes, what a snapshot names stays.
func TestRemoveOrphans(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 3, people())
	k.Append(t, id, rowsOf(people(), row(1, "a"), row(2, "b")))
	k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 1)); return err })
	root := storeio.PathOf(k.Metadata(t, id).Location())
	require.NoError(t, os.WriteFile(filepath.Join(root, "data", "left.parquet"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "metadata", "left-m0.avro"), []byte("x"), 0o600))
	n, err := k.Warehouse.RemoveOrphans(ctx, id, time.Hour)
	require.NoError(t, err)
	require.Zero(t, n, "young files stay")
	n, err = k.Warehouse.RemoveOrphans(ctx, id, -time.Hour)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	sameRows(t, k, id, model{2: "b"}.texts())
}
