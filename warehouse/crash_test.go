package warehouse_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// A crash at disk operation k = 0, 1, 2 … of two commits: after opening again the catalog is clean, every acknowledged
// row is there, and a row of an unacknowledged commit is there in full or not at all (C1, C3, C4).
func TestCrashAtEveryOperation(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		dir := t.TempDir()
		k := testkit.OpenWith(t, testkit.Options{Dir: dir})
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 0), person(2, "b", 0)))
		k.Close()
		want := model{1: "a", 2: "b"}
		failed := 0
		for at := int64(0); ; at++ {
			inj := &storeio.Injector{K: at, Stop: true}
			k, err := testkit.TryOpen(t, testkit.Options{Dir: dir, Hooks: inj.Hooks()})
			if err != nil {
				require.ErrorIs(t, err, storeio.ErrInjected, "operation %d", at)
				failed++
				continue
			}
			acked := model{}
			var maybe []model
			try := func(next model, fn func(*warehouse.TxTable) error) {
				_, err := k.TryDo(id, fn)
				switch {
				case err == nil:
					acked = next
				case errors.Is(err, catalog.ErrUnknownOutcome):
					maybe = append(maybe, next)
				}
			}
			acked = want
			next := model{1: fmt.Sprint("a", at), 2: want[2], 3: "new"}
			for key, val := range want {
				if _, ok := next[key]; !ok {
					next[key] = val
				}
			}
			try(next, func(tt *warehouse.TxTable) error {
				_, err := tt.Upsert(ctx, rowsOf(people(), []any{1, next[1], 0}, []any{3, "new", 0}), warehouse.Replace)
				return err
			})
			if len(maybe) == 0 && acked[3] == "new" {
				after := model{1: acked[1], 2: acked[2]}
				try(after, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 3)); return err })
			}
			k.Close()

			k2 := testkit.OpenWith(t, testkit.Options{Dir: dir})
			k2.Check(t)
			got := nonNil(k2.Rows(t, id))
			candidates := [][]string{zeroN(acked)}
			for _, m := range maybe {
				candidates = append(candidates, zeroN(m))
			}
			require.Contains(t, candidates, got, "operation %d", at)
			require.Equal(t, got, nonNil(k2.IcebergRows(t, id)), "operation %d", at)
			want = acked
			for _, m := range maybe {
				if slices.Equal(zeroN(m), got) {
					want = m
				}
			}
			k2.Close()
			if inj.Failed() == 0 {
				break
			}
			failed++
		}
		require.Greater(t, failed, 5, "operations were made to fail")
	})
}

func zeroN(m model) []string {
	var rows [][]any
	for id, v := range m {
		rows = append(rows, []any{id, v, 0})
	}
	return texts(rows...)
}

// Power loss after COMMIT returned: every file that was not synced is lost. The commits survive all the same (C3),
// because small files' bytes are in the store.
func TestPowerLossAfterCommit(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		var mu sync.Mutex
		unsynced := map[string]bool{}
		off := false
		hooks := &storeio.Hooks{
			Before: func(storeio.Op, string) error {
				mu.Lock()
				defer mu.Unlock()
				if off {
					return storeio.ErrInjected
				}
				return nil
			},
			After: func(op storeio.Op, path string) {
				mu.Lock()
				defer mu.Unlock()
				switch op {
				case storeio.OpCreate:
					unsynced[path] = true
				case storeio.OpSync:
					delete(unsynced, path)
				}
			},
		}
		dir := t.TempDir()
		k := testkit.OpenWith(t, testkit.Options{Dir: dir, Sync: true, Hooks: hooks})
		id := k.Table(t, "s.people", v, people())
		var rows [][]any
		m := model{}
		for i := range 20_000 {
			m[i] = fmt.Sprint(i * 7919 % 104729)
			rows = append(rows, row(i, m[i]))
		}
		k.Append(t, id, rowsOf(people(), rows...))
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.DeleteKeys(ctx, keyBatch(tt, 1, 2, 3))
			require.NoError(t, err)
			_, err = tt.Upsert(ctx, rowsOf(people(), row(4, "new")), warehouse.Replace)
			return err
		})
		for _, key := range []int{1, 2, 3} {
			delete(m, key)
		}
		m[4] = "new"
		mu.Lock()
		off = true
		mu.Unlock()
		k.Close()
		lost := 0
		for p := range unsynced {
			if err := os.Remove(p); err == nil {
				lost++
			}
		}
		require.Positive(t, lost, "small files are not synced one by one")
		sameRows(t, testkit.OpenWith(t, testkit.Options{Dir: dir}), id, m.texts())
	})
}
