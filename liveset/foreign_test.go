package liveset

import (
	"context"
	"fmt"
	"iter"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// foreign is a table that iceberg-go writes, held in memory by a catalog of one table.
type foreign struct {
	t    *testing.T
	fs   *storeio.FS
	tbl  *table.Table
	meta table.Metadata
	loc  string
	n    int
}

func (f *foreign) open() *table.Table {
	return table.New(table.Identifier{"s", "t"}, f.meta, f.loc, func(context.Context) (icebergio.IO, error) { return f.fs, nil }, f)
}

func (f *foreign) LoadTable(context.Context, table.Identifier) (*table.Table, error) {
	return f.open(), nil
}

func (f *foreign) CommitTable(_ context.Context, _ table.Identifier, reqs []table.Requirement, ups []table.Update) (table.Metadata, string, error) {
	for _, r := range reqs {
		if err := r.Validate(f.meta); err != nil {
			return nil, "", err
		}
	}
	meta, err := table.UpdateTableMetadata(f.meta, ups, f.loc)
	if err != nil {
		return nil, "", err
	}
	f.n++
	f.meta, f.loc = meta, fmt.Sprintf("%s/metadata/v%d.metadata.json", meta.Location(), f.n)
	return meta, f.loc, nil
}

func newForeign(t *testing.T, version int, partitioned bool, props iceberg.Properties) *foreign {
	t.Helper()
	sc := testSchema()
	spec := iceberg.NewPartitionSpec()
	if partitioned {
		spec = iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{4}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}})
	}
	all := iceberg.Properties{table.PropertyFormatVersion: fmt.Sprint(version)}
	for k, v := range props {
		all[k] = v
	}
	meta, err := table.NewMetadata(sc, &spec, table.UnsortedSortOrder, t.TempDir(), all)
	require.NoError(t, err)
	f := &foreign{t: t, fs: storeio.NewFS(storeio.Options{NoSync: true}), meta: meta, loc: meta.Location() + "/metadata/v0.metadata.json"}
	f.tbl = f.open()
	return f
}

func (f *foreign) rec(rows []row) arrow.RecordBatch {
	as, err := parquetio.ArrowSchema(f.meta.CurrentSchema(), false)
	require.NoError(f.t, err)
	return batch(as, []int{1, 2, 3, 4}, rows)
}

func one(rec arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }
}

// files writes rows by iceberg-go's writer.
func (f *foreign) files(rows []row) (out []iceberg.DataFile) {
	rec := f.rec(rows)
	for df, err := range table.WriteRecords(f.t.Context(), f.tbl, rec.Schema(), one(rec)) {
		require.NoError(f.t, err)
		out = append(out, df)
	}
	return out
}

func (f *foreign) commit(do func(tx *table.Transaction)) {
	f.t.Helper()
	tx := f.tbl.NewTransaction()
	do(tx)
	tbl, err := tx.Commit(f.t.Context())
	require.NoError(f.t, err)
	f.tbl = tbl
}

// upsert deletes keys by equality and adds rows, in one snapshot.
func (f *foreign) upsert(ids []int, keys, rows []row) {
	f.t.Helper()
	f.commit(func(tx *table.Transaction) {
		rd := tx.NewRowDelta(nil)
		if len(keys) > 0 {
			cols := append([]int{}, ids...)
			if !f.meta.PartitionSpec().IsUnpartitioned() {
				cols = append(cols, 4)
			}
			var fields []iceberg.NestedField
			for _, id := range cols {
				fl, _ := f.meta.CurrentSchema().FindFieldByID(id)
				fields = append(fields, fl)
			}
			as, err := parquetio.ArrowSchema(iceberg.NewSchema(0, fields...), false)
			require.NoError(f.t, err)
			dels, err := tx.WriteEqualityDeletes(f.t.Context(), ids, one(batch(as, cols, keys)))
			require.NoError(f.t, err)
			rd.AddDeletes(dels...)
		}
		if len(rows) > 0 {
			rd.AddRows(f.files(rows)...)
		}
		require.NoError(f.t, rd.Commit(f.t.Context()))
	})
}

func (f *foreign) ref() Ref { return Ref{UUID: f.meta.TableUUID(), Metadata: f.meta} }

