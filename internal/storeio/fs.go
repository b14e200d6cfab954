package storeio

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync/atomic"

	icebergio "github.com/apache/iceberg-go/io"
)

// Options configure an FS.
type Options struct {
	Roots []string
	Hooks *Hooks
	// HandleCache is the number of read handles kept open (default 256).
	HandleCache int
}

// Hooks inject faults.
type Hooks struct{}

// FS is the local file system of a warehouse.
type FS struct{ counters Counters }

// Counters count what an FS did.
type Counters struct {
	Opens, Reads, Bytes, Fsyncs, Creates atomic.Int64
}

var errSkeleton = errors.New("storeio: skeleton")

// NewFS returns an FS.
func NewFS(o Options) *FS { return &FS{} }

// Counters returns the live counters.
func (f *FS) Counters() *Counters { return &f.counters }

func (f *FS) Open(name string) (icebergio.File, error)         { return nil, errSkeleton }
func (f *FS) Create(name string) (icebergio.FileWriter, error) { return nil, errSkeleton }
func (f *FS) WriteFile(name string, data []byte) error         { return errSkeleton }
func (f *FS) ReadFile(name string) ([]byte, error)             { return nil, errSkeleton }
func (f *FS) Remove(name string) error                         { return errSkeleton }
func (f *FS) RemoveAll(name string) error                      { return errSkeleton }
func (f *FS) MkdirAll(name string) error                       { return errSkeleton }
func (f *FS) Stat(name string) (fs.FileInfo, error)            { return nil, errSkeleton }
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error)       { return nil, errSkeleton }

// Pending is a file that is written but not durable until a Batch that holds its path is synced.
type Pending interface {
	icebergio.FileWriter
	// Name is the path the file has after Close.
	Name() string
	// Abort removes the unfinished file.
	Abort() error
}

// CreateUnsynced creates a file whose Close renames without a sync.
func (f *FS) CreateUnsynced(name string) (Pending, error) { return nil, errSkeleton }

// Batch collects written files to make them durable together.
type Batch struct{}

// NewBatch returns an empty batch.
func (f *FS) NewBatch() *Batch { return &Batch{} }

// Add names a closed file. Safe for concurrent use.
func (b *Batch) Add(path string) {}

// Sync makes all added files and their directories durable.
func (b *Batch) Sync(ctx context.Context) error { return errSkeleton }

// PathOf returns the local path of a location.
func PathOf(location string) string { return location }

// RangeFile reads ranges of one immutable file through a shared handle.
type RangeFile interface {
	io.ReaderAt
	io.Closer
	Size() int64
	Path() string
}

// OpenRange opens an immutable file for range reads.
func (f *FS) OpenRange(path string) (RangeFile, error) { return nil, errSkeleton }
