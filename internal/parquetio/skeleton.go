package parquetio

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// WriterOptions says what a Writer writes.
type WriterOptions struct {
	FS        *storeio.FS
	Schema    *iceberg.Schema
	Spec      iceberg.PartitionSpec
	Partition map[int]any // partition field id → value, of the one partition written
	// SortIDs are the field ids rows are sorted by (the identifier fields); nil keeps the order of Write.
	SortIDs []int
	// PageSize is the data page size in bytes (default 16 KiB).
	PageSize int
	// RowGroupRows is the number of rows of a row group (default 1<<20).
	RowGroupRows int
	// BloomIDs are the field ids that get a bloom filter.
	BloomIDs []int
	// TargetFileSize is the size in bytes after which a new file is begun (default 512 MiB).
	TargetFileSize int64
	// RowIDs adds the v3 columns _row_id and _last_updated_sequence_number (both long, nullable) after the schema's columns.
	RowIDs bool
	// MemoryBudget bounds the bytes of buffered rows before they are sorted and spilled (default 128 MiB).
	MemoryBudget int64
	// TempDir is where sorted runs are spilled (default the system's).
	TempDir string
	// FileName names the n-th file of the writer, without folder; default a time-ordered uuid.
	FileName func(n int) string
	// SortOrderID is the table's sort order id written to the manifest entry, 0 = unsorted.
	SortOrderID int
	// NoKeyIndex leaves the sidecar key index out (temporary files).
	NoKeyIndex bool
}

// WrittenFile is one finished file. KeyIndexPath is empty when there is no sidecar.
type WrittenFile struct {
	DataFile     iceberg.DataFile
	Path         string
	KeyIndexPath string
}

// Writer writes the rows of one partition as one or more data files. Write is safe for concurrent use.
type Writer struct{ _ int }

// NewWriter begins writing into folder dir (a location as metadata spells it, e.g. file:///… or a path).
func NewWriter(ctx context.Context, dir string, o WriterOptions) (*Writer, error) {
	return nil, ErrClosed
}

// Write takes a batch whose columns are those of ArrowSchema(o.Schema, o.RowIDs), in order.
func (w *Writer) Write(rec arrow.RecordBatch) error { return ErrClosed }

// Close sorts, writes and closes the files. They are complete, not yet durable. No rows: no files.
func (w *Writer) Close(ctx context.Context) ([]WrittenFile, error) { return nil, ErrClosed }

// Abort removes whatever was written. It is safe after Close.
func (w *Writer) Abort() {}

// ArrowSchema is the Arrow schema rows of sc are exchanged in: field ids in the metadata, rowIDs adds the two v3 columns.
func ArrowSchema(sc *iceberg.Schema, rowIDs bool) (*arrow.Schema, error) { return nil, ErrClosed }

// Counters count what reading did.
type Counters struct{ Pages, Bytes, Reads, Rows atomic.Int64 }

// WithCounters returns a context whose reads are also counted in c.
func WithCounters(ctx context.Context, c *Counters) context.Context { return ctx }

// Reader is an opened Parquet file: its footer and page indexes. Safe for concurrent use.
type Reader struct{ _ int }

// Open reads the footer of the file at path (a location or a path). size ≤ 0 asks the file system.
func Open(ctx context.Context, fs *storeio.FS, path string, size int64) (*Reader, error) {
	return nil, ErrMissingFile
}

// Close releases the file.
func (r *Reader) Close() error { return nil }

// Path is the path the file was opened by.
func (r *Reader) Path() string { return "" }

// Rows is the number of rows.
func (r *Reader) Rows() int64 { return 0 }

// FieldIDs are the field ids of the file's top-level columns; nil when the file has none.
func (r *Reader) FieldIDs() []int { return nil }

// ReadOptions says what Scan reads.
type ReadOptions struct {
	Schema      *iceberg.Schema     // projected; by field id
	NameMapping iceberg.NameMapping // for files without field ids
	Positions   *roaring.Bitmap     // nil = all: only these rows
	Suppressed  *roaring.Bitmap     // nil = none: never these rows
	PosColumn   bool                // appends column _pos (long)
	BatchRows   int                 // default 64Ki
}

// Scan yields the rows in position order. The consumer releases each batch.
func (r *Reader) Scan(ctx context.Context, o ReadOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {}
}

// RowsAt reads the rows at positions (ascending, may repeat) and touches only their pages.
func (r *Reader) RowsAt(ctx context.Context, sc *iceberg.Schema, nm iceberg.NameMapping, positions []uint32) (arrow.RecordBatch, error) {
	return nil, ErrMissingFile
}
