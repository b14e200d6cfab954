package warehouse_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// begin opens a transaction and a table on the current cut.
func begin(t *testing.T, k *testkit.Kit, id icetable.Identifier) (*warehouse.Tx, *warehouse.TxTable) {
	t.Helper()
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	tt, err := tx.Table(ctx, id)
	require.NoError(t, err)
	return tx, tt
}

// 64 sessions insert one key: exactly one succeeds, the others get the duplicate (invariant 4).
func TestOneKeyManyWriters(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		const n = 64
		errs := make([]error, n)
		var start, done sync.WaitGroup
		start.Add(1)
		for i := range n {
			tx, tt := begin(t, k, id)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1, fmt.Sprint(i), i))))
			done.Go(func() {
				start.Wait()
				_, errs[i] = tx.Commit(ctx)
			})
		}
		start.Done()
		done.Wait()
		ok := 0
		for _, err := range errs {
			var dup *warehouse.DuplicateKeyError
			switch {
			case err == nil:
				ok++
			default:
				require.ErrorAs(t, err, &dup)
				require.Equal(t, "Key (id)=(1) already exists.", dup.Detail())
			}
		}
		require.Equal(t, 1, ok)
		require.Len(t, k.Rows(t, id), 1)
		require.Len(t, k.IcebergRows(t, id), 1)
		k.Check(t)
	})
}

// Disjoint row commits to one table always both succeed: inserts, and deletes of other rows of one data file. On v3
// that is trap 2 of the library: concurrent merge-on-read deletes left two deletion vectors for one file.
func TestDisjointCommits(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		const n = 32
		var rows [][]any
		for i := range 2 * n {
			rows = append(rows, person(i, "x", i))
		}
		k.Append(t, id, rowsOf(people(), rows...))
		var start, done sync.WaitGroup
		start.Add(1)
		errs := make([]error, n)
		for i := range n {
			tx, tt := begin(t, k, id)
			_, err := tt.DeleteKeys(ctx, keyBatch(tt, i))
			require.NoError(t, err)
			_, err = tt.Upsert(ctx, rowsOf(people(), person(n+i, "new", -i)), warehouse.Replace)
			require.NoError(t, err)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1000+i, "add", i))))
			done.Go(func() {
				start.Wait()
				_, errs[i] = tx.Commit(ctx)
			})
		}
		start.Done()
		done.Wait()
		require.NoError(t, errors.Join(errs...))
		var want [][]any
		for i := range n {
			want = append(want, person(n+i, "new", -i), person(1000+i, "add", i))
		}
		sameRows(t, k, id, texts(want...))
	})
}

func TestRowConflict(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2), person(3, "c", 3)))
		writes := map[string]func(*warehouse.TxTable) error{
			"delete": func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 2)); return err },
			"upsert": func(tt *warehouse.TxTable) error {
				_, err := tt.Upsert(ctx, rowsOf(people(), person(2, "late", 0)), warehouse.Replace)
				return err
			},
			"update": func(tt *warehouse.TxTable) error {
				return tt.Update(ctx, []warehouse.RowRef{findRow(t, k, tt, "2|")}, rowsOf(people(), person(2, "late", 0)))
			},
		}
		type open struct {
			name string
			tx   *warehouse.Tx
		}
		var late []open
		for name, w := range writes {
			tx, tt := begin(t, k, id)
			require.NoError(t, w(tt))
			late = append(late, open{name, tx})
		}
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, rowsOf(people(), person(2, "first", 2)), warehouse.Replace)
			return err
		})
		for _, o := range late {
			_, err := o.tx.Commit(ctx)
			require.ErrorIs(t, err, warehouse.ErrConflict, o.name)
		}
		sameRows(t, k, id, texts(person(1, "a", 1), person(2, "first", 2), person(3, "c", 3)))
	})
}

// Two upserts of a new key: the loser may run again and then replaces the row.
func TestUpsertConflictIsRetryable(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	up := func(tt *warehouse.TxTable, name string) {
		_, err := tt.Upsert(ctx, rowsOf(people(), person(1, name, 1)), warehouse.Replace)
		require.NoError(t, err)
	}
	tx, tt := begin(t, k, id)
	up(tt, "late")
	k.Do(t, id, func(tt *warehouse.TxTable) error { up(tt, "first"); return nil })
	_, err := tx.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	k.Do(t, id, func(tt *warehouse.TxTable) error { up(tt, "late"); return nil })
	sameRows(t, k, id, texts(person(1, "late", 1)))
}

