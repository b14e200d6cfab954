package duck

import (
	"unsafe"

	bind "github.com/duckdb/duckdb-go-bindings"
)

// vec is one vector of the current chunk: pointers into DuckDB's memory, valid until the next fetch.
type vec struct {
	t     *logical
	data  unsafe.Pointer
	valid unsafe.Pointer // *uint64, nil = no NULL
	child []vec
}

func newVec(t *logical) vec {
	v := vec{t: t}
	for _, c := range t.child {
		v.child = append(v.child, newVec(c))
	}
	return v
}

// load points v at a vector. The vectors of a streamed chunk are flat.
func (v *vec) load(b bind.Vector) {
	v.data = bind.VectorGetData(b)
	v.valid = bind.VectorGetValidity(b)
	switch v.t.id {
	case bind.TypeList:
		v.child[0].load(bind.ListVectorGetChild(b))
	case bind.TypeArray:
		v.child[0].load(bind.ArrayVectorGetChild(b))
	case bind.TypeStruct:
		for i := range v.child {
			v.child[i].load(bind.StructVectorGetChild(b, bind.IdxT(i)))
		}
	case bind.TypeMap:
		// A MAP is a LIST of STRUCT(key, value).
		entries := bind.ListVectorGetChild(b)
		v.child[0].load(bind.StructVectorGetChild(entries, 0))
		v.child[1].load(bind.StructVectorGetChild(entries, 1))
	case bind.TypeUnion:
		// A UNION is a STRUCT whose first child is the tag; v.data is the tag's.
		v.data = bind.VectorGetData(bind.StructVectorGetChild(b, 0))
		for i := range v.child {
			v.child[i].load(bind.StructVectorGetChild(b, bind.IdxT(i+1)))
		}
	}
}

func (v *vec) null(row int) bool {
	return v.valid != nil && *(*uint64)(unsafe.Add(v.valid, row>>6<<3))>>(row&63)&1 == 0
}

func at[T any](v *vec, row int) T {
	var z T
	return *(*T)(unsafe.Add(v.data, row*int(unsafe.Sizeof(z))))
}

// Layouts of vector elements. Source: duckdb.h.
type (
	hugeint  struct{ lo, hi uint64 }
	interval struct {
		months, days int32
		micros       int64
	}
	listEntry struct{ offset, length uint64 }
)

const inlineLength = 12

// bytes is the value of a VARCHAR or BLOB element, valid until the next fetch.
func (v *vec) bytes(row int) []byte {
	p := unsafe.Add(v.data, row*16)
	n := *(*uint32)(p)
	if n <= inlineLength {
		return unsafe.Slice((*byte)(unsafe.Add(p, 4)), n)
	}
	return unsafe.Slice(*(**byte)(unsafe.Add(p, 8)), n)
}

// integer is the value of any integer vector of up to 64 bits but UBIGINT, and of a DECIMAL's or ENUM's integer.
func (v *vec) integer(row int) int64 {
	switch v.t.phys {
	case bind.TypeTinyInt:
		return int64(at[int8](v, row))
	case bind.TypeSmallInt:
		return int64(at[int16](v, row))
	case bind.TypeInteger:
		return int64(at[int32](v, row))
	case bind.TypeUTinyInt, bind.TypeBoolean:
		return int64(at[uint8](v, row))
	case bind.TypeUSmallInt:
		return int64(at[uint16](v, row))
	case bind.TypeUInteger:
		return int64(at[uint32](v, row))
	}
	return at[int64](v, row)
}

// wide is the value of any integer or DECIMAL vector as 128 bits. UHUGEINT beyond 2^127-1 is the caller's business.
func (v *vec) wide(row int) (hi int64, lo uint64) {
	switch v.t.phys {
	case bind.TypeHugeInt:
		h := at[hugeint](v, row)
		return int64(h.hi), h.lo
	case bind.TypeUHugeInt:
		h := at[hugeint](v, row)
		return int64(h.hi), h.lo
	case bind.TypeUBigInt:
		return 0, at[uint64](v, row)
	}
	i := v.integer(row)
	return i >> 63, uint64(i)
}

// list is the range of a LIST's or ARRAY's elements in its child.
func (v *vec) list(row int) (from, to int) {
	if v.t.id == bind.TypeArray {
		return row * v.t.array, (row + 1) * v.t.array
	}
	e := at[listEntry](v, row)
	return int(e.offset), int(e.offset + e.length)
}

// uuid is the value of a UUID: DuckDB keeps the 128 bits with the top one flipped, so that they sort as signed.
func (v *vec) uuid(row int) UUID {
	h := at[hugeint](v, row)
	h.hi ^= 1 << 63
	var u UUID
	for i := range 8 {
		u[i] = byte(h.hi >> (56 - 8*i))
		u[8+i] = byte(h.lo >> (56 - 8*i))
	}
	return u
}

// micros is the value of any TIMESTAMP vector in microseconds; finer digits are cut towards the past.
func (v *vec) micros(row int) int64 {
	x := at[int64](v, row)
	if x == infinity || x == -infinity {
		return x
	}
	switch v.t.id {
	case bind.TypeTimestampS:
		return x * 1e6
	case bind.TypeTimestampMS:
		return x * 1e3
	case bind.TypeTimestampNS:
		return floorDiv(x, 1000)
	}
	return x
}

const infinity = 1<<63 - 1

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
