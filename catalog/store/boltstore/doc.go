// Package boltstore keeps a store.Store in one bbolt file. It answers store's question for one process: the file is locked
// for as long as it is open.
//
// One Apply is one bbolt transaction: two fdatasyncs (pages, then the meta page). The revision is bbolt's transaction id.
//
// # Damage
//
// bbolt trusts its pages: it panics on some damaged ones, and a file cut short faults in the memory map. Every call here
// turns a panic and a fault into store.ErrDamaged. Open refuses a file that is shorter than its meta page says.
//
// # Concurrency
//
// Safe for concurrent use. No goroutine is started. A Watch reads from a ring of the newest transactions in memory; who
// falls behind it gets store.ErrCompacted.
//
// # What it does not do
//
// It does not share the file between processes, and it does not shrink it.
package boltstore
