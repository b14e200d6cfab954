package changelog

import (
	"context"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/zeebo/xxh3"
)

// A vector is one Arrow column laid bare for typed hashing, comparing and gathering of rows by number. Equality is row
// identity's: NULL = NULL, NaN = NaN, −0.0 ≠ 0.0. Hashes are stable across processes and across promotion of int to
// long and float to double.
type vector interface {
	// hash mixes every row into dst, whose length is the column's.
	hash(dst []uint64)
	// hashAt mixes one row into h.
	hashAt(row uint32, h uint64) uint64
	equal(a, b uint32) bool
	// keepEqual clears same[k] where the rows of pairs[k] differ.
	keepEqual(pairs []pair, same []bool)
	// gather copies rows into a new array.
	gather(rows []uint32) (arrow.Array, error)
}

// pair is a removed and an inserted row.
type pair struct{ del, ins uint32 }

const (
	mixA     = 0x9e3779b97f4a7c15
	mixB     = 0xe7037ed1a0b428db
	nullHash = 0x5851f42d4c957f2d
)

func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^mixA, mixB)
	return hi ^ lo
}

// newVector lays a column bare. Extension types are read as their storage; gather returns the column's own type.
func newVector(col arrow.Array) vector {
	storage := col
	if e, ok := col.(array.ExtensionArray); ok {
		storage = e.Storage()
	}
	n := nulls{typ: col.DataType(), off: storage.Data().Offset()}
	if storage.NullN() > 0 {
		n.valid = storage.NullBitmapBytes()
	}
	switch a := storage.(type) {
	case *array.Boolean:
		return &boolVector{nulls: n, a: a}
	case *array.Int32:
		return &intVector[int32]{n, a.Int32Values()}
	case *array.Int64:
		return &intVector[int64]{n, a.Int64Values()}
	case *array.Date32:
		return &intVector[int32]{n, arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(a.Date32Values()))}
	case *array.Time64:
		return &intVector[int64]{n, arrow.Int64Traits.CastFromBytes(arrow.Time64Traits.CastToBytes(a.Time64Values()))}
	case *array.Timestamp:
		return &intVector[int64]{n, arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(a.TimestampValues()))}
	case *array.Float32:
		return &floatVector[float32]{n, a.Float32Values()}
	case *array.Float64:
		return &floatVector[float64]{n, a.Float64Values()}
	case *array.Decimal128:
		return &wideVector{n, words(arrow.Decimal128Traits.CastToBytes(a.Values()))}
	case *array.FixedSizeBinary:
		if a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth == 16 && a.Len() > 0 {
			raw := a.Data().Buffers()[1].Bytes()[16*a.Data().Offset():]
			return &wideVector{n, words(raw[:16*a.Len()])}
		}
	case *array.String:
		return &bytesVector{n, a.ValueOffsets(), a.Data().Buffers()[2]}
	case *array.Binary:
		return &bytesVector{n, a.ValueOffsets(), a.Data().Buffers()[2]}
	}
	return &anyVector{a: col}
}

func newVectors(cols []arrow.Array) []vector {
	v := make([]vector, len(cols))
	for i, c := range cols {
		v[i] = newVector(c)
	}
	return v
}

type word2 = [2]uint64

// words views 16-byte values; Go buffers are aligned to 64 bytes.
func words(b []byte) []word2 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*word2)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/16)
}

// nulls is the part that all vectors share; valid is nil when no row is NULL.
type nulls struct {
	typ   arrow.DataType
	valid []byte
	off   int
}

func (n *nulls) isNull(row uint32) bool {
	return n.valid != nil && !bitutil.BitIsSet(n.valid, n.off+int(row))
}

// bitmap gathers validity; nil when no gathered row is NULL.
func (n *nulls) bitmap(rows []uint32) (*memory.Buffer, int) {
	if n.valid == nil {
		return nil, 0
	}
	b := make([]byte, bitutil.BytesForBits(int64(len(rows))))
	count := 0
	for k, r := range rows {
		if bitutil.BitIsSet(n.valid, n.off+int(r)) {
			bitutil.SetBit(b, k)
		} else {
			count++
		}
	}
	if count == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(b), count
}

func (n *nulls) array(rows []uint32, bufs ...*memory.Buffer) arrow.Array {
	valid, count := n.bitmap(rows)
	storage := n.typ
	ext, isExt := n.typ.(arrow.ExtensionType)
	if isExt {
		storage = ext.StorageType()
	}
	data := array.NewData(storage, len(rows), append([]*memory.Buffer{valid}, bufs...), nil, count, 0)
	if isExt {
		st := array.MakeFromData(data)
		return array.NewExtensionArrayWithStorage(ext, st)
	}
	return array.MakeFromData(data)
}

type intVector[T int32 | int64] struct {
	nulls
	v []T
}

func (c *intVector[T]) hash(dst []uint64) {
	if c.valid == nil {
		for i, x := range c.v[:len(dst)] {
			dst[i] = mix(dst[i], uint64(int64(x)))
		}
		return
	}
	for i := range dst {
		dst[i] = c.hashAt(uint32(i), dst[i])
	}
}

func (c *intVector[T]) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	return mix(h, uint64(int64(c.v[r])))
}

func (c *intVector[T]) equal(a, b uint32) bool {
	if c.valid == nil {
		return c.v[a] == c.v[b]
	}
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.v[a] == c.v[b])
}

func (c *intVector[T]) keepEqual(pairs []pair, same []bool) {
	if c.valid == nil {
		for k, p := range pairs {
			same[k] = same[k] && c.v[p.del] == c.v[p.ins]
		}
		return
	}
	keepEqual(c, pairs, same)
}

