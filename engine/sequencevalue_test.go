package engine

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// memoryStore keeps sequence states as the catalog does, and counts writes.
type memoryStore struct {
	sync.Mutex
	states map[uuid.UUID]catalog.SequenceState
	writes int
}

func (m *memoryStore) Sequence(_ context.Context, id uuid.UUID) (catalog.SequenceState, bool, error) {
	m.Lock()
	defer m.Unlock()
	s, ok := m.states[id]
	return s, ok, nil
}

func (m *memoryStore) SetSequence(_ context.Context, id uuid.UUID, was *catalog.SequenceState, now catalog.SequenceState) error {
	m.Lock()
	defer m.Unlock()
	if s, ok := m.states[id]; ok != (was != nil) || ok && s != *was {
		return fmt.Errorf("%w: moved", catalog.ErrConflict)
	}
	m.states[id] = now
	m.writes++
	return nil
}

func testSequence(t *testing.T, o *pgsql.SequenceOptions) *storedSequence {
	q, err := newSequence([]string{"public", "s"}, o)
	require.NoError(t, err)
	return q
}

func draw(t *testing.T, r *sequenceRun, q *storedSequence, n int) (out []int64) {
	require.NoError(t, r.next(context.Background(), q, n, func(v int64) { out = append(out, v) }))
	return out
}

// TestSequenceNeverRepeats draws from several gateways over one store, some of which are lost with the rest of their ranges.
func TestSequenceNeverRepeats(t *testing.T) {
	store := &memoryStore{states: map[uuid.UUID]catalog.SequenceState{}}
	q := testSequence(t, &pgsql.SequenceOptions{})
	var mu sync.Mutex
	seen := map[int64]bool{}
	for range 3 { // a crash is a new sequenceValues that was never closed
		var wg sync.WaitGroup
		gateways := []*sequenceValues{newSequenceValues(store), newSequenceValues(store)}
		for i := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 50 {
					var got []int64
					if err := gateways[i%2].run(q.State).next(context.Background(), q, 7, func(v int64) { got = append(got, v) }); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, v := range got {
						if seen[v] {
							t.Errorf("%d came twice", v)
						}
						seen[v] = true
					}
					mu.Unlock()
				}
			}()
		}
		wg.Wait()
	}
	require.Len(t, seen, 3*8*50*7)
	require.Less(t, store.writes, 60, "a value costs no write of its own")
}

func TestSequenceCleanStop(t *testing.T) {
	store := &memoryStore{states: map[uuid.UUID]catalog.SequenceState{}}
	q := testSequence(t, &pgsql.SequenceOptions{})
	v := newSequenceValues(store)
	require.Equal(t, []int64{1, 2, 3}, draw(t, v.run(q.State), q, 3))
	require.NoError(t, v.close())
	require.Equal(t, []int64{4}, draw(t, newSequenceValues(store).run(q.State), q, 1))
}

func TestSequenceLimits(t *testing.T) {
	store := &memoryStore{states: map[uuid.UUID]catalog.SequenceState{}}
	v := newSequenceValues(store)
	num := func(n int64) *int64 { return &n }
	yes := true
	q := testSequence(t, &pgsql.SequenceOptions{Max: num(5), Increment: num(2)})
	require.Equal(t, []int64{1, 3, 5}, draw(t, v.run(q.State), q, 3))
	require.ErrorContains(t, v.run(q.State).next(context.Background(), q, 1, func(int64) {}), "nextval: reached maximum value of sequence \"s\" (5)")
	q.Cycle = true
	require.Equal(t, []int64{1, 3, 5, 1}, draw(t, v.run(q.State), q, 4))

	down := testSequence(t, &pgsql.SequenceOptions{Increment: num(-1), Min: num(-3), Cycle: &yes})
	require.Equal(t, []int64{-1, -2, -3, -1, -2}, draw(t, v.run(down.State), down, 5))

	full := testSequence(t, &pgsql.SequenceOptions{Start: num(math.MaxInt64 - 1)})
	require.Equal(t, []int64{math.MaxInt64 - 1, math.MaxInt64}, draw(t, v.run(full.State), full, 2))
	require.Error(t, v.run(full.State).next(context.Background(), full, 1, func(int64) {}))

	low := testSequence(t, &pgsql.SequenceOptions{Increment: num(math.MinInt64), Max: num(math.MaxInt64), Start: num(5)})
	require.Equal(t, []int64{5, 5 + math.MinInt64}, draw(t, v.run(low.State), low, 2))

	short := testSequence(t, &pgsql.SequenceOptions{Type: pgtype.Int2})
	require.Equal(t, int64(math.MaxInt16), short.Max)
}

// TestSequenceAltered draws under a new definition: the range of the old one is forgotten, the position stays.
func TestSequenceAltered(t *testing.T) {
	store := &memoryStore{states: map[uuid.UUID]catalog.SequenceState{}}
	v := newSequenceValues(store)
	q := testSequence(t, &pgsql.SequenceOptions{})
	require.Equal(t, []int64{1, 2}, draw(t, v.run(q.State), q, 2))
	changed := *q
	changed.Increment = 10
	require.Equal(t, []int64{12, 22}, draw(t, v.run(q.State), &changed, 2))
	require.NoError(t, v.run(q.State).set(context.Background(), &changed, 5, false))
	require.Equal(t, []int64{5, 15}, draw(t, v.run(q.State), &changed, 2))
}
