package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// ConsumerCursor is how far a consumer has come with a table: a value to store next to what was consumed, in the same transaction.
type ConsumerCursor struct {
	// Table is the table's name when the cursor was made.
	Table table.Identifier
	// Key tells the table from a later one of its name, and finds it under a new one. Empty for a consumer that has read nothing yet.
	Key catalog.TableKey
	// SnapshotID is the head of the state that was consumed, nil for an empty one; CommitSeq its commit, 0 when the state predates the catalog.
	SnapshotID *int64
	CommitSeq  uint64
}

// After returns the cursor behind a batch, also one of Read.
func (c ConsumerCursor) After(b *Batch) ConsumerCursor {
	return ConsumerCursor{Table: b.Table, Key: b.To.Table.Key, SnapshotID: b.To.Snapshot, CommitSeq: b.To.Seq}
}

// Bound returns where reading goes on: behind the commit when there is one, else behind the snapshot, else at the beginning.
func (c ConsumerCursor) Bound() Bound {
	if c.CommitSeq == 0 && c.SnapshotID != nil {
		return SnapshotID(*c.SnapshotID)
	}
	return Seq(c.CommitSeq)
}

// Resume is Stream from where a cursor stands: the catch-up window behind it, then one window a commit. A cursor without Key and position begins
// with the table's first rows. The cursor's table is found under its present name. When the log does not reach back to the cursor, its
// snapshot does as well. Errors: as Stream; ErrExpired when neither is retained.
func (r *Reader) Resume(ctx context.Context, c ConsumerCursor, o StreamOptions) iter.Seq2[*Batch, error] {
	return r.stream(ctx, c.Table, c.Key, func(ctx context.Context, q Request) (Bound, error) {
		q.From = c.Bound()
		_, err := r.Changes(ctx, q)
		switch {
		case errors.Is(err, ErrExpired) && c.SnapshotID != nil:
			q.From = SnapshotID(*c.SnapshotID)
			if _, err := r.Changes(ctx, q); err == nil {
				return q.From, nil
			}
			return c.Bound(), nil // the stream finds the same error
		case errors.Is(err, ErrUnknown) && q.From.Kind == BoundSnapshot: // it was there once
			return q.From, &Error{Err: ErrExpired, Message: fmt.Sprintf("snapshot %d, where the consumer stands, is no longer retained", q.From.Snapshot)}
		}
		return q.From, nil
	}, o)
}
