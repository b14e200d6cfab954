package engine

import (
	"context"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// keyPart is a column of a table's key.
type keyPart struct {
	id  int
	col int // index into Relation.Columns
	// typ is the newest type that the table gives the field: keys are encoded in it.
	typ iceberg.Type
	oid uint32
	mod int32
}

// match says what a value is to a key column.
type match byte

const (
	matchKnown   match = iota // equal to the encoded value, and to no other
	matchNone                 // equal to no value of the column
	matchUnknown              // only SQL's comparison can tell
)

// encode appends the value of the column that is equal to v, a value of type oid as pgenc decodes it, by PostgreSQL's comparison of the two types.
func (k *keyPart) encode(dst []byte, oid uint32, v any) ([]byte, match) {
	switch t := k.typ.(type) {
	case iceberg.Int32Type, iceberg.Int64Type:
		n, m := integerKey(v)
		return keyindex.AppendLong(dst, n), m
	case iceberg.DecimalType:
		n, m := decimalKey(v, t)
		return keyindex.AppendDecimal(dst, n), m
	case iceberg.StringType:
		s, m := k.stringKey(oid, v)
		return keyindex.AppendString(dst, s), m
	case iceberg.BooleanType:
		if b, ok := v.(bool); ok {
			return keyindex.AppendBool(dst, b), matchKnown
		}
	case iceberg.BinaryType:
		if b, ok := v.([]byte); ok {
			return keyindex.AppendBytes(dst, b), matchKnown
		}
	case iceberg.FixedType:
		if b, ok := v.([]byte); ok && k.oid == pgtype.Bytea {
			if len(b) != t.Len() {
				return dst, matchNone
			}
			return append(dst, b...), matchKnown
		}
	case iceberg.UUIDType:
		if u, ok := v.(pgenc.UUID); ok {
			return append(dst, u[:]...), matchKnown
		}
	default:
		n, m := k.instantKey(v)
		return keyindex.AppendLong(dst, n), m
	}
	return dst, matchUnknown
}

// integerKey is the integer that a number is equal to.
func integerKey(v any) (int64, match) {
	switch x := v.(type) {
	case int16:
		return int64(x), matchKnown
	case int32:
		return int64(x), matchKnown
	case int64:
		return x, matchKnown
	case float64: // integers are compared as doubles: beyond 2^53 several are equal to one
		switch {
		case math.IsNaN(x) || x != math.Trunc(x):
			return 0, matchNone
		case math.Abs(x) >= 1<<53:
			return 0, matchUnknown
		}
		return int64(x), matchKnown
	case pgenc.Numeric:
		n, ok := unscaled(x, 0)
		if !ok || !n.IsInt64() {
			return 0, matchNone
		}
		return n.Int64(), matchKnown
	}
	return 0, matchUnknown
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
func decimalKey(v any, t iceberg.DecimalType) (decimal128.Num, match) {
	var num pgenc.Numeric
	switch x := v.(type) {
	case int16, int32, int64:
		n, _ := integerKey(x)
		num.Hi, num.Lo = n>>63, uint64(n)
	case pgenc.Numeric:
		num = x
	default: // a double is compared as a double
		return decimal128.Num{}, matchUnknown
	}
	n, ok := unscaled(num, int32(t.Scale()))
	if !ok || n.BitLen() > 126 {
		return decimal128.Num{}, matchNone
	}
	return decimal128.FromBigInt(n), matchKnown
}

// stringKey is the stored string that a string is equal to.
func (k *keyPart) stringKey(oid uint32, v any) (string, match) {
	s, ok := v.(string)
	if !ok || oid == pgtype.Char {
		return "", matchUnknown
	}
	switch k.oid {
	case pgtype.Text, pgtype.Varchar, pgtype.Name:
		switch {
		case oid == pgtype.BPChar:
			return "", matchUnknown
		case oid == pgtype.Name && k.oid != pgtype.Name && len(s) >= 63: // the column's values are cut to be compared
			return "", matchUnknown
		}
		return s, matchKnown
	case pgtype.BPChar:
		trimmed := strings.TrimRight(s, " ")
		width := int(k.mod - 4)
		switch {
		case oid != pgtype.BPChar && trimmed != s: // compared as text, which the column's values end without blanks in
			return "", matchNone
		case width < 1:
			return "", matchUnknown
		}
		n := len([]rune(trimmed))
		if n > width {
			return "", matchNone
		}
		return trimmed + strings.Repeat(" ", width-n), matchKnown
	}
	return "", matchUnknown
}

// instantKey is the date, time or timestamp that a value is equal to, in the column's unit.
func (k *keyPart) instantKey(v any) (int64, match) {
	const day = 24 * 60 * 60 * 1_000_000
	switch k.oid {
	case pgtype.Date:
		switch x := v.(type) {
		case pgenc.Date:
			return int64(x), matchKnown
		case pgenc.Timestamp:
			if x%day != 0 {
				return 0, matchNone
			}
			return int64(x / day), matchKnown
		}
	case pgtype.Time:
		if x, ok := v.(pgenc.Time); ok {
			return int64(x), matchKnown
		}
	case pgtype.Timestamp:
		if _, micro := k.typ.(iceberg.TimestampType); !micro {
			break
		}
		switch x := v.(type) {
		case pgenc.Timestamp:
			return int64(x), matchKnown
		case pgenc.Date:
			if x > math.MaxInt64/day || x < math.MinInt64/day {
				return 0, matchNone
			}
			return int64(x) * day, matchKnown
		}
	case pgtype.TimestampTZ:
		if _, micro := k.typ.(iceberg.TimestampTzType); !micro {
			break
		}
		if x, ok := v.(pgenc.TimestampTZ); ok {
			return int64(x), matchKnown
		}
	}
	return 0, matchUnknown
}

// eachValue calls f with every value that a predicate's argument stands for, as pgenc decodes it, but NULLs: an array's elements, or the value itself.
// f says whether to go on.
func (s *session) eachValue(ctx context.Context, a *pgsql.Arg, args []value, f func(oid uint32, v any) bool) error {
	for _, e := range a.Array {
		if err := s.eachValue(ctx, e, args, f); err != nil {
			return err
		}
	}
	if a.Array != nil {
		return nil
	}
	if a.Param > 0 && a.Param <= len(args) {
		eachElement(args[a.Param-1], f)
		return nil
	}
	vals, err := s.evaluateNative(ctx, []*pgsql.Arg{a}, args)
	if err == nil {
		eachElement(vals[0], f)
	}
	return err
}

func eachElement(v value, f func(oid uint32, v any) bool) {
	if v.null {
		return
	}
	arr, ok := v.v.(pgenc.Array)
	if !ok {
		f(v.oid, v.v)
		return
	}
	for _, e := range arr.Elems {
		if e != nil && !f(arr.ElemOID, e) {
			return
		}
	}
}
