// Package sqlfuncs answers one question: what do the SQL functions and views of schema skade take, give and refuse.
//
// One function or view a file: its signature, documentation, argument checks and the call into a core (changelog, lookup,
// catalog). Nothing here parses SQL or knows DuckDB: arguments come as Values, rows go as Arrow batches.
//
// Words:
//
//	Function  a function of schema skade, scalar (Call) or set-returning (Describe, Open)
//	View      a relation of schema skade whose rows a core has
//	Env       what a call sees: one pinned cut, the session's zone and the tables it may name
//
// Errors: the cores' sentinels, and *pgerr.Error for what only a call can get wrong. engine maps the sentinels to SQLSTATEs.
//
// Concurrency: Functions and Views are immutable; an Env belongs to one statement.
package sqlfuncs
