// Package liveset answers: which rows of which data files are live at a snapshot?
//
// # Words
//
// A set is a table at a snapshot: its data files and, per file, one bitmap of suppressed positions. Position
// deletes, deletion vectors and equality deletes of any writer are resolved into those bitmaps once. A key is
// an identifier value encoded by internal/keyindex. A hit is a live row found by key: (file, position).
//
// # How a set is made
//
// A set is derived from another set of the same table, best its parent: the two manifest lists are compared, only manifests
// that one has and the other has not are decoded, and only the bitmaps of files that an added or removed data or
// delete file reaches are computed again. Sets share structure: their trees are persistent and their bitmaps never change. The
// empty set is where the first derivation starts, so deriving and building are one code path.
//
// # Scope of deletes (Iceberg spec, "Scan Planning")
//
//   - A deletion vector applies to its referenced data file when data sequence number ≤ the vector's, and replaces position deletes.
//   - A position delete applies to the paths it names when the file's data sequence number ≤ its own and the file has its partition
//     (spec and values); with referenced_data_file to that file alone.
//   - An equality delete applies to files of its partition, or to all files when its spec is unpartitioned, whose data
//     sequence number is strictly lower. NULL matches NULL. Key columns that were dropped or widened since are compared
//     in their newest type.
//
// # Invariants
//
//   - V1 pure: a set is a function of its snapshot's immutable files; caches are exact and only evicted.
//   - V2 equal: a set derived from any other set equals the set built from nothing.
//   - V3 O(change): deriving a child opens no file that the change does not touch.
//   - V4 ordered: files come by (file sequence number, data sequence number, path), rows by position.
//   - V5 exact probe: Probe returns all live rows of a key and no other; bounds and bloom filters only save work.
//
// # Counting
//
// WithProbeCounters(ctx, c) counts in c what the probes and ReadHits of ctx do: keys, files considered and probed, filters' and indexes' answers, needless
// reads, and reads, bytes, opens, pages, values of the files. c.Counts() reads them: EXPLAIN ANALYZE gives each execution one of its own. Cache.ProbeCounts are the
// totals since the cache was made, for a /metrics page. ProbeCounts says what each number is.
//
// # Concurrency
//
// Sets, files and bitmaps are immutable and shared. A Cache is safe for any number of goroutines; equal work under way is
// done once. It starts no goroutine that outlives a call.
//
// # Errors
//
// ErrSnapshotNotFound, ErrMissingFile, *DamagedError, ErrNoFieldIDs, ErrUnknownField, ErrUnsupportedFormat, ErrConflictingDVs.
//
// # What it does not do
//
// It writes nothing, knows no catalog and no SQL, and pairs no changes: that is warehouse, catalog and changelog.
package liveset
