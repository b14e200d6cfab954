package warehouse

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/liveset"
)

// Append adds the rows of rec, whose columns are ArrowSchema's (by name or position; missing ones are NULL). It may be
// called from many goroutines; it blocks while more than the memory limit waits to be written. rec is retained, not
// copied: its buffers must not change. A key that a live row has is *DuplicateKeyError, a NULL in a required column
// *NotNullError; then nothing of rec was added.
func (t *TxTable) Append(ctx context.Context, rec arrow.RecordBatch) error {
	if err := t.writable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	rec, err := conform(ctx, rec, t.arrow)
	if err != nil {
		return err
	}
	defer func() { rec.Release() }()
	if rec.NumRows() == 0 {
		return nil
	}
	if rec, err = t.guarded(ctx, rec); err != nil {
		return err
	}
	if !t.keyed() {
		return t.addRows(ctx, rec, nil, nil)
	}
	keys, err := encodeKeys(rec, t.keyCols)
	if err != nil {
		return err
	}
	return t.addRows(ctx, rec, keys, nil)
}

// AppendMissing is Append for rows that are the inserting half of an upsert: a key that another commit takes meanwhile makes
// Commit ErrConflict, for running the upsert again updates that row.
func (t *TxTable) AppendMissing(ctx context.Context, rec arrow.RecordBatch) error {
	if err := t.Append(ctx, rec); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.st.upserted = true
	return nil
}

// addRows adds conformed rows; keys are theirs (nil: unkeyed), rowIDs the _row_ids they keep (nil: none). Keys are
// checked against the base and the own files outside the lock, against the rows in memory inside it.
func (t *TxTable) addRows(ctx context.Context, rec arrow.RecordBatch, keys [][]byte, rowIDs []int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.writableLocked(ctx); err != nil {
		return err
	}
	checked := 0 // own files that the keys were probed against
	if keys != nil {
		for first := true; first || checked < len(t.st.own); first = false {
			st, own := t.st, t.st.own
			var set *liveset.Set
			if len(own) > 0 {
				set = t.ownSetLocked()
			}
			t.mu.Unlock()
			err := t.checkFiles(ctx, st, rec, keys, set, first)
			t.mu.Lock()
			if err != nil {
				return err
			}
			checked = len(own)
			if t.st.err != nil {
				return t.st.err
			}
		}
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

// checkFiles refuses keys that are live in the own files or, when base is set, in the base. It needs no lock: appends
// suppress nothing.
func (t *TxTable) checkFiles(ctx context.Context, st *state, rec arrow.RecordBatch, keys [][]byte, own *liveset.Set, base bool) error {
	var hits []liveset.Hit
	var err error
	if base {
		if hits, err = t.probeBase(ctx, st, keys); err != nil {
			return err
		}
	}
	if len(hits) == 0 && own != nil {
		if hits, err = t.probeSet(ctx, st, own, keys); err != nil {
			return err
		}
	}
	if len(hits) > 0 {
		return t.duplicate(rec, t.keyCols, hits[0].KeyOrdinal)
	}
	return nil
}

// probeBase finds the rows of keys that are live in the base and not suppressed by the transaction.
func (t *TxTable) probeBase(ctx context.Context, st *state, keys [][]byte) ([]liveset.Hit, error) {
	if st.truncated || t.baseSet.NumFiles() == 0 {
		return nil, nil
	}
	return t.probeSet(ctx, st, t.baseSet, keys)
}

// probeSet finds the rows of keys in set that the transaction did not suppress.
func (t *TxTable) probeSet(ctx context.Context, st *state, set *liveset.Set, keys [][]byte) ([]liveset.Hit, error) {
	hits, err := t.tx.w.opts.Live.Probe(ctx, t.Ref(), set, t.keyIDs, keys)
	if err != nil {
		return nil, err
	}
	out := hits[:0:0]
	for _, h := range hits {
		if b := st.suppressed(h.File.File.Path); b == nil || !b.Contains(h.Pos) {
			out = append(out, h)
		}
	}
	return out, nil
}

// putKeysLocked enters the keys of rows about to be appended to the log. On a duplicate the log is as before.
func (t *TxTable) putKeysLocked(rec arrow.RecordBatch, keys [][]byte) error {
	dup := t.enterKeysLocked(keys)
	if dup < 0 {
		return nil
	}
	t.rekeyLocked()
	return t.duplicate(rec, t.keyCols, dup)
}

// enterKeysLocked is putKeysLocked up to the first duplicate, whose row it returns; -1 when there is none.
func (t *TxTable) enterKeysLocked(keys [][]byte) int {
	log := t.st.log
	log.keyMu.Lock()
	defer log.keyMu.Unlock()
	for i, key := range keys {
		_, live := t.logFindLocked(key)
		if !live {
			if r, ok := log.keys.find(key); ok && r >= log.rows {
				live = true // an earlier row of this batch
			}
		}
		if live {
			return i
		}
		log.keys.put(key, log.rows+int32(i))
	}
	return -1
}

// logFindLocked finds the key's live row in the log, or says that one is live in a log on its way to a file.
func (t *TxTable) logFindLocked(key []byte) (row int32, live bool) {
	if sp := t.spill; sp != nil {
		if r, ok := sp.log.keys.find(key); ok && !sp.dead(r) {
			return -1, true
		}
	}
	r, ok := t.st.log.keys.find(key)
	return r, ok && r < t.st.rows && !t.st.isDead(r)
}

// rekeyLocked makes the log's key table anew from its rows.
func (t *TxTable) rekeyLocked() {
	log := t.st.log
	if !t.keyed() {
		return
	}
	log.keyMu.Lock()
	defer log.keyMu.Unlock()
	log.keys = &keyTable{}
	for i, b := range log.batches {
		keys, err := encodeKeys(b, t.keyCols)
		if err != nil {
			t.st.err = err // cannot happen: the rows were encoded before
			return
		}
		for j, k := range keys {
			log.keys.put(k, log.starts[i]+int32(j))
		}
	}
}
