package parquetio

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// TestDefaults reads defaults in Iceberg's JSON single-value serialization (the specification's appendix D), as metadata gives them.
func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		typ  iceberg.Type
		v    any
		text string
	}{
		{iceberg.PrimitiveTypes.Bool, true, "true"},
		{iceberg.PrimitiveTypes.Int32, float64(34), "34"},
		{iceberg.PrimitiveTypes.Int64, float64(1 << 50), "1125899906842624"},
		{iceberg.PrimitiveTypes.Float32, float64(1.5), "1.5"},
		{iceberg.PrimitiveTypes.Float64, float64(-0.1), "-0.1"},
		{iceberg.DecimalTypeOf(4, 2), "14.20", "14.20"},
		{iceberg.PrimitiveTypes.Date, "2017-11-16", "2017-11-16"},
		{iceberg.PrimitiveTypes.Date, iceberg.Date(17486), "2017-11-16"},
		{iceberg.PrimitiveTypes.Time, "22:31:08.123456", "22:31:08.123456"},
		{iceberg.PrimitiveTypes.Timestamp, "2017-11-16T22:31:08.123456", "2017-11-16 22:31:08.123456"},
		{iceberg.PrimitiveTypes.TimestampTz, "2017-11-16T22:31:08.123456+00:00", "2017-11-16 22:31:08.123456+00"},
		{iceberg.PrimitiveTypes.String, "iceberg's", "iceberg's"},
		{iceberg.PrimitiveTypes.UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
		{iceberg.PrimitiveTypes.Binary, "00FF", `\x00\xFF`},
	} {
		got, err := DefaultText(c.typ, c.v)
		require.NoError(t, err, c.typ)
		require.Equal(t, c.text, got, c.typ)
		f := iceberg.NestedField{ID: 1, Name: "a", Type: c.typ, InitialDefault: c.v}
		as, err := ArrowSchema(iceberg.NewSchema(0, f), false)
		require.NoError(t, err)
		a, err := defaultValue(f, as.Field(0).Type)
		require.NoError(t, err, c.typ)
		require.Equal(t, 1, a.Len())
		require.True(t, arrow.TypeEqual(as.Field(0).Type, a.DataType()), c.typ)
	}
	for typ, v := range map[iceberg.Type]any{
		iceberg.PrimitiveTypes.Date: "soon", iceberg.PrimitiveTypes.Int32: "x", iceberg.PrimitiveTypes.Int64: 1.5, iceberg.PrimitiveTypes.Bool: float64(1),
		iceberg.PrimitiveTypes.UUID: true, iceberg.PrimitiveTypes.String: map[string]any{},
	} {
		_, err := defaultValue(iceberg.NestedField{ID: 1, Name: "a", Type: typ, InitialDefault: v}, arrow.BinaryTypes.String)
		require.Error(t, err, typ)
	}
}
