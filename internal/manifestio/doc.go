// Package manifestio writes Iceberg manifests and manifest lists (Avro container files) of format versions 2 and 3.
//
// iceberg-go's writers derive and parse the Avro schemas for every file and allocate a new deflate state each (1.6 MB a
// commit, a third of all that a small commit allocated). This package takes the library's schemas, once a table schema and
// partition spec, and writes the records itself. What is written is what the library writes, and is read by its readers (a
// test compares them), with one addition: version 2 manifests carry referenced_data_file, as the spec allows and Java writes.
//
// # Concurrency
//
// Functions are safe for concurrent use.
//
// # What it does not do
//
// It reads no manifest lists, and writes no version 1.
package manifestio
