package parquetio

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

var (
	// ErrMissingFile is returned when a file that metadata lists does not exist.
	ErrMissingFile = errors.New("parquetio: file is missing")
	// ErrNoFieldIDs is returned when a file carries no field ids and the table has no name mapping for it.
	ErrNoFieldIDs = errors.New("parquetio: file has no field ids and the table has no name mapping")
	// ErrPosition is returned when a position past the file's last row is asked for.
	ErrPosition = errors.New("parquetio: position is past the end of the file")
	// ErrClosed is returned when a closed Writer is used.
	ErrClosed = errors.New("parquetio: writer is closed")
)

// DamagedError is returned when a file's bytes do not decode. Offset is -1 when unknown.
type DamagedError struct {
	Path   string
	Offset int64
	Err    error
}

func (e *DamagedError) Error() string {
	if e.Offset >= 0 {
		return fmt.Sprintf("parquetio: %s is damaged at byte %d: %v", e.Path, e.Offset, e.Err)
	}
	return fmt.Sprintf("parquetio: %s is damaged: %v", e.Path, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// TypeError is returned when a file's column cannot be read as the type the schema asks for.
type TypeError struct {
	Path    string
	FieldID int
	From    string
	To      string
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("parquetio: %s: field %d is stored as %s and cannot be read as %s", e.Path, e.FieldID, e.From, e.To)
}

// DuplicateKeyError is returned by Writer.Close when WriterOptions.Unique is set and two rows have one key. Key is keyindex's
// encoding, Row the second row.
type DuplicateKeyError struct {
	Key []byte
	Row arrow.RecordBatch
}

func (e *DuplicateKeyError) Error() string { return "parquetio: two rows have the same key" }
