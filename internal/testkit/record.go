package testkit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Record is a row by field id: nil, bool, int64, float64, string, Decimal or, for a struct, Record. A field that is not there is absent from the file
// that holds the row, which is not the same as NULL.
type Record map[int]any

// Decimal is a decimal value as text, with all digits of its scale.
type Decimal string

// Clone is a copy.
func (r Record) Clone() Record { return maps.Clone(r) }

// As is the row under a schema (the spec's "Column Projection"): by field id, what is absent is the field's initial default or NULL. Types
// need no change: a promotion keeps values.
func (r Record) As(sc *iceberg.Schema) Record { return r.fields(sc.Fields()) }

func (r Record) fields(fields []iceberg.NestedField) Record {
	out := Record{}
	for _, f := range fields {
		v, ok := r[f.ID]
		switch st, nested := f.Type.(*iceberg.StructType); {
		case !ok:
			out[f.ID] = plain(f.InitialDefault)
		case nested && v != nil:
			out[f.ID] = v.(Record).fields(st.FieldList)
		default:
			out[f.ID] = v
		}
	}
	return out
}

// plain is a default as iceberg-go holds it in the types of a Record.
func plain(v any) any {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case iceberg.Decimal:
		return Decimal(v.Val.ToString(int32(v.Scale)))
	}
	return v
}

// Text writes the row's fields in the order of a schema, so that texts are equal when rows are identical: NULL = NULL, NaN = NaN, −0.0 and
// 0.0 differ, separators are escaped.
func (r Record) Text(sc *iceberg.Schema) string { return r.text(sc.Fields()) }

func (r Record) text(fields []iceberg.NestedField) string {
	row := r.fields(fields)
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = ValueText(row[f.ID])
	}
	return strings.Join(parts, "|")
}

// ValueText is one value of a Record as Text writes it.
func ValueText(v any) string {
	switch v := v.(type) {
	case nil:
		return "N"
	case string:
		return strconv.Quote(v)
	case float64:
		switch {
		case math.IsNaN(v):
			return "NaN"
		case v == 0 && math.Signbit(v):
			return "-0"
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	case Record: // a struct
		var parts []string
		for _, id := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, ValueText(v[id]))
		}
		return "{" + strings.Join(parts, "|") + "}"
	}
	return fmt.Sprint(v)
}

// Value is one cell of a column as a Record holds it; a struct's fields are found by their ids.
func Value(col arrow.Array, row int) any {
	if col.IsNull(row) {
		return nil
	}
	switch col := col.(type) {
	case *array.Int32:
		return int64(col.Value(row))
	case *array.Int64:
		return col.Value(row)
	case *array.Float32:
		return float64(col.Value(row))
	case *array.Float64:
		return col.Value(row)
	case *array.Boolean:
		return col.Value(row)
	case *array.String:
		return col.Value(row)
	case *array.LargeString:
		return col.Value(row)
	case *array.Decimal128:
		return Decimal(col.Value(row).ToString(col.DataType().(*arrow.Decimal128Type).Scale))
	case *array.Struct:
		out := Record{}
		for i, f := range col.DataType().(*arrow.StructType).Fields() {
			if id, ok := fieldID(f); ok {
				out[id] = Value(col.Field(i), row)
			}
		}
		return out
	}
	return col.ValueStr(row)
}

// fieldID is the Iceberg field id that a column carries.
func fieldID(f arrow.Field) (int, bool) {
	text, ok := f.Metadata.GetValue("PARQUET:field_id")
	if !ok {
		return 0, false
	}
	id, err := strconv.Atoi(text)
	return id, err == nil && id > 0
}

// Records is a batch of rows for a schema's Arrow schema; absent fields are NULL.
func Records(sc *iceberg.Schema, rows ...Record) arrow.RecordBatch {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		panic(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for i, f := range as.Fields() {
		id, _ := fieldID(f)
		for _, r := range rows {
			appendCell(b.Field(i), r[id])
		}
	}
	return b.NewRecordBatch()
}

func appendCell(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(int32(v.(int64)))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		t := b.Type().(*arrow.Decimal128Type)
		n, err := decimal128.FromString(string(v.(Decimal)), t.Precision, t.Scale)
		if err != nil {
			panic(err)
		}
		b.Append(n)
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range b.Type().(*arrow.StructType).Fields() {
			id, _ := fieldID(f)
			appendCell(b.FieldBuilder(i), v.(Record)[id])
		}
	default:
		appendValue(b, v)
	}
}
