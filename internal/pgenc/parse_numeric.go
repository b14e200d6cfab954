package pgenc

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// The limits of numeric. Source: NUMERIC_MAX_DISPLAY_SCALE …, numeric.c.
const (
	numericMaxDScale = 16383
	numericMaxWeight = 131072 // decimal digits before the point
	numericMaxExp    = 1<<30 - 1
)

var errNumericOverflow = pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")

// numericParts is a number's text taken apart: digits without a point, and the power of ten of the last one.
type numericParts struct {
	neg    bool
	int    []byte // digits before the point
	frac   []byte // digits after the point
	exp    int
	form   NumericForm
	hasExp bool
}

// scanNumeric takes the text of a numeric apart without converting digits. Source: numeric_in, set_var_from_str.
func scanNumeric(in []byte) (p numericParts, err error) {
	b := trimSpace(in)
	i := 0
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		p.neg = b[i] == '-'
		i++
	}
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	p.int = b[start:i]
	if i < len(b) && b[i] == '.' {
		i++
		start = i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		p.frac = b[start:i]
	}
	if len(p.int)+len(p.frac) == 0 {
		return specialNumeric(b, in)
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		p.hasExp = true
		i++
		neg := false
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			neg = b[i] == '-'
			i++
		}
		start = i
		for i < len(b) && b[i]-'0' <= 9 {
			if p.exp < numericMaxExp {
				p.exp = p.exp*10 + int(b[i]-'0')
			}
			i++
		}
		if i == start {
			return p, badText("numeric", in)
		}
		if p.exp >= numericMaxExp {
			return p, errNumericOverflow
		}
		if neg {
			p.exp = -p.exp
		}
	}
	if i != len(b) {
		return p, badText("numeric", in)
	}
	return p, nil
}

func specialNumeric(b, in []byte) (p numericParts, err error) {
	word := b
	if len(word) > 0 && (word[0] == '+' || word[0] == '-') {
		word = word[1:]
	}
	switch {
	case isNaNWord(word) && len(word) == len(b):
		p.form = NaN
	case len(word) == 3 && isPrefixFold(word, "inf", 3), len(word) == 8 && isPrefixFold(word, "infinity", 8):
		p.form = PosInf
		if b[0] == '-' {
			p.form = NegInf
		}
	default:
		return p, badText("numeric", in)
	}
	return p, nil
}

// ParseNumeric reads a numeric of any size. The scale is what PostgreSQL shows: the digits given after the point, less
// the exponent.
func ParseNumeric(in []byte) (Numeric, error) {
	p, err := scanNumeric(in)
	if err != nil {
		return Numeric{}, err
	}
	if p.form != Finite {
		return Numeric{Form: p.form}, nil
	}
	scale := len(p.frac) - p.exp
	if scale > numericMaxDScale || len(p.int)+p.exp > numericMaxWeight {
		// Leading zeros do not count, and zero has no size; rare enough to look again.
		if scale > numericMaxDScale || len(trimZeros(p.int))+p.exp > numericMaxWeight && !p.isZero() {
			return Numeric{}, errNumericOverflow
		}
	}
	n := Numeric{Scale: int32(max(scale, 0))}
	if len(p.int)+len(p.frac) <= 38 && scale >= 0 {
		hi, lo := digits128(p.int, p.frac)
		n.Hi, n.Lo = signed128(p.neg, hi, lo)
		return n, nil
	}
	if p.isZero() {
		return n, nil
	}
	digits := make([]byte, 0, len(p.int)+len(p.frac))
	digits = append(append(digits, p.int...), p.frac...)
	b, _ := new(big.Int).SetString(string(digits), 10)
	if scale < 0 {
		b.Mul(b, pow10Big(-scale))
	}
	if p.neg {
		b.Neg(b)
	}
	return numericFromBig(b, n.Scale), nil
}

func (p numericParts) isZero() bool { return len(trimZeros(p.int))+len(trimZeros(p.frac)) == 0 }

func trimZeros(b []byte) []byte {
	for len(b) > 0 && b[0] == '0' {
		b = b[1:]
	}
	return b
}

// numericFromBig keeps the coefficient in 128 bits when it fits.
func numericFromBig(b *big.Int, scale int32) Numeric {
	if b.BitLen() <= 127 {
		a := new(big.Int).Abs(b)
		lo := new(big.Int).And(a, new(big.Int).SetUint64(1<<64-1)).Uint64()
		hi := a.Rsh(a, 64).Uint64()
		h, l := signed128(b.Sign() < 0, hi, lo)
		return Numeric{Hi: h, Lo: l, Scale: scale}
	}
	return Numeric{Big: b, Scale: scale}
}

