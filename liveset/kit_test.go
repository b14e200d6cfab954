package liveset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

func TestMain(m *testing.M) {
	keyTreeFiles = 2
	goleak.VerifyTestMain(m)
}

// testMeta is table metadata whose snapshots are made by hand.
type testMeta struct {
	table.Metadata
	snaps   map[int64]*table.Snapshot
	schemas []*iceberg.Schema
	specs   []iceberg.PartitionSpec
	mapping iceberg.NameMapping
}

func (m *testMeta) SnapshotByID(id int64) *table.Snapshot { return m.snaps[id] }
func (m *testMeta) Schemas() []*iceberg.Schema            { return m.schemas }
func (m *testMeta) CurrentSchema() *iceberg.Schema        { return m.schemas[len(m.schemas)-1] }
func (m *testMeta) NameMapping() iceberg.NameMapping      { return m.mapping }
func (m *testMeta) PartitionSpecByID(id int) *iceberg.PartitionSpec {
	for i := range m.specs {
		if m.specs[i].ID() == id {
			return &m.specs[i]
		}
	}
	return nil
}

// row is a row of the tests' schema; nil is NULL.
type row struct {
	id int64
	k  *int32
	s  *string
	p  string
}

func show[T any](v *T) string {
	if v == nil {
		return "∅"
	}
	return fmt.Sprintf("%q", fmt.Sprint(*v))
}

func (r row) String() string { return fmt.Sprintf("%d|%s|%s|%q", r.id, show(r.k), show(r.s), r.p) }

func (r row) key(ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteString([]string{"", fmt.Sprint(r.id), show(r.k), show(r.s), fmt.Sprintf("%q", r.p)}[id] + "\x00|")
	}
	return b.String()
}

var prim = iceberg.PrimitiveTypes

func testSchema() *iceberg.Schema {
	return iceberg.NewSchemaWithIdentifiers(0, []int{1},
		iceberg.NestedField{ID: 1, Name: "id", Type: prim.Int64, Required: true}, iceberg.NestedField{ID: 2, Name: "k", Type: prim.Int32},
		iceberg.NestedField{ID: 3, Name: "s", Type: prim.String}, iceberg.NestedField{ID: 4, Name: "p", Type: prim.String})
}

func batch(as *arrow.Schema, ids []int, rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for _, r := range rows {
		for i, id := range ids {
			switch f := b.Field(i).(type) {
			case *array.Int64Builder:
				if id == 2 {
					appendOpt(r.k, func(v int32) { f.Append(int64(v)) }, f.AppendNull)
				} else {
					f.Append(r.id)
				}
			case *array.Int32Builder:
				appendOpt(r.k, f.Append, f.AppendNull)
			case *array.StringBuilder:
				if id == 3 {
					appendOpt(r.s, f.Append, f.AppendNull)
				} else {
					f.Append(r.p)
				}
			}
		}
	}
	return b.NewRecordBatch()
}

func appendOpt[T any](v *T, some func(T), none func()) {
	if v == nil {
		none()
		return
	}
	some(*v)
}

// tentry is a manifest entry of the kit, tmanifest a manifest.
type tentry struct {
	df   iceberg.DataFile
	seq  int64
	fseq int64
	snap int64
}

type tmanifest struct {
	mf      iceberg.ManifestFile
	spec    int
	content iceberg.ManifestContent
	entries []*tentry
}

// kit writes snapshots byte by byte, so that it can do what foreign writers may.
type kit struct {
	t         testing.TB
	dir       string
	fs        *storeio.FS
	meta      *testMeta
	ref       Ref
	version   int
	seq       int64
	head      *int64
	manifests []*tmanifest
	nextRow   int64
	n         int
}

func newKit(t testing.TB, version int, specs ...iceberg.PartitionSpec) *kit {
	t.Helper()
	dir := t.TempDir()
	sc := testSchema()
	base, err := table.NewMetadata(sc, iceberg.UnpartitionedSpec, table.UnsortedSortOrder, dir, iceberg.Properties{table.PropertyFormatVersion: fmt.Sprint(version)})
	require.NoError(t, err)
	if len(specs) == 0 {
		specs = []iceberg.PartitionSpec{iceberg.NewPartitionSpecID(0)}
	}
	k := &kit{t: t, dir: dir, fs: storeio.NewFS(storeio.Options{NoSync: true}), version: version}
	k.meta = &testMeta{Metadata: base, snaps: map[int64]*table.Snapshot{}, schemas: []*iceberg.Schema{sc}, specs: specs, mapping: sc.NameMapping()}
	k.ref = Ref{UUID: uuid.New(), Metadata: k.meta}
	return k
}

