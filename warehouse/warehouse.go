package warehouse

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// Options opens a Warehouse. Catalog, Live and FS are required.
type Options struct {
	Catalog *catalog.Catalog
	Live    *liveset.Cache
	FS      *storeio.FS
	// TempDir is where external sorts spill. Empty is the operating system's.
	TempDir string
	// MemoryLimit bounds the bytes of rows one transaction's table keeps in memory before it writes them to a data
	// file. 0 is 64 MiB.
	MemoryLimit int64
	Logger      zerolog.Logger
}

// Warehouse writes tables. Safe for concurrent use.
type Warehouse struct {
	opts Options
}

// New returns a Warehouse on an open catalog. It starts no goroutine.
func New(opts Options) *Warehouse { return &Warehouse{opts: opts} }

// Close releases the caches. Transactions still open get ErrClosed at Commit.
func (w *Warehouse) Close() error { return nil }

// Begin opens a transaction on opts.Cut (nil: the catalog's current cut).
func (w *Warehouse) Begin(ctx context.Context, opts TxOptions) *Tx { return &Tx{} }

// Append commits every batch of r into ident as one transaction.
func (w *Warehouse) Append(ctx context.Context, ident table.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return nil, nil
}

// Upsert commits every batch of r into ident as one transaction, replacing the rows whose keys exist.
func (w *Warehouse) Upsert(ctx context.Context, ident table.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return nil, nil
}

// DeleteKeys commits the deletion of the rows whose identifier values are in r (columns: the identifier fields).
func (w *Warehouse) DeleteKeys(ctx context.Context, ident table.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return nil, nil
}

// CompactOptions tunes Compact.
type CompactOptions struct {
	// SmallFileBytes: files below it are rewritten together. 0 is 32 MiB.
	SmallFileBytes int64
	// MinInputFiles: fewer small files than this are left alone unless they have suppressed rows. 0 is 8.
	MinInputFiles int
	// SuppressedRatio: a file with more than this share of its rows suppressed is rewritten. 0 is 0.2.
	SuppressedRatio float64
}

// CompactResult says what Compact did.
type CompactResult struct {
	FilesRemoved, FilesAdded int
	Rows                     int64
	Record                   *catalog.Record // nil when there was nothing to do
}

// Compact rewrites small files and files with many suppressed rows into sorted ones, as one replace snapshot that
// changes no row (L5). Rows keep their _row_id on v3. ErrConflict when a concurrent commit touched the same files.
func (w *Warehouse) Compact(ctx context.Context, ident table.Identifier, opts CompactOptions) (CompactResult, error) {
	return CompactResult{}, nil
}

// Retain says which snapshots ExpireSnapshots keeps: the newest Min of main's ancestry, all younger than MaxAge, every
// snapshot a ref names, and every snapshot for which Pinned returns true.
type Retain struct {
	Min    int
	MaxAge time.Duration
	Pinned func(snapshotID int64) bool
}

// ExpireResult says what ExpireSnapshots removed.
type ExpireResult struct {
	Snapshots    int
	FilesRemoved int
	BytesRemoved int64
}

// ExpireSnapshots removes old snapshots from the metadata, then the files only they referenced.
func (w *Warehouse) ExpireSnapshots(ctx context.Context, ident table.Identifier, keep Retain) (ExpireResult, error) {
	return ExpireResult{}, nil
}
