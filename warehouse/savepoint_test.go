package warehouse_test

import (
	"testing"

	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

func TestSavepoints(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		// rows before the mark in memory or in a file, rows after it in memory or in a file
		for mode := range 4 {
			early, flush := mode&1 != 0, mode&2 != 0
			k := testkit.Open(t)
			id := k.Table(t, "s.people", v, people())
			k.Append(t, id, rowsOf(people(), person(1, "a", 1)))
			tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
			tt, err := tx.Table(ctx, id)
			require.NoError(t, err)
			maybeFlush := func(now bool) {
				if now {
					require.NoError(t, tt.Flush(ctx))
				}
			}
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(2, "b", 2))))
			maybeFlush(early)
			one := tx.Savepoint()
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "c", 3))))
			_, err = tt.DeleteKeys(ctx, keyBatch(tt, 1, 2))
			require.NoError(t, err)
			maybeFlush(flush)
			two := tx.Savepoint()
			_, err = tt.Upsert(ctx, rowsOf(people(), person(1, "A", 1), person(3, "C", 3)), warehouse.Replace)
			require.NoError(t, err)
			maybeFlush(flush)
			require.NoError(t, tx.RollbackTo(two))
			look := func() []string {
				set, err := tt.Live(ctx)
				require.NoError(t, err)
				return k.SetRows(t, tt.Ref(), set, tt.Schema())
			}
			require.Equal(t, texts(person(3, "c", 3)), look())
			require.NoError(t, tx.RollbackTo(one))
			require.ErrorIs(t, tx.RollbackTo(two), warehouse.ErrNoMark)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(3, "again", 3))))
			var dup *warehouse.DuplicateKeyError
			require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(2, "x", 2))), &dup)
			require.Equal(t, texts(person(1, "a", 1), person(2, "b", 2), person(3, "again", 3)), look())
			_, err = tx.Commit(ctx)
			require.NoError(t, err)
			sameRows(t, k, id, texts(person(1, "a", 1), person(2, "b", 2), person(3, "again", 3)))
		}
	})
}

func TestSavepointsUndoDefinitions(t *testing.T) {
	k := testkit.Open(t)
	k.Namespace(t, "s")
	a, b := icetable.Identifier{"s", "a"}, icetable.Identifier{"s", "b"}
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	ta, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: a, Schema: people()})
	require.NoError(t, err)
	require.NoError(t, ta.Append(ctx, rowsOf(people(), person(1, "a", 1))))
	m := tx.Savepoint()
	_, err = tx.CreateTable(ctx, warehouse.CreateTable{Ident: b, Schema: people()})
	require.NoError(t, err)
	require.NoError(t, tx.DropTable(ctx, a, false))
	_, err = tx.Table(ctx, a)
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	require.NoError(t, tx.RollbackTo(m))
	_, err = tx.Table(ctx, b)
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	_, err = tx.Commit(ctx)
	require.NoError(t, err)
	sameRows(t, k, a, texts(person(1, "a", 1)))
}

func TestRollbackRemovesFiles(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	before := k.FS.Counters().Creates.Load()
	_, err := k.TryDo(id, func(tt *warehouse.TxTable) error {
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(1, "a", 1))))
		require.NoError(t, tt.Flush(ctx))
		return icecat.ErrNoSuchTable // any error
	})
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
	require.Greater(t, k.FS.Counters().Creates.Load(), before)
	require.Empty(t, dataFiles(t, k, id))
}
