// Package catalog answers "which metadata does this name mean, at which commit, and what changed since?". It is the one
// writer of the warehouse's pointers: a commit is one request, one seq, one record of the log.
//
// # Words
//
//   - A seq numbers the commits of the whole catalog: 1, 2, 3 …
//   - A cut (Cut) is the whole catalog at one seq: immutable, taken by one atomic load.
//   - A request (Request) is one SQL transaction: changes that happen together or not at all.
//   - A group is the requests that one leader commits in one store transaction.
//   - The serial point is where a leader tries a request on the state that holds everything before it.
//   - A record (Record) is what the log keeps of a commit; a TableRecord what it did to one table.
//   - An object (Object) is a SQL object that Iceberg has no place for.
//   - Settling is syncing files whose bytes the store carries meanwhile (docs/decisions/0001-durability.md).
//
// # A commit, step by step
//
// Commit queues the request. The first in the queue leads: for each waiting request it forks the staged state (copy on
// write), applies the changes, runs their BuildFuncs, and keeps the fork or drops it with an error for that request alone.
// Then, once for all: one metadata file a changed table, one store transaction with pointers, history, records and the bytes of
// small files, two fdatasyncs. The store's watch brings the transaction to the mirror, which publishes the new cut and wakes
// subscribers; then the leader answers everybody and hands over.
//
// # Invariants
//
//   - C1 atomic: a cut shows a seq in full or not at all.
//   - C2 gapless: seqs are 1, 2, 3 …, never reused once visible.
//   - C3 durable: when Commit returns, the commit and every file of it survive power loss.
//   - C4 clean: after any error but ErrUnknownOutcome nothing happened.
//   - C5 monotonic time: timestamps (microseconds) strictly increase with the seq, whatever the clock does.
//   - One process holds a folder (ErrLocked), at the place where it was made (ErrMoved).
//   - OIDs of namespaces, tables and objects come from one persistent counter from 16384 and are never reused once visible.
//
// # Iceberg
//
// Catalog implements iceberg-go's catalog.Catalog, TransactionalCatalog and PurgeableTable. Metadata is written as
// <table>/metadata/<version>-<uuid>.metadata.json with a bounded metadata log; the snapshot log keeps every snapshot of a
// group. Snapshot timestamps are the commit's. Nested namespaces need their parent.
//
// # Concurrency
//
// Everything is safe for concurrent use. Reads never touch the store: Cut, and everything on it, is memory and, once for each
// metadata file, a read of that file. Two goroutines run between Open and Close: the mirror and the settler
// (docs/locks.md). ctx is honoured until a request is picked up by a leader.
//
// # Errors
//
// errors.go; iceberg-go's sentinels where they fit. An error of Commit says whether anything happened: ErrConflict (no; a retry may
// help), ErrUnknownOutcome (unknown; open again), everything else (no). Damage is a *DamagedError with path and key.
//
// # What it does not do
//
// It writes no data files and no manifests, and does not know rows or keys: conflicts between rows are found by the BuildFunc
// that warehouse passes. It expires nothing. It shares a folder with no second process: that takes another store (package
// store). The format of the folder is docs/format/catalog.md.
package catalog