func (k *kit) cache() *Cache { return NewCache(Options{FS: k.fs, Logger: zerolog.Nop()}) }

func (k *kit) path(name string) string {
	k.n++
	return filepath.Join(k.dir, fmt.Sprintf("%05d-%s", k.n, name))
}

func (k *kit) partition(spec int, p string) map[int]any {
	for _, s := range k.meta.specs {
		if s.ID() == spec && !s.IsUnpartitioned() {
			return map[int]any{s.Field(0).FieldID: p}
		}
	}
	return nil
}

func (k *kit) spec(id int) iceberg.PartitionSpec { return *k.meta.PartitionSpecByID(id) }

// dataFile writes rows; mode 0 sorted with key index where large, 1 in order, 2 without field ids.
func (k *kit) dataFile(spec int, part string, rows []row, mode int) iceberg.DataFile {
	k.t.Helper()
	sc := k.meta.CurrentSchema()
	ids := []int{}
	for _, f := range sc.Fields() {
		ids = append(ids, f.ID)
	}
	as, err := parquetio.ArrowSchema(sc, false)
	require.NoError(k.t, err)
	rec := batch(as, ids, rows)
	if mode == 2 {
		return k.plainFile(spec, part, rec)
	}
	o := parquetio.WriterOptions{FS: k.fs, Schema: sc, Spec: k.spec(spec), Partition: k.partition(spec, part)}
	if mode == 0 {
		o.SortIDs, o.BloomIDs = []int{1}, []int{1}
	}
	return k.dataFileAs(o, rec)
}

// dataFileBy writes rows as our own writer does for a table with these identifier fields.
func (k *kit) dataFileBy(ids []int, rows []row) iceberg.DataFile {
	k.t.Helper()
	sc := k.meta.CurrentSchema()
	as, err := parquetio.ArrowSchema(sc, false)
	require.NoError(k.t, err)
	o := parquetio.WriterOptions{FS: k.fs, Schema: sc, Spec: k.spec(0), SortIDs: ids, BloomIDs: ids}
	return k.dataFileAs(o, batch(as, []int{1, 2, 3, 4}, rows))
}

func (k *kit) dataFileAs(o parquetio.WriterOptions, rec arrow.RecordBatch) iceberg.DataFile {
	k.t.Helper()
	w, err := parquetio.NewWriter(k.t.Context(), k.dir, o)
	require.NoError(k.t, err)
	require.NoError(k.t, w.Write(rec))
	files, err := w.Close(k.t.Context())
	require.NoError(k.t, err)
	require.Len(k.t, files, 1)
	return files[0].DataFile
}

