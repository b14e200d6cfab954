package parquetio

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testFS() *storeio.FS { return storeio.NewFS(storeio.Options{NoSync: true}) }

func field(id int, name string, t iceberg.Type) iceberg.NestedField {
	return iceberg.NestedField{ID: id, Name: name, Type: t}
}

// wide has every primitive type and the nested shapes.
func wide() *iceberg.Schema {
	p := iceberg.PrimitiveTypes
	return iceberg.NewSchemaWithIdentifiers(0, []int{1},
		iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64, Required: true},
		field(2, "b", p.Bool), field(3, "i", p.Int32), field(4, "f", p.Float32), field(5, "d", p.Float64),
		field(6, "date", p.Date), field(7, "time", p.Time), field(8, "ts", p.Timestamp), field(9, "tstz", p.TimestampTz),
		field(10, "s", p.String), field(11, "bin", p.Binary), field(12, "u", p.UUID), field(13, "fx", iceberg.FixedTypeOf(5)),
		field(14, "d9", iceberg.DecimalTypeOf(9, 2)), field(15, "d18", iceberg.DecimalTypeOf(18, 3)), field(16, "d38", iceberg.DecimalTypeOf(38, 10)),
		field(17, "list", &iceberg.ListType{ElementID: 18, Element: p.String}),
		field(19, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{field(20, "x", p.Int32), field(21, "y", p.String)}}),
		field(22, "m", &iceberg.MapType{KeyID: 23, KeyType: p.String, ValueID: 24, ValueType: p.Int64}))
}

// randomBatch fills a schema's columns; about one value in nullEvery is NULL where that is allowed.
func randomBatch(t testing.TB, as *arrow.Schema, rng *rand.Rand, ids []int64) arrow.RecordBatch {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for _, id := range ids {
		for i, f := range as.Fields() {
			appendRandom(t, b.Field(i), f, rng, id)
		}
	}
	return b.NewRecordBatch()
}

func appendRandom(t testing.TB, b array.Builder, f arrow.Field, rng *rand.Rand, id int64) {
	if f.Name == "id" {
		b.(*array.Int64Builder).Append(id)
		return
	}
	if f.Nullable && rng.IntN(7) == 0 {
		b.AppendNull()
		return
	}
	switch v := b.(type) {
	case *array.Int64Builder:
		v.Append(rng.Int64() - rng.Int64())
	case *array.Int32Builder:
		v.Append(int32(rng.Uint32()))
	case *array.BooleanBuilder:
		v.Append(rng.IntN(2) == 0)
	case *array.Float32Builder:
		v.Append(float32(rng.NormFloat64()))
	case *array.Float64Builder:
		v.Append([]float64{rng.NormFloat64(), math.NaN(), math.Inf(1), math.Copysign(0, -1)}[rng.IntN(4)])
	case *array.Date32Builder:
		v.Append(arrow.Date32(rng.IntN(40000) - 20000))
	case *array.Time64Builder:
		v.Append(arrow.Time64(rng.Int64N(86400e6)))
	case *array.TimestampBuilder:
		v.Append(arrow.Timestamp(rng.Int64N(4e15) - 2e15))
	case *array.StringBuilder:
		v.Append(randomString(rng))
	case *array.BinaryBuilder:
		v.Append([]byte(randomString(rng)))
	case *array.FixedSizeBinaryBuilder:
		x := make([]byte, v.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		x[rng.IntN(len(x))] = byte(rng.Uint32())
		v.Append(x)
	case *extensions.UUIDBuilder:
		var u uuid.UUID
		binary.BigEndian.PutUint64(u[:], rng.Uint64())
		v.Append(u)
	case *array.Decimal128Builder:
		limit := int64(math.Pow10(int(min(v.Type().(*arrow.Decimal128Type).Precision, 18))))
		v.Append(decimal128.FromI64(rng.Int64N(2*limit) - limit))
	case *array.ListBuilder:
		v.Append(true)
		for range rng.IntN(4) {
			appendRandom(t, v.ValueBuilder(), v.Type().(*arrow.ListType).ElemField(), rng, id)
		}
	case *array.StructBuilder:
		v.Append(true)
		for i, f := range v.Type().(*arrow.StructType).Fields() {
			appendRandom(t, v.FieldBuilder(i), f, rng, id)
		}
	case *array.MapBuilder:
		v.Append(true)
		for i := range rng.IntN(3) {
			v.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", i))
			appendRandom(t, v.ItemBuilder(), v.Type().(*arrow.MapType).ItemField(), rng, id)
		}
	default:
		require.Fail(t, "no generator", "%T", b)
	}
}

func randomString(rng *rand.Rand) string {
	alphabet := []rune("abcdefgh\x00é漢🎉")
	n := rng.IntN(30)
	if rng.IntN(3) == 0 {
		return "same"
	}
	out := make([]rune, n)
	for i := range out {
		out[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(out)
}

func newRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 7))
}