func (c *intVector[T]) gather(rows []uint32) (arrow.Array, error) {
	out := make([]T, len(rows))
	for k, r := range rows {
		out[k] = c.v[r]
	}
	return c.array(rows, bufferOf(out)), nil
}

func bufferOf[T any](s []T) *memory.Buffer {
	if len(s) == 0 {
		return memory.NewBufferBytes(nil)
	}
	return memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0]))))
}

// keepEqual is the slow way of every vector: one virtual call a pair that is still equal.
func keepEqual(v vector, pairs []pair, same []bool) {
	for k, p := range pairs {
		same[k] = same[k] && v.equal(p.del, p.ins)
	}
}

type floatVector[T float32 | float64] struct {
	nulls
	v []T
}

var canonicalNaN = math.Float64bits(math.NaN())

// bits of a value as a double; every NaN is one.
func (c *floatVector[T]) bits(r uint32) uint64 {
	x := float64(c.v[r])
	if x != x {
		return canonicalNaN
	}
	return math.Float64bits(x)
}

func (c *floatVector[T]) hash(dst []uint64) {
	for i := range dst {
		dst[i] = c.hashAt(uint32(i), dst[i])
	}
}

func (c *floatVector[T]) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	return mix(h, c.bits(r))
}

func (c *floatVector[T]) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.bits(a) == c.bits(b))
}

func (c *floatVector[T]) keepEqual(pairs []pair, same []bool) {
	if c.valid == nil {
		for k, p := range pairs {
			same[k] = same[k] && c.bits(p.del) == c.bits(p.ins)
		}
		return
	}
	keepEqual(c, pairs, same)
}

func (c *floatVector[T]) gather(rows []uint32) (arrow.Array, error) {
	out := make([]T, len(rows))
	for k, r := range rows {
		out[k] = c.v[r]
	}
	return c.array(rows, bufferOf(out)), nil
}

// wideVector holds 16-byte values: decimals and uuids.
type wideVector struct {
	nulls
	v []word2
}

func (c *wideVector) hash(dst []uint64) {
	for i := range dst {
		dst[i] = c.hashAt(uint32(i), dst[i])
	}
}

func (c *wideVector) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	return mix(mix(h, c.v[r][0]), c.v[r][1])
}

func (c *wideVector) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.v[a] == c.v[b])
}

func (c *wideVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *wideVector) gather(rows []uint32) (arrow.Array, error) {
	out := make([]word2, len(rows))
	for k, r := range rows {
		out[k] = c.v[r]
	}
	return c.array(rows, bufferOf(out)), nil
}

// bytesVector holds strings and binaries.
type bytesVector struct {
	nulls
	offs []int32
	buf  *memory.Buffer
}

func (c *bytesVector) at(r uint32) []byte {
	lo, hi := c.offs[r], c.offs[r+1]
	if lo == hi {
		return nil
	}
	return c.buf.Bytes()[lo:hi]
}

func (c *bytesVector) hash(dst []uint64) {
	for i := range dst {
		dst[i] = c.hashAt(uint32(i), dst[i])
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

func (c *bytesVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *bytesVector) gather(rows []uint32) (arrow.Array, error) {
	offs := make([]int32, len(rows)+1)
	total := int32(0)
	for k, r := range rows {
		total += c.offs[r+1] - c.offs[r]
		offs[k+1] = total
	}
	data := make([]byte, total)
	if total > 0 {
		src := c.buf.Bytes()
		for k, r := range rows {
			copy(data[offs[k]:], src[c.offs[r]:c.offs[r+1]])
		}
	}
	return c.array(rows, bufferOf(offs), memory.NewBufferBytes(data)), nil
}

type boolVector struct {
	nulls
	a *array.Boolean
}

func (c *boolVector) hash(dst []uint64) {
	for i := range dst {
		dst[i] = c.hashAt(uint32(i), dst[i])
	}
}

func (c *boolVector) hashAt(r uint32, h uint64) uint64 {
	switch {
	case c.isNull(r):
		return mix(h, nullHash)
	case c.a.Value(int(r)):
		return mix(h, 1)
	}
	return mix(h, 0)
}

func (c *boolVector) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.a.Value(int(a)) == c.a.Value(int(b)))
}

func (c *boolVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *boolVector) gather(rows []uint32) (arrow.Array, error) {
	out := make([]byte, bitutil.BytesForBits(int64(len(rows))))
	for k, r := range rows {
		if c.a.Value(int(r)) {
			bitutil.SetBit(out, k)
		}
	}
	return c.array(rows, memory.NewBufferBytes(out)), nil
}

// anyVector is every other type: nested values, by recursion over their arrays.
type anyVector struct{ a arrow.Array }

func (c *anyVector) hash(dst []uint64) {
	for i := range dst {
		dst[i] = hashValue(c.a, i, dst[i])
	}
}

func (c *anyVector) hashAt(r uint32, h uint64) uint64    { return hashValue(c.a, int(r), h) }
func (c *anyVector) equal(a, b uint32) bool              { return equalValue(c.a, int(a), c.a, int(b)) }
func (c *anyVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }
func (c *anyVector) gather(rows []uint32) (arrow.Array, error) {
	idx := array.NewUint32Data(array.NewData(arrow.PrimitiveTypes.Uint32, len(rows), []*memory.Buffer{nil, bufferOf(rows)}, nil, 0, 0))
	out, err := compute.TakeArrayOpts(context.Background(), c.a, idx, compute.TakeOptions{BoundsCheck: false})
	if err != nil && len(rows) > 0 {
		// Types that take does not know are copied value by value through slices.
		parts := make([]arrow.Array, len(rows))
		for k, r := range rows {
			parts[k] = array.NewSlice(c.a, int64(r), int64(r)+1)
		}
		out, err = array.Concatenate(parts, memory.DefaultAllocator)
	}
	return out, err
}
