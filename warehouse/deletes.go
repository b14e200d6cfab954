package warehouse

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/table/dv"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// Field ids of position delete files (Iceberg spec, "Reserved Field IDs").
const (
	fieldDeletePath = 2147483546
	fieldDeletePos  = 2147483545
)

// suppression is the positions one snapshot suppresses in one data file.
type suppression struct {
	file      *liveset.File
	positions *roaring.Bitmap
}

var positionDeleteSchema = arrow.NewSchema([]arrow.Field{
	{Name: "file_path", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"2147483546"})},
	{Name: "pos", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"2147483545"})},
}, nil)

// writePositionDeletes writes one position delete file per partition (format v2), rows sorted by path and position. A
// file that names one data file says so in referenced_data_file.
func writePositionDeletes(fs *storeio.FS, meta icetable.Metadata, sup []suppression) (files []iceberg.DataFile, paths []string, err error) {
	loc, err := icetable.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return nil, nil, err
	}
	groups := map[string][]suppression{}
	for _, s := range sup {
		k := fmt.Sprintf("%d/%s", s.file.SpecID, partitionKey(int32(s.file.SpecID), s.file.Data.Partition()))
		groups[k] = append(groups[k], s)
	}
	for _, k := range slices.Sorted(maps.Keys(groups)) {
		g := groups[k]
		slices.SortFunc(g, func(a, b suppression) int { return compareText(a.file.Path, b.file.Path) })
		p := loc.NewDataLocation(uuid.NewString() + "-deletes.parquet")
		df, err := writePositionDeleteFile(fs, meta, p, g)
		paths = append(paths, p)
		if err != nil {
			return nil, paths, fmt.Errorf("write position deletes: %w", err)
		}
		files = append(files, df)
	}
	return files, paths, nil
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func writePositionDeleteFile(fs *storeio.FS, meta icetable.Metadata, p string, sup []suppression) (_ iceberg.DataFile, err error) {
	out, err := fs.CreateUnsynced(p)
	if err != nil {
		return nil, err
	}
	count := &countingWriter{w: out}
	rows, err := writePositionRows(count, sup)
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	first := sup[0].file
	spec := meta.PartitionSpecByID(first.SpecID)
	if spec == nil {
		return nil, fmt.Errorf("unknown partition spec %d", first.SpecID)
	}
	b, err := iceberg.NewDataFileBuilder(*spec, iceberg.EntryContentPosDeletes, p, iceberg.ParquetFile, first.Data.Partition(),
		nil, nil, rows, count.n)
	if err != nil {
		return nil, err
	}
	last := sup[len(sup)-1].file.Path
	lo, hi := int64(sup[0].positions.Minimum()), int64(sup[0].positions.Maximum())
	for _, s := range sup[1:] {
		lo, hi = min(lo, int64(s.positions.Minimum())), max(hi, int64(s.positions.Maximum()))
	}
	b.ValueCounts(map[int]int64{fieldDeletePath: rows, fieldDeletePos: rows}).
		NullValueCounts(map[int]int64{fieldDeletePath: 0, fieldDeletePos: 0}).
		LowerBoundValues(map[int][]byte{fieldDeletePath: []byte(first.Path), fieldDeletePos: longBound(lo)}).
		UpperBoundValues(map[int][]byte{fieldDeletePath: []byte(last), fieldDeletePos: longBound(hi)})
	if len(sup) == 1 {
		b.ReferencedDataFile(first.Path)
	}
	return b.Build(), nil
}