func write(t testing.TB, o WriterOptions, recs ...arrow.RecordBatch) []WrittenFile {
	t.Helper()
	if o.FS == nil {
		o.FS = testFS()
	}
	w, err := NewWriter(t.Context(), t.TempDir(), o)
	require.NoError(t, err)
	for _, r := range recs {
		require.NoError(t, w.Write(r))
	}
	files, err := w.Close(t.Context())
	require.NoError(t, err)
	return files
}

func open(t testing.TB, f WrittenFile) *Reader {
	t.Helper()
	r, err := Open(t.Context(), testFS(), f.Path, f.DataFile.FileSizeBytes())
	require.NoError(t, err)
	return r
}

func scanAll(t testing.TB, r *Reader, o ReadOptions) []string {
	t.Helper()
	rows := []string{}
	for rec, err := range r.Scan(t.Context(), o) {
		require.NoError(t, err)
		rows = append(rows, rowStrings(rec)...)
		rec.Release()
	}
	return rows
}

func rowStrings(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	for i := range out {
		for _, c := range rec.Columns() {
			if c.IsNull(i) {
				out[i] += "∅|"
				continue
			}
			out[i] += fmt.Sprintf("%q|", c.ValueStr(i))
		}
	}
	return out
}

// TestRoundTrip writes every type in random order and reads it back sorted by key: whole, by bitmap and by position (P1).
func TestRoundTrip(t *testing.T) {
	all := wide()
	flat := iceberg.NewSchema(0, all.Fields()[:16]...)
	t.Run("nested", func(t *testing.T) { roundTrip(t, all) })
	t.Run("flat", func(t *testing.T) { roundTrip(t, flat) })
}

func roundTrip(t *testing.T, sc *iceberg.Schema) {
	rng := newRand(t)
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	const n = 10000
	ids := rng.Perm(n)
	var recs []arrow.RecordBatch
	want := map[int64]string{}
	for chunk := range slices.Chunk(ids, 900) {
		var c []int64
		for _, i := range chunk {
			c = append(c, int64(i))
		}
		rec := randomBatch(t, as, rng, c)
		for i, row := range rowStrings(rec) {
			want[c[i]] = row
		}
		recs = append(recs, rec)
	}
	for _, spill := range []int64{0, 1 << 20} {
		files := write(t, WriterOptions{Schema: sc, SortIDs: []int{1}, BloomIDs: []int{1}, RowGroupRows: 4000, MemoryBudget: spill, TempDir: t.TempDir()}, recs...)
		require.Len(t, files, 1)
		df := files[0].DataFile
		require.EqualValues(t, n, df.Count())
		require.Len(t, df.SplitOffsets(), 3)
		require.NotEmpty(t, files[0].KeyIndexPath)
		r := open(t, files[0])
		got := scanAll(t, r, ReadOptions{Schema: sc})
		require.Len(t, got, n)
		for i, row := range got {
			require.Equal(t, want[int64(i)], row)
		}
		for _, k := range []int{1, 5, 200, 7000} {
			bm := roaring.New()
			for range k {
				bm.Add(rng.Uint32N(n))
			}
			pos := bm.ToArray()
			part := scanAll(t, r, ReadOptions{Schema: sc, Positions: bm, BatchRows: 1000})
			require.Len(t, part, len(pos))
			for i, p := range pos {
				require.Equal(t, got[p], part[i])
			}
			if k < 1000 {
				twice := slices.Concat(pos, pos)
				slices.Sort(twice)
				rec, err := r.RowsAt(t.Context(), sc, nil, twice)
				require.NoError(t, err)
				rows := rowStrings(rec)
				for i, p := range twice {
					require.Equal(t, got[p], rows[i], "position %d", p)
				}
			}
			rest := scanAll(t, r, ReadOptions{Schema: sc, Suppressed: bm})
			require.Len(t, rest, n-len(pos))
		}
		checkIndex(t, files[0], df.Count())
	}
}

