package changelog

import "errors"

// Sentinels. Each has one meaning and one SQLSTATE, named in its comment; the SQL layer maps them.
var (
	// ErrUnknown is returned when a bound names a snapshot, tag, branch or commit seq that does not exist (42704).
	ErrUnknown = errors.New("unknown snapshot, tag, branch or commit")
	// ErrMalformedBound is returned when a bound's text is none of the accepted forms (22023).
	ErrMalformedBound = errors.New("malformed bound")
	// ErrFromAfterTo is returned when a window's from lies after its to (22023).
	ErrFromAfterTo = errors.New("from is after to")
	// ErrMalformedShard is returned when a shard is not i/n with 0 ≤ i < n ≤ 65,536 (22023).
	ErrMalformedShard = errors.New("malformed shard")
	// ErrExpired is returned when a snapshot inside the window is no longer retained (72000); DETAIL names the oldest
	// one that is.
	ErrExpired = errors.New("snapshot expired")
	// ErrNotAncestor is returned when a window is bounded by a snapshot id and from is not an ancestor of to (55000);
	// DETAIL names their common ancestor.
	ErrNotAncestor = errors.New("from is not an ancestor of to")
	// ErrReservedColumn is returned when a column of the table is named like one of the metadata columns (42701).
	ErrReservedColumn = errors.New("column name is reserved")
	// ErrNoKey is returned when an operation needs a key and the table has no identifier fields (42P10).
	ErrNoKey = errors.New("table has no identifier fields")
	// ErrUnknownColumn is returned when an identifier or a projection names a column that the schema has not (42703).
	ErrUnknownColumn = errors.New("unknown column")
	// ErrTooLarge is returned when the changed rows need more memory or temporary space than one query may have (54000).
	ErrTooLarge = errors.New("changes are too large")
	// ErrOutOfRange is returned when a value does not fit the type the asked schema gives its column (22003).
	ErrOutOfRange = errors.New("value out of range of the asked schema")
)

// Error is a sentinel with what a client is told about it. errors.Is sees the sentinel.
type Error struct {
	// Err is one of the sentinels of this package.
	Err error
	// Message is the primary text; Detail and Hint are empty or one sentence each.
	Message, Detail, Hint string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }
