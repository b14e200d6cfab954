package changelog_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// register adopts a table of another catalog as s.t.
func (f *fixture) register(metadata string) {
	f.t.Helper()
	_, err := f.cat.Commit(f.ctx, &catalog.Request{Changes: []catalog.Change{catalog.RegisterTable{Ident: ident, MetadataLocation: metadata}}})
	require.NoError(f.t, err)
}

func openEmpty(t *testing.T) *fixture {
	k := openKit(t, changelog.Options{})
	return &fixture{k, &testkit.Raw{Catalog: k.cat, FS: k.fs, Ident: ident}, testkit.NewReference(k.fs)}
}

// TestFileAddedTwice: "the data files in a snapshot are the union of all files in its manifests": a file listed twice has its rows once, and
// keeps them until it is listed no more.
func TestFileAddedTwice(t *testing.T) {
	f := openFixture(t, 2, nil)
	a := f.data(testkit.FileOptions{}, rec{1: int64(1)}, rec{1: int64(2)})
	require.Equal(t, []string{"INSERT 1|N", "INSERT 2|N"}, f.add(a, a))
	require.Equal(t, none, f.add(testkit.RawFile{DataFile: a.DataFile, Seq: 1}))
	eq := f.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(1)})
	require.Equal(t, []string{"DELETE 1|N"}, f.add(eq, eq))
	require.Equal(t, none, f.add(testkit.RawFile{DataFile: eq.DataFile, Seq: 3}))
	require.Equal(t, []string{"INSERT 1|N"}, f.add(a), "added anew it is newer than the delete")
	require.Equal(t, []string{"DELETE 1|N", "DELETE 2|N"}, f.remove(a))

	// The warehouse removes all entries of a file that it rewrites or removes.
	b := f.data(testkit.FileOptions{}, rec{1: int64(5)}, rec{1: int64(6)})
	f.add(b, f.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(7)}))
	f.add(b)
	before := f.cat.CommitSeq()
	res, err := f.wh.Compact(f.ctx, ident, warehouse.CompactOptions{MinInputFiles: 1, MaxDeleteFiles: 1})
	require.NoError(t, err)
	require.NotNil(t, res.Record)
	f.check()
	require.Equal(t, none, f.since(before))
	c := f.data(testkit.FileOptions{}, rec{1: int64(8)})
	f.add(c, c)
	f.add(c)
	before = f.cat.CommitSeq()
	f.do(func(tt *warehouse.TxTable) error {
		_, err := tt.Truncate(f.ctx)
		return err
	})
	f.check()
	require.Equal(t, []string{"DELETE 5|N", "DELETE 6|N", "DELETE 8|N"}, f.since(before))
	require.Empty(t, f.dataFiles())
}

// TestSnapshotWithoutParent: a snapshot that names no parent begins a line of its own. The log follows the head there in one step; along the ancestry there is no
// way. One without a summary is no replace snapshot.
func TestSnapshotWithoutParent(t *testing.T) {
	f := openFixture(t, 2, nil)
	f.add(f.data(testkit.FileOptions{}, rec{1: int64(1)}))
	before, first := f.cat.CommitSeq(), f.head()
	f.raw.Commit(t, testkit.RawCommit{NoParent: true, NoSummary: true, Add: []testkit.RawFile{f.data(testkit.FileOptions{}, rec{1: int64(2)})}})
	f.check()
	require.Equal(t, []string{"INSERT 2|N"}, f.since(before))
	require.Equal(t, []string{"INSERT 1|N", "INSERT 2|N"}, sorted(brief(f.changes(changelog.Null, changelog.Now))))
	err := f.changesErr(changelog.SnapshotID(first), changelog.SnapshotID(f.head()))
	require.ErrorIs(t, err, changelog.ErrNotAncestor)
	detail, _ := detailOf(t, err)
	require.Contains(t, detail, "no common ancestor")
	require.Equal(t, []string{"INSERT 2|N"}, brief(f.net(changelog.SnapshotID(first), changelog.Now)))
	f.commit(testkit.RawCommit{NoSummary: true, Remove: []string{f.dataFiles()[0]}})
	require.Len(t, f.since(f.cat.CommitSeq()-1), 1)
}

// dataFiles are the paths of the current data files.
func (f *fixture) dataFiles() (out []string) {
	data, _ := f.ref.Entries(f.t, f.raw.Meta(f.t), f.head())
	for _, e := range data {
		out = append(out, e.FilePath())
	}
	return out
}

