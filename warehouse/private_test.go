package warehouse_test

import (
	"os"
	"path/filepath"
	"testing"

	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// private opens a private side of its own.
func private(t *testing.T, k *testkit.Kit) (*warehouse.Private, string) {
	t.Helper()
	oid, dir := uint32(1<<27), filepath.Join(t.TempDir(), "private")
	return k.Warehouse.NewPrivate(warehouse.PrivateOptions{Namespace: "mine", Dir: dir, NewOID: func() uint32 { oid++; return oid }}), dir
}

var mine = icetable.Identifier{"mine", "people"}

func TestPrivateFollowsItsTransactions(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		id := k.Table(t, "s.people", v, people())
		p, dir := private(t, k)
		begin := func() *warehouse.Tx { return k.Warehouse.Begin(ctx, warehouse.TxOptions{Private: p}) }
		look := func(tx *warehouse.Tx, id icetable.Identifier) []string {
			tt, err := tx.Table(ctx, id)
			require.NoError(t, err)
			set, err := tt.Live(ctx)
			require.NoError(t, err)
			return nonNil(k.SetRows(t, tt.Ref(), set, tt.Schema()))
		}
		add := func(tx *warehouse.Tx, id icetable.Identifier, rows ...[]any) {
			tt, err := tx.Table(ctx, id)
			require.NoError(t, err)
			require.NoError(t, tt.Append(ctx, rowsOf(people(), rows...)))
		}
		tx := begin()
		tt, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: mine, Schema: people(), FormatVersion: v})
		require.NoError(t, err)
		require.True(t, tt.Private())
		require.NotZero(t, tt.PrivateOID())
		require.False(t, tx.Changed())
		require.True(t, tx.PrivateChanged())
		rec, err := tx.Commit(ctx)
		require.NoError(t, err)
		require.Nil(t, rec) // nothing of it is a commit

		// Both sides at once: a savepoint, a rollback, a commit.
		tx = begin()
		add(tx, id, person(1, "a", 1))
		add(tx, mine, person(1, "a", 1))
		mark := tx.Savepoint()
		add(tx, id, person(2, "b", 2))
		add(tx, mine, person(2, "b", 2))
		require.NoError(t, tx.DropTable(ctx, mine, false))
		require.NoError(t, tx.RollbackTo(mark))
		require.Equal(t, texts(person(1, "a", 1)), look(tx, mine))
		require.NoError(t, tx.Rollback())
		tx = begin()
		require.Empty(t, look(tx, mine))
		add(tx, id, person(3, "c", 3))
		add(tx, mine, person(3, "c", 3))
		rec, err = tx.Commit(ctx)
		require.NoError(t, err)
		require.Len(t, rec.Tables, 1)
		sameRows(t, k, id, texts(person(3, "c", 3)))

		// A commit that loses takes the private side back.
		tx = begin()
		add(tx, id, person(4, "mine", 4))
		add(tx, mine, person(4, "mine", 4))
		k.Append(t, id, rowsOf(people(), person(4, "other", 4)))
		_, err = tx.Commit(ctx)
		var dup *warehouse.DuplicateKeyError
		require.ErrorAs(t, err, &dup)
		tx = begin()
		require.Equal(t, texts(person(3, "c", 3)), look(tx, mine))
		require.NoError(t, tx.Rollback())

		// Other transactions know nothing of it, and nothing leaves it.
		other := k.Warehouse.Begin(ctx, warehouse.TxOptions{})
		require.False(t, other.NamespaceExists(mine[:1]))
		_, err = other.Table(ctx, mine)
		require.Error(t, err)
		require.NoError(t, other.Rollback())
		tx = begin()
		require.Error(t, tx.RenameTable(ctx, mine, icetable.Identifier{"s", "theirs"}))
		require.Error(t, tx.RenameTable(ctx, id, icetable.Identifier{"mine", "theirs"}))
		require.NoError(t, tx.Rollback())
		require.NoError(t, p.Close())
		require.NoDirExists(t, dir)
	})
}

// The files of a private table stay few, and only those that it needs.
func TestPrivateFolds(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		p, dir := private(t, k)
		begin := func() (*warehouse.Tx, *warehouse.TxTable) {
			tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{Private: p})
			tt, err := tx.Table(ctx, mine)
			if err != nil {
				tt, err = tx.CreateTable(ctx, warehouse.CreateTable{Ident: mine, Schema: people(), FormatVersion: v})
			}
			require.NoError(t, err)
			return tx, tt
		}
		files := func() int {
			found, err := filepath.Glob(filepath.Join(dir, "*", "data", "*.parquet"))
			require.NoError(t, err)
			return len(found)
		}
		want := [][]any{}
		for i := range 30 {
			tx, tt := begin()
			require.NoError(t, tt.Append(ctx, rowsOf(people(), person(i, "x", i))))
			require.NoError(t, tt.Flush(ctx))
			want = append(want, person(i, "x", i))
			if i%3 == 2 {
				mark := tx.Savepoint()
				_, err := tt.DeleteKeys(ctx, keyBatch(tt, i-1))
				require.NoError(t, err)
				require.NoError(t, tt.Fold(ctx))
				require.NoError(t, tx.RollbackTo(mark)) // its files are there still
				_, err = tt.DeleteKeys(ctx, keyBatch(tt, i-2))
				require.NoError(t, err)
				want = append(want[:len(want)-3:len(want)-3], want[len(want)-2:]...)
			}
			_, err := tx.Commit(ctx)
			require.NoError(t, err)
			require.LessOrEqual(t, files(), 8)
		}
		tx, tt := begin()
		set, err := tt.Live(ctx)
		require.NoError(t, err)
		require.Equal(t, texts(want...), k.SetRows(t, tt.Ref(), set, tt.Schema()))
		var dup *warehouse.DuplicateKeyError
		require.ErrorAs(t, tt.Append(ctx, rowsOf(people(), person(29, "again", 0))), &dup)
		require.True(t, tt.Clear())
		require.False(t, tt.Clear())
		require.NoError(t, tx.Rollback())
		tx, tt = begin()
		set, err = tt.Live(ctx)
		require.NoError(t, err)
		require.EqualValues(t, len(want), set.Rows())
		require.NoError(t, tx.DropTable(ctx, mine, false))
		_, err = tx.Commit(ctx)
		require.NoError(t, err)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
		require.Zero(t, k.Warehouse.Begin(ctx, warehouse.TxOptions{}).Cut().NumTables())
		require.NoError(t, p.Close())
	})
}

// Nothing of a private table is synced.
func TestPrivateSyncsNothing(t *testing.T) {
	k := testkit.OpenWith(t, testkit.Options{Sync: true})
	p, dir := private(t, k)
	before := k.FS.Counters().Snapshot()
	for i := range 12 {
		tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{Private: p})
		tt, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: mine, Schema: people(), IfNotExists: true})
		require.NoError(t, err)
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(i, "x", i))))
		require.NoError(t, tt.Flush(ctx))
		_, err = tx.Commit(ctx)
		require.NoError(t, err)
	}
	did := k.FS.Counters().Snapshot().Sub(before)
	require.NotZero(t, did.Creates)
	require.Zero(t, did.Fsyncs)
	require.DirExists(t, dir)
	require.NoError(t, p.Close())
}
