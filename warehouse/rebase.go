package warehouse

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// maxRebaseRows bounds the rows of other commits whose keys a rebase compares with the transaction's own.
const maxRebaseRows = 1 << 20

// SetCut moves the transaction to a newer cut (READ COMMITTED: one per statement). A table with own writes follows when the commits
// between touch none of the rows and keys that the transaction wrote; else, and when its schema changed, it keeps its cut, and
// Commit says what is wrong.
func (tx *Tx) SetCut(ctx context.Context, cut *catalog.Cut) error {
	tx.cut = cut
	named := map[catalog.TableKey]bool{} // renamed or brought back here: the newer cut does not know the name
	for _, key := range tx.names.byIdent {
		named[key] = true
	}
	for key, t := range tx.names.tables {
		switch {
		case t.base == nil || len(t.alters) > 0:
		case len(t.refs) > 0 || t.OnBranch() || t.newBranch != "": // of another line of snapshots: Commit says whether they fit
			if !t.altered() {
				delete(tx.names.tables, key)
			}
		case !t.Changed():
			if !named[key] {
				delete(tx.names.tables, key)
			}
		default:
			state, ok := cut.TableByKey(key)
			if !ok || state.ChangedSeq == t.base.ChangedSeq {
				continue
			}
			if err := t.rebase(ctx, state); err != nil {
				return fmt.Errorf("move %v to a newer cut: %w", t.ident, err)
			}
		}
	}
	return nil
}

// Bases are the states that the transaction's own writes stand on: the cut's, or older ones.
func (tx *Tx) Bases() []*catalog.TableState {
	var out []*catalog.TableState
	for _, t := range tx.names.tables {
		if t.base != nil && t.altered() {
			out = append(out, t.base)
		}
	}
	return out
}

// rebase puts the transaction's writes on a newer state of the table, if they fit. Savepoints need no care: what they hold is less
// than what is checked here.
func (t *TxTable) rebase(ctx context.Context, state *catalog.TableState) error {
	meta, err := state.Metadata(ctx)
	if err != nil {
		return err
	}
	mine := t.baseMeta
	if meta.TableUUID() != mine.TableUUID() || meta.Version() != mine.Version() ||
		meta.CurrentSchema().ID != mine.CurrentSchema().ID || meta.DefaultPartitionSpec() != mine.DefaultPartitionSpec() ||
		meta.Properties()[PropertyDefinition] != mine.Properties()[PropertyDefinition] || t.st.exclusive {
		return nil
	}
	ref := liveset.Ref{UUID: meta.TableUUID(), Metadata: meta}
	set := liveset.Empty()
	if id, ok := state.SnapshotID(); ok {
		if set, err = t.tx.w.opts.Live.At(ctx, ref, id); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	if t.st.truncated || len(t.st.eq) > 0 {
		return nil
	}
	for p, b := range t.st.suppress {
		if b.IsEmpty() || t.baseSet.File(p) == nil {
			continue
		}
		if f := set.File(p); f == nil || f.Suppressed != nil && f.Suppressed.Intersects(b) {
			return nil
		}
	}
	if clash, err := t.keysClashLocked(ctx, ref, set); err != nil || clash {
		return err
	}
	t.base, t.baseMeta, t.baseSet, t.liveSet = state, meta, set, nil
	t.head = head{}
	if id, ok := state.SnapshotID(); ok {
		t.head.snapshot = &id
	}
	t.openedHead, t.openedSet = t.head, set
	return nil
}

// StillLive reports whether rows (positions by data file) of main at the transaction's cut are live in a newer state of the table too, wherever compactions have
// put them. Rows that the transaction itself wrote are.
func (t *TxTable) StillLive(ctx context.Context, state *catalog.TableState, rows map[string]*roaring.Bitmap) (bool, error) {
	if t.OnBranch() {
		return true, nil // what main's commits did is nothing to a branch
	}
	set := liveset.Empty()
	if id, ok := state.SnapshotID(); ok {
		meta, err := state.Metadata(ctx)
		if err != nil {
			return false, err
		}
		if set, err = t.tx.w.opts.Live.At(ctx, liveset.Ref{UUID: meta.TableUUID(), Metadata: meta}, id); err != nil {
			return false, fmt.Errorf("live set of a newer commit: %w", err)
		}
	}
	there := map[string]*roaring.Bitmap{}
	for path, b := range rows {
		if t.baseSet.File(path) == nil {
			continue
		}
		if err := t.tx.w.moves.follow(set, path, b, there); errors.Is(err, ErrConflict) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	for path, b := range there {
		if f := set.File(path); f == nil || f.Suppressed != nil && f.Suppressed.Intersects(b) {
			return false, nil
		}
	}
	return true, nil
}

// keysClashLocked reports whether commits since the base inserted a key that the transaction inserted too.
func (t *TxTable) keysClashLocked(ctx context.Context, ref liveset.Ref, set *liveset.Set) (bool, error) {
	if !t.keyed() || t.st.rows == 0 && len(t.st.own) == 0 {
		return false, nil
	}
	diffs, err := liveset.Diff(ctx, t.baseSet, set)
	if err != nil {
		return false, err
	}
	ov := liveset.Overlay{Suppress: map[string]*roaring.Bitmap{}}
	var theirs int64
	for _, d := range diffs {
		if d.Inserted == nil || d.Inserted.IsEmpty() {
			continue
		}
		theirs += card(d.Inserted)
		ov.Add = append(ov.Add, d.File)
		ov.Suppress[d.File.Path] = roaring.Flip(d.Inserted, 0, uint64(d.File.Records))
	}
	if theirs > maxRebaseRows {
		return true, nil
	}
	live := t.tx.w.opts.Live
	cols := make([]int, len(t.keyIDs))
	for i := range cols {
		cols[i] = i
	}
	for rec, err := range live.Scan(ctx, ref, liveset.Empty().With(ov), subSchema(t.schema, t.keyFields), liveset.ScanOptions{}) {
		if err != nil {
			return false, err
		}
		keys, err := encodeKeys(rec, cols)
		rec.Release()
		if err != nil {
			return false, err
		}
		for _, k := range keys {
			if _, mine := t.logFindLocked(k); mine {
				return true, nil
			}
		}
		hits, err := live.Probe(ctx, ref, t.ownSetLocked(), t.keyIDs, keys)
		if err != nil {
			return false, err
		}
		for _, h := range hits {
			if b := t.st.suppress[h.File.File.Path]; b == nil || !b.Contains(h.Pos) {
				return true, nil
			}
		}
	}
	return false, nil
}
