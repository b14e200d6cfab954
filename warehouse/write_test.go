package warehouse_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

func TestAppend(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		rec := k.Append(t, id, rowsOf(people(), person(2, "b", 2), person(1, "a", 1)))
		require.EqualValues(t, 2, rec.Tables[0].RowsAdded)
		require.Equal(t, "append", rec.Tables[0].Operation)
		k.Append(t, id, rowsOf(people(), person(3, "c", 3)))
		sameRows(t, k, id, texts(person(1, "a", 1), person(2, "b", 2), person(3, "c", 3)))
		s := k.Metadata(t, id).CurrentSnapshot().Summary.Properties
		require.Equal(t, "3", s["total-records"])
		require.Equal(t, "2", s["total-data-files"])
		require.Equal(t, "1", s["added-data-files"])
		require.Equal(t, "skade-pg", s["engine-name"])
	})
}

// 10,000 inserts of one row in one transaction are one data file, sorted by the key (invariant 3).
func TestManySmallAppendsAreOneFile(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		const n = 10_000
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			for i := range n {
				if err := tt.Append(ctx, rowsOf(people(), person((i*7919)%n, "x", i))); err != nil {
					return err
				}
				if i == n/2 { // a file of its own, which Commit joins
					if err := tt.Flush(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		ref, set := k.Set(t, id)
		require.Equal(t, 1, set.NumFiles())
		require.EqualValues(t, n, set.Rows())
		last := -1
		for rec, err := range k.Live.Scan(ctx, ref, set, testkit.Columns(nil, "id long"), liveset.ScanOptions{}) {
			require.NoError(t, err)
			for _, s := range testkit.Text(rec) {
				last++
				require.Equal(t, texts([]any{last})[0], s)
			}
			rec.Release()
		}
		require.Len(t, k.IcebergRows(t, id), n)
		k.Check(t)
	})
}

func TestUpsert(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2), person(3, "c", 3)))
		rec := k.Do(t, id, func(tt *warehouse.TxTable) error {
			res, err := tt.Upsert(ctx, rowsOf(people(), person(2, "B", 20), person(4, "d", 4)), warehouse.Replace)
			require.NoError(t, err)
			require.EqualValues(t, 1, res.Inserted)
			require.EqualValues(t, 1, res.Replaced)
			require.True(t, res.InsertedRows.Contains(1))
			require.True(t, res.ReplacedRows.Contains(0))
			// once more, on rows of this transaction: in memory, then in a file
			_, err = tt.Upsert(ctx, rowsOf(people(), person(4, "D", 40)), warehouse.Replace)
			require.NoError(t, err)
			require.NoError(t, tt.Flush(ctx))
			_, err = tt.Upsert(ctx, rowsOf(people(), person(4, "DD", 44)), warehouse.Replace)
			require.NoError(t, err)
			res, err = tt.Upsert(ctx, rowsOf(people(), person(1, "no", 0), person(5, "e", 5), person(5, "no", 0)), warehouse.DoNothing)
			require.NoError(t, err)
			require.EqualValues(t, 2, res.Skipped)
			require.Equal(t, []uint32{0, 2}, res.SkippedRows.ToArray())
			_, err = tt.Upsert(ctx, rowsOf(people(), person(9, "x", 0), person(9, "y", 0)), warehouse.Replace)
			require.ErrorIs(t, err, warehouse.ErrDuplicateTarget)
			return nil
		})
		require.Equal(t, "overwrite", rec.Tables[0].Operation)
		require.EqualValues(t, 3, rec.Tables[0].RowsAdded)
		require.EqualValues(t, 1, rec.Tables[0].RowsDeleted)
		sameRows(t, k, id, texts(person(1, "a", 1), person(2, "B", 20), person(3, "c", 3), person(4, "DD", 44), person(5, "e", 5)))
		_, set := k.Set(t, id)
		require.Equal(t, 2, set.NumFiles())
	})
}

