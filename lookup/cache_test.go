package lookup

import (
	"encoding/binary"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestRowCacheAdmits: a cache with room takes every answer; a full one keeps the answers in use although many others come
// by once, and takes what comes twice.
func TestRowCacheAdmits(t *testing.T) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	b.Append(1)
	col := b.NewArray()
	rows := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64}}, nil), []arrow.Array{col}, 1)
	size := batchBytes(rows) + 8
	const held = 1000
	c := newRowCache(held * size)
	key := func(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)) }
	have := func(i int) bool { return c.get(1, key(i)) != nil }

	for i := range held / 2 {
		c.put(1, key(i), rows)
		require.True(t, have(i), "there is room")
	}
	for i := 10_000; i < 110_000; i++ {
		if !have(i) {
			c.put(1, key(i), rows)
		}
		if i%100 == 0 {
			for hot := range 20 {
				require.True(t, have(hot), "in use, while others come by")
			}
		}
	}
	c.put(1, key(500_000), rows)
	c.put(1, key(500_000), rows)
	require.True(t, have(500_000), "asked for twice")
	for i := range c.shards {
		require.LessOrEqual(t, c.shards[i].mu.bytes, c.shards[i].mu.budget)
	}
}
