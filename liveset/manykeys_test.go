package liveset

import (
	"bytes"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys ordered by their heads are keys in order, equal ones by ordinal; hits ordered by counting are hits ordered stably.
func TestOrderOfManyKeysAndHits(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	keys := make([][]byte, 1000)
	for i := range keys {
		keys[i] = make([]byte, rnd.Intn(12))
		for k := range keys[i] {
			keys[i][k] = byte(rnd.Intn(3))
		}
	}
	want := make([]int, len(keys))
	for i := range want {
		want[i] = i
	}
	slices.SortStableFunc(want, func(a, b int) int { return bytes.Compare(keys[a], keys[b]) })
	require.Equal(t, want, appendSorted(nil, keys))

	for _, n := range []int{1, 10, 1000} {
		hits := make([]Hit, 500)
		for i := range hits {
			hits[i] = Hit{KeyOrdinal: rnd.Intn(n), Pos: uint32(i)}
		}
		sorted := slices.Clone(hits)
		slices.SortStableFunc(sorted, func(a, b Hit) int { return a.KeyOrdinal - b.KeyOrdinal })
		orderHits(hits, n)
		require.Equal(t, sorted, hits)
	}
}
