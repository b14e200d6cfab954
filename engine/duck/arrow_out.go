package duck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgenc"
)

// arrowType is the Arrow type a DuckDB type travels as: fixed width types as themselves, HUGEINT as decimal128(38,0),
// INTERVAL as its ISO 8601 text (how data files keep it), JSON, ENUM, BIT and TIMETZ as text.
func (t *logical) arrowType() (arrow.DataType, error) {
	switch t.id {
	case bind.TypeBoolean:
		return arrow.FixedWidthTypes.Boolean, nil
	case bind.TypeTime:
		return arrow.FixedWidthTypes.Time64us, nil
	case bind.TypeTimestamp, bind.TypeTimestampS, bind.TypeTimestampMS:
		return &arrow.TimestampType{Unit: arrow.Microsecond}, nil
	case bind.TypeTimestampNS:
		return &arrow.TimestampType{Unit: arrow.Nanosecond}, nil
	case bind.TypeTimestampTZ:
		return arrow.FixedWidthTypes.Timestamp_us, nil
	case bind.TypeHugeInt, bind.TypeUHugeInt:
		return &arrow.Decimal128Type{Precision: 38}, nil
	case bind.TypeDecimal:
		return &arrow.Decimal128Type{Precision: int32(t.width), Scale: int32(t.scale)}, nil
	case bind.TypeBlob:
		return arrow.BinaryTypes.Binary, nil
	case bind.TypeUUID:
		return extensions.NewUUIDType(), nil
	case bind.TypeVarchar, bind.TypeEnum, bind.TypeInterval, bind.TypeBit, bind.TypeTimeTZ, bind.TypeSQLNull:
		return arrow.BinaryTypes.String, nil
	case bind.TypeList, bind.TypeArray:
		e, err := t.child[0].arrowType()
		if err != nil {
			return nil, err
		}
		return arrow.ListOfField(arrow.Field{Name: "element", Type: e, Nullable: true}), nil
	case bind.TypeStruct:
		fields := make([]arrow.Field, len(t.child))
		for i, c := range t.child {
			ct, err := c.arrowType()
			if err != nil {
				return nil, err
			}
			fields[i] = arrow.Field{Name: t.names[i], Type: ct, Nullable: true}
		}
		return arrow.StructOf(fields...), nil
	case bind.TypeMap:
		k, err := t.child[0].arrowType()
		if err != nil {
			return nil, err
		}
		v, err := t.child[1].arrowType()
		if err != nil {
			return nil, err
		}
		return arrow.MapOf(k, v), nil
	}
	for at, dt := range fixedTypes {
		if dt == t.id {
			return fixedArrow[at], nil
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrUnsupportedType, t.name)
}

var fixedArrow = map[arrow.Type]arrow.DataType{
	arrow.INT8: arrow.PrimitiveTypes.Int8, arrow.INT16: arrow.PrimitiveTypes.Int16, arrow.INT32: arrow.PrimitiveTypes.Int32,
	arrow.INT64: arrow.PrimitiveTypes.Int64, arrow.UINT8: arrow.PrimitiveTypes.Uint8, arrow.UINT16: arrow.PrimitiveTypes.Uint16,
	arrow.UINT32: arrow.PrimitiveTypes.Uint32, arrow.UINT64: arrow.PrimitiveTypes.Uint64, arrow.FLOAT32: arrow.PrimitiveTypes.Float32,
	arrow.FLOAT64: arrow.PrimitiveTypes.Float64, arrow.DATE32: arrow.FixedWidthTypes.Date32,
}

// ArrowSchema is the schema of NextBatch's batches, while Resolved.
func (s *Stmt) ArrowSchema() (*arrow.Schema, error) { return arrowSchema(s.columns, s.types) }

// Schema is the schema of NextBatch's batches.
func (r *Rows) Schema() (*arrow.Schema, error) { return arrowSchema(r.columns, r.types) }

func arrowSchema(columns []Column, types []*logical) (*arrow.Schema, error) {
	fields := make([]arrow.Field, len(types))
	for i, t := range types {
		at, err := t.arrowType()
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", columns[i].Name, err)
		}
		fields[i] = arrow.Field{Name: columns[i].Name, Type: at, Nullable: true}
	}
	return arrow.NewSchema(fields, nil), nil
}

