package sqlfuncs

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// KeyColumn is a column of a key, for which values of SQL become keys of the index.
type KeyColumn struct {
	Name string
	ID   int
	// Type is the newest type that the table gives the field: keys are encoded in it.
	Type iceberg.Type
	OID  uint32
	Mod  int32
}

// KeyMatch says what a value is to a key column.
type KeyMatch byte

// The matches.
const (
	KeyKnown   KeyMatch = iota // equal to the encoded value, and to no other
	KeyNone                    // equal to no value of the column
	KeyUnknown                 // only SQL's comparison can tell
)

// Encode appends the value of the column that is equal to v, a value of type oid as pgenc decodes it, by PostgreSQL's comparison of the two types.
func (k *KeyColumn) Encode(dst []byte, oid uint32, v any) ([]byte, KeyMatch) {
	switch t := k.Type.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		n, m := integerKey(v)
		return keyindex.AppendLong(dst, n), m
	case iceberg.DecimalType:
		n, m := decimalKey(v, t)
		return keyindex.AppendDecimal(dst, n), m
	case iceberg.Float32Type, iceberg.Float64Type:
		f, ok := doubleKey(v)
		if !ok || f == 0 { // -0 is equal to 0, and stored otherwise
			return dst, KeyUnknown
		}
		return keyindex.AppendDouble(dst, f), KeyKnown
	case iceberg.StringType:
		s, m := k.stringKey(oid, v)
		return keyindex.AppendString(dst, s), m
	case iceberg.BooleanType:
		if b, ok := v.(bool); ok {
			return keyindex.AppendBool(dst, b), KeyKnown
		}
	case iceberg.BinaryType:
		if b, ok := v.([]byte); ok {
			return keyindex.AppendBytes(dst, b), KeyKnown
		}
	case iceberg.FixedType:
		if b, ok := v.([]byte); ok && k.OID == pgtype.Bytea {
			if len(b) != t.Len() {
				return dst, KeyNone
			}
			return append(dst, b...), KeyKnown
		}
	case iceberg.UUIDType:
		if u, ok := v.(pgenc.UUID); ok {
			return append(dst, u[:]...), KeyKnown
		}
	default:
		n, m := k.instantKey(v)
		return keyindex.AppendLong(dst, n), m
	}
	return dst, KeyUnknown
}

// integerKey is the integer that a number is equal to.
func integerKey(v any) (int64, KeyMatch) {
	switch x := v.(type) {
	case int16:
		return int64(x), KeyKnown
	case int32:
		return int64(x), KeyKnown
	case int64:
		return x, KeyKnown
	case float32:
		return integerKey(float64(x))
	case float64: // integers are compared as doubles: beyond 2^53 several are equal to one
		switch {
		case math.IsNaN(x) || x != math.Trunc(x):
			return 0, KeyNone
		case math.Abs(x) >= 1<<53:
			return 0, KeyUnknown
		}
		return int64(x), KeyKnown
	case pgenc.Numeric:
		n, ok := unscaled(x, 0)
		if !ok || !n.IsInt64() {
			return 0, KeyNone
		}
		return n.Int64(), KeyKnown
	}
	return 0, KeyUnknown
}

// unscaled is x × 10^scale, if that is an integer.
func unscaled(x pgenc.Numeric, scale int32) (*big.Int, bool) {
	if x.Form != pgenc.Finite {
		return nil, false
	}
	n := x.Big
	if n == nil {
		n = decimal128.New(x.Hi, x.Lo).BigInt()
	}
	ten := func(e int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(e)), nil) }
	switch {
	case x.Scale < scale:
		return new(big.Int).Mul(n, ten(scale-x.Scale)), true
	case x.Scale > scale:
		q, rest := new(big.Int).QuoRem(n, ten(x.Scale-scale), new(big.Int))
		return q, rest.Sign() == 0
	}
	return n, true
}

// decimalKey is the decimal that a number is equal to.
func decimalKey(v any, t iceberg.DecimalType) (decimal128.Num, KeyMatch) {
	var num pgenc.Numeric
	switch x := v.(type) {
	case int16, int32, int64:
		n, _ := integerKey(x)
		num.Hi, num.Lo = n>>63, uint64(n)
	case pgenc.Numeric:
		num = x
	default: // a double is compared as a double
		return decimal128.Num{}, KeyUnknown
	}
	n, ok := unscaled(num, int32(t.Scale()))
	if !ok || n.BitLen() > 127 { // decimals of 38 digits take 127 bits and the sign
		return decimal128.Num{}, KeyNone
	}
	return decimal128.FromBigInt(n), KeyKnown
}

// doubleKey is the double that a number is compared as.
func doubleKey(v any) (float64, bool) {
	switch x := v.(type) {
	case int16:
		return float64(x), true
	case int32:
		return float64(x), true
	case int64:
		return float64(x), true
	case float32:
		return float64(x), true
	case float64:
		return x, true
	case pgenc.Numeric:
		f, err := strconv.ParseFloat(string(pgenc.AppendNumeric(nil, x)), 64)
		return f, err == nil
	}
	return 0, false
}

func isDouble(t iceberg.Type) bool {
	switch t.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return true
	}
	return false
}

// stringKey is the stored string that a string is equal to.
func (k *KeyColumn) stringKey(oid uint32, v any) (string, KeyMatch) {
	s, ok := v.(string)
	if !ok || oid == pgtype.Char {
		return "", KeyUnknown
	}
	switch k.OID {
	case pgtype.Text, pgtype.Varchar, pgtype.Name:
		switch {
		case oid == pgtype.BPChar: // compared as text, without its blanks
			return strings.TrimRight(s, " "), KeyKnown
		case oid == pgtype.Name && k.OID != pgtype.Name && len(s) >= 63: // the column's values are cut to be compared
			return "", KeyUnknown
		}
		return s, KeyKnown
	case pgtype.BPChar:
		trimmed := strings.TrimRight(s, " ")
		width := int(k.Mod - 4)
		switch {
		case oid != pgtype.BPChar && trimmed != s: // compared as text, which the column's values end without blanks in
			return "", KeyNone
		case width < 1:
			return "", KeyUnknown
		}
		n := len([]rune(trimmed))
		if n > width {
			return "", KeyNone
		}
		return trimmed + strings.Repeat(" ", width-n), KeyKnown
	}
	return "", KeyUnknown
}

// instantKey is the date, time or timestamp that a value is equal to, in the column's unit.
func (k *KeyColumn) instantKey(v any) (int64, KeyMatch) {
	const day = 24 * 60 * 60 * 1_000_000
	switch k.OID {
	case pgtype.Date:
		switch x := v.(type) {
		case pgenc.Date:
			return int64(x), KeyKnown
		case pgenc.Timestamp:
			if x%day != 0 {
				return 0, KeyNone
			}
			return int64(x / day), KeyKnown
		}
	case pgtype.Time:
		if x, ok := v.(pgenc.Time); ok {
			return int64(x), KeyKnown
		}
	case pgtype.Timestamp:
		if _, micro := k.Type.(iceberg.TimestampType); !micro {
			break
		}
		switch x := v.(type) {
		case pgenc.Timestamp:
			return int64(x), KeyKnown
		case pgenc.Date:
			if x > math.MaxInt64/day || x < math.MinInt64/day {
				return 0, KeyNone
			}
			return int64(x) * day, KeyKnown
		}
	case pgtype.TimestampTZ:
		if _, micro := k.Type.(iceberg.TimestampTzType); !micro {
			break
		}
		if x, ok := v.(pgenc.TimestampTZ); ok {
			return int64(x), KeyKnown
		}
	}
	return 0, KeyUnknown
}
