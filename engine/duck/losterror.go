package duck

import (
	"context"
	"errors"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// lostTries bounds the runs that look for a lost error.
const lostTries = 4

// found is err, or what is behind an ErrErrorLost. A thread of DuckDB that fails interrupts the others before it says why, and a stream whose
// reader was busy meanwhile sees the interruption only. The statement, whose values are bound still, runs again, and its rows are thrown away as
// fast as they come: then the thread that fetches is there when the error comes.
func (r *Rows) found(err error) error {
	if !errors.Is(err, ErrErrorLost) {
		return err
	}
	for range lostTries {
		again := r.drain()
		if again == nil {
			break
		}
		// A source that cannot be read twice fails in its own way: that is not the error.
		if !errors.Is(again, ErrErrorLost) && pgerr.CodeOf(again) != pgerr.InternalError {
			return again
		}
	}
	return err
}

// drain runs the statement anew in place of the stream that failed, and returns its error.
func (r *Rows) drain() error {
	r.dropChunk()
	bind.DestroyResult(&r.res)
	var pending bind.PendingResult
	st := bind.PendingPreparedStreaming(r.stmt.stmt, &pending)
	defer bind.DestroyPending(&pending)
	if st == bind.StateError {
		return prepareError(r.ctx, bind.PendingError(pending))
	}
	r.watch.enter()
	defer r.watch.leave()
	if bind.ExecutePending(pending, &r.res) == bind.StateError {
		return resultError(r.ctx, &r.res)
	}
	for {
		if r.ctx.Err() != nil {
			return MapError(context.Cause(r.ctx))
		}
		chunk := bind.FetchChunk(r.res)
		if chunk.Ptr == nil {
			break
		}
		bind.DestroyDataChunk(&chunk)
	}
	if bind.ResultError(&r.res) != "" {
		return resultError(r.ctx, &r.res)
	}
	return nil
}
