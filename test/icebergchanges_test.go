package test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
)

// bagOf counts the rows of a state as iceberg-go's own scan reads it.
func bagOf(t *testing.T, tbl *icetable.Table, snapshot int64) map[string]int {
	t.Helper()
	_, recs, err := tbl.Scan(icetable.WithSnapshotID(snapshot)).ToArrowRecords(context.Background())
	require.NoError(t, err)
	out := map[string]int{}
	for rec, err := range recs {
		require.NoError(t, err)
		for r := range int(rec.NumRows()) {
			row := ""
			for c := range int(rec.NumCols()) {
				v := "∅"
				if col := rec.Column(c); col.IsValid(r) {
					v = col.ValueStr(r)
				}
				row += v + "|"
			}
			out[row]++
		}
		rec.Release()
	}
	return out
}

// difference is b − a as signed counts.
func difference(a, b map[string]int) map[string]int {
	out := maps.Clone(b)
	for k, n := range a {
		if out[k] -= n; out[k] == 0 {
			delete(out, k)
		}
	}
	return out
}

// Tables that iceberg-go writes, in every way it has: each window's changes are the difference of iceberg-go's own reads at its ends (L1), and the
// net effect has nothing besides.
func TestTableChangesOfIcebergGo(t *testing.T) {
	for _, version := range []int{2, 3} {
		for _, keyed := range []bool{true, false} {
			t.Run(fmt.Sprintf("v%d keyed %v", version, keyed), func(t *testing.T) {
				root := t.TempDir()
				f := testkit.NewForeign(t, root)
				sc := people()
				if !keyed {
					sc = testkit.Columns(nil, "id long", "name string")
				}
				ident := f.Table(t, "s.t", version, sc)
				tx := func(fn func(ctx context.Context, tbl *icetable.Table, tx *icetable.Transaction) error) {
					f.Do(t, ident, func(tbl *icetable.Table, tx *icetable.Transaction) {
						require.NoError(t, fn(context.Background(), tbl, tx))
					})
				}
				reader := func(tbl *icetable.Table, rows ...[]any) array.RecordReader {
					rec := testkit.Batch(tbl.Schema(), rows...)
					r, err := array.NewRecordReader(rec.Schema(), []arrow.RecordBatch{rec})
					require.NoError(t, err)
					return r
				}
				var many [][]any
				for i := range 40 {
					many = append(many, []any{i, fmt.Sprint("row ", i%7)})
				}
				tx(func(ctx context.Context, tbl *icetable.Table, tx *icetable.Transaction) error {
					return tx.Append(ctx, reader(tbl, many...), nil)
				})
				tx(func(ctx context.Context, tbl *icetable.Table, tx *icetable.Transaction) error {
					return tx.Append(ctx, reader(tbl, []any{100, "x"}, []any{101, nil}, []any{102, ""}), nil)
				})
				// Copy on write: rows that stay are carried over.
				tx(func(ctx context.Context, _ *icetable.Table, tx *icetable.Transaction) error {
					return tx.Delete(ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(7)), nil)
				})
				tx(func(ctx context.Context, _ *icetable.Table, tx *icetable.Transaction) error {
					return tx.Delete(ctx, iceberg.EqualTo(iceberg.Reference("name"), "row 3"), nil)
				})
				tx(func(ctx context.Context, tbl *icetable.Table, tx *icetable.Transaction) error {
					return tx.Overwrite(ctx, reader(tbl, []any{1, "over"}, []any{2, "row 2"}, []any{500, "new"}), nil, icetable.WithOverwriteFilter(iceberg.LessThan(iceberg.Reference("id"), int64(5))))
				})
				// Merge on read: positions, keys, all at once, and again the same file.
				first := f.DataFiles(t, ident)[0].FilePath()
				f.Delta(t, ident, nil, nil, map[string][]int64{first: {0}})
				if keyed {
					f.Delta(t, ident, nil, [][]any{{11}, {12}, {9999}}, nil)
					f.Delta(t, ident, [][]any{{12, "back"}, {13, "replaced"}}, [][]any{{13}}, nil)
				}
				other := first // a second deletion vector of one file would have to hold the first
				for _, df := range f.DataFiles(t, ident) {
					if df.FilePath() != first {
						other = df.FilePath()
					}
				}
				f.Delta(t, ident, [][]any{{600, "and"}}, nil, map[string][]int64{other: {0}})
				f.Delta(t, ident, [][]any{{700, "last"}, {700, "last"}}[:map[bool]int{true: 1, false: 2}[keyed]], nil, nil)

				g := startWith(t, root)
				register(t, g, "f", f.Metadata(t, ident))
				c := g.connect()
				tbl := f.Load(t, ident)
				states, ids := []map[string]int{{}}, []string{"NULL"}
				for _, s := range tbl.Metadata().Snapshots() {
					states, ids = append(states, bagOf(t, tbl, s.SnapshotID)), append(ids, fmt.Sprint(s.SnapshotID))
				}
				require.GreaterOrEqual(t, len(ids), 9)
				for j := 1; j < len(ids); j++ {
					for i := range j {
						want := difference(states[i], states[j])
						for _, fn := range []string{"table_changes", "table_changes_net"} {
							got, n := map[string]int{}, 0
							for _, r := range rows(t, c, fmt.Sprintf("SELECT _change_type, id, name FROM %s('f', %s, %s)", fn, ids[i], ids[j])) {
								sign := 1
								if r[0] == "DELETE" || r[0] == "UPDATE_BEFORE" {
									sign = -1
								}
								row := r[1] + "|" + r[2] + "|"
								if got[row] += sign; got[row] == 0 {
									delete(got, row)
								}
								n++
							}
							require.Equal(t, want, got, "%s from %d to %d", fn, i, j)
							if fn == "table_changes_net" {
								for _, k := range want {
									n -= max(k, -k)
								}
								require.Zero(t, n, "rows that cancel, from %d to %d", i, j)
							}
						}
					}
				}
			})
		}
	}
}
