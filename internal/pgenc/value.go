package pgenc

import (
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// The Go values that Decode returns and Append takes, next to bool, int16, int32, int64, uint32 (oid and its kin), float32,
// float64, string (text, varchar, bpchar, name, json, jsonb, unknown …), []byte (bytea), Numeric and IntervalValue.
// nil is NULL.
type (
	// Date is days since 1970-01-01.
	Date int32
	// Time is microseconds since midnight.
	Time int64
	// Timestamp is microseconds since 1970-01-01 00:00 without a zone.
	Timestamp int64
	// TimestampTZ is microseconds since 1970-01-01 00:00 UTC.
	TimestampTZ int64
	// UUID is sixteen bytes in the order they are written.
	UUID [16]byte
	// Array holds elements in row-major order. No Dims is the empty array.
	Array struct {
		ElemOID uint32
		Dims    []ArrayDim
		Elems   []any
	}
)

// Formats of a parameter or column.
const (
	Text   int16 = 0
	Binary int16 = 1
)

// Decode reads a bind parameter. data is never nil (NULL is the caller's). format is Text or Binary. Types that the
// package does not know are strings. Errors: see the package; a binary value too short is 08P01, too long 22P03.
func Decode(oid uint32, format int16, data []byte, s Style) (any, error) {
	if format == Binary {
		return s.decodeBinary(oid, data)
	}
	if err := CheckUTF8(data); err != nil {
		return nil, err
	}
	return s.decodeText(oid, data)
}

// decodeText reads one value's text, already valid UTF-8.
func (s Style) decodeText(oid uint32, b []byte) (any, error) {
	switch oid {
	case pgtype.Bool:
		return anyOf(ParseBool(b))
	case pgtype.Int2:
		return anyOf(ParseInt2(b))
	case pgtype.Int4:
		return anyOf(ParseInt4(b))
	case pgtype.Int8:
		return anyOf(ParseInt8(b))
	case pgtype.OID, pgtype.XID, pgtype.CID:
		return anyOf(ParseOID(b))
	case pgtype.Float4:
		return anyOf(ParseFloat4(b))
	case pgtype.Float8:
		return anyOf(ParseFloat8(b))
	case pgtype.Numeric:
		return anyOf(ParseNumeric(b))
	case pgtype.Bytea:
		return anyOf(ParseBytea(make([]byte, 0, len(b)), b))
	case pgtype.UUID:
		return anyOf(ParseUUID(b))
	case pgtype.Date:
		v, err := s.ParseDate(b)
		return anyOf(Date(v), err)
	case pgtype.Time:
		v, err := s.ParseTime(b)
		return anyOf(Time(v), err)
	case pgtype.Timestamp:
		v, err := s.ParseTimestamp(b)
		return anyOf(Timestamp(v), err)
	case pgtype.TimestampTZ:
		v, err := s.ParseTimestampTZ(b)
		return anyOf(TimestampTZ(v), err)
	case pgtype.Interval:
		return anyOf(s.ParseInterval(b))
	case pgtype.JSON:
		if err := CheckJSON(b); err != nil {
			return nil, err
		}
		return string(b), nil
	case pgtype.JSONB:
		out, err := AppendJSONB(nil, b)
		return anyOf(string(out), err)
	case pgtype.Name:
		return string(TruncateName(b)), nil
	case pgtype.Char:
		if len(b) > 1 {
			b = b[:1]
		}
		return string(b), nil
	case pgtype.Int2Vector, pgtype.OIDVector:
		return s.parseVector(oid, b)
	}
	if elem := pgtype.ElemOf(oid); elem != 0 {
		return anyOf(s.ParseArray(elem, b))
	}
	return string(b), nil
}

func anyOf[T any](v T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// nameLen is the greatest length of an identifier in bytes. Source: NAMEDATALEN - 1.
const nameLen = 63

// TruncateName cuts an identifier to 63 bytes at a character's border. Source: namein.
func TruncateName(b []byte) []byte {
	if len(b) <= nameLen {
		return b
	}
	n := nameLen
	for n > 0 && b[n]&0xc0 == 0x80 {
		n--
	}
	return b[:n]
}

// Append appends a value's text or binary form, without a length word. v is one of the package's value types and must
// fit the OID: int16, int32, int64 are exchangeable. nil is the caller's.
func Append(dst []byte, oid uint32, format int16, v any, s Style) ([]byte, error) {
	if format == Binary {
		return appendBinary(dst, oid, v, s)
	}
	return appendText(dst, oid, v, s)
}

func appendText(dst []byte, oid uint32, v any, s Style) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		return AppendBool(dst, v), nil
	case int16:
		return AppendInt(dst, int64(v)), nil
	case int32:
		return AppendInt(dst, int64(v)), nil
	case int64:
		return AppendInt(dst, v), nil
	case int:
		return AppendInt(dst, int64(v)), nil
	case uint32:
		return AppendInt(dst, int64(v)), nil
	case float32:
		return AppendFloat4(dst, v), nil
	case float64:
		return AppendFloat8(dst, v), nil
	case string:
		return append(dst, v...), nil
	case []byte:
		return AppendBytea(dst, v), nil
	case Numeric:
		return AppendNumeric(dst, v), nil
	case UUID:
		return AppendUUID(dst, v), nil
	case Date:
		return s.AppendDate(dst, int32(v)), nil
	case Time:
		return AppendTime(dst, int64(v)), nil
	case Timestamp:
		return s.AppendTimestamp(dst, int64(v)), nil
	case TimestampTZ:
		return s.AppendTimestampTZ(dst, int64(v)), nil
	case IntervalValue:
		return s.AppendInterval(dst, v), nil
	case Array:
		return appendArrayText(dst, oid, v, s)
	}
	return dst, pgerr.Newf(pgerr.InternalError, "value of Go type %T cannot be shown as type %s", v, pgtype.FormatNoTypmod(oid))
}

