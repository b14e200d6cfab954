package duck

// #include "relation.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	bind "github.com/duckdb/duckdb-go-bindings"
)

// fixedTypes are the Arrow types whose values have DuckDB's layout: copied as they are.
var fixedTypes = map[arrow.Type]bind.Type{
	arrow.INT8: bind.TypeTinyInt, arrow.INT16: bind.TypeSmallInt, arrow.INT32: bind.TypeInteger, arrow.INT64: bind.TypeBigInt,
	arrow.UINT8: bind.TypeUTinyInt, arrow.UINT16: bind.TypeUSmallInt, arrow.UINT32: bind.TypeUInteger, arrow.UINT64: bind.TypeUBigInt,
	arrow.FLOAT32: bind.TypeFloat, arrow.FLOAT64: bind.TypeDouble, arrow.DATE32: bind.TypeDate,
}

// duckType makes the DuckDB type of an Arrow type, which the caller destroys. Timestamps of any unit become microseconds,
// dictionaries their values, extensions their storage, except uuid and json.
func duckType(t arrow.DataType) (bind.LogicalType, error) {
	if id, ok := fixedTypes[t.ID()]; ok {
		return bind.CreateLogicalType(id), nil
	}
	switch t := t.(type) {
	case *arrow.BooleanType:
		return bind.CreateLogicalType(bind.TypeBoolean), nil
	case *arrow.StringType, *arrow.LargeStringType, *arrow.NullType:
		return bind.CreateLogicalType(bind.TypeVarchar), nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return bind.CreateLogicalType(bind.TypeBlob), nil
	case *arrow.Date64Type:
		return bind.CreateLogicalType(bind.TypeDate), nil
	case *arrow.Time32Type, *arrow.Time64Type:
		return bind.CreateLogicalType(bind.TypeTime), nil
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return bind.CreateLogicalType(bind.TypeTimestampTZ), nil
		}
		return bind.CreateLogicalType(bind.TypeTimestamp), nil
	case *arrow.MonthDayNanoIntervalType, *arrow.DurationType:
		return bind.CreateLogicalType(bind.TypeInterval), nil
	case *arrow.Decimal128Type:
		return bind.CreateDecimalType(uint8(t.Precision), uint8(t.Scale)), nil
	case *arrow.DictionaryType:
		return duckType(t.ValueType)
	case arrow.ExtensionType:
		return duckExtension(t)
	case *arrow.MapType:
		return duckMap(t)
	case arrow.ListLikeType:
		return duckList(t)
	case *arrow.StructType:
		return duckStruct(t)
	}
	return bind.LogicalType{}, fmt.Errorf("%w: %s", ErrUnsupportedType, t)
}

func duckExtension(t arrow.ExtensionType) (bind.LogicalType, error) {
	switch t.ExtensionName() {
	case "arrow.uuid":
		return bind.CreateLogicalType(bind.TypeUUID), nil
	case "arrow.json":
		lt := bind.CreateLogicalType(bind.TypeVarchar)
		bind.LogicalTypeSetAlias(lt, "JSON")
		return lt, nil
	}
	return duckType(t.StorageType())
}

func duckList(t arrow.ListLikeType) (bind.LogicalType, error) {
	elem, err := duckType(t.Elem())
	if err != nil {
		return elem, err
	}
	defer bind.DestroyLogicalType(&elem)
	return bind.CreateListType(elem), nil
}

func duckMap(t *arrow.MapType) (bind.LogicalType, error) {
	key, err := duckType(t.KeyType())
	if err != nil {
		return key, err
	}
	defer bind.DestroyLogicalType(&key)
	val, err := duckType(t.ItemType())
	if err != nil {
		return val, err
	}
	defer bind.DestroyLogicalType(&val)
	return bind.CreateMapType(key, val), nil
}

func duckStruct(t *arrow.StructType) (bind.LogicalType, error) {
	var types []bind.LogicalType
	defer func() {
		for i := range types {
			bind.DestroyLogicalType(&types[i])
		}
	}()
	var names []string
	for _, f := range t.Fields() {
		lt, err := duckType(f.Type)
		if err != nil {
			return lt, err
		}
		types, names = append(types, lt), append(names, f.Name)
	}
	return bind.CreateStructType(types, names), nil
}

