package duck

import "errors"

var (
	// ErrClosed is returned when the DB, Conn, Stmt or Rows was closed.
	ErrClosed = errors.New("duck: closed")
	// ErrBusy is returned when a Conn is asked to run a statement while a stream is open on it.
	ErrBusy = errors.New("duck: connection has an open stream")
	// ErrUnknownRelation is returned when SQL names a relation id that is not registered (or was released).
	ErrUnknownRelation = errors.New("duck: unknown relation")
	// ErrUnsupportedType is returned when an Arrow or DuckDB type has no counterpart.
	ErrUnsupportedType = errors.New("duck: unsupported type")
)