// TestVersion1: tables of version 1 have no sequence numbers: all are 0. Made version 2 they are older than every delete.
func TestVersion1(t *testing.T) {
	f := openEmpty(t)
	old := testkit.NewForeign(t, t.TempDir())
	sc := testkit.Columns(nil, "id long", "s string")
	id := old.Table(t, "s.t", 1, sc)
	for n := range 3 {
		old.Delta(t, id, [][]any{{n, "old"}, {n + 10, "old"}}, nil, nil)
	}
	first := *old.Load(t, id).Metadata().CurrentSnapshot().ParentSnapshotID
	f.register(old.Metadata(t, id))
	require.Zero(t, f.raw.Meta(t).CurrentSnapshot().SequenceNumber)
	all := f.changes(changelog.Null, changelog.Now)
	require.Equal(t, []string{`INSERT 0|"old"`, `INSERT 10|"old"`, `INSERT 1|"old"`, `INSERT 11|"old"`, `INSERT 2|"old"`, `INSERT 12|"old"`}, brief(all))
	require.Equal(t, all[4:], f.changes(changelog.SnapshotID(first), changelog.Now))

	f.raw.Alter(t, table.NewUpgradeFormatVersionUpdate(2))
	files := f.dataFiles()
	require.Equal(t, []string{`DELETE 1|"old"`}, f.add(f.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(1)})))
	require.Equal(t, []string{`INSERT 1|"new"`}, f.add(f.data(testkit.FileOptions{}, rec{1: int64(1), 2: "new"})))
	pos := map[string][]int64{}
	for _, p := range files {
		pos[p] = []int64{1}
	}
	require.Equal(t, []string{`DELETE 10|"old"`, `DELETE 11|"old"`, `DELETE 12|"old"`}, f.add(f.positions(testkit.FileOptions{}, pos)))
	require.Equal(t, none, f.commit(testkit.RawCommit{Merge: true, Op: table.OpReplace}), "EXISTING entries keep sequence number 0")
	require.Equal(t, []string{`DELETE 0|"old"`}, f.add(f.equal([]int{2, 1}, testkit.FileOptions{}, rec{1: int64(0), 2: "old"})))
	require.Equal(t, []string{`INSERT 1|"new"`, `INSERT 2|"old"`}, sorted(brief(f.net(changelog.Null, changelog.Now))))
}

// TestOlderThanTheCatalog: a registered table's past has deletes, a branch and a rollback: it is told in ancestry order, without seq, and goes on
// with the catalog's commits.
func TestOlderThanTheCatalog(t *testing.T) {
	past := openFixture(t, 2, nil)
	a := past.data(testkit.FileOptions{}, rec{1: int64(1)}, rec{1: int64(2)})
	past.add(a)
	s1 := past.head()
	time.Sleep(3 * time.Millisecond)
	past.add(past.data(testkit.FileOptions{}, rec{1: int64(99)}))
	past.raw.SetRef(t, table.MainBranch, table.BranchRef, s1) // 99 was never on the way to what is now
	past.add(past.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(1)}), past.data(testkit.FileOptions{}, rec{1: int64(3)}))
	past.raw.Commit(t, testkit.RawCommit{Branch: "side", Add: []testkit.RawFile{past.data(testkit.FileOptions{}, rec{1: int64(50)})}})
	st, err := past.cat.Cut().Table(ident)
	require.NoError(t, err)

	f := openEmpty(t)
	f.register(st.MetadataLocation)
	reg := f.cat.CommitSeq()
	require.Equal(t, []string{"INSERT 4|N"}, f.add(f.data(testkit.FileOptions{}, rec{1: int64(4)})))
	all := f.changes(changelog.Null, changelog.Now)
	require.Equal(t, []string{"INSERT 1|N", "INSERT 2|N", "DELETE 1|N", "INSERT 3|N", "INSERT 4|N"}, brief(all))
	for i, c := range all {
		require.Equal(t, i < 4, c.seq == 0, "_commit_seq is NULL before the catalog")
		require.Zero(t, c.ordinal)
	}
	require.Equal(t, all[2:], f.changes(changelog.SnapshotID(s1), changelog.Now))
	require.Equal(t, all[2:4], f.changes(changelog.SnapshotID(s1), changelog.Seq(reg)))
	require.Equal(t, all[4:], f.changes(changelog.Seq(reg), changelog.Null))
	require.Equal(t, all[:2], f.changes(changelog.Null, changelog.SnapshotID(s1)))
	require.Equal(t, all[2:], f.changes(changelog.Timestamp(time.UnixMicro(all[0].ts)), changelog.Now))
	require.Equal(t, []string{"INSERT 50|N"}, brief(f.changes(changelog.SnapshotID(all[3].snapshot), changelog.Branch("side"))))
	require.ErrorIs(t, f.changesErr(changelog.Branch("side"), changelog.Now), changelog.ErrNotAncestor)
	require.Equal(t, []string{"DELETE 50|N", "INSERT 4|N"}, sorted(brief(f.net(changelog.Branch("side"), changelog.Now))))
	// Back to before the catalog, and on: one step with a seq, then its own.
	f.raw.SetRef(t, table.MainBranch, table.BranchRef, s1)
	require.Equal(t, []string{"DELETE 3|N", "DELETE 4|N", "INSERT 1|N"}, f.since(reg+1))
}

