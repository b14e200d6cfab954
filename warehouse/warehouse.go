package warehouse

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
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
	// MemoryLimit bounds the bytes of rows one table of a transaction keeps in memory before they go to a data file.
	// While that file is written as much again may arrive. 0 is 64 MiB.
	MemoryLimit int64
	Logger      zerolog.Logger
}

const defaultMemoryLimit = 64 << 20

// Warehouse writes tables. Safe for concurrent use.
type Warehouse struct {
	opts   Options
	closed atomic.Bool
	lists  cache[[]iceberg.ManifestFile] // decoded manifest lists by path
	metas  cache[tableMeta]              // by metadata file
	moves  moveLog
}

// New returns a Warehouse on an open catalog. It starts no goroutine.
func New(opts Options) *Warehouse {
	if opts.MemoryLimit <= 0 {
		opts.MemoryLimit = defaultMemoryLimit
	}
	return &Warehouse{opts: opts}
}

// Close makes open transactions fail with ErrClosed. The catalog, the cache and the files stay open.
func (w *Warehouse) Close() error {
	w.closed.Store(true)
	return nil
}

// cache keeps what was derived from immutable files, by path.
type cache[V any] struct {
	mu sync.RWMutex
	m  map[string]V
}

const maxCached = 512

func (c *cache[V]) get(path string) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.m[path]
	return v, ok
}

func (c *cache[V]) put(path string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[string]V{}
	}
	for k := range c.m {
		if len(c.m) < maxCached {
			break
		}
		delete(c.m, k) // any: a lost one costs a read
	}
	c.m[path] = v
}

// Append commits every batch of r into ident as one transaction.
func (w *Warehouse) Append(ctx context.Context, ident icetable.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return w.each(ctx, ident, r, func(t *TxTable, rec arrow.RecordBatch) error { return t.Append(ctx, rec) })
}

// Upsert commits every batch of r into ident as one transaction, replacing the rows whose keys exist. Of rows with one
// key the last wins.
func (w *Warehouse) Upsert(ctx context.Context, ident icetable.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return w.each(ctx, ident, r, func(t *TxTable, rec arrow.RecordBatch) error {
		_, err := t.Upsert(ctx, rec, ReplaceLast)
		return err
	})
}

// DeleteKeys commits the deletion of the rows whose identifier values are in r (columns: the identifier fields).
func (w *Warehouse) DeleteKeys(ctx context.Context, ident icetable.Identifier, r array.RecordReader) (*catalog.Record, error) {
	return w.each(ctx, ident, r, func(t *TxTable, rec arrow.RecordBatch) error {
		_, err := t.DeleteKeys(ctx, rec)
		return err
	})
}

func (w *Warehouse) each(ctx context.Context, ident icetable.Identifier, r array.RecordReader, do func(*TxTable, arrow.RecordBatch) error) (*catalog.Record, error) {
	return w.Do(ctx, TxOptions{}, func(tx *Tx) error {
		t, err := tx.Table(ctx, ident)
		if err != nil {
			return err
		}
		for r.Next() {
			if err := do(t, r.RecordBatch()); err != nil {
				return err
			}
		}
		return r.Err()
	})
}

// Do runs fn in a transaction and commits it, or rolls it back when fn fails. It does not retry.
func (w *Warehouse) Do(ctx context.Context, opts TxOptions, fn func(*Tx) error) (*catalog.Record, error) {
	tx := w.Begin(ctx, opts)
	defer func() {
		if err := tx.Rollback(); err != nil {
			w.opts.Logger.Warn().Err(err).Msg("roll back")
		}
	}()
	if err := fn(tx); err != nil {
		return nil, err
	}
	return tx.Commit(ctx)
}

// CreateTable creates a table in a transaction of its own.
func (w *Warehouse) CreateTable(ctx context.Context, c CreateTable) (*catalog.Record, error) {
	return w.Do(ctx, TxOptions{}, func(tx *Tx) error {
		_, err := tx.CreateTable(ctx, c)
		return err
	})
}

// removeFiles removes data files and their key indexes, but those in keep. What cannot be removed is an orphan, which
// no snapshot names; it is logged.
func (w *Warehouse) removeFiles(files []parquetio.WrittenFile, keep map[string]struct{}) {
	var paths []string
	for _, f := range files {
		if _, ok := keep[f.DataFile.FilePath()]; ok {
			continue
		}
		paths = append(paths, f.Path)
		if f.KeyIndexPath != "" {
			paths = append(paths, f.KeyIndexPath)
		}
	}
	w.removePaths(paths)
}

func (w *Warehouse) removePaths(paths []string) {
	for _, p := range paths {
		if err := w.opts.FS.Remove(p); err != nil {
			w.opts.Logger.Debug().Err(err).Str("path", p).Msg("remove unused file")
		}
	}
}
