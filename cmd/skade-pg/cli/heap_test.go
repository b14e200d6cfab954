package cli

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// The shares leave room for what writing needs: rows that arrive, rows that are written, and two copies while they are sorted.
func TestHeapShares(t *testing.T) {
	for _, limit := range []int64{minHeapLimit, 256 << 20, 640 << 20, 1 << 30, 16 << 30} {
		h, err := shareHeap(limit)
		require.NoError(t, err)
		require.Positive(t, min(h.files, h.rows, h.write))
		require.LessOrEqual(t, h.files+h.rows+4*h.write, limit*9/10, "%d", limit)
	}
	_, err := shareHeap(minHeapLimit - 1)
	require.ErrorIs(t, err, errUsage)
	none, err := shareHeap(0)
	require.NoError(t, err)
	require.Zero(t, none)

	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "5GiB")
	limitHeap(100 << 20)
	require.Equal(t, before, debug.SetMemoryLimit(-1), "the environment decides")
	t.Setenv("GOMEMLIMIT", "")
	limitHeap(math.MaxInt64 - 1)
	require.EqualValues(t, math.MaxInt64-1, debug.SetMemoryLimit(-1))
}
