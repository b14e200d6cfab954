// Command foreign writes, with iceberg-go and without skade-pg, the table that the benchmarks read equality deletes from:
// (id bigint, a bigint, b varchar) with id as identifier, format version 2, rows i → (i, 7i, 'row i'), and then one commit
// that deletes keys by equality and writes their rows anew with a + 1. It prints one line
//
//	metadata-file first-snapshot second-snapshot
package main
