package parquetio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

const defaultMemory = 128 << 20

// WriterOptions says what a Writer writes.
type WriterOptions struct {
	FS     *storeio.FS
	Schema *iceberg.Schema
	Spec   iceberg.PartitionSpec
	// Partition is partition field id → value of the one partition written.
	Partition map[int]any
	// SortIDs are the field ids rows are sorted by (the identifier fields); nil keeps the order of Write.
	SortIDs []int
	// Order is the order of the rows in place of SortIDs'.
	Order []OrderField
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
	// MemoryBudget bounds the bytes of rows buffered for sorting before they are spilled (default 128 MiB).
	MemoryBudget int64
	// TempDir is where sorted runs are spilled (default the system's).
	TempDir string
	// FileName names the n-th file of the writer, without folder; default a time-ordered uuid and n.
	FileName func(n int) string
	// SortOrderID is the table's sort order id written to the manifest entry, 0 = unsorted.
	SortOrderID int
	// NoKeyIndex leaves the sidecar key index out (temporary files).
	NoKeyIndex bool
	// Placed, when set, makes the last column of Write's batches (a long, in no file) the origin of each row, and is told where rows went: to the n-th
	// file of the writer, at positions from first on. Calls for one file come in order.
	Placed func(n int, first int64, origins []int64)
	// Unique makes Close fail with *DuplicateKeyError when two rows have one key; needs SortIDs.
	Unique bool
}

// WrittenFile is one finished file. KeyIndexPath is empty when there is no sidecar. Both paths are locations as the writer's folder spells them.
type WrittenFile struct {
	DataFile     iceberg.DataFile
	Path         string
	KeyIndexPath string
}

// Writer writes the rows of one partition as one or more data files. Write is safe for concurrent use; Close and Abort are not
// concurrent with anything. It ends by Close or by Abort; both may be called, in any order.
type Writer struct {
	o          WriterOptions
	dir        string
	schema     *arrow.Schema // of Write
	fileSchema *arrow.Schema
	sortCols   []int
	order      []orderColumn
	keyColumns []keyindex.Column

	mu     sync.Mutex
	closed bool
	err    error
	buf    []arrow.RecordBatch
	bytes  int64
	rows   int64
	runs   []*storeio.TempFile
	out    *output
	done   []WrittenFile
	last   []byte // last key of the file finished before, for Unique across files
}

// NewWriter begins writing into folder dir (a location as metadata spells it, or a path). It creates no file before there are rows.
func NewWriter(_ context.Context, dir string, o WriterOptions) (*Writer, error) {
	w := &Writer{o: o, dir: dir}
	if w.o.PageSize <= 0 {
		w.o.PageSize = defaultPageSize
	}
	if w.o.RowGroupRows <= 0 {
		w.o.RowGroupRows = defaultRowGroupRows
	}
	if w.o.TargetFileSize <= 0 {
		w.o.TargetFileSize = defaultTargetSize
	}
	if w.o.MemoryBudget <= 0 {
		w.o.MemoryBudget = defaultMemory
	}
	if w.o.FileName == nil {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("name data file: %w", err)
		}
		w.o.FileName = func(n int) string { return fmt.Sprintf("%s-%05d.parquet", id, n) }
	}
	var err error
	if w.schema, err = ArrowSchema(o.Schema, o.RowIDs); err != nil {
		return nil, err
	}
	w.fileSchema = w.schema
	if o.Placed != nil {
		w.schema = arrow.NewSchema(append(w.schema.Fields(), arrow.Field{Name: OriginColumn, Type: arrow.PrimitiveTypes.Int64}), nil)
	}
	if w.keyColumns, err = keyindex.ColumnsOf(o.Schema, o.SortIDs); err != nil {
		return nil, err
	}
	for _, id := range o.SortIDs {
		col := -1
		for i, f := range o.Schema.Fields() {
			if f.ID == id {
				col = i
			}
		}
		if col < 0 {
			return nil, fmt.Errorf("%w: identifier field %d is nested", keyindex.ErrUnsupportedType, id)
		}
		w.sortCols = append(w.sortCols, col)
	}
	if w.order, err = orderColumns(o.Schema, o.Order); err != nil {
		return nil, err
	}
	if len(w.order) > 0 && w.o.Unique {
		return nil, fmt.Errorf("unique keys in a sort order of their own: %w", errors.ErrUnsupported)
	}
	return w, nil
}

