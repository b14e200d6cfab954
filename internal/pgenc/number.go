package pgenc

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
)

// AppendBool appends 't' or 'f'.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 't')
	}
	return append(dst, 'f')
}

// AppendBoolBinary appends 1 or 0.
func AppendBoolBinary(dst []byte, v bool) []byte {
	if v {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendInt appends a decimal integer: int2, int4, int8, and oid when it is not negative.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendInt2Binary appends two bytes in network order.
func AppendInt2Binary(dst []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(dst, uint16(v))
}

// AppendInt4Binary appends four bytes in network order.
func AppendInt4Binary(dst []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(v))
}

// AppendInt8Binary appends eight bytes in network order.
func AppendInt8Binary(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(v))
}

// AppendFloat8 appends PostgreSQL's text of a double precision with extra_float_digits = 1: the shortest digits that read
// back, in exponent form when the exponent is below -4 or at least 15. Source: double_to_shortest_decimal_buf.
func AppendFloat8(dst []byte, v float64) []byte { return appendFloat(dst, v, 64, 15) }

// AppendFloat4 is AppendFloat8 for real; the exponent form starts at 6. Source: float_to_shortest_decimal_buf.
func AppendFloat4(dst []byte, v float32) []byte { return appendFloat(dst, float64(v), 32, 6) }

// AppendFloat8 writes a double precision as the style says.
func (s Style) AppendFloat8(dst []byte, v float64) []byte {
	if s.FloatDigits == 0 || v != v || v == 0 || v > math.MaxFloat64 || v < -math.MaxFloat64 {
		return AppendFloat8(dst, v)
	}
	return strconv.AppendFloat(dst, v, 'g', max(1, 16-s.FloatDigits), 64)
}

// AppendFloat4 writes a real as the style says.
func (s Style) AppendFloat4(dst []byte, v float32) []byte {
	if f := float64(v); s.FloatDigits == 0 || f != f || f == 0 || f > math.MaxFloat64 || f < -math.MaxFloat64 {
		return AppendFloat4(dst, v)
	}
	return strconv.AppendFloat(dst, float64(v), 'g', max(1, 7-s.FloatDigits), 64)
}

func appendFloat(dst []byte, v float64, bits, expLimit int) []byte {
	switch {
	case v != v:
		return append(dst, "NaN"...)
	case v > math.MaxFloat64:
		return append(dst, "Infinity"...)
	case v < -math.MaxFloat64:
		return append(dst, "-Infinity"...)
	case v == 0:
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	// Whole numbers below the limit are the common case and need no shortest-digit search.
	if abs := math.Abs(v); abs < 1e15 && bits == 64 && abs == math.Trunc(abs) {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, bits)
	if onBoundary(dst[start:], v, bits) {
		dst = strconv.AppendFloat(dst[:start], v, 'e', notBoundaryDigits(v, bits)-1, bits)
	}
	exp := exponentOf(dst[start:])
	if exp >= -4 && exp < expLimit {
		return plain(dst, start, exp)
	}
	return dst
}

// exponentOf reads the exponent of strconv's 'e' form.
func exponentOf(e []byte) int {
	i := len(e) - 1
	n, unit := 0, 1
	for ; e[i] >= '0' && e[i] <= '9'; i-- {
		n += int(e[i]-'0') * unit
		unit *= 10
	}
	if e[i] == '-' {
		return -n
	}
	return n
}

// plain rewrites d.ddde±xx at dst[start:] without an exponent.
func plain(dst []byte, start, exp int) []byte {
	var digits [24]byte
	n := 0
	neg := dst[start] == '-'
	for _, c := range dst[start:] {
		if c == 'e' {
			break
		}
		if c >= '0' && c <= '9' {
			digits[n] = c
			n++
		}
	}
	dst = dst[:start]
	if neg {
		dst = append(dst, '-')
	}
	if exp < 0 {
		dst = append(dst, '0', '.')
		for i := -1; i > exp; i-- {
			dst = append(dst, '0')
		}
		return append(dst, digits[:n]...)
	}
	for i := 0; i <= exp; i++ {
		if i < n {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	if n > exp+1 {
		dst = append(dst, '.')
		dst = append(dst, digits[exp+1:n]...)
	}
	return dst
}

// onBoundary reports whether the shortest digits lie exactly half way to a neighbour. Go accepts such digits for even
// mantissas (a reader that rounds half to even gets v back); PostgreSQL does not. Source: acceptBounds in d2s.c and f2s.c.
// A half-way point is M × 2^k with M odd of 54 (float4: 25) bits. To be D × 10^e with D below 10^17 (10^9) it needs e ≤ 23
// (10) and a value of at least 2^52 (2^22): outside that window nothing has to be computed.
func onBoundary(e []byte, v float64, bits int) bool {
	exp := exponentOf(e)
	if bits == 64 && (exp < 15 || exp > 41 || math.Float64bits(v)&1 != 0) {
		return false
	}
	if bits == 32 && (exp < 6 || exp > 20 || math.Float32bits(float32(v))&1 != 0) {
		return false
	}
	got, _, err := big.ParseFloat(string(e), 10, boundaryPrec, big.ToNearestEven)
	if err != nil {
		return false
	}
	val := new(big.Float).SetPrec(boundaryPrec).SetFloat64(v)
	diff := got.Sub(got, val)
	if diff.Sign() == 0 {
		return false
	}
	up := diff.Sign() > 0
	return halfGap(v, bits, up).Cmp(diff.Abs(diff)) == 0
}

// boundaryPrec holds every number in onBoundary's window exactly.
const boundaryPrec = 256

// halfGap is half the distance from v to its neighbour away from (diff > 0) or below it.
func halfGap(v float64, bits int, up bool) *big.Float {
	dir := math.Inf(-1)
	if up {
		dir = math.Inf(1)
	}
	var next float64
	if bits == 32 {
		next = float64(math.Nextafter32(float32(v), float32(dir)))
	} else {
		next = math.Nextafter(v, dir)
	}
	a := new(big.Float).SetPrec(boundaryPrec).SetFloat64(v)
	b := new(big.Float).SetPrec(boundaryPrec).SetFloat64(next)
	gap := b.Sub(b, a)
	gap.Abs(gap)
	return gap.Quo(gap, big.NewFloat(2))
}

// notBoundaryDigits is the smallest number of digits that reads back as v under a reader that never rounds half to even.
func notBoundaryDigits(v float64, bits int) int {
	var buf [32]byte
	for n := 1; n < 17; n++ {
		e := strconv.AppendFloat(buf[:0], v, 'e', n-1, bits)
		back, err := strconv.ParseFloat(string(e), bits)
		if err == nil && back == v && !onBoundary(e, v, bits) {
			return n
		}
	}
	return 17
}

// AppendFloat8Binary appends the IEEE bits in network order.
func AppendFloat8Binary(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
}

// AppendFloat4Binary appends the IEEE bits in network order.
func AppendFloat4Binary(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(dst, math.Float32bits(v))
}
