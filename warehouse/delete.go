package warehouse

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
)

// DeleteAt suppresses rows of one file of the Live set. Positions that are not live are passed over. It returns the
// number of rows that died.
func (t *TxTable) DeleteAt(ctx context.Context, path string, positions *roaring.Bitmap) (int64, error) {
	if err := t.writable(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return 0, err
	}
	live, err := t.liveAtLocked(path, positions)
	if err != nil || live.IsEmpty() {
		return 0, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	t.touched()
	return card(live), t.suppressLocked(path, live)
}

// liveAtLocked are the positions of path that are live.
func (t *TxTable) liveAtLocked(path string, positions *roaring.Bitmap) (*roaring.Bitmap, error) {
	if m := t.shown[path]; m != nil && !t.inLog(path) {
		return t.liveMoved(m, path, positions), nil
	}
	f, err := t.fileLocked(path)
	if err != nil {
		return nil, err
	}
	if f == nil {
		if t.inLog(path) {
			return roaring.New(), nil // all of its rows are dead
		}
		return nil, fmt.Errorf("%w: no file %s", ErrNotLive, path)
	}
	if !positions.IsEmpty() && int64(positions.Maximum()) >= f.File.Records {
		return nil, fmt.Errorf("%w: position %d of %s, which has %d rows", ErrNotLive, positions.Maximum(), path, f.File.Records)
	}
	live := positions.Clone()
	if f.Suppressed != nil {
		live.AndNot(f.Suppressed)
	}
	if b := t.st.suppressed(path); b != nil {
		live.AndNot(b)
	}
	return live, nil
}

// liveMoved is liveAtLocked for rows that were in memory.
func (t *TxTable) liveMoved(m *moves, path string, positions *roaring.Bitmap) *roaring.Bitmap {
	live := roaring.New()
	for it := positions.Iterator(); it.HasNext(); {
		p := it.Next()
		if to, pos, ok := m.at(path, p); ok {
			if b := t.st.suppressed(to); b == nil || !b.Contains(pos) {
				live.Add(p)
			}
		}
	}
	return live
}

// DeleteKeys suppresses the rows that have the keys of keys (columns as KeySchema); absent keys are passed over. It
// returns the number of rows that died.
func (t *TxTable) DeleteKeys(ctx context.Context, rec arrow.RecordBatch) (int64, error) {
	if err := t.writable(); err != nil {
		return 0, err
	}
	keys, _, err := t.keysOf(ctx, rec)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return 0, err
	}
	if err := t.writableLocked(ctx); err != nil {
		return 0, err
	}
	hits, err := t.findFilesLocked(ctx, keys)
	if err != nil {
		return 0, err
	}
	t.touched()
	var n int64
	for _, h := range hits {
		if b := t.st.suppressed(h.File.File.Path); b != nil && b.Contains(h.Pos) {
			continue // the key came twice
		}
		t.st.suppressRow(h.File.File.Path, h.Pos)
		n++
	}
	for _, k := range keys {
		if row, live := t.logFindLocked(k); live {
			t.st.kill(row)
			n++
		}
	}
	return n, nil
}

func card(b *roaring.Bitmap) int64 { return int64(b.GetCardinality()) }

// LiveAt are the positions of path that are live in this transaction.
func (t *TxTable) LiveAt(path string, positions *roaring.Bitmap) (*roaring.Bitmap, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.liveAtLocked(path, positions)
}
