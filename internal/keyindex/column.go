package keyindex

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"
)

// Kind is how a column is encoded; several Iceberg types share one.
type Kind uint8

// The kinds, as stored in an index's header.
const (
	KindBool Kind = iota + 1
	KindLong
	KindDouble
	KindDecimal
	KindFixed
	KindBytes
)

// Column is a key column's kind and, for KindFixed, its width in bytes (uuid: 16). Unit tells apart columns whose values share
// KindLong but not their meaning, so that an index written for one is not probed with the other; so does FieldID, Iceberg's field id
// (0 where none is meant), when a table got other identifier fields.
type Column struct {
	Kind    Kind
	Unit    Unit
	Width   uint16
	FieldID int32
}

// Unit is what a KindLong or KindDecimal column counts.
type Unit uint8

// The units, as stored in an index's header.
const (
	UnitNone Unit = iota
	UnitDay
	UnitMicro
	UnitNano
)

// ColumnOf is the key column of an Iceberg type. Scale of a decimal is kept in Width.
func ColumnOf(t iceberg.Type) (Column, error) {
	switch v := t.(type) {
	case iceberg.BooleanType:
		return Column{Kind: KindBool}, nil
	case iceberg.Int32Type, iceberg.Int64Type:
		return Column{Kind: KindLong}, nil
	case iceberg.DateType:
		return Column{Kind: KindLong, Unit: UnitDay}, nil
	case iceberg.TimeType, iceberg.TimestampType, iceberg.TimestampTzType:
		return Column{Kind: KindLong, Unit: UnitMicro}, nil
	case iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return Column{Kind: KindLong, Unit: UnitNano}, nil
	case iceberg.Float32Type, iceberg.Float64Type:
		return Column{Kind: KindDouble}, nil
	case iceberg.DecimalType:
		return Column{Kind: KindDecimal, Width: uint16(v.Scale())}, nil
	case iceberg.UUIDType:
		return Column{Kind: KindFixed, Width: 16}, nil
	case iceberg.FixedType:
		return Column{Kind: KindFixed, Width: uint16(v.Len())}, nil
	case iceberg.StringType, iceberg.BinaryType:
		return Column{Kind: KindBytes}, nil
	}
	return Column{}, fmt.Errorf("%w: %s", ErrUnsupportedType, t)
}

// ColumnsOf is ColumnOf for the fields ids of sc.
func ColumnsOf(sc *iceberg.Schema, ids []int) ([]Column, error) {
	cols := make([]Column, len(ids))
	for i, id := range ids {
		f, ok := sc.FindFieldByID(id)
		if !ok {
			return nil, fmt.Errorf("%w: no field %d", ErrUnsupportedType, id)
		}
		c, err := ColumnOf(f.Type)
		if err != nil {
			return nil, err
		}
		c.FieldID = int32(id)
		cols[i] = c
	}
	return cols, nil
}

// Len is the length in bytes of the column's value at the start of key, -1 when key is too short or malformed.
func (c Column) Len(key []byte) int {
	n := 0
	switch c.Kind {
	case KindBool:
		n = 1
	case KindLong, KindDouble:
		n = 8
	case KindDecimal:
		n = 16
	case KindFixed:
		n = int(c.Width)
	case KindBytes:
		for i := 0; i+1 < len(key); i++ {
			if key[i] != escZero {
				continue
			}
			if key[i+1] == escEnd {
				return i + 2
			}
			i++
		}
		return -1
	default:
		return -1
	}
	if len(key) < n {
		return -1
	}
	return n
}

// Split cuts a key (without presence bytes) into its columns' encodings. Short keys give fewer parts.
func Split(dst [][]byte, cols []Column, key []byte) [][]byte {
	for _, c := range cols {
		n := c.Len(key)
		if n < 0 {
			break
		}
		dst = append(dst, key[:n])
		key = key[n:]
	}
	return dst
}

// DecodeLong is the value of a KindLong column's encoding.
func DecodeLong(part []byte) int64 { return int64(binary.BigEndian.Uint64(part) ^ signBit) }

// DecodeDouble is the value of a KindDouble column's encoding.
func DecodeDouble(part []byte) float64 {
	b := binary.BigEndian.Uint64(part)
	if b&signBit != 0 {
		b &^= signBit
	} else {
		b = ^b
	}
	return math.Float64frombits(b)
}

// DecodeDecimal is the unscaled value of a KindDecimal column's encoding.
func DecodeDecimal(part []byte) decimal128.Num {
	return decimal128.New(int64(binary.BigEndian.Uint64(part)^signBit), binary.BigEndian.Uint64(part[8:]))
}

// DecodeBytes appends the value of a KindBytes column's encoding to dst.
func DecodeBytes(dst, part []byte) []byte {
	for i := 0; i+1 < len(part); i++ {
		if part[i] == escZero {
			if part[i+1] == escEnd {
				break
			}
			dst = append(dst, escZero)
			i++
			continue
		}
		dst = append(dst, part[i])
	}
	return dst
}

// AppendLiteral appends one column's encoding of a literal.
func AppendLiteral(dst []byte, lit iceberg.Literal) ([]byte, error) {
	switch v := lit.(type) {
	case nil:
		return dst, ErrNullKey
	case iceberg.BoolLiteral:
		return AppendBool(dst, bool(v)), nil
	case iceberg.Int32Literal:
		return AppendLong(dst, int64(v)), nil
	case iceberg.Int64Literal:
		return AppendLong(dst, int64(v)), nil
	case iceberg.DateLiteral:
		return AppendLong(dst, int64(v)), nil
	case iceberg.TimeLiteral:
		return AppendLong(dst, int64(v)), nil
	case iceberg.TimestampLiteral:
		return AppendLong(dst, int64(v)), nil
	case iceberg.TimestampNsLiteral:
		return AppendLong(dst, int64(v)), nil
	case iceberg.Float32Literal:
		return AppendDouble(dst, float64(v)), nil
	case iceberg.Float64Literal:
		return AppendDouble(dst, float64(v)), nil
	case iceberg.DecimalLiteral:
		return AppendDecimal(dst, v.Val), nil
	case iceberg.UUIDLiteral:
		return append(dst, v[:]...), nil
	case iceberg.FixedLiteral:
		return append(dst, v...), nil
	case iceberg.StringLiteral:
		return AppendString(dst, string(v)), nil
	case iceberg.BinaryLiteral:
		return AppendBytes(dst, v), nil
	}
	return dst, fmt.Errorf("%w: %s", ErrUnsupportedType, lit.Type())
}
