package warehouse

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/manifestio"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// history commits n snapshots of one data file each, the way build does, and returns the last manifest list.
func history(t *testing.T, version, n int, props iceberg.Properties) (*storeio.FS, icetable.Metadata, []iceberg.ManifestFile, int) {
	t.Helper()
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	meta, err := buildMetadata(version, uuid.New(), sc, nil, nil, t.TempDir(), props)
	require.NoError(t, err)
	w := &Warehouse{opts: Options{FS: fs, Live: liveset.NewCache(liveset.Options{FS: fs})}}
	var list []iceberg.ManifestFile
	var next int64
	most := 0
	for i := range n {
		m, err := newMetadataWriter(w, meta, int64(1000+i))
		require.NoError(t, err)
		b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, fmt.Sprintf("/f%d", i), iceberg.ParquetFile, nil, nil, nil, 10, 100)
		require.NoError(t, err)
		mine, err := m.addManifests([]added{{file: b.Build()}})
		require.NoError(t, err)
		kept, gone, err := m.carry(context.Background(), list, newRemoval(), false)
		require.NoError(t, err)
		require.Empty(t, gone)
		all, err := m.merge(context.Background(), append(mine, kept...))
		require.NoError(t, err)
		parent := int64(999 + i)
		path, rows, err := m.list(all, int64(i+1), next, &parent)
		require.NoError(t, err)
		if version >= 3 {
			require.EqualValues(t, 10, rows, "merging reserves no row ids")
		}
		next += rows
		s := icetable.Snapshot{ManifestList: path}
		list, err = s.Manifests(fs)
		require.NoError(t, err)
		most = max(most, len(list))
	}
	return fs, meta, list, most
}

// Manifest merging keeps the list short, loses no entry, and leaves each entry's sequence numbers and row ids alone.
func TestManifestMerging(t *testing.T) {
	for _, version := range []int{2, 3} {
		const n = 300
		fs, _, list, most := history(t, version, n, nil)
		require.LessOrEqual(t, most, 48)
		seen := map[string]bool{}
		for _, mf := range list {
			data, err := fs.ReadFile(mf.FilePath())
			require.NoError(t, err)
			es, err := manifestio.ReadEntries(mf, data, true)
			require.NoError(t, err)
			for _, e := range es {
				var i int
				_, err := fmt.Sscanf(e.DataFile().FilePath(), "/f%d", &i)
				require.NoError(t, err)
				seen[e.DataFile().FilePath()] = true
				require.EqualValues(t, i+1, e.SequenceNum())
				require.EqualValues(t, i+1, *e.FileSequenceNum())
				require.EqualValues(t, 1000+i, e.SnapshotID())
				if version >= 3 {
					require.EqualValues(t, 10*i, *e.DataFile().FirstRowID())
				}
			}
		}
		require.Len(t, seen, n)
	}
}

func TestManifestMergingCanBeTurnedOff(t *testing.T) {
	_, _, list, _ := history(t, 2, 40, iceberg.Properties{propMergeEnabled: "false"})
	require.Len(t, list, 40)
	_, _, list, _ = history(t, 2, 40, iceberg.Properties{propMergeMinCount: "100"})
	require.Len(t, list, 40)
}

// Removing a file rewrites the one manifest that holds it and returns the entry with its sequence numbers.
func TestCarryRemoves(t *testing.T) {
	fs, meta, list, _ := history(t, 2, 40, nil)
	m, err := newMetadataWriter(&Warehouse{opts: Options{FS: fs, Live: liveset.NewCache(liveset.Options{FS: fs})}}, meta, 5000)
	require.NoError(t, err)
	r := newRemoval()
	r.data["/f3"] = []seqs{{4, 4}}
	r.data["/f39"] = []seqs{{40, 40}}
	kept, gone, err := m.carry(context.Background(), list, r, false)
	require.NoError(t, err)
	require.True(t, r.empty())
	require.Len(t, gone, 2)
	count := 0
	for _, mf := range kept {
		count += int(mf.AddedDataFiles() + mf.ExistingDataFiles())
	}
	require.Equal(t, 38, count)
	require.LessOrEqual(t, len(m.files), 2)
	tombs, err := m.removeManifests(gone)
	require.NoError(t, err)
	require.Len(t, tombs, 1)
	require.EqualValues(t, 2, tombs[0].DeletedDataFiles())

	r = newRemoval()
	_, gone, err = m.carry(context.Background(), list, r, true)
	require.NoError(t, err)
	require.Len(t, gone, 40)
}

func TestSnapshotIDsArePositive(t *testing.T) {
	for range 1000 {
		require.Positive(t, newSnapshotID(nil))
	}
}
