// Package testkit answers: how does a test get a warehouse, rows to write and rows to compare?
//
// A [Kit] is a catalog, a live-set cache and a warehouse in a test's temporary folder. [Batch] makes Arrow batches of Go
// values; [Text] makes rows comparable. [Kit.Rows] reads a table through liveset, [Kit.IcebergRows] through
// iceberg-go's own scan, a reader that shares no code with ours.
//
// [Raw] commits snapshots entry by entry, so that it can do what any other writer may; [Foreign] writes tables of other catalogs through
// iceberg-go. [Reference] reads any snapshot as the spec is written, row by row, delete by delete: what liveset and changelog are compared with.
//
// It needs no cgo. Helpers fail the test instead of returning errors. A Kit is as concurrent as what it holds.
//
// What it does not do: it starts no server and knows no SQL.
package testkit
