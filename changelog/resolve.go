package changelog

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// place is a resolved bound. For a place in the log, seq orders it (0: before the table's first record); snapshot is the
// head there. pre is set for a place among snapshots that predate the catalog.
type place struct {
	bound    Bound
	seq      uint64
	snapshot *int64
	schemaID int // −1: the snapshot's own
	pre      bool
	// rooted is the beginning of a table whose first snapshot is retained and its commit's record is not: the walk is along the ancestry.
	rooted bool
}

func (p place) byAncestry() bool { return p.rooted || p.bound.byAncestry() }

// describe turns a place into what StateAt returns.
func (h *history) describe(ctx context.Context, p place) (*State, error) {
	st := &State{Table: h.state, Metadata: h.meta, Snapshot: p.snapshot, Seq: p.seq}
	if p.schemaID >= 0 {
		st.Schema = h.schemaByID(p.schemaID)
	} else {
		st.Schema = h.schemaOf(p.snapshot)
	}
	if p.snapshot == nil {
		return st, nil
	}
	s := h.snapshot(*p.snapshot)
	if s == nil {
		return nil, h.unknownSnapshot(ctx, *p.snapshot)
	}
	st.Time = h.snapshotTime(s)
	rec, err := h.commit(ctx, *p.snapshot)
	if err != nil {
		return nil, err
	}
	if rec != nil {
		st.Time = rec.Time
		if p.byAncestry() {
			st.Seq = rec.Seq
		}
	}
	return st, nil
}

// resolve binds a bound to the table at the cut. from selects the meaning of NULL and earliest.
func (h *history) resolve(ctx context.Context, b Bound, from bool) (place, error) {
	current := place{bound: b, seq: h.cut.Seq(), snapshot: h.head, schemaID: h.meta.CurrentSchema().ID}
	beginning := place{bound: b, schemaID: h.meta.CurrentSchema().ID}
	switch b.Kind {
	case BoundNow:
		return current, nil
	case BoundNull:
		if from {
			return h.resolveBeginning(ctx, beginning)
		}
		return current, nil
	case BoundEarliest:
		return h.resolveEarliest(ctx, beginning)
	case BoundSnapshot:
		if h.snapshot(b.Snapshot) == nil {
			return place{}, h.unknownSnapshot(ctx, b.Snapshot)
		}
		return place{bound: b, snapshot: &b.Snapshot, schemaID: -1}, nil
	case BoundTag, BoundBranch:
		return h.resolveRef(b)
	case BoundSeq:
		if b.Seq > h.cut.Seq() {
			return place{}, &Error{Err: ErrUnknown, Message: fmt.Sprintf("commit seq %d does not exist", b.Seq),
				Detail: fmt.Sprintf("The current commit seq of this statement is %d.", h.cut.Seq())}
		}
		return h.resolveSeq(ctx, b, b.Seq)
	case BoundTime:
		if !b.Time.Before(h.cut.Time()) && h.cut.Seq() > 0 {
			return current, nil
		}
		return h.resolveTime(ctx, b)
	}
	return place{}, malformed(b.String(), "unknown kind")
}

// resolveBeginning is the state before the first snapshot.
func (h *history) resolveBeginning(ctx context.Context, beginning place) (place, error) {
	if h.head == nil || h.cat.OldestSeq() <= 1 {
		return beginning, nil
	}
	// The log was trimmed. Its records are not needed where the snapshots are all there.
	if s, root := h.oldest(*h.head); root {
		rec, err := h.commit(ctx, s.SnapshotID)
		if err != nil {
			return place{}, err
		}
		beginning.rooted = rec == nil
	}
	return beginning, nil
}

func (h *history) resolveEarliest(ctx context.Context, beginning place) (place, error) {
	if h.head == nil {
		return beginning, nil
	}
	s, root := h.oldest(*h.head)
	if root {
		return h.resolveBeginning(ctx, beginning)
	}
	// History was cut: the walk is along the ancestry from the oldest snapshot that is left.
	return place{bound: SnapshotID(s.SnapshotID), snapshot: &s.SnapshotID, schemaID: -1}, nil
}

func (h *history) resolveRef(b Bound) (place, error) {
	kind, refType := "tag", table.TagRef
	if b.Kind == BoundBranch {
		kind, refType = "branch", table.BranchRef
	}
	for name, ref := range h.meta.Refs() {
		if name == b.Name && ref.SnapshotRefType == refType {
			id := ref.SnapshotID
			p := place{bound: b, snapshot: &id, schemaID: -1}
			if refType == table.BranchRef {
				p.schemaID = h.meta.CurrentSchema().ID
			}
			return p, nil
		}
	}
	return place{}, &Error{Err: ErrUnknown, Message: fmt.Sprintf("table has no %s %q", kind, b.Name)}
}

