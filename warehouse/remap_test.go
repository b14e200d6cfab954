package warehouse_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// A transaction that deleted and updated rows before compactions moved them commits: its rows are found in the new files.
func TestWriterFollowsCompaction(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("keyed=%v", keyed), func(t *testing.T) {
				sc := people()
				if !keyed {
					sc = notes()
				}
				k := testkit.Open(t)
				id := k.Table(t, "s.people", v, sc)
				m := model{}
				for _, i := range rand.Perm(12) {
					k.Append(t, id, rowsOf(sc, row(i, "x")))
					m[i] = "x"
				}
				gone := func(i int) {
					k.Do(t, id, func(tt *warehouse.TxTable) error {
						r := findRow(t, k, tt, fmt.Sprintf("%d|", i))
						_, err := tt.DeleteAt(ctx, r.Path, at(r.Pos))
						return err
					})
					delete(m, i)
				}
				gone(0)
				tx, tt := begin(t, k, id)
				for _, i := range []int{1, 7, 11} {
					r := findRow(t, k, tt, fmt.Sprintf("%d|", i))
					_, err := tt.DeleteAt(ctx, r.Path, at(r.Pos))
					require.NoError(t, err)
				}
				require.NoError(t, tt.Append(ctx, rowsOf(sc, row(7, "new"), row(100, "y"))))
				lost, lt := begin(t, k, id)
				r := findRow(t, k, lt, "2|")
				_, err := lt.DeleteAt(ctx, r.Path, at(r.Pos))
				require.NoError(t, err)
				compact := func() {
					_, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MinInputFiles: 2, SuppressedRatio: 0.001})
					require.NoError(t, err)
				}
				compact()
				gone(2)
				k.Append(t, id, rowsOf(sc, row(200, "z")))
				m[200] = "z"
				compact() // the rows move a second time
				_, err = tx.Commit(ctx)
				require.NoError(t, err)
				delete(m, 1)
				delete(m, 11)
				m[7], m[100] = "new", "y"
				_, err = lost.Commit(ctx)
				require.ErrorIs(t, err, warehouse.ErrConflict, "somebody else deleted the row")
				sameRows(t, k, id, m.texts())
				compact()
				sameRows(t, k, id, m.texts())
			})
		}
	})
}

// Rows that others delete, update and insert while a compaction runs are as they left them; the compaction does not have to start again.
func TestCompactionFollowsWriters(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		m := model{}
		for i := range 16 {
			k.Append(t, id, rowsOf(people(), row(2*i, "x"), row(2*i+1, "x")))
			m[2*i], m[2*i+1] = "x", "x"
		}
		k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 4)); return err })
		delete(m, 4)
		busy := 0
		res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{Progress: func(int64, int64) {
			if busy++; busy > 3 {
				return
			}
			n := busy * 8
			k.Do(t, id, func(tt *warehouse.TxTable) error { // one row of a file, all of another, an update
				if _, err := tt.DeleteKeys(ctx, keyBatch(tt, n, n+2, n+3)); err != nil {
					return err
				}
				_, err := tt.Upsert(ctx, rowsOf(people(), row(n+5, "up"), row(1000+n, "new")), warehouse.Replace)
				return err
			})
			delete(m, n)
			delete(m, n+2)
			delete(m, n+3)
			m[n+5], m[1000+n] = "up", "new"
		}})
		require.NoError(t, err)
		require.Equal(t, 16, res.FilesRemoved)
		sameRows(t, k, id, m.texts())
		_, err = k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MinInputFiles: 2, SuppressedRatio: 0.001})
		require.NoError(t, err)
		sameRows(t, k, id, m.texts())
		require.Empty(t, entries(t, k, id, iceberg.ManifestContentDeletes))
		// TRUNCATE in the middle: nothing comes back.
		for i := range 10 {
			k.Append(t, id, rowsOf(people(), row(5000+i, "x")))
		}
		once := false
		_, err = k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{Progress: func(int64, int64) {
			if !once {
				once = true
				k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.Truncate(ctx); return err })
			}
		}})
		require.NoError(t, err)
		sameRows(t, k, id, []string{})
	})
}

// Bounded runs get through a table that is larger than one.
func TestCompactInRounds(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	m := model{}
	for i := range 30 {
		k.Append(t, id, rowsOf(people(), row(i, "x")))
		m[i] = "x"
	}
	rounds := 0
	for more := true; more; rounds++ {
		res, err := k.Warehouse.Compact(ctx, id, warehouse.CompactOptions{MaxRows: 10})
		require.NoError(t, err)
		more = res.More
	}
	require.Greater(t, rounds, 1)
	_, set := k.Set(t, id)
	require.Less(t, set.NumFiles(), 8)
	sameRows(t, k, id, m.texts())
}

// Random writers and compactions against a model: what was touched by one transaction only commits.
func TestRandomWritersAndCompaction(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		m := model{}
		for i := range 24 {
			k.Append(t, id, rowsOf(people(), row(i, "0")))
			m[i] = "0"
		}
		type open struct {
			commit func() error
			keys   []int
			text   string
		}
		var txs []open
		next := 0
		free := rng.Perm(24)
		for step := range 40 {
			switch {
			case rng.IntN(3) == 0:
				opts := warehouse.CompactOptions{MinInputFiles: 2, SuppressedRatio: 0.01, MaxRows: 40}
				_, err := k.Warehouse.Compact(ctx, id, opts)
				require.NoError(t, err)
			case rng.IntN(2) == 0 && next+3 <= len(free):
				o := open{keys: free[next : next+3], text: fmt.Sprint(step)}
				next += 3
				tx, tt := begin(t, k, id)
				var rows [][]any
				for _, key := range o.keys {
					rows = append(rows, row(key, o.text))
				}
				_, err := tt.Upsert(ctx, rowsOf(people(), rows...), warehouse.Replace)
				require.NoError(t, err)
				o.commit = func() error { _, err := tx.Commit(ctx); return err }
				txs = append(txs, o)
			case len(txs) > 0:
				i := rng.IntN(len(txs))
				o := txs[i]
				txs = append(txs[:i], txs[i+1:]...)
				require.NoError(t, o.commit(), "nobody else touched its rows")
				for _, key := range o.keys {
					m[key] = o.text
					free = append(free, key)
				}
			}
		}
		for _, o := range txs {
			require.NoError(t, o.commit())
			for _, key := range o.keys {
				m[key] = o.text
			}
		}
		sameRows(t, k, id, m.texts())
	})
}
