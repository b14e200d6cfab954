package duck

import (
	"encoding/binary"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

const maxDims = 6 // PostgreSQL's MAXDIM

// array encodes a LIST, a nested one as an array of several dimensions.
func (e *encoder) array(t *logical, elemOID uint32) (encodeFunc, error) {
	inner, dims := t, 0
	for inner.id == bind.TypeList || inner.id == bind.TypeArray {
		inner = inner.child[0]
		dims++
	}
	if dims > maxDims {
		return nil, pgerr.Newf(pgerr.ProgramLimitExceeded, "number of array dimensions (%d) exceeds the maximum allowed (%d)", dims, maxDims)
	}
	elem, err := e.element(inner, elemOID)
	if err != nil {
		return nil, err
	}
	if e.binary {
		return arrayBinary(elem, elemOID, dims), nil
	}
	delim := byte(',')
	if p, ok := pgtype.ByOID(elemOID); ok && p.Delim != 0 {
		delim = p.Delim
	}
	quote := !(integral(elemOID) || elemOID == pgtype.Float4 || elemOID == pgtype.Float8 || elemOID == pgtype.Numeric ||
		elemOID == pgtype.Bool || elemOID == pgtype.UUID || elemOID == pgtype.Date)
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		shape, n, err := arrayShape(v, row, dims)
		if err != nil {
			return dst, err
		}
		if n == 0 {
			return append(dst, "{}"...), nil
		}
		return appendArrayText(dst, v, row, shape[:dims], elem, delim, quote)
	}, nil
}

// element is the function for a leaf, through which inlined kinds go too.
func (e *encoder) element(t *logical, oid uint32) (encodeFunc, error) {
	f, err := e.field(t, oid)
	if err != nil || f.fn != nil {
		return f.fn, err
	}
	switch f.kind {
	case kindBool:
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return pgenc.AppendBool(dst, at[uint8](v, row) != 0), nil
		}, nil
	case kindBytes:
		return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }, nil
	}
	return e.function(t, oid)
}

// arrayShape finds the lengths of the dimensions and the number of elements; a ragged nested list is no array.
func arrayShape(v *vec, row, dims int) (shape [maxDims]int32, n int, err error) {
	for i := range shape {
		shape[i] = -1
	}
	if err = measure(v, row, 0, dims, &shape); err != nil {
		return shape, 0, err
	}
	n = 1
	for _, s := range shape[:dims] {
		n *= int(max(s, 0))
	}
	return shape, n, nil
}

func measure(v *vec, row, dim, dims int, shape *[maxDims]int32) error {
	from, to := v.list(row)
	if n := int32(to - from); shape[dim] < 0 {
		shape[dim] = n
	} else if shape[dim] != n {
		return ragged()
	}
	if dim+1 == dims {
		return nil
	}
	c := &v.child[0]
	for i := from; i < to; i++ {
		if c.null(i) {
			return ragged()
		}
		if err := measure(c, i, dim+1, dims, shape); err != nil {
			return err
		}
	}
	return nil
}

func ragged() error {
	return pgerr.New("2202E", "multidimensional arrays must have array expressions with matching dimensions")
}

func appendArrayText(dst []byte, v *vec, row int, shape []int32, elem encodeFunc, delim byte, quote bool) ([]byte, error) {
	dst = append(dst, '{')
	from, to := v.list(row)
	c := &v.child[0]
	var err error
	for i := from; i < to; i++ {
		if i > from {
			dst = append(dst, delim)
		}
		switch {
		case len(shape) > 1:
			dst, err = appendArrayText(dst, c, i, shape[1:], elem, delim, quote)
		case c.null(i):
			dst = append(dst, "NULL"...)
		default:
			start := len(dst)
			dst, err = elem(dst, c, i)
			if quote {
				dst = pgenc.QuoteArrayElem(dst, start, delim)
			}
		}
		if err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

func arrayBinary(elem encodeFunc, elemOID uint32, dims int) encodeFunc {
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		shape, n, err := arrayShape(v, row, dims)
		if err != nil {
			return dst, err
		}
		if n == 0 {
			return pgenc.AppendArrayHeader(dst, elemOID, false), nil
		}
		var ds [maxDims]pgenc.ArrayDim
		for i := range dims {
			ds[i] = pgenc.ArrayDim{Len: shape[i], LowerBound: 1}
		}
		flag := len(dst) + 7
		dst = pgenc.AppendArrayHeader(dst, elemOID, false, ds[:dims]...)
		nulls := false
		dst, err = appendArrayElems(dst, v, row, dims, elem, &nulls)
		if nulls {
			dst[flag] = 1
		}
		return dst, err
	}
}

func appendArrayElems(dst []byte, v *vec, row, dims int, elem encodeFunc, nulls *bool) ([]byte, error) {
	from, to := v.list(row)
	c := &v.child[0]
	var err error
	for i := from; i < to && err == nil; i++ {
		switch {
		case dims > 1:
			dst, err = appendArrayElems(dst, c, i, dims-1, elem, nulls)
		case c.null(i):
			*nulls = true
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
		default:
			start := len(dst)
			if dst, err = elem(append(dst, 0, 0, 0, 0), c, i); err == nil {
				binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
			}
		}
	}
	return dst, err
}

// vector encodes a LIST as int2vector or oidvector: text is "1 2 3", binary is a 0-based array.
func (e *encoder) vector(t *logical, oid uint32) (encodeFunc, error) {
	elemOID := pgtype.OID
	if oid == pgtype.Int2Vector {
		elemOID = pgtype.Int2
	}
	elem, err := e.element(t.child[0], elemOID)
	if err != nil {
		return nil, err
	}
	if e.binary {
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			from, to := v.list(row)
			nulls := false
			dst = pgenc.AppendArrayHeader(dst, elemOID, false, pgenc.ArrayDim{Len: int32(to - from)})
			return appendArrayElems(dst, v, row, 1, elem, &nulls)
		}, nil
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		from, to := v.list(row)
		var err error
		for i := from; i < to && err == nil; i++ {
			if i > from {
				dst = append(dst, ' ')
			}
			dst, err = elem(dst, &v.child[0], i)
		}
		return dst, err
	}, nil
}
