package changelog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// fixture is a table that is written entry by entry. Right values are reasoned from the Iceberg spec, "Scan Planning" and "Column Projection".
type fixture struct {
	*kit
	raw *testkit.Raw
	ref *testkit.Reference
}

type rec = testkit.Record

// openFixture makes s.t of the schema's fields, without a key unless ids name one.
func openFixture(t *testing.T, version int, props iceberg.Properties, fields ...iceberg.NestedField) *fixture {
	t.Helper()
	k := openKit(t, changelog.Options{})
	if len(fields) == 0 {
		fields = []iceberg.NestedField{{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}, {ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String}}
	}
	_, err := k.wh.CreateTable(k.ctx, warehouse.CreateTable{Ident: ident, FormatVersion: version, Schema: iceberg.NewSchema(0, fields...), Properties: props})
	require.NoError(t, err)
	return &fixture{k, &testkit.Raw{Catalog: k.cat, FS: k.fs, Ident: ident}, testkit.NewReference(k.fs)}
}

func (f *fixture) place() testkit.Place { return testkit.Place{Spec: f.raw.Meta(f.t).PartitionSpec()} }

func (f *fixture) schema() *iceberg.Schema { return f.raw.Meta(f.t).CurrentSchema() }

func (f *fixture) data(o testkit.FileOptions, rows ...rec) testkit.RawFile {
	return f.raw.DataFile(f.t, f.schema(), f.place(), rows, o)
}

func (f *fixture) equal(ids []int, o testkit.FileOptions, keys ...rec) testkit.RawFile {
	return f.raw.EqualityDelete(f.t, f.schema(), f.place(), ids, keys, o)
}

func (f *fixture) positions(o testkit.FileOptions, at map[string][]int64) testkit.RawFile {
	return f.raw.PositionDelete(f.t, f.place(), at, o)
}

func (f *fixture) vector(data testkit.RawFile, pos ...int64) testkit.RawFile {
	e := testkit.Entry{DataFile: data.DataFile}
	return f.raw.Vectors(f.t, f.raw.Meta(f.t), map[string][]int64{data.FilePath(): pos}, map[string]testkit.Entry{data.FilePath(): e})[0]
}

// add commits files; change is what the commit changed, by the feed.
func (f *fixture) add(files ...testkit.RawFile) (change []string) {
	f.t.Helper()
	return f.commit(testkit.RawCommit{Add: files})
}

func (f *fixture) remove(files ...testkit.RawFile) (change []string) {
	f.t.Helper()
	var c testkit.RawCommit
	for _, x := range files {
		c.Remove = append(c.Remove, testkit.EntryKey(x.DataFile))
	}
	return f.commit(c)
}

func (f *fixture) commit(c testkit.RawCommit) []string {
	f.t.Helper()
	before := f.cat.CommitSeq()
	f.raw.Commit(f.t, c)
	f.check()
	return f.since(before)
}

// since are the changes after a seq, sorted: the order within a commit is told by other tests.
func (f *fixture) since(seq uint64) []string {
	f.t.Helper()
	return sorted(brief(f.changes(changelog.Seq(seq), changelog.Now)))
}

// check compares the state with the reference's, read by a cache that derived it step by step, and by one that begins with it.
func (f *fixture) check() {
	f.t.Helper()
	meta := f.raw.Meta(f.t)
	id := meta.CurrentSnapshot().SnapshotID
	want := multiset{}
	for _, r := range f.ref.Rows(f.t, meta, id) {
		want.add(r.Text(meta.CurrentSchema()), 1)
	}
	for _, c := range []*liveset.Cache{f.live, liveset.NewCache(liveset.Options{FS: f.fs})} {
		got := multiset{}
		ref := liveset.Ref{UUID: meta.TableUUID(), Metadata: meta}
		set, err := c.At(f.ctx, ref, id)
		require.NoError(f.t, err)
		for b, err := range c.Scan(f.ctx, ref, set, meta.CurrentSchema(), liveset.ScanOptions{}) {
			require.NoError(f.t, err)
			for r := range int(b.NumRows()) {
				got.add(rowText(b, r, int(b.NumCols())), 1)
			}
		}
		require.Equal(f.t, want, got)
	}
}

