package pgenc

import (
	"encoding/binary"
	"math"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

var (
	errShort    = pgerr.New(pgerr.ProtocolViolation, "insufficient data left in message")
	errTrailing = pgerr.New(pgerr.InvalidBinaryRepresentation, "incorrect binary data format")
)

// decodeBinary reads one value's binary form. Source: each type's receive function.
func (s Style) decodeBinary(oid uint32, b []byte) (any, error) {
	if n := binaryLen(oid); n > 0 {
		if len(b) < n {
			return nil, errShort
		}
		if len(b) > n {
			return nil, errTrailing
		}
		return decodeFixed(oid, b)
	}
	switch oid {
	case pgtype.Numeric:
		return anyOf(decodeNumericBinary(b))
	case pgtype.Bytea:
		return append([]byte{}, b...), nil
	case pgtype.JSONB:
		if len(b) == 0 {
			return nil, errShort
		}
		if b[0] != 1 {
			return nil, pgerr.Newf(pgerr.InvalidBinaryRepresentation, "unsupported jsonb version number %d", b[0])
		}
		if err := CheckUTF8(b[1:]); err != nil {
			return nil, err
		}
		return s.decodeText(oid, b[1:])
	case pgtype.Int2Vector:
		return anyOf(s.decodeVectorBinary(pgtype.Int2, b))
	case pgtype.OIDVector:
		return anyOf(s.decodeVectorBinary(pgtype.OID, b))
	}
	if elem := pgtype.ElemOf(oid); elem != 0 {
		return anyOf(s.decodeArrayBinary(elem, b))
	}
	if err := CheckUTF8(b); err != nil {
		return nil, err
	}
	if oid == pgtype.JSON {
		return s.decodeText(oid, b)
	}
	return string(b), nil
}

// binaryLen is the length of a fixed-width type's binary form, 0 for the others.
func binaryLen(oid uint32) int {
	switch oid {
	case pgtype.Bool, pgtype.Char:
		return 1
	case pgtype.Int2:
		return 2
	case pgtype.Int4, pgtype.Float4, pgtype.Date, pgtype.OID, pgtype.XID, pgtype.CID, pgtype.RegClass, pgtype.RegType, pgtype.RegProc,
		pgtype.RegProcedure, pgtype.RegOper, pgtype.RegOperator, pgtype.RegNamespace, pgtype.RegRole, pgtype.RegCollation, pgtype.RegConfig, pgtype.RegDictionary:
		return 4
	case pgtype.Int8, pgtype.Float8, pgtype.Time, pgtype.Timestamp, pgtype.TimestampTZ:
		return 8
	case pgtype.UUID, pgtype.Interval:
		return 16
	}
	return 0
}

func decodeFixed(oid uint32, b []byte) (any, error) {
	switch oid {
	case pgtype.Bool:
		return b[0] != 0, nil
	case pgtype.Char:
		return string(b), nil
	case pgtype.Int2:
		return int16(binary.BigEndian.Uint16(b)), nil
	case pgtype.Int4:
		return int32(binary.BigEndian.Uint32(b)), nil
	case pgtype.Int8:
		return int64(binary.BigEndian.Uint64(b)), nil
	case pgtype.Float4:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case pgtype.Float8:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case pgtype.UUID:
		return UUID(b), nil
	case pgtype.Date:
		v, err := dateFromBinary(int32(binary.BigEndian.Uint32(b)))
		return anyOf(Date(v), err)
	case pgtype.Time:
		v := int64(binary.BigEndian.Uint64(b))
		if v < 0 || v > microsPerDay {
			return nil, pgerr.New(pgerr.DatetimeFieldOverflow, "time out of range")
		}
		return Time(v), nil
	case pgtype.Timestamp:
		v, err := timestampFromBinary(int64(binary.BigEndian.Uint64(b)))
		return anyOf(Timestamp(v), err)
	case pgtype.TimestampTZ:
		v, err := timestampFromBinary(int64(binary.BigEndian.Uint64(b)))
		return anyOf(TimestampTZ(v), err)
	case pgtype.Interval:
		return IntervalValue{
			Micros: int64(binary.BigEndian.Uint64(b)), Days: int32(binary.BigEndian.Uint32(b[8:])), Months: int32(binary.BigEndian.Uint32(b[12:])),
		}, nil
	}
	return binary.BigEndian.Uint32(b), nil
}

// dateFromBinary converts days since 2000-01-01.
func dateFromBinary(v int32) (int32, error) {
	switch v {
	case math.MaxInt32:
		return DateInfinity, nil
	case math.MinInt32:
		return DateNegInfinity, nil
	}
	days := int64(v) + pgEpochDays
	if days < minDate || days > maxDate {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range")
	}
	return int32(days), nil
}

// timestampFromBinary converts microseconds since 2000-01-01.
func timestampFromBinary(v int64) (int64, error) {
	switch v {
	case math.MaxInt64:
		return TimestampInfinity, nil
	case math.MinInt64:
		return TimestampNegInfinity, nil
	}
	if v > math.MaxInt64-pgEpochMicros-1 || v < minDate*microsPerDay-pgEpochMicros {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
	}
	return v + pgEpochMicros, nil
}

// decodeArrayBinary reads an array's binary form. Source: array_recv.
func (s Style) decodeArrayBinary(elem uint32, b []byte) (Array, error) {
	if len(b) < 12 {
		return Array{}, errShort
	}
	ndim := int32(binary.BigEndian.Uint32(b))
	flags := binary.BigEndian.Uint32(b[4:])
	got := binary.BigEndian.Uint32(b[8:])
	switch {
	case ndim < 0:
		return Array{}, pgerr.Newf(pgerr.InvalidBinaryRepresentation, "invalid number of dimensions: %d", ndim)
	case ndim > maxArrayDims:
		return Array{}, tooManyDims(int(ndim))
	case flags > 1:
		return Array{}, pgerr.New(pgerr.InvalidBinaryRepresentation, "invalid array flags")
	case got != elem:
		return Array{}, pgerr.Newf(pgerr.DatatypeMismatch, "binary data has array element type %d (%s) instead of expected %d (%s)",
			got, pgtype.FormatNoTypmod(got), elem, pgtype.FormatNoTypmod(elem))
	}
	b = b[12:]
	a := Array{ElemOID: elem}
	n := int64(1)
	for range ndim {
		if len(b) < 8 {
			return Array{}, errShort
		}
		d := ArrayDim{Len: int32(binary.BigEndian.Uint32(b)), LowerBound: int32(binary.BigEndian.Uint32(b[4:]))}
		b = b[8:]
		if d.Len < 0 || d.Len != 0 && d.LowerBound > math.MaxInt32-d.Len {
			return Array{}, pgerr.New(pgerr.ProgramLimitExceeded, "array size exceeds the maximum allowed (134217727)")
		}
		// Each element needs a length word: a count beyond the bytes is refused before anything is allocated.
		if n *= int64(d.Len); n*4 > int64(len(b)) && n > 0 && n > int64(len(b)) {
			return Array{}, errShort
		}
		a.Dims = append(a.Dims, d)
	}
	if ndim == 0 || n == 0 {
		return Array{ElemOID: elem}, trailing(b)
	}
	if n*4 > int64(len(b)) {
		return Array{}, errShort
	}
	a.Elems = make([]any, n)
	for i := range a.Elems {
		if len(b) < 4 {
			return Array{}, errShort
		}
		size := int32(binary.BigEndian.Uint32(b))
		b = b[4:]
		if size == -1 {
			continue
		}
		if size < 0 || int(size) > len(b) {
			return Array{}, errShort
		}
		v, err := s.decodeBinary(elem, b[:size])
		if err != nil {
			return Array{}, err
		}
		a.Elems[i] = v
		b = b[size:]
	}
	return a, trailing(b)
}

// decodeVectorBinary reads int2vector and oidvector, which have one dimension even when empty.
func (s Style) decodeVectorBinary(elem uint32, b []byte) (Array, error) {
	a, err := s.decodeArrayBinary(elem, b)
	if len(a.Dims) == 0 {
		a.Dims = []ArrayDim{{}}
	}
	return a, err
}

func trailing(b []byte) error {
	if len(b) != 0 {
		return errTrailing
	}
	return nil
}
