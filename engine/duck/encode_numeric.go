package duck

import (
	"encoding/binary"
	"math/big"
	"strconv"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
)

// numericValue encodes integers, decimals and floats as numeric.
func (e *encoder) numericValue(t *logical) encodeFunc {
	scale := int32(t.scale)
	switch {
	case t.float():
		return e.numericFloat(t)
	case t.id == bind.TypeUHugeInt:
		return e.numericUnsigned()
	case e.binary && t.phys != bind.TypeHugeInt && t.phys != bind.TypeUBigInt && !e.trim:
		return numericBinary64(scale)
	}
	trim, bin := e.trim, e.binary
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		hi, lo := v.wide(row)
		s := scale
		if trim {
			hi, lo, s = trimZeros(hi, lo, s)
		}
		if bin {
			return pgenc.AppendDecimalBinary(dst, hi, lo, s), nil
		}
		return pgenc.AppendDecimal(dst, hi, lo, s), nil
	}
}

// trimZeros removes zeros at the end of the fraction.
func trimZeros(hi int64, lo uint64, scale int32) (int64, uint64, int32) {
	for scale > 0 {
		h, l := roundDiv(hi, lo, [2]uint64{0, 10})
		// l × 10 must be lo again, else the last digit was not 0. Only the low halves can differ.
		if l*10 != lo {
			return hi, lo, scale
		}
		hi, lo, scale = h, l, scale-1
	}
	return hi, lo, scale
}

var pow10of = [5]uint64{1, 10, 100, 1000, 10000}

// numericBinary64 is AppendDecimalBinary for values of 64 bits, without the way through decimal text: split at the point, cut each
// half into base-10,000 digits.
func numericBinary64(scale int32) encodeFunc {
	// The fraction is shifted so that it fills whole base-10,000 digits.
	shift := pow10of[(4-scale%4)%4]
	fracDigits := int((scale + 3) / 4)
	div := uint64(1)
	for range scale {
		div *= 10
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x := v.integer(row)
		u, sign := uint64(x), uint16(0)
		if x < 0 {
			u, sign = -u, 0x4000
		}
		whole, frac := u/div, u%div
		var d [12]uint16 // base-10,000 digits, the point before d[6]
		n := 6
		for ; whole > 0; n-- {
			d[n-1] = uint16(whole % 10000)
			whole /= 10000
		}
		first := n
		if fracDigits > 0 {
			// frac < 10^18, so frac × shift may exceed 64 bits only beyond 10^19: the lowest digit takes the shift apart.
			d[6+fracDigits-1] = uint16(frac % (10000 / shift) * shift)
			frac /= 10000 / shift
			for i := fracDigits - 2; i >= 0; i-- {
				d[6+i] = uint16(frac % 10000)
				frac /= 10000
			}
		}
		last := 6 + fracDigits
		for first < last && d[first] == 0 {
			first++
		}
		for last > first && d[last-1] == 0 {
			last--
		}
		if first == last {
			return append(dst, 0, 0, 0, 0, 0, 0, byte(scale>>8), byte(scale)), nil
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(last-first))
		dst = binary.BigEndian.AppendUint16(dst, uint16(5-first))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		dst = binary.BigEndian.AppendUint16(dst, uint16(scale))
		for _, x := range d[first:last] {
			dst = binary.BigEndian.AppendUint16(dst, x)
		}
		return dst, nil
	}
}

// numericFloat encodes a float as numeric with PostgreSQL's 15 (float4: 6) significant digits. Source: float8_numeric.
func (e *encoder) numericFloat(t *logical) encodeFunc {
	digits, bin := 15, e.binary
	if t.id == bind.TypeFloat {
		digits = 6
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		n, err := numericOfFloat(asFloat(v, row), digits)
		if err != nil {
			return dst, err
		}
		if bin {
			return pgenc.AppendNumericBinary(dst, n), nil
		}
		return pgenc.AppendNumeric(dst, n), nil
	}
}

func numericOfFloat(f float64, digits int) (pgenc.Numeric, error) {
	switch {
	case f != f:
		return pgenc.Numeric{Form: pgenc.NaN}, nil
	case f-f != 0 && f > 0:
		return pgenc.Numeric{Form: pgenc.PosInf}, nil
	case f-f != 0:
		return pgenc.Numeric{Form: pgenc.NegInf}, nil
	}
	// %.*g, then the mantissa's digits and the exponent.
	var buf [40]byte
	b := strconv.AppendFloat(buf[:0], f, 'e', digits-1, 64)
	mant, i, neg, scale := int64(0), 0, false, int32(0)
	for ; b[i] != 'e'; i++ {
		switch c := b[i]; c {
		case '-':
			neg = true
		case '.':
		default:
			mant = mant*10 + int64(c-'0')
		}
	}
	exp, err := strconv.Atoi(string(b[i+1:]))
	if err != nil {
		return pgenc.Numeric{}, err
	}
	scale = int32(digits - 1 - exp)
	for scale > 0 && mant%10 == 0 && mant != 0 {
		mant /= 10
		scale--
	}
	if mant == 0 {
		scale = 0
	}
	if neg {
		mant = -mant
	}
	if scale < 0 {
		bigMant := new(big.Int).Mul(big.NewInt(mant), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-scale)), nil))
		return pgenc.Numeric{Big: bigMant}, nil
	}
	return pgenc.Numeric{Hi: mant >> 63, Lo: uint64(mant), Scale: scale}, nil
}

// numericUnsigned encodes UHUGEINT, which may exceed a signed 128-bit value.
func (e *encoder) numericUnsigned() encodeFunc {
	bin := e.binary
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		h := at[hugeint](v, row)
		n := pgenc.Numeric{Hi: int64(h.hi), Lo: h.lo}
		if n.Hi < 0 {
			b := new(big.Int).Lsh(new(big.Int).SetUint64(h.hi), 64)
			n = pgenc.Numeric{Big: b.Or(b, new(big.Int).SetUint64(h.lo))}
		}
		if bin {
			return pgenc.AppendNumericBinary(dst, n), nil
		}
		return pgenc.AppendNumeric(dst, n), nil
	}
}
