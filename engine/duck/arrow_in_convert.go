package duck

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bind "github.com/duckdb/duckdb-go-bindings"
)

// fillConverted copies arrays whose values have another unit or width than DuckDB's.
func fillConverted(v bind.Vector, arr arrow.Array, at int) error {
	n := arr.Len()
	switch a := arr.(type) {
	case *array.Date64:
		dst := slice[int32](v, at, n)
		for i, x := range a.Date64Values() {
			dst[i] = int32(floorDiv(int64(x), 86400_000))
		}
	case *array.Time32:
		f := int64(1_000_000)
		if a.DataType().(*arrow.Time32Type).Unit == arrow.Millisecond {
			f = 1000
		}
		dst := slice[int64](v, at, n)
		for i, x := range a.Time32Values() {
			dst[i] = int64(x) * f
		}
	case *array.Time64:
		d := int64(1)
		if a.DataType().(*arrow.Time64Type).Unit == arrow.Nanosecond {
			d = 1000
		}
		dst := slice[int64](v, at, n)
		for i, x := range a.Time64Values() {
			dst[i] = int64(x) / d
		}
	case *array.Timestamp:
		fillTimestamps(slice[int64](v, at, n), a)
	case *array.Duration:
		dst := slice[interval](v, at, n)
		unit := int64(a.DataType().(*arrow.DurationType).Unit.Multiplier())
		for i, x := range a.DurationValues() {
			dst[i] = interval{micros: int64(x) * unit / 1000}
		}
	case *array.MonthDayNanoInterval:
		dst := slice[interval](v, at, n)
		for i, x := range a.MonthDayNanoIntervalValues() {
			dst[i] = interval{months: x.Months, days: x.Days, micros: x.Nanoseconds / 1000}
		}
	case *array.Decimal128:
		fillDecimals(v, a, at)
	default:
		return fmt.Errorf("%w: %s", ErrUnsupportedType, arr.DataType())
	}
	return nil
}

func fillTimestamps(dst []int64, a *array.Timestamp) {
	unit := a.DataType().(*arrow.TimestampType).Unit
	for i, x := range a.TimestampValues() {
		switch y := int64(x); unit {
		case arrow.Second:
			dst[i] = y * 1_000_000
		case arrow.Millisecond:
			dst[i] = y * 1000
		case arrow.Microsecond:
			dst[i] = y
		default:
			dst[i] = floorDiv(y, 1000)
		}
	}
}

// fillDecimals narrows to the integer that DuckDB keeps a decimal of the precision in.
func fillDecimals(v bind.Vector, a *array.Decimal128, at int) {
	n := a.Len()
	switch p := a.DataType().(*arrow.Decimal128Type).Precision; {
	case p <= 4:
		dst := slice[int16](v, at, n)
		for i, x := range a.Values() {
			dst[i] = int16(x.LowBits())
		}
	case p <= 9:
		dst := slice[int32](v, at, n)
		for i, x := range a.Values() {
			dst[i] = int32(x.LowBits())
		}
	case p <= 18:
		dst := slice[int64](v, at, n)
		for i, x := range a.Values() {
			dst[i] = int64(x.LowBits())
		}
	default:
		dst := slice[hugeint](v, at, n)
		for i, x := range a.Values() {
			dst[i] = hugeint{lo: x.LowBits(), hi: uint64(x.HighBits())}
		}
	}
}