func checkIndex(t *testing.T, f WrittenFile, rows int64) {
	data, err := os.ReadFile(f.KeyIndexPath)
	require.NoError(t, err)
	ix, err := keyindex.Decode(data)
	require.NoError(t, err)
	require.EqualValues(t, rows, ix.Len())
	require.Equal(t, []uint32{77}, ix.Find(nil, keyindex.AppendLong(nil, 77)))
}

// TestBounds: every value lies within its column's bounds as the spec serialises them, and the bounds of uncut types are tight.
func TestBounds(t *testing.T) {
	rng := newRand(t)
	sc := wide()
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	ids := make([]int64, 500)
	for i := range ids {
		ids[i] = int64(i) - 250
	}
	rec := randomBatch(t, as, rng, ids)
	f := write(t, WriterOptions{Schema: sc}, rec)[0].DataFile
	for i, fl := range sc.Fields() {
		if !isPrimitive(fl.Type) {
			require.NotContains(t, f.LowerBoundValues(), fl.ID)
			continue
		}
		require.EqualValues(t, 500, f.ValueCounts()[fl.ID])
		require.EqualValues(t, rec.Column(i).NullN(), f.NullValueCounts()[fl.ID])
		lo, err := iceberg.LiteralFromBytes(fl.Type, f.LowerBoundValues()[fl.ID])
		require.NoError(t, err, fl.Name)
		hi, err := iceberg.LiteralFromBytes(fl.Type, f.UpperBoundValues()[fl.ID])
		require.NoError(t, err, fl.Name)
		loKey, err := keyindex.AppendLiteral(nil, lo)
		require.NoError(t, err)
		hiKey, err := keyindex.AppendLiteral(nil, hi)
		require.NoError(t, err)
		enc, err := keyindex.NewArrayEncoder([]arrow.Array{rec.Column(i)})
		require.NoError(t, err)
		for row := range 500 {
			if rec.Column(i).IsNull(row) || fl.ID == 5 && math.IsNaN(rec.Column(i).(*array.Float64).Value(row)) {
				continue
			}
			k, err := enc.Append(nil, row)
			require.NoError(t, err)
			require.LessOrEqual(t, bytes.Compare(loKey, k), 0, "%s row %d", fl.Name, row)
			require.GreaterOrEqual(t, bytes.Compare(hiKey, k), 0, "%s row %d", fl.Name, row)
		}
	}
	require.Positive(t, f.NaNValueCounts()[5])
}

func TestStringBounds(t *testing.T) {
	long := "0123456789abcdef-tail"
	require.Equal(t, "0123456789abcdef", string(truncateString([]byte(long))))
	require.Equal(t, "0123456789abcdeg", string(upperString([]byte(long))))
	require.Equal(t, "short", string(upperString([]byte("short"))))
	top := string([]rune{0x10ffff})
	seventeen := "a" + string(bytes.Repeat([]byte(top), 16))
	require.Equal(t, "b", string(upperString([]byte(seventeen))))
	require.Equal(t, []byte{1, 0xff}, upperBinary([]byte{1, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}))
	require.Equal(t, []byte{0x80}, decimalBytes(decimal128.FromI64(-128)))
	require.Equal(t, []byte{0, 0x80}, decimalBytes(decimal128.FromI64(128)))
	require.Equal(t, []byte{0}, decimalBytes(decimal128.FromI64(0)))
}

