package changelog

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Rows of a vector are named by chunk and place: ref = chunk<<chunkBits | place. A column in one piece is cut into full
// chunks, so that there a ref is the row's number.
const (
	chunkBits = 15
	chunkRows = 1 << chunkBits
	placeMask = chunkRows - 1
	// refLimit is above all refs: the bit is free to say something else.
	refLimit = 1 << 31
)

// A vector is one Arrow column, in chunks, laid bare for typed hashing, comparing and gathering of rows by ref. Equality
// is row identity's: NULL = NULL, NaN = NaN, −0.0 ≠ 0.0. Hashes are stable across processes and across promotion of int
// to long and float to double. Safe for concurrent use.
type vector interface {
	// hash mixes the rows of a chunk into dst, whose length is the chunk's.
	hash(chunk int, dst []uint64)
	// hashAt mixes one row into h.
	hashAt(ref uint32, h uint64) uint64
	equal(a, b uint32) bool
	// encode appends a value so that two are equal exactly when their bytes are, and none is the beginning of another.
	encode(dst []byte, ref uint32) []byte
	// keepEqual clears same[k] where the rows of pairs[k] differ.
	keepEqual(pairs []pair, same []bool)
	// gather copies rows into a new array.
	gather(refs []uint32) (arrow.Array, error)
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

// newVector lays a column in one piece bare: a ref is a row's number.
func newVector(col arrow.Array) vector {
	if col.Len() <= chunkRows {
		return chunkedVector([]arrow.Array{col})
	}
	var chunks []arrow.Array
	for lo := 0; lo < col.Len(); lo += chunkRows {
		chunks = append(chunks, array.NewSlice(col, int64(lo), int64(min(lo+chunkRows, col.Len()))))
	}
	return chunkedVector(chunks)
}

func newVectors(cols []arrow.Array) []vector {
	v := make([]vector, len(cols))
	for i, c := range cols {
		v[i] = newVector(c)
	}
	return v
}

// chunkedVector lays the chunks of a column bare, each of at most chunkRows rows; there is at least one. It keeps cols. Extension types
// are read as their storage; gather returns the column's own type.
func chunkedVector(cols []arrow.Array) vector {
	n := nulls{typ: cols[0].DataType(), off: make([]int, len(cols))}
	chunks := make([]arrow.Array, len(cols))
	for k, c := range cols {
		if e, ok := c.(array.ExtensionArray); ok {
			c = e.Storage()
		}
		chunks[k], n.off[k] = c, c.Data().Offset()
		if c.NullN() > 0 {
			if n.valid == nil {
				n.valid = make([][]byte, len(cols))
			}
			n.valid[k] = c.NullBitmapBytes()
		}
	}
	switch a := chunks[0].(type) {
	case *array.Boolean:
		return &boolVector{n, typedChunks[*array.Boolean](chunks)}
	case *array.Int32:
		return &intVector[int32]{n, values(chunks, (*array.Int32).Int32Values)}
	case *array.Int64:
		return &intVector[int64]{n, values(chunks, (*array.Int64).Int64Values)}
	case *array.Date32:
		return &intVector[int32]{n, values(chunks, func(a *array.Date32) []int32 {
			return arrow.Int32Traits.CastFromBytes(arrow.Date32Traits.CastToBytes(a.Date32Values()))
		})}
	case *array.Time64:
		return &intVector[int64]{n, values(chunks, func(a *array.Time64) []int64 {
			return arrow.Int64Traits.CastFromBytes(arrow.Time64Traits.CastToBytes(a.Time64Values()))
		})}
	case *array.Timestamp:
		return &intVector[int64]{n, values(chunks, func(a *array.Timestamp) []int64 {
			return arrow.Int64Traits.CastFromBytes(arrow.TimestampTraits.CastToBytes(a.TimestampValues()))
		})}
	case *array.Float32:
		return &floatVector[float32]{n, values(chunks, (*array.Float32).Float32Values)}
	case *array.Float64:
		return &floatVector[float64]{n, values(chunks, (*array.Float64).Float64Values)}
	case *array.Decimal128:
		return &wideVector{n, values(chunks, func(a *array.Decimal128) []word2 {
			return words(arrow.Decimal128Traits.CastToBytes(a.Values()))
		})}
	case *array.FixedSizeBinary:
		if a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth == 16 {
			return &wideVector{n, values(chunks, func(a *array.FixedSizeBinary) []word2 {
				if a.Len() == 0 {
					return nil
				}
				raw := a.Data().Buffers()[1].Bytes()[16*a.Data().Offset():]
				return words(raw[:16*a.Len()])
			})}
		}
	case *array.String:
		return newBytesVector(n, chunks, (*array.String).ValueOffsets)
	case *array.Binary:
		return newBytesVector(n, chunks, (*array.Binary).ValueOffsets)
	}
	return &anyVector{cols}
}

func typedChunks[A arrow.Array](chunks []arrow.Array) []A {
	out := make([]A, len(chunks))
	for k, c := range chunks {
		out[k] = c.(A)
	}
	return out
}

func values[A arrow.Array, T any](chunks []arrow.Array, of func(A) []T) [][]T {
	out := make([][]T, len(chunks))
	for k, c := range chunks {
		out[k] = of(c.(A))
	}
	return out
}

type word2 = [2]uint64

// words views 16-byte values; Go buffers are aligned to 64 bytes.
func words(b []byte) []word2 {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*word2)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/16)
}

// nulls is the part that all vectors share; valid is nil when no row is NULL, valid[k] when none of chunk k is.
type nulls struct {
	typ   arrow.DataType
	valid [][]byte
	off   []int
}

func (n *nulls) isNull(ref uint32) bool {
	if n.valid == nil {
		return false
	}
	k := ref >> chunkBits
	return n.valid[k] != nil && !bitutil.BitIsSet(n.valid[k], n.off[k]+int(ref&placeMask))
}

