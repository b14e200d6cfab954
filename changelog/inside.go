package changelog

import (
	"context"
	"slices"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// stepsAt lists the steps of one commit, as the log's walk numbers them for main and as the ancestry's walk does for each other branch: what
// seq:N/ordinal/row points into.
func (h *history) stepsAt(ctx context.Context, seq uint64) ([]step, error) {
	recs, err := h.cat.CommitsOf(ctx, h.state.Key, seq-1, seq, 1)
	if err != nil {
		return nil, h.logError(ctx, Seq(seq), err)
	}
	if len(recs) == 0 {
		return nil, nil // a commit of other tables
	}
	before, err := h.resolveSeq(ctx, Seq(seq-1), seq-1)
	if err != nil {
		return nil, err
	}
	steps, _, err := h.recordSteps(ctx, nil, recs[0], before.snapshot)
	if err != nil {
		return nil, err
	}
	ordinals := map[string]int32{}
	for i := range recs[0].Tables {
		tr := &recs[0].Tables[i]
		if tr.Key != h.state.Key || tr.Kind != catalog.KindCommit || tr.Ref == "" || tr.Ref == table.MainBranch || tr.SnapshotID == nil {
			continue
		}
		steps = append(steps, step{old: tr.ParentID, new: tr.SnapshotID, seq: seq, ordinal: ordinals[tr.Ref]})
		ordinals[tr.Ref]++
	}
	return steps, nil
}

// inside finds, for a window along the ancestry, the step that a place inside a commit names, among those that on admits: nil when the commit has none of
// that ordinal.
func (h *history) inside(ctx context.Context, b Bound, on func(step) bool) (*step, error) {
	steps, err := h.stepsAt(ctx, b.Seq)
	if err != nil {
		return nil, err
	}
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.ordinal != b.Ordinal || s.new == nil })
	if len(steps) == 0 {
		return nil, nil
	}
	if i := slices.IndexFunc(steps, on); i >= 0 {
		return &steps[i], nil
	}
	return &steps[0], nil
}

// leads reports whether a snapshot is old's (nil: the empty state's) descendant, or itself.
func (h *history) leads(old *int64, to int64) bool {
	_, found, _ := h.path(old, to)
	return found
}

// enterAncestry resolves seq:N/ordinal/row at either end of a window along the ancestry: the state before the step that from is in, and
// the state after the one that to is in. skip and limit are that step's, by its snapshot.
func (h *history) enterAncestry(ctx context.Context, from, to *place) (skip, limit *step, err error) {
	if b := from.bound; b.HasRow && from.seq > 0 {
		if skip, err = h.inside(ctx, b, func(s step) bool { return to.snapshot != nil && h.leads(s.new, *to.snapshot) }); err != nil {
			return nil, nil, err
		}
		if skip != nil {
			if to.snapshot != nil && skip.old != nil && !h.leads(skip.new, *to.snapshot) {
				from.snapshot = skip.new
				return nil, nil, h.noPath(ctx, *from, *to, skip.new, false)
			}
			from.snapshot, skip.skip = skip.old, b.Row+1
		}
	}
	if b := to.bound; b.HasRow && to.seq > 0 {
		if limit, err = h.inside(ctx, b, func(s step) bool { return h.leads(from.snapshot, *s.new) }); err != nil {
			return nil, nil, err
		}
		if limit != nil {
			to.snapshot, limit.limit = limit.new, b.Row+1
		}
	}
	return skip, limit, nil
}