// TestEvolution reads a file under a later schema: renamed, widened, reordered, dropped, added with and without default.
func TestEvolution(t *testing.T) {
	p := iceberg.PrimitiveTypes
	old := iceberg.NewSchema(0, field(1, "a", p.Int32), field(2, "b", p.Float32), field(3, "c", iceberg.DecimalTypeOf(9, 2)), field(4, "gone", p.String),
		field(5, "st", &iceberg.StructType{FieldList: []iceberg.NestedField{field(6, "x", p.Int32), field(7, "y", p.String)}}), field(20, "day", p.Date))
	as, err := ArrowSchema(old, false)
	require.NoError(t, err)
	rec := randomBatch(t, as, newRand(t), make([]int64, 100))
	f := write(t, WriterOptions{Schema: old}, rec)[0]
	with := field(9, "def", p.Int32)
	with.InitialDefault = int32(42)
	deft := field(10, "defs", p.String)
	deft.InitialDefault = "hello"
	now := iceberg.NewSchema(1, field(3, "c2", iceberg.DecimalTypeOf(30, 2)), field(8, "new", p.TimestampTz), field(1, "a2", p.Int64), with, field(2, "b2", p.Float64), deft,
		field(5, "st2", &iceberg.StructType{FieldList: []iceberg.NestedField{field(7, "y2", p.String), field(6, "x2", p.Int64), field(11, "z", p.Bool)}}), field(20, "day", p.Timestamp))
	r := open(t, f)
	check := func(got arrow.RecordBatch) {
		require.EqualValues(t, 100, got.NumRows())
		for i := range 100 {
			require.True(t, got.Column(1).IsNull(i))
			require.EqualValues(t, 42, got.Column(3).(*array.Int32).Value(i))
			require.Equal(t, "hello", got.Column(5).ValueStr(i))
			for _, pair := range [][2]int{{0, 2}, {2, 0}} {
				require.Equal(t, rec.Column(pair[1]).IsNull(i), got.Column(pair[0]).IsNull(i))
				require.Equal(t, rec.Column(pair[1]).ValueStr(i), got.Column(pair[0]).ValueStr(i))
			}
			if rec.Column(1).IsValid(i) {
				require.Equal(t, float64(rec.Column(1).(*array.Float32).Value(i)), got.Column(4).(*array.Float64).Value(i))
			}
			if rec.Column(5).IsValid(i) {
				require.Equal(t, int64(rec.Column(5).(*array.Date32).Value(i))*86400e6, int64(got.Column(7).(*array.Timestamp).Value(i)))
			}
			st, was := got.Column(6).(*array.Struct), rec.Column(4).(*array.Struct)
			require.Equal(t, was.IsNull(i), st.IsNull(i))
			if st.IsValid(i) {
				require.Equal(t, was.Field(1).ValueStr(i), st.Field(0).ValueStr(i))
				require.Equal(t, was.Field(0).ValueStr(i), st.Field(1).ValueStr(i))
				require.True(t, st.Field(2).IsNull(i))
			}
		}
	}
	for got, err := range r.Scan(t.Context(), ReadOptions{Schema: now}) {
		require.NoError(t, err)
		check(got)
	}
	all := make([]uint32, 100)
	for i := range all {
		all[i] = uint32(i)
	}
	got, err := r.RowsAt(t.Context(), now, nil, all)
	require.NoError(t, err)
	check(got)
	_, err = r.RowsAt(t.Context(), iceberg.NewSchema(0, field(1, "a", p.String)), nil, all)
	var te *TypeError
	require.ErrorAs(t, err, &te)
	_, err = r.RowsAt(t.Context(), now, nil, []uint32{100})
	require.ErrorIs(t, err, ErrPosition)
}

