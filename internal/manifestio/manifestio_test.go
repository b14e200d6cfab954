package manifestio

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// wide is a schema and an identity-partitioned spec of every type that a partition can have.
func wide() (*iceberg.Schema, iceberg.PartitionSpec, map[int]string) {
	types := []iceberg.Type{
		iceberg.PrimitiveTypes.Bool, iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.Float32, iceberg.PrimitiveTypes.Float64,
		iceberg.PrimitiveTypes.Date, iceberg.PrimitiveTypes.Time, iceberg.PrimitiveTypes.Timestamp, iceberg.PrimitiveTypes.TimestampTz,
		iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Binary, iceberg.FixedTypeOf(5), iceberg.PrimitiveTypes.UUID,
		iceberg.DecimalTypeOf(38, 10), // one: iceberg-go names every decimal alike
	}
	logical := map[int]string{1005: "date", 1006: "time-micros", 1007: "timestamp-micros", 1008: "timestamp-micros", 1012: "uuid", 1013: "decimal"}
	var fields []iceberg.NestedField
	var parts []iceberg.PartitionField
	for i, t := range types {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: fmt.Sprint("c", i), Type: t})
		parts = append(parts, iceberg.PartitionField{SourceIDs: []int{i + 1}, FieldID: 1000 + i, Name: fmt.Sprint("p", i), Transform: iceberg.IdentityTransform{}})
	}
	return iceberg.NewSchema(3, fields...), iceberg.NewPartitionSpecID(7, parts...), logical
}

func randomPartition(r *rand.Rand) map[int]any {
	dec := func(bits int, scale int) iceberg.Decimal {
		v := decimal128.FromI64(r.Int64N(1<<bits) - 1<<(bits-1))
		return iceberg.Decimal{Val: v, Scale: scale}
	}
	raw := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	out := map[int]any{
		1000: r.IntN(2) == 0, 1001: r.Int32() - math.MaxInt32/2, 1002: r.Int64() - math.MaxInt64/2, 1003: r.Float32() - .5, 1004: r.Float64() - .5,
		1005: iceberg.Date(r.IntN(100_000) - 50_000), 1006: iceberg.Time(r.Int64N(86_400e6)), 1007: iceberg.Timestamp(r.Int64N(1 << 50)), 1008: iceberg.Timestamp(-r.Int64N(1 << 50)),
		1009: fmt.Sprint("é", r.IntN(100)), 1010: raw(r.IntN(9)), 1011: raw(5), 1012: uuid.UUID(raw(16)), 1013: dec(60, 10),
	}
	for k := range out {
		if r.IntN(5) == 0 {
			out[k] = nil
		}
	}
	if r.IntN(10) == 0 {
		out[1004] = math.NaN()
	}
	return out
}

func randomFile(t *testing.T, r *rand.Rand, version, i int, content iceberg.ManifestEntryContent, spec iceberg.PartitionSpec, partition map[int]any, logical map[int]string) iceberg.DataFile {
	b, err := iceberg.NewDataFileBuilder(spec, content, fmt.Sprintf("s3://b/%d.parquet", i), iceberg.ParquetFile, partition, logical, nil, r.Int64N(1000)+1, r.Int64N(1<<40)+1)
	require.NoError(t, err)
	if r.IntN(4) > 0 {
		b.ColumnSizes(map[int]int64{1: r.Int64N(1 << 40), 2: 0}).ValueCounts(map[int]int64{1: 5, 9: 7}).NullValueCounts(map[int]int64{2: 1}).NaNValueCounts(map[int]int64{5: 2}).
			LowerBoundValues(map[int][]byte{1: {1, 2, 3}, 2: {}}).UpperBoundValues(map[int][]byte{7: []byte("zz")}).KeyMetadata([]byte{9}).SplitOffsets([]int64{4, 1 << 33}).SortOrderID(3)
	}
	if content == iceberg.EntryContentEqDeletes {
		b.EqualityFieldIDs([]int{1, 4})
	}
	if content == iceberg.EntryContentPosDeletes && version == 3 {
		b.ReferencedDataFile("s3://b/data.parquet").ContentOffset(4).ContentSizeInBytes(77)
	}
	if content == iceberg.EntryContentData && version == 3 && r.IntN(2) == 0 {
		b.FirstRowID(r.Int64N(1 << 40))
	}
	return b.Build()
}

// fileFacts is what a DataFile says.
func fileFacts(f iceberg.DataFile) []any {
	partition := fmt.Sprintf("%#v", f.Partition()) // NaN is unequal to itself
	return []any{f.ContentType(), f.FilePath(), f.FileFormat(), partition, f.Count(), f.FileSizeBytes(), f.ColumnSizes(), f.ValueCounts(), f.NullValueCounts(), f.NaNValueCounts(),
		f.LowerBoundValues(), f.UpperBoundValues(), f.KeyMetadata(), f.SplitOffsets(), f.EqualityFieldIDs(), f.SortOrderID(), f.SpecID(), f.FirstRowID(), f.ReferencedDataFile(), f.ContentOffset(), f.ContentSizeInBytes()}
}

