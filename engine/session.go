package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

// session is one connection's SQL session: the pgwire.Session of this product.
//
// It ends with Close, which pgwire calls once. Everything a session opened (transaction, cursors, DuckDB connections,
// LISTEN registrations) is freed there.
type session struct {
	gw         *Gateway
	startup    pgwire.Startup
	gucs       *gucs
	tx         *txn
	cursors    map[string]*cursor
	listener   *listener
	started    time.Time
	reported   map[string]string // ParameterStatus values the client has
	reportedAt int               // version of gucs that reported was compared with
	conns      connSet
	owner      *lockmgr.Owner // of the session's locks
	idleTimer  *time.Timer
	catalogID  string // binding of the catalog functions
	releaseCat func()

	run struct {
		sync.Mutex
		ctx    context.Context // the running statement's
		cancel context.CancelCauseFunc
		// pending is a cancel that came while a message was handled but its statement did not run yet; nil when none.
		pending *pgerr.Error
	}
	// rowCalls serialises calls of perRow functions.
	rowCalls  sync.Mutex
	sequences sequenceSession
	// ownTemp is nil until the session makes something temporary. DuckDB's threads look at it, too.
	ownTemp atomic.Pointer[tempSchema]
	// frozen is what the running statement reads instead of the transaction's state; nil most of the time.
	frozen snapshot
	act    activity
	// rowBuf is the buffer in which the last portal made its rows, for the next one to use; nil while one does.
	rowBuf []byte
	// prog is the progress of the running statement; nil for one that tells none.
	prog atomic.Pointer[progress]
	// pinned is what the open transaction reads, for whoever removes old snapshots meanwhile.
	pinned atomic.Pointer[pins]
	// catalog is the system catalogs of the running statement.
	catalog struct {
		sync.Mutex
		snapshot *pgcatalog.Snapshot
	}
}

// NewSession implements pgwire.Backend.
func (gw *Gateway) NewSession(ctx context.Context, st pgwire.Startup) (pgwire.Session, error) {
	if st.Database != gw.database {
		return nil, &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.InvalidCatalogName, Message: fmt.Sprintf("database \"%s\" does not exist", st.Database)}
	}
	s := &session{
		gw: gw, startup: st, gucs: newGUCs(), started: time.Now(),
		cursors:  map[string]*cursor{},
		listener: newListener(st.Wire), owner: gw.locks.Owner(st.PID),
	}
	s.gucs.base["session_authorization"] = st.Identity.User
	s.gucs.base["is_superuser"] = onOff(gw.isSuperuser(st.Identity.User))
	for _, p := range st.Params {
		canonical, err := s.gucs.check(p.Name, p.Value)
		if err != nil {
			if e := pgerr.As(err); e != nil {
				fatal := *e
				fatal.Severity = pgerr.SevFatal
				return nil, &fatal
			}
			return nil, err
		}
		s.gucs.base[strings.ToLower(p.Name)] = canonical
	}
	s.gucs.refresh()
	s.conns.init(s)
	s.catalogID, s.releaseCat = gw.syscat.Bind(&catalogView{s}, s.catalogSnapshot)
	s.act.begin(s)
	if err := gw.addSession(s); err != nil {
		s.releaseCat()
		return nil, err
	}
	return s, nil
}

func (s *session) user() string { return s.startup.Identity.User }

// ParameterStatus implements pgwire.Session.
func (s *session) ParameterStatus() []pgwire.Param {
	ps := s.gucs.reports()
	s.reportedAt = s.gucs.version
	s.reported = make(map[string]string, len(ps))
	for _, p := range ps {
		s.reported[p.Name] = p.Value
	}
	return ps
}

// report sends the reported settings that changed.
func (s *session) report() {
	if s.reportedAt == s.gucs.version {
		return
	}
	s.reportedAt = s.gucs.version
	for _, p := range s.gucs.reports() {
		if s.reported[p.Name] != p.Value {
			s.reported[p.Name] = p.Value
			s.startup.Wire.ParameterStatus(p.Name, p.Value)
		}
	}
}

// Split implements pgwire.Session.
func (s *session) Split(_ context.Context, sql string) ([]pgwire.Statement, error) {
	stmts, err := pgsql.Parse(sql)
	if err != nil {
		return nil, err
	}
	out := make([]pgwire.Statement, len(stmts))
	for i, st := range stmts {
		// Analysed at Bind: an earlier statement of the string may create what a later one names.
		out[i] = &prepared{s: s, stmt: st, text: sql, once: true}
	}
	return out, nil
}

