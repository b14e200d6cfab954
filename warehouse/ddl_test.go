package warehouse_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/warehouse"
)

// dataFiles are the names in a table's data folder.
func dataFiles(t *testing.T, k *testkit.Kit, ident icetable.Identifier) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(storeio.PathOf(k.Metadata(t, ident).Location()), "data"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestCreateTableAndRowsAreOneCommit(t *testing.T) {
	k := testkit.Open(t)
	ident := icetable.Identifier{"s", "t"}
	rec, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		require.NoError(t, tx.CreateNamespace(ctx, icetable.Identifier{"s"}, nil))
		tt, err := tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: people()})
		require.NoError(t, err)
		_, err = tx.CreateTable(ctx, warehouse.CreateTable{Ident: ident, Schema: people()})
		require.ErrorIs(t, err, icecat.ErrTableAlreadyExists)
		return tt.Append(ctx, rowsOf(people(), person(1, "a", 1)))
	})
	require.NoError(t, err)
	require.EqualValues(t, 1, rec.Seq)
	sameRows(t, k, ident, texts(person(1, "a", 1)))
	require.Equal(t, []int{1}, k.Metadata(t, ident).CurrentSchema().IdentifierFieldIDs)
	require.Equal(t, 2, k.Metadata(t, ident).Version())
}

func TestFieldIDsAreTopLevelFirst(t *testing.T) {
	k := testkit.Open(t)
	sc := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 10, Name: "tags", Type: &iceberg.ListType{ElementID: 11, Element: iceberg.PrimitiveTypes.String}},
		iceberg.NestedField{ID: 12, Name: "id", Type: iceberg.PrimitiveTypes.Int64})
	id := k.Table(t, "s.t", 2, sc)
	f := k.Metadata(t, id).CurrentSchema().Fields()
	require.Equal(t, 1, f[0].ID)
	require.Equal(t, 2, f[1].ID)
	require.Equal(t, 3, f[0].Type.(*iceberg.ListType).ElementID)
}

func TestFloatKeyIsRefused(t *testing.T) {
	k := testkit.Open(t)
	k.Namespace(t, "s")
	_, err := k.Warehouse.CreateTable(ctx, warehouse.CreateTable{Ident: icetable.Identifier{"s", "t"}, Schema: testkit.Columns([]string{"x"}, "x double")})
	require.ErrorIs(t, err, warehouse.ErrInvalidTable)
}

func TestRenameDropAndViews(t *testing.T) {
	k := testkit.Open(t)
	a := k.Table(t, "s.a", 2, people())
	k.Append(t, a, rowsOf(people(), person(1, "a", 1)))
	b := icetable.Identifier{"s", "b"}
	_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		tt, err := tx.Table(ctx, a)
		require.NoError(t, err)
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(2, "b", 2))))
		require.NoError(t, tx.RenameTable(ctx, a, b))
		_, err = tx.Table(ctx, a)
		require.ErrorIs(t, err, icecat.ErrNoSuchTable)
		same, err := tx.Table(ctx, b)
		require.NoError(t, err)
		require.Same(t, tt, same)
		require.NoError(t, tx.PutObject(ctx, catalog.Object{Kind: "view", Namespace: icetable.Identifier{"s"}, Name: "v", Payload: []byte("select 1")}, false))
		require.Error(t, tx.PutObject(ctx, catalog.Object{Kind: "view", Namespace: icetable.Identifier{"s"}, Name: "b"}, false))
		_, err = tx.CreateTable(ctx, warehouse.CreateTable{Ident: icetable.Identifier{"s", "v"}, Schema: people()})
		require.ErrorIs(t, err, catalog.ErrObjectAlreadyExists)
		require.Len(t, tx.Objects("view"), 1)
		require.Len(t, tx.Tables(), 1)
		return nil
	})
	require.NoError(t, err)
	sameRows(t, k, b, texts(person(1, "a", 1), person(2, "b", 2)))
	_, err = k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		require.ErrorIs(t, tx.DropNamespace(ctx, icetable.Identifier{"s"}), icecat.ErrNamespaceNotEmpty)
		require.NoError(t, tx.DropTable(ctx, b, false))
		require.NoError(t, tx.DropObject(ctx, "view", icetable.Identifier{"s"}, "v"))
		return tx.DropNamespace(ctx, icetable.Identifier{"s"})
	})
	require.NoError(t, err)
	_, err = k.Catalog.Cut().Table(b)
	require.ErrorIs(t, err, icecat.ErrNoSuchTable)
}

