package pgcatalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Damage of the embedded file is found, whatever its place.
func TestDecodeHeaderDamage(t *testing.T) {
	_, err := decodeHeader(pg15)
	require.NoError(t, err)
	for _, n := range []int{0, 4, len(staticMagic), len(staticMagic) + 4, 1000, len(pg15) - 1} {
		_, err := decodeHeader(pg15[:n])
		require.ErrorIs(t, err, ErrStatic, "cut at %d", n)
	}
	other := append([]byte("SKADECAT\x02"), pg15[len(staticMagic):]...)
	_, err = decodeHeader(other)
	require.ErrorIs(t, err, ErrStatic)
}

func FuzzSplitName(f *testing.F) {
	for _, s := range []string{"a", "A.b", `"A b".c`, `"a""b"`, "a.", ".", `"`, " a . b "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		parts, err := splitName(s)
		if err != nil {
			return
		}
		// A name survives being quoted and read again.
		for _, p := range parts {
			again, err := splitName(quoteIdent(p))
			require.NoError(t, err)
			require.Equal(t, []string{p}, again)
		}
	})
}

func FuzzSplitArray(f *testing.F) {
	for _, s := range []string{"{}", "{a,b}", `{"a b",NULL,"\""}`, "{", "{a", `{"a}`, "{,}"} {
		f.Add(s)
	}
	f.Fuzz(func(_ *testing.T, s string) { _, _ = splitArray(s) })
}