// theirs are the rows by iceberg-go's own scan.
func (f *foreign) theirs() []string {
	f.t.Helper()
	tbl, err := f.tbl.Scan().ToArrowTable(f.t.Context())
	require.NoError(f.t, err)
	defer tbl.Release()
	out := []string{}
	tr := array.NewTableReader(tbl, 0)
	defer tr.Release()
	for tr.Next() {
		out = append(out, rowTexts(tr.RecordBatch())...)
	}
	sort.Strings(out)
	return out
}

func (f *foreign) ours(c *Cache) []string {
	f.t.Helper()
	s, err := c.At(f.t.Context(), f.ref(), f.meta.CurrentSnapshot().SnapshotID)
	require.NoError(f.t, err)
	out := scanRows(f.t, c, f.ref(), s, MetaColumns{})
	require.EqualValues(f.t, len(out), s.Rows())
	sort.Strings(out)
	return out
}

func (f *foreign) cache() *Cache { return NewCache(Options{FS: f.fs, Logger: zerolog.Nop()}) }

func inPart(p string, ids ...int64) []row {
	rows := rowsOf(ids...)
	for i := range rows {
		rows[i].p = p
	}
	return rows
}

// TestForeignWriters reads tables that iceberg-go wrote, with every kind of delete it can write, and agrees with its own scan.
func TestForeignWriters(t *testing.T) {
	for _, version := range []int{2, 3} {
		for _, partitioned := range []bool{false, true} {
			t.Run(fmt.Sprintf("v%d/partitioned=%t", version, partitioned), func(t *testing.T) {
				f := newForeign(t, version, partitioned, iceberg.Properties{table.WriteDeleteModeKey: table.WriteModeMergeOnRead, "write.delete.isolation-level": "snapshot"})
				c := f.cache()
				same := func(step string) {
					t.Helper()
					require.Equal(t, f.theirs(), f.ours(c), step)
					require.Equal(t, f.ours(f.cache()), f.ours(c), step)
				}
				f.upsert(nil, nil, append(inPart("x", 1, 2, 3, 4, 5), inPart("y", 6, 7, 8, 9)...))
				same("append")
				f.upsert([]int{1}, append(inPart("x", 2), inPart("y", 7)...), append(inPart("x", 2, 10), inPart("y", 7)...))
				same("upsert by equality delete")
				f.upsert([]int{2}, inPart("x", 3), nil)
				same("delete by another column")
				tbl, err := f.tbl.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(5)), nil)
				require.NoError(t, err)
				f.tbl = tbl
				same("merge-on-read delete")
				tbl, err = f.tbl.Delete(t.Context(), iceberg.LessThan(iceberg.Reference("id"), int64(3)), nil)
				require.NoError(t, err)
				f.tbl = tbl
				same("merge-on-read delete over another")
				f.upsert([]int{1}, inPart("y", 8), inPart("y", 8))
				same("upsert after")
				f.commit(func(tx *table.Transaction) {
					wider := table.ColumnUpdate{FieldType: iceberg.Optional[iceberg.Type]{Valid: true, Val: prim.Int64}}
					require.NoError(t, tx.UpdateSchema(true, false).UpdateColumn([]string{"k"}, wider).Commit())
				})
				f.commit(func(tx *table.Transaction) {
					require.NoError(t, tx.UpdateSchema(true, false).RenameColumn([]string{"k"}, "kk").Commit())
				})
				same("renamed and widened")
			})
		}
	}
}

// TestTrapCopyOnWrite: iceberg-go's copy-on-write delete over live deletes brings deleted rows back, because it rewrites data files without their
// deletes. We never call it; a merge-on-read history read by us keeps them deleted, and what a foreign copy-on-write commit resurrected is
// read as that commit wrote it.
func TestTrapCopyOnWrite(t *testing.T) {
	f := newForeign(t, 2, false, iceberg.Properties{table.WriteDeleteModeKey: table.WriteModeCopyOnWrite, "write.delete.isolation-level": "snapshot"})
	c := f.cache()
	f.upsert(nil, nil, rowsOf(1, 2, 3, 4))
	f.upsert([]int{1}, rowsOf(2), nil)
	require.Len(t, f.ours(c), 3)
	before := f.meta.CurrentSnapshot().SnapshotID
	tbl, err := f.tbl.Delete(t.Context(), iceberg.EqualTo(iceberg.Reference("id"), int64(4)), nil)
	require.NoError(t, err)
	f.tbl = tbl
	require.Equal(t, f.theirs(), f.ours(c), "we read what was committed")
	s, err := c.At(t.Context(), f.ref(), before)
	require.NoError(t, err)
	require.EqualValues(t, 3, s.Rows(), "and the snapshot before it keeps its row deleted")
	d, err := Diff(t.Context(), s, mustAt(t, c, f))
	require.NoError(t, err)
	text := ""
	for _, x := range d {
		text += fmt.Sprint(x.Deleted, x.Inserted)
	}
	require.NotEmpty(t, text)
}