// longBound is a long as the spec's single-value serialization stores it.
func longBound(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func writePositionRows(out *countingWriter, sup []suppression) (int64, error) {
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy(engineName),
		parquet.WithStats(true), parquet.WithDictionaryDefault(true))
	w, err := pqarrow.NewFileWriter(positionDeleteSchema, out, props, pqarrow.NewArrowWriterProperties(pqarrow.WithNoMapLogicalType()))
	if err != nil {
		return 0, err
	}
	paths, positions := array.NewStringBuilder(memory.DefaultAllocator), array.NewInt64Builder(memory.DefaultAllocator)
	defer paths.Release()
	defer positions.Release()
	var rows int64
	flush := func() error {
		n := int64(paths.Len())
		if n == 0 {
			return nil
		}
		a, b := paths.NewArray(), positions.NewArray()
		defer a.Release()
		defer b.Release()
		rec := array.NewRecordBatch(positionDeleteSchema, []arrow.Array{a, b}, n)
		defer rec.Release()
		rows += n
		return w.WriteBuffered(rec)
	}
	for _, s := range sup {
		for it := s.positions.Iterator(); it.HasNext(); {
			paths.Append(s.file.Path)
			positions.Append(int64(it.Next()))
			if paths.Len() >= 64<<10 {
				if err := flush(); err != nil {
					return 0, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return 0, err
	}
	return rows, w.Close()
}

// unsyncedIO lets dv.DVWriter write through CreateUnsynced.
type unsyncedIO struct{ *storeio.FS }

func (u unsyncedIO) WriteFile(name string, data []byte) error {
	out, err := u.CreateUnsynced(name)
	if err != nil {
		return err
	}
	if _, err := out.Write(data); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Close()
}

// writeDVs writes one puffin file with a deletion vector per suppression (format v3). The positions are all those the
// file has suppressed, old and new.
func writeDVs(ctx context.Context, fs *storeio.FS, meta icetable.Metadata, sup []suppression) (files []iceberg.DataFile, p string, err error) {
	loc, err := icetable.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return nil, "", err
	}
	w := dv.NewDVWriter(unsyncedIO{fs}, func(id int32) *iceberg.PartitionSpec { return meta.PartitionSpecByID(int(id)) })
	for _, s := range sup {
		b := dv.NewRoaringPositionBitmap()
		for it := s.positions.Iterator(); it.HasNext(); {
			b.Set(uint64(it.Next()))
		}
		b.RunLengthEncode()
		w.Load(s.file.Path, b, int32(s.file.SpecID), s.file.Data.Partition())
	}
	p = loc.NewDataLocation(uuid.NewString() + "-deletes.puffin")
	if files, err = w.Flush(ctx, p); err != nil {
		return nil, p, fmt.Errorf("write deletion vectors: %w", err)
	}
	return files, p, nil
}

// writeEqualityDeletes writes the equality delete files of one delete: one global file when the table is unpartitioned.
// On a partitioned table the spec wants one per partition, so it is written under the unpartitioned spec when the table
// has one, and refused otherwise.
func writeEqualityDeletes(fs *storeio.FS, meta icetable.Metadata, eq []eqDelete) (files []iceberg.DataFile, paths []string, err error) {
	loc, err := icetable.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return nil, nil, err
	}
	spec := unpartitionedSpec(meta)
	if spec == nil {
		return nil, nil, fmt.Errorf("%w: equality deletes on a table that has no unpartitioned spec", ErrInvalidTable)
	}
	for _, e := range eq {
		p := loc.NewDataLocation(uuid.NewString() + "-eq-deletes.parquet")
		df, err := writeEqualityFile(fs, meta, *spec, p, e)
		paths = append(paths, p)
		if err != nil {
			return nil, paths, fmt.Errorf("write equality deletes: %w", err)
		}
		files = append(files, df)
	}
	return files, paths, nil
}

func unpartitionedSpec(meta icetable.Metadata) *iceberg.PartitionSpec {
	for _, s := range meta.PartitionSpecs() {
		if s.IsUnpartitioned() {
			return &s
		}
	}
	return nil
}

func writeEqualityFile(fs *storeio.FS, meta icetable.Metadata, spec iceberg.PartitionSpec, p string, e eqDelete) (iceberg.DataFile, error) {
	out, err := fs.CreateUnsynced(p)
	if err != nil {
		return nil, err
	}
	count := &countingWriter{w: out}
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy(engineName), parquet.WithStats(true))
	err = func() error {
		w, err := pqarrow.NewFileWriter(e.rows.Schema(), count, props, pqarrow.DefaultWriterProps())
		if err != nil {
			return err
		}
		if err := w.WriteBuffered(e.rows); err != nil {
			return err
		}
		return w.Close()
	}()
	if err != nil {
		return nil, errors.Join(err, out.Abort())
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentEqDeletes, p, iceberg.ParquetFile, nil, nil, nil, e.rows.NumRows(), count.n)
	if err != nil {
		return nil, err
	}
	return b.EqualityFieldIDs(e.fieldIDs).Build(), nil
}
