package changelog

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"
)

// Batch is one window of a table's changes, in memory.
type Batch struct {
	Table    table.Identifier
	Columns  *Columns
	Records  []arrow.RecordBatch
	From, To *State
	Kind     TableKind
	// FullReload says that Records hold R(To) as INSERTs because the history before it has expired.
	FullReload bool
	Warnings   []string
}

// StreamOptions tunes a Stream.
type StreamOptions struct {
	// ReloadExpired asks for a FullReload batch instead of ErrExpired when From is no longer retained.
	ReloadExpired bool
	Identifier    []string
	Shard         Shard
}

// Read reads a window into memory.
func (r *Reader) Read(ctx context.Context, q Request) (*Batch, error) { return nil, errSkeleton }

// Stream yields one Batch a commit of the table, pushed by the catalog: nothing polls. It subscribes before it reads the
// current state (no gap). With from, a catch-up window comes first when it holds anything; with from NULL only future
// commits come. A subscriber that lagged gets one window up to the current state. The stream ends when ctx does (its
// error is yielded) or the caller breaks off.
func (r *Reader) Stream(ctx context.Context, ident table.Identifier, from Bound, o StreamOptions) iter.Seq2[*Batch, error] {
	return nil
}

// ConsumerCursor is how far a consumer has come with a table.
type ConsumerCursor struct {
	Table      table.Identifier
	SnapshotID *int64
	CommitSeq  uint64
}