// Prepare implements pgwire.Session.
func (s *session) Prepare(ctx context.Context, sql string, paramOIDs []uint32) (pgwire.Statement, error) {
	stmts, err := pgsql.Parse(sql)
	if err != nil {
		return nil, err
	}
	switch len(stmts) {
	case 0:
		return &prepared{s: s, text: sql}, nil
	case 1:
	default:
		return nil, pgerr.New(pgerr.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	p := &prepared{s: s, stmt: stmts[0], text: sql, given: paramOIDs}
	if err := s.allowed(p.stmt); err != nil {
		return nil, err
	}
	if p.needsAnalysis() {
		if err := s.analyze(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// allowed refuses what an aborted transaction refuses.
func (s *session) allowed(st *pgsql.Stmt) error {
	if s.tx == nil || !s.tx.failed {
		return nil
	}
	if st.Kind == pgsql.TransactionStmt {
		if u, err := pgsql.Utility(st); err == nil {
			if t, ok := u.(*pgsql.Transaction); ok && (t.Op == "commit" || t.Op == "rollback" || t.Op == "rollback to") {
				return nil
			}
		}
	}
	return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
}

// Bind implements pgwire.Session.
func (s *session) Bind(ctx context.Context, st pgwire.Statement, paramFormats []int16, params [][]byte, resultFormats []int16) (pgwire.Portal, error) {
	p, ok := st.(*prepared)
	if !ok || p.s != s {
		return nil, pgerr.New(pgerr.InvalidSQLStatementName, "prepared statement is not of this session")
	}
	if p.stmt == nil {
		return &commandPortal{run: func(context.Context, pgwire.Writer) (string, error) { return "", nil }}, nil
	}
	if err := s.allowed(p.stmt); err != nil {
		return nil, err
	}
	if s.tx == nil {
		s.openTx(false).alone = true
	}
	s.tx.statement()
	s.act.query(p.stmt.Text)
	if err := s.tx.refreshCut(ctx); err != nil {
		return nil, err
	}
	if p.needsAnalysis() {
		if err := s.refresh(ctx, p); err != nil {
			return nil, err
		}
	}
	args, err := p.decodeParams(s, paramFormats, params)
	if err != nil {
		return nil, err
	}
	return s.portal(ctx, p, args, resultFormats)
}

// LookupPortal implements pgwire.Session.
func (s *session) LookupPortal(name string) pgwire.Portal {
	if c, ok := s.cursors[name]; ok {
		return c.portal
	}
	return nil
}

// BeginImplicit implements pgwire.Session.
func (s *session) BeginImplicit(context.Context) error {
	if s.tx == nil {
		s.openTx(false)
	}
	return nil
}

// Sync implements pgwire.Session.
func (s *session) Sync(ctx context.Context) error {
	defer s.report()
	if s.tx == nil || s.tx.explicit {
		return nil
	}
	if s.tx.wh == nil && len(s.cursors) == 0 {
		return s.endTx(ctx, !s.tx.failed) // nothing to wait for
	}
	ctx, done := s.watch(ctx)
	defer done()
	if r := s.tx.redo; r != nil && s.tx.statements == 1 && !s.tx.failed {
		_, err := s.commitStatement(ctx, r, true)
		if err != nil && s.tx != nil {
			return errors.Join(err, s.endTx(ctx, false))
		}
		return err
	}
	return s.endTx(ctx, !s.tx.failed)
}

// Fail implements pgwire.Session.
func (s *session) Fail(err error) {
	if s.tx != nil {
		s.tx.failed = true
		s.releaseLocks(true)
	}
}

// TxStatus implements pgwire.Session.
func (s *session) TxStatus() byte {
	switch {
	case s.tx == nil || !s.tx.explicit:
		return 'I'
	case s.tx.failed:
		return 'E'
	}
	return 'T'
}

// Idle implements pgwire.Session.
func (s *session) Idle(idle bool) {
	s.act.idle(s, idle)
	s.watchIdle(idle)
	if idle {
		s.run.Lock()
		s.run.pending = nil
		s.run.Unlock()
		s.conns.shrink()
	}
}

// watchIdle ends a connection whose client is silent for longer than its settings allow.
func (s *session) watchIdle(idle bool) {
	if s.idleTimer != nil {
		s.idleTimer.Stop()
		s.idleTimer = nil
	}
	if !idle {
		return
	}
	limit, cause := s.gucs.now.idleTimeout, errIdle
	if s.tx != nil && s.tx.explicit {
		limit, cause = s.gucs.now.idleInTxTimeout, errIdleInTx
	}
	if limit > 0 {
		s.idleTimer = time.AfterFunc(limit, func() { s.startup.Wire.Terminate(cause) })
	}
}

var (
	errIdle     = &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.IdleSessionTimeout, Message: "terminating connection due to idle-session timeout"}
	errIdleInTx = &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.IdleInTransactionSessionTimeout, Message: "terminating connection due to idle-in-transaction timeout"}
)

// Cancel implements pgwire.Session.
func (s *session) Cancel(cause *pgerr.Error) {
	s.run.Lock()
	defer s.run.Unlock()
	if s.run.cancel != nil {
		s.run.cancel(cause)
	} else {
		s.run.pending = cause
	}
}

// Close implements pgwire.Session.
func (s *session) Close() error {
	s.watchIdle(false)
	s.gw.removeSession(s)
	s.gw.hub.unlisten(s.listener, "*")
	s.releaseFeeds()
	var err error
	if s.tx != nil {
		err = s.endTx(context.Background(), false)
	}
	for name := range s.cursors {
		s.dropCursor(name)
	}
	s.owner.ReleaseAll()
	s.conns.close()
	s.releaseCat()
	return errors.Join(err, s.closeTemp())
}

// watch makes ctx the context of the running statement: Cancel and statement_timeout end it. done must be called.
func (s *session) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	started := time.Now()
	s.run.Lock()
	s.run.ctx, s.run.cancel = ctx, cancel
	if s.run.pending != nil { // it came while the statement was on its way
		cancel(s.run.pending)
		s.run.pending = nil
	}
	s.run.Unlock()
	var timer *time.Timer
	var fired chan struct{}
	if d := s.gucs.now.statementTimeout; d > 0 {
		fired = make(chan struct{})
		timer = time.AfterFunc(d, func() {
			defer close(fired)
			cause := pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
			cancel(cause)
			s.startup.Wire.Cancel(cause) // it may wait for the client
		})
	}
	return ctx, func() {
		if timer != nil && !timer.Stop() {
			<-fired // else it might end the next statement
		}
		s.run.Lock()
		s.run.ctx, s.run.cancel = nil, nil
		s.run.Unlock()
		s.logSlow(ctx, started)
		cancel(nil)
	}
}

// sqlError maps any error of a statement to what the client sees. A cancelled context's cause wins.
func (s *session) sqlError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		var cause *pgerr.Error
		if errors.As(context.Cause(ctx), &cause) {
			return cause
		}
		if errors.Is(err, context.Canceled) {
			return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
		}
	}
	return MapError(err)
}

