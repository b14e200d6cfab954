package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
)

// TestPartitionTellsColumn: tables adopted from Hive have partition columns that are in no data file: each file's partition has the value (Iceberg spec,
// "Column Projection", first rule), for SELECT with and without filters as for changes.
func TestPartitionTellsColumn(t *testing.T) {
	for _, ids := range []bool{true, false} {
		root := t.TempDir()
		f := testkit.NewForeign(t, root)
		id := f.Table(t, "s.t", 2, testkit.Columns(nil, "id long", "p string", "d date"))
		spec := iceberg.NewPartitionSpecID(1,
			iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1000, Name: "p", Transform: iceberg.IdentityTransform{}},
			iceberg.PartitionField{SourceIDs: []int{3}, FieldID: 1001, Name: "d", Transform: iceberg.IdentityTransform{}})
		f.Alter(t, id, table.NewAddPartitionSpecUpdate(&spec, false), table.NewSetDefaultSpecUpdate(1), table.NewSetPropertiesUpdate(iceberg.Properties{
			table.DefaultNameMappingKey: `[{"field-id":1,"names":["id"]},{"field-id":2,"names":["p"]},{"field-id":3,"names":["d"]}]`}))
		for n, p := range []any{"x", "y", nil} {
			f.Do(t, id, func(tbl *table.Table, tx *table.Transaction) {
				path := filepath.Join(root, "s/t/data", fmt.Sprintf("p=%v.parquet", p))
				rec := testkit.Batch(testkit.Columns(nil, "id long"), []any{n*10 + 1}, []any{n*10 + 2})
				if !ids {
					rec = testkit.WithoutFieldIDs(rec)
				}
				testkit.WriteParquet(t, path, rec)
				st, err := os.Stat(path)
				require.NoError(t, err)
				b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, path, iceberg.ParquetFile, map[int]any{1000: p, 1001: iceberg.Date(20000 + n)}, nil, nil, 2, st.Size())
				require.NoError(t, err)
				require.NoError(t, tx.NewRowDelta(nil).AddRows(b.Build()).Commit(context.Background()))
			})
		}
		g := startWith(t, root)
		c := g.connect()
		run(t, c, "SELECT skade.mount('lake', $1)", root)
		all := [][]string{{"1", "x", "2024-10-04"}, {"2", "x", "2024-10-04"}, {"11", "y", "2024-10-05"}, {"12", "y", "2024-10-05"}, {"21", "∅", "2024-10-06"}, {"22", "∅", "2024-10-06"}}
		require.Equal(t, all, rows(t, c, `SELECT * FROM "lake.s".t ORDER BY id`))
		require.Equal(t, all[2:4], rows(t, c, `SELECT * FROM "lake.s".t WHERE p = 'y' ORDER BY id`))
		require.Equal(t, all[4:], rows(t, c, `SELECT * FROM "lake.s".t WHERE p IS NULL ORDER BY id`))
		require.Equal(t, all[:4], rows(t, c, `SELECT * FROM "lake.s".t WHERE p IS NOT NULL AND d < '2024-10-06' ORDER BY id`))
		require.Equal(t, [][]string{{"2", "x", "y", "2024-10-06"}}, rows(t, c, `SELECT count(DISTINCT p), min(p), max(p), max(d) FROM "lake.s".t`))
		require.Equal(t, all, rows(t, c, `SELECT id, p, d FROM table_changes('"lake.s".t', NULL, NULL) ORDER BY id`))
		require.Equal(t, all[:1], rows(t, c, `SELECT * FROM lookup('"lake.s".t', ROW(1, 'x'), key_columns => '{id,p}')`))
	}
}
