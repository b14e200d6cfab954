package testkit

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Place is the spec and the partition of a file.
type Place struct {
	Spec      iceberg.PartitionSpec
	Partition map[int]any // by partition field id
}

// PlaceOf is where a spec puts a row.
func PlaceOf(sc *iceberg.Schema, spec iceberg.PartitionSpec, r Record) Place {
	p := Place{Spec: spec, Partition: map[int]any{}}
	for _, f := range spec.Fields() {
		src, _ := sc.FindFieldByID(f.SourceIDs[0])
		var lit iceberg.Optional[iceberg.Literal]
		if v := r[src.ID]; v != nil {
			lit.Valid = true
			switch src.Type.(type) {
			case iceberg.Int32Type:
				lit.Val = iceberg.NewLiteral(int32(v.(int64)))
			case iceberg.Int64Type:
				lit.Val = iceberg.NewLiteral(v.(int64))
			default:
				lit.Val = iceberg.NewLiteral(v.(string))
			}
		}
		if out := f.Transform.Apply(lit); out.Valid {
			p.Partition[f.FieldID] = out.Val.Any()
		} else {
			p.Partition[f.FieldID] = nil
		}
	}
	return p
}

// PlaceOfEntry is where a file stands.
func PlaceOfEntry(meta icetable.Metadata, e Entry) Place {
	return Place{*meta.PartitionSpecByID(int(e.SpecID())), e.Partition()}
}

// FileOptions are the ways in which files of different writers differ.
type FileOptions struct {
	NoFieldIDs bool // columns are known by name alone
	Metrics    bool // the entry has bounds and counts
	Unsorted   bool // of position deletes: not by path and position
	RowIDs     bool // of data files: _row_id is stored, of records that have it
	// Hive leaves the columns out of data files that the partition tells (identity), as Hive does.
	Hive bool
}

func (w *Raw) describe(t testing.TB, p Place, content iceberg.ManifestEntryContent, path string, n int64) *iceberg.DataFileBuilder {
	t.Helper()
	st, err := os.Stat(path)
	must(t, err)
	b, err := iceberg.NewDataFileBuilder(p.Spec, content, path, iceberg.ParquetFile, p.Partition, nil, nil, n, st.Size())
	must(t, err)
	return b
}

// file writes records of a schema into a Parquet file.
func (w *Raw) file(t testing.TB, sc *iceberg.Schema, rows []Record, p Place, content iceberg.ManifestEntryContent, o FileOptions) *iceberg.DataFileBuilder {
	t.Helper()
	path := w.Path(t, "data", ".parquet")
	rec := Records(sc, rows...)
	if o.NoFieldIDs {
		rec = WithoutFieldIDs(rec)
	}
	WriteParquet(t, path, rec)
	b := w.describe(t, p, content, path, rec.NumRows())
	if o.Metrics {
		lower, upper, nulls := w.metrics(t, sc, rows)
		b.LowerBoundValues(lower).UpperBoundValues(upper).NullValueCounts(nulls)
	}
	return b
}

// metrics are what our own writer says of the rows: its bounds of strings are cut.
func (w *Raw) metrics(t testing.TB, sc *iceberg.Schema, rows []Record) (lower, upper map[int][]byte, nulls map[int]int64) {
	t.Helper()
	dir := t.TempDir()
	pw, err := parquetio.NewWriter(t.Context(), dir, parquetio.WriterOptions{FS: w.FS, Schema: sc, Spec: *iceberg.UnpartitionedSpec, NoKeyIndex: true})
	must(t, err)
	must(t, pw.Write(Records(sc, rows...)))
	files, err := pw.Close(t.Context())
	must(t, err)
	df := files[0].DataFile
	return df.LowerBoundValues(), df.UpperBoundValues(), df.NullValueCounts()
}

