// Package storeio is the local file system of the warehouse. It answers two questions: are these bytes on disk, and what
// did reading them cost?
//
// # Words
//
//   - A location is what Iceberg metadata holds: "file:///a/b" or a bare path. PathOf turns it into a path.
//   - A durable file survives power loss, and so does its name. An unsynced file survives the process only.
//   - A Batch is the list of unsynced files that one commit refers to. Its Sync makes them durable together.
//   - A range file is a handle to an immutable file: positioned reads, the descriptor shared and reopened as needed.
//
// # Invariants
//
//   - W1 A file made by Create is complete under its name or absent from it: temporary name, fsync, rename, fsync of the
//     directory, in this order. A failed step leaves no file under the name.
//   - W2 After Batch.Sync returned nil every added file, its directory and every directory that this FS made above it
//     are durable. An fsync error is returned, never swallowed, but for a file that only saves work (Cache), which is removed.
//   - W3 CreateUnsynced never replaces a file.
//   - W4 With Options.Roots or Home set, no operation leaves them, "..", and symbolic links below Roots, included. A link that somebody
//     exchanges between the check and the use is not noticed: who writes below a root is trusted that far.
//
// # Concurrency
//
// FS, Batch and RangeFile are safe for concurrent use. A writer belongs to one goroutine. The package starts no goroutine.
//
// # Errors
//
// Errors of the file system are *fs.PathError and answer errors.Is(err, fs.ErrNotExist) and the like. ErrOutsideRoots is
// returned for a path outside the roots, ErrNotLocal for a location of another scheme, ErrNotRegular for a pipe, a device or a directory, ErrTooLarge by ReadAtMost, ErrShortFile when an immutable file ends before the range that was asked for.
//
// # What it does not do
//
// It does not cache bytes (the operating system's page cache does), does not write to object stores, and does not decide
// which files a commit needs: that is warehouse's and catalog's business.
package storeio