// sameDuckType tells whether both Arrow types fill the same vectors.
func sameDuckType(a, b arrow.DataType) bool {
	an, aerr := duckTypeName(a)
	bn, berr := duckTypeName(b)
	return aerr == nil && berr == nil && an == bn
}

func duckTypeName(t arrow.DataType) (string, error) {
	lt, err := duckType(t)
	if err != nil {
		return "", err
	}
	return newLogical(lt).name, nil
}

// fillVector copies arr into rows at … of a vector of duckType(arr's type).
func fillVector(v bind.Vector, arr arrow.Array, at int) error {
	n := arr.Len()
	if n == 0 {
		return nil
	}
	switch a := arr.(type) {
	case *array.Dictionary:
		return fillDictionary(v, a, at)
	case array.ExtensionArray:
		if a.ExtensionType().ExtensionName() == "arrow.uuid" {
			fillValidity(v, arr, at)
			return fillUUID(v, a.Storage(), at)
		}
		return fillVector(v, a.Storage(), at)
	}
	fillValidity(v, arr, at)
	if _, ok := fixedTypes[arr.DataType().ID()]; ok {
		fillFixed(v, arr.Data(), arr.DataType().(arrow.FixedWidthDataType).Bytes(), at)
		return nil
	}
	switch a := arr.(type) {
	case *array.Null:
		return nil
	case *array.Boolean:
		dst := slice[uint8](v, at, n)
		for i := range n {
			dst[i] = 0
			if a.Value(i) {
				dst[i] = 1
			}
		}
		return nil
	case *array.String:
		return fillStrings(v, at, a.ValueOffsets(), a.Data().Buffers()[2].Bytes(), n)
	case *array.Binary:
		return fillStrings(v, at, a.ValueOffsets(), a.Data().Buffers()[2].Bytes(), n)
	case *array.LargeString:
		return fillLargeStrings(v, at, a.ValueOffsets(), a.Data().Buffers()[2].Bytes(), n)
	case *array.LargeBinary:
		return fillLargeStrings(v, at, a.ValueOffsets(), a.Data().Buffers()[2].Bytes(), n)
	case *array.FixedSizeBinary:
		width := a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
		offsets := make([]int32, n+1)
		for i := range offsets {
			offsets[i] = int32(i * width)
		}
		return fillStrings(v, at, offsets, a.Data().Buffers()[1].Bytes()[a.Data().Offset()*width:], n)
	case *array.Struct:
		return fillStruct(v, a, at)
	case *array.Map:
		return fillList(v, a, a.ListValues(), at)
	case array.ListLike:
		return fillList(v, a, a.ListValues(), at)
	}
	return fillConverted(v, arr, at)
}

func slice[T any](v bind.Vector, at, n int) []T {
	p := (*T)(bind.VectorGetData(v))
	return unsafe.Slice(p, at+n)[at:]
}

// fillValidity copies the null bits: both sides keep one bit a row, set for a value, lowest first.
func fillValidity(v bind.Vector, arr arrow.Array, at int) {
	if arr.NullN() == 0 {
		return
	}
	bind.VectorEnsureValidityWritable(v)
	mask := bind.VectorGetValidity(v)
	words := unsafe.Slice((*byte)(mask), (at+arr.Len()+63)/64*8)
	if bits := arr.NullBitmapBytes(); len(bits) > 0 {
		bitutil.CopyBitmap(bits, arr.Data().Offset(), arr.Len(), words, at)
		return
	}
	for i := range arr.Len() {
		bitutil.ClearBit(words, at+i)
	}
}

func fillFixed(v bind.Vector, d arrow.ArrayData, width, at int) {
	src := d.Buffers()[1].Bytes()[d.Offset()*width : (d.Offset()+d.Len())*width]
	copy(unsafe.Slice((*byte)(bind.VectorGetData(v)), (at+d.Len())*width)[at*width:], src)
}

func fillStrings(v bind.Vector, at int, offsets []int32, data []byte, n int) error {
	var p *C.char
	if len(data) > 0 {
		p = (*C.char)(unsafe.Pointer(&data[0]))
	}
	return assigned(C.skade_assign_strings(C.duckdb_vector(v.Ptr), C.idx_t(at), (*C.int32_t)(unsafe.Pointer(&offsets[0])), p, C.idx_t(n)))
}