func pow10Big(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// digits128 is the value of at most 38 digits.
func digits128(a, b []byte) (hi, lo uint64) {
	for _, part := range [2][]byte{a, b} {
		for _, c := range part {
			hi, lo = mul10add(hi, lo, uint64(c-'0'))
		}
	}
	return hi, lo
}

func mul10add(hi, lo, d uint64) (h, l uint64) {
	carry, l := bits.Mul64(lo, 10)
	l, c := bits.Add64(l, d, 0)
	return hi*10 + carry + c, l
}

func signed128(neg bool, hi, lo uint64) (int64, uint64) {
	if !neg {
		return int64(hi), lo
	}
	l := -lo
	h := ^hi
	if lo == 0 {
		h++
	}
	return int64(h), l
}

// ParseDecimal reads a numeric(precision ≤ 38, scale ≥ 0) into 128 bits, rounding half away from zero to the scale as
// PostgreSQL does. It allocates nothing. Errors: 22P02; 22003 when the value does not fit or is NaN or infinite.
func ParseDecimal(in []byte, precision, scale int32) (hi int64, lo uint64, err error) {
	p, err := scanNumeric(in)
	if err != nil {
		return 0, 0, err
	}
	if p.form != Finite {
		return 0, 0, specialInDecimal(p.form, precision, scale)
	}
	if p.isZero() {
		return 0, 0, nil
	}
	lead := len(trimZeros(p.int))
	if lead+p.exp > int(precision-scale)+1 && lead > 0 {
		return 0, 0, FieldOverflow(precision, scale)
	}
	// keep is how many of the digits int·frac stay; the digit after them rounds.
	keep := len(p.int) + p.exp + int(scale)
	var h, l uint64
	up := false
	total := len(p.int) + len(p.frac)
	seen := 0
	for i := 0; i < keep || i < total; i++ {
		d := byte(0)
		switch {
		case i < len(p.int):
			d = p.int[i] - '0'
		case i < total:
			d = p.frac[i-len(p.int)] - '0'
		}
		if i >= keep {
			up = i == keep && d >= 5
			break
		}
		if d != 0 || seen > 0 {
			if seen++; seen > 38 {
				return 0, 0, FieldOverflow(precision, scale)
			}
		}
		h, l = mul10add(h, l, uint64(d))
	}
	if up {
		var c uint64
		l, c = bits.Add64(l, 1, 0)
		h += c
	}
	if ph, pl := pow10(precision); h > ph || h == ph && l >= pl {
		return 0, 0, FieldOverflow(precision, scale)
	}
	hi, lo = signed128(p.neg, h, l)
	return hi, lo, nil
}

// pow10 is 10^n for n ≤ 38.
func pow10(n int32) (hi, lo uint64) {
	lo = 1
	for range n {
		hi, lo = mul10add(hi, lo, 0)
	}
	return hi, lo
}

// FieldOverflow is 22003 for a number that does not fit numeric(precision, scale). Source: apply_typmod.
func FieldOverflow(precision, scale int32) error {
	limit := "10^" + string(AppendInt(nil, int64(precision-scale)))
	if precision == scale {
		limit = "1"
	}
	return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
		WithDetail("A field with precision %d, scale %d must round to an absolute value less than %s.", precision, scale, limit)
}

func specialInDecimal(form NumericForm, precision, scale int32) error {
	if form == NaN {
		return pgerr.Newf(pgerr.NumericValueOutOfRange, "NaN cannot be stored in a column of type numeric(%d,%d)", precision, scale)
	}
	return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
		WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", precision, scale)
}

// Decimal converts n to a numeric(precision ≤ 38, scale ≥ 0), rounding half away from zero. Errors as ParseDecimal's.
func (n Numeric) Decimal(precision, scale int32) (hi int64, lo uint64, err error) {
	if n.Form != Finite {
		return 0, 0, specialInDecimal(n.Form, precision, scale)
	}
	if n.Big == nil && n.Scale == scale {
		_, h, l := abs128(n.Hi, n.Lo)
		if ph, pl := pow10(precision); h > ph || h == ph && l >= pl {
			return 0, 0, FieldOverflow(precision, scale)
		}
		return n.Hi, n.Lo, nil
	}
	var buf [64]byte
	return ParseDecimal(AppendNumeric(buf[:0], n), precision, scale)
}

// decodeNumericBinary reads numeric's binary form. Source: numeric_recv.
func decodeNumericBinary(b []byte) (Numeric, error) {
	if len(b) < 8 {
		return Numeric{}, errShort
	}
	n := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	dscale := binary.BigEndian.Uint16(b[6:])
	switch sign {
	case numericNaN:
		return Numeric{Form: NaN}, nil
	case numericPInf:
		return Numeric{Form: PosInf}, nil
	case numericNInf:
		return Numeric{Form: NegInf}, nil
	case 0, numericNeg:
	default:
		return Numeric{}, pgerr.New(pgerr.InvalidBinaryRepresentation, `invalid sign in external "numeric" value`)
	}
	if dscale > numericMaxDScale {
		return Numeric{}, pgerr.New(pgerr.InvalidBinaryRepresentation, `invalid scale in external "numeric" value`)
	}
	b = b[8:]
	if len(b) < 2*n {
		return Numeric{}, errShort
	}
	if len(b) > 2*n {
		return Numeric{}, errTrailing
	}
	// Digits as decimal text, then the scale cuts or pads: as PostgreSQL truncates to dscale.
	digits := make([]byte, 0, 4*n+8)
	for i := range n {
		d := binary.BigEndian.Uint16(b[2*i:])
		if d > 9999 {
			return Numeric{}, pgerr.New(pgerr.InvalidBinaryRepresentation, `invalid digit in external "numeric" value`)
		}
		digits = append2(append2(digits, int(d/100)), int(d%100))
	}
	coef := new(big.Int)
	if n > 0 {
		coef.SetString(string(digits), 10)
	}
	if coef.Sign() == 0 {
		return Numeric{Scale: int32(dscale)}, nil
	}
	if weight*4+4 > numericMaxWeight {
		return Numeric{}, errNumericOverflow
	}
	shift := int(dscale) - 4*(n-1-weight)
	if shift >= 0 {
		coef.Mul(coef, pow10Big(shift))
	} else {
		coef.Quo(coef, pow10Big(-shift))
	}
	if sign == numericNeg {
		coef.Neg(coef)
	}
	return numericFromBig(coef, int32(dscale)), nil
}