// The larger side of the key check is probed with the smaller one: both directions find the key.
func TestKeyConflictBothDirections(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	many := func(from int) [][]any {
		var out [][]any
		for i := range 1000 {
			out = append(out, person(from+i, "m", i))
		}
		return out
	}
	tx, tt := begin(t, k, id)
	require.NoError(t, tt.Append(ctx, rowsOf(people(), person(500, "one", 1))))
	tx2, tt2 := begin(t, k, id)
	require.NoError(t, tt2.Append(ctx, rowsOf(people(), many(900)...)))
	k.Append(t, id, rowsOf(people(), many(0)...))
	var dup *warehouse.DuplicateKeyError
	_, err := tx.Commit(ctx)
	require.ErrorAs(t, err, &dup)
	require.Equal(t, []string{"500"}, dup.Values)
	_, err = tx2.Commit(ctx)
	require.ErrorAs(t, err, &dup)
	require.Len(t, k.Rows(t, id), 1000)
	k.Check(t)
}

func TestSchemaChangeConflicts(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	tx, tt := begin(t, k, id)
	require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1, "a", 1))))
	_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		other := testkit.Columns([]string{"id"}, "id long", "name string", "n long")
		return tx.AlterTable(ctx, id, icetable.NewAddSchemaUpdate(other), icetable.NewSetCurrentSchemaUpdate(-1))
	})
	require.NoError(t, err)
	_, err = tx.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	require.Empty(t, dataFiles(t, k, id))
}

func TestTruncateTakesLaterRowsOverwriteDoesNot(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	tx, tt := begin(t, k, id)
	_, err := tt.Overwrite(ctx)
	require.NoError(t, err)
	tx2, tt2 := begin(t, k, id)
	_, err = tt2.Truncate(ctx)
	require.NoError(t, err)
	k.Append(t, id, rowsOf(people(), person(1, "a", 1)))
	_, err = tx.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	rec, err := tx2.Commit(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, rec.Tables[0].RowsDeleted)
	sameRows(t, k, id, []string{})
}

func TestEqualityDeleteConflictsWithUnseenRow(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.notes", 2, notes())
	k.Append(t, id, rowsOf(notes(), person(1, "a", 1)))
	names := testkit.Columns(nil, "name string")
	tx, tt := begin(t, k, id)
	require.NoError(t, tt.DeleteEquality(ctx, []int{2}, rowsOf(names, []any{"a"})))
	tx2, tt2 := begin(t, k, id)
	require.NoError(t, tt2.DeleteEquality(ctx, []int{2}, rowsOf(names, []any{"b"})))
	k.Append(t, id, rowsOf(notes(), person(2, "a", 2)))
	_, err := tx.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	_, err = tx2.Commit(ctx)
	require.NoError(t, err)
	sameRows(t, k, id, texts(person(1, "a", 1), person(2, "a", 2)))
}

func TestCommitOverTwoTables(t *testing.T) {
	k := testkit.Open(t)
	a, b := k.Table(t, "s.a", 2, people()), k.Table(t, "s.b", 3, people())
	seq := k.Catalog.CommitSeq()
	rec, err := k.Warehouse.Do(ctx, warehouse.TxOptions{Actor: "ann"}, func(tx *warehouse.Tx) error {
		for _, id := range []icetable.Identifier{a, b} {
			tt, err := tx.Table(ctx, id)
			require.NoError(t, err)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1, "a", 1))))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, seq+1, rec.Seq)
	require.Equal(t, "ann", rec.Actor)
	require.Len(t, rec.Tables, 2)

	// one table's conflict takes the whole transaction back (C1, C4)
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	for _, id := range []icetable.Identifier{a, b} {
		tt, err := tx.Table(ctx, id)
		require.NoError(t, err)
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(2, "b", 2))))
	}
	k.Append(t, b, rowsOf(people(), person(2, "first", 2)))
	_, err = tx.Commit(ctx)
	require.Error(t, err)
	sameRows(t, k, a, texts(person(1, "a", 1)))
	sameRows(t, k, b, texts(person(1, "a", 1), person(2, "first", 2)))
	require.Equal(t, seq+2, k.Catalog.CommitSeq())
}

func TestCanceledCommit(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	tx, tt := begin(t, k, id)
	require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1, "a", 1))))
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	_, err := tx.Commit(canceled)
	require.ErrorIs(t, err, context.Canceled)
	sameRows(t, k, id, []string{})
	require.Empty(t, dataFiles(t, k, id))
}
