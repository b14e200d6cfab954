package pgenc

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// NumericForm says whether a Numeric is a number.
type NumericForm uint8

// The forms of a numeric.
const (
	Finite NumericForm = iota
	NaN
	PosInf
	NegInf
)

// Numeric is a PostgreSQL numeric: coefficient × 10^-Scale. Scale is also the display scale and never negative.
// The coefficient is Big when Big is not nil, else the 128-bit two's complement Hi:Lo.
type Numeric struct {
	Form  NumericForm
	Hi    int64
	Lo    uint64
	Big   *big.Int
	Scale int32
}

const ten19 = 10_000_000_000_000_000_000

// abs128 splits a two's complement 128-bit number into sign and magnitude.
func abs128(hi int64, lo uint64) (neg bool, h, l uint64) {
	if hi >= 0 {
		return false, uint64(hi), lo
	}
	l = -lo
	h = ^uint64(hi)
	if lo == 0 {
		h++
	}
	return true, h, l
}

// appendUint128 appends the decimal digits of h:l.
func appendUint128(dst []byte, h, l uint64) []byte {
	if h == 0 {
		return appendUint64(dst, l)
	}
	// Two divisions by 10^19 split 39 digits into three words.
	qh, rh := h/ten19, h%ten19
	ql, r0 := bits.Div64(rh, l, ten19)
	if qh == 0 {
		dst = appendUint64(dst, ql)
		return appendUint64Padded(dst, r0)
	}
	q2, r1 := bits.Div64(qh, ql, ten19)
	dst = appendUint64(dst, q2)
	dst = appendUint64Padded(dst, r1)
	return appendUint64Padded(dst, r0)
}

func appendUint64(dst []byte, v uint64) []byte {
	var buf [20]byte
	i := len(buf)
	for v >= 100 {
		q := v / 100
		r := v - q*100
		i -= 2
		copy(buf[i:], twoDigits[r*2:r*2+2])
		v = q
	}
	if v >= 10 {
		i -= 2
		copy(buf[i:], twoDigits[v*2:v*2+2])
	} else {
		i--
		buf[i] = byte('0' + v)
	}
	return append(dst, buf[i:]...)
}

func appendUint64Padded(dst []byte, v uint64) []byte {
	var buf [19]byte
	for i := 17; i > 0; i -= 2 {
		q := v / 100
		r := v - q*100
		buf[i], buf[i+1] = twoDigits[r*2], twoDigits[r*2+1]
		v = q
	}
	buf[0] = byte('0' + v)
	return append(dst, buf[:]...)
}

const twoDigits = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" + "30313233343536373839" + "40414243444546474849" +
	"50515253545556575859" + "60616263646566676869" + "70717273747576777879" + "80818283848586878889" + "90919293949596979899"

