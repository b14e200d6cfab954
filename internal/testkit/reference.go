package testkit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// Reference reads tables as the Iceberg spec's "Scan Planning" is written: every snapshot from nothing, every rule of every delete asked of every row.
// It shares no code with liveset: manifests are decoded by iceberg-go, data by arrow-go. What files hold is remembered by path, since files do not
// change.
type Reference struct {
	FS *storeio.FS

	files     map[string][]Record
	positions map[string]map[string]map[int64]bool
	entries   map[string][]Entry
}

// NewReference makes a reader.
func NewReference(fs *storeio.FS) *Reference {
	return &Reference{FS: fs, files: map[string][]Record{}, positions: map[string]map[string]map[int64]bool{}, entries: map[string][]Entry{}}
}

// Entry is a live line of a manifest.
type Entry struct {
	iceberg.DataFile
	Seq, FileSeq int64
	Added        int64 // the snapshot that added it
	Part         string
}

// Key names an entry: its path, and the offset of a deletion vector in it.
func (e Entry) Key() string { return EntryKey(e.DataFile) }

// EntryKey is Entry.Key of a file.
func EntryKey(df iceberg.DataFile) string {
	if o := df.ContentOffset(); df.FileFormat() == iceberg.PuffinFile && o != nil {
		return fmt.Sprintf("%s#%d", df.FilePath(), *o)
	}
	return df.FilePath()
}

// LiveRow is a row that a snapshot shows, and where it stands.
type LiveRow struct {
	Record
	File  Entry
	Pos   int64
	RowID int64 // −1: it has none
}

// Entries are the live entries of a snapshot, data files and delete files: the union over its manifests, each file once, as its newest entry has it.
func (x *Reference) Entries(t testing.TB, meta icetable.Metadata, id int64) (data, deletes []Entry) {
	t.Helper()
	list, err := meta.SnapshotByID(id).Manifests(x.FS)
	must(t, err)
	var all []Entry
	at := map[string]int{}
	for _, m := range list {
		for _, e := range x.manifest(t, m) {
			i, again := at[e.Key()]
			switch {
			case !again:
				at[e.Key()] = len(all)
				all = append(all, e)
			case e.FileSeq > all[i].FileSeq || e.FileSeq == all[i].FileSeq && e.Seq > all[i].Seq:
				all[i] = e
			}
		}
	}
	for _, e := range all {
		if e.ContentType() == iceberg.EntryContentData {
			data = append(data, e)
		} else {
			deletes = append(deletes, e)
		}
	}
	return data, deletes
}

func (x *Reference) manifest(t testing.TB, m iceberg.ManifestFile) []Entry {
	t.Helper()
	key := m.FilePath()
	if first := m.FirstRowID(); first != nil {
		key += fmt.Sprint("@", *first)
	}
	if known, ok := x.entries[key]; ok {
		return known
	}
	out := []Entry{}
	for e, err := range m.Entries(x.FS, true) {
		must(t, err)
		seq := e.SequenceNum()
		if f := e.FileSequenceNum(); f != nil {
			seq = *f
		}
		df := e.DataFile()
		out = append(out, Entry{DataFile: df, Seq: e.SequenceNum(), FileSeq: seq, Added: e.SnapshotID(), Part: partitionText(df)})
	}
	x.entries[key] = out
	return out
}

// partitionText is a partition: its spec and the values of its fields.
func partitionText(df iceberg.DataFile) string {
	ids := []int{}
	for id := range df.Partition() {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	out := fmt.Sprint("spec ", df.SpecID())
	for _, id := range ids {
		out += fmt.Sprintf(", %d = %#v", id, normal(df.Partition()[id]))
	}
	return out
}

// normal gives partition values of types that a promotion joins one Go type.
func normal(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	}
	return v
}

// Rows are the live rows of a snapshot, in no order.
func (x *Reference) Rows(t testing.TB, meta icetable.Metadata, id int64) []LiveRow {
	t.Helper()
	data, deletes := x.Entries(t, meta, id)
	return x.LiveIn(t, meta, data, deletes)
}

