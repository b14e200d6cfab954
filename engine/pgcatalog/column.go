package pgcatalog

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowTypes maps the DuckDB types that catalog columns have to the Arrow types of their values.
var arrowTypes = map[string]arrow.DataType{
	"BOOLEAN":       arrow.FixedWidthTypes.Boolean,
	"SMALLINT":      arrow.PrimitiveTypes.Int16,
	"INTEGER":       arrow.PrimitiveTypes.Int32,
	"BIGINT":        arrow.PrimitiveTypes.Int64,
	"FLOAT":         arrow.PrimitiveTypes.Float32,
	"DOUBLE":        arrow.PrimitiveTypes.Float64,
	"VARCHAR":       arrow.BinaryTypes.String,
	"BLOB":          arrow.BinaryTypes.Binary,
	"TIMESTAMPTZ":   arrow.FixedWidthTypes.Timestamp_us,
	"INTERVAL":      arrow.FixedWidthTypes.MonthDayNanoInterval,
	"DECIMAL(38,9)": &arrow.Decimal128Type{Precision: 38, Scale: 9},
}

func arrowType(duck string) arrow.DataType {
	if elem, ok := strings.CutSuffix(duck, "[]"); ok {
		return arrow.ListOf(arrowType(elem))
	}
	if t, ok := arrowTypes[duck]; ok {
		return t
	}
	return arrow.BinaryTypes.String
}

// arrowSchema is the schema of a relation's batches, hidden columns included.
func arrowSchema(r *SystemRelation) *arrow.Schema {
	fields := make([]arrow.Field, len(r.Columns))
	for i, c := range r.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.DuckType), Nullable: !c.NotNull}
	}
	return arrow.NewSchema(fields, nil)
}

// appendText appends a value that PostgreSQL printed.
func appendText(b array.Builder, text string) error {
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(text)
	case *array.BooleanBuilder:
		b.Append(text == "t")
	case *array.Int16Builder:
		v, err := strconv.ParseInt(text, 10, 16)
		b.Append(int16(v))
		return err
	case *array.Int32Builder:
		v, err := strconv.ParseInt(text, 10, 32)
		b.Append(int32(v))
		return err
	case *array.Int64Builder:
		v, err := strconv.ParseInt(text, 10, 64)
		b.Append(v)
		return err
	case *array.Float32Builder:
		v, err := strconv.ParseFloat(text, 32)
		b.Append(float32(v))
		return err
	case *array.Float64Builder:
		v, err := strconv.ParseFloat(text, 64)
		b.Append(v)
		return err
	case *array.TimestampBuilder:
		t, err := time.Parse("2006-01-02 15:04:05.999999-07", text)
		b.Append(arrow.Timestamp(t.UnixMicro()))
		return err
	case *array.BinaryBuilder:
		v, err := hex.DecodeString(strings.TrimPrefix(text, `\x`))
		b.Append(v)
		return err
	case *array.MonthDayNanoIntervalBuilder:
		d, err := parseHours(text)
		b.Append(arrow.MonthDayNanoInterval{Nanoseconds: int64(d)})
		return err
	case *array.ListBuilder:
		return appendTextList(b, text)
	default:
		return fmt.Errorf("no text form of %T", b)
	}
	return nil
}

// parseHours reads an interval that has only a time: "-04:30:00".
func parseHours(text string) (time.Duration, error) {
	digits, negative := strings.CutPrefix(text, "-")
	var h, m, s time.Duration
	if _, err := fmt.Sscanf(digits, "%d:%d:%d", &h, &m, &s); err != nil {
		return 0, fmt.Errorf("interval %q: %w", text, err)
	}
	d := h*time.Hour + m*time.Minute + s*time.Second
	if negative {
		d = -d
	}
	return d, nil
}

