package parquetio

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// TestBoundsOfEmptyValues: a column whose least value is empty has an empty bound, which iceberg-go reads; nil would be no bound.
func TestBoundsOfEmptyValues(t *testing.T) {
	for _, typ := range []iceberg.Type{iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Binary} {
		s := columnStats{typ: typ}
		s.bytes(nil)
		for range 2 {
			lower, upper := s.bounds()
			for _, b := range [][]byte{lower, upper} {
				_, err := iceberg.LiteralFromBytes(typ, b)
				require.NoError(t, err, "%s", typ)
			}
			s.bytes([]byte("x"))
		}
	}
}