// LiveIn are the rows of data files that deletes leave alive.
func (x *Reference) LiveIn(t testing.TB, meta icetable.Metadata, data, deletes []Entry) []LiveRow {
	t.Helper()
	var out []LiveRow
	for _, f := range data {
		dead := x.rule(t, meta, f, deletes)
		known := identities(meta, f.DataFile)
		for pos, r := range x.read(t, meta, f.DataFile) {
			r = withConstants(r, known)
			if dead(int64(pos), r) {
				continue
			}
			row := LiveRow{Record: r, File: f, Pos: int64(pos), RowID: -1}
			if first := f.FirstRowID(); first != nil {
				row.RowID = *first + row.Pos
			}
			if v, ok := r[iceberg.RowIDFieldID]; ok && v != nil {
				row.RowID = v.(int64)
			}
			out = append(out, row)
		}
	}
	return out
}

// identities are the columns that a file's partition tells: the value of one that the file has not got (spec, "Column Projection", first rule).
func identities(meta icetable.Metadata, df iceberg.DataFile) map[int]any {
	out := map[int]any{}
	spec := meta.PartitionSpecByID(int(df.SpecID()))
	for _, f := range spec.Fields() {
		if _, ok := f.Transform.(iceberg.IdentityTransform); ok {
			out[f.SourceIDs[0]] = normal(df.Partition()[f.FieldID])
		}
	}
	return out
}

func withConstants(r Record, known map[int]any) Record {
	out := r
	for id, v := range known {
		if _, ok := r[id]; !ok {
			if len(out) == len(r) {
				out = r.Clone()
			}
			out[id] = v
		}
	}
	return out
}

// rule tells which rows of a data file are dead.
func (x *Reference) rule(t testing.TB, meta icetable.Metadata, f Entry, deletes []Entry) func(pos int64, r Record) bool {
	t.Helper()
	var vector, positions map[int64]bool
	type equality struct {
		fields []iceberg.NestedField
		keys   map[string]bool
	}
	var equal []equality
	for _, d := range deletes {
		switch {
		case d.FileFormat() == iceberg.PuffinFile:
			if *d.ReferencedDataFile() == f.FilePath() && f.Seq <= d.Seq {
				vector = x.vector(t, d.DataFile)
			}
		case d.ContentType() == iceberg.EntryContentPosDeletes:
			scoped := d.ReferencedDataFile()
			if f.Seq > d.Seq || f.Part != d.Part || scoped != nil && *scoped != f.FilePath() {
				continue
			}
			if positions == nil {
				positions = map[int64]bool{}
			}
			for p := range x.positionsIn(t, d.DataFile)[f.FilePath()] {
				positions[p] = true
			}
		case d.ContentType() == iceberg.EntryContentEqDeletes:
			if f.Seq >= d.Seq || f.Part != d.Part && !meta.PartitionSpecByID(int(d.SpecID())).IsUnpartitioned() {
				continue
			}
			e := equality{keys: map[string]bool{}}
			for _, id := range d.EqualityFieldIDs() {
				e.fields = append(e.fields, newestField(t, meta, id))
			}
			for _, r := range x.read(t, meta, d.DataFile) {
				e.keys[keyText(r, e.fields)] = true
			}
			equal = append(equal, e)
		}
	}
	if vector != nil {
		positions = vector // it stands for all position deletes of the file
	}
	return func(pos int64, r Record) bool {
		if positions[pos] {
			return true
		}
		for _, e := range equal {
			if e.keys[keyText(r, e.fields)] {
				return true
			}
		}
		return false
	}
}

// keyText is a row's key. A key column inside a struct is found by its id; a NULL struct has NULL fields.
func keyText(r Record, fields []iceberg.NestedField) string {
	parts := make([]string, len(fields))
	for i, f := range fields {
		v, ok := find(r, f.ID)
		if !ok {
			v = plain(f.InitialDefault)
		}
		parts[i] = ValueText(v)
	}
	return strings.Join(parts, "|")
}

