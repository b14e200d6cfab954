package warehouse_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nordisk/skade-pg/internal/testkit"
	"github.com/nordisk/skade-pg/liveset"
	"github.com/nordisk/skade-pg/warehouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// people is a keyed table's schema.
func people() *iceberg.Schema {
	return testkit.Columns([]string{"id"}, "id long", "name string", "n int")
}

// notes is a table without a key.
func notes() *iceberg.Schema { return testkit.Columns(nil, "id long", "name string", "n int") }

func person(id int, name string, n int) []any { return []any{id, name, n} }

func rowsOf(sc *iceberg.Schema, rows ...[]any) arrow.RecordBatch { return testkit.Batch(sc, rows...) }

func keyBatch(t *warehouse.TxTable, ids ...int) arrow.RecordBatch {
	rows := make([][]any, len(ids))
	for i, id := range ids {
		rows[i] = []any{id}
	}
	return testkit.ArrowBatch(t.KeySchema(), rows...)
}

// texts are the rows as the readers print them.
func texts(rows ...[]any) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		for j, v := range r {
			if j > 0 {
				out[i] += "|"
			}
			if v == nil {
				out[i] += "␀"
			} else {
				out[i] += fmt.Sprint(v)
			}
		}
	}
	slices.Sort(out)
	return out
}

// sameRows compares a table with want through both readers, and checks the catalog.
func sameRows(t *testing.T, k *testkit.Kit, ident icetable.Identifier, want []string) {
	t.Helper()
	require.Equal(t, want, nonNil(k.Rows(t, ident)), "liveset")
	require.Equal(t, want, nonNil(k.IcebergRows(t, ident)), "iceberg-go")
	k.Check(t)
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// bothVersions runs a test on format v2 and v3.
func bothVersions(t *testing.T, fn func(t *testing.T, version int)) {
	for _, v := range []int{2, 3} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) { fn(t, v) })
	}
}

// findRow is the place of the one live row whose text starts with prefix.
func findRow(t *testing.T, k *testkit.Kit, tt *warehouse.TxTable, prefix string) warehouse.RowRef {
	t.Helper()
	set, err := tt.Live(ctx)
	require.NoError(t, err)
	for f := range set.Files() {
		opts := liveset.ScanOptions{Files: []*liveset.LiveFile{f}, Meta: liveset.MetaColumns{Pos: true}}
		for rec, err := range k.Live.Scan(ctx, tt.Ref(), set, tt.Schema(), opts) {
			require.NoError(t, err)
			for i, text := range testkit.Text(rec) {
				if len(text) >= len(prefix) && text[:len(prefix)] == prefix {
					var pos int
					_, err := fmt.Sscan(rec.Column(int(rec.NumCols())-1).ValueStr(i), &pos)
					require.NoError(t, err)
					rec.Release()
					return warehouse.RowRef{Path: f.File.Path, Pos: uint32(pos)}
				}
			}
			rec.Release()
		}
	}
	t.Fatalf("no row %q", prefix)
	return warehouse.RowRef{}
}

func at(pos ...uint32) *roaring.Bitmap { return roaring.BitmapOf(pos...) }
