package liveset

import (
	"errors"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

var (
	// ErrNoFieldIDs is returned when a file carries no field ids and the table has no name mapping for it.
	ErrNoFieldIDs = parquetio.ErrNoFieldIDs
	// ErrMissingFile is returned when a file that the snapshot lists does not exist. It is never skipped.
	ErrMissingFile = parquetio.ErrMissingFile
	// ErrSnapshotNotFound is returned when the table's metadata has no such snapshot.
	ErrSnapshotNotFound = errors.New("liveset: snapshot not found")
	// ErrUnknownField is returned when a key or delete file names a field id that no schema of the table has.
	ErrUnknownField = errors.New("liveset: unknown field id")
	// ErrUnsupportedFormat is returned for data or delete files that are neither Parquet nor Puffin.
	ErrUnsupportedFormat = errors.New("liveset: unsupported file format")
	// ErrConflictingDVs is returned when two deletion vectors apply to one data file, which the spec forbids.
	ErrConflictingDVs = errors.New("liveset: two deletion vectors for one data file")
)

// DamagedError is returned when a file's bytes do not decode; it names the path.
type DamagedError = parquetio.DamagedError
