package pgtype

import (
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// varHdrSize is what PostgreSQL adds to the typmods of varchar, char and numeric. Source: VARHDRSZ.
const varHdrSize = 4

// MaxVarcharLen is the greatest n of varchar(n) and char(n). Source: MaxAttrSize.
const MaxVarcharLen = 10485760

// LengthTypmod is the typmod of varchar(n), char(n).
func LengthTypmod(n int32) int32 { return n + varHdrSize }

// Length returns n of varchar(n) or char(n), -1 when there is no limit.
func Length(typmod int32) int32 {
	if typmod < varHdrSize {
		return -1
	}
	return typmod - varHdrSize
}

// NumericTypmod is the typmod of numeric(precision, scale).
func NumericTypmod(precision, scale int32) int32 {
	return (precision<<16 | scale&0x7ff) + varHdrSize
}

// NumericPS returns precision and scale; ok is false when the typmod sets none.
func NumericPS(typmod int32) (precision, scale int32, ok bool) {
	if typmod < varHdrSize {
		return 0, 0, false
	}
	m := typmod - varHdrSize
	// The scale is 11 bits wide and signed. Source: numeric_typmod_scale.
	return m >> 16 & 0xffff, (m&0x7ff ^ 1024) - 1024, true
}

// The fields of an interval typmod. Source: INTERVAL_MASK, INTERVAL_FULL_RANGE in utils/timestamp.h.
const (
	intervalFullRange     = 0x7fff
	intervalFullPrecision = 0xffff
)

// EncodeTypmod turns the arguments of a type name, as the grammar gives them, into a typmod: varchar(n), numeric(p, s),
// timestamp(p), interval's field mask and precision. No arguments give -1. Errors: 22023 out of range, 42601 wrong count.
func EncodeTypmod(oid uint32, args []int32) (int32, error) {
	if len(args) == 0 {
		return -1, nil
	}
	switch oid {
	case Varchar, BPChar:
		return encodeLength(oid, args)
	case Numeric:
		return encodeNumeric(args)
	case Time, TimeTZ, Timestamp, TimestampTZ:
		if len(args) != 1 {
			return -1, pgerr.New(pgerr.InvalidParameterValue, "invalid type modifier")
		}
		if args[0] < 0 {
			return -1, pgerr.Newf(pgerr.InvalidParameterValue, "%s(%d)%s precision must not be negative",
				map[bool]string{true: "TIME", false: "TIMESTAMP"}[oid == Time || oid == TimeTZ], args[0],
				map[bool]string{true: " WITH TIME ZONE"}[oid == TimeTZ || oid == TimestampTZ])
		}
		// PostgreSQL reduces a greater precision to 6 with a warning.
		return min(args[0], 6), nil
	case Interval:
		if len(args) == 1 {
			return args[0]<<16 | intervalFullPrecision, nil
		}
		return args[0]<<16 | min(args[1], 6), nil
	case Bit, VarBit:
		return args[0], nil
	}
	if elem := ElemOf(oid); elem != 0 {
		return EncodeTypmod(elem, args)
	}
	return -1, pgerr.Newf(pgerr.SyntaxError, "type modifier is not allowed for type %q", Format(oid, -1))
}

func encodeLength(oid uint32, args []int32) (int32, error) {
	name := "varchar"
	if oid == BPChar {
		name = "char"
	}
	switch {
	case len(args) != 1:
		return -1, pgerr.New(pgerr.InvalidParameterValue, "invalid type modifier")
	case args[0] < 1:
		return -1, pgerr.Newf(pgerr.InvalidParameterValue, "length for type %s must be at least 1", name)
	case args[0] > MaxVarcharLen:
		return -1, pgerr.Newf(pgerr.InvalidParameterValue, "length for type %s cannot exceed %d", name, MaxVarcharLen)
	}
	return LengthTypmod(args[0]), nil
}

func encodeNumeric(args []int32) (int32, error) {
	if len(args) > 2 {
		return -1, pgerr.New(pgerr.InvalidParameterValue, "invalid NUMERIC type modifier")
	}
	if args[0] < 1 || args[0] > 1000 {
		return -1, pgerr.Newf(pgerr.InvalidParameterValue, "NUMERIC precision %d must be between 1 and 1000", args[0])
	}
	if len(args) == 1 {
		return NumericTypmod(args[0], 0), nil
	}
	if args[1] < -1000 || args[1] > 1000 {
		return -1, pgerr.Newf(pgerr.InvalidParameterValue, "NUMERIC scale %d must be between -1000 and 1000", args[1])
	}
	return NumericTypmod(args[0], args[1]), nil
}

// TypmodOut is the typmod's text in a type's name, "(10,2)"; "" for -1 and for types without one.
// The fields of an interval have a leading space: " day to second(3)". Source: each type's typmodout function.
func TypmodOut(oid uint32, typmod int32) string {
	if typmod < 0 {
		return ""
	}
	switch oid {
	case Varchar, BPChar:
		if n := Length(typmod); n >= 0 {
			return "(" + strconv.Itoa(int(n)) + ")"
		}
	case Numeric:
		if p, s, ok := NumericPS(typmod); ok {
			return "(" + strconv.Itoa(int(p)) + "," + strconv.Itoa(int(s)) + ")"
		}
	case Time, Timestamp, TimeTZ, TimestampTZ, Bit, VarBit:
		return "(" + strconv.Itoa(int(typmod)) + ")"
	case Interval:
		return intervalTypmodOut(typmod)
	}
	return ""
}

// intervalFields are the field masks. Source: intervaltypmodout; bit n is 1<<n of YEAR 2, MONTH 1, DAY 3, HOUR 10, MINUTE 11, SECOND 12.
var intervalFields = map[int32]string{
	1 << 2:                       " year",
	1 << 1:                       " month",
	1 << 3:                       " day",
	1 << 10:                      " hour",
	1 << 11:                      " minute",
	1 << 12:                      " second",
	1<<2 | 1<<1:                  " year to month",
	1<<3 | 1<<10:                 " day to hour",
	1<<3 | 1<<10 | 1<<11:         " day to minute",
	1<<3 | 1<<10 | 1<<11 | 1<<12: " day to second",
	1<<10 | 1<<11:                " hour to minute",
	1<<10 | 1<<11 | 1<<12:        " hour to second",
	1<<11 | 1<<12:                " minute to second",
	intervalFullRange:            "",
}

func intervalTypmodOut(typmod int32) string {
	out := intervalFields[typmod>>16&intervalFullRange]
	if p := typmod & 0xffff; p != intervalFullPrecision {
		out += "(" + strconv.Itoa(int(p)) + ")"
	}
	return out
}
