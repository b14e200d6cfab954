package pgtype

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/stretchr/testify/require"
)

// TestIcebergRoundTrip is T2.
func TestIcebergRoundTrip(t *testing.T) {
	type tc struct {
		oid    uint32
		typmod int32
		ice    string
		prop   string
		notice bool
	}
	for _, c := range []tc{
		{Bool, -1, "boolean", "", false},
		{Int2, -1, "int", "int2", false},
		{Int4, -1, "int", "", false},
		{Int8, -1, "long", "", false},
		{Float4, -1, "float", "", false},
		{Float8, -1, "double", "", false},
		{Numeric, NumericTypmod(10, 2), "decimal(10, 2)", "", false},
		{Numeric, NumericTypmod(38, 0), "decimal(38, 0)", "", false},
		{Numeric, -1, "decimal(38, 9)", "numeric", true},
		{Numeric, NumericTypmod(50, 3), "decimal(38, 3)", "numeric(50,3)", true},
		{Numeric, NumericTypmod(5, -2), "decimal(7, 0)", "numeric(5,-2)", false},
		{Numeric, NumericTypmod(3, 5), "decimal(5, 5)", "numeric(3,5)", false},
		{Text, -1, "string", "", false},
		{Varchar, LengthTypmod(20), "string", "varchar(20)", false},
		{Varchar, -1, "string", "varchar", false},
		{BPChar, LengthTypmod(5), "string", "bpchar(5)", false},
		{Name, -1, "string", "name", false},
		{JSON, -1, "string", "json", false},
		{JSONB, -1, "string", "jsonb", false},
		{Interval, -1, "string", "interval", false},
		{Bytea, -1, "binary", "", false},
		{UUID, -1, "uuid", "", false},
		{Date, -1, "date", "", false},
		{Time, -1, "time", "", false},
		{Time, 3, "time", "time(3)", false},
		{Timestamp, -1, "timestamp", "", false},
		{Timestamp, 0, "timestamp", "timestamp(0)", false},
		{TimestampTZ, -1, "timestamptz", "", false},
		{Int2Array, -1, "list<int>", "int2[]", false},
		{Int4Array, -1, "list<int>", "", false},
		{TextArray, -1, "list<string>", "", false},
		{NumericArray, NumericTypmod(10, 2), "list<decimal(10, 2)>", "", false},
		{VarcharArray, LengthTypmod(3), "list<string>", "varchar(3)[]", false},
	} {
		name := Format(c.oid, c.typmod)
		typ, prop, notice, err := ToIceberg(c.oid, c.typmod)
		require.NoError(t, err, name)
		require.Equal(t, c.ice, typ.String(), name)
		require.Equal(t, c.prop, prop, name)
		require.Equal(t, c.notice, notice != "", name)
		props := iceberg.Properties{}
		if prop != "" {
			props[PropertyKey(7)] = prop
		}
		oid, typmod := FromIceberg(iceberg.NestedField{ID: 7, Type: typ}, props)
		require.Equal(t, c.oid, oid, name)
		require.Equal(t, c.typmod, typmod, name)
		require.NotNil(t, Arrow(c.oid, c.typmod), name)
	}
}

func TestToIcebergRefuses(t *testing.T) {
	for _, oid := range []uint32{TimeTZ, XML, Bit, RegClass, OID, Void, Record, 790, 3904, 869} {
		_, _, _, err := ToIceberg(oid, -1)
		require.ErrorContains(t, err, FormatNoTypmod(oid))
	}
}

// TestForeign is T3: every Iceberg type is shown as something.
func TestForeign(t *testing.T) {
	str := &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int32}}}
	for _, c := range []struct {
		typ  iceberg.Type
		want uint32
		said bool
	}{
		{str, JSONB, true},
		{&iceberg.MapType{KeyID: 1, KeyType: iceberg.PrimitiveTypes.String, ValueID: 2, ValueType: str}, JSONB, true},
		{&iceberg.ListType{ElementID: 1, Element: str}, JSONB, true},
		{&iceberg.ListType{ElementID: 1, Element: &iceberg.ListType{ElementID: 2, Element: iceberg.PrimitiveTypes.Int32}}, JSONB, true},
		{&iceberg.ListType{ElementID: 1, Element: iceberg.PrimitiveTypes.UUID}, UUIDArray, false},
		{iceberg.FixedTypeOf(16), Bytea, true},
		{iceberg.VariantType{}, JSONB, true},
		{iceberg.PrimitiveTypes.TimestampNs, Timestamp, true},
		{iceberg.PrimitiveTypes.TimestampTzNs, TimestampTZ, true},
		{iceberg.PrimitiveTypes.Unknown, Text, true},
		{iceberg.GeometryType{}, Text, true},
	} {
		oid, _ := FromIceberg(iceberg.NestedField{ID: 1, Type: c.typ}, nil)
		require.Equal(t, c.want, oid, c.typ.String())
		require.Equal(t, c.said, Shown(c.typ) != "", c.typ.String())
	}
	// A property made stale by another writer's promotion is ignored.
	oid, _ := FromIceberg(iceberg.NestedField{ID: 1, Type: iceberg.PrimitiveTypes.Int64}, iceberg.Properties{PropertyKey(1): "int2"})
	require.Equal(t, Int8, oid)
	oid, _ = FromIceberg(iceberg.NestedField{ID: 1, Type: iceberg.PrimitiveTypes.Int64}, iceberg.Properties{PropertyKey(1): "garbage("})
	require.Equal(t, Int8, oid)
}

func TestDuckName(t *testing.T) {
	require.Equal(t, "DECIMAL(10,2)", DuckName(Numeric, NumericTypmod(10, 2)))
	require.Equal(t, "DECIMAL(38,9)", DuckName(Numeric, -1))
	require.Equal(t, "VARCHAR[]", DuckName(TextArray, -1))
	require.Equal(t, "DECIMAL(10,2)[]", DuckName(NumericArray, NumericTypmod(10, 2)))
	require.Equal(t, "INTEGER", DuckStorageName(Int2, -1))
	require.Equal(t, "VARCHAR", DuckStorageName(Interval, -1))
}
