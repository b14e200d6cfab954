// Package duck answers one question: how does a SELECT run on DuckDB and come back as PostgreSQL's bytes.
//
// It is the only importer of DuckDB's bindings. Above it nobody sees a DuckDB handle, type id or message.
//
// # Words
//
//   - DB: one in-memory DuckDB instance, locked down. Conn: one pooled connection of it. Stmt: a prepared statement.
//     Rows: a running statement, a stream of chunks. Chunk: at most 2,048 rows as vectors.
//   - relation: rows that Go makes (arrow batches), in SQL as skade_rel('<id>').
//   - scan: the live rows of data files, in SQL as a FROM-item around read_parquet.
//   - suppressed positions: the row positions of one data file that a scan leaves out, a bitmap.
//
// # Invariants
//
//	D1  A DB reads its AllowedDirs and nothing else of the machine; its configuration is locked before Open returns (S2).
//	D2  A stream holds a bounded number of chunks, whatever the size of the result.
//	D3  A cancelled context interrupts the statement, and nothing it started outlives Rows.Close.
//	D4  Row encoding allocates nothing per row.
//	D5  A scan shows a live row exactly once and a suppressed row never, whatever DuckDB pushes into the reader.
//	D6  No text of the engine reaches a client: every error that leaves is an *pgerr.Error made by MapError.
//	D7  No Go pointer is stored in memory that C holds: C keeps numbers (handles), Go keeps the map.
//
// # Concurrency
//
// A DB is safe for concurrent use. A Conn, its Stmt and Rows belong to one goroutine at a time; a Conn runs one stream
// at a time. Statements wait for a slot in arrival order (Options.Slots); a stream holds its slot only while DuckDB works,
// not while the client reads.
//
// # Units
//
// Dates are days since 1970-01-01, times microseconds since midnight, timestamps microseconds since 1970-01-01 UTC
// (DuckDB's); PostgreSQL's binary forms count from 2000-01-01.
//
// # What it does not do
//
// It parses no SQL of users and checks no privilege: the gate is engine/pgsql, this package is the second door. It
// plans nothing: which files a scan reads is the caller's choice.
package duck