func mustAt(t *testing.T, c *Cache, f *foreign) *Set {
	s, err := c.At(t.Context(), f.ref(), f.meta.CurrentSnapshot().SnapshotID)
	require.NoError(t, err)
	return s
}

// TestTrapVectorWithEqualityDelete: a deletion vector may hold rows that an equality delete already took; the row counts once.
func TestTrapVectorWithEqualityDelete(t *testing.T) {
	k := newKit(t, 3)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3, 4), 0)
	k.commit(change{add: []iceberg.DataFile{f}})
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(2))}})
	k.commit(change{del: []iceberg.DataFile{k.vector(f, []int64{1, 2})}})
	s := k.at(c, *k.head)
	require.EqualValues(t, 2, s.Rows())
	require.Equal(t, []uint32{1, 2}, s.File(f.FilePath()).Suppressed.ToArray())
	// Removing the equality delete resurrects nothing that the vector holds; removing the vector resurrects what only it held.
	var eq, vec string
	for d := range s.DeleteFiles() {
		if d.Kind == EqualityDelete {
			eq = d.key
		} else {
			vec = d.key
		}
	}
	k.commit(change{remove: []string{eq}})
	require.Equal(t, []uint32{1, 2}, k.at(c, *k.head).File(f.FilePath()).Suppressed.ToArray())
	k.commit(change{remove: []string{vec}})
	require.Nil(t, k.at(c, *k.head).File(f.FilePath()).Suppressed)
}

// TestTrapDeleteInsert: a position delete of the commit that added the rows hides rows that were never visible; an equality delete of that commit
// does not reach them.
func TestTrapDeleteInsert(t *testing.T) {
	k := newKit(t, 2)
	c := k.cache()
	f := k.dataFile(0, "", rowsOf(1, 2, 3), 0)
	k.commit(change{add: []iceberg.DataFile{f}, del: []iceberg.DataFile{
		k.positionDelete(0, "", "", map[string][]uint32{f.FilePath(): {0}}),
		k.equalityDelete(0, "", testSchema(), []int{1}, rowsOf(2)),
	}})
	s := k.at(c, *k.head)
	require.Equal(t, []uint32{0}, s.File(f.FilePath()).Suppressed.ToArray())
	d, err := Diff(t.Context(), Empty(), s)
	require.NoError(t, err)
	require.Len(t, d, 1)
	require.Equal(t, []uint32{1, 2}, d[0].Inserted.ToArray())
}

// TestEqualityScope: a delete under a partitioned spec stays in its partition, one under an unpartitioned spec reaches all.
func TestEqualityScope(t *testing.T) {
	k := newKit(t, 2, twoSpecs()...)
	c := k.cache()
	x, y, u := k.dataFile(0, "x", inPart("x", 1, 2), 0), k.dataFile(0, "y", inPart("y", 1, 2), 0), k.dataFile(1, "", inPart("x", 1, 2), 0)
	k.commit(change{add: []iceberg.DataFile{x, y, u}})
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(0, "x", testSchema(), []int{1}, rowsOf(1))}})
	s := k.at(c, *k.head)
	require.NotNil(t, s.File(x.FilePath()).Suppressed)
	require.Nil(t, s.File(y.FilePath()).Suppressed)
	require.Nil(t, s.File(u.FilePath()).Suppressed)
	k.commit(change{del: []iceberg.DataFile{k.equalityDelete(1, "", testSchema(), []int{1}, rowsOf(2))}})
	s = k.at(c, *k.head)
	require.EqualValues(t, 2, s.Rows())
	require.True(t, strings.HasSuffix(s.File(x.FilePath()).Suppressed.String(), "{0,1}"))
}
