package liveset

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// defaultBudget is what Options.Budget means when it is 0.
const defaultBudget = 512 << 20

// Options configures a Cache.
type Options struct {
	FS *storeio.FS
	// Budget is the bytes that all caches together may hold; 0 is 512 MiB, negative is none: everything is read and decoded each time.
	Budget int64
	// Home is the folder that key indexes of other writers' files may be stored in, beside those files; empty: they are held in memory only.
	Home   string
	Logger zerolog.Logger
}

// Cache derives sets and keeps what they were made from: decoded manifests, footers, key indexes, delete files, bitmaps, sets and inflated pages,
// under one byte budget. Safe for concurrent use. It needs no Close.
type Cache struct {
	fs    *storeio.FS
	log   zerolog.Logger
	lru   *lru
	pages *parquetio.PageCache // inflated pages of single rows; what the rest leaves of the budget, a quarter at least
	stats counters
	home  string
	// warned are the files whose index was said to be unusable.
	warned struct {
		sync.Mutex
		m map[string]bool
	}
	// probed are the totals of all probes.
	probed ProbeCounters

	latest struct {
		sync.Mutex
		byTable map[uuid.UUID]int64 // snapshot derived last, a base when no ancestor is cached
	}
	probers struct {
		sync.Mutex
		m map[proberKey]*prober
	}
	unions      unions
	projections struct {
		sync.Mutex
		m map[projectionKey]*iceberg.Schema
	}
}

// NewCache makes an empty cache.
func NewCache(o Options) *Cache {
	switch {
	case o.Budget == 0:
		o.Budget = defaultBudget
	case o.Budget < 0:
		o.Budget = 0
	}
	c := &Cache{fs: o.FS, log: o.Logger, home: homeOf(o.Home), lru: newLRU(o.Budget - o.Budget/4), pages: parquetio.NewPageCache(pagesBudget(o.Budget, 0))}
	c.lru.resized = func(used int64) { c.pages.SetBudget(pagesBudget(o.Budget, used)) }
	c.latest.byTable = map[uuid.UUID]int64{}
	c.probers.m = map[proberKey]*prober{}
	c.projections.m = map[projectionKey]*iceberg.Schema{}
	c.warned.m = map[string]bool{}
	return c
}

// pagesBudget is what pages may take of a budget: what the rest leaves, short of a sixteenth, and at least a quarter.
func pagesBudget(budget, used int64) int64 {
	return max(budget/4, budget-budget/16-used)
}

// Ref says which table a set belongs to. Metadata must hold the snapshots asked for, and the schemas and specs they use.
type Ref struct {
	UUID     uuid.UUID
	Metadata table.Metadata
}

// Stats count the cache's work since it was made: files read, not cache hits.
type Stats struct {
	ManifestLists int64 // manifest lists read
	Manifests     int64 // manifests decoded
	DeleteFiles   int64 // position delete, equality delete files and vectors read
	DataFileScans int64 // data files whose key columns were scanned to resolve equality deletes or to build an index
	Footers       int64 // data file footers read
	KeyIndexes    int64 // sidecar key indexes read
	IndexBuilds   int64 // key indexes built from data files
	Derived       int64 // sets derived
}

type counters struct {
	manifestLists, manifests, deleteFiles, dataFileScans, footers, keyIndexes, indexBuilds, derived atomic.Int64
}

// Stats returns the counters.
func (c *Cache) Stats() Stats {
	s := &c.stats
	return Stats{
		ManifestLists: s.manifestLists.Load(), Manifests: s.manifests.Load(), DeleteFiles: s.deleteFiles.Load(),
		DataFileScans: s.dataFileScans.Load(), Footers: s.footers.Load(), KeyIndexes: s.keyIndexes.Load(),
		IndexBuilds: s.indexBuilds.Load(), Derived: s.derived.Load(),
	}
}

// Reader returns the opened file with its footer cached. The caller does not close it.
func (c *Cache) Reader(ctx context.Context, f *File) (*parquetio.Reader, error) {
	r, err := c.reader(ctx, f.Path, f.Size)
	if known := f.hot.constants.Load(); known != nil && err == nil {
		r.SetConstants(*known)
	}
	return r, err
}

func (c *Cache) reader(ctx context.Context, path string, size int64) (*parquetio.Reader, error) {
	return cached(ctx, c, lruKey{kind: kindFooter, name: path}, func() (*parquetio.Reader, int64, error) {
		c.stats.footers.Add(1)
		r, err := parquetio.Open(ctx, c.fs, path, size)
		if err != nil {
			return nil, 0, err
		}
		r.UsePageCache(c.pages)
		return r, r.MemorySize(), nil
	})
}
