// Package engine answers one question: what happens when a session runs a statement.
//
// A statement is parsed and bound by engine/pgsql against one pinned cut of the catalog, then runs in one of three ways: on DuckDB
// (engine/duck) over the live files of its tables; by the key index (whole keys of one table); or here (DDL, transactions, COPY, cursors,
// settings). Results leave as DataRow messages.
//
// Words:
//
//	Gateway   what all sessions share: cores, DuckDB, system catalogs, the hub of notifications (a pgwire.Backend)
//	session   one connection's state: settings, transaction, cursors, prepared statements (a pgwire.Session)
//	txn       a transaction: a cut, own writes, savepoints, notifications to be sent at commit
//	prepared  an analysed statement; its dependencies say when it must be analysed again
//	portal    a bound statement; stream portals send rows, command portals a tag
//	rendered  a query as DuckDB text whose sources (scans, relations) are registered until release
//	settled   a statement whose row locks are all had: it ran, or waited and ran again (engine/lockmgr keeps the locks)
//	feed      the goroutine that turns commits into notifications while somebody listens
//
// Invariants:
//
//	S1  every statement of a transaction reads the same cut plus the transaction's own writes; under READ COMMITTED each
//	    statement takes a new cut. First committer wins: the loser gets 40001 at COMMIT.
//	S2  only what engine/pgsql's gate lets through reaches DuckDB, and DuckDB itself is locked down.
//	S3  an error ends a statement, not the session; a failed statement leaves no trace in the transaction (a savepoint around it).
//	E1  notifications are delivered after the commit is durable, and never for a rolled back transaction.
//	E2  a listener that does not read slows nobody: its queue fills, and it gets one lagged notice.
//
// Concurrency: a session belongs to one goroutine, except Cancel, its activity row and its listener. The Gateway is safe for
// concurrent use. Lock order: hub.mu before listener.mu; commitFeed.mu before listener.mu.
//
// Errors: *pgerr.Error. MapError maps every sentinel of the cores (a test).
//
// It does not speak the protocol, know DuckDB's bindings, or write files.
package engine