// NextBatch returns the rest of the current chunk, or the next one, as an Arrow batch of copies, which the caller releases. io.EOF
// ends the stream. Cancelling ctx stops the statement, as that of Query does.
func (r *Rows) NextBatch(ctx context.Context) (arrow.RecordBatch, error) {
	if ctx.Err() != nil {
		return nil, MapError(context.Cause(ctx))
	}
	if err := r.moreUnder(ctx); err != nil {
		return nil, err
	}
	schema, err := r.Schema()
	if err != nil {
		return nil, err
	}
	cols := make([]arrow.Array, len(r.cols))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i := range r.cols {
		d, err := r.cols[i].arrowData(r.next, r.size)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", r.columns[i].Name, err)
		}
		cols[i] = array.MakeFromData(d)
		d.Release()
	}
	n := r.size - r.next
	r.next = r.size
	return array.NewRecordBatch(schema, cols, int64(n)), nil
}

// moreUnder is more with a second context.
func (r *Rows) moreUnder(ctx context.Context) error {
	if ctx == r.ctx || ctx.Done() == nil || r.next < r.size {
		return r.more()
	}
	defer r.watch.on(ctx)()
	err := r.more()
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() != nil {
		return MapError(context.Cause(ctx))
	}
	return err
}

// arrowData copies rows [from, to).
func (v *vec) arrowData(from, to int) (arrow.ArrayData, error) {
	t, err := v.t.arrowType()
	if err != nil {
		return nil, err
	}
	n := to - from
	valid, nulls := v.arrowValidity(from, to)
	switch v.t.id {
	case bind.TypeStruct:
		return v.arrowStruct(t, from, to, valid, nulls)
	case bind.TypeList, bind.TypeArray, bind.TypeMap:
		return v.arrowList(t, from, to, valid, nulls)
	case bind.TypeVarchar, bind.TypeBlob, bind.TypeEnum, bind.TypeInterval, bind.TypeBit, bind.TypeTimeTZ, bind.TypeSQLNull:
		return v.arrowStrings(t, from, to, valid, nulls)
	}
	var buf []byte
	switch v.t.id {
	case bind.TypeBoolean:
		buf = make([]byte, bitutil.BytesForBits(int64(n)))
		for i := range n {
			bitutil.SetBitTo(buf, i, at[uint8](v, from+i) != 0)
		}
	case bind.TypeTimestampS, bind.TypeTimestampMS:
		buf = make([]byte, n*8)
		for i := range n {
			*(*int64)(unsafe.Pointer(&buf[i*8])) = v.micros(from + i)
		}
	case bind.TypeDecimal, bind.TypeHugeInt, bind.TypeUHugeInt:
		buf = make([]byte, n*16)
		for i := range n {
			if v.null(from + i) {
				continue
			}
			hi, lo := v.wide(from + i)
			d := decimal128.New(hi, lo)
			if v.t.id != bind.TypeDecimal && (v.t.id == bind.TypeUHugeInt && hi < 0 || !d.FitsInPrecision(38)) {
				return nil, numericTooWide()
			}
			*(*decimal128.Num)(unsafe.Pointer(&buf[i*16])) = d
		}
	case bind.TypeUUID:
		buf = make([]byte, n*16)
		for i := range n {
			u := v.uuid(from + i)
			copy(buf[i*16:], u[:])
		}
	default:
		w := t.(arrow.FixedWidthDataType).Bytes()
		buf = make([]byte, n*w)
		copy(buf, unsafe.Slice((*byte)(unsafe.Add(v.data, from*w)), n*w))
	}
	return array.NewData(t, n, []*memory.Buffer{valid, memory.NewBufferBytes(buf)}, nil, nulls, 0), nil
}

func (v *vec) arrowValidity(from, to int) (*memory.Buffer, int) {
	n := to - from
	if v.t.id == bind.TypeSQLNull {
		return memory.NewBufferBytes(make([]byte, bitutil.BytesForBits(int64(n)))), n
	}
	if v.valid == nil {
		return nil, 0
	}
	words := unsafe.Slice((*byte)(v.valid), (to+63)/64*8)
	set := bitutil.CountSetBits(words, from, n)
	if set == n {
		return nil, 0
	}
	buf := make([]byte, bitutil.BytesForBits(int64(n)))
	bitutil.CopyBitmap(words, from, n, buf, 0)
	return memory.NewBufferBytes(buf), n - set
}

