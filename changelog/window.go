package changelog

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// step is one move of the table's head inside a window.
type step struct {
	old, new *int64 // nil: the empty state
	seq      uint64 // 0: predates the catalog
	ordinal  int32
	time     time.Time
	replace  bool
	// Rows 0 … skip−1 of the step lie before the window, rows from limit on after it.
	skip, limit int64
}

// window is a resolved (from, to].
type window struct {
	h        *history
	from, to place
	steps    []step
}

// logPage is how many log records are read at once.
const logPage = 1024

// openWindow resolves both bounds and lists the steps between them.
func (h *history) openWindow(ctx context.Context, fromB, toB Bound) (*window, error) {
	from, err := h.resolve(ctx, fromB, true)
	if err != nil {
		return nil, err
	}
	to, err := h.resolve(ctx, toB, false)
	if err != nil {
		return nil, err
	}
	if fromB.Kind == BoundTime && toB.Kind == BoundTime && fromB.Time.After(toB.Time) {
		return nil, fromAfterTo(fromB, toB)
	}
	w := &window{h: h, from: from, to: to}
	if from.byAncestry() || to.byAncestry() {
		if w.steps, err = h.ancestrySteps(ctx, from, to); err != nil {
			return nil, err
		}
		return w, nil
	}
	if order(from, to) > 0 && fromB.Kind != BoundNull {
		return nil, fromAfterTo(fromB, toB)
	}
	if w.steps, err = h.logSteps(ctx, from, to); err != nil {
		return nil, err
	}
	w.trim()
	return w, nil
}

// trim applies the rows of seq:N/ordinal/row bounds. The steps of seq N are in the list for either bound.
func (w *window) trim() {
	kept := w.steps[:0]
	for _, s := range w.steps {
		s.limit = math.MaxInt64
		if b := w.from.bound; b.HasRow && s.seq == b.Seq {
			if s.ordinal < b.Ordinal {
				continue
			}
			if s.ordinal == b.Ordinal {
				s.skip = b.Row + 1
			}
		}
		if b := w.to.bound; b.HasRow && s.seq == b.Seq {
			if s.ordinal > b.Ordinal {
				continue
			}
			if s.ordinal == b.Ordinal {
				s.limit = b.Row + 1
			}
		}
		kept = append(kept, s)
	}
	w.steps = kept
}

// logSteps follows the commit log from one place to another.
func (h *history) logSteps(ctx context.Context, from, to place) ([]step, error) {
	after, head := from.seq, from.snapshot
	if from.bound.HasRow && from.seq > 0 {
		// The window begins inside this commit: its steps are listed from the state before it.
		after--
		before, err := h.resolveSeq(ctx, Seq(after), after)
		if err != nil {
			return nil, err
		}
		head = before.snapshot
	}
	if from.pre {
		after, head = 0, nil
	}
	last := to.seq
	if to.pre {
		return h.preSteps(ctx, from, to)
	}
	var steps []step
	for after < last {
		recs, err := h.cat.CommitsOf(ctx, h.state.Key, after, last, logPage)
		if err != nil {
			return nil, h.logError(ctx, from.bound, err)
		}
		for _, rec := range recs {
			if steps, head, err = h.recordSteps(ctx, steps, rec, head); err != nil {
				return nil, err
			}
		}
		if len(recs) < logPage {
			break
		}
		after = recs[len(recs)-1].Seq
	}
	if from.pre {
		steps = dropThrough(steps, from.snapshot)
	}
	return steps, nil
}

// preSteps lists steps between two places among the snapshots that predate the catalog.
func (h *history) preSteps(ctx context.Context, from, to place) ([]step, error) {
	var steps []step
	path, found, gone := h.path(from.snapshot, *to.snapshot)
	if gone {
		return nil, h.expired(ctx, to.snapshot, "the beginning of the window")
	}
	if !found {
		return nil, nil // from lies after to on one line of snapshots: nothing between them
	}
	old := from.snapshot
	for _, s := range path {
		steps = append(steps, h.preStep(old, s))
		old = &s.SnapshotID
	}
	return steps, nil
}

func (h *history) preStep(old *int64, s *table.Snapshot) step {
	return step{old: old, new: &s.SnapshotID, time: h.snapshotTime(s), replace: isReplace(s)}
}

func dropThrough(steps []step, id *int64) []step {
	for i := range steps {
		if steps[i].seq != 0 {
			return steps[i:]
		}
		if steps[i].new != nil && *steps[i].new == *id {
			return steps[i+1:]
		}
	}
	return nil
}

// recordSteps appends the steps of one log record and returns the head after it.
func (h *history) recordSteps(ctx context.Context, steps []step, rec *catalog.Record, head *int64) ([]step, *int64, error) {
	ordinal := int32(0)
	for i := range rec.Tables {
		tr := &rec.Tables[i]
		if tr.Key != h.state.Key || tr.Ref != "" && tr.Ref != table.MainBranch {
			continue
		}
		next := tr.SnapshotID
		switch tr.Kind {
		case catalog.KindCreate, catalog.KindCommit, catalog.KindRegister:
			if next == nil {
				continue
			}
		case catalog.KindRef:
		default:
			continue
		}
		if equalID(head, next) {
			continue
		}
		more, err := h.moveSteps(ctx, rec, tr.Kind == catalog.KindRegister, head, next, ordinal)
		if err != nil {
			return nil, nil, err
		}
		steps = append(steps, more...)
		ordinal += int32(len(more))
		head = next
	}
	return steps, head, nil
}

