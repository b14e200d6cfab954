package parquetio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// scanBuffer is how many bytes a column's stream reads at once in a scan.
const scanBuffer = 512 << 10

// Reader is an opened Parquet file: its footer and what was read of its page indexes and dictionaries. Safe for concurrent
// use; it holds no descriptor of its own.
type Reader struct {
	path   string
	file   storeio.RangeFile
	meta   *metadata.FileMetaData
	fields []fileField
	starts []int64 // first position of each row group, and the number of rows
	lazy   int64   // bytes that page tables and dictionaries take once they are read
	hasIDs bool
	bound  keyindex.Source
	pages  *PageCache // nil: pages are not kept
	id     uint64     // of this reader in pages

	mu        sync.Mutex // guards what is filled in lazily below
	constants map[int]any
	plans     []*plan
	groups    []groupCache
}

// fileField is a top-level column of the file.
type fileField struct {
	id    int // -1 = none
	name  string
	first int // leaves [first, last)
	last  int
	flat  *schema.Column // nil when nested
}

// groupCache is what has been read of a row group, per leaf.
type groupCache struct {
	pages [][]pageAt
	dicts []*dictionary
}

// Open reads the footer of the file at path (a location or a path). size ≤ 0 asks the file system; another size than the file has is
// damage. Errors: ErrMissingFile, *DamagedError.
func Open(ctx context.Context, fsys *storeio.FS, path string, size int64) (r *Reader, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := fsys.OpenRange(storeio.PathOf(path))
	if err != nil {
		return nil, openError(path, err)
	}
	if size > 0 && f.Size() != size {
		return nil, &DamagedError{Path: path, Offset: -1, Err: fmt.Errorf("file has %d bytes, metadata says %d", f.Size(), size)}
	}
	r = &Reader{path: path, file: f}
	defer r.guard(&err)
	src := r.source(ctx)
	if r.bound, err = src.readTail(); err != nil {
		return nil, r.damaged(err)
	}
	pq, err := file.NewParquetReader(src, file.WithReadProps(scanProperties()))
	if err != nil {
		return nil, r.damaged(err)
	}
	r.meta = pq.MetaData()
	if err := r.describe(); err != nil {
		return nil, r.damaged(err)
	}
	return r, nil
}

func openError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrMissingFile, path)
	}
	if errors.Is(err, storeio.ErrNotRegular) {
		return &DamagedError{Path: path, Offset: -1, Err: err}
	}
	return fmt.Errorf("open %s: %w", path, err)
}

func scanProperties() *parquet.ReaderProperties {
	p := parquet.NewReaderProperties(memory.DefaultAllocator)
	p.BufferedStreamEnabled = true
	p.BufferSize = scanBuffer
	return p
}

// describe takes the columns and row groups from the footer and checks what later code relies on.
func (r *Reader) describe() error {
	root := r.meta.Schema.Root()
	leaf := 0
	for i := range root.NumFields() {
		n := root.Field(i)
		f := fileField{id: int(n.FieldID()), name: n.Name(), first: leaf}
		leaf += countLeaves(n)
		f.last = leaf
		if f.id >= 0 {
			r.hasIDs = true
		}
		if _, ok := n.(*schema.PrimitiveNode); ok && f.last == f.first+1 {
			if c := r.meta.Schema.Column(f.first); c.MaxRepetitionLevel() == 0 && c.MaxDefinitionLevel() <= 1 {
				f.flat = c
			}
		}
		r.fields = append(r.fields, f)
	}
	at := int64(0)
	for g := range r.meta.NumRowGroups() {
		rg := r.meta.RowGroup(g)
		if rg.NumColumns() != leaf {
			return fmt.Errorf("row group %d has %d columns, schema %d", g, rg.NumColumns(), leaf)
		}
		if rg.NumRows() < 0 {
			return fmt.Errorf("row group %d has %d rows", g, rg.NumRows())
		}
		r.starts = append(r.starts, at)
		at += rg.NumRows()
		for c := range leaf {
			if cc, err := rg.ColumnChunk(c); err == nil {
				if loc := cc.GetOffsetIndexLocation(); loc != nil {
					r.lazy += 2 * int64(max(loc.Length, 0))
				}
				if d := cc.DictionaryPageOffset(); cc.HasDictionaryPage() && d > 0 {
					r.lazy += 2 * max(cc.DataPageOffset()-d, 0)
				}
			}
		}
	}
	r.starts = append(r.starts, at)
	if at != r.meta.NumRows {
		return fmt.Errorf("row groups have %d rows, footer says %d", at, r.meta.NumRows)
	}
	r.groups = make([]groupCache, r.meta.NumRowGroups())
	for g := range r.groups {
		r.groups[g] = groupCache{pages: make([][]pageAt, leaf), dicts: make([]*dictionary, leaf)}
	}
	return nil
}