// connSet holds the session's DuckDB connections: one stream runs on a connection at a time, so an open portal keeps its own.
// Row guards take theirs from the goroutine that writes.
type connSet struct {
	s    *session
	mu   sync.Mutex // guards free
	free []*sessionConn
}

// sessionConn is a DuckDB connection with the session settings it was given.
type sessionConn struct {
	*duck.Conn
	zone string
}

func (c *connSet) init(s *session) { c.s = s }

// take returns a connection with the session's settings.
func (c *connSet) take(ctx context.Context) (*sessionConn, error) {
	c.mu.Lock()
	var sc *sessionConn
	if n := len(c.free); n > 0 {
		sc, c.free = c.free[n-1], c.free[:n-1]
	}
	c.mu.Unlock()
	if sc == nil {
		conn, err := c.s.gw.duck.Conn(ctx)
		if err != nil {
			return nil, err
		}
		sc = &sessionConn{Conn: conn}
		if _, err := conn.Exec(ctx, "SET VARIABLE skade_cat = '"+strings.ReplaceAll(c.s.catalogID, "'", "''")+"'"); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if zone := c.s.gucs.zone; sc.zone != zone {
		if err := sc.SetTimeZone(ctx, duckZone(zone)); err != nil {
			sc.Close()
			return nil, err
		}
		sc.zone = zone
	}
	return sc, nil
}

// duckZone spells a TimeZone value as ICU reads it: "<+02>-2" is Etc/GMT-2 there too.
func duckZone(zone string) string {
	if strings.HasPrefix(zone, "<") {
		if i := strings.IndexByte(zone, '>'); i > 0 {
			if h, err := strconv.Atoi(zone[i+1:]); err == nil && h != 0 {
				return fmt.Sprintf("Etc/GMT%+d", h)
			}
		}
		return "UTC"
	}
	return zone
}

// give takes a connection back.
func (c *connSet) give(sc *sessionConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, sc)
}

// shrink keeps one idle connection.
func (c *connSet) shrink() {
	for len(c.free) > 1 {
		n := len(c.free) - 1
		c.free[n].Close()
		c.free = c.free[:n]
	}
}

func (c *connSet) close() {
	for _, sc := range c.free {
		sc.Close()
	}
	c.free = nil
}