// AppendDecimal appends the text of a 128-bit decimal: scale digits after the point, none and no point when scale is 0.
// A negative scale multiplies.
func AppendDecimal(dst []byte, hi int64, lo uint64, scale int32) []byte {
	neg, h, l := abs128(hi, lo)
	if neg {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst = appendUint128(dst, h, l)
	return placePoint(dst, start, scale)
}

// placePoint puts the decimal point into the digits dst[start:].
func placePoint(dst []byte, start int, scale int32) []byte {
	if scale <= 0 {
		if dst[start] == '0' {
			return dst
		}
		for ; scale < 0; scale++ {
			dst = append(dst, '0')
		}
		return dst
	}
	n := len(dst) - start
	s := int(scale)
	if n > s {
		dst = append(dst, 0)
		copy(dst[start+n-s+1:], dst[start+n-s:start+n])
		dst[start+n-s] = '.'
		return dst
	}
	pad := s - n + 2
	for range pad {
		dst = append(dst, 0)
	}
	copy(dst[start+pad:], dst[start:start+n])
	for i := range pad {
		dst[start+i] = '0'
	}
	dst[start+1] = '.'
	return dst
}

// AppendDecimalBinary appends numeric's binary form of a 128-bit decimal: digits to base 10,000 aligned at the point,
// without leading or trailing zero digits. Source: numeric_send.
func AppendDecimalBinary(dst []byte, hi int64, lo uint64, scale int32) []byte {
	neg, h, l := abs128(hi, lo)
	if h == 0 && scale >= 0 {
		if out, ok := appendUint64Binary(dst, neg, l, scale); ok {
			return out
		}
	}
	var buf [40]byte
	return appendDigitsBinary(dst, neg, appendUint128(buf[:0], h, l), scale)
}

// appendUint64Binary is AppendDecimalBinary for a magnitude of 64 bits; ok is false when aligning it at the point overflows.
func appendUint64Binary(dst []byte, neg bool, v uint64, scale int32) (out []byte, ok bool) {
	pad := -scale & 3
	mult := [4]uint64{1, 10, 100, 1000}[pad]
	if v > (1<<64-1)/mult {
		return dst, false
	}
	var digits [5]uint16 // least first
	n := 0
	for v *= mult; v > 0; n++ {
		q := v / 10000
		digits[n] = uint16(v - q*10000)
		v = q
	}
	low := 0
	for low < n && digits[low] == 0 {
		low++
	}
	weight, sign := n-1-int(scale+pad)/4, uint16(0)
	if n == 0 {
		weight = 0
	} else if neg {
		sign = numericNeg
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(n-low))
	dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
	for n--; n >= low; n-- {
		dst = binary.BigEndian.AppendUint16(dst, digits[n])
	}
	return dst, true
}

const (
	numericNeg  = 0x4000
	numericNaN  = 0xC000
	numericPInf = 0xD000
	numericNInf = 0xF000
)

// appendDigitsBinary encodes sign, decimal digits and scale.
func appendDigitsBinary(dst []byte, neg bool, digits []byte, scale int32) []byte {
	dscale := max(scale, 0)
	// intLen is how many of the digits stand before the point; it is negative for 0.000x and beyond len for scale < 0.
	intLen := len(digits) - int(scale)
	lead := 0
	for lead < len(digits) && digits[lead] == '0' {
		lead++
	}
	digits, intLen = digits[lead:], intLen-lead
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return append(dst, 0, 0, 0, 0, 0, 0, byte(dscale>>8), byte(dscale))
	}
	// weight is the power of 10,000 of the first base-10,000 digit, which holds first decimal digits.
	weight := floorDiv(intLen-1, 4)
	first := intLen - weight*4
	n := 1 + (max(len(digits)-first, 0)+3)/4
	sign := uint16(0)
	if neg {
		sign = numericNeg
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(dscale))
	pos := first - 4
	for range n {
		v := uint16(0)
		for range 4 {
			v *= 10
			if pos >= 0 && pos < len(digits) {
				v += uint16(digits[pos] - '0')
			}
			pos++
		}
		dst = binary.BigEndian.AppendUint16(dst, v)
	}
	return dst
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// AppendNumeric appends n's text: "NaN", "Infinity", "-Infinity" or digits.
func AppendNumeric(dst []byte, n Numeric) []byte {
	switch n.Form {
	case NaN:
		return append(dst, "NaN"...)
	case PosInf:
		return append(dst, "Infinity"...)
	case NegInf:
		return append(dst, "-Infinity"...)
	}
	if n.Big == nil {
		return AppendDecimal(dst, n.Hi, n.Lo, n.Scale)
	}
	if n.Big.Sign() < 0 {
		dst = append(dst, '-')
	}
	start := len(dst)
	dst = new(big.Int).Abs(n.Big).Append(dst, 10)
	return placePoint(dst, start, n.Scale)
}

// AppendNumericBinary appends n's binary form.
func AppendNumericBinary(dst []byte, n Numeric) []byte {
	switch n.Form {
	case NaN:
		return append(dst, 0, 0, 0, 0, numericNaN>>8, 0, 0, 0)
	case PosInf:
		return append(dst, 0, 0, 0, 0, numericPInf>>8, 0, 0, 0x20)
	case NegInf:
		return append(dst, 0, 0, 0, 0, numericNInf>>8, 0, 0, 0x20)
	}
	if n.Big == nil {
		return AppendDecimalBinary(dst, n.Hi, n.Lo, n.Scale)
	}
	return appendDigitsBinary(dst, n.Big.Sign() < 0, new(big.Int).Abs(n.Big).Append(nil, 10), n.Scale)
}
