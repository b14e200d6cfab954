package parquetio

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
)

// vector is a column under construction, in Arrow's layout. Values of NULL rows are zero.
type vector struct {
	conv    *conversion
	n       int
	nulls   int
	valid   []byte // bitmap, nil until the first NULL
	data    []byte
	offsets []int32
}

func newVector(c *conversion, rows int) *vector {
	v := &vector{}
	v.init(c, rows)
	return v
}

func (v *vector) init(c *conversion, rows int) {
	*v = vector{conv: c}
	switch c.lay {
	case layBits:
		v.data = make([]byte, 0, bitutil.BytesForBits(int64(rows)))
	case layBytes:
		v.offsets = append(make([]int32, 0, rows+1), 0)
	default:
		v.data = make([]byte, 0, rows*c.width)
	}
}

// mark records the validity of the next row.
func (v *vector) mark(ok bool) {
	if !ok && v.valid == nil {
		v.valid = make([]byte, (v.n+8)/8)
		bitutil.SetBitsTo(v.valid, 0, int64(v.n), true)
	}
	if v.valid != nil {
		if v.n/8 >= len(v.valid) {
			v.valid = append(v.valid, 0)
		}
		bitutil.SetBitTo(v.valid, v.n, ok)
	}
	if !ok {
		v.nulls++
	}
	v.n++
}

func (v *vector) appendNull() {
	switch v.conv.lay {
	case layBits:
		v.growBit()
	case layBytes:
		v.offsets = append(v.offsets, int32(len(v.data)))
	default:
		v.data = append(v.data, make([]byte, v.conv.width)...)
	}
	v.mark(false)
}

func (v *vector) growBit() {
	if v.n/8 >= len(v.data) {
		v.data = append(v.data, 0)
	}
}

func (v *vector) appendBool(b bool) {
	v.growBit()
	bitutil.SetBitTo(v.data, v.n, b)
	v.mark(true)
}

// appendInt appends a stored integer of either width.
func (v *vector) appendInt(x int64) {
	c := v.conv
	switch {
	case c.dec:
		v.appendDecimal(decimal128.FromI64(x))
		return
	case c.width == 4:
		v.data = binary.LittleEndian.AppendUint32(v.data, uint32(x))
	default:
		v.data = binary.LittleEndian.AppendUint64(v.data, uint64(c.scale(x)))
	}
	v.mark(true)
}

func (v *vector) appendDouble(x float64) {
	v.data = binary.LittleEndian.AppendUint64(v.data, math.Float64bits(x))
	v.mark(true)
}

func (v *vector) appendFloat(x float32) {
	if v.conv.widen {
		v.appendDouble(float64(x))
		return
	}
	v.data = binary.LittleEndian.AppendUint32(v.data, math.Float32bits(x))
	v.mark(true)
}

func (v *vector) appendDecimal(x decimal128.Num) {
	v.data = binary.LittleEndian.AppendUint64(v.data, x.LowBits())
	v.data = binary.LittleEndian.AppendUint64(v.data, uint64(x.HighBits()))
	v.mark(true)
}

// appendBytes appends a byte array or fixed-length value.
func (v *vector) appendBytes(b []byte) error {
	switch {
	case v.conv.dec:
		d, err := bigEndianDecimal(b)
		if err != nil {
			return err
		}
		v.appendDecimal(d)
		return nil
	case v.conv.lay == layBytes:
		if len(v.data)+len(b) > math.MaxInt32 {
			return fmt.Errorf("a batch's strings exceed 2 GiB")
		}
		v.data = append(v.data, b...)
		v.offsets = append(v.offsets, int32(len(v.data)))
	default:
		v.data = append(v.data, b...)
	}
	v.mark(true)
	return nil
}

func (v *vector) appendInt96(x parquet.Int96) {
	days := int64(binary.LittleEndian.Uint32(x[8:])) - 2440588 // Julian day of 1970-01-01
	nanos := int64(binary.LittleEndian.Uint64(x[:8]))
	perDay := int64(86400) * int64(1e9) / v.conv.div
	t := days*perDay + (&conversion{div: v.conv.div, mul: 1}).scale(nanos)
	v.data = binary.LittleEndian.AppendUint64(v.data, uint64(t))
	v.mark(true)
}

// array is the finished column; the vector must not be used afterwards.
func (v *vector) array(dt arrow.DataType) arrow.Array {
	// One allocation for all buffers: a lookup makes arrays of one row.
	b := &struct {
		bufs [3]memory.Buffer
		list [3]*memory.Buffer
	}{}
	if v.nulls > 0 {
		b.list[0] = &b.bufs[0]
		b.list[0].Reset(v.valid)
	}
	n := 1
	if v.conv.lay == layBytes {
		b.list[n] = &b.bufs[n]
		b.list[n].Reset(arrow.Int32Traits.CastToBytes(v.offsets))
		n++
	}
	b.list[n] = &b.bufs[n]
	b.list[n].Reset(v.data)
	d := array.NewData(dt, v.n, b.list[:n+1], nil, v.nulls, 0)
	defer d.Release()
	return array.MakeFromData(d)
}

// grow extends data by n values of T and returns them.
func grow[T any](v *vector, n int) []T {
	var z T
	size := int(unsafe.Sizeof(z))
	at := len(v.data)
	if cap(v.data)-at < n*size {
		d := make([]byte, at, max(at+n*size, 2*cap(v.data)))
		copy(d, v.data)
		v.data = d
	}
	v.data = v.data[:at+n*size]
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&v.data[at])), n)
}