func manifestFacts(m iceberg.ManifestFile) []any {
	return []any{m.Version(), m.FilePath(), m.PartitionSpecID(), m.ManifestContent(), m.SnapshotID(), m.AddedDataFiles(), m.ExistingDataFiles(), m.DeletedDataFiles(),
		m.AddedRows(), m.ExistingRows(), m.DeletedRows(), m.SequenceNum(), m.MinSequenceNum(), m.KeyMetadata(), m.Partitions(), m.FirstRowID()}
}

func readBack(t *testing.T, m iceberg.ManifestFile, data []byte) [][]any {
	entries, err := iceberg.ReadManifest(m, bytes.NewReader(data), false)
	require.NoError(t, err)
	return entryFacts(entries)
}

func entryFacts(entries []iceberg.ManifestEntry) (out [][]any) {
	for _, e := range entries {
		out = append(out, append([]any{e.Status(), e.SnapshotID(), e.SequenceNum(), e.FileSequenceNum()}, fileFacts(e.DataFile())...))
	}
	return out
}

// TestManifest: iceberg-go reads the same from our manifests as from its own, and says the same of them.
func TestManifest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	sc, spec, logical := wide()
	const snapshot = 12345
	for i := range 60 {
		version := 2 + i%2
		content, kinds := iceberg.ManifestContentData, []iceberg.ManifestEntryContent{iceberg.EntryContentData}
		if i%3 == 0 {
			content, kinds = iceberg.ManifestContentDeletes, []iceberg.ManifestEntryContent{iceberg.EntryContentPosDeletes, iceberg.EntryContentEqDeletes}
		}
		var theirs, ours bytes.Buffer
		lib, err := iceberg.NewManifestWriter(version, &theirs, spec, sc, snapshot, iceberg.WithManifestWriterContent(content))
		require.NoError(t, err)
		var entries []Entry
		for j := range 1 + r.IntN(40) {
			f := randomFile(t, r, version, j, kinds[r.IntN(len(kinds))], spec, randomPartition(r), logical)
			e := Entry{Status: iceberg.ManifestEntryStatus(r.IntN(3)), File: f}
			id, seq, fileSeq := int64(snapshot), r.Int64N(100)+1, r.Int64N(100)+1
			if e.Status == iceberg.EntryStatusADDED {
				if r.IntN(2) == 0 {
					e.Sequence = &seq
				}
				require.NoError(t, lib.Add(iceberg.NewManifestEntry(e.Status, &id, e.Sequence, nil, f)))
			} else {
				e.Sequence, e.FileSequence = &seq, &fileSeq
				if e.Status == iceberg.EntryStatusEXISTING {
					id = 777
					e.SnapshotID = id
					require.NoError(t, lib.Existing(iceberg.NewManifestEntry(e.Status, &id, &seq, &fileSeq, f)))
				} else {
					require.NoError(t, lib.Delete(iceberg.NewManifestEntry(e.Status, &id, &seq, &fileSeq, f)))
				}
			}
			entries = append(entries, e)
		}
		want, err := lib.ToManifestFile("s3://b/m.avro", 1)
		require.NoError(t, err)
		got, err := Manifest{Version: version, Content: content, Spec: spec, Schema: sc, SnapshotID: snapshot}.Write(&ours, "s3://b/m.avro", entries)
		require.NoError(t, err)
		require.Equal(t, manifestFacts(want), manifestFacts(got))
		require.EqualValues(t, ours.Len(), got.Length())

		// Through lists of both.
		parent, seq := int64(99), int64(41)
		var theirList, ourList bytes.Buffer
		require.NoError(t, iceberg.WriteManifestList(version, &theirList, snapshot, &parent, &seq, 1000, []iceberg.ManifestFile{want}))
		rows, read, err := List{Version: version, SnapshotID: snapshot, ParentSnapshotID: &parent, Sequence: seq, FirstRowID: 1000}.Write(&ourList, []iceberg.ManifestFile{got})
		require.NoError(t, err)
		wantList, err := iceberg.ReadManifestList(&theirList)
		require.NoError(t, err)
		gotList, err := iceberg.ReadManifestList(&ourList)
		require.NoError(t, err)
		require.Equal(t, manifestFacts(wantList[0]), manifestFacts(gotList[0]))
		require.Equal(t, manifestFacts(wantList[0]), manifestFacts(read[0]))
		if version == 3 && content == iceberg.ManifestContentData {
			require.Equal(t, got.AddedRows()+got.ExistingRows(), rows)
		} else {
			require.Zero(t, rows)
		}
		facts := readBack(t, wantList[0], theirs.Bytes())
		require.Equal(t, facts, readBack(t, gotList[0], ours.Bytes()))
		// Our reader, of ours and of theirs
		for _, deleted := range []bool{false, true} {
			for list, data := range map[iceberg.ManifestFile][]byte{gotList[0]: ours.Bytes(), wantList[0]: theirs.Bytes()} {
				p, _, err := knownHeader(list, data)
				require.NoError(t, err)
				require.Equal(t, version == 3 || list == gotList[0], p != nil)
				back, err := ReadEntries(list, data, deleted)
				require.NoError(t, err)
				var want [][]any
				for _, f := range facts {
					if !deleted || f[0] != iceberg.EntryStatusDELETED {
						want = append(want, f)
					}
				}
				require.Equal(t, want, entryFacts(back))
			}
		}
	}
}

