package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// txn is a transaction: a cut that all its statements read (S1), and its own writes.
type txn struct {
	s        *session
	explicit bool
	failed   bool
	// cut is nil until something is read or written: BEGIN alone pins nothing. wh is nil until a table is opened: a prepared
	// lookup needs the cut alone.
	cut        *catalog.Cut
	wh         *warehouse.Tx
	start      time.Time
	stmtStart  time.Time
	savepoints []savepoint
	notifies   []notification
	listens    []listenOp
	portals    []pgwire.Portal
	onePortal  [1]pgwire.Portal // what portals is made of in most transactions
	wrote      bool
	// guards are what completes and checks the rows of the tables that the transaction opened.
	guards map[*warehouse.TxTable]tableGuard
	// statements counts Binds; alone is a simple query of one statement; redo repeats the data change that ran.
	statements int
	queried    bool
	alone      bool
	// strong makes the writes of a transaction of one statement take turns on rows: it has had to wait, or has lost a race.
	strong bool
	// reads are the tables that a SERIALIZABLE transaction has read, as they were at its cut.
	reads map[catalog.TableKey]*catalog.TableState
	redo  *redo
	// declared counts its cursors.
	declared int
}

// savepoint is a place to roll back to.
type savepoint struct {
	name     string
	mark     warehouse.Mark
	hasMark  bool
	gucLevel int
	notifies int
	listens  int
	wrote    bool
	locks    lockmgr.Mark
	declared int
}

// listenOp is LISTEN or UNLISTEN, done at commit.
type listenOp struct {
	channel string
	on      bool
}

// openTx starts a transaction.
func (s *session) openTx(explicit bool) *txn {
	now := time.Now()
	s.tx = &txn{s: s, explicit: explicit, start: now, stmtStart: now}
	s.gucs.begin()
	s.act.transaction(now)
	return s.tx
}

func (t *txn) addPortal(p pgwire.Portal) {
	if t.portals == nil {
		t.portals = t.onePortal[:0]
	}
	t.portals = append(t.portals, p)
}

// statement starts a statement: READ COMMITTED takes a new cut.
func (t *txn) statement() {
	t.stmtStart = time.Now()
	t.statements++
	t.closeGuards()
	t.s.sequences.statement()
	t.s.catalog.Lock()
	t.s.catalog.snapshot = nil
	t.s.catalog.Unlock()
}

func (t *txn) isolation() string {
	return t.s.gucs.now.isolation
}

// noteRead remembers that a SERIALIZABLE transaction read a table, which has no state when the transaction made it.
func (t *txn) noteRead(st *catalog.TableState) {
	if st == nil || t.isolation() != "serializable" {
		return
	}
	if t.reads == nil {
		t.reads = map[catalog.TableKey]*catalog.TableState{}
	}
	if t.reads[st.Key] == nil {
		t.reads[st.Key] = st
	}
}

// noteRead is the transaction's, if there is one.
func (s *session) noteRead(t *warehouse.TxTable) {
	if s.tx != nil {
		s.tx.noteRead(t.State())
	}
}

// noteReadOf notes the table that a function reads. One at a fixed point of the past counts, too.
func (s *session) noteReadOf(ctx context.Context, h *handle) {
	if s.tx == nil || h.table == nil {
		return
	}
	if t, err := s.table(ctx, h.table); err == nil {
		s.tx.noteRead(t.State())
	}
}

func (t *txn) readOnly() bool {
	if v, ok := t.s.gucs.cur["transaction_read_only"]; ok {
		return v == "on"
	}
	return t.s.gucs.value("default_transaction_read_only") == "on"
}

// pin is the cut that the transaction reads, pinned on first use.
func (t *txn) pin() *catalog.Cut {
	if t.cut == nil {
		t.cut = t.s.pinCut()
	}
	return t.cut
}

// unwritten says that the transaction sees the tables as its cut has them.
func (t *txn) unwritten() bool {
	return t.wh == nil || !t.wh.Changed() && !t.wh.PrivateChanged()
}

