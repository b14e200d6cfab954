package warehouse_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// seed is SKADE_SEED, else the clock; it is printed so that a failure can be run again.
func seed(t *testing.T) *rand.Rand {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("SKADE_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		s = n
	}
	t.Logf("SKADE_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// model is the rows of a keyed table by key.
type model map[int]string

func (m model) texts() []string {
	out := make([]string, 0, len(m))
	for id, v := range m {
		out = append(out, fmt.Sprintf("%d|%s|%d", id, v, id%7))
	}
	slices.Sort(out)
	return out
}

func row(id int, v string) []any { return []any{id, v, id % 7} }

// session is a transaction and what the model says it sees.
type session struct {
	t    *testing.T
	k    *testkit.Kit
	rng  *rand.Rand
	tx   *warehouse.Tx
	tt   *warehouse.TxTable
	base model
	view model
	seen map[int]bool // keys it touched
	all  bool         // truncated
}

const keySpace = 60

func open(t *testing.T, k *testkit.Kit, rng *rand.Rand, id icetable.Identifier, m model) *session {
	tx, tt := begin(t, k, id)
	return &session{t: t, k: k, rng: rng, tx: tx, tt: tt, base: maps.Clone(m), view: maps.Clone(m), seen: map[int]bool{}}
}

func (s *session) keys(n int) []int {
	out := make([]int, 0, n)
	for range n {
		out = append(out, s.rng.IntN(keySpace))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s *session) value() string { return strconv.FormatUint(s.rng.Uint64()%100000, 36) }

// step does one random thing and keeps the model in step.
func (s *session) step() {
	switch s.rng.IntN(12) {
	case 0, 1:
		s.appendRows()
	case 2, 3, 4:
		s.upsert()
	case 5:
		s.deleteKeys()
	case 6:
		s.deleteAt()
	case 7, 8:
		s.update()
	case 9:
		s.savepoint()
	case 10:
		s.check()
	case 11:
		if s.rng.IntN(20) == 0 {
			n, err := s.tt.Truncate(ctx)
			require.NoError(s.t, err)
			require.EqualValues(s.t, len(s.view), n)
			clear(s.view)
			s.all = true
		}
	}
}

func (s *session) appendRows() {
	ids := s.keys(1 + s.rng.IntN(4))
	var rows [][]any
	vals := map[int]string{}
	dup := false
	for _, id := range ids {
		vals[id] = s.value()
		rows = append(rows, row(id, vals[id]))
		_, have := s.view[id]
		dup = dup || have
	}
	err := s.tt.Append(ctx, rowsOf(people(), rows...))
	if dup {
		var d *warehouse.DuplicateKeyError
		require.ErrorAs(s.t, err, &d)
		return
	}
	require.NoError(s.t, err)
	s.set(vals)
}

func (s *session) set(vals map[int]string) {
	for id, v := range vals {
		s.view[id], s.seen[id] = v, true
	}
}

func (s *session) upsert() {
	vals := map[int]string{}
	var rows [][]any
	mode := []warehouse.UpsertMode{warehouse.Replace, warehouse.DoNothing}[s.rng.IntN(2)]
	for _, id := range s.keys(1 + s.rng.IntN(6)) {
		v := s.value()
		rows = append(rows, row(id, v))
		if _, have := s.view[id]; !have || mode == warehouse.Replace {
			vals[id] = v
		}
	}
	res, err := s.tt.Upsert(ctx, rowsOf(people(), rows...), mode)
	require.NoError(s.t, err)
	require.EqualValues(s.t, len(vals), res.Inserted+res.Replaced)
	require.EqualValues(s.t, len(rows)-len(vals), res.Skipped)
	s.set(vals)
}

func (s *session) deleteKeys() {
	ids := s.keys(1 + s.rng.IntN(5))
	want := int64(0)
	for _, id := range ids {
		if _, ok := s.view[id]; ok {
			want++
			delete(s.view, id)
			s.seen[id] = true
		}
	}
	n, err := s.tt.DeleteKeys(ctx, keyBatch(s.tt, ids...))
	require.NoError(s.t, err)
	require.Equal(s.t, want, n)
}

func (s *session) find(ids []int) []warehouse.KeyHit {
	hits, err := s.tt.FindKeys(ctx, keyBatch(s.tt, ids...))
	require.NoError(s.t, err)
	live := 0
	for _, id := range ids {
		if _, ok := s.view[id]; ok {
			live++
		}
	}
	require.Len(s.t, hits, live)
	if s.rng.IntN(4) == 0 { // places stay good when the rows go to a file
		require.NoError(s.t, s.tt.Flush(ctx))
	}
	return hits
}

func (s *session) deleteAt() {
	ids := s.keys(1 + s.rng.IntN(4))
	for _, h := range s.find(ids) {
		n, err := s.tt.DeleteAt(ctx, h.Row.Path, roaring.BitmapOf(h.Row.Pos))
		require.NoError(s.t, err)
		require.EqualValues(s.t, 1, n)
		delete(s.view, ids[h.Ordinal])
		s.seen[ids[h.Ordinal]] = true
	}
}

func (s *session) update() {
	ids := s.keys(1 + s.rng.IntN(4))
	var olds []warehouse.RowRef
	var rows [][]any
	vals := map[int]string{}
	for _, h := range s.find(ids) {
		id := ids[h.Ordinal]
		vals[id] = s.value()
		olds, rows = append(olds, h.Row), append(rows, row(id, vals[id]))
	}
	if len(olds) == 0 {
		return
	}
	require.NoError(s.t, s.tt.Update(ctx, olds, rowsOf(people(), rows...)))
	s.set(vals)
}

func (s *session) savepoint() {
	view, seen, all := maps.Clone(s.view), maps.Clone(s.seen), s.all
	m := s.tx.Savepoint()
	for range s.rng.IntN(5) {
		s.step()
	}
	if s.rng.IntN(2) == 0 {
		require.NoError(s.t, s.tx.RollbackTo(m))
		s.view, s.seen, s.all = view, seen, all
	}
}

func (s *session) check() {
	if s.rng.IntN(4) == 0 {
		require.NoError(s.t, s.tt.Flush(ctx))
	}
	set, err := s.tt.Live(ctx)
	require.NoError(s.t, err)
	require.Equal(s.t, s.view.texts(), nonNil(s.k.SetRows(s.t, s.tt.Ref(), set, s.tt.Schema())))
}

// commit ends the session against what was committed since it began, and returns the model that must hold now.
func (s *session) commit(now model, others map[int]bool) model {
	overlap := false
	for id := range s.seen {
		overlap = overlap || others[id]
	}
	_, err := s.tx.Commit(ctx)
	var dup *warehouse.DuplicateKeyError
	switch {
	case err == nil:
	case errors.Is(err, warehouse.ErrConflict), errors.As(err, &dup):
		require.True(s.t, overlap, "disjoint commits must both succeed: %v", err)
		return now
	default:
		require.NoError(s.t, err)
	}
	out := maps.Clone(now)
	if s.all {
		return s.view // a truncate takes everything, also what it did not see
	}
	for id := range s.seen {
		if s.view[id] == s.base[id] {
			continue
		}
		if v, ok := s.view[id]; ok {
			out[id] = v
		} else {
			delete(out, id)
		}
	}
	return out
}

// Random histories against an in-memory model: every write kind, savepoints, interleaved committers, compaction and
// expiry, on v2 and v3, read back by both readers.
func TestRandomHistories(t *testing.T) {
	rng := seed(t)
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.OpenWith(t, testkit.Options{MemoryLimit: 4 << 10})
		id := k.Table(t, "s.people", v, people())
		m := model{}
		for round := range rounds {
			a := open(t, k, rng, id, m)
			others := map[int]bool{}
			for range rng.IntN(3) { // commits while a is open
				for range rng.IntN(6) {
					a.step()
				}
				b := open(t, k, rng, id, m)
				for range 1 + rng.IntN(4) {
					b.step()
				}
				before := m
				m = b.commit(m, nil)
				for key := range keySpace {
					if before[key] != m[key] || b.seen[key] {
						others[key] = true
					}
				}
			}
			for range 1 + rng.IntN(6) {
				a.step()
			}
			m = a.commit(m, others)
			if rng.IntN(8) == 0 {
				_, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MinInputFiles: 2 + rng.IntN(5), MaxDeleteFiles: 1 + rng.IntN(5)})
				require.NoError(t, err)
			}
			if rng.IntN(10) == 0 {
				_, err := k.Warehouse.ExpireSnapshots(ctx, id, warehouse.Retain{Min: 1 + rng.IntN(3)})
				require.NoError(t, err)
			}
			require.Equal(t, m.texts(), nonNil(k.Rows(t, id)), "round %d", round)
			if rng.IntN(4) == 0 {
				require.Equal(t, m.texts(), nonNil(k.IcebergRows(t, id)), "round %d", round)
			}
		}
		sameRows(t, k, id, m.texts())
	})
}
