package pgcatalog

import "errors"

var (
	// ErrNoRelation is returned when a relation is asked for that LookupRelation does not know.
	ErrNoRelation = errors.New("no such catalog relation")
	// ErrStatic is returned when the embedded rows cannot be decoded: the program was built from damaged data.
	ErrStatic = errors.New("embedded catalog rows are damaged")
)
