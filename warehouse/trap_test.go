package warehouse_test

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// entries are the live entries of a table's newest snapshot, of one content.
func entries(t *testing.T, k *testkit.Kit, id icetable.Identifier, content iceberg.ManifestContent) []iceberg.ManifestEntry {
	t.Helper()
	var out []iceberg.ManifestEntry
	s := k.Metadata(t, id).CurrentSnapshot()
	require.NotNil(t, s)
	list, err := s.Manifests(k.FS)
	require.NoError(t, err)
	for _, m := range list {
		if m.ManifestContent() != content {
			continue
		}
		for e, err := range m.Entries(k.FS, true) {
			require.NoError(t, err)
			out = append(out, e)
		}
	}
	return out
}

// Trap 1: iceberg-go's copy-on-write delete brings rows back that merge-on-read deletes had removed. Our deletes,
// updates and compactions on a table with live deletes never do (invariant 5).
func TestNoDeletedRowComesBack(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2), person(3, "c", 3), person(4, "d", 4)))
		del := func(ids ...int) {
			k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, ids...)); return err })
		}
		del(1)
		del(2)
		sameRows(t, k, id, texts(person(3, "c", 3), person(4, "d", 4)))
		res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{})
		require.NoError(t, err)
		require.Equal(t, 1, res.FilesRemoved)
		sameRows(t, k, id, texts(person(3, "c", 3), person(4, "d", 4)))
		del(3)
		sameRows(t, k, id, texts(person(4, "d", 4)))
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, rowsOf(people(), person(1, "back on purpose", 1)), warehouse.Replace)
			return err
		})
		sameRows(t, k, id, texts(person(1, "back on purpose", 1), person(4, "d", 4)))
	})
}

// Traps 2 and 3: on v3 a data file has one deletion vector in every snapshot, also when deletes of one file race, and
// the old vector leaves in the snapshot that brings the new one (invariant 6).
func TestOneDeletionVectorPerFile(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 3, people())
	var rows [][]any
	for i := range 100 {
		rows = append(rows, person(i, "x", i))
	}
	k.Append(t, id, rowsOf(people(), rows...))
	var wg sync.WaitGroup
	for i := range 16 {
		tx, tt := begin(t, k, id)
		_, err := tt.DeleteKeys(ctx, keyBatch(tt, i))
		require.NoError(t, err)
		wg.Go(func() {
			if _, err := tx.Commit(ctx); err != nil {
				t.Errorf("commit %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 50)); return err })
	dvs := entries(t, k, id, iceberg.ManifestContentDeletes)
	require.Len(t, dvs, 1)
	require.EqualValues(t, 17, dvs[0].DataFile().Count())
	require.NotNil(t, dvs[0].DataFile().ReferencedDataFile())
	p := k.Metadata(t, id).CurrentSnapshot().Summary.Properties
	require.Equal(t, "1", p["total-delete-files"])
	require.Equal(t, "1", p["added-dvs"])
	require.Equal(t, "1", p["removed-dvs"])
	require.Equal(t, "17", p["total-position-deletes"])
	sameRows(t, k, id, texts(slices.Delete(rows[16:], 34, 35)...))
}

// Trap 4: a bloom filter of a small file is small. iceberg-go's table property makes 1 MB of every one.
func TestSmallFileIsSmall(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	k.Append(t, id, rowsOf(people(), person(1, "a", 1)))
	es := entries(t, k, id, iceberg.ManifestContentData)
	require.Len(t, es, 1)
	require.Less(t, es[0].DataFile().FileSizeBytes(), int64(16<<10))
}

// Trap 5: every file a commit names is synced, or its bytes are inside the store's transaction, before the store
// commits (C3).
func TestFilesAreDurableBeforeTheStore(t *testing.T) {
	var mu sync.Mutex
	var log []string
	record := func(op storeio.Op, path string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, string(op)+" "+path)
	}
	k := testkit.OpenWith(t, testkit.Options{Sync: true, Hooks: &storeio.Hooks{After: record}})
	id := k.Table(t, "s.people", 2, people())
	var rows [][]any
	for i := range 60_000 {
		rows = append(rows, person(i*7919, strings.Repeat(string(rune('a'+i%26)), i%50), i*i%1000003))
	}
	mu.Lock()
	log = nil
	mu.Unlock()
	k.Append(t, id, rowsOf(people(), rows...))
	mu.Lock()
	defer mu.Unlock()
	stored := slices.IndexFunc(log, func(s string) bool { return strings.HasPrefix(s, string(storeio.OpStored)) })
	require.GreaterOrEqual(t, stored, 0, "%q", log)
	before := log[:stored]
	big := 0
	for _, e := range entries(t, k, id, iceberg.ManifestContentData) {
		p := storeio.PathOf(e.DataFile().FilePath())
		st, err := os.Stat(p)
		require.NoError(t, err)
		if st.Size() <= storeio.InlineLimit {
			continue
		}
		big++
		sync := slices.Index(before, string(storeio.OpSync)+" "+p)
		require.GreaterOrEqual(t, sync, 0, "data file is not synced before the store: %q", before)
		dir := slices.IndexFunc(before, func(s string) bool { return strings.HasPrefix(s, string(storeio.OpSyncDir)) })
		require.GreaterOrEqual(t, dir, 0, "no directory is synced before the store: %q", before)
	}
	require.Positive(t, big)
}

// rowIDs are "row text → _row_id/_last_updated_sequence_number" of a v3 table.
func rowIDs(t *testing.T, k *testkit.Kit, id icetable.Identifier) map[string][2]int64 {
	t.Helper()
	ref, set := k.Set(t, id)
	out := map[string][2]int64{}
	opts := liveset.ScanOptions{Meta: liveset.MetaColumns{RowID: true, LastUpdatedSeq: true}}
	for rec, err := range k.Live.Scan(ctx, ref, set, ref.Metadata.CurrentSchema(), opts) {
		require.NoError(t, err)
		n := int(rec.NumCols())
		for i, s := range testkit.Text(rec) {
			key, _, _ := strings.Cut(s, "|")
			rid, seq := rec.Column(n-2).(*array.Int64), rec.Column(n-1).(*array.Int64)
			require.True(t, rid.IsValid(i), "row %s has no _row_id", s)
			out[key] = [2]int64{rid.Value(i), seq.Value(i)}
		}
		rec.Release()
	}
	return out
}

// Row lineage: ids are unique, kept by updates, upserts and compaction; new rows get new ones (invariant 6).
func TestRowIDsAreKept(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 3, people())
	k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2), person(3, "c", 3)))
	first := rowIDs(t, k, id)
	require.Len(t, first, 3)
	k.Do(t, id, func(tt *warehouse.TxTable) error {
		require.NoError(t, tt.Update(ctx, []warehouse.RowRef{findRow(t, k, tt, "1|")}, rowsOf(people(), person(10, "A", 1))))
		_, err := tt.Upsert(ctx, rowsOf(people(), person(2, "B", 2), person(4, "d", 4)), warehouse.Replace)
		require.NoError(t, err)
		_, err = tt.Upsert(ctx, rowsOf(people(), person(2, "BB", 2)), warehouse.Replace) // an id kept in memory
		return err
	})
	second := rowIDs(t, k, id)
	require.Equal(t, first["1"][0], second["10"][0])
	require.Equal(t, first["2"][0], second["2"][0])
	require.Equal(t, first["3"], second["3"])
	require.Greater(t, second["2"][1], first["2"][1], "an updated row has a newer sequence number")
	seen := map[int64]bool{}
	for _, r := range second {
		require.False(t, seen[r[0]], "row ids are unique")
		seen[r[0]] = true
	}
	meta := k.Metadata(t, id)
	for r := range seen {
		require.Less(t, r, meta.NextRowID())
	}
	s := meta.CurrentSnapshot()
	require.NotNil(t, s.FirstRowID)
	require.Equal(t, meta.NextRowID(), *s.FirstRowID+*s.AddedRows)
	res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MinInputFiles: 2})
	require.NoError(t, err)
	require.Equal(t, 2, res.FilesRemoved)
	require.Equal(t, second, rowIDs(t, k, id), "compaction keeps ids and sequence numbers")
	sameRows(t, k, id, texts(person(10, "A", 1), person(2, "BB", 2), person(3, "c", 3), person(4, "d", 4)))
}