func fillLargeStrings(v bind.Vector, at int, offsets []int64, data []byte, n int) error {
	var p *C.char
	if len(data) > 0 {
		p = (*C.char)(unsafe.Pointer(&data[0]))
	}
	return assigned(C.skade_assign_large_strings(C.duckdb_vector(v.Ptr), C.idx_t(at), (*C.int64_t)(unsafe.Pointer(&offsets[0])), p, C.idx_t(n)))
}

func assigned(failed C.int) error {
	if failed != 0 {
		return fmt.Errorf("strings of a relation: %w", ErrOutOfMemory)
	}
	return nil
}

func fillUUID(v bind.Vector, arr arrow.Array, at int) error {
	a, ok := arr.(*array.FixedSizeBinary)
	if !ok || a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth != 16 {
		return fmt.Errorf("%w: uuid stored as %s", ErrUnsupportedType, arr.DataType())
	}
	dst := slice[hugeint](v, at, a.Len())
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		lo, hi := UUID(a.Value(i)).halves()
		dst[i] = hugeint{lo: lo, hi: hi ^ 1<<63}
	}
	return nil
}

func fillDictionary(v bind.Vector, a *array.Dictionary, at int) error {
	// Dictionaries are rare and small: build the plain array, then copy it.
	idx := make([]int, a.Len())
	for i := range idx {
		idx[i] = -1
		if a.IsValid(i) {
			idx[i] = a.GetValueIndex(i)
		}
	}
	for i, k := range idx {
		if k < 0 || a.Dictionary().IsNull(k) {
			bind.VectorEnsureValidityWritable(v)
			bind.ValiditySetRowInvalid(bind.VectorGetValidity(v), bind.IdxT(at+i))
			continue
		}
		one := array.NewSlice(a.Dictionary(), int64(k), int64(k+1))
		err := fillVector(v, one, at+i)
		one.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func fillStruct(v bind.Vector, a *array.Struct, at int) error {
	for i := range a.NumField() {
		c := bind.StructVectorGetChild(v, bind.IdxT(i))
		// Field(i) is already cut to the struct's slice.
		if err := fillVector(c, a.Field(i), at); err != nil {
			return err
		}
		// DuckDB reads a field without looking at the struct: a NULL struct has NULL fields.
		if a.NullN() > 0 {
			clearChildren(c, a, at)
		}
	}
	return nil
}

func clearChildren(c bind.Vector, parent arrow.Array, at int) {
	bind.VectorEnsureValidityWritable(c)
	mask := bind.VectorGetValidity(c)
	words := unsafe.Slice((*byte)(mask), (at+parent.Len()+63)/64*8)
	for i := range parent.Len() {
		if parent.IsNull(i) {
			bitutil.ClearBit(words, at+i)
		}
	}
}

// fillList appends the elements to the child vector and points the entries at them. values may be longer than the slice.
func fillList(v bind.Vector, a array.ListLike, values arrow.Array, at int) error {
	n := a.Len()
	base := int(bind.ListVectorGetSize(v))
	first, last := int64(-1), int64(0)
	for i := range n {
		if from, to := a.ValueOffsets(i); to > from && a.IsValid(i) {
			if first < 0 {
				first = from
			}
			last = max(last, to)
		}
	}
	first = max(first, 0)
	total := base + int(last-first)
	if bind.ListVectorReserve(v, bind.IdxT(total)) == bind.StateError || bind.ListVectorSetSize(v, bind.IdxT(total)) == bind.StateError {
		return fmt.Errorf("list of %d elements: %w", total, ErrOutOfMemory)
	}
	entries := slice[listEntry](v, at, n)
	for i := range n {
		entries[i] = listEntry{offset: uint64(base)}
		if from, to := a.ValueOffsets(i); to > from && a.IsValid(i) {
			entries[i] = listEntry{offset: uint64(base) + uint64(from-first), length: uint64(to - from)}
		}
	}
	elems := array.NewSlice(values, first, last)
	defer elems.Release()
	return fillVector(bind.ListVectorGetChild(v), elems, base)
}
