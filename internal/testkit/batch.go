package testkit

import (
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// Columns is a schema of "name type" columns, ids 1…n. Types are Iceberg's primitive names in lower case; "!" after one
// makes the column required. key names the identifier columns, which become required.
func Columns(key []string, cols ...string) *iceberg.Schema {
	fields := make([]iceberg.NestedField, len(cols))
	var ids []int
	for i, c := range cols {
		name, typ, _ := strings.Cut(c, " ")
		typ, required := strings.CutSuffix(typ, "!")
		fields[i] = iceberg.NestedField{ID: i + 1, Name: name, Type: primitive(typ), Required: required}
	}
	for _, k := range key {
		for i := range fields {
			if fields[i].Name == k {
				fields[i].Required = true
				ids = append(ids, fields[i].ID)
			}
		}
	}
	return iceberg.NewSchemaWithIdentifiers(0, ids, fields...)
}

func primitive(name string) iceberg.Type {
	for _, t := range []iceberg.Type{
		iceberg.PrimitiveTypes.Bool, iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Int64,
		iceberg.PrimitiveTypes.Float32, iceberg.PrimitiveTypes.Float64, iceberg.PrimitiveTypes.Date,
		iceberg.PrimitiveTypes.Time, iceberg.PrimitiveTypes.Timestamp, iceberg.PrimitiveTypes.TimestampTz,
		iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.Binary, iceberg.PrimitiveTypes.UUID,
	} {
		if t.String() == name {
			return t
		}
	}
	panic("testkit: unknown type " + name)
}

// Batch is a batch of rows for a table's schema. Values are nil, bool, int, float64, string, []byte or time.Time.
func Batch(sc *iceberg.Schema, rows ...[]any) arrow.RecordBatch {
	as, err := parquetio.ArrowSchema(sc, false)
	if err != nil {
		panic(err)
	}
	return ArrowBatch(as, rows...)
}

// ArrowBatch is Batch for an Arrow schema.
func ArrowBatch(as *arrow.Schema, rows ...[]any) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for _, row := range rows {
		if len(row) != as.NumFields() {
			panic(fmt.Sprintf("testkit: %d values for %d columns", len(row), as.NumFields()))
		}
		for i, v := range row {
			appendValue(b.Field(i), v)
		}
	}
	return b.NewRecordBatch()
}

func appendValue(b array.Builder, v any) {
	if v == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int32Builder:
		b.Append(int32(v.(int)))
	case *array.Int64Builder:
		b.Append(int64(v.(int)))
	case *array.Float32Builder:
		b.Append(float32(v.(float64)))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Date32Builder:
		b.Append(arrow.Date32FromTime(v.(time.Time)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(v.(time.Time).UnixMicro()))
	default:
		if s, ok := v.(string); ok {
			if err := b.AppendValueFromString(s); err != nil {
				panic(err)
			}
			return
		}
		panic(fmt.Sprintf("testkit: no value of %T for %s", v, b.Type()))
	}
}

// Text are the rows of a batch, one text each: values separated by "|", NULL as ␀.
func Text(rec arrow.RecordBatch) []string {
	out := make([]string, rec.NumRows())
	var b strings.Builder
	for r := range out {
		b.Reset()
		for c := range int(rec.NumCols()) {
			if c > 0 {
				b.WriteByte('|')
			}
			if col := rec.Column(c); col.IsNull(r) {
				b.WriteString("␀")
			} else {
				b.WriteString(col.ValueStr(r))
			}
		}
		out[r] = b.String()
	}
	return out
}
