package warehouse

import (
	"context"
	"fmt"

	icetable "github.com/apache/iceberg-go/table"
)

// Exclusive makes Commit ErrConflict when the table's rows are not those of the cut any more: a change of the definition looked at
// every row (a new NOT NULL, a rewritten column), and rows that others wrote meanwhile were not among them.
func (t *TxTable) Exclusive(ctx context.Context) error {
	if err := t.writable(); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	if err := t.writableLocked(ctx); err != nil {
		return err
	}
	t.st.exclusive = true
	return nil
}

// checkExclusive is Exclusive in the serial point.
func (c *tableCommit) checkExclusive(base icetable.Metadata) error {
	if !c.t.st.exclusive || c.t.base == nil {
		return nil
	}
	head, err := c.branchHead(base)
	if err != nil {
		return err
	}
	id, had := c.t.baseSet.SnapshotID()
	if had != (head != nil) || had && head.SnapshotID != id {
		return fmt.Errorf("%w: rows changed while the table was altered", ErrConflict)
	}
	return nil
}
