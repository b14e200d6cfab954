package pgtype

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/iceberg-go"
)

// Arrow returns the Arrow type that holds a column's values on their way into and out of data files: what iceberg-go's
// schema conversion gives for ToIceberg's type (uuid is the arrow.uuid extension, timestamptz has zone UTC, interval is a
// string in ISO 8601). Types that no column can have travel as strings.
func Arrow(oid uint32, typmod int32) arrow.DataType {
	switch oid {
	case OID, XID, CID, RegClass, RegType, RegProc, RegNamespace, RegRole:
		return arrow.PrimitiveTypes.Int64
	}
	typ, _, err := icebergType(oid, typmod)
	if err != nil {
		return arrow.BinaryTypes.String
	}
	return arrowType(typ)
}

func arrowType(typ iceberg.Type) arrow.DataType {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		return arrow.FixedWidthTypes.Boolean
	case iceberg.Int32Type:
		return arrow.PrimitiveTypes.Int32
	case iceberg.Int64Type:
		return arrow.PrimitiveTypes.Int64
	case iceberg.Float32Type:
		return arrow.PrimitiveTypes.Float32
	case iceberg.Float64Type:
		return arrow.PrimitiveTypes.Float64
	case iceberg.DecimalType:
		return &arrow.Decimal128Type{Precision: int32(t.Precision()), Scale: int32(t.Scale())}
	case iceberg.BinaryType:
		return arrow.BinaryTypes.Binary
	case iceberg.UUIDType:
		return extensions.NewUUIDType()
	case iceberg.DateType:
		return arrow.FixedWidthTypes.Date32
	case iceberg.TimeType:
		return arrow.FixedWidthTypes.Time64us
	case iceberg.TimestampType:
		return &arrow.TimestampType{Unit: arrow.Microsecond}
	case iceberg.TimestampTzType:
		return arrow.FixedWidthTypes.Timestamp_us
	case *iceberg.ListType:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: arrowType(t.Element), Nullable: !t.ElementRequired})
	}
	return arrow.BinaryTypes.String
}