// plainFile is a file of a writer that knows no field ids and no metrics.
func (k *kit) plainFile(spec int, part string, rec arrow.RecordBatch) iceberg.DataFile {
	var fields []arrow.Field
	for _, f := range rec.Schema().Fields() {
		f.Metadata = arrow.Metadata{}
		fields = append(fields, f)
	}
	path := k.path("plain.parquet")
	f, err := os.Create(path)
	require.NoError(k.t, err)
	as := arrow.NewSchema(fields, nil)
	w, err := pqarrow.NewFileWriter(as, f, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	require.NoError(k.t, err)
	require.NoError(k.t, w.Write(array.NewRecordBatch(as, rec.Columns(), rec.NumRows())))
	require.NoError(k.t, w.Close())
	return k.describe(spec, part, iceberg.EntryContentData, path, rec.NumRows()).Build()
}

func (k *kit) describe(spec int, part string, content iceberg.ManifestEntryContent, path string, n int64) *iceberg.DataFileBuilder {
	st, err := os.Stat(path)
	require.NoError(k.t, err)
	b, err := iceberg.NewDataFileBuilder(k.spec(spec), content, path, iceberg.ParquetFile, k.partition(spec, part), nil, nil, n, st.Size())
	require.NoError(k.t, err)
	return b
}

// write writes a helper file through parquetio and returns its entry's data.
func (k *kit) write(sc *iceberg.Schema, rec arrow.RecordBatch) iceberg.DataFile {
	w, err := parquetio.NewWriter(k.t.Context(), k.dir, parquetio.WriterOptions{FS: k.fs, Schema: sc, Spec: *iceberg.UnpartitionedSpec})
	require.NoError(k.t, err)
	require.NoError(k.t, w.Write(rec))
	files, err := w.Close(k.t.Context())
	require.NoError(k.t, err)
	return files[0].DataFile
}

// positionDelete writes a position delete file; ref names the one data file it is scoped to, or is empty.
func (k *kit) positionDelete(spec int, part, ref string, positions map[string][]uint32) iceberg.DataFile {
	as, err := parquetio.ArrowSchema(iceberg.PositionalDeleteSchema, false)
	require.NoError(k.t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	var paths []string
	for p := range positions {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	n := int64(0)
	for _, p := range paths {
		for _, pos := range positions[p] {
			b.Field(0).(*array.StringBuilder).Append(p)
			b.Field(1).(*array.Int64Builder).Append(int64(pos))
			n++
		}
	}
	df := k.write(iceberg.PositionalDeleteSchema, b.NewRecordBatch())
	d := k.describe(spec, part, iceberg.EntryContentPosDeletes, df.FilePath(), n)
	if ref != "" { // on v2 iceberg-go keeps the reference in no manifest: equal bounds say the same
		d.ReferencedDataFile(ref)
		d.LowerBoundValues(map[int][]byte{deletePathID: []byte(ref)}).UpperBoundValues(map[int][]byte{deletePathID: []byte(ref)})
	}
	return d.Build()
}

// equalityDelete writes an equality delete over the fields ids, with metrics.
func (k *kit) equalityDelete(spec int, part string, sc *iceberg.Schema, ids []int, keys []row) iceberg.DataFile {
	var fields []iceberg.NestedField
	for _, id := range ids {
		f, ok := sc.FindFieldByID(id)
		require.True(k.t, ok)
		fields = append(fields, f)
	}
	sub := iceberg.NewSchema(0, fields...)
	as, err := parquetio.ArrowSchema(sub, false)
	require.NoError(k.t, err)
	df := k.write(sub, batch(as, ids, keys))
	return k.describe(spec, part, iceberg.EntryContentEqDeletes, df.FilePath(), df.Count()).EqualityFieldIDs(ids).
		LowerBoundValues(df.LowerBoundValues()).UpperBoundValues(df.UpperBoundValues()).NullValueCounts(df.NullValueCounts()).Build()
}

func (k *kit) vector(f iceberg.DataFile, positions []int64) iceberg.DataFile {
	w := dv.NewDVWriter(k.fs, func(id int32) *iceberg.PartitionSpec { return k.meta.PartitionSpecByID(int(id)) })
	require.NoError(k.t, w.Add(f.FilePath(), positions, f.SpecID(), f.Partition()))
	out, err := w.Flush(k.t.Context(), k.path("dv.puffin"))
	require.NoError(k.t, err)
	require.Len(k.t, out, 1)
	return out[0]
}

// change is one commit. seqs gives added files an older data sequence number.
type change struct {
	add, del []iceberg.DataFile
	remove   []string // paths, or path#offset of vectors
	once     bool     // remove in the newest manifest alone that has an entry of them
	seqs     map[string]int64
	merge    bool // rewrite all manifests into one per content and spec
}

func entryKey(df iceberg.DataFile) string {
	if df.FileFormat() == iceberg.PuffinFile {
		return fmt.Sprintf("%s#%d", df.FilePath(), *df.ContentOffset())
	}
	return df.FilePath()
}

// commit writes the snapshot and returns its id and sequence number.
func (k *kit) commit(c change) (int64, int64) {
	k.t.Helper()
	k.seq++
	id := k.seq * 1000
	var next []*tmanifest
	if c.merge {
		groups := map[string]*tmanifest{}
		for _, m := range k.manifests {
			key := fmt.Sprint(m.spec, m.content)
			if groups[key] == nil {
				groups[key] = &tmanifest{spec: m.spec, content: m.content}
				next = append(next, groups[key])
			}
			groups[key].entries = append(groups[key].entries, m.entries...)
		}
		for _, m := range next {
			m.entries, m.mf = k.manifest(id, m, nil, c.remove, c.seqs)
		}
	} else {
		has := func(m *tmanifest) bool {
			return slices.ContainsFunc(m.entries, func(e *tentry) bool { return slices.Contains(c.remove, entryKey(e.df)) })
		}
		for i, m := range k.manifests {
			if has(m) && !(c.once && slices.ContainsFunc(k.manifests[i+1:], has)) {
				m = &tmanifest{spec: m.spec, content: m.content, entries: m.entries}
				m.entries, m.mf = k.manifest(id, m, nil, c.remove, c.seqs)
			}
			next = append(next, m)
		}
	}
	for i, files := range [2][]iceberg.DataFile{c.add, c.del} {
		bySpec := map[int][]iceberg.DataFile{}
		for _, f := range files {
			bySpec[int(f.SpecID())] = append(bySpec[int(f.SpecID())], f)
		}
		for spec, fs := range bySpec {
			m := &tmanifest{spec: spec, content: iceberg.ManifestContent(i)}
			m.entries, m.mf = k.manifest(id, m, fs, nil, c.seqs)
			next = append(next, m)
		}
	}
	next = slices.DeleteFunc(next, func(m *tmanifest) bool { return len(m.entries) == 0 })
	k.list(id, next)
	return id, k.seq
}

func (k *kit) manifest(id int64, m *tmanifest, added []iceberg.DataFile, remove []string, seqs map[string]int64) ([]*tentry, iceberg.ManifestFile) {
	path := k.path("manifest.avro")
	f, err := os.Create(path)
	require.NoError(k.t, err)
	w, err := iceberg.NewManifestWriter(k.version, f, k.spec(m.spec), k.meta.schemas[0], id, iceberg.WithManifestWriterContent(m.content))
	require.NoError(k.t, err)
	var live []*tentry
	for _, e := range m.entries {
		if slices.Contains(remove, entryKey(e.df)) {
			require.NoError(k.t, w.Delete(iceberg.NewManifestEntry(iceberg.EntryStatusDELETED, &id, &e.seq, &e.fseq, e.df)))
			continue
		}
		require.NoError(k.t, w.Existing(iceberg.NewManifestEntry(iceberg.EntryStatusEXISTING, &e.snap, &e.seq, &e.fseq, e.df)))
		live = append(live, e)
	}
	for _, df := range added {
		e := &tentry{df: df, seq: k.seq, fseq: k.seq, snap: id}
		var seq *int64
		if s, ok := seqs[df.FilePath()]; ok {
			e.seq, seq = s, &s
		}
		require.NoError(k.t, w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &id, seq, nil, df)))
		live = append(live, e)
	}
	require.NoError(k.t, w.Close())
	st, err := f.Stat()
	require.NoError(k.t, err)
	mf, err := w.ToManifestFile(path, st.Size())
	require.NoError(k.t, err)
	require.NoError(k.t, f.Close())
	return live, mf
}

func (k *kit) list(id int64, next []*tmanifest) {
	path := k.path("snap.avro")
	f, err := os.Create(path)
	require.NoError(k.t, err)
	var mfs []iceberg.ManifestFile
	for _, m := range next {
		mfs = append(mfs, m.mf)
	}
	require.NoError(k.t, iceberg.WriteManifestList(k.version, f, id, k.head, &k.seq, k.nextRow, mfs))
	require.NoError(k.t, f.Close())
	r, err := os.Open(path)
	require.NoError(k.t, err)
	defer r.Close()
	read, err := iceberg.ReadManifestList(r)
	require.NoError(k.t, err)
	for i := range read {
		next[i].mf = read[i]
		if first := read[i].FirstRowID(); first != nil {
			k.nextRow = max(k.nextRow, *first+read[i].AddedRows()+read[i].ExistingRows())
		}
	}
	k.manifests = next
	var parent *int64
	if k.head != nil {
		p := *k.head
		parent = &p
	}
	k.meta.snaps[id] = &table.Snapshot{SnapshotID: id, ParentSnapshotID: parent, SequenceNumber: k.seq, ManifestList: path}
	k.head = &id
}

// scanRows reads a set's rows as text.
func scanRows(t testing.TB, c *Cache, ref Ref, s *Set, m MetaColumns) []string {
	t.Helper()
	out := []string{}
	for rec, err := range c.Scan(t.Context(), ref, s, testSchema(), ScanOptions{Meta: m}) {
		require.NoError(t, err)
		out = append(out, rowTexts(rec)...)
		rec.Release()
	}
	return out
}

func rowTexts(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	for i := range out {
		parts := make([]string, rec.NumCols())
		for j, c := range rec.Columns() {
			switch {
			case c.IsNull(i):
				parts[j] = "∅"
			case j == 0:
				parts[j] = c.ValueStr(i)
			default:
				parts[j] = fmt.Sprintf("%q", c.ValueStr(i))
			}
		}
		out[i] = strings.Join(parts, "|")
	}
	return out
}

func (k *kit) at(c *Cache, id int64) *Set {
	k.t.Helper()
	s, err := c.At(k.t.Context(), k.ref, id)
	require.NoError(k.t, err)
	return s
}

func bits(vs ...uint32) *roaring.Bitmap { return roaring.BitmapOf(vs...) }

func ptr[T any](v T) *T { return &v }

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 3))
}

func longKey(v int64) []byte { return keyindex.AppendLong(nil, v) }