// moveSteps lists the steps of one move of the head: one per snapshot when the old head is an ancestor of the new one,
// else one for the whole move (a rollback, a replaced ref).
func (h *history) moveSteps(ctx context.Context, rec *catalog.Record, register bool, old, next *int64, ordinal int32) ([]step, error) {
	move := step{old: old, new: next, seq: rec.Seq, ordinal: ordinal, time: rec.Time}
	if next == nil {
		return []step{move}, nil
	}
	if h.snapshot(*next) == nil {
		return nil, h.expired(ctx, nil, fmt.Sprintf("snapshot %d of commit seq %d", *next, rec.Seq))
	}
	if old != nil && h.snapshot(*old) == nil {
		return nil, h.expired(ctx, nil, fmt.Sprintf("snapshot %d", *old))
	}
	path, found, gone := h.path(old, *next)
	if !found && gone && old == nil {
		return nil, h.expired(ctx, next, "the beginning of the table's history")
	}
	if !found && gone && older(h.snapshot(*old), path[0]) {
		// It may have gone forward over snapshots that are there no longer: as one step the change would have other rows than it had.
		return nil, h.expired(ctx, next, fmt.Sprintf("a snapshot between %d and %d of commit seq %d", *old, *next, rec.Seq))
	}
	if !found {
		return []step{move}, nil
	}
	steps := make([]step, 0, len(path))
	for _, s := range path {
		st := h.preStep(old, s)
		if !register {
			st.seq, st.time, st.ordinal = rec.Seq, rec.Time, ordinal+int32(len(steps))
		}
		steps = append(steps, st)
		old = &s.SnapshotID
	}
	return steps, nil
}

// ancestrySteps follows the snapshots' parents from one state to another.
func (h *history) ancestrySteps(ctx context.Context, from, to place) ([]step, error) {
	skip, limit, err := h.enterAncestry(ctx, &from, &to)
	if err != nil {
		return nil, err
	}
	base := from.snapshot
	if to.snapshot == nil {
		if base == nil {
			return nil, nil
		}
		return nil, fromAfterTo(from.bound, to.bound)
	}
	for _, id := range []*int64{base, to.snapshot} {
		if id != nil && h.snapshot(*id) == nil {
			return nil, h.unknownSnapshot(ctx, *id)
		}
	}
	path, found, gone := h.path(base, *to.snapshot)
	if !found {
		return nil, h.noPath(ctx, from, to, base, gone)
	}
	steps := make([]step, 0, len(path))
	for _, s := range path {
		st := h.preStep(base, s)
		st.limit = math.MaxInt64
		if skip != nil && *skip.new == s.SnapshotID {
			st.skip = skip.skip
		}
		if limit != nil && *limit.new == s.SnapshotID {
			st.limit = limit.limit
		}
		rec, err := h.commit(ctx, s.SnapshotID)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			st.seq, st.time = rec.Seq, rec.Time
			if n := len(steps); n > 0 && steps[n-1].seq == st.seq {
				st.ordinal = steps[n-1].ordinal + 1
			} else if st.ordinal, err = h.ordinalOf(ctx, s, rec.Seq); err != nil {
				return nil, err
			}
		}
		steps = append(steps, st)
		base = &s.SnapshotID
	}
	return steps, nil
}

// ordinalOf counts the ancestors of a snapshot that came with the same seq.
func (h *history) ordinalOf(ctx context.Context, s *table.Snapshot, seq uint64) (int32, error) {
	n := int32(0)
	for p, _ := h.parent(s); p != nil; p, _ = h.parent(p) {
		rec, err := h.commit(ctx, p.SnapshotID)
		if err != nil {
			return 0, err
		}
		if rec == nil || rec.Seq != seq {
			break
		}
		n++
	}
	return n, nil
}

// noPath says why from is not on the way to to.
func (h *history) noPath(ctx context.Context, from, to place, base *int64, gone bool) error {
	if base != nil {
		if _, found, _ := h.path(to.snapshot, *base); found {
			return fromAfterTo(from.bound, to.bound)
		}
	}
	if gone || base == nil {
		return h.expired(ctx, to.snapshot, "a snapshot inside the window")
	}
	e := &Error{Err: ErrNotAncestor,
		Message: fmt.Sprintf("snapshot %d is not an ancestor of snapshot %d", *base, *to.snapshot),
		Detail:  "They have no common ancestor.",
		Hint:    "Use table_changes_net, which compares two states without a path, or seq: bounds, which follow the log."}
	seen := map[int64]bool{}
	left, _, _ := h.path(nil, *base)
	for _, s := range left {
		seen[s.SnapshotID] = true
	}
	right, _, _ := h.path(nil, *to.snapshot)
	for i := len(right) - 1; i >= 0; i-- {
		if seen[right[i].SnapshotID] {
			e.Detail = fmt.Sprintf("Their common ancestor is snapshot %d.", right[i].SnapshotID)
			break
		}
	}
	return e
}

func equalID(a, b *int64) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// older reports whether a may be an ancestor of b.
func older(a, b *table.Snapshot) bool {
	if a.SequenceNumber != b.SequenceNumber {
		return a.SequenceNumber < b.SequenceNumber
	}
	return a.TimestampMs <= b.TimestampMs // version 1 has no sequence numbers
}

func isReplace(s *table.Snapshot) bool {
	return s.Summary != nil && s.Summary.Operation == table.OpReplace
}
