package warehouse

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyTable(t *testing.T) {
	var kt keyTable
	key := func(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i*2654435761)) }
	_, ok := kt.find(key(1))
	require.False(t, ok)
	const n = 20_000
	for i := range n {
		kt.put(key(i), int32(i))
	}
	for i := range n {
		row, ok := kt.find(key(i))
		require.True(t, ok)
		require.EqualValues(t, i, row)
	}
	_, ok = kt.find(key(n))
	require.False(t, ok)
	kt.put(key(7), 99)
	row, _ := kt.find(key(7))
	require.EqualValues(t, 99, row)
	require.Equal(t, n, kt.len())
	kt.put(nil, 1) // the empty key is a key
	_, ok = kt.find(nil)
	require.True(t, ok)
	require.Positive(t, kt.bytes())
}