func (v *vec) arrowStrings(t arrow.DataType, from, to int, valid *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	n := to - from
	offsets := make([]byte, (n+1)*4)
	off := unsafe.Slice((*int32)(unsafe.Pointer(&offsets[0])), n+1)
	size := 0
	if v.t.id == bind.TypeVarchar || v.t.id == bind.TypeBlob {
		for i := range n {
			if !v.null(from + i) {
				size += len(v.bytes(from + i))
			}
		}
	}
	data := make([]byte, 0, size)
	for i := range n {
		row := from + i
		if v.t.id != bind.TypeSQLNull && !v.null(row) {
			switch v.t.id {
			case bind.TypeEnum:
				data = append(data, v.t.enum[v.integer(row)]...)
			case bind.TypeInterval:
				x := at[interval](v, row)
				data = pgenc.AppendIntervalISO(data, pgenc.IntervalValue{Months: x.months, Days: x.days, Micros: x.micros})
			case bind.TypeBit:
				data = appendBits(data, v.bytes(row))
			case bind.TypeTimeTZ:
				micros, offset := timeTZ(at[uint64](v, row))
				data = pgenc.AppendTimeTZ(data, micros, offset)
			default:
				data = append(data, v.bytes(row)...)
			}
		}
		off[i+1] = int32(len(data))
	}
	if len(data) > 1<<31-1 {
		return nil, rowTooLarge()
	}
	return array.NewData(t, n, []*memory.Buffer{valid, memory.NewBufferBytes(offsets), memory.NewBufferBytes(data)}, nil, nulls, 0), nil
}

func (v *vec) arrowStruct(t arrow.DataType, from, to int, valid *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	children := make([]arrow.ArrayData, 0, len(v.child))
	defer func() {
		for _, c := range children {
			c.Release()
		}
	}()
	for i := range v.child {
		c, err := v.child[i].arrowData(from, to)
		if err != nil {
			return nil, err
		}
		children = append(children, c)
	}
	return array.NewData(t, to-from, []*memory.Buffer{valid}, children, nulls, 0), nil
}

// arrowList copies LIST, ARRAY and MAP. Entries may point anywhere into the child, in any order; when they do not follow each
// other, the elements are copied list by list.
func (v *vec) arrowList(t arrow.DataType, from, to int, valid *memory.Buffer, nulls int) (arrow.ArrayData, error) {
	n := to - from
	offsets := make([]byte, (n+1)*4)
	off := unsafe.Slice((*int32)(unsafe.Pointer(&offsets[0])), n+1)
	first, next, total, joined := -1, 0, 0, true
	for i := range n {
		if !v.null(from + i) {
			a, b := v.list(from + i)
			if b > a {
				if first < 0 {
					first, next = a, a
				}
				joined = joined && a == next
				next = b
				total += b - a
			}
		}
		off[i+1] = int32(total)
	}
	child, err := v.arrowElements(from, to, max(first, 0), next, joined)
	if err != nil {
		return nil, err
	}
	defer child.Release()
	return array.NewData(t, n, []*memory.Buffer{valid, memory.NewBufferBytes(offsets)}, []arrow.ArrayData{child}, nulls, 0), nil
}

func (v *vec) arrowElements(from, to, first, last int, joined bool) (arrow.ArrayData, error) {
	if joined {
		return v.arrowChild(first, last)
	}
	var parts []arrow.Array
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	for i := from; i < to; i++ {
		if v.null(i) {
			continue
		}
		a, b := v.list(i)
		d, err := v.arrowChild(a, b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, array.MakeFromData(d))
		d.Release()
	}
	all, err := array.Concatenate(parts, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	defer all.Release()
	d := all.Data()
	d.Retain()
	return d, nil
}

// arrowChild copies a list's elements; a map's are structs of key and value.
func (v *vec) arrowChild(a, b int) (arrow.ArrayData, error) {
	if v.t.id != bind.TypeMap {
		return v.child[0].arrowData(a, b)
	}
	k, err := v.child[0].arrowData(a, b)
	if err != nil {
		return nil, err
	}
	defer k.Release()
	val, err := v.child[1].arrowData(a, b)
	if err != nil {
		return nil, err
	}
	defer val.Release()
	kt := arrow.Field{Name: "key", Type: k.DataType()}
	vt := arrow.Field{Name: "value", Type: val.DataType(), Nullable: true}
	return array.NewData(arrow.StructOf(kt, vt), b-a, []*memory.Buffer{nil}, []arrow.ArrayData{k, val}, 0, 0), nil
}
