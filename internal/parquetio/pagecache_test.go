package parquetio

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageCacheBudget: pages are found until the budget forces them out, a page asked for stays longer, and a reader's
// place in a page is its own.
func TestPageCacheBudget(t *testing.T) {
	const pages, size = 400, 1000
	c := NewPageCache(pageShards * 10 * (size + pageOverhead) * 9 / 8)
	key := func(i int) pageKey { return pageKey{reader: 7, page: int32(i)} }
	for i := range pages {
		c.put(key(i), &openPage{plain: make([]byte, size), width: 8, values: size / 8})
		require.True(t, c.get(key(0), &openPage{}), "a page in use is kept") // asked for in every round
	}
	found := 0
	for i := range pages {
		if c.get(key(i), &openPage{}) {
			found++
		}
	}
	require.LessOrEqual(t, found, pageShards*10)
	require.Greater(t, found, pageShards*5)
	for i := range c.shards {
		s := &c.shards[i]
		require.LessOrEqual(t, s.bytes, s.budget)
		require.Len(t, s.slots, len(s.ring))
	}
	var a, b openPage
	require.True(t, c.get(key(0), &a))
	a.plain, a.nth = a.plain[80:], 10
	require.True(t, c.get(key(0), &b))
	require.Len(t, b.plain, size)
	c.put(pageKey{reader: 8}, &openPage{plain: make([]byte, 1<<20)})
	require.False(t, c.get(pageKey{reader: 8}, &b), "larger than the budget")
	c.SetBudget(pageShards * 3 * (size + pageOverhead) * 9 / 8)
	for i := range c.shards {
		s := &c.shards[i]
		require.LessOrEqual(t, s.bytes, s.budget)
		require.Len(t, s.slots, len(s.ring))
		require.LessOrEqual(t, len(s.ring), 3)
	}
	c.SetBudget(0)
	require.False(t, c.get(key(0), &b))
}