func find(r Record, id int) (any, bool) {
	if v, ok := r[id]; ok {
		return v, true
	}
	for _, v := range r {
		if st, ok := v.(Record); ok {
			if v, ok := find(st, id); ok {
				return v, true
			}
		}
	}
	return nil, false
}

// newestField is a field as the newest schema that has it describes it: it may have been dropped since.
func newestField(t testing.TB, meta icetable.Metadata, id int) iceberg.NestedField {
	t.Helper()
	var out iceberg.NestedField
	newest := -1
	for _, sc := range meta.Schemas() {
		if f, ok := sc.FindFieldByID(id); ok && sc.ID > newest {
			out, newest = f, sc.ID
		}
	}
	if newest < 0 {
		t.Fatalf("no schema has field %d", id)
	}
	return out
}

func (x *Reference) vector(t testing.TB, df iceberg.DataFile) map[int64]bool {
	t.Helper()
	key := EntryKey(df)
	if known, ok := x.positions[key]; ok {
		return known[""]
	}
	v, err := dv.ReadDV(x.FS, df)
	must(t, err)
	out := map[int64]bool{}
	for p := range v.Positions() {
		out[int64(p)] = true
	}
	x.positions[key] = map[string]map[int64]bool{"": out}
	return out
}

// positionsIn are a position delete file's positions by data file.
func (x *Reference) positionsIn(t testing.TB, df iceberg.DataFile) map[string]map[int64]bool {
	t.Helper()
	if known, ok := x.positions[df.FilePath()]; ok {
		return known
	}
	path, pos := math.MaxInt32-101, math.MaxInt32-102
	names := iceberg.NameMapping{{FieldID: &path, Names: []string{"file_path"}}, {FieldID: &pos, Names: []string{"pos"}}}
	out := map[string]map[int64]bool{}
	for _, r := range x.parquet(t, df.FilePath(), names) {
		p := r[path].(string)
		if out[p] == nil {
			out[p] = map[int64]bool{}
		}
		out[p][r[pos].(int64)] = true
	}
	x.positions[df.FilePath()] = out
	return out
}

func (x *Reference) read(t testing.TB, meta icetable.Metadata, df iceberg.DataFile) []Record {
	t.Helper()
	if known, ok := x.files[df.FilePath()]; ok {
		return known
	}
	out := x.parquet(t, df.FilePath(), meta.NameMapping())
	if int64(len(out)) != df.Count() {
		t.Fatalf("%s has %d rows, its entry says %d", df.FilePath(), len(out), df.Count())
	}
	x.files[df.FilePath()] = out
	return out
}

// parquet reads a whole file by field ids; a file that has none by names.
func (x *Reference) parquet(t testing.TB, path string, names iceberg.NameMapping) []Record {
	t.Helper()
	r, err := file.OpenParquetFile(storeio.PathOf(path), false, file.WithReadProps(parquet.NewReaderProperties(memory.DefaultAllocator)))
	must(t, err)
	defer r.Close()
	pr, err := pqarrow.NewFileReader(r, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	must(t, err)
	tbl, err := pr.ReadTable(t.Context())
	must(t, err)
	defer tbl.Release()
	out := make([]Record, tbl.NumRows())
	for i := range out {
		out[i] = Record{}
	}
	for c := range int(tbl.NumCols()) {
		id, ok := fieldID(tbl.Schema().Field(c))
		for _, m := range names {
			if !ok && slices.Contains(m.Names, tbl.Schema().Field(c).Name) && m.FieldID != nil {
				id, ok = *m.FieldID, true
			}
		}
		if !ok {
			continue
		}
		at := 0
		for _, chunk := range tbl.Column(c).Data().Chunks() {
			for i := range chunk.Len() {
				out[at][id] = Value(chunk, i)
				at++
			}
		}
	}
	return out
}
