package parquetio

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// TestOrder writes rows in sort orders with both directions and both places of NULLs, in memory and through spilled runs.
func TestOrder(t *testing.T) {
	sc := iceberg.NewSchema(0, field(1, "a", iceberg.PrimitiveTypes.Int32), field(2, "b", iceberg.PrimitiveTypes.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	rng := newRand(t)
	type pair struct {
		a       int32
		b       string
		nullA   bool
		nullB   bool
		arrived int
	}
	var all []pair
	var recs []arrow.RecordBatch
	for range 20 {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, as)
		for range 100 {
			p := pair{rng.Int32N(7) - 3, []string{"", "a", "a\x00", "ab", "b", "\xff"}[rng.IntN(6)], rng.IntN(5) == 0, rng.IntN(5) == 0, len(all)}
			all = append(all, p)
			if p.nullA {
				rb.Field(0).AppendNull()
			} else {
				rb.Field(0).(*array.Int32Builder).Append(p.a)
			}
			if p.nullB {
				rb.Field(1).AppendNull()
			} else {
				rb.Field(1).(*array.StringBuilder).Append(p.b)
			}
		}
		recs = append(recs, rb.NewRecordBatch())
		rb.Release()
	}
	direct := func(c int, null1, null2 bool, f OrderField) int {
		switch {
		case null1 && null2:
			return 0
		case null1 != null2:
			if null1 == f.NullsLast {
				return 1
			}
			return -1
		case f.Desc:
			return -c
		}
		return c
	}
	for i := range 16 {
		order := []OrderField{{1, i&1 > 0, i&2 > 0}, {2, i&4 > 0, i&8 > 0}}
		want := slices.Clone(all)
		slices.SortStableFunc(want, func(x, y pair) int {
			if c := direct(cmp.Compare(x.a, y.a), x.nullA, y.nullA, order[0]); c != 0 {
				return c
			}
			return direct(cmp.Compare(x.b, y.b), x.nullB, y.nullB, order[1])
		})
		for _, budget := range []int64{0, 1} {
			files := write(t, WriterOptions{Schema: sc, SortIDs: []int{1}, NoKeyIndex: true, Order: order, SortOrderID: 3, MemoryBudget: budget, TempDir: t.TempDir()}, recs...)
			require.Len(t, files, 1)
			require.Equal(t, 3, *files[0].DataFile.SortOrderID())
			var rows []string
			for _, p := range want {
				a, b := fmt.Sprintf("%q|", fmt.Sprint(p.a)), fmt.Sprintf("%q|", p.b)
				if p.nullA {
					a = "∅|"
				}
				if p.nullB {
					b = "∅|"
				}
				rows = append(rows, a+b)
			}
			require.Equal(t, rows, scanAll(t, open(t, files[0]), ReadOptions{Schema: sc}), "%v", order)
		}
	}
}

// TestKeyIndexOfOtherOrder: a file in an order of its own has a key index, too.
func TestKeyIndexOfOtherOrder(t *testing.T) {
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true}, field(2, "v", iceberg.PrimitiveTypes.Int64))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, as)
	const n = KeyIndexMinRows
	for i := range int64(n) {
		rb.Field(0).(*array.Int64Builder).Append(i * 7919 % n)
		rb.Field(1).(*array.Int64Builder).Append(i)
	}
	f := write(t, WriterOptions{Schema: sc, SortIDs: []int{1}, Order: []OrderField{{2, true, false}}}, rb.NewRecordBatch())[0]
	data, err := os.ReadFile(f.KeyIndexPath)
	require.NoError(t, err)
	ix, err := keyindex.Decode(data)
	require.NoError(t, err)
	require.Equal(t, open(t, f).Source(), ix.Source())
	for i := range int64(n) {
		require.Equal(t, []uint32{uint32(n - 1 - i)}, ix.Find(nil, keyindex.AppendLong(nil, i*7919%n)))
	}
}
