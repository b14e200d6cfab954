package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/lockmgr"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

// lockWait is the error of a statement's body that met a row which another session has locked, or which is not any more as the
// statement's cut shows it. The body has left no trace; settled waits and runs it again.
type lockWait struct {
	schema, table string
	rel           uint32
	// all asks for all rows, else key for one; stale asks for no lock, but for a newer cut.
	all, stale bool
	key        string
	mode       lockmgr.Mode
}

func (e *lockWait) Error() string { return "row is locked or has changed" }

// Unwrap is what a client sees that cannot have the statement run again.
func (e *lockWait) Unwrap() error {
	p := pgerr.New(pgerr.SerializationFailure, "could not serialize access due to concurrent update").
		WithDetail("A row of table \"%s.%s\" was changed by a transaction that committed since this one's snapshot was taken.", e.schema, e.table).
		WithHint("Retry the transaction.")
	p.Schema, p.Table = e.schema, e.table
	return p
}

func newLockWait(t *warehouse.TxTable) *lockWait {
	id := t.Ident()
	return &lockWait{schema: schemaOf(id), table: id[len(id)-1], rel: tableOID(t)}
}

// settled runs a statement's body until it has every row lock that it needs. Waits are made here, where no query runs: a body that
// waited itself would keep others from running theirs. p is the statement, nil when it needs no analysis.
func (s *session) settled(ctx context.Context, p *prepared, body func() error) error {
	mark := s.owner.Mark()
	for n := 1; ; n++ {
		err := body()
		var w *lockWait
		if !errors.As(err, &w) {
			return err
		}
		if n == redoLimit || w.stale && !s.tx.movable() {
			return err
		}
		if !w.stale {
			if err := s.await(ctx, w, mark, n); err != nil {
				return err
			}
		}
		moved, ferr := s.freshen(ctx)
		if ferr != nil {
			return ferr
		}
		if moved && p != nil {
			if err := s.refresh(ctx, p); err != nil {
				return err
			}
		}
		if w.stale && !s.freshBase(ctx, w) {
			return err
		}
	}
}

// freshBase reports whether the transaction reads the newest state of the table: it may be held back by its own writes.
func (s *session) freshBase(ctx context.Context, w *lockWait) bool {
	st, ok := s.gw.catalog.Cut().TableByOID(w.rel)
	if !ok {
		return false
	}
	t, err := s.table(ctx, st.Ident)
	return err == nil && t.State() != nil && t.State().ChangedSeq == st.ChangedSeq
}

// await waits for the lock that a body missed. A statement that is a transaction of its own lets go of its other row locks first, and
// asks for all rows when single ones keep it waiting: two such statements must not deadlock.
func (s *session) await(ctx context.Context, w *lockWait, mark lockmgr.Mark, n int) error {
	if s.tx.explicit {
		return s.lockError(s.acquire(ctx, w), "")
	}
	held := s.owner.Mark()
	if n > 2 {
		w.all = true
	}
	if held > mark {
		s.owner.ReleaseTo(mark)
	}
	err := s.acquire(ctx, w)
	var d *lockmgr.DeadlockError
	if errors.As(err, &d) && !w.all {
		w.all = true
		s.owner.ReleaseTo(mark)
		err = s.acquire(ctx, w)
	}
	return s.lockError(err, "")
}

func (s *session) acquire(ctx context.Context, w *lockWait) error {
	var err error
	if w.all {
		_, err = s.owner.AcquireRows(ctx, w.rel, w.mode, s.lockOptions())
	} else {
		_, err = s.owner.AcquireRow(ctx, w.rel, w.key, w.mode, s.lockOptions())
	}
	return err
}

