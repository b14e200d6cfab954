package parquetio

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/parquet"
)

var errTooLong = errors.New("a batch's strings exceed 2 GiB")

// indexBlock is how many dictionary indexes are unpacked at once.
const indexBlock = 1024

// direct reports whether a stored PLAIN value of width bytes is the Arrow value.
func (c *conversion) direct(width int) bool {
	return c.lay == layFixed && c.width == width && !c.dec && !c.widen && !c.int96 && c.mul <= 1 && c.div <= 1
}

// rawBytes reports whether a byte array is the Arrow value.
func (c *conversion) rawBytes(t parquet.Type) bool {
	return c.lay == layBytes && !c.dec && t == parquet.Types.ByteArray
}

// passRows passes over the next n rows of the page.
func (p *openPage) passRows(n int) error {
	if n > p.values-p.row {
		return errPageBody
	}
	p.row += n
	if p.optional {
		ones, ok := p.defs.skip(n)
		if !ok {
			return errPageBody
		}
		n = ones
	}
	return p.seek(p.nth + n)
}

// appendRows appends the next n rows of the page to v, runs of values and of NULLs at a time.
func (p *openPage) appendRows(v *vector, n int) error {
	if n > p.values-p.row {
		return errPageBody
	}
	p.row += n
	if !p.optional {
		return p.appendValues(v, n)
	}
	for n > 0 {
		level, k, ok := p.defs.same(n)
		if !ok {
			return errPageBody
		}
		if level == 0 {
			v.appendNulls(k)
		} else if err := p.appendValues(v, k); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// appendValues appends the next n stored values.
func (p *openPage) appendValues(v *vector, n int) error {
	switch {
	case p.dict != nil && p.dict.offsets == nil && v.conv.direct(p.width):
		return p.appendFixedIndexed(v, n)
	case p.dict != nil && p.dict.offsets != nil && v.conv.rawBytes(p.phys):
		return p.appendBytesIndexed(v, n)
	case p.dict == nil && p.width > 0 && v.conv.direct(p.width):
		size := n * p.width
		if n > len(p.plain)/p.width {
			return errPageBody
		}
		v.data = append(v.data, p.plain[:size]...)
		p.plain = p.plain[size:]
		p.nth += n
		v.markRun(true, n)
		return nil
	case p.dict == nil && v.conv.rawBytes(p.phys):
		return p.appendPlainBytes(v, n)
	}
	for range n {
		if err := p.appendNext(v); err != nil {
			return err
		}
	}
	return nil
}

// appendPlainBytes appends n PLAIN byte arrays.
func (p *openPage) appendPlainBytes(v *vector, n int) error {
	if cap(v.data) == 0 && p.values > 0 {
		// The page's mean is a guess at what the whole vector takes; growing copies.
		v.data = make([]byte, 0, min(max(len(p.plain)/p.values-3, 1)*cap(v.offsets), math.MaxInt32))
	}
	b, data, offsets := p.plain, v.data, v.offsets
	for range n {
		if len(b) < 4 {
			return errPageBody
		}
		size := uint64(binary.LittleEndian.Uint32(b))
		if size > uint64(len(b)-4) {
			return errPageBody
		}
		data = append(data, b[4:4+size]...)
		if len(data) > math.MaxInt32 {
			return errTooLong
		}
		offsets = append(offsets, int32(len(data)))
		b = b[4+size:]
	}
	p.plain, v.data, v.offsets = b, data, offsets
	p.nth += n
	v.markRun(true, n)
	return nil
}

func (p *openPage) appendFixedIndexed(v *vector, n int) error {
	var block [indexBlock]uint32
	for n > 0 {
		idx := block[:min(n, indexBlock)]
		if !p.idx.read(idx) {
			return errPageBody
		}
		for _, i := range idx {
			if int64(i) >= int64(p.dict.n) {
				return errPageBody
			}
		}
		switch p.width {
		case 4:
			copyIndexed(grow[[4]byte](v, len(idx)), p.dict.data, idx)
		case 8:
			copyIndexed(grow[[8]byte](v, len(idx)), p.dict.data, idx)
		default:
			for _, i := range idx {
				v.data = append(v.data, p.dict.data[int(i)*p.width:(int(i)+1)*p.width]...)
			}
		}
		p.nth += len(idx)
		v.markRun(true, len(idx))
		n -= len(idx)
	}
	return nil
}

// copyIndexed copies values of a dictionary; the indexes have been checked.
func copyIndexed[T [4]byte | [8]byte](out []T, dict []byte, idx []uint32) {
	var z T
	for k, i := range idx {
		out[k] = T(dict[int(i)*len(z):])
	}
}

func (p *openPage) appendBytesIndexed(v *vector, n int) error {
	var block [indexBlock]uint32
	d := p.dict
	for n > 0 {
		idx := block[:min(n, indexBlock)]
		if !p.idx.read(idx) {
			return errPageBody
		}
		for _, i := range idx {
			if int64(i) >= int64(d.n) {
				return errPageBody
			}
			v.data = append(v.data, d.data[d.offsets[i]:d.offsets[i+1]]...)
			v.offsets = append(v.offsets, int32(len(v.data)))
		}
		if len(v.data) > math.MaxInt32 {
			return errTooLong
		}
		p.nth += len(idx)
		v.markRun(true, len(idx))
		n -= len(idx)
	}
	return nil
}

// markRun records the validity of the next n rows.
func (v *vector) markRun(ok bool, n int) {
	if !ok && v.valid == nil {
		v.valid = make([]byte, (v.n+n+7)/8)
		bitutil.SetBitsTo(v.valid, 0, int64(v.n), true)
	}
	if v.valid != nil {
		for len(v.valid) < (v.n+n+7)/8 {
			v.valid = append(v.valid, 0)
		}
		bitutil.SetBitsTo(v.valid, int64(v.n), int64(n), ok)
	}
	if !ok {
		v.nulls += n
	}
	v.n += n
}

// appendNulls appends n NULL rows.
func (v *vector) appendNulls(n int) {
	switch v.conv.lay {
	case layBits:
		for len(v.data) < (v.n+n+7)/8 {
			v.data = append(v.data, 0)
		}
	case layBytes:
		for range n {
			v.offsets = append(v.offsets, int32(len(v.data)))
		}
	default:
		clear(grow[byte](v, n*v.conv.width))
	}
	v.markRun(false, n)
}
