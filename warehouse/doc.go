// Package warehouse answers: how do rows, keys and tables change, and how does a transaction become Iceberg snapshots?
//
// # Words
//
// A [Warehouse] binds a catalog, a liveset cache and file IO. A [Tx] buffers changes against one pinned [catalog.Cut];
// a [TxTable] is one table inside it. Rows a transaction writes go to a buffer, then to own data files ("own": in the
// table's data folder, not yet in any snapshot). A suppressed row is a (data file, position) the transaction removes.
// At Commit every changed table gets one snapshot: data files, delete files (position deletes on format v2, deletion
// vectors on v3), manifests, and a manifest list made in the catalog's serial point on the newest base.
//
// A [Private] is the tables and objects of one session: a namespace that its transactions have besides the catalog's, and that no
// catalog knows.
//
// # Invariants
//
//  1. C1, C3: nothing of a transaction is visible before its catalog record, everything after; every file the record
//     names is durable before it. Bulk files are synced before the serial point, small ones by the group's batch.
//  2. C4: after any error but catalog.ErrUnknownOutcome nothing happened, and the files of the attempt are removed.
//  3. Rows born and dead inside one transaction are in no snapshot. However many statements wrote them, the small rows
//     of a transaction end in one data file per partition, sorted by the identifier fields.
//  4. Conflict unit: the rows suppressed and the keys inserted. Disjoint commits to one table both succeed; a row lost
//     to another commit is ErrConflict, a key that exists now is *DuplicateKeyError (ErrConflict when an upsert
//     wrote it: running it again replaces the row).
//  5. A row that is suppressed stays suppressed: every suppression is a position of a live row of the base it commits
//     on, and files are only replaced together with the suppressions that were applied to them (no resurrection).
//  6. On v3 a data file has at most one deletion vector in a snapshot; a new one holds the old one's positions and the
//     old one is removed in the same snapshot. A row keeps its _row_id through updates and compaction.
//  7. Identifier fields are never NULL and unique among the live rows, as long as every writer is this package.
//
// # Concurrency
//
// A Warehouse is safe for concurrent use. A Tx belongs to one session, except that [TxTable.Append] of one table may be
// called from many goroutines; every other method of a Tx and of its tables is called by one goroutine at a time. The
// package starts goroutines only inside calls and waits for them before it returns.
//
// # Errors
//
// The sentinels of errors.go, [*DuplicateKeyError] and [*NotNullError], iceberg-go's catalog sentinels for names, and
// catalog.ErrUnknownOutcome. ctx is honoured up to the catalog's serial point; past it Commit waits for the outcome.
//
// # What it does not do
//
// It parses no SQL, evaluates no expressions and checks no privileges; CHECK and FOREIGN KEY do not exist. It writes
// no copy-on-write deletes: a suppressed row stays in its file until [Warehouse.Compact] rewrites it.
package warehouse
