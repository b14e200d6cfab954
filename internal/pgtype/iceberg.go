package pgtype

import (
	"strconv"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// PropertyPrefix starts the table property that keeps a column's declared type; the field id follows.
const PropertyPrefix = "skade.pgtype."

// PropertyKey is the table property of a field.
func PropertyKey(fieldID int) string { return PropertyPrefix + strconv.Itoa(fieldID) }

// MaxPrecision is the greatest precision of an Iceberg decimal.
const MaxPrecision = 38

// BareNumericScale is the scale that holds a numeric column declared without precision: decimal(38, 9).
const BareNumericScale = 9

// ToIceberg returns the Iceberg type of a column declared with the PostgreSQL type.
//
// property is the value for PropertyKey, "" when the Iceberg type says it all. notice, when not "", is the text of a
// NOTICE for CREATE TABLE. The element id of a list is 0: the caller assigns it with the other field ids.
// Errors: 0A000 naming a type that no column can have.
func ToIceberg(oid uint32, typmod int32) (typ iceberg.Type, property, notice string, err error) {
	typ, notice, err = icebergType(oid, typmod)
	if err != nil {
		return nil, "", "", err
	}
	if o, m := fromIcebergType(typ); o != oid || m != typmod {
		property = shortName(oid, typmod)
	}
	return typ, property, notice, nil
}

func icebergType(oid uint32, typmod int32) (typ iceberg.Type, notice string, err error) {
	switch oid {
	case Bool:
		return iceberg.PrimitiveTypes.Bool, "", nil
	case Int2, Int4:
		return iceberg.PrimitiveTypes.Int32, "", nil
	case Int8:
		return iceberg.PrimitiveTypes.Int64, "", nil
	case Float4:
		return iceberg.PrimitiveTypes.Float32, "", nil
	case Float8:
		return iceberg.PrimitiveTypes.Float64, "", nil
	case Numeric:
		typ, notice = decimalType(typmod)
		return typ, notice, nil
	case BPChar:
		if typmod < 0 {
			notice = "values of type bpchar without a length are stored without their trailing spaces, which mean nothing in comparisons"
		}
		return iceberg.PrimitiveTypes.String, notice, nil
	case Text, Varchar, Name, JSON, JSONB, Interval:
		return iceberg.PrimitiveTypes.String, "", nil
	case Bytea:
		return iceberg.PrimitiveTypes.Binary, "", nil
	case UUID:
		return iceberg.PrimitiveTypes.UUID, "", nil
	case Date:
		return iceberg.PrimitiveTypes.Date, "", nil
	case Time:
		return iceberg.PrimitiveTypes.Time, "", nil
	case Timestamp:
		return iceberg.PrimitiveTypes.Timestamp, "", nil
	case TimestampTZ:
		return iceberg.PrimitiveTypes.TimestampTz, "", nil
	}
	if elem := ElemOf(oid); elem != 0 {
		et, notice, err := icebergType(elem, typmod)
		if err != nil {
			return nil, "", err
		}
		return &iceberg.ListType{Element: et}, notice, nil
	}
	if t := byOID[oid]; t.Kind == 'p' {
		return nil, "", pgerr.Newf(pgerr.InvalidTableDefinition, "a column cannot have pseudo-type %s", FormatNoTypmod(oid))
	}
	return nil, "", pgerr.Newf(pgerr.FeatureNotSupported, "columns of type %s are not supported", FormatNoTypmod(oid)).
		WithHint("Supported types are boolean, smallint, integer, bigint, real, double precision, numeric, text, varchar, char, name, bytea, uuid, date, time, timestamp, timestamptz, interval, json, jsonb and one-dimensional arrays of them.")
}

// decimalType bounds a numeric to what a decimal holds and says so when that loses values.
func decimalType(typmod int32) (typ iceberg.Type, notice string) {
	p, s, ok := NumericPS(typmod)
	switch {
	case !ok:
		return iceberg.DecimalTypeOf(MaxPrecision, BareNumericScale),
			"column of type numeric without precision is stored as numeric(38,9): values that do not fit are refused"
	case s < 0:
		// numeric(5,-2) holds multiples of 100 up to 9999900: seven digits.
		p, s = p-s, 0
	case s > p:
		// numeric(3,5) holds 0.00999: five digits after the point.
		p = s
	}
	if s > MaxPrecision {
		s = BareNumericScale
		p = MaxPrecision + 1
	}
	if p > MaxPrecision {
		return iceberg.DecimalTypeOf(MaxPrecision, int(s)),
			"column of type " + Format(Numeric, typmod) + " is stored as numeric(38," + strconv.Itoa(int(s)) + "): values that do not fit are refused"
	}
	return iceberg.DecimalTypeOf(int(p), int(s)), ""
}

// FromIceberg returns the PostgreSQL type of a field: its property's when there is one that fits the Iceberg type, else
// the Iceberg type's own counterpart. Nested types are jsonb, lists of scalars arrays, unknown types text (T3).
func FromIceberg(field iceberg.NestedField, props iceberg.Properties) (oid uint32, typmod int32) {
	if text, ok := props[PropertyKey(field.ID)]; ok {
		oid, typmod, err := Parse(text)
		if err == nil && fits(oid, typmod, field.Type) {
			return oid, typmod
		}
	}
	return fromIcebergType(field.Type)
}

// fits says whether values of the Iceberg type are values of the declared type. A promotion by another writer (int to
// long under a property int2) makes a property stale.
func fits(oid uint32, typmod int32, typ iceberg.Type) bool {
	want, _, err := icebergType(oid, typmod)
	if err != nil {
		return false
	}
	if list, ok := typ.(*iceberg.ListType); ok {
		wl, ok := want.(*iceberg.ListType)
		return ok && wl.Element.Equals(list.Element)
	}
	return want.Equals(typ)
}

func fromIcebergType(typ iceberg.Type) (oid uint32, typmod int32) {
	switch t := typ.(type) {
	case iceberg.BooleanType:
		return Bool, -1
	case iceberg.Int32Type:
		return Int4, -1
	case iceberg.Int64Type:
		return Int8, -1
	case iceberg.Float32Type:
		return Float4, -1
	case iceberg.Float64Type:
		return Float8, -1
	case iceberg.DecimalType:
		return Numeric, NumericTypmod(int32(t.Precision()), int32(t.Scale()))
	case iceberg.StringType:
		return Text, -1
	case iceberg.BinaryType, iceberg.FixedType:
		return Bytea, -1
	case iceberg.UUIDType:
		return UUID, -1
	case iceberg.DateType:
		return Date, -1
	case iceberg.TimeType:
		return Time, -1
	case iceberg.TimestampType, iceberg.TimestampNsType:
		return Timestamp, -1
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		return TimestampTZ, -1
	case *iceberg.ListType:
		elem, mod := fromIcebergType(t.Element)
		if _, nested := t.Element.(iceberg.NestedType); nested || elem == JSONB {
			return JSONB, -1
		}
		return ArrayOf(elem), mod
	case *iceberg.StructType, *iceberg.MapType, iceberg.VariantType:
		return JSONB, -1
	}
	return Text, -1
}

// Shown says how a foreign Iceberg type is shown when its PostgreSQL type does not hold it as it is, for a column
// comment: "" when nothing is lost.
func Shown(typ iceberg.Type) string {
	switch t := typ.(type) {
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return "Iceberg type " + t.String() + ", shown in microseconds"
	case *iceberg.StructType, *iceberg.MapType, iceberg.VariantType:
		return "Iceberg type " + t.Type() + ", shown as jsonb"
	case iceberg.FixedType:
		return "Iceberg type " + t.String() + ", shown as bytea"
	case *iceberg.ListType:
		if oid, _ := fromIcebergType(t); oid == JSONB {
			return "Iceberg type " + t.String() + ", shown as jsonb"
		}
		return Shown(t.Element)
	}
	if oid, _ := fromIcebergType(typ); oid == Text && typ.Type() != "string" {
		return "Iceberg type " + typ.Type() + ", shown as text"
	}
	return ""
}
