// Package pgcatalog answers one question: what do pg_catalog, information_schema and the catalog functions of PostgreSQL 15
// say about this warehouse?
//
// Words. A relation is a table or view of pg_catalog, information_schema or skade, as PostgreSQL 15 defines it: name, OID and
// columns. Its static rows were taken from a real PostgreSQL 15 by the program in gen and are embedded; its dynamic rows are
// made from Objects (the user's schemas, tables, views, roles and functions at one cut of the catalog) and from a Session
// (settings, backends, locks, prepared statements, cursors, search path). A Snapshot joins one Objects with the static rows.
// A Binding gives the catalog functions, which run inside DuckDB, the Snapshot and the Session of the statement they run in.
//
// Invariants.
//
//	K1  Every table and view of PostgreSQL 15's pg_catalog and information_schema is there, with its column names, types,
//	    order and numbers; a relation that has no meaning here is empty, never missing.
//	K2  All relations of a Snapshot show one cut: names, OIDs and attribute numbers agree between them.
//	K3  OIDs are stable: a relation's comes from the warehouse's catalog; those of its row type, index and constraint are
//	    functions of it (derive in oid.go); those of PostgreSQL's own objects are PostgreSQL's.
//	K4  A catalog function that has no answer for an OID gives NULL (or PostgreSQL's "???", "unknown (OID=n)"), never an error.
//
// Concurrency. Objects are not changed after Catalog.Snapshot; Catalog, Snapshot and Binding are safe for concurrent use.
// Static rows are decoded on the first use of a relation and kept. Record batches handed out are shared: readers retain and
// release them as usual.
//
// Errors. Those that a client may see are *pgerr.Error with PostgreSQL's codes and words (42P01, 42704, 42883, 22023).
//
// It does not run SQL, resolve search paths of statements, check privileges (has_*_privilege asks the Session), or know
// DuckDB: rows leave as Arrow, and functions as Go functions that engine registers.
package pgcatalog