// appendTextList appends an array literal, or the blank-separated form of int2vector and oidvector.
func appendTextList(b *array.ListBuilder, text string) error {
	b.Append(true)
	elems := strings.Fields(text)
	if strings.HasPrefix(text, "{") {
		list, err := splitArray(text)
		if err != nil {
			return err
		}
		for _, e := range list {
			if e == nil {
				b.ValueBuilder().AppendNull()
			} else if err := appendText(b.ValueBuilder(), *e); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range elems {
		if err := appendText(b.ValueBuilder(), e); err != nil {
			return err
		}
	}
	return nil
}

// splitArray splits a one-dimensional array literal; an unquoted NULL is nil.
func splitArray(text string) ([]*string, error) {
	if !strings.HasPrefix(text, "{") || !strings.HasSuffix(text, "}") {
		return nil, fmt.Errorf("array literal %q", text)
	}
	body := text[1 : len(text)-1]
	var out []*string
	for len(body) > 0 {
		var sb strings.Builder
		quoted := body[0] == '"'
		i := 0
		if quoted {
			i = 1
		}
		for ; i < len(body); i++ {
			c := body[i]
			if c == '\\' && i+1 < len(body) {
				i++
				sb.WriteByte(body[i])
				continue
			}
			if quoted && c == '"' || !quoted && c == ',' {
				break
			}
			sb.WriteByte(c)
		}
		if quoted {
			i++
		}
		v := sb.String()
		if !quoted && v == "NULL" {
			out = append(out, nil)
		} else {
			out = append(out, &v)
		}
		if i >= len(body) {
			break
		}
		if body[i] != ',' {
			return nil, fmt.Errorf("array literal %q", text)
		}
		body = body[i+1:]
	}
	return out, nil
}

// appendValue appends a Go value: nil, bool, byte ("char"), int16, int32, int64, uint32 (OIDs), int, float64, string, []byte,
// time.Time (zero is NULL), []string, []int16, []uint32.
func appendValue(b array.Builder, v any) error {
	switch v := v.(type) {
	case nil:
		b.AppendNull()
	case bool:
		b.(*array.BooleanBuilder).Append(v)
	case byte:
		b.(*array.StringBuilder).Append(string(rune(v)))
	case string:
		b.(*array.StringBuilder).Append(v)
	case []byte:
		b.(*array.BinaryBuilder).Append(v)
	case uint32:
		return appendInt(b, int64(v))
	case int:
		return appendInt(b, int64(v))
	case int16:
		return appendInt(b, int64(v))
	case int32:
		return appendInt(b, int64(v))
	case int64:
		return appendInt(b, v)
	case float64:
		return appendFloat(b, v)
	case time.Time:
		if v.IsZero() {
			b.AppendNull()
		} else {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
		}
	case []string:
		return appendSlice(b, v)
	case []int16:
		return appendSlice(b, v)
	case []uint32:
		return appendSlice(b, v)
	case time.Duration:
		b.(*array.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Nanoseconds: int64(v)})
	default:
		return fmt.Errorf("no catalog value %T", v)
	}
	return nil
}

func appendInt(b array.Builder, v int64) error {
	switch b := b.(type) {
	case *array.Int16Builder:
		b.Append(int16(v))
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(v)
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(v).Mul(decimal128.FromI64(1_000_000_000)))
	default:
		return appendFloat(b, float64(v))
	}
	return nil
}

func appendFloat(b array.Builder, v float64) error {
	switch b := b.(type) {
	case *array.Float32Builder:
		b.Append(float32(v))
	case *array.Float64Builder:
		b.Append(v)
	default:
		return fmt.Errorf("number for a %T", b)
	}
	return nil
}

// appendSlice appends a list; a nil slice is NULL, an empty one an empty list.
func appendSlice[T any](b array.Builder, v []T) error {
	list, ok := b.(*array.ListBuilder)
	if !ok {
		return fmt.Errorf("list for a %T", b)
	}
	if v == nil {
		list.AppendNull()
		return nil
	}
	list.Append(true)
	for _, e := range v {
		if err := appendValue(list.ValueBuilder(), e); err != nil {
			return err
		}
	}
	return nil
}

// staticBatch makes the Arrow form of a relation's static rows.
func staticBatch(r *SystemRelation, t *textTable) (arrow.RecordBatch, error) {
	schema := arrowSchema(r)
	columns := make([]arrow.Array, len(r.Columns))
	for i := range r.Columns {
		b := array.NewBuilder(memory.DefaultAllocator, schema.Field(i).Type)
		b.Reserve(t.rows)
		for row := range t.rows {
			if err := appendStaticCell(b, r, t, i, row); err != nil {
				return nil, fmt.Errorf("%w: %s.%s, row %d: %w", ErrStatic, r.Name, r.Columns[i].Name, row, err)
			}
		}
		columns[i] = b.NewArray()
	}
	return array.NewRecordBatch(schema, columns, int64(t.rows)), nil
}

func appendStaticCell(b array.Builder, r *SystemRelation, t *textTable, col, row int) error {
	if r.Columns[col].Hidden {
		return appendValue(b, systemValue(r, r.Columns[col].AttNum, row))
	}
	v := t.columns[col][row]
	if v == nil {
		b.AppendNull()
		return nil
	}
	return appendText(b, *v)
}

// systemValue is a system column's value in a row: what a frozen row of PostgreSQL shows.
func systemValue(r *SystemRelation, attnum int16, row int) any {
	switch attnum {
	case -6:
		return r.OID
	case -2:
		return 3
	case -1:
		return "(" + strconv.Itoa(row/64) + "," + strconv.Itoa(row%64+1) + ")"
	}
	return 0
}
