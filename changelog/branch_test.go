package changelog_test

import (
	"fmt"
	"testing"

	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/testkit"
)

func (k *kit) rawWriter() *testkit.Raw {
	return &testkit.Raw{Catalog: k.cat, FS: k.fs, Ident: ident}
}

// rawAppend appends rows on a branch, as another writer does; it returns the snapshot and its seq.
func (k *kit) rawAppend(w *testkit.Raw, branch string, ids ...int64) (snapshot int64, seq uint64) {
	var rows []testkit.Record
	for _, id := range ids {
		rows = append(rows, testkit.Record{1: id, 2: int64(0)})
	}
	meta := w.Meta(k.t)
	f := w.DataFile(k.t, meta.CurrentSchema(), testkit.Place{Spec: meta.PartitionSpec()}, rows, testkit.FileOptions{})
	snapshot = w.Commit(k.t, testkit.RawCommit{Op: table.OpAppend, Branch: branch, Add: []testkit.RawFile{f}})
	return snapshot, k.cat.CommitSeq()
}

// TestResumeOnBranch: a place inside a commit of a branch resumes the branch's changes there (L6), before and after main took the branch over.
func TestResumeOnBranch(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	w := k.rawWriter()
	s1, _ := k.rawAppend(w, "", 1)
	_, b1 := k.rawAppend(w, "audit", 10, 11)
	s2, b2 := k.rawAppend(w, "audit", 12, 13)
	from, audit := changelog.SnapshotID(s1), changelog.Branch("audit")
	all := k.changes(from, audit)
	require.Equal(t, []string{"INSERT 10|0|N|N", "INSERT 11|0|N|N", "INSERT 12|0|N|N", "INSERT 13|0|N|N"}, brief(all))
	for i, c := range all {
		at := changelog.Seq(uint64(c.seq), int64(c.ordinal), c.num)
		require.Equal(t, nilIfNone(all[i+1:]), nilIfNone(k.changes(at, audit)), "from %s", at)
		require.Equal(t, all[:i+1], k.changes(from, at), "to %s", at)
	}
	require.Equal(t, []int64{int64(b1), int64(b1), int64(b2), int64(b2)}, []int64{all[0].seq, all[1].seq, all[2].seq, all[3].seq})
	// Past the rows of the commit, the next one follows.
	require.Equal(t, all[2:], k.changes(changelog.Seq(b1, 0, 100), audit))

	// A commit of main is not on the way to the branch's head.
	_, m := k.rawAppend(w, "", 2)
	require.ErrorIs(t, k.changesErr(changelog.Seq(m, 0, 0), audit), changelog.ErrNotAncestor)

	// Main takes the branch over: one step, which is on no path of snapshots. A place in it is resumed along the log.
	w.SetRef(t, table.MainBranch, table.BranchRef, s2)
	move := k.cat.CommitSeq()
	log := k.changes(changelog.Seq(m), changelog.Now)
	require.Equal(t, []string{"DELETE 2|0|N|N"}, brief(log[:1]))
	require.Equal(t, log[1:], k.changes(changelog.Seq(move, 0, 0), changelog.Now))
	require.ErrorIs(t, k.changesErr(changelog.Seq(move, 0, 0), changelog.SnapshotID(s2)), changelog.ErrNotAncestor)

	// A fast-forward is one commit of several steps: the place in one of them is a place on the way to the snapshots after it.
	w.SetRef(t, table.MainBranch, table.BranchRef, s1)
	w.SetRef(t, table.MainBranch, table.BranchRef, s2)
	forward := k.cat.CommitSeq()
	log = k.changes(changelog.Seq(forward-1), changelog.Now)
	require.Equal(t, brief(all), brief(log))
	require.Equal(t, []int32{0, 0, 1, 1}, []int32{log[0].ordinal, log[1].ordinal, log[2].ordinal, log[3].ordinal})
	for i, c := range log {
		at := changelog.Seq(forward, int64(c.ordinal), c.num)
		require.Equal(t, nilIfNone(log[i+1:]), nilIfNone(k.changes(at, changelog.Now)), "from %s", at)
		require.Equal(t, nilIfNone(all[i+1:]), nilIfNone(k.changes(at, changelog.SnapshotID(s2))), "from %s", at)
		require.Equal(t, all[:i+1], k.changes(from, at), "to %s", at)
	}
}

// TestForwardOverExpired: a head that went forward over several snapshots is several steps. When one of them has expired the change is not
// told in another form, but with ErrExpired.
func TestForwardOverExpired(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	w := k.rawWriter()
	s1, _ := k.rawAppend(w, "", 1)
	s2, _ := k.rawAppend(w, "", 2)
	s3, _ := k.rawAppend(w, "", 3)
	w.SetRef(t, table.MainBranch, table.BranchRef, s1)
	back := k.cat.CommitSeq()
	w.SetRef(t, table.MainBranch, table.BranchRef, s3)
	all := k.changes(changelog.Seq(back-1), changelog.Now)
	require.Equal(t, []string{"DELETE 2|0|N|N", "DELETE 3|0|N|N", "INSERT 2|0|N|N", "INSERT 3|0|N|N"}, brief(all))
	w.Alter(t, table.NewRemoveSnapshotsUpdate([]int64{s2}, false))
	err := k.changesErr(changelog.Seq(back), changelog.Now)
	require.ErrorIs(t, err, changelog.ErrExpired)
	detail, hint := detailOf(t, err)
	require.Contains(t, detail, fmt.Sprint(s3))
	require.Contains(t, hint, "table_changes_net")
	// The way back is one step of two ends that are there.
	require.Equal(t, all[:2], k.changes(changelog.Seq(back-1), changelog.Seq(back)))
	require.Equal(t, []string{"INSERT 2|0|N|N", "INSERT 3|0|N|N"}, brief(k.net(changelog.Seq(back), changelog.Now)))
}

// TestEarliestOfATrimmedLog: where the log has lost its beginning and the snapshots are all there, the changes from the beginning are read along
// the ancestry.
func TestEarliestOfATrimmedLog(t *testing.T) {
	k := openKit(t, changelog.Options{})
	k.createTable(2, true)
	k.append(r1(1, "a"), r1(2, "a"))
	k.upsert(r1(2, "b"))
	k.deleteKeys(r1(1, "a"))
	want := brief(k.changes(changelog.Null, changelog.Now))
	require.Len(t, want, 5)
	_, err := k.cat.TrimLog(k.ctx, k.cat.CommitSeq())
	require.NoError(t, err)
	for _, from := range []changelog.Bound{changelog.Earliest, changelog.Null} {
		require.Equal(t, want, brief(k.changes(from, changelog.Now)))
	}
}
