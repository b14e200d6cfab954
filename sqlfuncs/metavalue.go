package sqlfuncs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Values of partitions and bounds as JSON: numbers and booleans as they are, all else as PostgreSQL writes it in text.

// jsonOf is the JSON text of v; keys are sorted.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(b)
}

// plainValue is an Iceberg value (of a partition or a bound) for JSON.
func plainValue(v any) any {
	switch x := v.(type) {
	case nil, bool, int32, int64, int, string:
		return x
	case float32:
		return plainFloat(float64(x), 32)
	case float64:
		return plainFloat(x, 64)
	case iceberg.Date:
		return time.Unix(int64(x)*86400, 0).UTC().Format("2006-01-02")
	case iceberg.Time:
		return time.UnixMicro(int64(x)).UTC().Format("15:04:05.999999")
	case iceberg.Timestamp:
		return time.UnixMicro(int64(x)).UTC().Format("2006-01-02 15:04:05.999999")
	case iceberg.TimestampNano:
		return time.Unix(0, int64(x)).UTC().Format("2006-01-02 15:04:05.999999999")
	case iceberg.Decimal:
		return x.String()
	case uuid.UUID:
		return x.String()
	case []byte:
		return hexText(x)
	case fmt.Stringer:
		return x.String()
	}
	return fmt.Sprint(v)
}

func plainFloat(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}

func hexText(b []byte) string { return `\x` + hex.EncodeToString(b) }

// plainBound reads a bound of a column. What cannot be read is shown in hex.
func plainBound(t iceberg.Type, b []byte) any {
	if b == nil {
		return nil
	}
	if _, ok := t.(iceberg.PrimitiveType); !ok {
		return hexText(b)
	}
	lit, err := iceberg.LiteralFromBytes(widened(t, b), b)
	if err != nil {
		return hexText(b)
	}
	if _, zoned := t.(iceberg.TimestampTzType); zoned {
		return fmt.Sprint(plainValue(lit.Any())) + "+00"
	}
	return plainValue(lit.Any())
}

// widened is the type in which a bound was written: before a promotion it was narrower.
func widened(t iceberg.Type, b []byte) iceberg.Type {
	if len(b) == 4 {
		switch t.(type) {
		case iceberg.Int64Type:
			return iceberg.PrimitiveTypes.Int32
		case iceberg.Float64Type:
			return iceberg.PrimitiveTypes.Float32
		}
	}
	return t
}

// plainPartition is a partition as an object of its fields.
func plainPartition(spec *iceberg.PartitionSpec, values map[int]any) map[string]any {
	out := map[string]any{}
	if spec == nil {
		return out
	}
	for _, f := range spec.Fields() {
		out[f.Name] = plainValue(values[f.FieldID])
	}
	return out
}

// plainCounts is a map of field id → count, nil when there is none.
func plainCounts(m map[int]int64) any {
	if m == nil {
		return nil
	}
	out := map[string]int64{}
	for id, n := range m {
		out[strconv.Itoa(id)] = n
	}
	return out
}

func plainBytes(m map[int][]byte) any {
	if m == nil {
		return nil
	}
	out := map[string]string{}
	for id, b := range m {
		out[strconv.Itoa(id)] = hexText(b)
	}
	return out
}

// readableMetrics are a file's statistics by column name, bounds as values.
func readableMetrics(sc *iceberg.Schema, f iceberg.DataFile) map[string]any {
	out := map[string]any{}
	count := func(m map[int]int64, id int) any {
		if n, ok := m[id]; ok {
			return n
		}
		return nil
	}
	sizes, values, nulls, nans := f.ColumnSizes(), f.ValueCounts(), f.NullValueCounts(), f.NaNValueCounts()
	lower, upper := f.LowerBoundValues(), f.UpperBoundValues()
	for _, c := range sc.Fields() {
		out[c.Name] = map[string]any{
			"column_size": count(sizes, c.ID), "value_count": count(values, c.ID), "null_value_count": count(nulls, c.ID), "nan_value_count": count(nans, c.ID),
			"lower_bound": plainBound(c.Type, lower[c.ID]), "upper_bound": plainBound(c.Type, upper[c.ID]),
		}
	}
	return out
}
