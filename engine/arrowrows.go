package engine

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

// fieldEncoder appends one field's value without its length word.
type fieldEncoder func(dst []byte, row int) ([]byte, error)

// batchRows encodes a batch of stored values as DataRow messages, without DuckDB: the lookup path.
type batchRows struct {
	rec  arrow.RecordBatch
	encs []fieldEncoder
	next int
	// arrs are the columns behind encs where those are not the batch's from the first on, nil for values that are the same in every row; nulls are those of
	// them that are NULL.
	arrs  []arrow.Array
	nulls []bool
}

// newBatchRows takes over rec, whose columns cols describe from the first on.
func newBatchRows(rec arrow.RecordBatch, cols []pgwire.Column, st pgenc.Style) (*batchRows, error) {
	b := &batchRows{rec: rec, encs: make([]fieldEncoder, len(cols))}
	for i, c := range cols {
		e, err := columnEncoder(rec.Column(i), c, st)
		if err != nil {
			rec.Release()
			return nil, err
		}
		b.encs[i] = e
	}
	return b, nil
}

func (b *batchRows) appendRows(_ context.Context, dst []byte, limit int) ([]byte, int, bool, error) {
	n, rows := 0, int(b.rec.NumRows())
	for b.next < rows && (limit == 0 || n < limit) {
		var start, field int
		dst, start = pgenc.BeginDataRow(dst, len(b.encs))
		for i, enc := range b.encs {
			if b.isNull(i) {
				dst = pgenc.AppendNull(dst)
				continue
			}
			dst, field = pgenc.BeginField(dst)
			var err error
			if dst, err = enc(dst, b.next); err != nil {
				return dst[:start], n, false, err
			}
			dst = pgenc.EndField(dst, field)
		}
		dst = pgenc.EndDataRow(dst, start)
		b.next++
		n++
	}
	return dst, n, b.next >= rows, nil
}

func (b *batchRows) isNull(i int) bool {
	switch {
	case b.arrs == nil:
		return b.rec.Column(i).IsNull(b.next)
	case b.arrs[i] == nil:
		return b.nulls[i]
	}
	return b.arrs[i].IsNull(b.next)
}

func (b *batchRows) close() {
	if b.rec != nil {
		b.rec.Release()
		b.rec = nil
	}
}

// columnEncoder makes the encoder of one column of stored values.
func columnEncoder(a arrow.Array, c pgwire.Column, st pgenc.Style) (fieldEncoder, error) {
	binary := c.Format == 1
	if e := fastEncoder(a, c, st); e != nil {
		return e, nil
	}
	get, err := getter(a, c.TypeOID)
	if err != nil {
		return nil, err
	}
	format := pgenc.Text
	if binary {
		format = pgenc.Binary
	}
	return func(dst []byte, row int) ([]byte, error) {
		v, err := get(row)
		if err != nil {
			return dst, err
		}
		return pgenc.Append(dst, c.TypeOID, format, v, st)
	}, nil
}

// fastEncoder covers the types whose values need no boxing.
func fastEncoder(a arrow.Array, c pgwire.Column, st pgenc.Style) fieldEncoder {
	binary := c.Format == 1
	switch x := a.(type) {
	case *array.Int32:
		switch {
		case c.TypeOID != pgtype.Int4 && c.TypeOID != pgtype.Int2:
			return nil
		case !binary:
			return func(dst []byte, i int) ([]byte, error) { return pgenc.AppendInt(dst, int64(x.Value(i))), nil }
		case c.TypeOID == pgtype.Int2:
			return func(dst []byte, i int) ([]byte, error) { return pgenc.AppendInt2Binary(dst, int16(x.Value(i))), nil }
		}
		return func(dst []byte, i int) ([]byte, error) { return pgenc.AppendInt4Binary(dst, x.Value(i)), nil }
	case *array.Int64:
		if c.TypeOID != pgtype.Int8 {
			return nil
		}
		if binary {
			return func(dst []byte, i int) ([]byte, error) { return pgenc.AppendInt8Binary(dst, x.Value(i)), nil }
		}
		return func(dst []byte, i int) ([]byte, error) { return pgenc.AppendInt(dst, x.Value(i)), nil }
	case *array.String:
		switch c.TypeOID {
		case pgtype.Text, pgtype.Varchar, pgtype.BPChar, pgtype.Name, pgtype.JSON:
			return func(dst []byte, i int) ([]byte, error) { return append(dst, x.Value(i)...), nil }
		}
	case *array.Timestamp:
		switch {
		case binary:
			return func(dst []byte, i int) ([]byte, error) {
				return pgenc.AppendTimestampBinary(dst, int64(x.Value(i))), nil
			}
		case c.TypeOID == pgtype.TimestampTZ:
			return func(dst []byte, i int) ([]byte, error) { return st.AppendTimestampTZ(dst, int64(x.Value(i))), nil }
		}
		return func(dst []byte, i int) ([]byte, error) { return st.AppendTimestamp(dst, int64(x.Value(i))), nil }
	case *array.Decimal128:
		scale := x.DataType().(*arrow.Decimal128Type).Scale
		if c.TypeOID != pgtype.Numeric {
			return nil
		}
		if c.TypeMod < 0 {
			return trimmedNumeric(x, scale, binary)
		}
		if binary {
			return func(dst []byte, i int) ([]byte, error) {
				v := x.Value(i)
				return pgenc.AppendDecimalBinary(dst, v.HighBits(), v.LowBits(), scale), nil
			}
		}
		return func(dst []byte, i int) ([]byte, error) {
			v := x.Value(i)
			return pgenc.AppendDecimal(dst, v.HighBits(), v.LowBits(), scale), nil
		}
	}
	return nil
}