// lockWrites takes the locks of rows that a statement is about to update (news in the order of olds) or delete (news nil). Rows
// that the transaction itself wrote need none. *lockWait when one cannot be had at once or is stale.
func (s *session) lockWrites(ctx context.Context, t *warehouse.TxTable, olds []warehouse.RowRef, news arrow.RecordBatch) error {
	if t.State() == nil || len(olds) == 0 {
		return nil
	}
	oid := tableOID(t)
	if s.owner.LocksAllRows(oid, lockmgr.WriteKey) {
		return nil
	}
	if len(olds) > maxWriteLocks || s.tx.strong && len(olds) > maxStrongLocks {
		return s.lockAllRows(ctx, t, lockmgr.WriteKey)
	}
	keys, err := s.rowKeys(ctx, t, olds)
	if err != nil {
		return err
	}
	after := make([]string, len(olds))
	if news != nil && len(t.Schema().IdentifierFieldIDs) > 0 {
		cols, _ := keyColumnsOf(t.Schema())
		for i := range after {
			after[i] = keyText(news, cols, i)
		}
	} else if news != nil {
		after = keys // without a key nothing refers to the row
	}
	order := make([]int, 0, len(keys))
	for i, k := range keys {
		if k != "" {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	for _, i := range order {
		mode := lockmgr.Write
		if after[i] != keys[i] {
			mode = lockmgr.WriteKey
		}
		if err := s.lockWrite(ctx, t, oid, keys[i], mode); err != nil {
			return err
		}
	}
	return s.checkStale(ctx, t, rowsOf(olds))
}

// lockHits locks the rows that ON CONFLICT DO UPDATE found, before it asks whether and how it updates them, and returns their
// keys; rec has the proposed rows.
func (s *session) lockHits(ctx context.Context, t *warehouse.TxTable, rec arrow.RecordBatch, hits []warehouse.KeyHit) ([]string, error) {
	cols, _ := keyColumnsOf(t.Schema())
	keys := make([]string, len(hits))
	refs := make([]warehouse.RowRef, len(hits))
	for i, h := range hits {
		keys[i], refs[i] = keyText(rec, cols, h.Ordinal), h.Row
	}
	oid := tableOID(t)
	if t.State() == nil || s.owner.LocksAllRows(oid, lockmgr.Write) {
		return keys, nil
	}
	if len(hits) > maxWriteLocks {
		return keys, s.lockAllRows(ctx, t, lockmgr.Write)
	}
	for _, k := range slices.Sorted(slices.Values(keys)) {
		if err := s.lockWrite(ctx, t, oid, k, lockmgr.Write); err != nil {
			return nil, err
		}
	}
	return keys, s.checkStale(ctx, t, rowsOf(refs))
}

// sameKeys reports whether rows have these keys.
func sameKeys(t *warehouse.TxTable, rec arrow.RecordBatch, keys []string) bool {
	cols, _ := keyColumnsOf(t.Schema())
	for i, k := range keys {
		if keyText(rec, cols, i) != k {
			return false
		}
	}
	return true
}

// maxWriteLocks bounds the rows that one batch of a statement locks one by one, maxStrongLocks when it waits its turn for each.
const (
	maxWriteLocks  = lockmgr.MaxRows
	maxStrongLocks = 64
)

// strongMode is what a writer that waits its turn holds, so that others of its kind wait for it.
func strongMode(m lockmgr.Mode) lockmgr.Mode {
	if m == lockmgr.WriteKey {
		return lockmgr.ForUpdate
	}
	return lockmgr.ForNoKeyUpdate
}

// lockWrite locks one row for a writer without waiting. A statement that is a transaction of its own becomes a strong one when it
// has to wait, or has lost a race: those take turns.
func (s *session) lockWrite(ctx context.Context, t *warehouse.TxTable, oid uint32, key string, mode lockmgr.Mode) error {
	if s.tx.strong {
		mode = strongMode(mode)
	}
	opt := lockmgr.Options{NoWait: true}
	_, err := s.owner.AcquireRow(ctx, oid, key, mode, opt)
	if !errors.Is(err, lockmgr.ErrNotAvailable) {
		return err
	}
	w := newLockWait(t)
	w.key, w.mode = key, mode
	if !s.tx.explicit && !s.tx.strong {
		s.tx.strong = true
		w.mode = strongMode(mode)
	}
	return w
}

// lockAllRows locks every row of a table, now or by a *lockWait.
func (s *session) lockAllRows(ctx context.Context, t *warehouse.TxTable, mode lockmgr.Mode) error {
	if t.State() == nil {
		return nil
	}
	if s.tx.strong {
		mode = strongMode(mode)
	}
	_, err := s.owner.AcquireRows(ctx, tableOID(t), mode, lockmgr.Options{NoWait: true})
	if errors.Is(err, lockmgr.ErrNotAvailable) {
		w := newLockWait(t)
		w.all, w.mode = true, mode
		return w
	}
	return err
}

// checkStale returns a *lockWait when one of the rows is not live any more in the newest commit.
func (s *session) checkStale(ctx context.Context, t *warehouse.TxTable, rows fileRows) error {
	base := t.State()
	newest, ok := s.gw.catalog.Cut().TableByKey(base.Key)
	if ok && newest.ChangedSeq == base.ChangedSeq || t.Undropped() {
		return nil
	}
	w := newLockWait(t)
	w.stale = true
	if !ok {
		return w
	}
	live, err := t.StillLive(ctx, newest, rows)
	if err != nil || live {
		return err
	}
	return w
}

// rowsOf gathers rows by file.
func rowsOf(refs []warehouse.RowRef) fileRows {
	out := fileRows{}
	for _, r := range refs {
		out.add(r)
	}
	return out
}

// rowKeys names rows for the lock manager: by key, or by place in a table without one. Rows of the transaction itself get "".
func (s *session) rowKeys(ctx context.Context, t *warehouse.TxTable, refs []warehouse.RowRef) ([]string, error) {
	out := make([]string, len(refs))
	var hits []liveset.Hit
	keyed := len(t.Schema().IdentifierFieldIDs) > 0
	for i, r := range refs {
		f := t.BaseSet().File(r.Path)
		switch {
		case f == nil:
		case keyed:
			hits = append(hits, liveset.Hit{KeyOrdinal: i, File: f, Pos: r.Pos})
		default:
			out[i] = path.Base(r.Path) + ":" + strconv.FormatUint(uint64(r.Pos), 10)
		}
	}
	if len(hits) == 0 {
		return out, nil
	}
	_, sc := keyColumnsOf(t.Schema())
	rec, err := s.gw.live.ReadHits(ctx, t.Ref(), sc, liveset.MetaColumns{}, hits)
	if err != nil {
		return nil, fmt.Errorf("keys of rows: %w", err)
	}
	defer rec.Release()
	cols := make([]int, rec.NumCols())
	for i := range cols {
		cols[i] = i
	}
	for i, h := range hits {
		out[h.KeyOrdinal] = keyText(rec, cols, i)
	}
	return out, nil
}

// keyColumnsOf are the key's columns in the schema's order: their places, and a schema of them alone.
func keyColumnsOf(sc *iceberg.Schema) ([]int, *iceberg.Schema) {
	var cols []int
	var fields []iceberg.NestedField
	for i, f := range sc.Fields() {
		if slices.Contains(sc.IdentifierFieldIDs, f.ID) {
			cols, fields = append(cols, i), append(fields, f)
		}
	}
	return cols, iceberg.NewSchema(0, fields...)
}

// keyText is a key as text, which tells different keys apart.
func keyText(rec arrow.RecordBatch, cols []int, row int) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, c := range cols {
		if i > 0 {
			b.WriteString(", ")
		}
		switch a := rec.Column(c).(type) {
		case *array.Int32:
			b.WriteString(strconv.FormatInt(int64(a.Value(row)), 10))
		case *array.Int64:
			b.WriteString(strconv.FormatInt(a.Value(row), 10))
		default:
			b.WriteString(strconv.Quote(a.ValueStr(row)))
		}
	}
	b.WriteByte(')')
	return b.String()
}
