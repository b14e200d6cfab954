package warehouse

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// RowRef is the place of a row: a data file of the table's Live set and a position in it.
type RowRef struct {
	Path string
	Pos  uint32
}

// KeyHit is the live row that has the key of row Ordinal of the batch given to FindKeys.
type KeyHit struct {
	Ordinal int
	Row     RowRef
}

// FindKeys finds the live rows that have the keys of rec (columns as KeySchema). Hits come by ordinal.
func (t *TxTable) FindKeys(ctx context.Context, rec arrow.RecordBatch) ([]KeyHit, error) {
	if err := t.tx.usable(); err != nil {
		return nil, err
	}
	keys, ordinals, err := t.keysOf(ctx, rec)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return nil, err
	}
	if t.st.log.bytes() > sharedLogLimit {
		if err := t.flushLocked(ctx); err != nil {
			return nil, err
		}
	}
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([]KeyHit, len(hits))
	for i, h := range hits {
		out[i] = KeyHit{ordinals[h.KeyOrdinal], RowRef{h.File.File.Path, h.Pos}}
	}
	for i, k := range keys {
		if row, live := t.logFindLocked(k); live {
			t.st.log.shown = max(t.st.log.shown, t.st.rows)
			out = append(out, KeyHit{ordinals[i], RowRef{t.st.log.path(), uint32(row)}})
		}
	}
	slices.SortStableFunc(out, func(a, b KeyHit) int { return a.Ordinal - b.Ordinal })
	return out, nil
}

// keysOf encodes a batch of key columns. Rows with a NULL match nothing and are left out: ordinals[i] is the batch's row
// of keys[i].
func (t *TxTable) keysOf(ctx context.Context, rec arrow.RecordBatch) (keys [][]byte, ordinals []int, err error) {
	if !t.keyed() {
		return nil, nil, ErrNoKey
	}
	rec, err = conform(ctx, rec, t.keyArrow)
	if err != nil {
		return nil, nil, err
	}
	defer rec.Release()
	enc, err := keyindex.NewArrayEncoder(rec.Columns())
	if err != nil {
		return nil, nil, err
	}
	for row := range int(rec.NumRows()) {
		key, err := enc.Append(nil, row)
		if errors.Is(err, keyindex.ErrNullKey) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		keys, ordinals = append(keys, key), append(ordinals, row)
	}
	return keys, ordinals, nil
}
