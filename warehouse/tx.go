package warehouse

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/liveset"
)

// TxOptions opens a transaction.
type TxOptions struct {
	Cut             *catalog.Cut // what it reads; nil is the current cut
	TxID            string       // empty: a fresh UUID
	Actor           string
	ApplicationName string
	Context         []byte // opaque, at most 64 KiB, stored with the commit
	ReadOnly        bool
	Private         *Private // the session's own tables; nil: it has none
}

// Tx is one transaction: a pinned cut plus its own buffered changes. It ends with Commit or Rollback, once.
type Tx struct {
	w      *Warehouse
	opts   TxOptions
	cut    *catalog.Cut
	names  names
	branch string // "" is main
	ops    []op   // definitions in the order they were asked for
	marks  []*mark
	// requires are conditions on tables that were read.
	requires []catalog.Change
	mu       sync.Mutex              // guards files and writing
	writing  int                     // data files being written
	files    []parquetio.WrittenFile // every data file written, to remove those that no snapshot took
	extra    []string                // other files of the attempt
	done     bool

	private        *Private // the namespace that only this session has
	privateBegin   Mark     // where the transaction began in it
	privateChanges int64
	side           *Private // this is that side's transaction
	// changes and definitions count what a private side's transaction has changed: anything, and what is not rows.
	changes, definitions atomic.Int64
}

// Begin opens a transaction on opts.Cut (nil: the catalog's current cut).
func (w *Warehouse) Begin(_ context.Context, opts TxOptions) *Tx {
	if opts.Cut == nil {
		opts.Cut = w.opts.Catalog.Cut()
	}
	if opts.TxID == "" {
		opts.TxID = uuid.NewString()
	}
	tx := &Tx{w: w, opts: opts, cut: opts.Cut, names: newNames()}
	if opts.Private != nil {
		tx.Attach(opts.Private)
	}
	return tx
}

// ID is the transaction id its commit will carry.
func (tx *Tx) ID() string { return tx.opts.TxID }

// Cut is what the transaction reads.
func (tx *Tx) Cut() *catalog.Cut { return tx.cut }

// SetContext replaces the opaque bytes stored with the commit.
func (tx *Tx) SetContext(b []byte) { tx.opts.Context = b }

// ReadOnly says whether writes are refused.
func (tx *Tx) ReadOnly() bool { return tx.opts.ReadOnly }

// Changed says whether Commit would commit something, apart from the private side.
func (tx *Tx) Changed() bool {
	if len(tx.ops) > 0 {
		return true
	}
	for _, t := range tx.names.tables {
		if t.altered() {
			return true
		}
	}
	return false
}

// addFile notes a data file that was written.
func (tx *Tx) addFile(f parquetio.WrittenFile) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.files = append(tx.files, f)
}

// Written counts the data files that a transaction has finished, including those that no snapshot will take.
type Written struct {
	Files, Rows, Bytes int64
	Writing            bool // a data file is being written
}

// Written may be called from any goroutine while the transaction is at work.
func (tx *Tx) Written() Written {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	w := Written{Files: int64(len(tx.files)), Writing: tx.writing > 0}
	for _, f := range tx.files {
		w.Rows += f.DataFile.Count()
		w.Bytes += f.DataFile.FileSizeBytes()
	}
	return w
}

// writes notes that data files are being written (1) or are done (-1).
func (tx *Tx) writes(n int) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.writing += n
}

func (tx *Tx) usable() error {
	if tx.done {
		return ErrTxDone
	}
	if tx.w.closed.Load() {
		return ErrClosed
	}
	return nil
}

// writable is for what changes definitions.
func (tx *Tx) writable() error {
	if err := tx.rowsWritable(); err != nil {
		return err
	}
	tx.definitions.Add(1)
	return nil
}

func (tx *Tx) rowsWritable() error {
	if err := tx.usable(); err != nil {
		return err
	}
	if tx.opts.ReadOnly {
		return ErrReadOnly
	}
	tx.changes.Add(1)
	return nil
}

// Mark is a savepoint. It is valid until the transaction ends or an earlier mark is rolled back to.
type Mark struct{ m, private *mark }

type mark struct {
	names  names
	branch string
	ops    []op
	states map[*TxTable]*state
	shapes map[*TxTable]shape
	seq    int
}

// shape is what AlterTable, RenameTable and changes of refs change in a TxTable.
type shape struct {
	ident   []string
	alters  int
	meta    tableMeta
	refs    int
	head    head
	baseSet *liveset.Set
}

