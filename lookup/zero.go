package lookup

import (
	"bytes"
	"math"
	"slices"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/liveset"
)

// The encodings of the two zeros of a double, which are one value in SQL and two in an index.
var plusZero, minusZero = keyindex.AppendDouble(nil, 0), keyindex.AppendDouble(nil, math.Copysign(0, -1))

// hasDouble says whether a key has a column in which 0 and −0 are equal.
func (b *bound) hasDouble() bool {
	return slices.ContainsFunc(b.kinds, func(c keyindex.Column) bool { return c.Kind == keyindex.KindDouble })
}

// zeros are the encodings of a key: one, or as many as its zeros have signs.
func (b *bound) zeros(key []byte) [][]byte {
	out := [][]byte{nil}
	for n, part := range keyindex.Split(nil, b.kinds, key) {
		i := len(out)
		if b.kinds[n].Kind == keyindex.KindDouble && (bytes.Equal(part, plusZero) || bytes.Equal(part, minusZero)) {
			for _, k := range out[:i] {
				out = append(out, append(bytes.Clone(k), minusZero...))
			}
			part = plusZero
		}
		for j := range out[:i] {
			out[j] = append(out[j], part...)
		}
	}
	return out
}

// inOrder sorts hits of keys that are several encodings of one by key, data file and position (K3); ordinals are the keys'.
func inOrder(hits []liveset.Hit, ordinals []int64) {
	slices.SortStableFunc(hits, func(a, b liveset.Hit) int {
		if c := ordinals[a.KeyOrdinal] - ordinals[b.KeyOrdinal]; c != 0 {
			return int(c)
		}
		return liveset.CompareHits(a, b)
	})
}
