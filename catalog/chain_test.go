package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// nextSnapshot is a snapshot on main's head.
func nextSnapshot(m table.Metadata, id int64) *table.Snapshot {
	s := &table.Snapshot{
		SnapshotID: id, SequenceNumber: m.LastSequenceNumber() + 1, TimestampMs: m.LastUpdatedMillis() + 1, ManifestList: fmt.Sprint("s3://b/", id),
		Summary: &table.Summary{Operation: table.OpAppend, Properties: map[string]string{"added-records": "1"}}, ParentSnapshotID: headOf(m),
	}
	if m.Version() >= 3 {
		first, rows := m.NextRowID(), int64(3)
		s.FirstRowID, s.AddedRows = &first, &rows
	}
	return s
}

func asMap(t *testing.T, meta table.Metadata) (v map[string]any) {
	raw, err := json.Marshal(meta)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &v))
	return v
}

// TestAppendSnapshot: a commit on the chain makes the metadata that iceberg-go makes, also from metadata that others were made from.
func TestAppendSnapshot(t *testing.T) {
	for _, version := range []int{2, 3} {
		rng := rand.New(rand.NewSource(int64(version)))
		base := metadataOf(t, version, 3)
		made := []*chained{chainOf(base, nil)}
		theirs := []table.Metadata{base}
		for i := range 40 {
			at := len(made) - 1 - rng.Intn(min(3, len(made)))
			if i%3 == 0 {
				at = len(made) - 1
			}
			id := int64(1000 + i)
			s := nextSnapshot(theirs[at], id)
			updates := []table.Update{table.NewAddSnapshotUpdate(s), table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 5, 0, 7)}
			replaced := ""
			if i%2 == 0 {
				replaced = fmt.Sprint("s3://b/", i, ".json")
			}
			mine, ok := appendSnapshot(made[at], updates, replaced)
			require.True(t, ok)
			want, err := table.UpdateTableMetadata(theirs[at], updates, replaced)
			require.NoError(t, err)
			made, theirs = append(made, mine), append(theirs, want)
			require.Equal(t, asMap(t, want), asMap(t, mine), "version %d, %d", version, i)
			require.True(t, mine.Equals(want))
			require.Equal(t, want.SnapshotByID(id), mine.SnapshotByID(id))
			require.Equal(t, want.Snapshots(), mine.Snapshots())
		}
		for i, m := range made { // nobody's metadata changed under him
			require.Equal(t, asMap(t, theirs[i]), asMap(t, m), "version %d, %d", version, i)
			for j := range 40 {
				require.Equal(t, theirs[i].SnapshotByID(int64(1000+j)), m.SnapshotByID(int64(1000+j)))
			}
		}
		last := made[len(made)-1]
		again := chainOf(theirs[len(theirs)-1], last) // as after another kind of update
		require.Equal(t, asMap(t, last), asMap(t, again))
	}
}

// What is no plain commit, or a wrong one, is left to the library.
func TestAppendSnapshotRefuses(t *testing.T) {
	m := chainOf(metadataOf(t, 3, 2), nil)
	main := func(id int64) table.Update {
		return table.NewSetSnapshotRefUpdate(table.MainBranch, id, table.BranchRef, 0, 0, 0)
	}
	for name, change := range map[string]func(s *table.Snapshot) []table.Update{
		"id in use": func(s *table.Snapshot) []table.Update {
			s.SnapshotID = 1
			return []table.Update{table.NewAddSnapshotUpdate(s), main(1)}
		},
		"old sequence": func(s *table.Snapshot) []table.Update {
			s.SequenceNumber = 1
			return []table.Update{table.NewAddSnapshotUpdate(s), main(9)}
		},
		"another parent": func(s *table.Snapshot) []table.Update {
			id := int64(1)
			s.ParentSnapshotID = &id
			return []table.Update{table.NewAddSnapshotUpdate(s), main(9)}
		},
		"row ids in use": func(s *table.Snapshot) []table.Update {
			id := int64(1)
			s.FirstRowID = &id
			return []table.Update{table.NewAddSnapshotUpdate(s), main(9)}
		},
		"older": func(s *table.Snapshot) []table.Update {
			s.TimestampMs = 1
			return []table.Update{table.NewAddSnapshotUpdate(s), main(9)}
		},
		"another snapshot": func(s *table.Snapshot) []table.Update { return []table.Update{table.NewAddSnapshotUpdate(s), main(1)} },
		"a tag": func(s *table.Snapshot) []table.Update {
			return []table.Update{table.NewAddSnapshotUpdate(s), table.NewSetSnapshotRefUpdate("x", 9, table.TagRef, 0, 0, 0)}
		},
		"no ref": func(s *table.Snapshot) []table.Update { return []table.Update{table.NewAddSnapshotUpdate(s)} },
		"two refs": func(s *table.Snapshot) []table.Update {
			return []table.Update{table.NewAddSnapshotUpdate(s), main(9), main(9)}
		},
	} {
		_, ok := appendSnapshot(m, change(nextSnapshot(m, 9)), "")
		require.False(t, ok, name)
	}
	s := nextSnapshot(m, 9)
	_, ok := appendSnapshot(m, []table.Update{table.NewAddSnapshotUpdate(s), main(9)}, "")
	require.True(t, ok)
}
