// Package parquetio writes and reads one table's Parquet data files: Arrow batches in, Iceberg data
// files out, and back.
//
// # Words
//
// A position is a row's ordinal in its file, from 0. A leaf is a column of the Parquet file. A
// projected schema is the Iceberg schema the caller wants rows in; its fields are looked up in a file
// by field id, never by name.
//
// # Writing
//
// A [Writer] sorts rows by the identifier fields when there are any (merging sorted runs on disk when they
// exceed the memory budget), compresses with zstd, cuts data pages of about 16 KiB with a page index,
// row groups of about a million rows, and adds bloom filters sized by the number of distinct values to identifier columns.
// It yields iceberg.DataFile values whose bounds are exact, but for strings and binaries that are cut to 16
// characters and stay valid bounds. Files of 8,192 rows and more get a sidecar key index `<file>.keyidx`.
//
// # Reading
//
// A [Reader] is a file's footer and is shared by goroutines. Columns are mapped by field id: renamed,
// promoted (int → long, float → double, decimal precision, date → timestamp), defaulted (initial-default), or NULL when the
// file lacks them. Files without field ids are mapped through the table's name mapping, else ErrNoFieldIDs.
// A scan decodes PLAIN and dictionary pages itself, in bulk, and only the pages that hold rows asked for; columns of other
// encodings go through arrow-go. RowsAt reads only the pages that hold the asked positions, adjacent ones in one read.
//
// # Invariants
//
//   - P1 positions: rows come in file order, each with its own position, whatever is projected or left out.
//   - P2 durable later: a written file is complete when Close returns, and survives power loss once
//     storeio.Batch.Sync has returned for it.
//   - P3 no panic: bytes of a file never crash the process (S3); damage is a *DamagedError with the path.
//
// # Errors
//
// ErrMissingFile, ErrNoFieldIDs, *DamagedError, *TypeError; keyindex.ErrNullKey for a NULL identifier.
//
// # What it does not do
//
// It knows no snapshots, manifests, deletes or partition routing: one Writer writes one partition.
package parquetio
