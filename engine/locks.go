package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// databaseOID is the one database's.
const databaseOID = 16383

// lockOptions are how the session waits for locks.
func (s *session) lockOptions() lockmgr.Options {
	return lockmgr.Options{Timeout: s.gucs.duration("lock_timeout"), Deadlock: s.gucs.duration("deadlock_timeout"), Waits: s.act.waits}
}

// lockError is a lock request's error as clients see it. busy is the message for a lock that must not be waited for.
func (s *session) lockError(err error, busy string) error {
	var d *lockmgr.DeadlockError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lockmgr.ErrNotAvailable):
		return pgerr.New(pgerr.LockNotAvailable, busy)
	case errors.Is(err, lockmgr.ErrTimeout):
		return pgerr.New(pgerr.LockNotAvailable, "canceling statement due to lock timeout")
	case errors.As(err, &d):
		lines := make([]string, len(d.Edges))
		for i, e := range d.Edges {
			lines[i] = fmt.Sprintf("Process %d waits for %s on %s; blocked by process %d.", e.Waiter, e.Mode, describeTag(e.Tag), e.Blocker)
		}
		return pgerr.New(pgerr.DeadlockDetected, "deadlock detected").WithDetail("%s", strings.Join(lines, "\n"))
	}
	return err
}

// describeTag names what is locked, in PostgreSQL's words.
func describeTag(t lockmgr.Tag) string {
	switch t.Kind {
	case lockmgr.Relation:
		return fmt.Sprintf("relation %d of database %d", t.Rel, databaseOID)
	case lockmgr.Rows:
		return fmt.Sprintf("all rows of relation %d of database %d", t.Rel, databaseOID)
	case lockmgr.Row:
		return fmt.Sprintf("row %s of relation %d of database %d", t.Key, t.Rel, databaseOID)
	}
	return fmt.Sprintf("advisory lock [%d,%d,%d,%d]", databaseOID, t.Class, t.Object, t.Sub)
}

var lockTypes = map[lockmgr.Kind]string{lockmgr.Relation: "relation", lockmgr.Rows: "tuple", lockmgr.Row: "tuple", lockmgr.Advisory: "advisory"}

// waits notes that the session waits for a lock; nil when it goes on.
func (a *activity) waits(tag *lockmgr.Tag) {
	a.Lock()
	defer a.Unlock()
	a.b.WaitEventType, a.b.WaitEvent = "", ""
	if tag != nil {
		a.b.WaitEventType, a.b.WaitEvent = "Lock", lockTypes[tag.Kind]
	}
}

// Locks lists the lock manager's locks, and for every open transaction the lock on its own virtual id that PostgreSQL shows.
func (v *catalogView) Locks() []pgcatalog.Lock {
	var out []pgcatalog.Lock
	for _, b := range v.s.gw.activity() {
		if !b.XactStart.IsZero() {
			id := fmt.Sprintf("%d/1", b.PID)
			out = append(out, pgcatalog.Lock{LockType: "virtualxid", VirtualXID: id, PID: b.PID, Mode: lockmgr.Exclusive.String(), Granted: true})
		}
	}
	for _, l := range v.s.gw.locks.Locks() {
		row := pgcatalog.Lock{LockType: lockTypes[l.Tag.Kind], Database: databaseOID, Relation: l.Tag.Rel, PID: l.PID, Mode: l.Mode.String(), Granted: l.Granted, WaitStart: l.Since}
		if l.Tag.Kind == lockmgr.Advisory {
			row.Advisory, row.ClassID, row.ObjID, row.ObjSubID = true, l.Tag.Class, l.Tag.Object, l.Tag.Sub
		}
		out = append(out, row)
	}
	return out
}

// Blockers implements pgcatalog.Session.
func (v *catalogView) Blockers(pid int32) []int32 { return v.s.gw.locks.Blockers(pid) }

