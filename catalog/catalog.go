package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Options of Open.
type Options struct {
	// Dir is the folder: catalog.db, and warehouse/ for tables made without a location. It is made when it is missing.
	Dir string
	// Warehouse is the location of new tables; empty means Dir/warehouse.
	Warehouse string
	// FS does all file IO; nil means a durable one without bounds.
	FS *storeio.FS
	// Logger gets what no caller can be told; the zero value says nothing.
	Logger zerolog.Logger
	// NoSync gives durability (C3) up, for tests.
	NoSync bool
	// MetadataCache bounds the decoded metadata, in bytes of memory, about; 0 means 64 MiB.
	MetadataCache int64
	// lateSize is lateSize, for tests; 0 means that.
	lateSize int
	// Now is the clock; nil means time.Now. Timestamps grow strictly whatever it says (C5).
	Now func() time.Time
}

// Catalog is an open catalog folder. Safe for concurrent use. It ends by Close only; after an ErrUnknownOutcome it still
// serves reads.
type Catalog struct {
	dir       string
	warehouse string
	fs        *storeio.FS
	store     store.Store
	log       zerolog.Logger
	noSync    bool
	lateSize  int
	now       func() time.Time
	metadata  *metadataCache
	cut       atomic.Pointer[Cut]
	mirror    mirror
	subs      subscribers
	queue     queue
	settler   settler
	older     cutCache
	counts    counts

	cancel context.CancelFunc
	closed sync.Once
	cerr   error
}

// Open opens the folder and holds it until Close. ErrLocked, ErrMoved, ErrDamaged, ErrReadOnly, ErrVersion.
func Open(ctx context.Context, o Options) (*Catalog, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		if isReadOnly(err) {
			return nil, fmt.Errorf("open %s: %w: %w", o.Dir, ErrReadOnly, err)
		}
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	dir, err := resolveDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s, err := openStore(dir, o.NoSync)
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, s, dir, o)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

func open(ctx context.Context, s store.Store, dir string, o Options) (*Catalog, error) {
	c := &Catalog{dir: dir, warehouse: o.Warehouse, fs: o.FS, store: s, log: o.Logger, noSync: o.NoSync, lateSize: cmp.Or(o.lateSize, lateSize), now: o.Now}
	if c.warehouse == "" {
		c.warehouse = storeio.LocationOf(filepath.Join(dir, warehouseName))
	}
	if c.fs == nil {
		c.fs = storeio.NewFS(storeio.Options{NoSync: o.NoSync})
	}
	if c.now == nil {
		c.now = time.Now
	}
	if o.MetadataCache <= 0 {
		o.MetadataCache = 64 << 20
	}
	c.metadata = newMetadataCache(c.fs, c.settler.unwritten, o.MetadataCache)
	c.subs.c, c.mirror.c, c.settler.c = c, c, c
	if err := writable(dir); err != nil {
		return nil, err
	}
	if err := initFolder(ctx, s, dir); err != nil {
		return nil, err
	}
	if err := recoverFiles(ctx, s, c.fs, c.log); err != nil {
		return nil, err
	}
	revision := s.Revision()
	st, err := loadState(ctx, s)
	if err != nil {
		return nil, err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.cancel = cancel
	if err := c.mirror.start(run, st, revision); err != nil {
		cancel()
		return nil, err
	}
	c.settler.start()
	return c, nil
}

// Close waits for the group that is being committed, refuses what waits behind it (ErrClosed), makes every file durable,
// ends subscriptions and releases the folder. Cuts taken before stay readable as far as they are decoded.
func (c *Catalog) Close() error {
	c.closed.Do(func() {
		c.queue.close()
		serr := c.settler.close()
		c.cancel()
		<-c.mirror.done
		c.subs.close()
		c.cerr = errors.Join(serr, c.store.Close())
	})
	return c.cerr
}

// FS returns the file system that the catalog and its tables use.
func (c *Catalog) FS() *storeio.FS { return c.fs }

// Dir returns the folder's absolute path.
func (c *Catalog) Dir() string { return c.dir }

// Warehouse returns the location under which new tables are made.
func (c *Catalog) Warehouse() string { return c.warehouse }

// Cut returns the newest cut: one atomic load.
func (c *Catalog) Cut() *Cut { return c.cut.Load() }

// CommitSeq returns the newest visible commit seq, 0 before the first commit.
func (c *Catalog) CommitSeq() uint64 { return c.Cut().Seq() }

// OldestSeq returns the oldest seq whose record is retained, 0 when there is none.
func (c *Catalog) OldestSeq() uint64 {
	s := c.Cut().s
	if s.seq == 0 {
		return 0
	}
	return s.first
}

// CommitTableKey returns the key under which records name the table.
func (c *Catalog) CommitTableKey(ident table.Identifier) (TableKey, error) {
	t, err := c.Cut().Table(ident)
	if err != nil {
		return "", err
	}
	return t.Key, nil
}

type counts struct {
	groups, commits, conflicts, inlined, carried, settled atomic.Int64
}

// Stats counts since Open.
type Stats struct {
	// Groups counts store transactions of commits, Commits the seqs they carried, Conflicts the requests that lost.
	Groups, Commits, Conflicts int64
	// Inlined counts files that a store transaction carried, Carried the bytes it took for them, Settled those that were synced later.
	Inlined, Carried, Settled int64
}

// Now is the clock that commits get their time from: ages of commits are measured by it.
func (c *Catalog) Now() time.Time { return c.now() }

// Stats returns the counts.
func (c *Catalog) Stats() Stats {
	return Stats{c.counts.groups.Load(), c.counts.commits.Load(), c.counts.conflicts.Load(), c.counts.inlined.Load(), c.counts.carried.Load(), c.counts.settled.Load()}
}
