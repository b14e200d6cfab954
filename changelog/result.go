package changelog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
)

// Changes opens the changes of a window, commit by commit, in the guaranteed order. Bounds and schema are checked here;
// data is read by Result.Batches. Errors: iceberg-go's catalog.ErrNoSuchTable, ErrUnknown, ErrFromAfterTo, ErrExpired,
// ErrNotAncestor, ErrReservedColumn, ErrUnknownColumn.
func (r *Reader) Changes(ctx context.Context, q Request) (*Result, error) {
	h, err := r.openHistory(ctx, q.Cut, q.Ident)
	if err != nil {
		return nil, err
	}
	w, err := h.openWindow(ctx, q.From, q.To)
	if err != nil {
		return nil, err
	}
	return r.newResult(ctx, q, w)
}

func (r *Reader) newResult(ctx context.Context, q Request, w *window) (*Result, error) {
	sc := q.Schema
	if sc == nil {
		st, err := w.h.describe(ctx, w.to)
		if err != nil {
			return nil, err
		}
		sc = st.Schema
	}
	cols, err := describeColumns(sc, w.h.meta.Version())
	if err != nil {
		return nil, err
	}
	if q.Shard.Count < 0 || q.Shard.Count > 65536 || q.Shard.Count > 0 && (q.Shard.Index < 0 || q.Shard.Index >= q.Shard.Count) {
		return nil, &Error{Err: ErrMalformedShard, Message: fmt.Sprintf("malformed shard %d/%d", q.Shard.Index, q.Shard.Count)}
	}
	x := &Result{r: r, q: q, h: w.h, w: w, cols: cols}
	if len(q.Identifier) > 0 {
		if x.keyIDs, err = identifierIDs(sc, q.Identifier); err != nil {
			return nil, err
		}
		x.cols.Kind = PrimaryKey(x.keyIDs...)
	}
	return x, nil
}

// Result is an opened change relation.
type Result struct {
	r      *Reader
	q      Request
	h      *history
	w      *window
	cols   *Columns
	keyIDs []int
	net    bool
	began  atomic.Bool

	mu struct {
		sync.Mutex
		warnings []string
	}
}

// Columns returns the shape of the batches.
func (x *Result) Columns() *Columns { return x.cols }

// Schema returns the Arrow schema of the batches.
func (x *Result) Schema() *arrow.Schema { return x.cols.Schema }

// Ends returns the states the window was resolved to. From's snapshot is nil when the window begins with the table.
func (x *Result) Ends(ctx context.Context) (from, to *State, err error) {
	if from, err = x.h.describe(ctx, x.w.from); err != nil {
		return nil, nil, err
	}
	to, err = x.h.describe(ctx, x.w.to)
	return from, to, err
}

// Batches yields the rows. A batch is valid until the next one is asked for: Retain keeps it. The sequence may be run
// once; an error ends it. Breaking off early is fine.
func (x *Result) Batches(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		if x.began.Swap(true) {
			yield(nil, errors.New("changelog: a Result is read once"))
			return
		}
		e := newEmitter(x.cols, x.r.opts.BatchRows, func(b arrow.RecordBatch) error {
			defer b.Release()
			if !yield(b, nil) {
				return errStop
			}
			return nil
		})
		for i := range x.w.steps {
			err := ctx.Err()
			if err == nil {
				err = x.runStep(ctx, &x.w.steps[i], e)
			}
			if errors.Is(err, errStop) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Warnings returns what a client should be told, complete once Batches has ended.
func (x *Result) Warnings() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.mu.warnings...)
}

func (x *Result) warn(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.warnings = append(x.mu.warnings, fmt.Sprintf(format, args...))
}
