// Package store is the narrow interface between the catalog and the key-value store that holds it. It answers "is this
// transaction in, all of it, for good?".
//
// The interface is declarative: what a transaction compares and writes is data, so that an embedded store (package
// boltstore) and a remote one (etcd) can stand behind it. There are no callbacks and no buckets: one flat, ordered key
// space.
//
// # Words
//
//   - A Tx is a list of compares and a list of puts and deletes, all or nothing.
//   - A revision counts the transactions of a store; it only grows, and survives reopening.
//   - A Watch delivers the writes of every transaction after a revision, in order.
//   - A lease is a named claim with a deadline and a fencing token (lease.go; it needs nothing but Get and Apply).
//
// # Invariants
//
//   - K1 Apply is atomic and, when it returned nil, durable.
//   - K2 After an error that is not ErrUnknownOutcome nothing of the transaction happened.
//   - K3 A watch sees every transaction after its revision once, in order, or fails with ErrCompacted.
//
// # Concurrency
//
// A Store is safe for concurrent use. A Watch belongs to one goroutine.
//
// # What it does not do
//
// It knows no tables, no seqs and no encodings: those are the catalog's (docs/format/catalog.md).
package store