// lockTables runs LOCK TABLE. It pins no cut: as in PostgreSQL, a transaction that begins with LOCK TABLE reads what is there once
// it has the lock.
func (s *session) lockTables(ctx context.Context, u *pgsql.Lock) error {
	if !s.tx.explicit {
		return pgerr.New(pgerr.NoActiveSQLTransaction, "LOCK TABLE can only be used in transaction blocks")
	}
	mode := lockmgr.Mode(u.Mode)
	if s.tx.cut == nil {
		defer s.tx.unpin()
	}
	opt := s.lockOptions()
	opt.NoWait = u.NoWait
	for _, n := range u.Tables {
		n.Loc = 0 // PostgreSQL gives no position here
		t, view, err := s.findRelation(ctx, n)
		switch {
		case err != nil:
			return err
		case view != nil:
			err = s.lockView(ctx, n, mode, opt)
		case t == nil:
			err = undefinedTable(n)
		default:
			_, err = s.lockTable(ctx, t, mode, opt)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lockView locks the tables that a view reads.
func (s *session) lockView(ctx context.Context, n pgsql.QName, mode lockmgr.Mode, opt lockmgr.Options) error {
	name := pgsql.QuoteIdent(n.Name)
	if n.Schema != "" {
		name = pgsql.QuoteIdent(n.Schema) + "." + name
	}
	stmts, err := pgsql.Parse("TABLE " + name)
	if err != nil {
		return err
	}
	q, err := pgsql.Analyze(stmts[0], &resolver{ctx: ctx, s: s}, nil)
	if err != nil {
		return err
	}
	for _, use := range q.Relations {
		if use.Relation.Kind != pgsql.Table {
			continue
		}
		t, err := s.table(ctx, use.Relation.Handle.(*handle).table)
		if err != nil {
			return err
		}
		if _, err := s.lockTable(ctx, t, mode, opt); err != nil {
			return err
		}
	}
	return nil
}

// unpin forgets the transaction's cut, with which nothing was read or written yet.
func (t *txn) unpin() {
	if t.cut == nil || !t.unwritten() {
		return
	}
	if t.wh != nil {
		if err := t.wh.Rollback(); err != nil {
			t.s.gw.log.Error().Err(err).Msg("unpin a cut")
		}
	}
	t.cut, t.wh = nil, nil
	t.s.pinned.Store(nil)
	for i := range t.savepoints {
		t.savepoints[i].hasMark = false
	}
}

// lockTable takes a lock on a stored table. A table that the transaction created needs none: nobody else sees it.
func (s *session) lockTable(ctx context.Context, t *warehouse.TxTable, mode lockmgr.Mode, opt lockmgr.Options) (waited bool, err error) {
	if t.State() == nil {
		return false, nil
	}
	waited, err = s.owner.Acquire(ctx, lockmgr.RelationTag(tableOID(t)), mode, opt)
	ident := t.Ident()
	return waited, s.lockError(err, "could not obtain lock on relation \""+ident[len(ident)-1]+"\"")
}

// lockForWrite is what INSERT, UPDATE, DELETE and COPY take before they look at their table. After a wait they look again: what
// they were analysed with may be old. It returns the table.
func (s *session) lockForWrite(ctx context.Context, p *prepared, target *pgsql.Relation) (*warehouse.TxTable, error) {
	t, err := s.table(ctx, target.Handle.(*handle).table)
	if err != nil {
		return nil, err
	}
	waited, err := s.lockTable(ctx, t, lockmgr.RowExclusive, s.lockOptions())
	if err != nil || !waited {
		return t, err
	}
	if moved, err := s.freshen(ctx); err != nil || !moved {
		return t, err
	}
	if p != nil {
		if err := s.refresh(ctx, p); err != nil {
			return nil, err
		}
	}
	return s.table(ctx, target.Handle.(*handle).table)
}

// freshen moves the transaction to the newest cut when no earlier statement has seen its present one, or READ COMMITTED allows
// it. It reports whether the cut may have moved.
func (s *session) freshen(ctx context.Context) (bool, error) {
	t := s.tx
	if !t.movable() || t.cut == nil {
		return false, nil
	}
	if moved, err := t.moveOn(ctx); err != nil || !moved {
		return false, err
	}
	s.catalog.Lock()
	s.catalog.snapshot = nil
	s.catalog.Unlock()
	return true, nil
}

// movable reports whether the running statement may read a newer cut than the one it began with.
func (t *txn) movable() bool {
	return strings.HasPrefix(t.isolation(), "read ") || !t.explicit && t.statements <= 1
}

// awaitReadable makes a reader wait while a table of its query is locked in ACCESS EXCLUSIVE MODE. With no such lock anywhere it costs
// one atomic load; the reader holds nothing afterwards.
func (s *session) awaitReadable(ctx context.Context, p *prepared) error {
	if !s.gw.locks.Barred() {
		return nil
	}
	mark := s.owner.Mark()
	defer s.owner.ReleaseTo(mark)
	any := false
	for _, use := range p.query.Relations {
		if use.Relation.Kind != pgsql.Table {
			continue
		}
		waited, err := s.owner.Acquire(ctx, lockmgr.RelationTag(use.Relation.OID), lockmgr.AccessShare, s.lockOptions())
		if err != nil {
			return s.lockError(err, "")
		}
		any = any || waited
	}
	if !any {
		return nil
	}
	if moved, err := s.freshen(ctx); err != nil || !moved {
		return err
	}
	return s.refresh(ctx, p)
}

// releaseLocks gives back the transaction's locks; a savepoint's error keeps those taken before it.
func (s *session) releaseLocks(failed bool) {
	var mark lockmgr.Mark
	if n := len(s.tx.savepoints); failed && n > 0 {
		mark = s.tx.savepoints[n-1].locks
	}
	s.owner.ReleaseTo(mark)
}

// lockForVacuum takes the lock that VACUUM takes, until release.
func (s *session) lockForVacuum(ctx context.Context, ident table.Identifier) (release func(), err error) {
	mark := s.owner.Mark()
	if state, err := s.gw.catalog.Cut().Table(ident); err == nil {
		if _, err := s.owner.Acquire(ctx, lockmgr.RelationTag(state.OID), lockmgr.ShareUpdateExclusive, s.lockOptions()); err != nil {
			return nil, s.lockError(err, "")
		}
	}
	return func() { s.owner.ReleaseTo(mark) }, nil
}