// window files of every kind: a table whose history reads a data file, a position delete, an equality delete and (version 3) a vector.
func (f *fixture) windowOfAll(version int) map[string]string {
	a := f.data(testkit.FileOptions{}, rec{1: int64(1), 2: "a"}, rec{1: int64(2), 2: "b"}, rec{1: int64(3), 2: "c"})
	f.add(a)
	eq := f.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(2)})
	f.add(eq)
	files := map[string]string{"data": a.FilePath(), "equality delete": eq.FilePath()}
	if version >= 3 {
		v := f.vector(a, 0)
		f.add(v)
		files["vector"] = v.FilePath()
	} else {
		p := f.positions(testkit.FileOptions{}, map[string][]int64{a.FilePath(): {0}})
		f.add(p)
		files["position delete"] = p.FilePath()
	}
	snap := f.raw.Meta(f.t).CurrentSnapshot()
	files["manifest list"] = snap.ManifestList
	list, err := snap.Manifests(f.fs)
	require.NoError(f.t, err)
	files["data manifest"], files["delete manifest"] = list[0].FilePath(), list[len(list)-1].FilePath()
	return files
}

// TestBrokenWindow: a file inside the window that is missing or damaged is an error that names it, whichever file it is: never rows left out, never a
// panic.
func TestBrokenWindow(t *testing.T) {
	for _, version := range []int{2, 3} {
		f := openFixture(t, version, nil)
		files := f.windowOfAll(version)
		want, err := f.cold()
		require.NoError(t, err)
		require.Len(t, want, 5)
		for what, path := range files {
			t.Run(fmt.Sprintf("v%d %s", version, what), func(t *testing.T) {
				path := storeio.PathOf(path)
				whole, err := os.ReadFile(path)
				require.NoError(t, err)
				put := func(data []byte) {
					f.fs.CloseIdle()
					require.NoError(t, os.WriteFile(path, data, 0o644))
				}
				defer put(whole)
				require.NoError(t, os.Remove(path))
				f.fs.CloseIdle()
				_, err = f.cold()
				require.ErrorIs(t, err, liveset.ErrMissingFile)
				require.Contains(t, err.Error(), filepath.Base(path))

				var damaged *liveset.DamagedError
				for name, data := range map[string][]byte{"empty": {}, "cut": whole[:len(whole)/2], "cut at its end": whole[:len(whole)-3],
					"garbage": []byte(strings.Repeat("\xff", len(whole)))} {
					put(data)
					_, err = f.cold()
					require.ErrorAs(t, err, &damaged, name)
					require.Equal(t, path, storeio.PathOf(damaged.Path), name)
				}
				// Any one byte: what a checksum or a structure guards is an error, the rest may be other values; nothing panics, nothing hangs.
				rng := rand.New(rand.NewPCG(uint64(len(whole)), 5))
				for range 40 {
					bad := append([]byte(nil), whole...)
					bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
					put(bad)
					_, _ = f.cold()
				}
			})
		}
		got, err := f.cold()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestLostDeleteOutsideTheWindow: a window needs the files that its two ends and its steps name, and no others.
func TestLostDeleteOutsideTheWindow(t *testing.T) {
	f := openFixture(t, 2, nil)
	a := f.data(testkit.FileOptions{}, rec{1: int64(1)}, rec{1: int64(2)})
	f.add(a)
	p := f.positions(testkit.FileOptions{}, map[string][]int64{a.FilePath(): {0}})
	f.add(p)
	f.remove(p)
	from := f.cat.CommitSeq()
	require.NoError(t, os.Remove(storeio.PathOf(p.FilePath())))
	f.r = changelog.New(changelog.Options{Catalog: f.cat, Live: liveset.NewCache(liveset.Options{FS: f.fs})})
	f.fs.CloseIdle()
	f.add(f.data(testkit.FileOptions{}, rec{1: int64(3)}))
	require.Equal(t, []string{"INSERT 3|N"}, f.since(from))
	require.ErrorIs(t, lastErr(f.cold()), liveset.ErrMissingFile)
	require.Equal(t, []string{"INSERT 1|N", "INSERT 2|N", "INSERT 3|N"}, brief(f.net(changelog.Null, changelog.Now)))
}

func lastErr(_ []change, err error) error { return err }

// TestVoidSpecIsGlobal: a spec whose fields are all void is unpartitioned, as in tables of version 1 that dropped their partitioning: deletes by equality
// under it reach every partition.
func TestVoidSpecIsGlobal(t *testing.T) {
	f := openFixture(t, 2, nil)
	part := iceberg.NewPartitionSpecID(1, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}})
	void := iceberg.NewPartitionSpecID(2, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.VoidTransform{}})
	f.raw.Alter(t, table.NewAddPartitionSpecUpdate(&part, false), table.NewAddPartitionSpecUpdate(&void, false))
	in := func(p string) testkit.Place { return testkit.Place{Spec: part, Partition: map[int]any{1000: p}} }
	file := func(p string, ids ...int64) testkit.RawFile {
		var rows []rec
		for _, id := range ids {
			rows = append(rows, rec{1: id, 2: p})
		}
		return f.raw.DataFile(t, f.schema(), in(p), rows, testkit.FileOptions{})
	}
	f.add(file("x", 1, 2), file("y", 1, 2))
	require.Equal(t, []string{`DELETE 1|"x"`}, f.add(f.raw.EqualityDelete(t, f.schema(), in("x"), []int{1}, []rec{{1: int64(1)}}, testkit.FileOptions{})))
	everywhere := testkit.Place{Spec: void, Partition: map[int]any{1000: nil}}
	require.Equal(t, []string{`DELETE 2|"x"`, `DELETE 2|"y"`},
		f.add(f.raw.EqualityDelete(t, f.schema(), everywhere, []int{1}, []rec{{1: int64(2)}}, testkit.FileOptions{})))
}