// warehouseTx is the transaction of the warehouse, begun on first use.
func (t *txn) warehouseTx() *warehouse.Tx {
	if t.wh == nil {
		t.wh = t.s.gw.warehouse.Begin(context.Background(), warehouse.TxOptions{
			Cut: t.pin(), Actor: t.s.user(), ApplicationName: t.s.gucs.now.application, Private: t.s.private(),
		})
		for i := range t.savepoints {
			// Nothing was written before: every open savepoint is this place.
			t.savepoints[i].mark, t.savepoints[i].hasMark = t.wh.Savepoint(), true
		}
	}
	t.followBranch()
	return t.wh
}

// refreshCut takes a new cut for a statement under READ COMMITTED.
func (t *txn) refreshCut(ctx context.Context) error {
	if t.cut == nil || !t.explicit || !strings.HasPrefix(t.isolation(), "read ") {
		return nil
	}
	_, err := t.moveOn(ctx)
	return err
}

// writable refuses a write in a read-only transaction.
func (t *txn) writable(command string) error {
	if t.readOnly() {
		return pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute %s in a read-only transaction", command)
	}
	if v := t.s.gucs.now.asOf; v != "" {
		return pgerr.Newf(pgerr.ReadOnlySQLTransaction, "cannot execute %s while skade.as_of is set", command).WithHint("RESET skade.as_of reads and writes the present.")
	}
	if err := t.branchAllows(command); err != nil {
		return err
	}
	t.wrote = true
	return nil
}

// endTx commits or rolls back, and leaves the session without a transaction either way.
func (s *session) endTx(ctx context.Context, commit bool) error {
	t := s.tx
	var err error
	if commit {
		err = s.sqlError(ctx, s.holdCursors(ctx))
	}
	if commit && err == nil {
		err = s.sqlError(ctx, s.endTemp(ctx, t))
	}
	if commit && err == nil {
		err = s.gw.hub.room(t.notifies)
	}
	s.closePortals()
	t.closeGuards()
	switch {
	case commit && err == nil:
		err = s.commit(ctx, t)
	case t.wh != nil:
		err = errors.Join(err, t.wh.Rollback())
	}
	ok := commit && err == nil
	s.releaseLocks(false) // only now: whoever waited finds what was committed
	s.tx = nil
	s.pinned.Store(nil)
	s.gucs.end(ok)
	s.act.transaction(time.Time{})
	if ok {
		for _, l := range t.listens {
			if l.on {
				s.gw.hub.listen(s.listener, l.channel)
			} else {
				s.gw.hub.unlisten(s.listener, l.channel)
			}
		}
		s.gw.hub.publish(s.startup.PID, t.notifies)
	}
	return err
}

func (s *session) commit(ctx context.Context, t *txn) error {
	if t.wh == nil {
		return nil
	}
	if !t.wrote {
		return t.wh.Rollback()
	}
	for _, st := range t.reads {
		t.wh.RequireUnchanged(st)
	}
	_, done := s.track("COMMIT", nil, t.wh)
	defer done()
	_, err := t.wh.Commit(ctx)
	return s.sqlError(ctx, err)
}

// closePortals closes the transaction's portals and the cursors that still belong to it.
func (s *session) closePortals() {
	for _, p := range s.tx.portals {
		p.Close()
	}
	for name, c := range s.cursors {
		if c.tx == s.tx {
			s.dropCursor(name)
		}
	}
}