// cold reads the table's changes without caches, as a new process does.
func (f *fixture) cold() ([]change, error) {
	r := changelog.New(changelog.Options{Catalog: f.cat, Live: liveset.NewCache(liveset.Options{FS: f.fs})})
	x, err := r.Changes(f.ctx, changelog.Request{Cut: f.cat.Cut(), Ident: ident})
	if err != nil {
		return nil, err
	}
	return tryChanges(x.Batches(f.ctx), x.Columns().Table.NumFields())
}

var none []string

// TestDeletesWithoutFieldIDs: position deletes have reserved names, equality deletes need the table's name mapping; without one the file cannot be told.
func TestDeletesWithoutFieldIDs(t *testing.T) {
	plain := testkit.FileOptions{NoFieldIDs: true}
	mapping := iceberg.Properties{"schema.name-mapping.default": `[{"field-id":1,"names":["id","old"]},{"field-id":2,"names":["s"]}]`}
	f := openFixture(t, 2, mapping)
	a := f.data(plain, rec{1: int64(1)}, rec{1: int64(2)}, rec{1: int64(3)})
	f.add(a)
	require.Equal(t, []string{"DELETE 1|N"}, f.add(f.positions(plain, map[string][]int64{a.FilePath(): {0}})))
	require.Equal(t, []string{"DELETE 2|N"}, f.add(f.equal([]int{1}, plain, rec{1: int64(2)})))

	bare := openFixture(t, 2, nil)
	bare.add(bare.data(testkit.FileOptions{}, rec{1: int64(1)}))
	bare.raw.Commit(t, testkit.RawCommit{Add: []testkit.RawFile{bare.equal([]int{1}, plain, rec{1: int64(1)})}})
	_, err := bare.cold()
	require.ErrorIs(t, err, liveset.ErrNoFieldIDs)
}

// TestVectorOverPositionDeletes: a vector stands for all position deletes of its file, older ones too. When it goes they count again.
func TestVectorOverPositionDeletes(t *testing.T) {
	f := openFixture(t, 2, nil)
	a := f.data(testkit.FileOptions{}, rec{1: int64(0)}, rec{1: int64(1)}, rec{1: int64(2)}, rec{1: int64(3)})
	b := f.data(testkit.FileOptions{}, rec{1: int64(10)}, rec{1: int64(11)})
	f.add(a, b)
	require.Equal(t, []string{"DELETE 0|N", "DELETE 10|N", "DELETE 1|N"},
		f.add(f.positions(testkit.FileOptions{}, map[string][]int64{a.FilePath(): {0, 1}, b.FilePath(): {0}})))
	f.raw.Alter(t, table.NewUpgradeFormatVersionUpdate(3))
	v := f.vector(a, 1, 2)
	require.Equal(t, []string{"DELETE 2|N", "INSERT 0|N"}, f.add(v), "the vector holds 1 and 2; b is not its file")
	require.Equal(t, []string{"DELETE 0|N", "INSERT 2|N"}, f.remove(v))
	w, both := f.vector(a, 0, 1, 3), f.vector(a, 3)
	require.Equal(t, []string{"DELETE 3|N"}, f.add(w))
	require.Equal(t, []string{"INSERT 0|N", "INSERT 1|N"},
		f.commit(testkit.RawCommit{Add: []testkit.RawFile{both}, Remove: []string{testkit.EntryKey(w.DataFile)}}), "a vector replaced by a smaller one")
}

// TestDeletesOfNothing: deletes that name no file of the table, or are not newer than any, change nothing by coming or by going.
func TestDeletesOfNothing(t *testing.T) {
	f := openFixture(t, 2, nil)
	old := f.equal([]int{1}, testkit.FileOptions{}, rec{1: int64(1)})
	f.add(old) // older than every file
	a := f.data(testkit.FileOptions{}, rec{1: int64(1)}, rec{1: int64(2)})
	require.Equal(t, []string{"INSERT 1|N", "INSERT 2|N"}, f.add(a))
	nowhere := f.positions(testkit.FileOptions{}, map[string][]int64{"/nowhere/else.parquet": {0, 1}})
	require.Equal(t, none, f.add(nowhere))
	same := f.equal([]int{1}, testkit.FileOptions{Metrics: true}, rec{1: int64(7)})
	require.Equal(t, []string{"INSERT 7|N"}, f.add(same, f.data(testkit.FileOptions{}, rec{1: int64(7)})), "strictly lower: not what came with it")
	beyond := f.positions(testkit.FileOptions{Metrics: true}, map[string][]int64{a.FilePath(): {2, 99}})
	require.Equal(t, none, f.add(beyond), "positions past the end")
	for _, d := range []testkit.RawFile{old, nowhere, same, beyond} {
		require.Equal(t, none, f.remove(d))
	}
	require.Equal(t, none, f.remove(), "a snapshot of no change")
}

