// Package boltstore keeps a store.Store in one bbolt file. It answers store's question for one process: the file is locked
// for as long as it is open.
//
// One Apply is one bbolt transaction: two fdatasyncs (pages, then the meta page). The revision is bbolt's transaction id.
//
// # Damage
//
// bbolt trusts its pages: it panics on some damaged ones, recurses along others until the stack is full, and a file cut short
// faults in the memory map. So Open reads every page first, by a walk that trusts nothing (pages.go), at the cost of
// reading the file, and refuses a file with a bad one. What is damaged later is a panic or a fault: every call here turns those into
// store.ErrDamaged.
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