func TestAlterTable(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	k.Append(t, id, rowsOf(people(), person(1, "a", 1)))
	sc := k.Metadata(t, id).CurrentSchema()
	wide := iceberg.NewSchemaWithIdentifiers(1, sc.IdentifierFieldIDs, append(sc.Fields(), iceberg.NestedField{ID: 4, Name: "city", Type: iceberg.PrimitiveTypes.String})...)
	_, err := k.Warehouse.Do(ctx, warehouse.TxOptions{}, func(tx *warehouse.Tx) error {
		tt, err := tx.Table(ctx, id)
		require.NoError(t, err)
		require.NoError(t, tt.Append(ctx, rowsOf(people(), person(2, "b", 2))))
		require.NoError(t, tx.AlterTable(ctx, id, icetable.NewAddSchemaUpdate(wide), icetable.NewSetCurrentSchemaUpdate(-1)))
		return tt.Append(ctx, testkit.ArrowBatch(tt.ArrowSchema(), []any{3, "c", 3, "Oslo"}))
	})
	require.NoError(t, err)
	sameRows(t, k, id, texts([]any{1, "a", 1, nil}, []any{2, "b", 2, nil}, []any{3, "c", 3, "Oslo"}))
}

func TestReadOnlyAndEnded(t *testing.T) {
	k := testkit.Open(t)
	id := k.Table(t, "s.people", 2, people())
	tx := k.Warehouse.Begin(ctx, warehouse.TxOptions{ReadOnly: true})
	tt, err := tx.Table(ctx, id)
	require.NoError(t, err)
	require.ErrorIs(t, tt.Append(ctx, rowsOf(people(), person(1, "a", 1))), warehouse.ErrReadOnly)
	rec, err := tx.Commit(ctx)
	require.NoError(t, err)
	require.Nil(t, rec)
	_, err = tx.Table(ctx, id)
	require.ErrorIs(t, err, warehouse.ErrTxDone)
	require.NoError(t, tx.Rollback())
}

func TestPartitionedTable(t *testing.T) {
	bothVersions(t, func(t *testing.T, v int) {
		k := testkit.Open(t)
		k.Namespace(t, "s")
		sc := people()
		spec, err := iceberg.NewPartitionSpecOpts(iceberg.AddPartitionFieldByName("n", "n_bucket", iceberg.BucketTransform{NumBuckets: 4}, sc, nil),
			iceberg.AddPartitionFieldByName("name", "name_trunc", iceberg.TruncateTransform{Width: 1}, sc, nil))
		require.NoError(t, err)
		id := icetable.Identifier{"s", "p"}
		_, err = k.Warehouse.CreateTable(ctx, warehouse.CreateTable{Ident: id, Schema: sc, Spec: &spec, FormatVersion: v})
		require.NoError(t, err)
		var want [][]any
		for i := range 50 {
			want = append(want, person(i, string(rune('a'+i%3))+"x", i))
		}
		k.Append(t, id, rowsOf(sc, want...))
		sameRows(t, k, id, texts(want...))
		k.Do(t, id, func(tt *warehouse.TxTable) error {
			_, err := tt.Upsert(ctx, rowsOf(sc, person(7, "zz", 700), person(8, "zz", 800)), warehouse.Replace)
			require.NoError(t, err)
			_, err = tt.DeleteKeys(ctx, keyBatch(tt, 9, 10))
			return err
		})
		want[7], want[8] = person(7, "zz", 700), person(8, "zz", 800)
		want = append(want[:9], want[11:]...)
		sameRows(t, k, id, texts(want...))
	})
}
