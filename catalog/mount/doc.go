// Package mount answers: what do other catalogs' tables look like now, and how does our catalog follow them?
//
// # Words
//
//   - A mount follows one source: a folder of Iceberg tables, a SQL catalog (SQLite, PostgreSQL), a REST catalog.
//   - Its name is a namespace of ours; the source's namespaces are below it. Nobody but the mount changes what is in there.
//   - A poll lists the source and commits what changed since the last one: tables that appeared, vanished, were renamed, and new metadata
//     files. Each snapshot between two polls is an entry of the commit's record, so LISTEN, table_changes and lookup work as on our own tables.
//
// # Invariants
//
//   - M1 A table whose source, metadata or files cannot be read stays as it was last seen. The reason is in Status.
//   - M2 Nothing outside the file system's roots is read: not the source, not a metadata file, not what metadata names.
//   - M3 A mount is an object of the catalog: it survives a restart, with its tables.
//   - M4 A poll is bounded: MaxTables tables, MaxDepth levels, a timeout; at most two run at a time; the first ones after a start are spread.
//   - M5 A failing mount is asked less and less often, down to once in ten minutes.
//
// # A folder has no pointer
//
// The newest metadata file is the one with the highest version (version-hint.text only speeds that up); of several with one version the one
// that was updated last. A writer that lost a race in a SQL or Hive catalog leaves such a file too: where writers compete, mount the
// catalog, not its folder.
//
// # Concurrency
//
// A Manager is safe for concurrent use. It runs one goroutine a mount, from Start or Mount to Close or Unmount, which wait for it.
//
// # Errors
//
// errors.go, and the catalog's.
//
// # What it does not do
//
// It writes nothing to a source, copies no data, and reads files of the local file system alone.
package mount
