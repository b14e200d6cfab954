package duck

import (
	"context"
	"io"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
)

// Rows is a running statement: a stream of chunks, one held at a time (D2). It ends by Close, which the caller owes; an
// error or the end of the stream does not close it.
type Rows struct {
	conn  *Conn
	stmt  *Stmt
	ctx   context.Context // the statement's: its cancellation is what the watch waits for
	watch *watch
	res   bind.Result

	types   []*logical
	columns []Column
	chunk   bind.DataChunk
	cols    []vec
	size    int // rows of the chunk
	next    int // first row not yet given out
	eof     bool
	err     error

	style   pgenc.Style
	out     output
	changed int64
	chunks  int
	closed  bool
}

// start runs the statement up to its first rows.
func (r *Rows) start() error {
	var pending bind.PendingResult
	st := bind.PendingPreparedStreaming(r.stmt.stmt, &pending)
	defer bind.DestroyPending(&pending)
	if st == bind.StateError {
		return prepareError(r.ctx, bind.PendingError(pending))
	}
	r.watch.enter()
	st = bind.ExecutePending(pending, &r.res)
	r.watch.leave()
	if st == bind.StateError {
		return r.found(resultError(r.ctx, &r.res))
	}
	if bind.ResultReturnType(r.res) == bind.ResultTypeChangedRows {
		r.changed = int64(bind.RowsChanged(&r.res))
	}
	if !r.stmt.rows {
		r.eof = true
		return nil
	}
	r.types, r.columns = r.stmt.types, r.stmt.columns
	if !r.described() {
		// The types were open at Prepare; now the values have settled them, for this run.
		r.types, r.columns = nil, nil
		for i := range bind.ColumnCount(&r.res) {
			t := newLogical(bind.ColumnLogicalType(&r.res, i))
			r.types = append(r.types, t)
			r.columns = append(r.columns, t.column(bind.ColumnName(&r.res, i)))
		}
	}
	for _, t := range r.types {
		r.cols = append(r.cols, newVec(t))
	}
	return nil
}

// described tells whether the result has the columns that Prepare found: vectors are read by these types.
func (r *Rows) described() bool {
	if len(r.types) != int(bind.ColumnCount(&r.res)) {
		return false
	}
	for i, t := range r.types {
		if bind.ColumnType(&r.res, bind.IdxT(i)) != t.id {
			return false
		}
	}
	return true
}

// Columns describes the result.
func (r *Rows) Columns() []Column { return r.columns }

// RowsChanged is the count a statement without result set reports.
func (r *Rows) RowsChanged() int64 { return r.changed }

// SetStyle sets DateStyle and IntervalStyle (and the zone, when AppendDataRows is given none) of text output.
func (r *Rows) SetStyle(s pgenc.Style) { r.style = s; r.out.ready = false }

// fetch moves to the next chunk with rows. false: the stream is exhausted.
func (r *Rows) fetch() (bool, error) {
	switch {
	case r.err != nil:
		return false, r.err
	case r.closed:
		return false, ErrClosed
	case r.eof:
		return false, nil
	}
	release, err := r.conn.db.slots.acquire(r.ctx)
	if err != nil {
		r.err = MapError(err)
		return false, r.err
	}
	defer release()
	for {
		r.dropChunk()
		if r.ctx.Err() != nil {
			r.err = MapError(context.Cause(r.ctx))
			return false, r.err
		}
		r.watch.enter()
		r.chunk = bind.FetchChunk(r.res)
		r.watch.leave()
		if r.chunk.Ptr == nil {
			if bind.ResultError(&r.res) != "" {
				r.err = r.found(resultError(r.ctx, &r.res))
				return false, r.err
			}
			r.eof = true
			return false, nil
		}
		r.chunks++
		if r.size = int(bind.DataChunkGetSize(r.chunk)); r.size > 0 {
			break
		}
	}
	r.next = 0
	for i := range r.cols {
		r.cols[i].load(bind.DataChunkGetVector(r.chunk, bind.IdxT(i)))
	}
	return true, nil
}

func (r *Rows) dropChunk() {
	bind.DestroyDataChunk(&r.chunk)
	r.size, r.next = 0, 0
}

// more makes sure that a row is at hand; io.EOF at the end.
func (r *Rows) more() error {
	if r.next < r.size {
		return nil
	}
	ok, err := r.fetch()
	if err == nil && !ok {
		return io.EOF
	}
	return err
}

// Close ends the stream and frees the Conn for the next statement. Closing twice is harmless.
func (r *Rows) Close() {
	if r == nil || r.closed {
		return
	}
	r.closed = true
	r.free()
	if r.conn.rows == r {
		r.conn.rows = nil
	}
}

// free destroys the result, which stops what DuckDB still computes for it.
func (r *Rows) free() {
	r.dropChunk()
	bind.DestroyResult(&r.res)
	r.watch.stop()
}
