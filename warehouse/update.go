package warehouse

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/liveset"
)

// Update suppresses the rows olds and adds news, row i of which replaces olds[i] and keeps its _row_id (v3). Every old
// row must be live (ErrNotLive) and named once (ErrDuplicateTarget). Keys are checked row by row, as PostgreSQL does: a
// key that the old row of a later news row still has is *DuplicateKeyError.
func (t *TxTable) Update(ctx context.Context, olds []RowRef, news arrow.RecordBatch) error {
	return t.update(ctx, olds, news, true)
}

// UpdateSameKeys is Update for rows that have the keys of the rows they replace: no key is looked up.
func (t *TxTable) UpdateSameKeys(ctx context.Context, olds []RowRef, news arrow.RecordBatch) error {
	return t.update(ctx, olds, news, false)
}

func (t *TxTable) update(ctx context.Context, olds []RowRef, news arrow.RecordBatch, check bool) error {
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
	var keys [][]byte
	if t.keyed() {
		if keys, err = encodeKeys(rec, t.keyCols); err != nil {
			return err
		}
		if check {
			if err := t.checkReplaced(ctx, olds, rec, keys); err != nil {
				return err
			}
		}
	}
	rowIDs, err := t.suppressOlds(ctx, olds)
	if err != nil {
		return err
	}
	return t.addChecked(ctx, rec, keys, rowIDs)
}

// checkReplaced refuses a new key that a live row has, other than the row it replaces and those replaced before it.
func (t *TxTable) checkReplaced(ctx context.Context, olds []RowRef, rec arrow.RecordBatch, keys [][]byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	place := make(map[RowRef]int, len(olds))
	for i, o := range olds {
		h, err := t.hitLocked(i, o)
		if err != nil {
			return err
		}
		place[RowRef{h.File.File.Path, h.Pos}] = i
	}
	for i, k := range keys {
		if row, live := t.logFindLocked(k); live {
			if j, replaced := place[RowRef{t.st.log.path(), uint32(row)}]; !replaced || j > i {
				return t.duplicate(rec, t.keyCols, i)
			}
		}
	}
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return err
	}
	for _, h := range hits {
		i, replaced := place[RowRef{h.File.File.Path, h.Pos}]
		if !replaced || i > h.KeyOrdinal {
			return t.duplicate(rec, t.keyCols, h.KeyOrdinal)
		}
	}
	return nil
}

// addChecked adds rows whose keys no row in a file has.
func (t *TxTable) addChecked(ctx context.Context, rec arrow.RecordBatch, keys [][]byte, rowIDs []int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.writableLocked(ctx); err != nil {
		return err
	}
	if keys != nil {
		if err := t.putKeysLocked(rec, keys); err != nil {
			return err
		}
	}
	t.touched()
	if _, err := t.st.log.append(rec, rowIDs); err != nil {
		return err
	}
	t.st.rows = t.st.log.rows
	return t.spillLocked(ctx)
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
		var err error
		if hits[i], err = t.hitLocked(i, o); err != nil {
			return nil, err
		}
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
		if err := t.suppressLocked(p, b); err != nil {
			return nil, err
		}
	}
	return rowIDs, nil
}
