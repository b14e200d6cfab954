package parquetio

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// chunkRow is the i-th row of the files below: runs of NULLs, scattered NULLs, few and many distinct values, empty strings.
func chunkRow(i int) (n *int64, d *int32, f *float64, s *string, b *bool) {
	v, w, x := int64(i)*1_000_003, int32(i%17), float64(i)/3
	text, flag := fmt.Sprint("text-", i%1000/((i/5000)%3*400+1)), i%3 == 0
	if i%11 == 0 {
		text = ""
	}
	n, d, f, s, b = &v, &w, &x, &text, &flag
	if i%13 == 5 || i/700%4 == 2 {
		d = nil
	}
	if i/3000%2 == 1 {
		f = nil
	}
	if i%7 == 3 {
		s = nil
	}
	if i%5 == 4 {
		b = nil
	}
	return n, d, f, s, b
}

func writeChunks(t *testing.T, path string, rows int, props ...parquet.WriterProperty) {
	t.Helper()
	id := func(n int) arrow.Metadata {
		return arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{fmt.Sprint(n)})
	}
	as := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64, Metadata: id(1)},
		{Name: "d", Type: arrow.PrimitiveTypes.Int32, Nullable: true, Metadata: id(2)},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true, Metadata: id(3)},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true, Metadata: id(4)},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true, Metadata: id(5)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	for i := range rows {
		n, d, f, s, flag := chunkRow(i)
		b.Field(0).(*array.Int64Builder).Append(*n)
		appendOr(b.Field(1).(*array.Int32Builder), d)
		appendOr(b.Field(2).(*array.Float64Builder), f)
		appendOr(b.Field(3).(*array.StringBuilder), s)
		appendOr(b.Field(4).(*array.BooleanBuilder), flag)
	}
	out, err := os.Create(path)
	require.NoError(t, err)
	props = append(props, parquet.WithMaxRowGroupLength(int64(rows)/2+1), parquet.WithDataPageSize(8<<10), parquet.WithBatchSize(500))
	w, err := pqarrow.NewFileWriter(as, out, parquet.NewWriterProperties(props...), pqarrow.NewArrowWriterProperties())
	require.NoError(t, err)
	require.NoError(t, w.Write(b.NewRecordBatch()))
	require.NoError(t, w.Close())
}

func appendOr[T any](b interface {
	Append(T)
	AppendNull()
}, v *T) {
	if v == nil {
		b.AppendNull()
		return
	}
	b.Append(*v)
}

// TestScanEncodings: whatever way a file's pages are encoded, compressed and indexed, a scan gives its rows, all of them and
// any part of them, from both decoders.
func TestScanEncodings(t *testing.T) {
	const rows = 12_000
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "d", Type: iceberg.PrimitiveTypes.Int64}, // promoted
		iceberg.NestedField{ID: 3, Name: "f", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 4, Name: "s", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 5, Name: "b", Type: iceberg.PrimitiveTypes.Bool})
	v2, index := parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithPageIndexEnabled(true)
	plain := parquet.WithDictionaryDefault(false)
	for name, props := range map[string][]parquet.WriterProperty{
		"dictionary":        {parquet.WithCompression(compress.Codecs.Zstd), index},
		"plain":             {plain, parquet.WithCompression(compress.Codecs.Snappy), index},
		"no page index":     {parquet.WithCompression(compress.Codecs.Zstd)},
		"plain, no index":   {plain, parquet.WithCompression(compress.Codecs.Gzip)},
		"v2 pages":          {v2, parquet.WithCompression(compress.Codecs.Zstd), index},
		"v2, uncompressed":  {v2, plain},
		"uncompressed":      {index},
		"delta":             {plain, index, parquet.WithEncodingFor("n", parquet.Encodings.DeltaBinaryPacked), parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray)},
		"byte stream split": {plain, parquet.WithEncodingFor("f", parquet.Encodings.ByteStreamSplit), parquet.WithEncodingFor("s", parquet.Encodings.DeltaLengthByteArray)},
		"dictionary outgrown": {parquet.WithDictionaryPageSizeLimit(2 << 10), parquet.WithCompression(compress.Codecs.Zstd),
			index},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "f.parquet")
			writeChunks(t, path, rows, props...)
			r, err := Open(t.Context(), fs, path, 0)
			require.NoError(t, err)
			defer r.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			requireRows(t, r, ReadOptions{Schema: sc, BatchRows: 1000}, nil)
			for _, share := range []float64{0.9, 0.3, 0.05} {
				want, suppressed := roaring.New(), roaring.New()
				for i := 0; i < rows; i++ {
					if rng.Float64() < share {
						want.Add(uint32(i))
					} else if rng.IntN(300) == 0 {
						i += rng.IntN(2000) // a gap of some pages
					}
					if rng.IntN(10) == 0 {
						suppressed.Add(uint32(i))
					}
				}
				requireRows(t, r, ReadOptions{Schema: sc, Positions: want, BatchRows: 700}, want)
				requireRows(t, r, ReadOptions{Schema: sc, Positions: want, Suppressed: suppressed, BatchRows: 5000}, roaring.AndNot(want, suppressed))
			}
		})
	}
}

