package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/catalog/mount"
	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/lookup"
	"github.com/nordisk/skade-pg/warehouse"
)

// Options opens a Gateway. The cores are opened by the caller, who closes them after the Gateway.
type Options struct {
	Catalog   *catalog.Catalog
	Live      *liveset.Cache
	Warehouse *warehouse.Warehouse
	Changes   *changelog.Reader
	Lookup    *lookup.Lookup
	FS        *storeio.FS
	// Mounts follow other catalogs; nil: there are none.
	Mounts *mount.Manager
	// Dir is the server's folder: DuckDB may read warehouse files below it and below FS's roots, and spills into its tmp folder.
	Dir string
	// Database is the name that clients connect to.
	Database string
	// Address is the listening address, for inet_server_addr().
	Address string
	// Roles are the role names that may log in; all of them are superusers. Empty means any name (trust).
	Roles       []string
	MemoryLimit int64
	// TempLimit bounds the bytes that DuckDB spills; 0 is its own default.
	TempLimit int64
	Threads   int
	// Retention is what VACUUM keeps; the zero value keeps the newest snapshot and the last minute.
	Retention Retention
	// MaintenanceInterval is how often tables are maintained in the background; 0 never.
	MaintenanceInterval time.Duration
	// Version is the product's.
	Version string
	Logger  zerolog.Logger
}

// Gateway makes sessions over one warehouse: the pgwire.Backend. Safe for concurrent use. It ends with Close, after the protocol
// server has closed every session.
type Gateway struct {
	catalog   *catalog.Catalog
	live      *liveset.Cache
	projected projections
	warehouse *warehouse.Warehouse
	changes   *changelog.Reader
	lookup    *lookup.Lookup
	fs        *storeio.FS
	duck      *duck.DB
	mounts    *mount.Manager
	syscat    *pgcatalog.Catalog
	hub       *hub
	feed      *commitFeed
	log       zerolog.Logger

	dir, database, address, versionText string
	roles                               []string
	started                             time.Time
	locks                               lockmgr.Manager
	sequences                           *sequenceValues
	retention                           Retention
	upkeep                              *upkeep
	temps                               tempNumbers
	lastPins                            atomic.Pointer[pins] // of the cut at which a transaction began last

	mu struct {
		sync.Mutex
		sessions map[int32]*session
		snapshot *pgcatalog.Snapshot
		snapSeq  uint64
	}
}

// New opens a Gateway: the DuckDB instance, the schema public of a fresh warehouse. Close must be called.
func New(ctx context.Context, o Options) (*Gateway, error) {
	gw := &Gateway{
		catalog: o.Catalog, live: o.Live, warehouse: o.Warehouse, changes: o.Changes, lookup: o.Lookup, fs: o.FS, mounts: o.Mounts, log: o.Logger,
		dir: o.Dir, database: o.Database, address: o.Address, roles: o.Roles, started: time.Now(), retention: o.Retention,
		versionText: fmt.Sprintf("PostgreSQL %s (skade-pg %s)", serverVersion, o.Version),
	}
	gw.mu.sessions = map[int32]*session{}
	gw.upkeep = newUpkeep(gw)
	gw.sequences = newSequenceValues(o.Catalog)
	gw.syscat = pgcatalog.New(pgcatalog.Options{Owner: ownerRole(o.Roles), Database: o.Database})
	gw.feed = newCommitFeed(o.Catalog, o.Logger)
	gw.hub = newHub(gw.feed)
	temp := filepath.Join(o.Dir, "tmp", "duckdb")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return nil, fmt.Errorf("make the temporary folder: %w", err)
	}
	db, err := duck.Open(duck.Options{
		TempDir: temp, MemoryLimit: o.MemoryLimit, TempLimit: o.TempLimit, Threads: o.Threads, AllowedDirs: append([]string{o.Dir}, o.FS.Roots()...),
		Funcs: goFunctions(), Scalars: append(append(catalogScalars(gw.syscat), rowCall(gw)), gw.sequenceScalars()...),
		InitSQL: append(pgsql.InitSQL(), pgcatalog.InitSQL()...),
	})
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	gw.duck = db
	if err := gw.ensurePublic(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	if err := gw.forgetSequences(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	gw.releaseLeases(func(string) bool { return true }) // the folder is this process's alone: whoever held them is gone
	gw.upkeep.start(o.MaintenanceInterval)
	return gw, nil
}

func ownerRole(roles []string) string {
	if len(roles) > 0 {
		return roles[0]
	}
	return "skade"
}

// ensurePublic gives a fresh warehouse PostgreSQL's default schema.
func (gw *Gateway) ensurePublic(ctx context.Context) error {
	for range gw.catalog.Cut().Namespaces() {
		return nil
	}
	_, err := gw.catalog.Commit(ctx, &catalog.Request{Actor: ownerRole(gw.roles), ApplicationName: "skade-pg", Changes: []catalog.Change{
		catalog.CreateNamespace{Ident: table.Identifier{"public"}, Props: iceberg.Properties{"comment": "standard public schema"}},
	}})
	if err != nil {
		return fmt.Errorf("create schema public: %w", err)
	}
	return nil
}

// Close ends the gateway. All sessions must be closed.
func (gw *Gateway) Close() error {
	gw.upkeep.stop()
	gw.feed.close()
	gw.mu.Lock()
	n := len(gw.mu.sessions)
	gw.mu.Unlock()
	err := errors.Join(gw.sequences.close(), gw.duck.Close())
	if n > 0 {
		err = errors.Join(err, fmt.Errorf("%d sessions are still open", n))
	}
	return err
}

func (gw *Gateway) isSuperuser(string) bool { return true }

func (gw *Gateway) addSession(s *session) error {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	if _, dup := gw.mu.sessions[s.startup.PID]; dup {
		return &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.InternalError, Message: "process id is in use"}
	}
	gw.mu.sessions[s.startup.PID] = s
	gw.mu.snapshot = nil // it lists the roles that are logged in
	return nil
}

func (gw *Gateway) removeSession(s *session) {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	delete(gw.mu.sessions, s.startup.PID)
}

func (gw *Gateway) sessionByPID(pid int32) *session {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	return gw.mu.sessions[pid]
}

// Sessions is the number of open sessions.
func (gw *Gateway) Sessions() int {
	gw.mu.Lock()
	defer gw.mu.Unlock()
	return len(gw.mu.sessions)
}

// foreign reports a data file that DuckDB's reader cannot map by field id, or that leaves a column to its partition, and rows that are in no file: Go
// reads them instead.
func (gw *Gateway) foreign(ctx context.Context, f *liveset.File) (bool, error) {
	if f.InMemory() {
		return true, nil
	}
	r, err := gw.live.Reader(ctx, f)
	if err != nil {
		return false, err
	}
	return len(r.FieldIDs()) == 0 || r.TakesConstants(), nil
}
