package pgenc

import (
	"errors"
	"math"
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// badText is 22P02 in the words of PostgreSQL's input functions.
func badText(typ string, in []byte) error {
	return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typ, in)
}

func outOfRange(typ string, in []byte) error {
	return pgerr.Newf(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", in, typ)
}

func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// ParseBool reads t, true, y, yes, on, 1 and their opposites, or a unique prefix, in any case. Source: parse_bool_with_len.
func ParseBool(in []byte) (bool, error) {
	b := trimSpace(in)
	if len(b) == 1 && (b[0] == '0' || b[0] == '1') {
		return b[0] == '1', nil
	}
	switch {
	case isPrefixFold(b, "true", 1), isPrefixFold(b, "yes", 1), isPrefixFold(b, "on", 2):
		return true, nil
	case isPrefixFold(b, "false", 1), isPrefixFold(b, "no", 1), isPrefixFold(b, "off", 2):
		return false, nil
	}
	return false, badText("boolean", in)
}

// isPrefixFold reports whether b is a prefix of word of at least atLeast letters, in any case.
func isPrefixFold(b []byte, word string, atLeast int) bool {
	if len(b) < atLeast || len(b) > len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}

// ParseInt2 reads a smallint.
func ParseInt2(in []byte) (int16, error) {
	v, err := parseInt(in, math.MinInt16, math.MaxInt16, "smallint")
	return int16(v), err
}

// ParseInt4 reads an integer.
func ParseInt4(in []byte) (int32, error) {
	v, err := parseInt(in, math.MinInt32, math.MaxInt32, "integer")
	return int32(v), err
}

// ParseInt8 reads a bigint.
func ParseInt8(in []byte) (int64, error) {
	return parseInt(in, math.MinInt64, math.MaxInt64, "bigint")
}

func parseInt(in []byte, low, high int64, typ string) (int64, error) {
	b := trimSpace(in)
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, badText(typ, in)
	}
	var u uint64
	overflow := false
	for _, c := range b {
		d := c - '0'
		if d > 9 {
			return 0, badText(typ, in)
		}
		if u > (math.MaxUint64-9)/10 {
			overflow = true
			continue
		}
		u = u*10 + uint64(d)
	}
	limit := uint64(high)
	if neg {
		limit = uint64(high) + 1
	}
	if overflow || u > limit {
		return 0, outOfRange(typ, in)
	}
	if neg {
		return int64(-u), nil
	}
	_ = low
	return int64(u), nil
}

// ParseOID reads an oid: 0 to 4294967295, or a negative number that wraps as in C. Source: oidin.
func ParseOID(in []byte) (uint32, error) {
	v, err := parseInt(in, math.MinInt64, math.MaxInt64, "oid")
	if err != nil {
		return 0, err
	}
	if v > math.MaxUint32 || v < math.MinInt32 {
		return 0, outOfRange("oid", in)
	}
	return uint32(v), nil
}

// ParseFloat8 reads a double precision, Infinity and NaN included.
func ParseFloat8(in []byte) (float64, error) { return parseFloat(in, 64, "double precision") }

// ParseFloat4 reads a real.
func ParseFloat4(in []byte) (float32, error) {
	v, err := parseFloat(in, 32, "real")
	return float32(v), err
}

func parseFloat(in []byte, bits int, typ string) (float64, error) {
	b := trimSpace(in)
	nonzero := false
	for _, c := range b {
		// strconv allows Go's digit separators, strtod does not.
		if c == '_' {
			return 0, badText(typ, in)
		}
		if c|0x20 == 'e' || c|0x20 == 'p' {
			break
		}
		nonzero = nonzero || c >= '1' && c <= '9'
	}
	if n := len(b); n >= 3 && isNaNWord(b[n-3:]) && (n == 3 || n == 4 && (b[0] == '+' || b[0] == '-')) {
		return math.Copysign(math.Float64frombits(canonicalNaN), float64(sign(b[0]))), nil
	}
	v, err := strconv.ParseFloat(view(b), bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, badText(typ, in)
	}
	if err != nil || v == 0 && nonzero {
		return 0, pgerr.Newf(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type %s", b, typ)
	}
	return v, nil
}

// canonicalNaN is the NaN of C's get_float8_nan; math.NaN has another bit set.
const canonicalNaN = 0x7ff8000000000000

func sign(c byte) int {
	if c == '-' {
		return -1
	}
	return 1
}

func isNaNWord(b []byte) bool {
	return len(b) == 3 && b[0]|0x20 == 'n' && b[1]|0x20 == 'a' && b[2]|0x20 == 'n'
}
