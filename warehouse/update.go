package warehouse

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/liveset"
)

// Update suppresses the rows olds and adds news, row i of which replaces olds[i] and keeps its _row_id (v3). Every old
// row must be live (ErrNotLive) and named once (ErrDuplicateTarget). Keys are checked after the old rows are gone.
func (t *TxTable) Update(ctx context.Context, olds []RowRef, news arrow.RecordBatch) error {
	if err := t.writable(); err != nil {
		return err
	}
	rec, err := conform(ctx, news, t.arrow)
	if err != nil {
		return err
	}
	defer func() { rec.Release() }()
	if int(rec.NumRows()) != len(olds) {
		return fmt.Errorf("%w: %d old rows, %d new", ErrSchemaMismatch, len(olds), rec.NumRows())
	}
	if rec, err = t.guarded(ctx, rec); err != nil {
		return err
	}
	rowIDs, err := t.suppressOlds(ctx, olds)
	if err != nil {
		return err
	}
	if !t.keyed() {
		return t.addRows(ctx, rec, nil, rowIDs)
	}
	keys, err := encodeKeys(rec, t.keyCols)
	if err != nil {
		return err
	}
	return t.addRows(ctx, rec, keys, rowIDs)
}

// suppressOlds suppresses rows that must be live and returns their _row_ids.
func (t *TxTable) suppressOlds(ctx context.Context, olds []RowRef) ([]int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return nil, err
	}
	byPath := map[string]*roaring.Bitmap{}
	hits := make([]liveset.Hit, len(olds))
	for i, o := range olds {
		b := byPath[o.Path]
		if b == nil {
			b = roaring.New()
			byPath[o.Path] = b
		}
		if !b.CheckedAdd(o.Pos) {
			return nil, ErrDuplicateTarget
		}
		f := t.baseSet.File(o.Path)
		if f == nil || t.st.truncated {
			f = t.ownSetLocked().File(o.Path)
		}
		hits[i] = liveset.Hit{KeyOrdinal: i, File: f, Pos: o.Pos}
	}
	for p, b := range byPath {
		live, err := t.liveAtLocked(p, b)
		if err != nil {
			return nil, err
		}
		if !live.Equals(b) {
			return nil, fmt.Errorf("%w: %d of %d rows of %s", ErrNotLive, card(b)-card(live), card(b), p)
		}
	}
	rowIDs, err := t.rowIDsOf(ctx, hits, len(olds))
	if err != nil {
		return nil, err
	}
	t.touched()
	for p, b := range byPath {
		t.st.suppressAt(p, b)
	}
	return rowIDs, nil
}
