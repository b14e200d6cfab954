package duck

import (
	"fmt"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Arg turns a value that pgenc.Decode returned for a parameter of type oid into one that Query takes. nil stays nil. A numeric
// beyond 38 digits, NaN or infinite is 22003.
func Arg(oid uint32, v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int16, int32, int64, float32, float64, string, []byte:
		return v, nil
	case uint32:
		// oid and its kin are BIGINT.
		return int64(v), nil
	case pgenc.Numeric:
		return decimalArg(v)
	case pgenc.Date:
		return Date(v), nil
	case pgenc.Time:
		return Time(v), nil
	case pgenc.Timestamp:
		return Timestamp(v), nil
	case pgenc.TimestampTZ:
		return TimestampTZ(v), nil
	case pgenc.IntervalValue:
		return Interval{Months: v.Months, Days: v.Days, Micros: v.Micros}, nil
	case pgenc.UUID:
		return UUID(v), nil
	case pgenc.Array:
		return listArg(oid, v)
	}
	return nil, fmt.Errorf("%w: %T", ErrArguments, v)
}

// decimalArg gives the value as many digits as it has.
func decimalArg(n pgenc.Numeric) (any, error) {
	if n.Form != 0 {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "NaN and infinity are not supported for type numeric")
	}
	if n.Big != nil {
		return nil, numericTooWide()
	}
	d := Decimal{Value: Hugeint{Hi: n.Hi, Lo: n.Lo}}
	digits := uint8(len(pgenc.AppendDecimal(nil, n.Hi, n.Lo, 0)))
	if n.Hi < 0 {
		digits--
	}
	if n.Scale < 0 || n.Scale > 38 || digits > 38 {
		return nil, numericTooWide()
	}
	d.Scale = uint8(n.Scale)
	d.Width = max(digits, d.Scale, 1)
	return d, nil
}

// listArg nests an array's elements by its dimensions.
func listArg(oid uint32, a pgenc.Array) (any, error) {
	elem := pgtype.DuckName(a.ElemOID, -1)
	if a.ElemOID == 0 {
		elem = pgtype.DuckName(pgtype.ElemOf(oid), -1)
	}
	vals := make([]any, len(a.Elems))
	for i, e := range a.Elems {
		v, err := Arg(a.ElemOID, e)
		if err != nil {
			return nil, err
		}
		vals[i] = v
	}
	for d := len(a.Dims) - 1; d > 0; d-- {
		n := int(a.Dims[d].Len)
		var outer []any
		for i := 0; i+n <= len(vals); i += n {
			outer = append(outer, List{Elem: elem, Values: vals[i : i+n]})
		}
		vals, elem = outer, elem+"[]"
	}
	return List{Elem: elem, Values: vals}, nil
}