// TestNoKeys writes without key: order of Write is kept, files rotate, _row_id columns pass through.
func TestNoKeys(t *testing.T) {
	sc := iceberg.NewSchema(0, field(1, "a", iceberg.PrimitiveTypes.Int64))
	as, err := ArrowSchema(sc, true)
	require.NoError(t, err)
	require.Equal(t, 3, as.NumFields())
	rng := newRand(t)
	rec := randomBatch(t, as, rng, make([]int64, 40000))
	files := write(t, WriterOptions{Schema: sc, RowIDs: true, TargetFileSize: 300 << 10, RowGroupRows: 5000}, rec.NewSlice(0, 20000), rec.NewSlice(20000, 40000))
	require.Greater(t, len(files), 1)
	var got []string
	for _, f := range files {
		require.Empty(t, f.KeyIndexPath)
		got = append(got, scanAll(t, open(t, f), ReadOptions{Schema: iceberg.SchemaWithRowLineage(sc)})...)
	}
	require.Equal(t, rowStrings(rec), got)
}

func TestUnique(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}, field(2, "s", iceberg.PrimitiveTypes.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	rng := newRand(t)
	dir := t.TempDir()
	for _, budget := range []int64{0, 1} {
		w, err := NewWriter(t.Context(), dir, WriterOptions{FS: testFS(), Schema: sc, SortIDs: []int{1}, Unique: true, MemoryBudget: budget, TempDir: dir})
		require.NoError(t, err)
		require.NoError(t, w.Write(randomBatch(t, as, rng, []int64{3, 1, 2})))
		require.NoError(t, w.Write(randomBatch(t, as, rng, []int64{5, 2, 4})))
		_, err = w.Close(t.Context())
		var dup *DuplicateKeyError
		require.ErrorAs(t, err, &dup)
		require.Equal(t, keyindex.AppendLong(nil, 2), dup.Key)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "a failed Close leaves nothing")
	}
	w, err := NewWriter(t.Context(), dir, WriterOptions{FS: testFS(), Schema: sc, SortIDs: []int{2}})
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	b.Field(0).(*array.Int64Builder).Append(1)
	b.Field(1).AppendNull()
	require.NoError(t, w.Write(b.NewRecordBatch()))
	_, err = w.Close(t.Context())
	require.ErrorIs(t, err, keyindex.ErrNullKey)
}

// TestProbeReadsOnePage counts: one row of an upserted-table-like file costs one page a column, at most 16 KiB each.
func TestProbeReadsOnePage(t *testing.T) {
	p := iceberg.PrimitiveTypes
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64, Required: true}, field(2, "n", p.Int64), field(3, "s", p.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	rng := newRand(t)
	for i := range 100000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int64Builder).Append(rng.Int64())
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%020x", rng.Uint64()))
	}
	f := write(t, WriterOptions{Schema: sc, SortIDs: []int{1}, BloomIDs: []int{1}}, b.NewRecordBatch())[0]
	r := open(t, f)
	_, err = r.RowsAt(t.Context(), sc, nil, []uint32{5}) // offset indexes are read once
	require.NoError(t, err)
	var c Counters
	rec, err := r.RowsAt(WithCounters(t.Context(), &c), sc, nil, []uint32{54321})
	require.NoError(t, err)
	require.Equal(t, "54321", rec.Column(0).ValueStr(0))
	require.EqualValues(t, 3, c.Pages.Load())
	require.LessOrEqual(t, c.Reads.Load(), int64(3))
	require.LessOrEqual(t, c.Bytes.Load(), int64(3*(16<<10)+3*256))
	require.LessOrEqual(t, c.Rows.Load(), int64(3*782))
	all, err := r.Blooms(t.Context(), 1)
	require.NoError(t, err)
	blooms := all[0]
	col := keyindex.Column{Kind: keyindex.KindLong}
	hits := 0
	for i := range 2000 {
		require.True(t, blooms[0].MayContain(HashKey(keyindex.AppendLong(nil, int64(i*37)), col)))
		if blooms[0].MayContain(HashKey(keyindex.AppendLong(nil, int64(1e9+i)), col)) {
			hits++
		}
	}
	require.Less(t, hits, 100)
}

