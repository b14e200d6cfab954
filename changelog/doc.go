// Package changelog answers: which rows did a table lose and gain between two states, commit by commit, and what is
// the net effect?
//
// # Words
//
// R(S) is the multiset of live rows at snapshot S. A step is one move of a table's head, P→S; its change is the signed
// multiset R(S) − R(P), computed as the live-set difference of each touched file (liveset.Diff), never by reading the
// table. A window is (from, to]: from is excluded, to is included. A Bound is one end of a window as a user writes it;
// resolved against a catalog.Cut it is a State. The place of a row in a table's history is a Position (seq, ordinal,
// row); (table, seq — else snapshot id —, ordinal, row) is the idempotence key of a change.
//
// # Invariants
//
//   - L1 patch: R(from) − deletes + inserts = R(to), exactly, as multisets.
//   - L2 composition: changes(a,c) is changes(a,b) followed by changes(b,c).
//   - L3 net: applying net(a,b) to R(a) gives R(b); net is the folded form of changes(a,b).
//   - L4 inverse: net(b,a) is net(a,b) with the sides swapped, under one schema.
//   - L5 compaction is invisible: a `replace` snapshot yields no row. Its live row count is checked against its
//     parent's; on a mismatch it is read as an overwrite, with a warning in Result.Warnings.
//   - L6 resumption: reading from (seq, ordinal, row) gives the suffix of the same sequence; shards union to the whole.
//
// Within one step rows are paired and cancelled before they are projected to the asked schema:
//  1. rows with one `_row_id` on both sides (v3) cancel when all columns are equal, else they are one update;
//  2. of what is left, rows equal in all columns cancel, multiset-wise (carry-over, no-op update): NULL = NULL,
//     NaN = NaN, −0.0 ≠ 0.0;
//  3. of what is left, a key of the identifier fields that occurs once on each side is one update;
//  4. the rest are DELETE and INSERT.
//
// The order inside a step is a function of (P, S) alone: removed rows by data file (data sequence number, then path)
// and position, an UPDATE_BEFORE directly followed by its UPDATE_AFTER; then the inserted rows in the same order. Steps
// whose two sides are larger than a partition are cut into hash partitions, as many as a pure function of the rows
// says, and the order is by partition first.
//
// # Two walks
//
// When both bounds are places in the commit log (seq:, a timestamp, earliest, now, NULL) the window follows the log: a
// rollback or a replaced ref is one step whose change is R(new head) − R(old head). When one of them names a snapshot
// (id, tag:, branch:) the window follows the snapshots' ancestry, and ErrNotAncestor is returned when there is no path.
// Snapshots that predate the catalog (registered tables) have no seq: they come first, in ancestry order, with the
// snapshot's own timestamp.
//
// A place inside a commit (seq:N/ordinal/row) is one of main's steps there, or of a branch's that the commit went to: in a
// window along the ancestry, the one that is on the way. A head that went forward over a snapshot that has expired since
// is ErrExpired, never the same change in fewer steps.
//
// # Concurrency
//
// A Reader is safe for use by many goroutines. A Result is used by one goroutine; the goroutines that decode files for
// it live inside one call of its iterator and are waited for before the iterator returns. A Stream's subscription ends
// with its iterator.
//
// # Memory
//
// Appends and pure deletes stream file by file. A step with both sides holds at most one partition of them
// (Options.PartitionRows rows a side, Options.PartitionBytes of values); what has more is spilled to Options.TempDir, at
// most Options.TempLimit bytes, in a file without a name, which is gone when the step or the process ends. What is held
// besides is a few times a partition: the rows' hashes, and batches that are decoded ahead.
//
// # Errors
//
// Sentinels in errors.go; most arrive wrapped in *Error, which carries a DETAIL and a HINT. A data file that is missing
// or damaged is liveset.ErrMissingFile or *liveset.DamagedError: it is never skipped. Nothing here changes state, so
// after any error nothing has happened.
//
// # What it does not do
//
// It writes nothing, keeps no durable positions, knows no SQL and no rights. Uncommitted rows of a transaction are not
// in any window.
package changelog
