package mount

import "errors"

var (
	// ErrNoSuchMount is returned when no mount has the name.
	ErrNoSuchMount = errors.New("no such mount")
	// ErrInvalid is returned for a name, a source, a kind or an option that means nothing.
	ErrInvalid = errors.New("invalid mount")
	// ErrUnreachable is returned when a source cannot be listed. What was seen before stays.
	ErrUnreachable = errors.New("source of the mount cannot be read")
	// ErrTooMany is returned for a source of more than MaxTables tables.
	ErrTooMany = errors.New("source holds too many tables")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("mounts are closed")
)
