package duck

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	bind "github.com/duckdb/duckdb-go-bindings"
)

// Conn is a pooled connection. It is used by one goroutine at a time and runs one stream at a time. It ends by Close.
type Conn struct {
	db     *DB
	conn   bind.Connection
	id     uint64
	pooled bool // in the idle list, or freed
	dirty  bool // has state that a next user must not see
	zone   string
	rows   *Rows // the open stream
	// ctx is the running statement's, for relations that it reads.
	ctx atomic.Pointer[context.Context]
}

// Close returns the connection to the pool, or frees it when statements left state behind. An open stream is closed.
func (c *Conn) Close() {
	if c == nil || c.pooled {
		return
	}
	if c.rows != nil {
		c.rows.Close()
	}
	if c.zone != "" && !c.dirty {
		if _, err := c.exec(context.Background(), "RESET SESSION TimeZone"); err != nil {
			c.dirty = true
		}
		c.zone = ""
	}
	c.db.mu.Lock()
	if !c.dirty && !c.db.mu.closed && len(c.db.mu.idle) < c.db.opts.MaxIdle {
		c.pooled = true
		c.db.mu.idle = append(c.db.mu.idle, c)
		c.db.mu.Unlock()
		return
	}
	c.db.mu.Unlock()
	c.discard()
}

func (c *Conn) discard() {
	c.db.mu.Lock()
	delete(c.db.mu.byID, c.id)
	c.db.mu.Unlock()
	c.pooled = true
	bind.Disconnect(&c.conn)
	c.db.open.Add(-1)
}

// streamBuffer is how far DuckDB runs ahead of the reader. It counts 16 bytes for a string of any length, so the default of
// 1 MB would let 60,000 long strings pile up (D2). Far smaller values stall DuckDB.
const streamBuffer = "256KB"

func (c *Conn) prepareSession(ctx context.Context) error {
	sql := "SET SESSION streaming_buffer_size = " + quoteLiteral(streamBuffer)
	if p := c.db.opts.SearchPath; p != "" {
		sql += "; SET SESSION search_path = " + quoteLiteral(p)
	}
	_, err := c.exec(ctx, sql)
	return err
}

// SetTimeZone sets the session time zone by IANA name ("UTC", "Europe/Oslo"). 22023 when there is no such zone.
func (c *Conn) SetTimeZone(ctx context.Context, name string) error {
	if name == c.zone {
		return nil
	}
	if _, err := c.exec(ctx, "SET SESSION TimeZone = "+quoteLiteral(name)); err != nil {
		return invalidTimeZone(name, err)
	}
	c.zone = name
	return nil
}

// Set changes a session setting of DuckDB by its DuckDB name; only those that the lock leaves open (TimeZone, search_path,
// streaming_buffer_size). The connection is not pooled afterwards.
func (c *Conn) Set(ctx context.Context, name, value string) error {
	c.dirty = true
	_, err := c.exec(ctx, "SET SESSION "+quoteIdent(name)+" = "+quoteLiteral(value))
	return err
}

// Exec runs statements that return no rows and returns the number of changed rows of the last one. The connection
// is not pooled afterwards, because the statements may have left something in it.
func (c *Conn) Exec(ctx context.Context, sql string) (int64, error) {
	c.dirty = true
	release, err := c.db.slots.acquire(ctx)
	if err != nil {
		return 0, MapError(err)
	}
	defer release()
	return c.exec(ctx, sql)
}

func (c *Conn) exec(ctx context.Context, sql string) (int64, error) {
	if err := c.ready(ctx); err != nil {
		return 0, err
	}
	w := c.watch(ctx)
	defer w.stop()
	var res bind.Result
	defer bind.DestroyResult(&res)
	w.enter()
	st := bind.Query(c.conn, sql, &res)
	w.leave()
	if st == bind.StateError {
		return 0, resultError(ctx, &res)
	}
	if bind.ResultReturnType(res) != bind.ResultTypeChangedRows {
		return 0, nil
	}
	return int64(bind.RowsChanged(&res)), nil
}

// ready tells whether a statement may start.
func (c *Conn) ready(ctx context.Context) error {
	if c.pooled {
		return ErrClosed
	}
	if c.rows != nil {
		return ErrBusy
	}
	if ctx.Err() != nil {
		return MapError(context.Cause(ctx))
	}
	return nil
}

// A watch interrupts a connection when a context is cancelled, but only while a call into DuckDB runs: between enter
// and leave. An interrupt that arrives before DuckDB has begun is lost, so it is repeated until the watch ends.
type watch struct {
	conn *Conn
	end  func()
	mu   struct {
		sync.Mutex
		inside bool
	}
}

func (c *Conn) watch(ctx context.Context) *watch {
	w := &watch{conn: c}
	held := holding(ctx)
	c.ctx.Store(&held)
	w.end = w.on(ctx)
	return w
}

// on makes ctx interrupt w's calls until the returned function is called, which waits for the goroutine that does it:
// afterwards ctx interrupts nothing any more (D3).
func (w *watch) on(ctx context.Context) (off func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	var ended atomic.Bool
	done := make(chan struct{})
	quit := context.AfterFunc(ctx, func() {
		defer close(done)
		for !ended.Load() {
			w.mu.Lock()
			if w.mu.inside {
				bind.Interrupt(w.conn.conn)
			}
			w.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	})
	return func() {
		ended.Store(true)
		if !quit() {
			<-done
		}
	}
}

func (w *watch) enter() {
	w.mu.Lock()
	w.mu.inside = true
	w.mu.Unlock()
}

func (w *watch) leave() {
	w.mu.Lock()
	w.mu.inside = false
	w.mu.Unlock()
}

// stop ends the watch. It is called once.
func (w *watch) stop() {
	w.end()
	w.conn.ctx.Store(nil)
}