// Savepoint marks the present. It costs a pointer per table written; the first write to a table after it copies the
// table's bookkeeping, not its rows.
func (tx *Tx) Savepoint() Mark {
	m := &mark{names: tx.names.clone(), branch: tx.branch, ops: tx.ops, states: map[*TxTable]*state{}, shapes: map[*TxTable]shape{}, seq: len(tx.marks)}
	for _, t := range tx.names.tables {
		t.st.frozen = true
		m.states[t] = t.st
		m.shapes[t] = shape{t.ident, len(t.alters), t.tableMeta, len(t.refs), t.head, t.baseSet}
	}
	tx.marks = append(tx.marks, m)
	mk := Mark{m: m}
	if tx.private != nil {
		mk.private = tx.private.tx.Savepoint().m
	}
	return mk
}

// RollbackTo undoes everything after the mark, which stays valid. Later marks are gone.
func (tx *Tx) RollbackTo(mk Mark) error {
	if err := tx.usable(); err != nil {
		return err
	}
	m := mk.m
	if m == nil || m.seq >= len(tx.marks) || tx.marks[m.seq] != m {
		return ErrNoMark
	}
	if tx.private != nil {
		there := tx.privateBegin // it came after the mark
		if mk.private != nil {
			there = Mark{m: mk.private}
		}
		if err := tx.private.tx.RollbackTo(there); err != nil {
			return err
		}
	}
	tx.changes.Add(1)
	tx.definitions.Add(1)
	tx.marks = tx.marks[:m.seq+1]
	later := tx.names.tables
	tx.names, tx.ops, tx.branch = m.names.clone(), m.ops, m.branch
	for key, t := range later {
		if _, ok := m.states[t]; !ok && t.base != nil && t.sessionBranch == tx.branch && !t.undropped { // opened after the mark: back to the base
			tx.names.tables[key] = t
		}
	}
	for _, t := range tx.names.tables {
		st, sh := m.states[t], m.shapes[t]
		if st == nil {
			st, sh = newState(len(t.opened.keyIDs) > 0), shape{ident: t.base.Ident, meta: t.opened, head: t.openedHead, baseSet: t.openedSet}
		}
		t.mu.Lock()
		t.rollbackLocked(st, sh)
		t.mu.Unlock()
	}
	return nil
}

// Release forgets a mark and the later ones; their changes stay.
func (tx *Tx) Release(mk Mark) error {
	m := mk.m
	if m == nil || m.seq >= len(tx.marks) || tx.marks[m.seq] != m {
		return ErrNoMark
	}
	tx.marks = tx.marks[:m.seq]
	if tx.private != nil && mk.private != nil {
		return tx.private.tx.Release(Mark{m: mk.private})
	}
	return nil
}

// rollbackLocked makes st the table's state again. Rows that were logged after it are cut off.
func (t *TxTable) rollbackLocked(st *state, sh shape) {
	t.ident, t.alters, t.tableMeta = sh.ident, t.alters[:sh.alters], sh.meta
	if t.refs = t.refs[:sh.refs]; t.head.moved || sh.head.moved { // else it may stand on a newer cut by now
		t.head, t.baseSet = sh.head, sh.baseSet
	}
	t.st, t.ownSet, t.liveSet = st, nil, nil
	if st.log.rows > st.rows || (t.keyed() && st.log.keys == nil) {
		cut := st.log.prefix(st.rows)
		for _, m := range t.tx.marks {
			if s := m.states[t]; s != nil && s != st && s.log == st.log {
				s.log = cut.prefix(s.rows)
			}
		}
		st.log = cut
		t.rekeyLocked()
	}
}

// Rollback ends the transaction and removes its files. It is safe to call after Commit.
func (tx *Tx) Rollback() error {
	if tx.done {
		return nil
	}
	tx.done = true
	tx.endPrivate(context.Background(), false)
	tx.w.removeFiles(tx.files, nil)
	tx.w.removePaths(tx.extra)
	tx.release()
	return nil
}

func (tx *Tx) release() {
	tx.marks, tx.files, tx.extra, tx.ops = nil, nil, nil, nil
	tx.names = newNames()
}

// names are the transaction's view of definitions: an overlay on its cut.
type names struct {
	tables     map[catalog.TableKey]*TxTable // opened or created
	byIdent    map[string]catalog.TableKey   // names this transaction gave; "" is a name it took away
	namespaces map[string]*namespace         // nil: dropped
	objects    map[string]*catalog.Object    // nil: dropped
}

func newNames() names {
	return names{map[catalog.TableKey]*TxTable{}, map[string]catalog.TableKey{}, map[string]*namespace{}, map[string]*catalog.Object{}}
}

func (n names) clone() names {
	return names{maps.Clone(n.tables), maps.Clone(n.byIdent), maps.Clone(n.namespaces), maps.Clone(n.objects)}
}