// trimmedNumeric shows a numeric column without declared scale: the zeros that storage added at the end are not part of the value.
func trimmedNumeric(x *array.Decimal128, scale int32, binary bool) fieldEncoder {
	return func(dst []byte, i int) ([]byte, error) {
		v, s := x.Value(i), scale
		hi, lo := v.HighBits(), v.LowBits()
		big := v.BigInt()
		for s > 0 {
			q, r := bigDivMod10(big)
			if r != 0 {
				break
			}
			big = q
			s--
		}
		if s != scale {
			hi, lo = bigHiLo(big)
		}
		if binary {
			return pgenc.AppendDecimalBinary(dst, hi, lo, s), nil
		}
		return pgenc.AppendDecimal(dst, hi, lo, s), nil
	}
}

// getter reads a value as pgenc's Go type.
func getter(a arrow.Array, oid uint32) (func(i int) (any, error), error) {
	switch x := a.(type) {
	case *array.Boolean:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Int32:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Int64:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Float32:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Float64:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.String:
		if oid == pgtype.Interval {
			return func(i int) (any, error) { return parseStoredInterval(x.Value(i)) }, nil
		}
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Binary:
		return func(i int) (any, error) { return x.Value(i), nil }, nil
	case *array.Date32:
		return func(i int) (any, error) { return pgenc.Date(x.Value(i)), nil }, nil
	case *array.Time64:
		return func(i int) (any, error) { return pgenc.Time(x.Value(i)), nil }, nil
	case *array.Timestamp:
		if oid == pgtype.TimestampTZ {
			return func(i int) (any, error) { return pgenc.TimestampTZ(x.Value(i)), nil }, nil
		}
		return func(i int) (any, error) { return pgenc.Timestamp(x.Value(i)), nil }, nil
	case *array.Decimal128:
		return func(i int) (any, error) {
			return pgenc.ParseNumeric([]byte(x.ValueStr(i)))
		}, nil
	case *array.FixedSizeBinary:
		return func(i int) (any, error) {
			if len(x.Value(i)) == 16 && oid == pgtype.UUID {
				return pgenc.UUID(x.Value(i)), nil
			}
			return x.Value(i), nil
		}, nil
	case *extensions.UUIDArray:
		return func(i int) (any, error) { return pgenc.UUID(x.Value(i)), nil }, nil
	case *array.List:
		return listGetter(x, oid)
	}
	return nil, pgerr.Newf(pgerr.FeatureNotSupported, "column of type %s cannot be looked up", a.DataType())
}

func listGetter(x *array.List, oid uint32) (func(i int) (any, error), error) {
	elem := pgtype.ElemOf(oid)
	get, err := getter(x.ListValues(), elem)
	if err != nil {
		return nil, err
	}
	return func(i int) (any, error) {
		from, to := x.ValueOffsets(i)
		out := pgenc.Array{ElemOID: elem}
		if to > from {
			out.Dims = []pgenc.ArrayDim{{Len: int32(to - from), LowerBound: 1}}
		}
		for k := from; k < to; k++ {
			if x.ListValues().IsNull(int(k)) {
				out.Elems = append(out.Elems, nil)
				continue
			}
			v, err := get(int(k))
			if err != nil {
				return nil, err
			}
			out.Elems = append(out.Elems, v)
		}
		return out, nil
	}, nil
}
