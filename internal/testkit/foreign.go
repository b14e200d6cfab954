package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Foreign is a folder of tables that iceberg-go writes and another catalog keeps: <ns>/<table>/metadata/… in the layout of Hadoop's catalog
// (vN.metadata.json and version-hint.text) or of the SQL, Hive and REST catalogs (NNNNN-<uuid>.metadata.json).
type Foreign struct {
	Dir string
	// Named chooses the second layout.
	Named bool

	fs     *storeio.FS
	tables map[string]*foreignTable
	files  int
}

type foreignTable struct {
	f        *Foreign
	ident    icetable.Identifier
	meta     icetable.Metadata
	location string
	version  int
}

// NewForeign makes a warehouse of another catalog in an existing folder.
func NewForeign(_ testing.TB, dir string) *Foreign {
	return &Foreign{Dir: dir, fs: storeio.NewFS(storeio.Options{NoSync: true}), tables: map[string]*foreignTable{}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Table creates the table "ns.name" in a format version.
func (f *Foreign) Table(t testing.TB, name string, version int, sc *iceberg.Schema) icetable.Identifier {
	t.Helper()
	ident := icetable.Identifier(strings.Split(name, "."))
	dir := filepath.Join(append([]string{f.Dir}, ident...)...)
	must(t, os.MkdirAll(filepath.Join(dir, "metadata"), 0o755))
	must(t, os.MkdirAll(filepath.Join(dir, "data"), 0o755))
	meta, err := icetable.NewMetadata(sc, iceberg.UnpartitionedSpec, icetable.UnsortedSortOrder, dir, iceberg.Properties{icetable.PropertyFormatVersion: fmt.Sprint(version)})
	must(t, err)
	tbl := &foreignTable{f: f, ident: ident}
	must(t, tbl.write(meta))
	f.tables[name] = tbl
	return ident
}

// write makes the next metadata file.
func (tbl *foreignTable) write(meta icetable.Metadata) error {
	tbl.version++
	dir := filepath.Join(storeio.PathOf(meta.Location()), "metadata")
	name := fmt.Sprintf("v%d.metadata.json", tbl.version)
	if tbl.f.Named {
		name = fmt.Sprintf("%05d-%s.metadata.json", tbl.version-1, uuid.NewString())
	}
	data, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	location := filepath.Join(dir, name)
	if err := os.WriteFile(location, data, 0o644); err != nil {
		return err
	}
	tbl.meta, tbl.location = meta, location
	if tbl.f.Named {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, "version-hint.text"), []byte(fmt.Sprint(tbl.version)), 0o644)
}

func (tbl *foreignTable) load() *icetable.Table {
	return icetable.New(tbl.ident, tbl.meta, tbl.location, func(context.Context) (icebergio.IO, error) { return tbl.f.fs, nil }, tbl)
}

// LoadTable is for iceberg-go.
func (tbl *foreignTable) LoadTable(context.Context, icetable.Identifier) (*icetable.Table, error) {
	return tbl.load(), nil
}

// CommitTable is for iceberg-go.
func (tbl *foreignTable) CommitTable(_ context.Context, _ icetable.Identifier, reqs []icetable.Requirement, ups []icetable.Update) (icetable.Metadata, string, error) {
	for _, r := range reqs {
		if err := r.Validate(tbl.meta); err != nil {
			return nil, "", err
		}
	}
	meta, err := icetable.UpdateTableMetadata(tbl.meta, ups, tbl.location)
	if err != nil {
		return nil, "", err
	}
	return meta, tbl.location, tbl.write(meta)
}

// Load is the table as its catalog has it.
func (f *Foreign) Load(t testing.TB, ident icetable.Identifier) *icetable.Table {
	t.Helper()
	tbl := f.tables[strings.Join(ident, ".")]
	if tbl == nil {
		t.Fatalf("no table %v", ident)
	}
	return tbl.load()
}

// Metadata is the table's current metadata file.
func (f *Foreign) Metadata(t testing.TB, ident icetable.Identifier) string {
	t.Helper()
	return f.Load(t, ident).MetadataLocation()
}

// Alter commits metadata updates.
func (f *Foreign) Alter(t testing.TB, ident icetable.Identifier, updates ...icetable.Update) {
	t.Helper()
	_, _, err := f.tables[strings.Join(ident, ".")].CommitTable(context.Background(), ident, nil, updates)
	must(t, err)
}

// Drop removes the table with its files.
func (f *Foreign) Drop(t testing.TB, ident icetable.Identifier) {
	t.Helper()
	must(t, os.RemoveAll(storeio.PathOf(f.Load(t, ident).Location())))
	delete(f.tables, strings.Join(ident, "."))
}

// Do commits what fn does.
func (f *Foreign) Do(t testing.TB, ident icetable.Identifier, fn func(tbl *icetable.Table, tx *icetable.Transaction)) {
	t.Helper()
	tbl := f.Load(t, ident)
	tx := tbl.NewTransaction()
	fn(tbl, tx)
	_, err := tx.Commit(context.Background())
	must(t, err)
}

// Delta commits one snapshot: rows added, keys deleted by equality on the identifier fields, positions deleted (each data file's positions by its
// path; as position deletes on v2, as deletion vectors on v3).
func (f *Foreign) Delta(t testing.TB, ident icetable.Identifier, rows [][]any, keys [][]any, positions map[string][]int64) {
	t.Helper()
	ctx := context.Background()
	f.Do(t, ident, func(tbl *icetable.Table, tx *icetable.Transaction) {
		sc := tbl.Schema()
		rd := tx.NewRowDelta(nil)
		if len(keys) > 0 {
			var fields []iceberg.NestedField
			for _, id := range sc.IdentifierFieldIDs {
				fl, _ := sc.FindFieldByID(id)
				fields = append(fields, fl)
			}
			dels, err := tx.WriteEqualityDeletes(ctx, sc.IdentifierFieldIDs, once(Batch(iceberg.NewSchema(0, fields...), keys...)))
			must(t, err)
			rd.AddDeletes(dels...)
		}
		if len(rows) > 0 {
			rec := Batch(sc, rows...)
			for df, err := range icetable.WriteRecords(ctx, tbl, rec.Schema(), once(rec)) {
				must(t, err)
				rd.AddRows(df)
			}
		}
		if len(positions) > 0 {
			rd.AddDeletes(f.positionDeletes(t, tbl, positions)...)
		}
		must(t, rd.Commit(ctx))
	})
}

// DataFiles are the paths of the data files of the current snapshot, in the order of its manifests.
func (f *Foreign) DataFiles(t testing.TB, ident icetable.Identifier) []iceberg.DataFile {
	t.Helper()
	tasks, err := f.Load(t, ident).Scan().PlanFiles(context.Background())
	must(t, err)
	var out []iceberg.DataFile
	for _, task := range tasks {
		out = append(out, task.File)
	}
	return out
}

func (f *Foreign) path(tbl *icetable.Table, name string) string {
	f.files++
	dir := filepath.Join(storeio.PathOf(tbl.Location()), "data")
	_ = os.MkdirAll(dir, 0o755)
	return filepath.Join(dir, fmt.Sprintf("%05d-%s", f.files, name))
}

func (f *Foreign) positionDeletes(t testing.TB, tbl *icetable.Table, positions map[string][]int64) []iceberg.DataFile {
	t.Helper()
	spec := tbl.Spec()
	if tbl.Metadata().Version() >= 3 {
		w := dv.NewDVWriter(f.fs, func(int32) *iceberg.PartitionSpec { return &spec })
		for path, pos := range positions {
			must(t, w.Add(path, pos, int32(spec.ID()), nil))
		}
		out, err := w.Flush(context.Background(), f.path(tbl, "dv.puffin"))
		must(t, err)
		return out
	}
	as, err := parquetio.ArrowSchema(iceberg.PositionalDeleteSchema, false)
	must(t, err)
	var out []iceberg.DataFile
	for path, pos := range positions {
		b := array.NewRecordBuilder(memory.DefaultAllocator, as)
		for _, p := range pos {
			b.Field(0).(*array.StringBuilder).Append(path)
			b.Field(1).(*array.Int64Builder).Append(p)
		}
		name := f.path(tbl, "deletes.parquet")
		WriteParquet(t, name, b.NewRecordBatch())
		st, err := os.Stat(name)
		must(t, err)
		db, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentPosDeletes, name, iceberg.ParquetFile, nil, nil, nil, int64(len(pos)), st.Size())
		must(t, err)
		out = append(out, db.Build())
	}
	return out
}

// WriteParquet writes a batch as it is, with the field ids that its schema carries.
func WriteParquet(t testing.TB, path string, rec arrow.RecordBatch) {
	t.Helper()
	file, err := os.Create(path)
	must(t, err)
	w, err := pqarrow.NewFileWriter(rec.Schema(), file, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	must(t, err)
	must(t, w.Write(rec))
	must(t, w.Close())
}

func once(rec arrow.RecordBatch) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }
}

// WithoutFieldIDs is the batch as a writer that knows nothing of Iceberg names its columns.
func WithoutFieldIDs(rec arrow.RecordBatch) arrow.RecordBatch {
	fields := rec.Schema().Fields()
	for i := range fields {
		fields[i].Metadata = arrow.Metadata{}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), rec.Columns(), rec.NumRows())
}