func (h *history) resolveSeq(ctx context.Context, b Bound, seq uint64) (place, error) {
	if seq >= h.cut.Seq() {
		return place{bound: b, seq: h.cut.Seq(), snapshot: h.head, schemaID: h.meta.CurrentSchema().ID}, nil
	}
	at, err := h.cat.SnapshotAtSeq(ctx, h.state.Key, seq)
	if err != nil {
		return place{}, h.logError(ctx, b, err)
	}
	if !at.Exists && !at.Dropped { // a drop hides rows, it deletes none: a table that came back had them throughout
		return place{bound: b, schemaID: h.meta.CurrentSchema().ID, seq: seq}, nil
	}
	return place{bound: b, seq: seq, snapshot: at.SnapshotID, schemaID: at.SchemaID}, nil
}

func (h *history) resolveTime(ctx context.Context, b Bound) (place, error) {
	at, err := h.cat.SnapshotAt(ctx, h.state.Key, b.Time)
	if err != nil {
		return place{}, h.logError(ctx, b, err)
	}
	if at.Exists || at.Dropped {
		seq := min(at.Seq, h.cut.Seq())
		return place{bound: b, seq: seq, snapshot: at.SnapshotID, schemaID: at.SchemaID}, nil
	}
	p := place{bound: b, schemaID: h.meta.CurrentSchema().ID}
	// A registered table has a past of its own: its snapshots' timestamps order it.
	adopted, err := h.adopted(ctx)
	if err != nil || adopted == nil {
		return p, err
	}
	path, _, _ := h.path(nil, *adopted)
	for _, s := range path {
		if h.snapshotTime(s).After(b.Time) {
			break
		}
		p.snapshot, p.schemaID, p.pre = &s.SnapshotID, -1, true
	}
	return p, nil
}

// adopted returns the head that the table was registered with, nil when the catalog created it.
func (h *history) adopted(ctx context.Context) (*int64, error) {
	recs, err := h.cat.CommitsOf(ctx, h.state.Key, 0, h.cut.Seq(), 1)
	if err != nil && !isExpired(err) {
		return nil, fmt.Errorf("read commit log: %w", err)
	}
	if len(recs) == 0 {
		return nil, nil
	}
	for i := range recs[0].Tables {
		if tr := &recs[0].Tables[i]; tr.Key == h.state.Key && tr.Kind == catalog.KindRegister {
			return tr.SnapshotID, nil
		}
	}
	return nil, nil
}

// order compares two places of the log: −1, 0, 1.
func order(a, b place) int {
	if c := cmp.Compare(a.seq, b.seq); c != 0 {
		return c
	}
	if a.bound.HasRow != b.bound.HasRow {
		if a.bound.HasRow {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(a.bound.Ordinal, b.bound.Ordinal); c != 0 {
		return c
	}
	return cmp.Compare(a.bound.Row, b.bound.Row)
}

func fromAfterTo(from, to Bound) error {
	return &Error{Err: ErrFromAfterTo, Message: fmt.Sprintf("from (%s) is after to (%s)", from, to),
		Hint: "table_changes_net compares two states in either order."}
}

// logError words an error of the catalog's log for a bound.
func (h *history) logError(ctx context.Context, b Bound, err error) error {
	switch {
	case isExpired(err):
		return h.expired(ctx, nil, "the state at "+b.String())
	case isNotFound(err):
		return &Error{Err: ErrUnknown, Message: "there is no commit at " + b.String()}
	}
	return fmt.Errorf("read commit log: %w", err)
}

// StateAt resolves a bound to a state: what table_at, lookup's as_of and time travel read. NULL and now are the state
// current at the cut; earliest is the oldest retained snapshot of main. A place inside a commit is the state after it.
// Errors: iceberg-go's catalog.ErrNoSuchTable, ErrUnknown, ErrExpired.
func (r *Reader) StateAt(ctx context.Context, cut *catalog.Cut, ident table.Identifier, b Bound) (*State, error) {
	h, err := r.openHistory(ctx, cut, ident)
	if err != nil {
		return nil, err
	}
	return h.stateAt(ctx, b)
}

func (h *history) stateAt(ctx context.Context, b Bound) (*State, error) {
	if b.Kind == BoundEarliest && h.head != nil {
		if s, _ := h.oldest(*h.head); s != nil {
			b = SnapshotID(s.SnapshotID)
		}
	}
	p, err := h.resolve(ctx, b, false)
	if err != nil {
		return nil, err
	}
	return h.describe(ctx, p)
}

// SnapshotAt returns main's head at an instant; nil before the first snapshot. Times of snapshots that predate the
// catalog count too. Errors as StateAt.
func (r *Reader) SnapshotAt(ctx context.Context, cut *catalog.Cut, ident table.Identifier, t time.Time) (*int64, error) {
	st, err := r.StateAt(ctx, cut, ident, Timestamp(t))
	if err != nil {
		return nil, err
	}
	return st.Snapshot, nil
}
