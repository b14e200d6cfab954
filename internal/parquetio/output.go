package parquetio

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

const (
	defaultPageSize     = 16 << 10
	defaultRowGroupRows = 1 << 20
	defaultTargetSize   = 512 << 20
	rowGroupBytes       = 256 << 20
	// A file known to have fewer rows than this has no bloom filters and no dictionaries, one with fewer than tinyRows no compression:
	// they would cost its writer and its readers more than they save.
	smallRows       = 1024
	tinyRows        = 64
	dictionaryLimit = 64 << 10
	bloomFPP        = 0.01
)

// KeyIndexMinRows is how many rows a file has whose key index is stored.
const KeyIndexMinRows = 8192

// KeyIndexSuffix is appended to a data file's path to name its key index.
const KeyIndexSuffix = storeio.KeyIndexSuffix

// output is one data file being written.
type output struct {
	o       *WriterOptions
	schema  *arrow.Schema // of the file
	path    string
	file    storeio.Pending
	counted *countingFile
	pq      sink
	rows    int64
	stats   []columnStats
	index   *keyindex.Builder
	// indexFile is the key index once it is written.
	indexFile storeio.Pending
	keyCols   []int
	last      []byte // last key, for uniqueness and order
	key       []byte
}

// countingFile counts the bytes that reach the file and keeps it open: pqarrow would close it before it is checked.
type countingFile struct {
	storeio.Pending
	n    int64
	tail []byte // of what was written, sourceTail bytes and more
}

func (c *countingFile) Write(p []byte) (int, error) {
	n, err := c.Pending.Write(p)
	c.n += int64(n)
	if c.tail = append(c.tail, p[max(0, n-sourceTail):n]...); len(c.tail) > 4*sourceTail {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-sourceTail:]...)
	}
	return n, err
}

func (c *countingFile) Close() error { return nil }

// newOutput opens the n-th file. rows is how many rows are still to come, for the size of bloom filters; 0 = unknown.
func (w *Writer) newOutput(n int, rows int64) (*output, error) {
	path := strings.TrimSuffix(w.dir, "/") + "/" + w.o.FileName(n)
	f, err := w.o.FS.CreateUnsynced(storeio.PathOf(path))
	if err != nil {
		return nil, fmt.Errorf("create data file: %w", err)
	}
	out := &output{o: &w.o, schema: w.fileSchema, path: path, file: f, counted: &countingFile{Pending: f}, stats: newStats(w.o.Schema), keyCols: w.sortCols}
	out.pq, err = newSink(w.fileSchema, out.counted, w.properties(rows))
	if err != nil {
		_ = f.Abort()
		return nil, fmt.Errorf("begin data file: %w", err)
	}
	if len(w.sortCols) > 0 && !w.o.NoKeyIndex {
		out.index = keyindex.NewBuilder(w.keyColumns)
	}
	return out, nil
}

func (w *Writer) properties(rows int64) *parquet.WriterProperties {
	props := []parquet.WriterProperty{
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithDataPageSize(int64(w.o.PageSize)),
		parquet.WithDictionaryPageSizeLimit(dictionaryLimit),
		parquet.WithBatchSize(512),
		parquet.WithMaxRowGroupLength(int64(w.o.RowGroupRows)),
		parquet.WithPageIndexEnabled(true),
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithCreatedBy("skade-pg"),
		parquet.WithVersion(parquet.V2_LATEST),
	}
	if rows > 0 && rows < smallRows {
		props = append(props, parquet.WithDictionaryDefault(false))
		if rows < tinyRows {
			props = append(props, parquet.WithCompression(compress.Codecs.Uncompressed))
		}
		return parquet.NewWriterProperties(props...)
	}
	ndv := min(rows, int64(w.o.RowGroupRows))
	for _, id := range w.o.BloomIDs {
		name, ok := w.o.Schema.FindColumnName(id)
		if !ok {
			continue
		}
		props = append(props, parquet.WithBloomFilterEnabledFor(name, true), parquet.WithBloomFilterFPPFor(name, bloomFPP))
		if ndv > 0 {
			props = append(props, parquet.WithBloomFilterNDVFor(name, ndv))
		}
		// One column of several may repeat: the writer then keeps the smallest filter that its real NDV needs.
		props = append(props, parquet.WithAdaptiveBloomFilterEnabledFor(name, len(w.o.SortIDs) != 1 || ndv == 0))
	}
	if len(w.o.SortIDs) == 1 {
		if name, ok := w.o.Schema.FindColumnName(w.o.SortIDs[0]); ok {
			props = append(props, parquet.WithDictionaryFor(name, false))
		}
	}
	return parquet.NewWriterProperties(props...)
}

// write appends a batch that has the file's schema and, when keyed, is in key order.
func (f *output) write(rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	if err := f.writeKeys(rec); err != nil {
		return err
	}
	for i := range f.stats {
		f.stats[i].observe(rec.Column(i))
	}
	if f.pq.RowGroupTotalBytesWritten() > rowGroupBytes {
		if err := f.pq.NewBufferedRowGroupChecked(); err != nil {
			return fmt.Errorf("begin row group: %w", err)
		}
	}
	if err := f.pq.WriteBuffered(rec); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	f.rows += rec.NumRows()
	return nil
}

