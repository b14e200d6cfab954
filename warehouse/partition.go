package warehouse

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// router splits batches by partition. Each distinct partition costs one map entry; each row one transform per field.
type router struct {
	spec   iceberg.PartitionSpec
	fields []routerField
}

type routerField struct {
	id        int // partition field id
	transform iceberg.Transform
	column    int // of the table's schema
	source    iceberg.Type
}

// part is the rows of one partition.
type part struct {
	values map[int]any
	rows   []int64
}

func newRouter(sc *iceberg.Schema, spec iceberg.PartitionSpec) (*router, error) {
	r := &router{spec: spec}
	for _, f := range spec.Fields() {
		if _, void := f.Transform.(iceberg.VoidTransform); void {
			r.fields = append(r.fields, routerField{id: f.FieldID}) // always NULL; its source may be gone
			continue
		}
		ids := f.SourceIDs
		if len(ids) != 1 {
			return nil, fmt.Errorf("%w: partition field %s has %d source columns", ErrInvalidTable, f.Name, len(ids))
		}
		fields, cols, err := fieldsOf(sc, ids)
		if err != nil {
			return nil, fmt.Errorf("partition field %s: %w", f.Name, err)
		}
		r.fields = append(r.fields, routerField{f.FieldID, f.Transform, cols[0], fields[0].Type})
	}
	return r, nil
}

func (r *router) partitioned() bool { return len(r.fields) > 0 }

// split returns the partitions of rec in order of first appearance.
func (r *router) split(rec arrow.RecordBatch) ([]*part, error) {
	byKey := map[string]*part{}
	var out []*part
	for row := range int(rec.NumRows()) {
		values := make(map[int]any, len(r.fields))
		for _, f := range r.fields {
			v, err := f.value(rec, row)
			if err != nil {
				return nil, err
			}
			values[f.id] = v
		}
		key := partitionKey(int32(r.spec.ID()), values)
		p := byKey[key]
		if p == nil {
			p = &part{values: values}
			byKey[key] = p
			out = append(out, p)
		}
		p.rows = append(p.rows, int64(row))
	}
	return out, nil
}

func (f *routerField) value(rec arrow.RecordBatch, row int) (any, error) {
	if f.transform == nil {
		return nil, nil
	}
	a := rec.Column(f.column)
	lit, err := literalAt(a, row, f.source)
	if err != nil {
		return nil, err
	}
	if lit == nil {
		return nil, nil
	}
	out := f.transform.Apply(iceberg.Optional[iceberg.Literal]{Val: lit, Valid: true})
	if !out.Valid {
		return nil, nil
	}
	return out.Val.Any(), nil
}

// literalAt is a value as an Iceberg literal, nil for NULL.
func literalAt(a arrow.Array, row int, typ iceberg.Type) (iceberg.Literal, error) {
	if a.IsNull(row) {
		return nil, nil
	}
	if ext, ok := a.(array.ExtensionArray); ok {
		a = ext.Storage()
	}
	switch v := a.(type) {
	case *array.Boolean:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Int32:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Int64:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Float32:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Float64:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Date32:
		return iceberg.NewLiteral(iceberg.Date(v.Value(row))), nil
	case *array.Time64:
		return iceberg.NewLiteral(iceberg.Time(v.Value(row))), nil
	case *array.Timestamp:
		if v.DataType().(*arrow.TimestampType).Unit == arrow.Nanosecond {
			return iceberg.NewLiteral(iceberg.TimestampNano(v.Value(row))), nil
		}
		return iceberg.NewLiteral(iceberg.Timestamp(v.Value(row))), nil
	case *array.String:
		return iceberg.NewLiteral(v.Value(row)), nil
	case *array.Binary:
		return iceberg.NewLiteral(append([]byte(nil), v.Value(row)...)), nil
	case *array.FixedSizeBinary:
		if _, ok := typ.(iceberg.UUIDType); ok {
			return iceberg.NewLiteral(uuid.UUID(v.Value(row))), nil
		}
		return iceberg.NewLiteral(append([]byte(nil), v.Value(row)...)).To(typ)
	case *array.Decimal128:
		scale := int(v.DataType().(*arrow.Decimal128Type).Scale)
		return iceberg.NewLiteral(iceberg.Decimal{Val: decimal128.Num(v.Value(row)), Scale: scale}), nil
	}
	return nil, fmt.Errorf("%w: partition source of type %s", ErrInvalidTable, a.DataType())
}

// take returns the given rows of rec. The caller releases the result.
func take(ctx context.Context, rec arrow.RecordBatch, rows []int64) (arrow.RecordBatch, error) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.AppendValues(rows, nil)
	idx := b.NewArray()
	defer idx.Release()
	cols := make([]arrow.Array, rec.NumCols())
	defer releaseAll(cols)
	for i := range cols {
		c, err := compute.TakeArray(ctx, rec.Column(i), idx)
		if err != nil {
			return nil, fmt.Errorf("take rows: %w", err)
		}
		cols[i] = c
	}
	return array.NewRecordBatch(rec.Schema(), cols, int64(len(rows))), nil
}
