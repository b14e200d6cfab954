package changelog

import (
	"context"
	"fmt"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/liveset"
)

// Net opens the net effect of a window: the state at From against the state at To, which may be in any order and on any
// branch (L3, L4). Every row carries To's snapshot, seq and time, ordinal 0. Errors: as Changes, without ErrFromAfterTo
// and ErrNotAncestor; ErrMalformedBound for a place inside a commit.
//
// Where compaction rewrote files between the two states and their ancestry is retained, the commits are folded and the
// rewritten files are passed over, when that reads less than the ends compared; the rows are the same.
func (r *Reader) Net(ctx context.Context, q Request) (*Result, error) {
	for _, b := range []Bound{q.From, q.To} {
		if b.HasRow {
			return nil, &Error{Err: ErrMalformedBound, Message: fmt.Sprintf("%s is a place inside a commit, not a state that can be compared", b),
				Hint: "Use table_changes, or a bound of whole commits: seq:N."}
		}
	}
	h, err := r.openHistory(ctx, q.Cut, q.Ident)
	if err != nil {
		return nil, err
	}
	from, err := h.resolve(ctx, q.From, true)
	if err != nil {
		return nil, err
	}
	to, err := h.resolve(ctx, q.To, false)
	if err != nil {
		return nil, err
	}
	w := &window{h: h, from: from, to: to}
	ends := [2]*State{}
	for i, p := range []place{from, to} {
		if ends[i], err = h.describe(ctx, p); err != nil {
			return nil, err
		}
	}
	if !equalID(from.snapshot, to.snapshot) {
		w.steps = []step{{old: from.snapshot, new: to.snapshot, seq: ends[1].Seq, time: ends[1].Time}}
		w.trim()
	}
	x, err := r.newResult(ctx, q, w)
	if err != nil {
		return nil, err
	}
	x.net = true
	return x, nil
}

// netDiffs returns what the files of a net effect add and take away: the difference of the ends, or the fold of the
// commits between them.
//
// The sum of the commits' differences is the difference of the ends, file by file: they differ only by the replace
// snapshots, which the fold leaves out as table_changes does (L5). So the fold is the difference of the ends less that of
// each replace snapshot on the way.
func (x *Result) netDiffs(ctx context.Context, s *step, ends []liveset.FileDiff) ([]liveset.FileDiff, error) {
	if len(ends) == 0 {
		return ends, nil
	}
	back, forth, ok := x.h.way(s.old, s.new)
	if !ok {
		return ends, nil
	}
	sum := liveset.NewSum(ends)
	folded := false
	for i, leg := range [][]*table.Snapshot{back, forth} {
		for _, snap := range leg {
			if !isReplace(snap) {
				continue
			}
			diffs, err := x.replaced(ctx, snap)
			if err != nil {
				// The ends do not need it.
				return ends, ctx.Err()
			}
			if len(diffs) == 0 {
				continue
			}
			folded = true
			if i == 0 {
				ok = sum.Add(diffs)
			} else {
				ok = sum.Subtract(diffs)
			}
			if !ok {
				return ends, nil
			}
		}
	}
	if !folded {
		return ends, nil
	}
	if fold := sum.Diffs(); diffBytes(fold) < diffBytes(ends) {
		return fold, nil
	}
	return ends, nil
}

// replaced returns the difference that a replace snapshot makes in files; none when it changed rows and so is no
// replacement.
func (x *Result) replaced(ctx context.Context, snap *table.Snapshot) ([]liveset.FileDiff, error) {
	before, err := x.set(ctx, snap.ParentSnapshotID)
	if err != nil {
		return nil, err
	}
	after, err := x.set(ctx, &snap.SnapshotID)
	if err != nil || before.Rows() != after.Rows() {
		return nil, err
	}
	return liveset.Diff(ctx, before, after)
}

// way lists the snapshots between two states through their nearest common ancestor: back those from it to old, forth
// those from it to new. ok is false when one of them has expired. nil is the empty state, the root of all.
func (h *history) way(old, new *int64) (back, forth []*table.Snapshot, ok bool) {
	line := func(tip *int64) (path []*table.Snapshot, whole bool) {
		if tip == nil {
			return nil, true
		}
		path, whole, _ = h.path(nil, *tip)
		return path, whole
	}
	back, backWhole := line(old)
	forth, forthWhole := line(new)
	places := make(map[int64]int, len(forth))
	for i, s := range forth {
		places[s.SnapshotID] = i
	}
	for i := len(back) - 1; i >= 0; i-- {
		if j, common := places[back[i].SnapshotID]; common {
			return back[i+1:], forth[j+1:], true
		}
	}
	if backWhole && forthWhole {
		return back, forth, true
	}
	return nil, nil, false
}

// diffBytes is about how many bytes of files the rows of differences are.
func diffBytes(diffs []liveset.FileDiff) float64 {
	bytes := 0.0
	for _, d := range diffs {
		rows := uint64(0)
		if d.Deleted != nil {
			rows += d.Deleted.GetCardinality()
		}
		if d.Inserted != nil {
			rows += d.Inserted.GetCardinality()
		}
		if d.File.Records > 0 {
			bytes += float64(d.File.Size) * float64(rows) / float64(d.File.Records)
		}
	}
	return bytes
}
