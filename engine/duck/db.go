package duck

// #include "suppress.h"
// #include "relation.h"
import "C"

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	bind "github.com/duckdb/duckdb-go-bindings"
)

// Options configure a DB.
type Options struct {
	// TempDir is where DuckDB spills. "" disables spilling.
	TempDir string
	// TempLimit bounds the spilled bytes; 0 means 8 GiB. Beyond it a statement fails with 54000.
	TempLimit int64
	// MemoryLimit bounds the memory of all statements together, in bytes; 0 leaves DuckDB's default, 80 % of the machine's.
	MemoryLimit int64
	// Threads is the number of DuckDB worker threads; 0 means GOMAXPROCS.
	Threads int
	// Slots is how many statements compute at once; 0 means 2 × Threads. The others wait in arrival order.
	Slots int
	// MaxIdle is how many idle connections are kept; 0 means 16.
	MaxIdle int
	// AllowedDirs are the folders whose files may be read (warehouse, cache).
	AllowedDirs []string
	// InitSQL runs once, statement by statement, before the configuration is locked: schemas, static tables, macros.
	InitSQL []string
	// Funcs and Scalars are registered before InitSQL runs.
	Funcs   []Func
	Scalars []Scalar
	// SearchPath is the search path of every connection, in DuckDB's form ("skade_pg,main"); "" leaves the default.
	SearchPath string
}

// DB is a locked-down in-memory DuckDB instance. Safe for concurrent use.
type DB struct {
	db    bind.Database
	opts  Options
	slots *slots
	rels  relations
	maps  bitmapCache
	open  atomic.Int64
	// evaluators are the numbers of the scalar functions.
	evaluators []uint64

	mu struct {
		sync.Mutex
		closed bool
		idle   []*Conn
		// byID finds the Conn of a DuckDB connection number: a relation learns from it whose context it runs under.
		byID map[uint64]*Conn
	}
}

// Open starts an instance: functions, InitSQL, then the lock (D1). Close must be called.
func Open(o Options) (*DB, error) {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Slots <= 0 {
		o.Slots = 2 * o.Threads
	}
	if o.MaxIdle <= 0 {
		o.MaxIdle = 16
	}
	if o.TempLimit <= 0 {
		o.TempLimit = 8 << 30
	}
	db := &DB{opts: o, slots: newSlots(o.Slots)}
	db.mu.byID = make(map[uint64]*Conn)
	db.initRelations()
	db.maps.init(64 << 20)
	if err := db.start(); err != nil {
		db.closeRelations()
		bind.Close(&db.db)
		return nil, err
	}
	return db, nil
}

func (db *DB) start() error {
	var cfg bind.Config
	if bind.CreateConfig(&cfg) == bind.StateError {
		return fmt.Errorf("create config: %w", ErrOutOfMemory)
	}
	defer bind.DestroyConfig(&cfg)
	for _, kv := range db.startSettings() {
		if bind.SetConfig(cfg, kv[0], kv[1]) == bind.StateError {
			return fmt.Errorf("set %s: %w", kv[0], ErrConfig)
		}
	}
	var msg string
	if bind.OpenExt(":memory:", &db.db, cfg, &msg) == bind.StateError {
		return fmt.Errorf("open instance: %w: %s", ErrConfig, msg)
	}
	c, err := db.connect()
	if err != nil {
		return err
	}
	defer c.discard()
	if C.skade_register_live(C.duckdb_connection(c.conn.Ptr)) != 0 {
		return fmt.Errorf("register skade_live: %w", ErrConfig)
	}
	if C.skade_register_rel(C.duckdb_connection(c.conn.Ptr), C.uint64_t(db.rels.handle)) != 0 {
		return fmt.Errorf("register skade_rel: %w", ErrConfig)
	}
	if err := c.registerFloats(); err != nil {
		return err
	}
	for _, f := range db.opts.Funcs {
		if err := c.registerFunc(f); err != nil {
			return err
		}
	}
	for _, f := range db.opts.Scalars {
		if err := c.registerScalar(f); err != nil {
			return err
		}
	}
	ctx := context.Background()
	for i, sql := range db.opts.InitSQL {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("init statement %d: %w", i+1, err)
		}
	}
	for _, sql := range db.lockStatements() {
		if _, err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("lock (%s): %w", sql, err)
		}
	}
	return nil
}

// Close frees the instance. All Conns must be closed and relations released before; it returns an error that counts what
// was leaked.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.mu.closed {
		db.mu.Unlock()
		return nil
	}
	db.mu.closed = true
	idle := db.mu.idle
	db.mu.idle = nil
	db.mu.Unlock()
	for _, c := range idle {
		c.discard()
	}
	conns := db.open.Load()
	rels := db.closeRelations()
	db.maps.clear()
	if conns > 0 {
		// A connection that is still in use would be freed under its user.
		return fmt.Errorf("close: %w: %d connections, %d relations", ErrLeaked, conns, rels)
	}
	bind.Close(&db.db)
	for _, h := range db.evaluators {
		handles.m.Delete(h)
	}
	if rels > 0 {
		return fmt.Errorf("close: %w: %d relations", ErrLeaked, rels)
	}
	return nil
}

// Conn takes a connection from the pool, or opens one.
func (db *DB) Conn(ctx context.Context) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, MapError(context.Cause(ctx))
	}
	db.mu.Lock()
	if db.mu.closed {
		db.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(db.mu.idle); n > 0 {
		c := db.mu.idle[n-1]
		db.mu.idle = db.mu.idle[:n-1]
		db.mu.Unlock()
		c.pooled = false
		return c, nil
	}
	db.mu.Unlock()
	c, err := db.connect()
	if err != nil {
		return nil, err
	}
	if err := c.prepareSession(ctx); err != nil {
		c.discard()
		return nil, err
	}
	return c, nil
}

func (db *DB) connect() (*Conn, error) {
	c := &Conn{db: db}
	if bind.Connect(db.db, &c.conn) == bind.StateError {
		return nil, fmt.Errorf("connect: %w", ErrOutOfMemory)
	}
	var cc bind.ClientContext
	bind.ConnectionGetClientContext(c.conn, &cc)
	c.id = uint64(bind.ClientContextGetConnectionId(cc))
	bind.DestroyClientContext(&cc)
	db.open.Add(1)
	db.mu.Lock()
	db.mu.byID[c.id] = c
	db.mu.Unlock()
	return c, nil
}
