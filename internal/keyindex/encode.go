package keyindex

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

const signBit = 1 << 63

// Escape bytes of variable-length columns: 0x00 in the data becomes 0x00 0xff, the end is 0x00 0x01.
const (
	escZero = 0x00
	escData = 0xff
	escEnd  = 0x01
)

const (
	flagNull    = 0x00
	flagPresent = 0x01
)

// Encoder encodes the key columns of one record batch. Not safe for concurrent use.
type Encoder struct {
	cols  []encColumn
	nulls bool
}

// Option changes an Encoder.
type Option func(*Encoder)

// WithNulls admits NULL in key columns; each column then carries a presence byte.
func WithNulls() Option { return func(e *Encoder) { e.nulls = true } }

// encColumn is one column with its values as typed slices, so that a row costs no interface call for the common types.
type encColumn struct {
	kind   Kind
	i32    []int32
	i64    []int64
	str    *array.String
	bin    binaryArray
	fixed  *array.FixedSizeBinary
	dec    []decimal128.Num
	f32    []float32
	f64    []float64
	b      *array.Boolean
	arr    arrow.Array // for IsNull
	hasNil bool
}

type binaryArray interface{ Value(int) []byte }

type largeString struct{ *array.LargeString }

func (l largeString) Value(i int) []byte { return []byte(l.LargeString.Value(i)) }

// NewEncoder prepares the encoding of columns cols (indices into rec) of rec.
func NewEncoder(rec arrow.RecordBatch, cols []int, opts ...Option) (*Encoder, error) {
	arrs := make([]arrow.Array, len(cols))
	for i, c := range cols {
		arrs[i] = rec.Column(c)
	}
	return NewArrayEncoder(arrs, opts...)
}

// NewArrayEncoder is NewEncoder for loose arrays of one length.
func NewArrayEncoder(arrs []arrow.Array, opts ...Option) (*Encoder, error) {
	e := &Encoder{cols: make([]encColumn, len(arrs))}
	for _, o := range opts {
		o(e)
	}
	for i, a := range arrs {
		if err := e.cols[i].set(a); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (c *encColumn) set(a arrow.Array) error {
	c.arr, c.hasNil = a, a.NullN() > 0
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	switch v := a.(type) {
	case *array.Int64:
		c.kind, c.i64 = KindLong, v.Int64Values()
	case *array.Int32:
		c.kind, c.i32 = KindLong, v.Int32Values()
	case *array.Date32:
		c.kind, c.i32 = KindLong, arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(v.Date32Values()))
	case *array.Timestamp:
		c.kind, c.i64 = KindLong, arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(v.TimestampValues()))
	case *array.Time64:
		c.kind, c.i64 = KindLong, arrow.Int64Traits.CastFromBytes(arrow.Time64Traits.CastToBytes(v.Time64Values()))
	case *array.Boolean:
		c.kind, c.b = KindBool, v
	case *array.Float32:
		c.kind, c.f32 = KindDouble, v.Float32Values()
	case *array.Float64:
		c.kind, c.f64 = KindDouble, v.Float64Values()
	case *array.Decimal128:
		c.kind, c.dec = KindDecimal, v.Values()
	case *array.FixedSizeBinary:
		c.kind, c.fixed = KindFixed, v
	case *array.String:
		c.kind, c.str = KindBytes, v
	case *array.Binary:
		c.kind, c.bin = KindBytes, v
	case *array.LargeBinary:
		c.kind, c.bin = KindBytes, v
	case *array.LargeString:
		c.kind, c.bin = KindBytes, largeString{v}
	case *array.Null:
		c.kind, c.hasNil = KindLong, true
	default:
		return fmt.Errorf("%w: %s", ErrUnsupportedType, a.DataType())
	}
	return nil
}

// Append appends row's key to dst. It allocates only when dst must grow.
func (e *Encoder) Append(dst []byte, row int) ([]byte, error) {
	for i := range e.cols {
		c := &e.cols[i]
		if c.hasNil && c.arr.IsNull(row) {
			if !e.nulls {
				return dst, ErrNullKey
			}
			dst = append(dst, flagNull)
			continue
		}
		if e.nulls {
			dst = append(dst, flagPresent)
		}
		dst = c.append(dst, row)
	}
	return dst, nil
}

func (c *encColumn) append(dst []byte, row int) []byte {
	switch c.kind {
	case KindLong:
		if c.i64 != nil {
			return AppendLong(dst, c.i64[row])
		}
		return AppendLong(dst, int64(c.i32[row]))
	case KindBytes:
		if c.str != nil {
			return AppendString(dst, c.str.Value(row))
		}
		return AppendBytes(dst, c.bin.Value(row))
	case KindFixed:
		return append(dst, c.fixed.Value(row)...)
	case KindDecimal:
		return AppendDecimal(dst, c.dec[row])
	case KindDouble:
		if c.f64 != nil {
			return AppendDouble(dst, c.f64[row])
		}
		return AppendDouble(dst, float64(c.f32[row]))
	default:
		return AppendBool(dst, c.b.Value(row))
	}
}

// AppendKey appends the key of one row to dst; for many rows make an Encoder once.
func AppendKey(dst []byte, rec arrow.RecordBatch, cols []int, row int) ([]byte, error) {
	e, err := NewEncoder(rec, cols)
	if err != nil {
		return dst, err
	}
	return e.Append(dst, row)
}

// AppendBool appends a boolean column.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendLong appends an int, long, date, time or timestamp column.
func AppendLong(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v)^signBit)
}

// AppendDouble appends a float or double column. All NaNs are one value, above +Infinity.
func AppendDouble(dst []byte, v float64) []byte {
	b := math.Float64bits(v)
	if v != v {
		b = 0x7ff8000000000000
	}
	if b&signBit != 0 {
		b = ^b
	} else {
		b |= signBit
	}
	return binary.BigEndian.AppendUint64(dst, b)
}

// AppendDecimal appends a decimal column's unscaled value.
func AppendDecimal(dst []byte, v decimal128.Num) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(v.HighBits())^signBit)
	return binary.BigEndian.AppendUint64(dst, v.LowBits())
}

// AppendBytes appends a string or binary column.
func AppendBytes(dst, v []byte) []byte {
	for _, b := range v {
		if b == escZero {
			return appendEscaped(dst, v)
		}
	}
	dst = append(dst, v...)
	return append(dst, escZero, escEnd)
}

// AppendString is AppendBytes for a string.
func AppendString(dst []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		if v[i] == escZero {
			return appendEscaped(dst, v)
		}
	}
	dst = append(dst, v...)
	return append(dst, escZero, escEnd)
}

func appendEscaped[T []byte | string](dst []byte, v T) []byte {
	for i := 0; i < len(v); i++ {
		dst = append(dst, v[i])
		if v[i] == escZero {
			dst = append(dst, escData)
		}
	}
	return append(dst, escZero, escEnd)
}