// TestDamage truncates and flips bytes: errors with the path, never a panic (P3, S3).
func TestDamage(t *testing.T) {
	rng := newRand(t)
	sc := wide()
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	f := write(t, WriterOptions{Schema: sc, BloomIDs: []int{1}}, randomBatch(t, as, rng, make([]int64, 300)))[0]
	good, err := os.ReadFile(f.Path)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "bad.parquet")
	for i := range 200 {
		bad := bytes.Clone(good)
		if i%4 == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			for range 1 + rng.IntN(4) {
				bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
			}
		}
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		readEverything(t, path, sc)
	}
	_, err = Open(t.Context(), testFS(), path+".absent", 0)
	require.ErrorIs(t, err, ErrMissingFile)
	var d *DamagedError
	require.NoError(t, os.WriteFile(path, good[:len(good)/2], 0o600))
	_, err = Open(t.Context(), testFS(), path, 0)
	require.ErrorAs(t, err, &d)
	require.Equal(t, path, d.Path)
	_, err = Open(t.Context(), testFS(), f.Path, 17)
	require.ErrorAs(t, err, &d)
}

func readEverything(t *testing.T, path string, sc *iceberg.Schema) {
	r, err := Open(context.Background(), testFS(), path, 0)
	if err != nil {
		return
	}
	for rec, err := range r.Scan(t.Context(), ReadOptions{Schema: sc}) {
		if err == nil {
			rec.Release()
		}
	}
	for pos := uint32(0); int64(pos) < min(r.Rows(), 300); pos += 37 {
		if rec, err := r.RowsAt(t.Context(), sc, nil, []uint32{pos}); err == nil {
			rec.Release()
		}
	}
	if b, err := r.Blooms(t.Context(), 1); err == nil && len(b[0]) > 0 {
		b[0][0].MayContain(HashKey(keyindex.AppendLong(nil, 1), keyindex.Column{Kind: keyindex.KindLong}))
	}
}

func FuzzPageHeader(f *testing.F) {
	f.Add([]byte{0x15, 0, 0x15, 20, 0x15, 10, 0x2c, 0x15, 4, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, body, err := parsePageHeader(b); err == nil && int64(len(body)) != h.compressed {
			t.Fatal("body has another length than the header says")
		}
	})
}

func FuzzOpenPage(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3}, 3, 5)
	f.Fuzz(func(t *testing.T, b []byte, width, n int) {
		r := rle{b: b, width: ((width%32)+32)%32 + 1}
		for range min(max(n, 0), 1000) {
			if _, ok := r.next(); !ok {
				break
			}
		}
		r.skip(min(max(n, 0), 1000))
	})
}

func BenchmarkScan(b *testing.B) {
	p := iceberg.PrimitiveTypes
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: p.Int64, Required: true}, field(2, "n", p.Int64), field(3, "s", p.String))
	as, _ := ArrowSchema(sc, false)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, as)
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 1 << 20
	for i := range n {
		rb.Field(0).(*array.Int64Builder).Append(int64(i))
		rb.Field(1).(*array.Int64Builder).Append(rng.Int64N(1e6))
		rb.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%020d", rng.Uint64()))
	}
	rec := rb.NewRecordBatch()
	f := write(b, WriterOptions{Schema: sc, SortIDs: []int{1}, BloomIDs: []int{1}}, rec)[0]
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			write(b, WriterOptions{Schema: sc, SortIDs: []int{1}, BloomIDs: []int{1}}, rec)
		}
		b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
	})
	r := open(b, f)
	for name, s := range map[string]*iceberg.Schema{"key": iceberg.NewSchema(0, sc.Field(0)), "ints": iceberg.NewSchema(0, sc.Field(0), sc.Field(1)), "all": sc} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				for rec, err := range r.Scan(b.Context(), ReadOptions{Schema: s}) {
					if err != nil {
						b.Fatal(err)
					}
					rec.Release()
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
	b.Run("rowsat", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rec, err := r.RowsAt(b.Context(), sc, nil, []uint32{rng.Uint32N(n)})
			if err != nil {
				b.Fatal(err)
			}
			rec.Release()
		}
	})
}