// TestEqualityOnNestedField: a key column may stand in a struct; a NULL struct has NULL fields.
func TestEqualityOnNestedField(t *testing.T) {
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 3, Name: "a", Type: iceberg.PrimitiveTypes.Int32}, {ID: 4, Name: "b", Type: iceberg.PrimitiveTypes.String}}}
	f := openFixture(t, 2, nil, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 2, Name: "st", Type: inner})
	in := func(a any) rec { return rec{3: a, 4: "x"} }
	f.add(f.data(testkit.FileOptions{}, rec{1: int64(1), 2: in(int64(7))}, rec{1: int64(2), 2: in(int64(8))}, rec{1: int64(3), 2: in(nil)}, rec{1: int64(4)}))
	count := func() int {
		n := 0
		for _, x := range f.changes(changelog.Null, changelog.Now) {
			if isDelete(x.typ) {
				n--
			} else {
				n++
			}
		}
		return n
	}
	f.raw.Commit(t, testkit.RawCommit{Add: []testkit.RawFile{f.equal([]int{3}, testkit.FileOptions{}, rec{2: in(int64(7))})}})
	require.Equal(t, 3, count())
	require.Len(t, f.ref.Rows(t, f.raw.Meta(t), f.head()), 3)
	f.raw.Commit(t, testkit.RawCommit{Add: []testkit.RawFile{f.equal([]int{3}, testkit.FileOptions{}, rec{2: in(nil)})}})
	require.Equal(t, 1, count(), "both the NULL field and the NULL struct")
	require.Len(t, f.ref.Rows(t, f.raw.Meta(t), f.head()), 1)
}

// TestEqualityWithoutItsColumn: a delete file that lacks its key column is damaged: NULL or a default would stand for the key, and delete what was never named.
func TestEqualityWithoutItsColumn(t *testing.T) {
	f := openFixture(t, 2, nil)
	f.add(f.data(testkit.FileOptions{}, rec{1: int64(1)}, rec{1: int64(2), 2: "b"}))
	other := f.raw.EqualityDelete(t, iceberg.NewSchema(0, iceberg.NestedField{ID: 9, Name: "s", Type: iceberg.PrimitiveTypes.String}), f.place(), []int{9}, []rec{{9: "b"}}, testkit.FileOptions{})
	other.DataFile = equalityBy(other.DataFile, 2)
	f.raw.Commit(t, testkit.RawCommit{Add: []testkit.RawFile{other}})
	_, err := f.cold()
	var damaged *liveset.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.Equal(t, other.FilePath(), damaged.Path)
}

// equalityBy says of an equality delete that it is by other fields.
func equalityBy(df iceberg.DataFile, ids ...int) iceberg.DataFile {
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, df.ContentType(), df.FilePath(), df.FileFormat(), nil, nil, nil, df.Count(), df.FileSizeBytes())
	if err != nil {
		panic(err)
	}
	return b.EqualityFieldIDs(ids).Build()
}

// TestEqualityOnAbsentColumn: a column that a data file has not got is its initial default there, or NULL.
func TestEqualityOnAbsentColumn(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			f := openFixture(t, version, nil)
			f.add(f.data(testkit.FileOptions{Metrics: true}, rec{1: int64(1), 2: "a"}, rec{1: int64(2), 2: "b"}))
			extra := iceberg.NestedField{ID: 5, Name: "extra", Type: iceberg.PrimitiveTypes.Int32}
			absent, shown := any(nil), "N"
			if version >= 3 {
				extra.InitialDefault, extra.WriteDefault, absent, shown = int32(7), int32(9), int64(7), "7"
			}
			f.raw.Alter(t, table.NewAddSchemaUpdate(iceberg.NewSchema(1, append(f.schema().Fields(), extra)...)), table.NewSetCurrentSchemaUpdate(1))
			f.add(f.data(testkit.FileOptions{Metrics: true}, rec{1: int64(3), 2: "c", 5: int64(9)}))
			require.Equal(t, none, f.add(f.equal([]int{5}, testkit.FileOptions{Metrics: true}, rec{5: int64(1)})))
			byBoth := f.equal([]int{1, 5}, testkit.FileOptions{Metrics: true}, rec{1: int64(1), 5: absent}, rec{1: int64(3), 5: absent})
			require.Equal(t, []string{`DELETE 1|"a"|` + shown}, f.add(byBoth))
			require.Equal(t, []string{`DELETE 2|"b"|` + shown}, f.add(f.equal([]int{5}, testkit.FileOptions{Metrics: true}, rec{5: absent})))
			require.Equal(t, none, f.remove(byBoth), "another delete holds the row now")
		})
	}
}

