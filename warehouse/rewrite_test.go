package warehouse_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// Joined manifests say of each file what the many said: snapshot id, sequence numbers, first_row_id; deletes still reach what they reached.
func TestRewriteManifests(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		m := model{}
		set := icetable.NewSetPropertiesUpdate(iceberg.Properties{"commit.manifest-merge.enabled": "false"})
		_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error { return tx.AlterTable(ctx, id, set) })
		require.NoError(t, err)
		for i := range 20 {
			k.Append(t, id, rowsOf(people(), row(2*i, "x"), row(2*i+1, "y")))
			m[2*i], m[2*i+1] = "x", "y"
			if i%2 == 0 {
				k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 2*i)); return err })
				delete(m, 2*i)
			}
		}
		before := map[string][4]int64{}
		say := func(e iceberg.ManifestEntry) [4]int64 {
			out := [4]int64{e.SnapshotID(), e.SequenceNum(), -1, -1}
			if n := e.FileSequenceNum(); n != nil {
				out[2] = *n
			}
			if n := e.DataFile().FirstRowID(); n != nil {
				out[3] = *n
			}
			return out
		}
		all := append(entries(t, k, id, iceberg.ManifestContentData), entries(t, k, id, iceberg.ManifestContentDeletes)...)
		for _, e := range all {
			before[e.DataFile().FilePath()] = say(e)
		}
		res, err := k.Warehouse.RewriteManifests(ctx, id)
		require.NoError(t, err)
		require.Equal(t, 2, res.Added)
		require.GreaterOrEqual(t, res.Removed, 30)
		for _, e := range append(entries(t, k, id, iceberg.ManifestContentData), entries(t, k, id, iceberg.ManifestContentDeletes)...) {
			require.Equal(t, before[e.DataFile().FilePath()], say(e))
		}
		s := k.Metadata(t, id).CurrentSnapshot()
		require.Equal(t, icetable.OpReplace, s.Summary.Operation)
		sameRows(t, k, id, m.texts())
		k.Append(t, id, rowsOf(people(), row(100, "z")))
		m[100] = "z"
		sameRows(t, k, id, m.texts())
		res, err = k.Warehouse.RewriteManifests(ctx, id)
		require.NoError(t, err)
		require.Nil(t, res.Record)
	})
}

// A branch's and a tag's own retention, and that of the table, say what expires.
func TestExpireRefs(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	var snaps []int64
	for i := range 6 {
		k.Append(t, id, rowsOf(people(), row(i, "x")))
		snaps = append(snaps, k.Metadata(t, id).CurrentSnapshot().SnapshotID)
	}
	ref := func(name string, tag bool, snap int64, r warehouse.RefRetention) {
		_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
			_, err := tx.CreateRef(ctx, id, warehouse.NewRef{Name: name, Tag: tag, Snapshot: &snap, Retention: r})
			return err
		})
		require.NoError(t, err)
	}
	ref("old", true, snaps[0], warehouse.RefRetention{MaxRefAge: 1})
	ref("kept", true, snaps[1], warehouse.RefRetention{MaxRefAge: 1 << 60})
	ref("branch", false, snaps[3], warehouse.RefRetention{MinSnapshotsToKeep: 2})
	res, err := k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 1, MaxRefAge: 1 << 60})
	require.NoError(t, err)
	// main keeps its head, branch two, kept its own; old has no age of a millisecond and stays by the table's.
	var left []int64
	for _, s := range k.Metadata(t, id).Snapshots() {
		left = append(left, s.SnapshotID)
	}
	require.Equal(t, []int64{snaps[0], snaps[1], snaps[2], snaps[3], snaps[5]}, left)
	require.Zero(t, res.Refs)
	res, err = k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 1, MaxRefAge: 1})
	require.NoError(t, err)
	require.Equal(t, 2, res.Refs) // old and branch; kept has an age of its own
	require.Len(t, k.Metadata(t, id).Snapshots(), 2)
	require.NotNil(t, k.Metadata(t, id).SnapshotByID(snaps[1]))
	k.Check(t)
}
