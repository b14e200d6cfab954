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
	// ErrConfig is returned by Open when DuckDB refuses a setting or a function.
	ErrConfig = errors.New("duck: configuration refused")
	// ErrErrorLost is returned when a statement was interrupted by nobody: one of DuckDB's threads failed, and the one that fetches saw that it
	// has to stop before it saw why. Running the statement again gives the error.
	ErrErrorLost = errors.New("duck: the error of a worker thread was lost")
	// ErrOutOfMemory is returned when DuckDB cannot allocate a handle.
	ErrOutOfMemory = errors.New("duck: out of memory")
	// ErrLeaked is returned by DB.Close when connections or relations are still in use.
	ErrLeaked = errors.New("duck: leaked")
	// ErrPanic is returned when Go code that DuckDB called panicked.
	ErrPanic = errors.New("duck: panic")
	// ErrEngine is the identity of every error that DuckDB reported.
	ErrEngine = errors.New("duck: engine error")
	// ErrArguments is returned when the number or type of bound values does not fit the statement.
	ErrArguments = errors.New("duck: wrong arguments")
)