// TestReferencedDataFile: version 2 manifests carry it, other than iceberg-go's own.
func TestReferencedDataFile(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32})
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentPosDeletes, "d.parquet", iceberg.ParquetFile, nil, nil, nil, 1, 1)
	require.NoError(t, err)
	f := b.ReferencedDataFile("data.parquet").Build()
	var buf bytes.Buffer
	m, err := Manifest{Version: 2, Content: iceberg.ManifestContentDeletes, Spec: *iceberg.UnpartitionedSpec, Schema: sc, SnapshotID: 1}.Write(&buf, "m", []Entry{{Status: iceberg.EntryStatusADDED, File: f}})
	require.NoError(t, err)
	back, err := iceberg.ReadManifest(m, &buf, false)
	require.NoError(t, err)
	require.Equal(t, "data.parquet", *back[0].DataFile().ReferencedDataFile())
}

// TestRefused: what does not belong into a manifest is an error.
func TestRefused(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32})
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "d.parquet", iceberg.ParquetFile, nil, nil, nil, 1, 1)
	require.NoError(t, err)
	m := Manifest{Version: 2, Content: iceberg.ManifestContentData, Spec: *iceberg.UnpartitionedSpec, Schema: sc, SnapshotID: 1}
	var buf bytes.Buffer
	_, err = m.Write(&buf, "m", nil)
	require.ErrorIs(t, err, iceberg.ErrEmptyManifest)
	_, err = m.Write(&buf, "m", []Entry{{Status: iceberg.EntryStatusDELETED, File: b.Build()}})
	require.ErrorContains(t, err, "no sequence number")
	m.Content = iceberg.ManifestContentDeletes
	_, err = m.Write(&buf, "m", []Entry{{Status: iceberg.EntryStatusADDED, File: b.Build()}})
	require.ErrorContains(t, err, "does not belong")
	m.Version = 1
	_, err = m.Write(&buf, "m", nil)
	require.ErrorContains(t, err, "version 1")
	other := iceberg.NewManifestFile(2, "m", 1, 0, 5).Build()
	_, _, err = List{Version: 2, SnapshotID: 6}.Write(&buf, []iceberg.ManifestFile{other})
	require.ErrorContains(t, err, "no sequence number")
}

func BenchmarkManifest(b *testing.B) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32})
	db, _ := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "d.parquet", iceberg.ParquetFile, nil, nil, nil, 1, 1)
	f := db.Build()
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			var buf bytes.Buffer
			_, err := Manifest{Version: 2, Spec: *iceberg.UnpartitionedSpec, Schema: sc, SnapshotID: 1}.Write(&buf, "m", []Entry{{Status: iceberg.EntryStatusADDED, File: f}})
			require.NoError(b, err)
		}
	})
	b.Run("iceberg-go", func(b *testing.B) {
		id := int64(1)
		for b.Loop() {
			var buf bytes.Buffer
			_, err := iceberg.WriteManifest("m", &buf, 2, *iceberg.UnpartitionedSpec, sc, 1, []iceberg.ManifestEntry{iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &id, nil, nil, f)})
			require.NoError(b, err)
		}
	})
}

// FuzzReadEntries: no bytes make the reader panic, or take memory without bound.
func FuzzReadEntries(f *testing.F) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32})
	b, _ := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "d.parquet", iceberg.ParquetFile, nil, nil, nil, 1, 1)
	b.ColumnSizes(map[int]int64{1: 4}).LowerBoundValues(map[int][]byte{1: {1, 2, 3, 4}}).SplitOffsets([]int64{4})
	m := Manifest{Version: 2, Spec: *iceberg.UnpartitionedSpec, Schema: sc, SnapshotID: 1}
	var buf bytes.Buffer
	mf, err := m.Write(&buf, "m", []Entry{{Status: iceberg.EntryStatusADDED, File: b.Build()}})
	if err != nil {
		f.Fatal(err)
	}
	_, n, err := readHeader(buf.Bytes())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes()[n+16:])
	head := bytes.Clone(buf.Bytes()[:n+16])
	var plain []byte
	plain, err = m.append(nil, &Entry{Status: iceberg.EntryStatusADDED, File: b.Build()}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ReadEntries(mf, append(bytes.Clone(head), data...), false) // as blocks
		var whole bytes.Buffer                                            // as records of an intact block
		c := newContainer(&whole, map[string][]byte{})
		c.meta = nil // the header is there
		whole.Write(head)
		copy(c.sync[:], head[len(head)-16:])
		c.block, c.rows = data, 3
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
		_, _ = ReadEntries(mf, whole.Bytes(), true)
	})
}