// bitmap gathers validity; nil when no gathered row is NULL.
func (n *nulls) bitmap(refs []uint32) (*memory.Buffer, int) {
	if n.valid == nil {
		return nil, 0
	}
	b := make([]byte, bitutil.BytesForBits(int64(len(refs))))
	count := 0
	for k, r := range refs {
		if n.isNull(r) {
			count++
		} else {
			bitutil.SetBit(b, k)
		}
	}
	if count == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(b), count
}

func (n *nulls) array(refs []uint32, bufs ...*memory.Buffer) arrow.Array {
	valid, count := n.bitmap(refs)
	storage := n.typ
	ext, isExt := n.typ.(arrow.ExtensionType)
	if isExt {
		storage = ext.StorageType()
	}
	data := array.NewData(storage, len(refs), append([]*memory.Buffer{valid}, bufs...), nil, count, 0)
	if isExt {
		st := array.MakeFromData(data)
		return array.NewExtensionArrayWithStorage(ext, st)
	}
	return array.MakeFromData(data)
}

type intVector[T int32 | int64] struct {
	nulls
	v [][]T
}

func (c *intVector[T]) at(ref uint32) T { return c.v[ref>>chunkBits][ref&placeMask] }

func (c *intVector[T]) hash(chunk int, dst []uint64) {
	if c.valid == nil {
		for i, x := range c.v[chunk][:len(dst)] {
			dst[i] = mix(dst[i], uint64(int64(x)))
		}
		return
	}
	hashEach(c, chunk, dst)
}

// hashEach is the slow way of every vector: one virtual call a row.
func hashEach(v vector, chunk int, dst []uint64) {
	for i := range dst {
		dst[i] = v.hashAt(uint32(chunk<<chunkBits|i), dst[i])
	}
}

func (c *intVector[T]) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	return mix(h, uint64(int64(c.at(r))))
}

func (c *intVector[T]) equal(a, b uint32) bool {
	if c.valid == nil {
		return c.at(a) == c.at(b)
	}
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.at(a) == c.at(b))
}

func (c *intVector[T]) encode(dst []byte, ref uint32) []byte {
	if c.isNull(ref) {
		return append(dst, encNull)
	}
	return binary.LittleEndian.AppendUint64(append(dst, encValue), uint64(int64(c.at(ref))))
}

// What an encoded value begins with.
const (
	encNull byte = iota
	encValue
)

func (c *intVector[T]) keepEqual(pairs []pair, same []bool) {
	if c.valid == nil {
		for k, p := range pairs {
			// No short cut: the loads of a pair do not wait for the outcome of those before.
			eq := c.at(p.del) == c.at(p.ins)
			same[k] = same[k] && eq
		}
		return
	}
	keepEqual(c, pairs, same)
}

func (c *intVector[T]) gather(refs []uint32) (arrow.Array, error) {
	out := make([]T, len(refs))
	for k, r := range refs {
		out[k] = c.at(r)
	}
	return c.array(refs, bufferOf(out)), nil
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
	v [][]T
}

var canonicalNaN = math.Float64bits(math.NaN())

// bits of a value as a double; every NaN is one.
func (c *floatVector[T]) bits(r uint32) uint64 {
	return floatBits(float64(c.v[r>>chunkBits][r&placeMask]))
}

func (c *floatVector[T]) hash(chunk int, dst []uint64) { hashEach(c, chunk, dst) }

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

func (c *floatVector[T]) encode(dst []byte, ref uint32) []byte {
	if c.isNull(ref) {
		return append(dst, encNull)
	}
	return binary.LittleEndian.AppendUint64(append(dst, encValue), c.bits(ref))
}

func (c *floatVector[T]) keepEqual(pairs []pair, same []bool) {
	if c.valid == nil {
		for k, p := range pairs {
			eq := c.bits(p.del) == c.bits(p.ins)
			same[k] = same[k] && eq
		}
		return
	}
	keepEqual(c, pairs, same)
}

func (c *floatVector[T]) gather(refs []uint32) (arrow.Array, error) {
	out := make([]T, len(refs))
	for k, r := range refs {
		out[k] = c.v[r>>chunkBits][r&placeMask]
	}
	return c.array(refs, bufferOf(out)), nil
}

// wideVector holds 16-byte values: decimals and uuids.
type wideVector struct {
	nulls
	v [][]word2
}

func (c *wideVector) at(ref uint32) word2 { return c.v[ref>>chunkBits][ref&placeMask] }

func (c *wideVector) hash(chunk int, dst []uint64) { hashEach(c, chunk, dst) }

func (c *wideVector) hashAt(r uint32, h uint64) uint64 {
	if c.isNull(r) {
		return mix(h, nullHash)
	}
	w := c.at(r)
	return mix(mix(h, w[0]), w[1])
}

func (c *wideVector) equal(a, b uint32) bool {
	an, bn := c.isNull(a), c.isNull(b)
	return an == bn && (an || c.at(a) == c.at(b))
}

func (c *wideVector) encode(dst []byte, ref uint32) []byte {
	if c.isNull(ref) {
		return append(dst, encNull)
	}
	w := c.at(ref)
	dst = binary.LittleEndian.AppendUint64(append(dst, encValue), w[0])
	return binary.LittleEndian.AppendUint64(dst, w[1])
}

func (c *wideVector) keepEqual(pairs []pair, same []bool) { keepEqual(c, pairs, same) }

func (c *wideVector) gather(refs []uint32) (arrow.Array, error) {
	out := make([]word2, len(refs))
	for k, r := range refs {
		out[k] = c.at(r)
	}
	return c.array(refs, bufferOf(out)), nil
}
