package parquetio

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// rle decodes Parquet's RLE / bit-packed hybrid.
type rle struct {
	b     []byte
	width int
	left  int    // values left in the current run
	value uint32 // of a repeated run
	pack  []byte // bit-packed run, nil when repeated
	bit   int
}

func (r *rle) run() bool {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		return false
	}
	r.b = r.b[n:]
	if v&1 == 0 {
		size := (r.width + 7) / 8
		if size > len(r.b) || v>>1 > 1<<31 {
			return false
		}
		r.value = 0
		for i := range size {
			r.value |= uint32(r.b[i]) << (8 * i)
		}
		r.b, r.pack, r.left = r.b[size:], nil, int(v>>1)
		return true
	}
	groups := v >> 1
	if groups > 1<<28 {
		return false
	}
	size := min(int(groups)*r.width, len(r.b)) // the last group may be cut short
	r.pack, r.b, r.left, r.bit = r.b[:size], r.b[size:], int(groups)*8, 0
	return true
}

// next is the next value.
func (r *rle) next() (uint32, bool) {
	for r.left == 0 {
		if !r.run() {
			return 0, false
		}
	}
	r.left--
	if r.pack == nil {
		return r.value, true
	}
	v, ok := unpack(r.pack, r.bit, r.width)
	r.bit += r.width
	return v, ok
}

// skip passes over n values and counts those equal to one, for definition levels.
func (r *rle) skip(n int) (ones int, ok bool) {
	for n > 0 {
		if r.left == 0 {
			if !r.run() {
				return ones, false
			}
			continue
		}
		k := min(n, r.left)
		switch {
		case r.pack == nil:
			if r.value == 1 {
				ones += k
			}
		case r.width == 1:
			if r.bit+k > 8*len(r.pack) {
				return ones, false
			}
			ones += bitutil.CountSetBits(r.pack, r.bit, k)
		}
		if r.pack != nil {
			r.bit += k * r.width
		}
		r.left -= k
		n -= k
	}
	return ones, true
}

// unpack reads width bits (≤ 32) at a bit offset, least significant first.
func unpack(b []byte, bit, width int) (uint32, bool) {
	if bit+width > len(b)*8 {
		return 0, false
	}
	var v uint64
	first, last := bit/8, (bit+width+7)/8
	for i := first; i < last; i++ {
		v |= uint64(b[i]) << (8 * (i - first))
	}
	return uint32(v >> (bit % 8) & (1<<width - 1)), true
}

// same is the next run of equal values, of at most limit of them.
func (r *rle) same(limit int) (value uint32, n int, ok bool) {
	for r.left == 0 {
		if !r.run() {
			return 0, 0, false
		}
	}
	limit = min(limit, r.left)
	if r.pack == nil {
		r.left -= limit
		return r.value, limit, true
	}
	if value, ok = r.next(); !ok {
		return 0, 0, false
	}
	for n = 1; n < limit; n++ {
		v, ok := unpack(r.pack, r.bit, r.width)
		if !ok {
			return 0, 0, false
		}
		if v != value {
			break
		}
		r.left--
		r.bit += r.width
	}
	return value, n, true
}

// read fills out with the next values.
func (r *rle) read(out []uint32) bool {
	for len(out) > 0 {
		if r.left == 0 {
			if !r.run() {
				return false
			}
			continue
		}
		k := min(len(out), r.left)
		switch {
		case r.pack == nil:
			for i := range out[:k] {
				out[i] = r.value
			}
		case r.bit+k*r.width > 8*len(r.pack):
			return false
		default:
			unpackAll(out[:k], r.pack, r.bit, r.width)
			r.bit += k * r.width
		}
		out = out[k:]
		r.left -= k
	}
	return true
}

// unpackAll reads len(out) values of width bits (≤ 32) from a bit offset on, which b is long enough for.
func unpackAll(out []uint32, b []byte, bit, width int) {
	mask := uint64(1)<<width - 1
	for i := range out {
		at := bit / 8
		if at+8 > len(b) {
			out[i], _ = unpack(b, bit, width)
		} else {
			out[i] = uint32(binary.LittleEndian.Uint64(b[at:]) >> (bit % 8) & mask)
		}
		bit += width
	}
}
