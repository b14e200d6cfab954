package lockmgr

import (
	"context"
	"errors"
)

// MaxRows is how many rows of one table a transaction locks one by one; beyond, it locks all of them.
const MaxRows = 4096

// maxRowsNoWait is the bound for requests that must not wait, when others hold rows so that all of them cannot be had.
const maxRowsNoWait = 16 * MaxRows

// AcquireRow locks a row of a table by its key. waited as for Acquire.
func (o *Owner) AcquireRow(ctx context.Context, rel uint32, key string, mode Mode, opt Options) (waited bool, err error) {
	all := Tag{Kind: Rows, Rel: rel}
	covered, n := o.rowState(all, mode)
	if covered {
		return false, nil
	}
	if n >= MaxRows {
		waited, err = o.Acquire(ctx, all, mode, opt)
		if !errors.Is(err, ErrNotAvailable) || n >= maxRowsNoWait {
			return waited, err
		}
	}
	mk := o.Mark()
	if waited, err = o.Acquire(ctx, all, mode.intent(), opt); err != nil {
		return waited, err
	}
	w, err := o.Acquire(ctx, Tag{Kind: Row, Rel: rel, Key: key}, mode, opt)
	if err != nil {
		o.ReleaseTo(mk)
	}
	return waited || w, err
}

// AcquireRows locks all rows of a table.
func (o *Owner) AcquireRows(ctx context.Context, rel uint32, mode Mode, opt Options) (waited bool, err error) {
	if covered, _ := o.rowState(Tag{Kind: Rows, Rel: rel}, mode); covered {
		return false, nil
	}
	return o.Acquire(ctx, Tag{Kind: Rows, Rel: rel}, mode, opt)
}

// LocksAllRows reports whether the owner holds all rows of a table in a mode that makes locks on single rows needless.
func (o *Owner) LocksAllRows(rel uint32, mode Mode) bool {
	covered, _ := o.rowState(Tag{Kind: Rows, Rel: rel}, mode)
	return covered
}

func (o *Owner) rowState(all Tag, mode Mode) (covered bool, n int) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	if lk := o.m.mu.locks[all]; lk != nil {
		if h := lk.holding(o); h != nil {
			covered = covers(h.all&allRows, mode)
		}
	}
	return covered, o.rows[all.Rel]
}

// allRows are the modes that lock every row, in contrast to intentions.
var allRows = bits(ForKeyShare, ForShare, ForNoKeyUpdate, ForUpdate, Write, WriteKey)
