package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/nordisk/skade-pg/engine/duck"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// redo is a statement that ran alone in an implicit transaction: when its commit loses a race (40001), nothing of it was seen by
// anybody, so it runs again on a new cut, as PostgreSQL's READ COMMITTED does for the rows that a statement waited for.
type redo struct {
	tag string
	run func(ctx context.Context) (tag string, err error)
}

// redoLimit bounds the attempts; running out of them is 40001.
const redoLimit = 64

// remember keeps what would run the statement again; an implicit transaction of one statement commits here, before its tag is settled.
// Rows that a RETURNING has sent and data that a COPY has read cannot be had again: those are not remembered.
func (s *session) remember(ctx context.Context, b binding, tag string, run func(ctx context.Context) (string, error)) (string, error) {
	t := s.tx
	if t.explicit || t.statements != 1 || !t.wrote {
		return tag, nil
	}
	t.redo = &redo{tag: tag, run: func(ctx context.Context) (string, error) {
		if err := s.refresh(ctx, b.p); err != nil {
			return "", err
		}
		return run(ctx)
	}}
	if !t.alone {
		return tag, nil
	}
	return s.commitStatement(ctx, t.redo, false)
}

// commitStatement commits the implicit transaction of a data change and returns its command tag. sent says that the tag is on
// its way to the client: only a repetition that changes as many rows may then commit.
func (s *session) commitStatement(ctx context.Context, r *redo, sent bool) (string, error) {
	err := s.endTx(ctx, true)
	if !errors.Is(err, warehouse.ErrConflict) {
		return r.tag, s.sqlError(ctx, err)
	}
	for attempt := 1; attempt < redoLimit; attempt++ {
		t := s.openTx(false)
		t.statements, t.strong = 1, true // from now on it takes turns with others of its kind
		tag, rerr := r.run(ctx)
		if rerr != nil {
			s.tx.failed = true
			return "", s.sqlError(ctx, rerr)
		}
		if sent && tag != r.tag {
			s.tx.failed = true
			break
		}
		if err = s.endTx(ctx, true); !errors.Is(err, warehouse.ErrConflict) {
			return tag, s.sqlError(ctx, err)
		}
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(attempt) * int64(time.Millisecond)))):
		case <-ctx.Done():
			return "", s.sqlError(ctx, ctx.Err())
		}
	}
	return "", s.sqlError(ctx, err)
}

// maxLostErrors bounds how often a statement runs again for an error that DuckDB lost.
const maxLostErrors = 8

// runOnce runs a statement with its parts, on one snapshot. It runs it again when it failed for a reason that DuckDB lost and that package
// duck could not find, because a source of the query can be read once only: here all sources are made anew.
func (s *session) runOnce(ctx context.Context, b binding, t *warehouse.TxTable, w pgwire.Writer) (res *dmlResult, err error) {
	for range maxLostErrors {
		if res, err = s.runWhole(ctx, b, t, w); !errors.Is(err, duck.ErrErrorLost) || ctx.Err() != nil {
			break
		}
	}
	return res, err
}
