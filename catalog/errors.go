package catalog

import "errors"

var (
	// ErrLocked is returned when another process (or another Catalog of this one) holds the folder.
	ErrLocked = errors.New("folder is in use by another process")
	// ErrDamaged is returned when bytes on disk are not what was written; the error is a *DamagedError.
	ErrDamaged = errors.New("catalog is damaged")
	// ErrMoved is returned when the folder is not where its metadata says it is.
	ErrMoved = errors.New("folder was moved")
	// ErrReadOnly is returned when the folder cannot be written.
	ErrReadOnly = errors.New("folder is read-only")
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("catalog is closed")
	// ErrConflict is returned when a request lost a race: nothing of it happened, a retry on a new cut may succeed.
	ErrConflict = errors.New("conflict with a concurrent commit")
	// ErrUnknownOutcome is returned when the store failed in the middle of its sync: the commit may or may not survive.
	ErrUnknownOutcome = errors.New("commit outcome is unknown")
	// ErrFailed is returned by Commit after an ErrUnknownOutcome: nothing happened, the folder has to be opened again.
	ErrFailed = errors.New("catalog stopped accepting commits after a failed sync")
	// ErrSeqNotFound is returned for a commit seq that does not exist yet.
	ErrSeqNotFound = errors.New("commit seq does not exist")
	// ErrExpired is returned for a seq, a snapshot or a time that is no longer retained.
	ErrExpired = errors.New("commit is no longer retained")
	// ErrInvalidRequest is returned for a request that can never succeed: nothing of it happened.
	ErrInvalidRequest = errors.New("invalid commit request")
	// ErrNoSuchObject is returned when an object does not exist.
	ErrNoSuchObject = errors.New("object does not exist")
	// ErrObjectAlreadyExists is returned when an object, or a table of that name, exists.
	ErrObjectAlreadyExists = errors.New("object already exists")
)
