package warehouse

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// InfiniteError is returned when a date or a timestamp is infinite (SQLSTATE 22008): Iceberg has no such values, and other engines would
// read a date in the far future. Nothing of the batch was written.
type InfiniteError struct {
	Schema string // namespace, levels joined by "."
	Table  string
	Column string
	Value  string // infinity or -infinity
}

func (e *InfiniteError) Error() string {
	return fmt.Sprintf("%s cannot be stored in column %q of relation %q", e.Value, e.Column, e.Table)
}

// checkFinite refuses infinite dates and timestamps. The values that stand for them are those of DuckDB and of pgenc: the greatest integer
// and its negative; the least one is none that arithmetic yields.
func (t *TxTable) checkFinite(rec arrow.RecordBatch) error {
	for i, f := range t.schema.Fields() {
		if v := infiniteIn(rec.Column(i)); v != "" {
			return &InfiniteError{Schema: t.schemaName(), Table: t.name(), Column: f.Name, Value: v}
		}
	}
	return nil
}

// infiniteIn names the first infinite value of an array or, of a list, of its elements; "" when there is none.
func infiniteIn(a arrow.Array) string {
	switch a := a.(type) {
	case *array.Date32:
		for i, v := range a.Date32Values() {
			if (v == math.MaxInt32 || v <= -math.MaxInt32) && a.IsValid(i) {
				return infinityText(v > 0)
			}
		}
	case *array.Timestamp:
		for i, v := range a.TimestampValues() {
			if (v == math.MaxInt64 || v <= -math.MaxInt64) && a.IsValid(i) {
				return infinityText(v > 0)
			}
		}
	case *array.List:
		switch a.ListValues().DataType().ID() {
		case arrow.DATE32, arrow.TIMESTAMP:
		default:
			return ""
		}
		for i := range a.Len() {
			if from, to := a.ValueOffsets(i); a.IsValid(i) && to > from {
				part := array.NewSlice(a.ListValues(), from, to)
				v := infiniteIn(part)
				part.Release()
				if v != "" {
					return v
				}
			}
		}
	}
	return ""
}

func infinityText(positive bool) string {
	if positive {
		return "infinity"
	}
	return "-infinity"
}
