package parquetio

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Default reads a field's default in the form that metadata has it: Iceberg's JSON single-value serialization (a date is
// "2026-11-30", a binary is hexadecimal) or a Go value of the type. A date or time given as a number counts from 1970 or midnight.
// It is nil for no default. iceberg-go keeps what JSON gave, and takes a number where the specification has text.
func Default(typ iceberg.Type, v any) (iceberg.Literal, error) {
	switch x := v.(type) {
	case nil:
		return nil, nil
	case iceberg.Literal:
		return x, nil
	case string:
		return defaultOfText(typ, x)
	case []byte:
		return iceberg.NewLiteral(x), nil
	case bool:
		return iceberg.NewLiteral(x), nil
	case uuid.UUID:
		return iceberg.NewLiteral(x), nil
	case iceberg.Decimal:
		return iceberg.NewLiteral(x), nil
	}
	f, integer, ok := number(v)
	if !ok {
		return nil, fmt.Errorf("default of type %T for %s", v, typ)
	}
	switch t := typ.(type) {
	case iceberg.Float32Type:
		return iceberg.NewLiteral(float32(f)), nil
	case iceberg.Float64Type:
		return iceberg.NewLiteral(f), nil
	case iceberg.DecimalType:
		return iceberg.NewLiteral(strconv.FormatFloat(f, 'f', -1, 64)).To(t)
	}
	n := integer
	if n == 0 && f != 0 {
		if f != math.Trunc(f) || math.Abs(f) > math.MaxInt64 {
			return nil, fmt.Errorf("default %v for %s", v, typ)
		}
		n = int64(f)
	}
	switch typ.(type) {
	case iceberg.Int32Type:
		return iceberg.NewLiteral(int32(n)), nil
	case iceberg.Int64Type:
		return iceberg.NewLiteral(n), nil
	case iceberg.DateType:
		return iceberg.NewLiteral(iceberg.Date(n)), nil
	case iceberg.TimeType:
		return iceberg.NewLiteral(iceberg.Time(n)), nil
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return iceberg.NewLiteral(iceberg.Timestamp(n)), nil
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return iceberg.NewLiteral(iceberg.TimestampNano(n)), nil
	}
	return nil, fmt.Errorf("default of type %T for %s", v, typ)
}

// number reads any Go number; integer is set for those that are integers by type.
func number(v any) (f float64, integer int64, ok bool) {
	switch x := v.(type) {
	case int:
		return float64(x), int64(x), true
	case int32:
		return float64(x), int64(x), true
	case int64:
		return float64(x), x, true
	case float32:
		return float64(x), 0, true
	case float64:
		return x, 0, true
	case iceberg.Date:
		return float64(x), int64(x), true
	case iceberg.Time:
		return float64(x), int64(x), true
	case iceberg.Timestamp:
		return float64(x), int64(x), true
	case iceberg.TimestampNano:
		return float64(x), int64(x), true
	}
	return 0, 0, false
}

func defaultOfText(typ iceberg.Type, s string) (iceberg.Literal, error) {
	switch t := typ.(type) {
	case iceberg.BinaryType, iceberg.FixedType:
		b, err := hex.DecodeString(s)
		if err != nil {
			return nil, fmt.Errorf("default %q for %s: %w", s, typ, err)
		}
		return iceberg.NewLiteral(b), nil
	case iceberg.BooleanType:
		b, err := strconv.ParseBool(s)
		return iceberg.NewLiteral(b), err
	case iceberg.DecimalType:
		n, err := decimal128.FromString(s, int32(t.Precision()), int32(t.Scale()))
		return iceberg.NewLiteral(iceberg.Decimal{Val: n, Scale: t.Scale()}), err
	}
	return iceberg.NewLiteral(s).To(typ)
}

// DefaultText is a default as text that SQL casts to the column's type.
func DefaultText(typ iceberg.Type, v any) (string, error) {
	lit, err := Default(typ, v)
	if err != nil || lit == nil {
		return "", err
	}
	switch x := lit.Any().(type) {
	case iceberg.Date:
		return time.Unix(int64(x)*86400, 0).UTC().Format("2006-01-02"), nil
	case iceberg.Time:
		return time.UnixMicro(int64(x)).UTC().Format("15:04:05.999999"), nil
	case iceberg.Timestamp:
		return time.UnixMicro(int64(x)).UTC().Format("2006-01-02 15:04:05.999999") + zoneOf(typ), nil
	case iceberg.TimestampNano:
		return time.Unix(0, int64(x)).UTC().Format("2006-01-02 15:04:05.999999999") + zoneOf(typ), nil
	case []byte:
		var out []byte
		for _, b := range x { // DuckDB's text of a BLOB
			out = fmt.Appendf(out, `\x%02X`, b)
		}
		return string(out), nil
	case iceberg.Decimal:
		return x.Val.ToString(int32(x.Scale)), nil
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32), nil
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	default:
		return fmt.Sprint(x), nil
	}
}

func zoneOf(typ iceberg.Type) string {
	switch typ.(type) {
	case iceberg.TimestampTzType, iceberg.TimestampTzNsType:
		return "+00"
	}
	return ""
}

// defaultArray is a primitive field's default as an array of one value of type dt; nil for a type that has no such array here.
func defaultArray(typ iceberg.Type, v any, dt arrow.DataType) (arrow.Array, error) {
	lit, err := Default(typ, v)
	if err != nil || lit == nil {
		return nil, err
	}
	st := storage(dt)
	b := array.NewBuilder(memory.DefaultAllocator, st)
	defer b.Release()
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(lit.Any().(bool))
	case *array.Int32Builder:
		b.Append(lit.Any().(int32))
	case *array.Int64Builder:
		b.Append(lit.Any().(int64))
	case *array.Float32Builder:
		b.Append(lit.Any().(float32))
	case *array.Float64Builder:
		b.Append(lit.Any().(float64))
	case *array.StringBuilder:
		b.Append(lit.Any().(string))
	case *array.BinaryBuilder:
		b.Append(lit.Any().([]byte))
	case *array.Date32Builder:
		b.Append(arrow.Date32(lit.Any().(iceberg.Date)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(lit.Any().(iceberg.Time)))
	case *array.Decimal128Builder:
		b.Append(lit.Any().(iceberg.Decimal).Val)
	case *array.TimestampBuilder:
		switch x := lit.Any().(type) {
		case iceberg.Timestamp:
			b.Append(arrow.Timestamp(x))
		case iceberg.TimestampNano:
			b.Append(arrow.Timestamp(x))
		}
	case *array.FixedSizeBinaryBuilder:
		switch x := lit.Any().(type) {
		case uuid.UUID:
			b.Append(x[:])
		case []byte:
			b.Append(x)
		}
	default:
		return nil, nil
	}
	a := b.NewArray()
	defer a.Release()
	if a.Len() != 1 {
		return nil, fmt.Errorf("default %v for %s", v, typ)
	}
	return asType(a, dt)
}
