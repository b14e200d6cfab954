package parquetio

import (
	"context"
	"sync/atomic"
)

// Counters count what reading did: data and dictionary pages decoded (where single pages are read), bytes and calls of the file,
// and values decoded, per column. Rows counts a column's row once when it is decoded, wanted or not.
type Counters struct{ Pages, Bytes, Reads, Rows atomic.Int64 }

type countersKey struct{}

// WithCounters returns a context whose reads are counted in c.
func WithCounters(ctx context.Context, c *Counters) context.Context {
	return context.WithValue(ctx, countersKey{}, c)
}

// discard takes the counts nobody asked for.
var discard Counters

func countersOf(ctx context.Context) *Counters {
	if c, ok := ctx.Value(countersKey{}).(*Counters); ok {
		return c
	}
	return &discard
}
