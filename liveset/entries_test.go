package liveset

import (
	"bytes"
	"os"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// TestRepeatedEntries: a file that several live entries name is there once, described by the newest, until the last of them is gone; sets derived step by
// step and sets built from nothing agree (V2).
func TestRepeatedEntries(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	eq := k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(2))
	pos := k.positionDelete(0, "", "", map[string][]uint32{f.FilePath(): {0}})
	again := func(seq int64) change {
		return change{add: []iceberg.DataFile{f}, seqs: map[string]int64{f.FilePath(): seq}}
	}
	less := func(df iceberg.DataFile) change { return change{remove: []string{df.FilePath()}, once: true} }
	for _, step := range []struct {
		what string
		c    change
		want []uint32 // suppressed; nil: all rows live
		gone bool
	}{
		{"added", change{add: []iceberg.DataFile{f}}, nil, false},
		{"deleted from by equality", change{del: []iceberg.DataFile{eq}}, []uint32{1}, false},
		{"added again as old as it was", again(1), []uint32{1}, false},
		{"one of two removed", less(f), []uint32{1}, false},
		{"added again, newer than the delete", again(4), nil, false},
		{"and again", again(5), nil, false},
		{"position delete", change{del: []iceberg.DataFile{pos}}, []uint32{0}, false},
		{"position delete again", change{del: []iceberg.DataFile{pos}}, []uint32{0}, false},
		{"one of two position deletes removed", less(pos), []uint32{0}, false},
		{"newest removed", less(f), []uint32{0}, false},
		{"newer than the delete removed", less(f), []uint32{0, 1}, false},
		{"manifests rewritten", change{merge: true}, []uint32{0, 1}, false},
		{"last position delete removed", less(pos), []uint32{1}, false},
		{"last one removed", less(f), nil, true},
	} {
		id, _ := k.commit(step.c)
		s := k.at(c, id)
		requireSame(t, s, k.at(k.cache(), id))
		l := s.File(f.FilePath())
		if step.gone {
			require.Nil(t, l, step.what)
			require.Zero(t, s.Rows())
			continue
		}
		require.NotNil(t, l, step.what)
		require.Equal(t, step.want, positionsOrNil(l), step.what)
		require.Equal(t, 1, s.NumFiles())
		require.EqualValues(t, 3-len(step.want), s.Rows())
	}
	// The other way, from the newest to the oldest.
	for id := *k.head; id > 0; id -= 1000 {
		requireSame(t, k.at(c, id), k.at(k.cache(), id))
	}
}

func positionsOrNil(l *LiveFile) []uint32 {
	if l.Suppressed == nil {
		return nil
	}
	return l.Suppressed.ToArray()
}

// TestInheritedRowIDs: a manifest that gets row ids from the list of a table made version 3 gives them to its files in sets that are derived, too, and
// changes no row.
func TestInheritedRowIDs(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	before, _ := k.commit(change{add: []iceberg.DataFile{f}})
	require.Nil(t, k.at(c, before).File(f.FilePath()).File.FirstRowID)
	k.version = 3
	after, _ := k.commit(change{add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(4), 0)}})
	for _, s := range []*Set{k.at(c, after), k.at(k.cache(), after)} {
		first := s.File(f.FilePath()).File.FirstRowID
		require.NotNil(t, first)
		require.Zero(t, *first)
		d, err := Diff(t.Context(), k.at(c, before), s)
		require.NoError(t, err)
		require.Len(t, d, 1)
	}
	// So do the manifests of a file that is listed twice.
	k = newKit(t, 2)
	c = k.cache()
	f = k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	k.commit(change{add: []iceberg.DataFile{f}})
	before, _ = k.commit(change{add: []iceberg.DataFile{f}})
	require.Nil(t, k.at(c, before).File(f.FilePath()).File.FirstRowID)
	k.version = 3
	after, _ = k.commit(change{add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(4), 0)}})
	derived, fresh := k.at(c, after).File(f.FilePath()).File, k.at(k.cache(), after).File(f.FilePath()).File
	require.NotNil(t, derived.FirstRowID)
	require.Equal(t, *fresh.FirstRowID, *derived.FirstRowID)

	// A row that died as the file's rows got ids had none.
	k = newKit(t, 2)
	f = k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	before, _ = k.commit(change{add: []iceberg.DataFile{f}})
	k.version = 3
	after, _ = k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(2))}})
	c = k.cache()
	d, err := Diff(t.Context(), k.at(c, before), k.at(c, after))
	require.NoError(t, err)
	require.Len(t, d, 1)
	require.Equal(t, []uint32{1}, d[0].Deleted.ToArray())
	require.Nil(t, d[0].File.FirstRowID)
	require.NotNil(t, k.at(c, after).File(f.FilePath()).File.FirstRowID)
}

// TestEntryWithoutSequenceNumber: an EXISTING entry has its own sequence number, or its manifest has 0, being from before there were any. One
// that has none is damage: which deletes reach its file cannot be told.
func TestEntryWithoutSequenceNumber(t *testing.T) {
	k := newKit(t, 2)
	id, _ := k.commit(change{add: []iceberg.DataFile{k.dataFile(0, "", rowsOf(1), 0)}})
	path := k.manifests[0].mf.FilePath()
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	data, err := iceberg.ReadManifest(k.manifests[0].mf, bytes.NewReader(whole), true)
	require.NoError(t, err)
	none := iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &id, nil, nil, data[0].DataFile())
	require.EqualValues(t, -1, none.SequenceNum())
	_, err = liveEntries("m.avro", []iceberg.ManifestEntry{none})
	var damaged *DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, "m.avro", damaged.Path)
}
