package keyindex

import (
	"encoding/binary"
	"math/bits"
)

// packing folds the columns of a key into one number of at most 64 bits that orders like the key: per column the distance from the smallest value, the
// first column on top. Keys of one integer, date, time, double, boolean or short fixed always fit; composite ones fit when their values span little.
type packing []packedColumn

type packedColumn struct {
	min  uint64
	bits uint8 // of the distance
}

// width is the bits of the whole.
func (p packing) width() int {
	n := 0
	for _, c := range p {
		n += int(c.bits)
	}
	return n
}

// packable says whether values of the column may be numbers at all.
func (c Column) packable() bool {
	switch c.Kind {
	case KindBool, KindLong, KindDouble, KindDecimal:
		return true
	case KindFixed:
		return c.Width <= 8
	}
	return false
}

// number is a column's encoding as a number that orders like it; ok is false when it takes more than 64 bits.
func (c Column) number(part []byte) (v uint64, ok bool) {
	switch c.Kind {
	case KindBool:
		return uint64(part[0]), true
	case KindLong, KindDouble:
		return binary.BigEndian.Uint64(part), true
	case KindDecimal:
		hi, lo := binary.BigEndian.Uint64(part)^signBit, binary.BigEndian.Uint64(part[8:])
		return lo ^ signBit, hi == uint64(int64(lo)>>63)
	}
	for _, b := range part {
		v = v<<8 | uint64(b)
	}
	return v, true
}

// numbers appends the columns of key as numbers.
func numbers(dst []uint64, cols []Column, key []byte) (_ []uint64, ok bool) {
	for _, c := range cols {
		n := c.Len(key)
		if n < 0 {
			return dst, false
		}
		v, ok := c.number(key[:n])
		if !ok {
			return dst, false
		}
		dst, key = append(dst, v), key[n:]
	}
	return dst, len(key) == 0
}

// pack is the number of the leading len(vals) columns, the others zero; ok is false when a value lies outside of what the packing holds.
func (p packing) pack(vals []uint64) (x uint64, ok bool) {
	for i, c := range p {
		x <<= c.bits
		if i >= len(vals) {
			continue
		}
		d := vals[i] - c.min
		if vals[i] < c.min || bits.Len64(d) > int(c.bits) {
			return 0, false
		}
		x |= d
	}
	return x, true
}

// below is the bits of the columns after the first n.
func (p packing) below(n int) uint { return uint(p[n:].width()) }

// bitsAt reads w ≤ 64 bits at a bit offset, little endian. b has nine readable bytes from there on.
func bitsAt(b []byte, at uint64, w uint) uint64 {
	i, s := at>>3, uint(at&7)
	x := binary.LittleEndian.Uint64(b[i:]) >> s
	if s+w > 64 {
		x |= uint64(b[i+8]) << (64 - s)
	}
	return x & ones(w)
}

// ones is a mask of the w lowest bits.
func ones(w uint) uint64 { return ^uint64(0) >> (64 - w) }

// bitWriter appends numbers of any width.
type bitWriter struct {
	out  []byte
	acc  uint64
	have uint
}

func (w *bitWriter) add(x uint64, width uint) {
	w.acc |= x << w.have
	if w.have+width < 64 {
		w.have += width
		return
	}
	w.out = binary.LittleEndian.AppendUint64(w.out, w.acc)
	w.acc = 0
	if w.have > 0 {
		w.acc = x >> (64 - w.have)
	}
	w.have = w.have + width - 64
}

// flush fills up the last byte.
func (w *bitWriter) flush() {
	for ; w.have > 0; w.have -= min(8, w.have) {
		w.out = append(w.out, byte(w.acc))
		w.acc >>= 8
	}
	w.acc = 0
}