// requireRows compares a scan with the rows of want, nil for all.
func requireRows(t *testing.T, r *Reader, o ReadOptions, want *roaring.Bitmap) {
	t.Helper()
	if want == nil {
		want = span(0, r.Rows())
	}
	it := want.Iterator()
	for rec, err := range r.Scan(context.Background(), o) {
		require.NoError(t, err)
		for k := range int(rec.NumRows()) {
			require.True(t, it.HasNext(), "more rows than asked")
			i := int(it.Next())
			n, d, f, s, b := chunkRow(i)
			require.Equal(t, *n, rec.Column(0).(*array.Int64).Value(k), "row %d", i)
			requireCell(t, i, k, rec.Column(1).(*array.Int64), widened(d))
			requireCell(t, i, k, rec.Column(2).(*array.Float64), f)
			requireCell(t, i, k, rec.Column(3).(*array.String), s)
			requireCell(t, i, k, rec.Column(4).(*array.Boolean), b)
		}
		rec.Release()
	}
	require.False(t, it.HasNext(), "fewer rows than asked")
}

func widened(d *int32) *int64 {
	if d == nil {
		return nil
	}
	v := int64(*d)
	return &v
}

func requireCell[T comparable](t *testing.T, i, k int, col interface {
	IsNull(int) bool
	Value(int) T
}, want *T) {
	t.Helper()
	if col.IsNull(k) != (want == nil) || want != nil && col.Value(k) != *want {
		require.Failf(t, "wrong value", "row %d: null %v, value %v", i, col.IsNull(k), col.Value(k))
	}
}

// TestScanReadsWantedPages counts: rows in one place of a large file cost the pages that hold them, not the file.
func TestScanReadsWantedPages(t *testing.T) {
	const rows = 400_000
	fs := storeio.NewFS(storeio.Options{NoSync: true})
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "n", Type: iceberg.PrimitiveTypes.Int64})
	path := filepath.Join(t.TempDir(), "f.parquet")
	writeChunks(t, path, rows, parquet.WithPageIndexEnabled(true), parquet.WithDictionaryDefault(false))
	r, err := Open(t.Context(), fs, path, 0)
	require.NoError(t, err)
	defer r.Close()
	count := func(positions *roaring.Bitmap) (pages, bytes, decoded int64) {
		var c Counters
		for rec, err := range r.Scan(WithCounters(t.Context(), &c), ReadOptions{Schema: sc, Positions: positions, BatchRows: 2000}) {
			require.NoError(t, err)
			rec.Release()
		}
		return c.Pages.Load(), c.Bytes.Load(), c.Rows.Load()
	}
	all, _, _ := count(nil)
	require.Greater(t, all, int64(200), "pages of the whole column")
	pages, bytes, decoded := count(span(50_000, 60_000)) // 80 KB of values: more than sparse reading takes
	require.EqualValues(t, 10_000, decoded)
	require.LessOrEqual(t, pages, all/40+2)
	require.LessOrEqual(t, bytes, int64(80_000+2*(16<<10)+(32<<10)), "the pages, and the page index")
}
