package changelog

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
)

// hashValue mixes one value of any type into h. Values that equalValue finds equal hash alike.
func hashValue(a arrow.Array, i int, h uint64) uint64 {
	if a.IsNull(i) {
		return mix(h, nullHash)
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return hashValue(a.Storage(), i, h)
	case array.ListLike: // maps are lists of entries
		lo, hi := a.ValueOffsets(i)
		h = mix(h, uint64(hi-lo))
		for k := lo; k < hi; k++ {
			h = hashValue(a.ListValues(), int(k), h)
		}
		return h
	case *array.Struct:
		for f := range a.NumField() {
			h = hashValue(a.Field(f), i, h)
		}
		return h
	case *array.Float32:
		return mix(h, floatBits(float64(a.Value(i))))
	case *array.Float64:
		return mix(h, floatBits(a.Value(i)))
	case *array.String:
		return mix(h, xxh3.HashString(a.Value(i)))
	case *array.Binary:
		return mix(h, xxh3.Hash(a.Value(i)))
	case *array.FixedSizeBinary:
		return mix(h, xxh3.Hash(a.Value(i)))
	case *array.Int32:
		return mix(h, uint64(int64(a.Value(i))))
	case *array.Int64:
		return mix(h, uint64(a.Value(i)))
	case *array.Date32:
		return mix(h, uint64(int64(a.Value(i))))
	case *array.Timestamp:
		return mix(h, uint64(a.Value(i)))
	case *array.Time64:
		return mix(h, uint64(a.Value(i)))
	case *array.Decimal128:
		v := a.Value(i)
		return mix(mix(h, v.LowBits()), uint64(v.HighBits()))
	case *array.Boolean:
		if a.Value(i) {
			return mix(h, 1)
		}
		return mix(h, 0)
	}
	return mix(h, xxh3.HashString(a.ValueStr(i)))
}

// encodeValue appends one value of any type as vector.encode does.
func encodeValue(dst []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(dst, encNull)
	}
	le := binary.LittleEndian
	switch a := a.(type) {
	case array.ExtensionArray:
		return encodeValue(dst, a.Storage(), i)
	case array.ListLike:
		lo, hi := a.ValueOffsets(i)
		dst = le.AppendUint64(append(dst, encValue), uint64(hi-lo))
		for k := lo; k < hi; k++ {
			dst = encodeValue(dst, a.ListValues(), int(k))
		}
		return dst
	case *array.Struct:
		dst = append(dst, encValue)
		for f := range a.NumField() {
			dst = encodeValue(dst, a.Field(f), i)
		}
		return dst
	case *array.Float32:
		return le.AppendUint64(append(dst, encValue), floatBits(float64(a.Value(i))))
	case *array.Float64:
		return le.AppendUint64(append(dst, encValue), floatBits(a.Value(i)))
	case *array.String:
		return appendText(dst, a.Value(i))
	case *array.Binary:
		return appendText(dst, a.Value(i))
	case *array.FixedSizeBinary:
		return appendText(dst, a.Value(i))
	case *array.Int32:
		return le.AppendUint64(append(dst, encValue), uint64(int64(a.Value(i))))
	case *array.Int64:
		return le.AppendUint64(append(dst, encValue), uint64(a.Value(i)))
	case *array.Date32:
		return le.AppendUint64(append(dst, encValue), uint64(int64(a.Value(i))))
	case *array.Timestamp:
		return le.AppendUint64(append(dst, encValue), uint64(a.Value(i)))
	case *array.Time64:
		return le.AppendUint64(append(dst, encValue), uint64(a.Value(i)))
	case *array.Decimal128:
		v := a.Value(i)
		return le.AppendUint64(le.AppendUint64(append(dst, encValue), v.LowBits()), uint64(v.HighBits()))
	case *array.Boolean:
		if a.Value(i) {
			return append(dst, encValue, 1)
		}
		return append(dst, encValue, 0)
	}
	return appendText(dst, a.ValueStr(i))
}

// equalValue compares one value each of two arrays of one type as row identity does.
func equalValue(a arrow.Array, i int, b arrow.Array, j int) bool {
	if a.IsNull(i) || b.IsNull(j) {
		return a.IsNull(i) && b.IsNull(j)
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		if b, ok := b.(array.ExtensionArray); ok {
			return equalValue(a.Storage(), i, b.Storage(), j)
		}
	case array.ListLike:
		b, ok := b.(array.ListLike)
		if !ok {
			return false
		}
		alo, ahi := a.ValueOffsets(i)
		blo, bhi := b.ValueOffsets(j)
		if ahi-alo != bhi-blo {
			return false
		}
		for k := range ahi - alo {
			if !equalValue(a.ListValues(), int(alo+k), b.ListValues(), int(blo+k)) {
				return false
			}
		}
		return true
	case *array.Struct:
		b, ok := b.(*array.Struct)
		if !ok {
			return false
		}
		for f := range a.NumField() {
			if !equalValue(a.Field(f), i, b.Field(f), j) {
				return false
			}
		}
		return true
	case *array.Float32:
		b, ok := b.(*array.Float32)
		return ok && floatBits(float64(a.Value(i))) == floatBits(float64(b.Value(j)))
	case *array.Float64:
		b, ok := b.(*array.Float64)
		return ok && floatBits(a.Value(i)) == floatBits(b.Value(j))
	}
	return array.SliceEqual(a, int64(i), int64(i)+1, b, int64(j), int64(j)+1)
}

func floatBits(x float64) uint64 {
	if x != x {
		return canonicalNaN
	}
	return math.Float64bits(x)
}
