package warehouse_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// Append from many goroutines keeps no more rows in memory than the limit allows, counted by the bytes the table holds.
func TestAppendIsBounded(t *testing.T) {
	const limit = 256 << 10
	k := testkit.OpenWith(t, testkit.Options{MemoryLimit: limit})
	id := k.Table(t, "s.people", 2, people())
	const writers, batches, rows = 8, 40, 100
	pad := strings.Repeat("p", 200)
	var mu sync.Mutex
	var most, batchBytes int64
	k.Do(t, id, func(tt *warehouse.TxTable) error {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for b := range batches {
					var rs [][]any
					for r := range rows {
						rs = append(rs, person((b*rows+r)*writers+w, pad, r))
					}
					rec := rowsOf(people(), rs...)
					if err := tt.Append(ctx, rec); err != nil {
						t.Errorf("append: %v", err)
						return
					}
					n := warehouse.BufferedBytes(tt)
					mu.Lock()
					most, batchBytes = max(most, n), max(batchBytes, warehouse.RecordBytes(rec))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return nil
	})
	// one log being written, one being filled, a batch each writer had in hand, and the key tables' growth steps
	require.LessOrEqual(t, most, 2*(2*limit+writers*batchBytes))
	require.Greater(t, batchBytes*writers*batches, int64(10*limit), "the test writes much more than the limit")
	require.Len(t, k.Rows(t, id), writers*batches*rows)
	require.Len(t, k.IcebergRows(t, id), writers*batches*rows)
	k.Check(t)
}

func TestConcurrentAppendOfOneKey(t *testing.T) {
	k := testkit.OpenWith(t, testkit.Options{MemoryLimit: 2 << 10})
	id := k.Table(t, "s.people", 2, people())
	var mu sync.Mutex
	ok := 0
	k.Do(t, id, func(tt *warehouse.TxTable) error {
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				for i := range 30 {
					err := tt.Append(ctx, rowsOf(people(), person(i, "same keys", w)))
					var dup *warehouse.DuplicateKeyError
					if err != nil {
						if !errors.As(err, &dup) {
							t.Errorf("append: %v", err)
						}
						continue
					}
					mu.Lock()
					ok++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return nil
	})
	require.Equal(t, 30, ok)
	require.Len(t, k.Rows(t, id), 30)
}

func TestCanceledAppend(t *testing.T) {
	k := testkit.OpenWith(t, testkit.Options{MemoryLimit: 1})
	id := k.Table(t, "s.people", 2, people())
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := k.TryDo(id, func(tt *warehouse.TxTable) error {
		return tt.Append(canceled, rowsOf(people(), person(1, "a", 1)))
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, dataFiles(t, k, id))
}

// Rows that are updated again and again within a transaction hold no more memory than the limit allows, counted by the bytes the table holds.
func TestUpdateIsBounded(t *testing.T) {
	const limit = 128 << 10
	k := testkit.OpenWith(t, testkit.Options{MemoryLimit: limit})
	id := k.Table(t, "s.people", 3, people())
	const n, batch = 4000, 250
	pad := strings.Repeat("p", 200)
	var most, batchBytes, written int64
	k.Do(t, id, func(tt *warehouse.TxTable) error {
		for round := range 3 {
			for b := range n / batch {
				var rs [][]any
				var ids []int
				for r := range batch {
					ids = append(ids, (b*batch+r)*7919%n)
					rs = append(rs, person(ids[r], pad, round))
				}
				rec := rowsOf(people(), rs...)
				if round == 0 {
					require.NoError(t, tt.Append(ctx, rec))
				} else {
					hits, err := tt.FindKeys(ctx, keyBatch(tt, ids...))
					require.NoError(t, err)
					require.Len(t, hits, batch)
					olds := make([]warehouse.RowRef, batch)
					for i, h := range hits {
						olds[i] = h.Row
					}
					require.NoError(t, tt.UpdateSameKeys(ctx, olds, rec))
				}
				batchBytes = max(batchBytes, warehouse.RecordBytes(rec))
				written += warehouse.RecordBytes(rec)
				most = max(most, warehouse.BufferedBytes(tt))
			}
		}
		return nil
	})
	require.LessOrEqual(t, most, 2*(limit+batchBytes)) // the log and its key table's growth step
	require.Greater(t, written, int64(10*limit), "the test writes much more than the limit")
	require.Len(t, k.Rows(t, id), n)
	k.Check(t)
}
