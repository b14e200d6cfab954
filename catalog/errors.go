package catalog

import (
	"errors"
	"fmt"
)

// Errors of the catalog. iceberg-go's own (catalog.ErrNoSuchTable, ErrTableAlreadyExists, ErrNoSuchNamespace,
// ErrNamespaceAlreadyExists, ErrNamespaceNotEmpty, ErrInvalidIdentifier) are returned where they fit.
var (
	// ErrLocked is returned by Open, at once, when another process (or another Catalog of this one) holds the folder.
	ErrLocked = errors.New("folder is in use by another process")
	// ErrDamaged is returned when bytes on disk are not what was written. errors.As finds a *DamagedError.
	ErrDamaged = errors.New("catalog is damaged")
	// ErrMoved is returned by Open when the folder is not where its metadata says it is.
	ErrMoved = errors.New("folder was moved")
	// ErrReadOnly is returned by Open when the folder cannot be written.
	ErrReadOnly = errors.New("folder is read-only")
	// ErrVersion is returned by Open for a folder that a newer program wrote.
	ErrVersion = errors.New("folder has a newer format")
	// ErrClosed is returned by every call after Close. Nothing happened.
	ErrClosed = errors.New("catalog is closed")
	// ErrConflict is returned by Commit when the request lost a race. Nothing happened; a retry on a new cut may succeed.
	ErrConflict = errors.New("conflict with a concurrent commit")
	// ErrUnknownOutcome is returned by Commit when the store failed in the middle of its sync: the commit may or may not
	// survive. Opening the folder again tells.
	ErrUnknownOutcome = errors.New("commit outcome is unknown")
	// ErrFailed is returned by Commit after an ErrUnknownOutcome. Nothing happened; the folder has to be opened again.
	ErrFailed = errors.New("catalog stopped accepting commits after a failed sync")
	// ErrSeqNotFound is returned for a commit seq that does not exist yet.
	ErrSeqNotFound = errors.New("commit seq does not exist")
	// ErrExpired is returned for a seq or a snapshot that is no longer retained.
	ErrExpired = errors.New("commit is no longer retained")
	// ErrNoSuchCommit is returned when no commit of the log brought the snapshot (a registered table's older snapshots).
	ErrNoSuchCommit = errors.New("no commit of that snapshot")
	// ErrInvalidRequest is returned by Commit for a request that can never succeed. Nothing happened.
	ErrInvalidRequest = errors.New("invalid commit request")
	// ErrMounted is returned by Commit for a change of a namespace or a table that a mount follows. Nothing happened.
	ErrMounted = errors.New("belongs to a mount, which is read-only")
	// ErrNoMetadata is returned when a metadata file that somebody named is not there.
	ErrNoMetadata = errors.New("metadata file does not exist")
	// ErrTooLarge is returned for another catalog's metadata file of more than MaxForeignMetadata bytes.
	ErrTooLarge = errors.New("metadata file is too large")
	// ErrUnsupportedTable is returned for a table of another catalog that this one cannot serve: encrypted, of an unknown format version.
	ErrUnsupportedTable = errors.New("table is not supported")
	// ErrNotMetadata is returned when a file that somebody named is no table metadata.
	ErrNotMetadata = errors.New("not a table metadata file")
	// ErrNoSuchObject is returned when an object does not exist.
	ErrNoSuchObject = errors.New("object does not exist")
	// ErrObjectAlreadyExists is returned when an object of that kind and name, or a relation of that name, exists.
	ErrObjectAlreadyExists = errors.New("object already exists")
)

// DamagedError says which bytes are not what was written. errors.Is(err, ErrDamaged) holds for it.
type DamagedError struct {
	// Path is the file.
	Path string
	// Key is the store's key (quoted) when the file is the store, else empty.
	Key    string
	Detail string
}

func (e *DamagedError) Error() string {
	if e.Key != "" {
		return fmt.Sprintf("%s: %s, key %s: %s", ErrDamaged, e.Path, e.Key, e.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", ErrDamaged, e.Path, e.Detail)
}

// Is makes a DamagedError an ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }
