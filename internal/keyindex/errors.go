package keyindex

import (
	"errors"
	"fmt"
)

var (
	// ErrNullKey is returned when a key column is NULL and the encoder was made without WithNulls.
	ErrNullKey = errors.New("keyindex: null in a key column")
	// ErrUnsupportedType is returned when a column's type cannot be a key: nested types and variants.
	ErrUnsupportedType = errors.New("keyindex: type cannot be a key")
	// ErrTooManyRows is returned when a position does not fit 32 bits.
	ErrTooManyRows = errors.New("keyindex: more than 2^32-1 rows in one file")
	// ErrVersion is returned by Decode for an index of the layout before this one.
	ErrVersion = errors.New("keyindex: index of an older layout")
)

// FormatError is returned by Decode for bytes that are not a well-formed index: damaged, cut short
// or of an unknown version. Offset is where the damage was seen.
type FormatError struct {
	Offset int64
	Reason string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("keyindex: damaged index at byte %d: %s", e.Offset, e.Reason)
}
