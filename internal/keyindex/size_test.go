package keyindex

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMaxSize: no index is larger than MaxSize says, and MaxSize stays near what the format promises (K5).
func TestMaxSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 127, 128, 129, 511, 512, 513, 4097, 20_000} {
		for name, s := range shapes(rng) {
			for _, sorted := range []bool{true, false} {
				b := NewBuilder(s.cols)
				for i := range n {
					pos := uint32(i)
					if !sorted {
						pos = uint32(n-1-i) | 1<<31 // the widest positions
					}
					require.NoError(t, b.Add(s.key(i), pos))
				}
				data, err := b.Finish(Source{})
				require.NoError(t, err)
				require.LessOrEqual(t, int64(len(data)), MaxSize(int64(n), len(s.cols)), "%s, %d keys", name, n)
			}
		}
		require.LessOrEqual(t, MaxSize(int64(n), 1), int64(n)*25/2+256)
	}
}
