package catalog

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/table"
)

// Unchanged is a condition among a request's changes: nobody has changed the rows of a table since the state that was read, and it is
// still there under the same schema. Compactions do not count. It stands before the request's own changes of the table;
// *ChangedError when it does not hold.
type Unchanged struct{ Since *TableState }

// ChangedError says which table an Unchanged condition failed on. It wraps ErrConflict.
type ChangedError struct {
	Ident  table.Identifier // as it was read
	Reason string           // what happened to it
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%v: table %s %s", ErrConflict, dotted(e.Ident), e.Reason)
}

func (e *ChangedError) Unwrap() error { return ErrConflict }

func (ch Unchanged) apply(ctx context.Context, a *attempt) error {
	old := ch.Since
	t, ok := a.state.byKey.Get(string(old.Key))
	switch {
	case !ok:
		return &ChangedError{Ident: old.Ident, Reason: "was dropped"}
	case t.ChangedSeq == old.ChangedSeq:
		return nil
	case t.schemaID != old.schemaID:
		return &ChangedError{Ident: old.Ident, Reason: "was altered"}
	}
	changed := &ChangedError{Ident: old.Ident, Reason: "was changed"}
	now, was := t.snapshotID, old.snapshotID
	switch {
	case now == nil && was == nil:
		return nil
	case now == nil || was == nil:
		return changed
	case *now == *was:
		return nil
	}
	meta, _, err := a.base(ctx, t)
	if err != nil {
		return err
	}
	for id := *now; id != *was; {
		s := meta.SnapshotByID(id)
		if s == nil || s.Summary == nil || s.Summary.Operation != table.OpReplace || s.ParentSnapshotID == nil {
			return changed
		}
		id = *s.ParentSnapshotID
	}
	return nil
}
