package changelog

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"
)

// bytesVector holds strings and binaries.
type bytesVector struct {
	nulls
	v []textChunk
}

// maxGather bounds the bytes of a gathered column of three rows and more.
const maxGather = 64 << 20

// errTooWide is returned by gather when the rows are too wide for one array: the caller gathers fewer at once.
var errTooWide = errors.New("rows are too wide for a batch")

type textChunk struct {
	offs []int32 // one more than rows
	data []byte
}

func newBytesVector[A arrow.Array](n nulls, chunks []arrow.Array, offsets func(A) []int32) *bytesVector {
	c := &bytesVector{n, make([]textChunk, len(chunks))}
	for k, a := range chunks {
		if a.Len() == 0 {
			continue
		}
		c.v[k].offs = offsets(a.(A))
		if b := a.Data().Buffers()[2]; b != nil {
			c.v[k].data = b.Bytes()
		}
	}
	return c
}

func (c *bytesVector) at(r uint32) []byte {
	t := &c.v[r>>chunkBits]
	place := r & placeMask
	return t.data[t.offs[place]:t.offs[place+1]]
}

func (c *bytesVector) hash(chunk int, dst []uint64) {
	if c.valid != nil {
		hashEach(c, chunk, dst)
		return
	}
	t := &c.v[chunk]
	for i := range dst {
		dst[i] = mix(dst[i], xxh3.Hash(t.data[t.offs[i]:t.offs[i+1]]))
	}
}

func (c *bytesVector) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	return mix(h, xxh3.Hash(c.at(r)))
}

func (c *bytesVector) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || string(c.at(a)) == string(c.at(b)))
}

func (c *bytesVector) encode(dst []byte, ref uint32) []byte {
	if c.isNull(ref) {
		return append(dst, encNull)
	}
	return appendText(dst, c.at(ref))
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, encValue), uint32(len(s)))
	return append(dst, s...)
}

func (c *bytesVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *bytesVector) gather(refs []uint32) (arrow.Array, error) {
	offs := make([]int32, len(refs)+1)
	total := int32(0)
	for k, r := range refs {
		t := &c.v[r>>chunkBits]
		place := r & placeMask
		n := t.offs[place+1] - t.offs[place]
		if n > maxGather-total && k > 1 {
			return nil, errTooWide
		}
		total += n
		offs[k+1] = total
	}
	data := make([]byte, 0, total)
	for _, r := range refs {
		data = append(data, c.at(r)...)
	}
	return c.array(refs, bufferOf(offs), memory.NewBufferBytes(data)), nil
}

type boolVector struct {
	nulls
	a []*array.Boolean
}

func (c *boolVector) at(r uint32) bool { return c.a[r>>chunkBits].Value(int(r & placeMask)) }

func (c *boolVector) hash(chunk int, dst []uint64) { hashEach(c, chunk, dst) }

func (c *boolVector) hashAt(r uint32, h uint64) uint64 {
	switch {
	case c.isNull(r):
		return mix(h, nullHash)
	case c.at(r):
		return mix(h, 1)
	}
	return mix(h, 0)
}

func (c *boolVector) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.at(a) == c.at(b))
}

func (c *boolVector) encode(dst []byte, ref uint32) []byte {
	switch {
	case c.isNull(ref):
		return append(dst, encNull)
	case c.at(ref):
		return append(dst, encValue, 1)
	}
	return append(dst, encValue, 0)
}

func (c *boolVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *boolVector) gather(refs []uint32) (arrow.Array, error) {
	out := make([]byte, bitutil.BytesForBits(int64(len(refs))))
	for k, r := range refs {
		if c.at(r) {
			bitutil.SetBit(out, k)
		}
	}
	return c.array(refs, memory.NewBufferBytes(out)), nil
}

// anyVector is every other type: nested values, by recursion over their arrays.
type anyVector struct{ a []arrow.Array }

func (c *anyVector) at(r uint32) (arrow.Array, int) { return c.a[r>>chunkBits], int(r & placeMask) }

func (c *anyVector) hash(chunk int, dst []uint64) {
	for i := range dst {
		dst[i] = hashValue(c.a[chunk], i, dst[i])
	}
}

func (c *anyVector) hashAt(r uint32, h uint64) uint64 {
	a, i := c.at(r)
	return hashValue(a, i, h)
}

func (c *anyVector) equal(x, y uint32) bool {
	a, i := c.at(x)
	b, j := c.at(y)
	return equalValue(a, i, b, j)
}

func (c *anyVector) encode(dst []byte, ref uint32) []byte {
	a, i := c.at(ref)
	return encodeValue(dst, a, i)
}

func (c *anyVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

// gather takes the rows of each chunk, then puts the parts in order.
func (c *anyVector) gather(refs []uint32) (arrow.Array, error) {
	lists := make([][]uint32, len(c.a))
	for _, r := range refs {
		lists[r>>chunkBits] = append(lists[r>>chunkBits], r&placeMask)
	}
	var parts []arrow.Array
	first := make([]uint32, len(c.a)) // where a chunk's rows begin in the parts
	n := uint32(0)
	for k, rows := range lists {
		if len(rows) == 0 {
			continue
		}
		part, err := takeRows(c.a[k], rows)
		if err != nil {
			return nil, err
		}
		parts, first[k] = append(parts, part), n
		n += uint32(len(rows))
	}
	switch len(parts) {
	case 0:
		return takeRows(c.a[0], nil)
	case 1:
		return parts[0], nil
	}
	all, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	order := make([]uint32, len(refs))
	for i, r := range refs {
		order[i] = first[r>>chunkBits]
		first[r>>chunkBits]++
	}
	return takeRows(all, order)
}

func takeRows(a arrow.Array, rows []uint32) (arrow.Array, error) {
	idx := array.NewUint32Data(array.NewData(arrow.PrimitiveTypes.Uint32, len(rows), []*memory.Buffer{nil, bufferOf(rows)}, nil, 0, 0))
	out, err := compute.TakeArrayOpts(context.Background(), a, idx, compute.TakeOptions{BoundsCheck: false})
	if err != nil && len(rows) > 0 {
		// Types that take does not know are copied value by value through slices.
		parts := make([]arrow.Array, len(rows))
		for k, r := range rows {
			parts[k] = array.NewSlice(a, int64(r), int64(r)+1)
		}
		out, err = array.Concatenate(parts, memory.DefaultAllocator)
	}
	return out, err
}
