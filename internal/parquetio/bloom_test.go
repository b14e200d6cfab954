package parquetio

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// twoKeys is an opened file of three row groups with filters on two columns of three, and a dictionary on the third.
func twoKeys(t *testing.T) (*Reader, *iceberg.Schema) {
	p := iceberg.PrimitiveTypes
	sc := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64, Required: true}, iceberg.NestedField{ID: 2, Name: "b", Type: p.String, Required: true},
		field(3, "v", p.String), field(4, "w", p.String))
	as, err := ArrowSchema(sc, false)
	require.NoError(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	for i := range 9000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("key ", i))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprint("value ", i%3))
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprint("other ", i%5))
	}
	f := write(t, WriterOptions{Schema: sc, SortIDs: []int{1, 2}, BloomIDs: []int{1, 2}, RowGroupRows: 3000}, b.NewRecordBatch())[0]
	r := open(t, f)
	require.Len(t, r.groups, 3)
	return r, sc
}

// TestBloomsInOneRead: the filters of all key columns and row groups come in one read; without coalescing the count says so.
func TestBloomsInOneRead(t *testing.T) {
	r, _ := twoKeys(t)
	for _, together := range []bool{true, false} {
		coalesce = together
		var c Counters
		blooms, err := r.Blooms(WithCounters(t.Context(), &c), 1, 2, 3)
		coalesce = true
		require.NoError(t, err)
		require.Len(t, blooms[0], 3)
		require.Len(t, blooms[1], 3)
		require.Nil(t, blooms[2])
		require.EqualValues(t, 6, c.Groups.Load())
		if together {
			require.EqualValues(t, 1, c.Reads.Load())
		} else {
			require.Greater(t, c.Reads.Load(), int64(1))
		}
	}
}

// TestColdRowReads: the first row of a file costs one read of offset indexes and at most one a column of pages with their dictionaries.
func TestColdRowReads(t *testing.T) {
	r, sc := twoKeys(t)
	var c Counters
	rec, err := r.RowsAt(WithCounters(t.Context(), &c), sc, nil, []uint32{4444})
	require.NoError(t, err)
	require.Equal(t, []string{`"4444"|"key 4444"|"value 1"|"other 4"|`}, rowStrings(rec))
	require.LessOrEqual(t, c.Reads.Load(), int64(1+4))
	require.EqualValues(t, 1, c.Groups.Load())
	reads := c.Reads.Load()

	r, _ = twoKeys(t)
	coalesce = false
	defer func() { coalesce = true }()
	var alone Counters
	_, err = r.RowsAt(WithCounters(t.Context(), &alone), sc, nil, []uint32{4444})
	require.NoError(t, err)
	require.Greater(t, alone.Reads.Load(), reads)
	require.Greater(t, alone.Reads.Load(), int64(1+4))
}