// holdCursors materialises the transaction's cursors WITH HOLD, which outlive it.
func (s *session) holdCursors(ctx context.Context) error {
	for _, c := range s.cursors {
		if c.tx == s.tx && c.hold {
			if err := s.holdCursor(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// transaction runs BEGIN, COMMIT, ROLLBACK and the savepoint statements.
func (s *session) transaction(ctx context.Context, w pgwire.Writer, u *pgsql.Transaction) (string, error) {
	switch u.Op {
	case "begin":
		return s.begin(w, u)
	case "commit", "rollback":
		return s.endBlock(ctx, w, u)
	}
	if !s.tx.explicit {
		name := strings.ToUpper(u.Op)
		if u.Op == "release" {
			name = "RELEASE SAVEPOINT"
		} else if u.Op == "rollback to" {
			name = "ROLLBACK TO SAVEPOINT"
		}
		return "", pgerr.Newf(pgerr.NoActiveSQLTransaction, "%s can only be used in transaction blocks", name)
	}
	t := s.tx
	switch u.Op {
	case "savepoint":
		sp := savepoint{name: u.Savepoint, gucLevel: len(s.gucs.saved), notifies: len(t.notifies), listens: len(t.listens), wrote: t.wrote, locks: s.owner.Mark(), declared: t.declared}
		if t.wh != nil {
			sp.mark, sp.hasMark = t.wh.Savepoint(), true
		}
		s.gucs.begin()
		t.savepoints = append(t.savepoints, sp)
		return "SAVEPOINT", nil
	case "release":
		i := t.find(u.Savepoint)
		if i < 0 {
			return "", noSavepoint(u.Savepoint)
		}
		s.gucs.release(t.savepoints[i].gucLevel)
		t.savepoints = t.savepoints[:i]
		return "RELEASE", nil
	}
	i := t.find(u.Savepoint)
	if i < 0 {
		return "", noSavepoint(u.Savepoint)
	}
	sp := t.savepoints[i]
	s.dropCursorsAfter(sp.declared)
	if sp.hasMark {
		if err := t.wh.RollbackTo(sp.mark); err != nil {
			return "", fmt.Errorf("roll back to savepoint: %w", err)
		}
	}
	s.gucs.rollbackTo(sp.gucLevel)
	t.savepoints = t.savepoints[:i+1]
	t.notifies, t.listens = t.notifies[:sp.notifies], t.listens[:sp.listens]
	t.wrote = sp.wrote
	t.failed = false
	s.owner.ReleaseTo(sp.locks)
	return "ROLLBACK", nil
}

func noSavepoint(name string) error {
	return pgerr.Newf(pgerr.InvalidSavepointSpec, "savepoint \"%s\" does not exist", name)
}

func (t *txn) find(name string) int {
	for i := len(t.savepoints) - 1; i >= 0; i-- {
		if t.savepoints[i].name == name {
			return i
		}
	}
	return -1
}

func (s *session) begin(w pgwire.Writer, u *pgsql.Transaction) (string, error) {
	if s.tx != nil && s.tx.explicit {
		w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.ActiveSQLTransaction, Message: "there is already a transaction in progress"})
	}
	if s.tx == nil {
		s.openTx(true)
	}
	s.tx.explicit = true
	if err := s.setModes(&u.Modes); err != nil {
		return "", err
	}
	return "BEGIN", nil
}

// setModes applies transaction modes to the open transaction.
func (s *session) setModes(m *pgsql.TransactionModes) error {
	if m.Isolation != "" {
		if (s.tx.cut != nil || s.tx.queried) && m.Isolation != s.tx.isolation() {
			return pgerr.New(pgerr.ActiveSQLTransaction, "SET TRANSACTION ISOLATION LEVEL must be called before any query")
		}
		if err := s.gucs.set("transaction_isolation", m.Isolation, true); err != nil {
			return err
		}
	}
	if m.ReadOnly != nil {
		if !*m.ReadOnly && s.tx.readOnly() && (s.tx.cut != nil || s.tx.queried) {
			return pgerr.New(pgerr.ActiveSQLTransaction, "transaction read-write mode must be set before any query")
		}
		if err := s.gucs.set("transaction_read_only", onOff(*m.ReadOnly), true); err != nil {
			return err
		}
	}
	if m.Deferrable != nil {
		return s.gucs.set("transaction_deferrable", onOff(*m.Deferrable), true)
	}
	return nil
}

func (s *session) endBlock(ctx context.Context, w pgwire.Writer, u *pgsql.Transaction) (string, error) {
	switch {
	case !s.tx.explicit && u.Chain:
		return "", pgerr.Newf(pgerr.NoActiveSQLTransaction, "%s AND CHAIN can only be used in transaction blocks", strings.ToUpper(u.Op))
	case !s.tx.explicit:
		w.Notice(&pgerr.Error{Severity: pgerr.SevWarning, Code: pgerr.NoActiveSQLTransaction, Message: "there is no transaction in progress"})
	}
	iso, ro := s.tx.isolation(), s.tx.readOnly()
	commit := u.Op == "commit" && !s.tx.failed
	if err := s.endTx(ctx, commit); err != nil {
		return "", err
	}
	if u.Chain {
		s.openTx(true)
		if err := s.setModes(&pgsql.TransactionModes{Isolation: iso, ReadOnly: &ro}); err != nil {
			return "", err
		}
	}
	if commit {
		return "COMMIT", nil
	}
	return "ROLLBACK", nil
}