// DataFile writes rows of one partition.
func (w *Raw) DataFile(t testing.TB, sc *iceberg.Schema, p Place, rows []Record, o FileOptions) RawFile {
	t.Helper()
	if o.Hive {
		known := map[int]bool{}
		for _, x := range p.Spec.Fields() {
			if _, identity := x.Transform.(iceberg.IdentityTransform); identity {
				known[x.SourceIDs[0]] = true
			}
		}
		sc = iceberg.NewSchema(sc.ID, slices.DeleteFunc(sc.Fields(), func(f iceberg.NestedField) bool { return known[f.ID] })...)
	}
	if o.RowIDs {
		sc = iceberg.SchemaWithRowLineageColumns(sc, true, true)
	}
	return RawFile{DataFile: w.file(t, sc, rows, p, iceberg.EntryContentData, o).Build()}
}

// EqualityDelete writes an equality delete by the fields ids of a schema; only those of the rows are written.
func (w *Raw) EqualityDelete(t testing.TB, sc *iceberg.Schema, p Place, ids []int, keys []Record, o FileOptions) RawFile {
	t.Helper()
	sub := keySchema(t, sc.Fields(), ids)
	return RawFile{DataFile: w.file(t, iceberg.NewSchema(0, sub...), keys, p, iceberg.EntryContentEqDeletes, o).EqualityFieldIDs(ids).Build()}
}

// keySchema are the fields of a schema that hold a field of ids, structs cut to those.
func keySchema(t testing.TB, fields []iceberg.NestedField, ids []int) []iceberg.NestedField {
	var out []iceberg.NestedField
	for _, f := range fields {
		if st, ok := f.Type.(*iceberg.StructType); ok {
			if sub := keySchema(t, st.FieldList, ids); len(sub) > 0 {
				f.Type, f.Required = &iceberg.StructType{FieldList: sub}, false
				out = append(out, f)
			}
			continue
		}
		if slices.Contains(ids, f.ID) {
			f.Required = false
			out = append(out, f)
		}
	}
	return out
}

// PositionDelete writes a position delete file. With Metrics its entry bounds the paths it names: of one file alone they scope it to that file.
func (w *Raw) PositionDelete(t testing.TB, p Place, positions map[string][]int64, o FileOptions) RawFile {
	t.Helper()
	type at struct {
		path string
		pos  int64
	}
	var all []at
	for path, ps := range positions {
		for _, pos := range ps {
			all = append(all, at{path, pos})
		}
	}
	slices.SortFunc(all, func(a, b at) int {
		if o.Unsorted { // by position first: the paths alternate
			return cmp.Or(cmp.Compare(b.pos, a.pos), cmp.Compare(a.path, b.path))
		}
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.pos, b.pos))
	})
	as, err := parquetio.ArrowSchema(iceberg.PositionalDeleteSchema, false)
	must(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	least, most := "", ""
	for _, x := range all {
		b.Field(0).(*array.StringBuilder).Append(x.path)
		b.Field(1).(*array.Int64Builder).Append(x.pos)
		if least == "" || x.path < least {
			least = x.path
		}
		most = max(most, x.path)
	}
	rec := b.NewRecordBatch()
	if o.NoFieldIDs {
		rec = WithoutFieldIDs(rec)
	}
	path := w.Path(t, "data", "-deletes.parquet")
	WriteParquet(t, path, rec)
	d := w.describe(t, p, iceberg.EntryContentPosDeletes, path, rec.NumRows())
	if o.Metrics {
		id := math.MaxInt32 - 101
		d.LowerBoundValues(map[int][]byte{id: []byte(least)}).UpperBoundValues(map[int][]byte{id: []byte(most)})
	}
	return RawFile{DataFile: d.Build()}
}

// Vectors writes one Puffin file with a deletion vector for each data file.
func (w *Raw) Vectors(t testing.TB, meta icetable.Metadata, positions map[string][]int64, files map[string]Entry) []RawFile {
	t.Helper()
	dw := dv.NewDVWriter(w.FS, func(id int32) *iceberg.PartitionSpec { return meta.PartitionSpecByID(int(id)) })
	var paths []string
	for path := range positions {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		f := files[path]
		must(t, dw.Add(path, positions[path], f.SpecID(), f.Partition()))
	}
	list, err := dw.Flush(context.Background(), w.Path(t, "data", "-dv.puffin"))
	must(t, err)
	var out []RawFile
	for _, df := range list {
		out = append(out, RawFile{DataFile: df})
	}
	return out
}