func (f *output) writeKeys(rec arrow.RecordBatch) error {
	if f.index == nil && !f.o.Unique || len(f.keyCols) == 0 {
		return nil
	}
	enc, err := keyindex.NewEncoder(rec, f.keyCols)
	if err != nil {
		return err
	}
	for row := range int(rec.NumRows()) {
		if f.key, err = enc.Append(f.key[:0], row); err != nil {
			return err
		}
		if f.o.Unique && len(f.last) > 0 && bytes.Equal(f.key, f.last) {
			one := rec.NewSlice(int64(row), int64(row)+1)
			return &DuplicateKeyError{Key: bytes.Clone(f.key), Row: one}
		}
		if f.index != nil {
			if err := f.index.Add(f.key, uint32(f.rows)+uint32(row)); err != nil {
				return err
			}
		}
		f.key, f.last = f.last, f.key
	}
	return nil
}

// size is the number of bytes the file has so far, the open row group included.
func (f *output) size() int64 { return f.counted.n + f.pq.RowGroupTotalCompressedBytes() }

// abort closes and removes what was written, before finish or after it failed: a full disk gets its room back.
func (f *output) abort() {
	_ = f.file.Abort()
	if f.indexFile != nil {
		_ = f.indexFile.Abort()
	}
}

// finish completes the file and its key index.
func (f *output) finish() (WrittenFile, error) {
	if err := f.pq.Close(); err != nil {
		return WrittenFile{}, fmt.Errorf("finish data file: %w", err)
	}
	meta, err := f.pq.FileMetadata()
	if err != nil {
		return WrittenFile{}, fmt.Errorf("finish data file: %w", err)
	}
	if err := f.file.Close(); err != nil {
		return WrittenFile{}, fmt.Errorf("close data file: %w", err)
	}
	out := WrittenFile{Path: f.path}
	if f.index != nil && f.rows >= KeyIndexMinRows {
		data, err := f.index.Finish(sourceOf(f.path, f.counted.n, f.counted.tail))
		if err != nil {
			return out, err
		}
		// It is a cache: a disk that has no room for it has room for the data.
		if f.writeIndex(data) == nil {
			out.KeyIndexPath = f.path + KeyIndexSuffix
		}
	}
	out.DataFile, err = f.describe(meta)
	return out, err
}

// writeIndex writes the key index, or leaves nothing.
func (f *output) writeIndex(data []byte) error {
	p, err := f.o.FS.CreateUnsynced(storeio.PathOf(f.path + KeyIndexSuffix))
	if err != nil {
		return fmt.Errorf("create key index: %w", err)
	}
	if _, err := p.Write(data); err != nil {
		return errors.Join(fmt.Errorf("write key index: %w", err), p.Abort())
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("close key index: %w", err)
	}
	f.indexFile = p
	return nil
}

// describe is the manifest entry's data file.
func (f *output) describe(meta *metadata.FileMetaData) (iceberg.DataFile, error) {
	b, err := iceberg.NewDataFileBuilder(f.o.Spec, iceberg.EntryContentData, f.path, iceberg.ParquetFile,
		f.o.Partition, partitionLogicalTypes(f.o.Schema, f.o.Spec), nil, f.rows, f.counted.n)
	if err != nil {
		return nil, fmt.Errorf("describe data file: %w", err)
	}
	values, nulls, nans := map[int]int64{}, map[int]int64{}, map[int]int64{}
	lower, upper := map[int][]byte{}, map[int][]byte{}
	for i := range f.stats {
		s := &f.stats[i]
		if _, nested := s.typ.(iceberg.NestedType); nested {
			continue
		}
		values[s.id], nulls[s.id] = s.values, s.nulls
		switch s.typ.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			nans[s.id] = s.nans
		}
		if lo, hi := s.bounds(); lo != nil {
			lower[s.id], upper[s.id] = lo, hi
		}
	}
	sizes, splits := map[int]int64{}, []int64(nil)
	for g := range meta.NumRowGroups() {
		rg := meta.RowGroup(g)
		for c := range rg.NumColumns() {
			cc, err := rg.ColumnChunk(c)
			if err != nil {
				return nil, fmt.Errorf("describe data file: %w", err)
			}
			if c == 0 {
				at := cc.DataPageOffset()
				if cc.HasDictionaryPage() {
					at = min(at, cc.DictionaryPageOffset())
				}
				splits = append(splits, at)
			}
			sizes[int(meta.Schema.Column(c).SchemaNode().FieldID())] += cc.TotalCompressedSize()
		}
	}
	b.ColumnSizes(sizes).ValueCounts(values).NullValueCounts(nulls).NaNValueCounts(nans).
		LowerBoundValues(lower).UpperBoundValues(upper).SplitOffsets(splits)
	if f.o.SortOrderID != 0 {
		b.SortOrderID(f.o.SortOrderID)
	}
	return b.Build(), nil
}

// partitionLogicalTypes tells iceberg-go how to write partition values whose Avro type needs a logical type.
func partitionLogicalTypes(sc *iceberg.Schema, spec iceberg.PartitionSpec) map[int]string {
	out := map[int]string{}
	for _, f := range spec.Fields() {
		src, ok := sc.FindFieldByID(f.SourceID())
		if !ok {
			continue
		}
		switch f.Transform.ResultType(src.Type).(type) {
		case iceberg.DateType:
			out[f.FieldID] = "date"
		case iceberg.TimeType:
			out[f.FieldID] = "time-micros"
		case iceberg.TimestampType, iceberg.TimestampTzType:
			out[f.FieldID] = "timestamp-micros"
		case iceberg.DecimalType:
			out[f.FieldID] = "decimal"
		case iceberg.UUIDType:
			out[f.FieldID] = "uuid"
		}
	}
	return out
}
