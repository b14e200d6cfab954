package warehouse_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// TestCommitReadsNothingBack: a commit takes what it builds on from memory: it opens no file, also where manifests are merged and where rows of
// single files are replaced. With caches that nobody told anything, and files that are synced, it has to read, which the count notices.
func TestCommitReadsNothingBack(t *testing.T) {
	k := testkit.Open(t) // without syncs no file's content stays in memory: whatever is read back is counted
	ident := k.Table(t, "s.t", 2, people())
	upsert := func(w *warehouse.Warehouse, n int) {
		for i := range n {
			tx := w.Begin(ctx, warehouse.TxOptions{})
			tt, err := tx.Table(ctx, ident)
			require.NoError(t, err)
			_, err = tt.Upsert(ctx, rowsOf(people(), person(i%25, "x", i)), warehouse.Replace)
			require.NoError(t, err)
			_, err = tx.Commit(ctx)
			require.NoError(t, err)
		}
	}
	upsert(k.Warehouse, 60)
	before, derived := k.FS.Counters().Snapshot(), k.Live.Stats()
	upsert(k.Warehouse, 40)
	d := k.FS.Counters().Snapshot().Sub(before)
	require.Zero(t, d.Bytes, "bytes read")
	require.Zero(t, d.Opens, "files opened")
	after := k.Live.Stats()
	require.Equal(t, derived.Manifests, after.Manifests, "manifests decoded")
	require.Equal(t, derived.ManifestLists, after.ManifestLists)
	require.Equal(t, derived.DeleteFiles, after.DeleteFiles)
	require.Equal(t, derived.IndexBuilds, after.IndexBuilds)

	forgetful := warehouse.New(warehouse.Options{Catalog: k.Catalog, FS: k.FS, Live: liveset.NewCache(liveset.Options{FS: k.FS})})
	before = k.FS.Counters().Snapshot()
	upsert(forgetful, 1)
	require.NotZero(t, k.FS.Counters().Snapshot().Sub(before).Bytes)
}
