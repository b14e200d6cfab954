package duck

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Rows is a running statement.
type Rows struct{}

// Columns describes the result.
func (r *Rows) Columns() []Column { return nil }

// AppendDataRows appends complete DataRow messages to dst and returns it with their number: at most max rows (0 = no limit),
// at most what is left of one chunk, and little more than 1 MiB. done means that the stream is exhausted (n may be > 0).
// A later call goes on where this one stopped.
//
// formats follow the Bind message's rule (none = all text, one = all, else one a column). types override the
// columns' type OIDs (nil = as described, 0 = as described); values are range-checked (22003). tz is the session time zone.
func (r *Rows) AppendDataRows(dst []byte, formats []int16, types []uint32, tz *time.Location, max int) (out []byte, n int, done bool, err error) {
	return dst, 0, true, ErrClosed
}

// NextBatch returns the next chunk as an Arrow batch, which the caller releases. io.EOF ends the stream.
func (r *Rows) NextBatch(ctx context.Context) (arrow.RecordBatch, error) { return nil, ErrClosed }

// RowsChanged is the count a statement without result set reports.
func (r *Rows) RowsChanged() int64 { return 0 }

// Close ends the stream and frees the Conn for the next statement. Closing twice is harmless.
func (r *Rows) Close() {}
