package warehouse

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
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

// writeOrder is the table's sort order as data files can be written in: columns as they are. An order by transforms, which other writers may
// have set, is none: files then say that they are unsorted.
func writeOrder(sc *iceberg.Schema, so icetable.SortOrder) (fields []parquetio.OrderField, id int) {
	for _, f := range so.Fields() {
		if _, plain := f.Transform.(iceberg.IdentityTransform); !plain || len(f.SourceIDs) != 1 {
			return nil, 0
		}
		if _, err := keyindex.ColumnsOf(sc, f.SourceIDs); err != nil {
			return nil, 0
		}
		if _, _, err := fieldsOf(sc, f.SourceIDs); err != nil {
			return nil, 0
		}
		fields = append(fields, parquetio.OrderField{ID: f.SourceIDs[0], Desc: f.Direction == icetable.SortDESC, NullsLast: f.NullOrder == icetable.NullsLast})
	}
	return fields, so.OrderID()
}
