package engine

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Ranges of sequence values. A range is reserved in the catalog's store before the first of its values is handed out, and all sessions share it:
// after a crash the rest of a range is a gap, never a duplicate. Ranges grow while they are used up fast.
const (
	sequenceRange    = 1000
	sequenceRangeMax = 64 << 10
	sequenceHurry    = time.Second
)

// sequenceStore is where reserved ranges are kept: the catalog.
type sequenceStore interface {
	Sequence(ctx context.Context, id uuid.UUID) (catalog.SequenceState, bool, error)
	SetSequence(ctx context.Context, id uuid.UUID, was *catalog.SequenceState, now catalog.SequenceState) error
}

// sequenceValues are the runs of values that the gateway has drawn from, by storedSequence.State.
type sequenceValues struct {
	store sequenceStore
	mu    struct {
		sync.Mutex
		runs map[uuid.UUID]*sequenceRun
	}
}

// sequenceRun is a run of values of one sequence.
type sequenceRun struct {
	store sequenceStore
	id    uuid.UUID
	mu    struct {
		sync.Mutex
		loaded bool
		def    pgsql.Sequence
		at     catalog.SequenceState // what was handed out
		stored *catalog.SequenceState
		left   int64 // values between at and stored
		size   int64 // of the next range
		filled time.Time
	}
}

func newSequenceValues(store sequenceStore) *sequenceValues {
	v := &sequenceValues{store: store}
	v.mu.runs = map[uuid.UUID]*sequenceRun{}
	return v
}

func (v *sequenceValues) run(id uuid.UUID) *sequenceRun {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.mu.runs[id]
	if r == nil {
		r = &sequenceRun{store: v.store, id: id}
		v.mu.runs[id] = r
	}
	return r
}