func countLeaves(n schema.Node) int {
	g, ok := n.(*schema.GroupNode)
	if !ok {
		return 1
	}
	sum := 0
	for i := range g.NumFields() {
		sum += countLeaves(g.Field(i))
	}
	return sum
}

// guard turns a panic of the decoder into a *DamagedError (P3): arrow-go panics on some malformed input.
func (r *Reader) guard(err *error) {
	if p := recover(); p != nil {
		*err = &DamagedError{Path: r.path, Offset: -1, Err: fmt.Errorf("decoder panic: %v\n%s", p, debug.Stack())}
	}
}

// damaged wraps a decoding error. Errors that do not speak of the file's bytes pass.
func (r *Reader) damaged(err error) error {
	if err == nil {
		return nil
	}
	var d *DamagedError
	var t *TypeError
	if errors.As(err, &d) || errors.As(err, &t) || errors.Is(err, ErrMissingFile) || errors.Is(err, ErrNoFieldIDs) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return openError(r.path, err)
	}
	return &DamagedError{Path: r.path, Offset: -1, Err: err}
}

// Close gives the file up. Reads under way, and reads after it, still work; it exists so that callers can say when they are done.
func (r *Reader) Close() error { return r.file.Close() }

// Path is the path the file was opened by.
func (r *Reader) Path() string { return r.path }

// Rows is the number of rows.
func (r *Reader) Rows() int64 { return r.meta.NumRows }

// Size is the file's size in bytes.
func (r *Reader) Size() int64 { return r.file.Size() }

// MemorySize is about how many bytes of memory the reader holds when all it reads lazily has been read.
func (r *Reader) MemorySize() int64 {
	return int64(r.meta.Size())*4 + r.lazy + int64(len(r.groups)*len(r.fields))*96 + 512
}

// FieldIDs are the field ids of the file's top-level columns in file order, -1 for one without; nil when no column has any.
func (r *Reader) FieldIDs() []int {
	if !r.hasIDs {
		return nil
	}
	ids := make([]int, len(r.fields))
	for i, f := range r.fields {
		ids[i] = f.id
	}
	return ids
}

// SetConstants gives fields that the file may lack a value of all its rows: those that its partition knows (spec, "Column Projection", first
// rule). It is a function of the file: every call gives the same, the first before any reading.
func (r *Reader) SetConstants(values map[int]any) {
	r.mu.Lock()
	r.constants = values
	r.mu.Unlock()
}

// TakesConstants says whether the file lacks one of the fields of SetConstants, by the ids it carries.
func (r *Reader) TakesConstants() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.constants {
		if r.fieldByID(id, nil) == nil {
			return true
		}
	}
	return false
}

// source is the file as arrow-go wants it: reads are counted in ctx's counters and end when ctx does.
func (r *Reader) source(ctx context.Context) *source {
	c := countersOf(ctx)
	return &source{ctx: ctx, f: r.file.Counted(&c.Opens), c: c}
}

type source struct {
	ctx context.Context
	f   storeio.RangeFile
	c   *Counters
	at  int64

	// windows are parts of the file that were read ahead.
	windows []storeio.Range
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	for _, w := range s.windows {
		if from := off - w.Off; from >= 0 && from+int64(len(p)) <= int64(len(w.Buf)) {
			return copy(p, w.Buf[from:]), nil
		}
	}
	n, err := s.f.ReadAt(p, off)
	s.c.Reads.Add(1)
	s.c.Bytes.Add(int64(n))
	return n, err
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadAt(p, s.at)
	s.at += int64(n)
	return n, err
}

func (s *source) Seek(off int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		off += s.at
	case io.SeekEnd:
		off += s.f.Size()
	}
	if off < 0 {
		return 0, fmt.Errorf("seek before the start of %s", s.f.Path())
	}
	s.at = off
	return off, nil
}
