// Package lookup answers: which live rows has a key, now or at an earlier state?
//
// # Words
//
// A key is a tuple of values of a table's key columns: its identifier fields in schema order, or columns the caller
// names. A Lookuper is one table at one state with one key, prepared once and probed many times. A prefix is a key
// that gives the leading identifier fields only. The key ordinal is the place of a key in the batch that asked for it.
//
// # Invariants
//
//   - K1 merge-on-read: a row is returned if and only if it is live at the state, whoever wrote the deletes.
//   - K2 NULL: a key with a NULL part finds no row.
//   - K3 all: a key that several live rows have returns all of them, ordered by data file and position. In key columns of doubles 0 and −0 are equal, and
//     all NaNs, as in SQL.
//   - K4 many: LookupMany returns for every key what Lookup returns, duplicates of a key kept, ordered by key ordinal.
//   - K5 exact cache: cached rows are addressed by (data file, position), which never change; a commit invalidates
//     nothing.
//   - K6 hot path: a probe that hits the row cache opens no file, reads no byte, decodes no page and allocates nothing.
//
// # Counting
//
// What a lookup costs is counted by liveset (WithProbeCounters on the context of Get, Lookup and LookupMany, and the totals Cache.ProbeCounts). A key that the row
// cache answers counts as CachedKeys and nothing else.
//
// # Concurrency
//
// A Lookup and a Lookuper are safe for concurrent use; a Key belongs to one goroutine. No goroutine is started.
//
// # Errors
//
// Sentinels in errors.go, and liveset's for missing and damaged files. After any error nothing has happened.
//
// # What it does not do
//
// It resolves no bounds (the caller hands it a state), evaluates no predicates other than key equality, and writes
// nothing.
package lookup
