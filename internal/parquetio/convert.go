package parquetio

import (
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/apache/iceberg-go"
)

// layout is how a column's values lie in the Arrow array.
type layout uint8

const (
	layBits  layout = iota + 1
	layFixed        // width bytes each
	layBytes        // 32-bit offsets
)

// conversion is how a flat column's physical values become Arrow values.
type conversion struct {
	phys   parquet.Type
	lay    layout
	width  int   // of the Arrow value
	srcLen int   // of a fixed-length value
	dec    bool  // to decimal128
	widen  bool  // int32 → int64, float → double
	mul    int64 // applied to integers when > 1
	div    int64 // floor division when > 1
	int96  bool
}

var errBadDecimal = errors.New("decimal is wider than 16 bytes")

// conversionOf says how column c is read as Iceberg type want, false when it cannot.
func conversionOf(c *schema.Column, want iceberg.Type) (conversion, bool) {
	v := conversion{phys: c.PhysicalType(), mul: 1, div: 1, lay: layFixed}
	lt := c.LogicalType()
	switch t := want.(type) {
	case iceberg.BooleanType:
		v.lay = layBits
		return v, v.phys == parquet.Types.Boolean
	case iceberg.Int32Type:
		v.width = 4
		return v, v.phys == parquet.Types.Int32 && isInt(lt)
	case iceberg.Int64Type:
		v.width, v.widen = 8, v.phys == parquet.Types.Int32
		return v, (v.phys == parquet.Types.Int64 || v.widen) && isInt(lt)
	case iceberg.Float32Type:
		v.width = 4
		return v, v.phys == parquet.Types.Float
	case iceberg.Float64Type:
		v.width, v.widen = 8, v.phys == parquet.Types.Float
		return v, v.phys == parquet.Types.Double || v.widen
	case iceberg.DateType:
		v.width = 4
		_, date := logical[schema.DateLogicalType](lt)
		return v, v.phys == parquet.Types.Int32 && (date || isNone(lt))
	case iceberg.TimeType:
		v.width = 8
		return timeConversion(v, lt)
	case iceberg.TimestampType, iceberg.TimestampTzType:
		return timestampConversion(v, lt, 1e6)
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return timestampConversion(v, lt, 1e9)
	case iceberg.DecimalType:
		v.width, v.dec, v.srcLen = 16, true, c.TypeLength()
		d, ok := logical[schema.DecimalLogicalType](lt)
		if ok && (int(d.Scale()) != t.Scale() || int(d.Precision()) > t.Precision()) || !ok {
			return v, false
		}
		switch v.phys {
		case parquet.Types.Int32, parquet.Types.Int64, parquet.Types.ByteArray:
			return v, true
		case parquet.Types.FixedLenByteArray:
			return v, v.srcLen <= 16
		}
		return v, false
	case iceberg.UUIDType:
		v.width, v.srcLen = 16, 16
		return v, v.phys == parquet.Types.FixedLenByteArray && c.TypeLength() == 16
	case iceberg.FixedType:
		v.width, v.srcLen = t.Len(), t.Len()
		return v, v.phys == parquet.Types.FixedLenByteArray && c.TypeLength() == t.Len()
	case iceberg.StringType, iceberg.BinaryType:
		v.lay = layBytes
		return v, v.phys == parquet.Types.ByteArray
	}
	return v, false
}

// logical is lt as T; arrow-go keeps logical types both by value and by pointer.
func logical[T any](lt schema.LogicalType) (T, bool) {
	switch v := any(lt).(type) {
	case T:
		return v, true
	case *T:
		return *v, true
	}
	var zero T
	return zero, false
}

func isNone(lt schema.LogicalType) bool { return lt == nil || lt.IsNone() }

func isInt(lt schema.LogicalType) bool {
	if i, ok := logical[schema.IntLogicalType](lt); ok {
		return i.IsSigned()
	}
	return isNone(lt)
}

func timeConversion(v conversion, lt schema.LogicalType) (conversion, bool) {
	unit := schema.TimeUnitMicros
	if t, ok := logical[schema.TimeLogicalType](lt); ok {
		unit = t.TimeUnit()
	} else if !isNone(lt) {
		return v, false
	}
	switch unit {
	case schema.TimeUnitMillis:
		v.mul, v.widen = 1000, v.phys == parquet.Types.Int32
	case schema.TimeUnitNanos:
		v.div = 1000
	}
	return v, v.phys == parquet.Types.Int64 || v.widen
}

// timestampConversion brings any stored unit to perSecond units; a date becomes its midnight.
func timestampConversion(v conversion, lt schema.LogicalType, perSecond int64) (conversion, bool) {
	v.width = 8
	if v.phys == parquet.Types.Int96 {
		v.int96, v.div = true, 1e9/perSecond
		return v, true
	}
	if _, ok := logical[schema.DateLogicalType](lt); ok && v.phys == parquet.Types.Int32 {
		v.widen, v.mul = true, 86400*perSecond
		return v, true
	}
	if v.phys != parquet.Types.Int64 {
		return v, false
	}
	stored := perSecond
	if t, ok := logical[schema.TimestampLogicalType](lt); ok {
		switch t.TimeUnit() {
		case schema.TimeUnitMillis:
			stored = 1e3
		case schema.TimeUnitMicros:
			stored = 1e6
		case schema.TimeUnitNanos:
			stored = 1e9
		}
	} else if !isNone(lt) {
		return v, false
	}
	if stored < perSecond {
		v.mul = perSecond / stored
	} else {
		v.div = stored / perSecond
	}
	return v, true
}

// scale applies mul and div, rounding down: the time a value names never moves forward.
func (v *conversion) scale(x int64) int64 {
	if v.div > 1 {
		q := x / v.div
		if x%v.div < 0 {
			q--
		}
		return q
	}
	return x * v.mul
}

// bigEndianDecimal reads a two's complement big-endian number of at most 16 bytes.
func bigEndianDecimal(b []byte) (decimal128.Num, error) {
	if len(b) > 16 {
		return decimal128.Num{}, errBadDecimal
	}
	var full [16]byte
	if len(b) > 0 && b[0]&0x80 != 0 {
		for i := range full {
			full[i] = 0xff
		}
	}
	copy(full[16-len(b):], b)
	return decimal128.New(int64(binary.BigEndian.Uint64(full[:])), binary.BigEndian.Uint64(full[8:])), nil
}