// Schema is what Write takes.
func (w *Writer) Schema() *arrow.Schema { return w.schema }

// sorts says whether rows are put in order.
func (w *Writer) sorts() bool { return len(w.sortCols) > 0 || len(w.order) > 0 }

// Rows is the number of rows written so far.
func (w *Writer) Rows() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rows
}

// Write takes a batch whose columns are those of Schema, in order. The batch is retained as long as it is buffered. After an error
// the writer is unusable but for Abort.
func (w *Writer) Write(rec arrow.RecordBatch) error {
	if rec.NumRows() == 0 {
		return nil
	}
	rec, err := conform(rec, w.schema)
	if err != nil {
		return err
	}
	defer rec.Release()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return ErrClosed
	case w.err != nil:
		return w.err
	}
	w.rows += rec.NumRows()
	if !w.sorts() {
		w.err = w.emitLocked(rec, 0)
		return w.err
	}
	rec.Retain()
	w.buf = append(w.buf, rec)
	w.bytes += batchBytes(rec)
	if w.bytes >= w.o.MemoryBudget {
		w.err = w.spillLocked()
	}
	return w.err
}

// emitLocked writes a batch in file order, opening and rotating files. left is how many rows are known to follow, this batch included; 0 = unknown.
func (w *Writer) emitLocked(rec arrow.RecordBatch, left int64) error {
	if w.out != nil && w.out.size() >= w.o.TargetFileSize {
		if err := w.finishLocked(); err != nil {
			return err
		}
	}
	if w.out == nil {
		out, err := w.newOutput(len(w.done), left)
		if err != nil {
			return err
		}
		out.last = append(out.last, w.last...)
		w.out = out
	}
	if w.o.Placed == nil {
		return w.out.write(rec)
	}
	last := int(rec.NumCols()) - 1
	origins, ok := rec.Column(last).(*array.Int64)
	if !ok {
		return fmt.Errorf("origin column is %s", rec.Column(last).DataType())
	}
	w.o.Placed(len(w.done), w.out.rows, origins.Int64Values())
	narrow := array.NewRecordBatch(w.fileSchema, rec.Columns()[:last], rec.NumRows())
	defer narrow.Release()
	return w.out.write(narrow)
}

// OriginColumn is the column that WriterOptions.Placed asks for.
const OriginColumn = "_origin"

func (w *Writer) finishLocked() error {
	if w.out == nil {
		return nil
	}
	out := w.out
	w.out = nil
	f, err := out.finish()
	if err != nil {
		out.abort()
		return err
	}
	w.done = append(w.done, f)
	w.last = out.last
	return nil
}

// Close sorts, writes and closes the files. They are complete, not yet durable: add their paths to a storeio.Batch. No rows: no files.
// After an error the files written so far are removed.
func (w *Writer) Close(ctx context.Context) (files []WrittenFile, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	defer func() {
		w.closed = true
		if err != nil {
			w.abortLocked()
		}
		w.dropLocked()
	}()
	if w.err != nil {
		return nil, w.err
	}
	if w.sorts() {
		if err := w.sortedLocked(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.finishLocked(); err != nil {
		return nil, err
	}
	return w.done, nil
}

// Abort removes whatever was written. It may be called at any time and more than once, after Close too.
func (w *Writer) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.abortLocked()
	w.dropLocked()
}

func (w *Writer) abortLocked() {
	if w.out != nil {
		w.out.abort()
		w.out = nil
	}
	for _, f := range w.done {
		_ = w.o.FS.Remove(storeio.PathOf(f.Path))
		if f.KeyIndexPath != "" {
			_ = w.o.FS.Remove(storeio.PathOf(f.KeyIndexPath))
		}
	}
	w.done = nil
}

// dropLocked releases buffered rows and spilled runs.
func (w *Writer) dropLocked() {
	for _, r := range w.buf {
		r.Release()
	}
	w.buf, w.bytes = nil, 0
	for _, f := range w.runs {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	w.runs = nil
}