func appendBinary(dst []byte, oid uint32, v any, s Style) ([]byte, error) {
	switch v := v.(type) {
	case bool:
		return AppendBoolBinary(dst, v), nil
	case int16:
		return appendIntBinary(dst, oid, int64(v)), nil
	case int32:
		return appendIntBinary(dst, oid, int64(v)), nil
	case int64:
		return appendIntBinary(dst, oid, v), nil
	case int:
		return appendIntBinary(dst, oid, int64(v)), nil
	case uint32:
		return AppendInt4Binary(dst, int32(v)), nil
	case float32:
		return AppendFloat4Binary(dst, v), nil
	case float64:
		return AppendFloat8Binary(dst, v), nil
	case string:
		if oid == pgtype.JSONB {
			dst = append(dst, 1)
		}
		return append(dst, v...), nil
	case []byte:
		return append(dst, v...), nil
	case Numeric:
		return AppendNumericBinary(dst, v), nil
	case UUID:
		return append(dst, v[:]...), nil
	case Date:
		return AppendDateBinary(dst, int32(v)), nil
	case Time:
		return AppendTimeBinary(dst, int64(v)), nil
	case Timestamp:
		return AppendTimestampBinary(dst, int64(v)), nil
	case TimestampTZ:
		return AppendTimestampBinary(dst, int64(v)), nil
	case IntervalValue:
		return AppendIntervalBinary(dst, v), nil
	case Array:
		return appendArrayBinary(dst, v, s)
	}
	return dst, pgerr.Newf(pgerr.InternalError, "value of Go type %T cannot be sent as type %s", v, pgtype.FormatNoTypmod(oid))
}

// appendIntBinary writes an integer in its type's width.
func appendIntBinary(dst []byte, oid uint32, v int64) []byte {
	switch pgtype.LenOf(oid) {
	case 2:
		return AppendInt2Binary(dst, int16(v))
	case 4:
		return AppendInt4Binary(dst, int32(v))
	}
	return AppendInt8Binary(dst, v)
}

func appendArrayText(dst []byte, oid uint32, a Array, s Style) ([]byte, error) {
	if oid == pgtype.Int2Vector || oid == pgtype.OIDVector {
		for i, e := range a.Elems {
			if i > 0 {
				dst = append(dst, ' ')
			}
			var err error
			if dst, err = appendText(dst, a.ElemOID, e, s); err != nil {
				return dst, err
			}
		}
		return dst, nil
	}
	if len(a.Dims) == 0 {
		return append(dst, '{', '}'), nil
	}
	dst = AppendArrayBounds(dst, a.Dims...)
	next := 0
	return appendArrayDim(dst, &a, 0, &next, s)
}

func appendArrayDim(dst []byte, a *Array, dim int, next *int, s Style) ([]byte, error) {
	dst = append(dst, '{')
	for i := range int(a.Dims[dim].Len) {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		switch {
		case dim+1 < len(a.Dims):
			dst, err = appendArrayDim(dst, a, dim+1, next, s)
		case a.Elems[*next] == nil:
			dst = append(dst, "NULL"...)
			*next++
		default:
			start := len(dst)
			if dst, err = appendText(dst, a.ElemOID, a.Elems[*next], s); err == nil {
				dst = QuoteArrayElem(dst, start, ',')
			}
			*next++
		}
		if err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func appendArrayBinary(dst []byte, a Array, s Style) ([]byte, error) {
	hasNull := false
	for _, e := range a.Elems {
		hasNull = hasNull || e == nil
	}
	dst = AppendArrayHeader(dst, a.ElemOID, hasNull, a.Dims...)
	for _, e := range a.Elems {
		if e == nil {
			dst = AppendNull(dst)
			continue
		}
		var start int
		var err error
		dst, start = BeginField(dst)
		if dst, err = appendBinary(dst, a.ElemOID, e, s); err != nil {
			return dst, err
		}
		dst = EndField(dst, start)
	}
	return dst, nil
}
