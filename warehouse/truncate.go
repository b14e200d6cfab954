package warehouse

import (
	"context"
)

// Truncate removes every row: those at the cut, those of this transaction and, at Commit, those committed meanwhile, as
// PostgreSQL's TRUNCATE does once it has its lock. It returns the number of live rows that went.
func (t *TxTable) Truncate(ctx context.Context) (int64, error) { return t.truncate(ctx, false) }

// Overwrite is Truncate under snapshot isolation: Commit is ErrConflict when the table changed since the cut. The rows
// appended after it replace the table's content in one overwrite snapshot.
func (t *TxTable) Overwrite(ctx context.Context) (int64, error) { return t.truncate(ctx, true) }

// Clear removes every row of a private table, without looking at them. It says whether there was anything.
func (t *TxTable) Clear() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.st.changed() {
		return false
	}
	t.tx.changes.Add(1)
	t.st, t.ownSet, t.liveSet = newState(t.keyed()), nil, nil
	return true
}

func (t *TxTable) truncate(ctx context.Context, strict bool) (int64, error) {
	if err := t.writable(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	set, err := t.liveLocked(ctx)
	if err != nil {
		return 0, err
	}
	n := set.Rows()
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	st := newState(t.keyed())
	st.truncated, st.strict, st.exclusive = true, strict || t.st.strict, t.st.exclusive
	t.st, t.ownSet, t.liveSet = st, nil, nil
	return n, nil
}
