package warehouse_test

import (
	"testing"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// TestNameOfAnother: a name that became another table's after the cut is neither dropped nor renamed.
func TestNameOfAnother(t *testing.T) {
	k := testkit.Open(t)
	ident, other := icetable.Identifier{"s", "t"}, icetable.Identifier{"s", "u"}
	_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		require.NoError(t, tx.CreateNamespace(ctx, icetable.Identifier{"s"}, nil))
		_, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: people()})
		return err
	})
	require.NoError(t, err)
	drop, rename := k.Warehouse.Begin(ctx, warehouse.TxOptions{}), k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	require.NoError(t, drop.DropTable(ctx, ident, false))
	require.NoError(t, rename.RenameTable(ctx, ident, icetable.Identifier{"s", "x"}))
	_, err = k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		require.NoError(t, tx.RenameTable(ctx, ident, other))
		tt, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: people()})
		require.NoError(t, err)
		return tt.Append(ctx, rowsOf(people(), person(1, "new", 1)))
	})
	require.NoError(t, err)
	_, err = drop.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	_, err = rename.Commit(ctx)
	require.ErrorIs(t, err, warehouse.ErrConflict)
	sameRows(t, k, ident, texts(person(1, "new", 1)))
}

// TestExclusive: a definition that looked at every row does not commit over rows that it did not see.
func TestExclusive(t *testing.T) {
	k := testkit.Open(t)
	ident := icetable.Identifier{"s", "t"}
	_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		require.NoError(t, tx.CreateNamespace(ctx, icetable.Identifier{"s"}, nil))
		_, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: people()})
		return err
	})
	require.NoError(t, err)
	for _, truncate := range []bool{false, true} {
		tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
		tt, err := tx.Table(ctx, ident)
		require.NoError(t, err)
		require.NoError(t, tt.Exclusive(ctx))
		if truncate {
			_, err = tt.Truncate(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, tx.AlterTable(ctx, ident, icetable.NewSetPropertiesUpdate(iceberg.Properties{"a.b": "c"})))
		_, err = k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
			tt, err := tx.Table(ctx, ident)
			require.NoError(t, err)
			_, err = tt.Upsert(ctx, rowsOf(people(), person(1, "a", 1)), warehouse.Replace)
			return err
		})
		require.NoError(t, err)
		_, err = tx.Commit(ctx)
		require.ErrorIs(t, err, warehouse.ErrConflict)
	}
	// What was rolled back looks at nothing.
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
	tt, err := tx.Table(ctx, ident)
	require.NoError(t, err)
	mark := tx.Savepoint()
	require.NoError(t, tt.Exclusive(ctx))
	require.NoError(t, tx.RollbackTo(mark))
	require.NoError(t, tx.AlterTable(ctx, ident, icetable.NewSetPropertiesUpdate(iceberg.Properties{"a.b": "d"})))
	k.Append(t, ident, rowsOf(people(), person(2, "b", 1)))
	_, err = tx.Commit(ctx)
	require.NoError(t, err)
}