func TestDeleteKeysAndAt(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2), person(3, "c", 3), person(4, "d", 4), person(5, "e", 5)))
		rec := k.Do(t, id, func(tt *warehouse.TxTable) error {
			n, err := tt.DeleteKeys(ctx, keyBatch(tt, 2, 2, 99))
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(6, "f", 6), person(7, "g", 7))))
			n, err = tt.DeleteKeys(ctx, keyBatch(tt, 6))
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			r := findRow(t, k, tt, "4|")
			n, err = tt.DeleteAt(ctx, r.Path, at(r.Pos))
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			n, err = tt.DeleteAt(ctx, r.Path, at(r.Pos)) // not live any more
			require.NoError(t, err)
			require.Zero(t, n)
			own := findRow(t, k, tt, "7|")
			n, err = tt.DeleteAt(ctx, own.Path, at(own.Pos))
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			_, err = tt.DeleteAt(ctx, r.Path, at(1000))
			require.ErrorIs(t, err, warehouse.ErrNotLive)
			return nil
		})
		require.Equal(t, "delete", rec.Tables[0].Operation)
		require.EqualValues(t, 2, rec.Tables[0].RowsDeleted)
		sameRows(t, k, id, texts(person(1, "a", 1), person(3, "c", 3), person(5, "e", 5)))

		k.Do(t, id, func(tt *warehouse.TxTable) error { // the rest: the file goes
			_, err := tt.DeleteKeys(ctx, keyBatch(tt, 1, 3, 5))
			return err
		})
		sameRows(t, k, id, []string{})
		_, set := k.Set(t, id)
		require.Zero(t, set.NumFiles())
		require.Equal(t, "0", k.Metadata(t, id).CurrentSnapshot().Summary.Properties["total-data-files"])
	})
}

func TestUpdate(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2)))
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "c", 3))))
			two, three := findRow(t, k, tt, "2|"), findRow(t, k, tt, "3|")
			require.NoError(t, tt.Update(ctx, []warehouse.RowRef{two, three}, rowsOf(people(), person(20, "B", 2), person(3, "C", 3))))
			require.ErrorIs(t, tt.Update(ctx, []warehouse.RowRef{two}, rowsOf(people(), person(21, "B", 2))), warehouse.ErrNotLive)
			return nil
		})
		sameRows(t, k, id, texts(person(1, "a", 1), person(20, "B", 2), person(3, "C", 3)))
	})
}

func TestDeleteEquality(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.notes", v, notes())
		k.Append(t, id, rowsOf(notes(), person(1, "a", 1), person(2, "a", 1), person(3, "b", 1), []any{4, nil, 1}))
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			require.NoError(t, tt.Append(ctx, rowsOf(notes(), person(5, "a", 5))))
			names := testkit.Columns(nil, "name string")
			require.NoError(t, tt.DeleteEquality(ctx, []int{2}, rowsOf(names, []any{"a"}, []any{nil})))
			require.NoError(t, tt.Append(ctx, rowsOf(notes(), person(6, "a", 6)))) // written after: stays
			set, err := tt.Live(ctx)
			require.NoError(t, err)
			require.Equal(t, texts(person(3, "b", 1), person(6, "a", 6)), k.SetRows(t, tt.Ref(), set, tt.Schema()))
			return nil
		})
		sameRows(t, k, id, texts(person(3, "b", 1), person(6, "a", 6)))
		p := k.Metadata(t, id).CurrentSnapshot().Summary.Properties
		require.Equal(t, "1", p["added-equality-delete-files"])
		require.Equal(t, "2", p["total-equality-deletes"])
		require.Empty(t, p["added-position-deletes"])
	})
}