// forgetSequences removes the states of sequences that are no more. No transaction is open yet.
func (gw *Gateway) forgetSequences(ctx context.Context) error {
	used := map[uuid.UUID]bool{}
	for o := range gw.catalog.Cut().Objects(sequenceKind, nil) {
		q, err := decodeSequence(o)
		if err != nil {
			gw.log.Error().Err(err).Msg("a sequence is left as it is")
			return nil // its state cannot be told from one that nobody needs
		}
		used[q.State] = true
	}
	// Those of dropped tables can come back with them.
	dropped := map[catalog.TableKey]bool{}
	for d := range gw.catalog.Cut().DroppedTables() {
		dropped[d.State.Key] = true
	}
	if len(dropped) > 0 {
		err := gw.catalog.ObjectVersions(ctx, sequenceKind, func(o *catalog.Object) error {
			if q, err := decodeSequence(o); err == nil && q.Owner != nil && dropped[q.Owner.Table] {
				used[q.State] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return gw.catalog.ForgetSequences(ctx, func(id uuid.UUID) bool { return used[id] })
}

// close gives the unused rest of every range back, so that a clean stop leaves no gap.
func (v *sequenceValues) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for _, r := range v.mu.runs {
		r.mu.Lock()
		if r.mu.left > 0 {
			errs = append(errs, r.storeLocked(context.Background(), r.mu.at))
			r.mu.left = 0
		}
		r.mu.Unlock()
	}
	return errors.Join(errs...)
}

// storeLocked makes a state durable.
func (r *sequenceRun) storeLocked(ctx context.Context, now catalog.SequenceState) error {
	if r.mu.stored != nil && *r.mu.stored == now {
		return nil
	}
	if err := r.store.SetSequence(ctx, r.id, r.mu.stored, now); err != nil {
		if errors.Is(err, catalog.ErrConflict) {
			r.mu.loaded = false // another gateway reserved
		}
		return err
	}
	r.mu.stored = &now
	return nil
}

// loadLocked reads the state on first use, and forgets the range when the definition is another.
func (r *sequenceRun) loadLocked(ctx context.Context, q *storedSequence) error {
	if def := q.def(); def != r.mu.def {
		r.mu.def, r.mu.left = def, 0
	}
	if r.mu.loaded {
		return nil
	}
	st, ok, err := r.store.Sequence(ctx, r.id)
	if err != nil {
		return err
	}
	r.mu.at, r.mu.stored = catalog.SequenceState{Last: q.First}, nil
	if ok {
		r.mu.at, r.mu.stored = st, &st
	}
	r.mu.left, r.mu.size, r.mu.loaded = 0, max(sequenceRange, q.Cache), true
	return nil
}

// next draws n values and hands them to each in turn.
func (r *sequenceRun) next(ctx context.Context, q *storedSequence, n int, each func(v int64)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n > 0 {
		if err := r.loadLocked(ctx, q); err != nil {
			return err
		}
		if r.mu.left == 0 {
			if err := r.reserveLocked(ctx, q, int64(n)); errors.Is(err, catalog.ErrConflict) {
				continue
			} else if err != nil {
				return err
			}
		}
		for ; n > 0 && r.mu.left > 0; n-- {
			at, ok := advance(r.mu.at, r.mu.def, 1)
			if ok == 0 {
				return sequenceEnd(q)
			}
			r.mu.at = at
			r.mu.left--
			each(at.Last)
		}
	}
	return nil
}

// reserveLocked makes at least one more value available, n or more when the limits allow it.
func (r *sequenceRun) reserveLocked(ctx context.Context, q *storedSequence, n int64) error {
	now := time.Now()
	if now.Sub(r.mu.filled) < sequenceHurry {
		r.mu.size = min(r.mu.size*2, max(sequenceRangeMax, q.Cache))
	} else {
		r.mu.size = max(sequenceRange, q.Cache)
	}
	to, got := advance(r.mu.at, r.mu.def, max(r.mu.size, n))
	if got == 0 {
		return sequenceEnd(q)
	}
	if err := r.storeLocked(ctx, to); err != nil {
		return err
	}
	r.mu.left, r.mu.filled = got, now
	return nil
}

// advance is the state after up to n more values, and how many there are before a limit is met. A cycle starts again where a range begins
// at the limit.
func advance(s catalog.SequenceState, d pgsql.Sequence, n int64) (catalog.SequenceState, int64) {
	if n <= 0 {
		return s, 0
	}
	got := int64(0)
	if !s.Called {
		s.Called = true
		got = 1
	}
	// room is how many steps fit; the difference may need 64 bits without sign.
	room := uint64(0)
	switch {
	case d.Increment > 0 && s.Last < d.Max:
		room = (uint64(d.Max) - uint64(s.Last)) / uint64(d.Increment)
	case d.Increment < 0 && s.Last > d.Min:
		room = (uint64(s.Last) - uint64(d.Min)) / (uint64(-(d.Increment + 1)) + 1)
	}
	if got == 0 && room == 0 {
		if !d.Cycle {
			return s, 0
		}
		if s.Last = d.Min; d.Increment < 0 {
			s.Last = d.Max
		}
		return s, 1
	}
	step := min(uint64(n-got), room, math.MaxInt64)
	s.Last += int64(step) * d.Increment
	return s, got + int64(step)
}

func sequenceEnd(q *storedSequence) error {
	if q.Increment > 0 {
		return pgerr.Newf(pgerr.SequenceLimitExceeded, "nextval: reached maximum value of sequence \"%s\" (%d)", q.name(), q.Max)
	}
	return pgerr.Newf(pgerr.SequenceLimitExceeded, "nextval: reached minimum value of sequence \"%s\" (%d)", q.name(), q.Min)
}

// set is setval.
func (r *sequenceRun) set(ctx context.Context, q *storedSequence, v int64, called bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if err := r.loadLocked(ctx, q); err != nil {
			return err
		}
		now := catalog.SequenceState{Last: v, Called: called}
		if err := r.storeLocked(ctx, now); errors.Is(err, catalog.ErrConflict) {
			continue
		} else if err != nil {
			return err
		}
		r.mu.at, r.mu.left = now, 0
		return nil
	}
}

// state is what SELECT * FROM sequence shows: the last value handed out, and how many are reserved beyond it.
func (r *sequenceRun) state(ctx context.Context, q *storedSequence) (st catalog.SequenceState, left int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.loadLocked(ctx, q); err != nil {
		return st, 0, err
	}
	return r.mu.at, r.mu.left, nil
}