// TestEqualityOnFloats: the spec forbids float keys; of a writer that has them, NaN is NaN and the zeros differ, as in Java's comparators.
func TestEqualityOnFloats(t *testing.T) {
	f := openFixture(t, 2, nil, iceberg.NestedField{ID: 1, Name: "v", Type: iceberg.PrimitiveTypes.Float32})
	f.add(f.data(testkit.FileOptions{Metrics: true}, rec{1: 0.0}, rec{1: math.Copysign(0, -1)}, rec{1: math.NaN()}, rec{1: 1.5}, rec{1: nil}))
	require.Equal(t, []string{"DELETE -0"}, f.add(f.equal([]int{1}, testkit.FileOptions{Metrics: true}, rec{1: math.Copysign(0, -1)})))
	wider := iceberg.NewSchema(1, iceberg.NestedField{ID: 1, Name: "v", Type: iceberg.PrimitiveTypes.Float64})
	f.raw.Alter(t, table.NewAddSchemaUpdate(wider), table.NewSetCurrentSchemaUpdate(1))
	require.Equal(t, []string{"DELETE 0", "DELETE NaN"}, f.add(f.equal([]int{1}, testkit.FileOptions{Metrics: true}, rec{1: math.NaN()}, rec{1: 0.0})))
	require.Equal(t, []string{"DELETE N"}, f.add(f.equal([]int{1}, testkit.FileOptions{}, rec{1: nil})))
	require.Equal(t, []string{"DELETE 1.5"}, f.add(f.equal([]int{1}, testkit.FileOptions{}, rec{1: 1.5})))
}

// TestEqualityKeysDroppedRenamed: the field id is what a key column is: its name may have gone to another one.
func TestEqualityKeysDroppedRenamed(t *testing.T) {
	f := openFixture(t, 2, nil)
	a := f.data(testkit.FileOptions{}, rec{1: int64(1), 2: "a"}, rec{1: int64(2), 2: "b"})
	f.add(a)
	byS := f.equal([]int{2}, testkit.FileOptions{}, rec{2: "a"})
	require.Equal(t, []string{`DELETE 1|"a"`}, f.add(byS))
	next := iceberg.NewSchema(1, iceberg.NestedField{ID: 1, Name: "s", Type: iceberg.PrimitiveTypes.Int64}, iceberg.NestedField{ID: 3, Name: "id", Type: iceberg.PrimitiveTypes.String})
	f.raw.Alter(t, table.NewAddSchemaUpdate(next), table.NewSetCurrentSchemaUpdate(1))
	f.check()
	require.Equal(t, []string{"INSERT 1|N"}, f.remove(byS))
	// By both, of which one is gone, and both are called s.
	both := iceberg.NewSchema(0, next.Field(0), iceberg.NestedField{ID: 2, Name: "b", Type: iceberg.PrimitiveTypes.String})
	require.Equal(t, []string{"DELETE 1|N"}, f.add(f.raw.EqualityDelete(t, both, f.place(), []int{1, 2}, []rec{{1: int64(1), 2: "a"}, {1: int64(2), 2: "a"}}, testkit.FileOptions{})))
	// A file of today's schema that is older than a delete by the dropped column: the column is NULL there.
	byNull := f.raw.EqualityDelete(t, iceberg.NewSchema(0, iceberg.NestedField{ID: 2, Name: "s", Type: iceberg.PrimitiveTypes.String}), f.place(), []int{2}, []rec{{2: nil}}, testkit.FileOptions{})
	f.add(f.data(testkit.FileOptions{}, rec{1: int64(5), 3: "x"}))
	require.Equal(t, []string{`DELETE 5|"x"`}, f.add(byNull))
	require.True(t, strings.HasSuffix(fmt.Sprint(f.since(f.cat.CommitSeq()-2)), `DELETE 5|"x" INSERT 5|"x"]`))
}