func TestTruncateAndOverwrite(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2)))
		k.Do(t, id, func(tt *warehouse.TxTable) error { _, err := tt.DeleteKeys(ctx, keyBatch(tt, 1)); return err })
		rec := k.Do(t, id, func(tt *warehouse.TxTable) error {
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "c", 3))))
			n, err := tt.Truncate(ctx)
			require.EqualValues(t, 2, n)
			return err
		})
		require.Equal(t, "delete", rec.Tables[0].Operation)
		require.EqualValues(t, 1, rec.Tables[0].RowsDeleted)
		sameRows(t, k, id, []string{})
		p := k.Metadata(t, id).CurrentSnapshot().Summary.Properties
		require.Equal(t, "0", p["total-delete-files"])
		require.Equal(t, "0", p["total-records"])

		k.Append(t, id, rowsOf(people(), person(1, "again", 1)))
		rec = k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Overwrite(ctx)
			require.NoError(t, err)
			return tt.Append(ctx, rowsOf(people(), person(1, "new", 1)))
		})
		require.Equal(t, "overwrite", rec.Tables[0].Operation)
		sameRows(t, k, id, texts(person(1, "new", 1)))
	})
}

func TestConstraints(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	k.Append(t, id, rowsOf(people(), person(1, "a", 1)))
	_, err := k.TryDo(id, func(tt *warehouse.TxTable) error {
		var dup *warehouse.DuplicateKeyError
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(2, "b", 2), person(1, "x", 1))), &dup)
		require.Equal(t, "people_pkey", dup.Constraint)
		require.Equal(t, "Key (id)=(1) already exists.", dup.Detail())
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(3, "b", 2), person(3, "x", 1))), &dup)
		require.Equal(t, "Key (id)=(3) already exists.", dup.Detail())
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "c", 3)))) // the failed batches left nothing
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(3, "x", 1))), &dup)
		require.NoError(t, tt.Flush(ctx))
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(3, "x", 1))), &dup) // now it is in a file
		var null *warehouse.NotNullError
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), []any{nil, "x", 1})), &null)
		require.Equal(t, "id", null.Column)
		_, err := tt.DeleteKeys(ctx, keyBatch(tt, 1))
		require.NoError(t, err)
		return tt.Append(ctx, rowsOf(people(), person(1, "new", 1))) // its key is free again
	})
	require.NoError(t, err)
	sameRows(t, k, id, texts(person(1, "new", 1), person(3, "c", 3)))

	notesID := k.Table(t, "s.notes", 2, notes())
	_, err = k.TryDo(notesID, func(tt *warehouse.TxTable) error {
		_, err := tt.Upsert(ctx, rowsOf(notes(), person(1, "a", 1)), warehouse.Replace)
		return err
	})
	require.ErrorIs(t, err, warehouse.ErrNoKey)
}

func TestReadYourWrites(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	k.Append(t, id, rowsOf(people(), person(1, "a", 1), person(2, "b", 2)))
	k.Do(t, id, func(tt *warehouse.TxTable) error {
		look := func() []string {
			set, err := tt.Live(ctx)
			require.NoError(t, err)
			return k.SetRows(t, tt.Ref(), set, tt.Schema())
		}
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "c", 3))))
		require.Equal(t, texts(person(1, "a", 1), person(2, "b", 2), person(3, "c", 3)), look())
		before, err := tt.Live(ctx)
		require.NoError(t, err)
		_, err = tt.DeleteKeys(ctx, keyBatch(tt, 1, 3))
		require.NoError(t, err)
		require.Equal(t, texts(person(2, "b", 2)), look())
		require.EqualValues(t, 3, before.Rows(), "a set does not change under its reader")
		hits, err := tt.FindKeys(ctx, keyBatch(tt, 1, 2, 3))
		require.NoError(t, err)
		require.Len(t, hits, 1)
		require.Equal(t, 1, hits[0].Ordinal)
		require.Len(t, k.Rows(t, id), 2, "others see nothing before Commit (C1)")
		return nil
	})
	sameRows(t, k, id, texts(person(2, "b", 2)))
}