// TestPartitionTellsColumn: a file without a column that its partition tells by identity, as files adopted from Hive tables are, has the partition's value
// in every row (spec, "Column Projection", first rule): in changes and as a key of deletes. NULL is a value, and comes before the initial default.
func TestPartitionTellsColumn(t *testing.T) {
	for _, named := range []bool{false, true} {
		f := openFixture(t, 2, iceberg.Properties{"schema.name-mapping.default": `[{"field-id":1,"names":["id"]},{"field-id":2,"names":["s"]}]`})
		part := iceberg.NewPartitionSpecID(1, iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}})
		f.raw.Alter(t, table.NewAddPartitionSpecUpdate(&part, false))
		file := func(p any, id int64) testkit.RawFile {
			return f.raw.DataFile(t, f.schema(), testkit.Place{Spec: part, Partition: map[int]any{1000: p}}, []rec{{1: id}}, testkit.FileOptions{Hive: true, NoFieldIDs: named})
		}
		require.Equal(t, []string{`INSERT 1|"x"`, `INSERT 2|"y"`, `INSERT 3|N`}, f.add(file("x", 1), file("y", 2), file(nil, 3)))
		require.Equal(t, []string{`DELETE 2|"y"`}, f.add(f.equal([]int{2}, testkit.FileOptions{}, rec{2: "y"})))
		require.Equal(t, []string{`DELETE 3|N`}, f.add(f.equal([]int{2, 1}, testkit.FileOptions{}, rec{1: int64(3)})))
		require.Equal(t, []string{`INSERT 1|"x"`}, brief(f.net(changelog.Null, changelog.Now)))
	}
}
