package warehouse

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// conform returns rec with exactly the columns of want, in its order: by name when every column of rec is named like
// one of want's, else by position. Columns that rec lacks are NULL; types are cast when no value is lost. The caller
// releases the result.
func conform(ctx context.Context, rec arrow.RecordBatch, want *arrow.Schema) (arrow.RecordBatch, error) {
	src := make([]int, want.NumFields())
	for i := range src {
		src[i] = -1
	}
	if !byName(rec.Schema(), want, src) {
		if int(rec.NumCols()) != want.NumFields() {
			return nil, fmt.Errorf("%w: %d columns, want %d", ErrSchemaMismatch, rec.NumCols(), want.NumFields())
		}
		for i := range src {
			src[i] = i
		}
	}
	cols := make([]arrow.Array, len(src))
	defer releaseAll(cols)
	for i, s := range src {
		f := want.Field(i)
		if s < 0 {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(rec.NumRows()))
			continue
		}
		c := rec.Column(s)
		if arrow.TypeEqual(c.DataType(), f.Type) {
			c.Retain()
			cols[i] = c
			continue
		}
		if cols[i] = rewrap(c, f.Type); cols[i] != nil {
			continue
		}
		cast, err := compute.CastArray(ctx, c, compute.SafeCastOptions(f.Type))
		if err != nil {
			return nil, fmt.Errorf("%w: column %s is %s, want %s: %w", ErrSchemaMismatch, f.Name, c.DataType(), f.Type, err)
		}
		cols[i] = cast
	}
	return array.NewRecordBatch(want, cols, rec.NumRows()), nil
}

// rewrap changes between an extension type and its storage; nil when that is not the difference.
func rewrap(c arrow.Array, want arrow.DataType) arrow.Array {
	if ext, ok := c.(array.ExtensionArray); ok {
		c = ext.Storage()
	}
	if arrow.TypeEqual(c.DataType(), want) {
		c.Retain()
		return c
	}
	if ext, ok := want.(arrow.ExtensionType); ok && arrow.TypeEqual(c.DataType(), ext.StorageType()) {
		return array.NewExtensionArrayWithStorage(ext, c)
	}
	return nil
}

func byName(have, want *arrow.Schema, src []int) bool {
	for i := range have.NumFields() {
		at := want.FieldIndices(have.Field(i).Name)
		if len(at) != 1 || src[at[0]] >= 0 {
			for j := range src {
				src[j] = -1
			}
			return false
		}
		src[at[0]] = i
	}
	return true
}

// checkNotNull refuses NULL in required top-level columns. rec has the schema's columns in order.
func (t *TxTable) checkNotNull(rec arrow.RecordBatch) error {
	if _, e := t.FirstNull(rec); e != nil {
		return e
	}
	return nil
}

// FirstNull finds the first row of rec with a NULL in a required column; nil when there is none. rec has the schema's columns in order.
func (t *TxTable) FirstNull(rec arrow.RecordBatch) (row int, e *NotNullError) {
	row, name := int(rec.NumRows()), ""
	for i, f := range t.schema.Fields() {
		if !f.Required || rec.Column(i).NullN() == 0 {
			continue
		}
		for r := range row { // the first such row, and its first such column
			if rec.Column(i).IsNull(r) {
				row, name = r, f.Name
				break
			}
		}
	}
	if name == "" {
		return row, nil
	}
	return row, &NotNullError{Schema: t.schemaName(), Table: t.name(), Column: name, Row: RowText(rec, row)}
}

// RowText is a row's values as PostgreSQL's DETAIL lines show them.
func RowText(rec arrow.RecordBatch, row int) []string {
	out := make([]string, rec.NumCols())
	for i, c := range rec.Columns() {
		out[i] = valueText(c, row)
	}
	return out
}

// encodeKeys encodes columns cols of every row of rec.
func encodeKeys(rec arrow.RecordBatch, cols []int, opts ...keyindex.Option) ([][]byte, error) {
	enc, err := keyindex.NewEncoder(rec, cols, opts...)
	if err != nil {
		return nil, err
	}
	n := int(rec.NumRows())
	keys := make([][]byte, n) // they point into the arena, or into one it outgrew
	arena := make([]byte, 0, n*(9*len(cols)+8))
	for row := range n {
		from := len(arena)
		grown, err := enc.Append(arena, row)
		if err != nil {
			return nil, err
		}
		keys[row], arena = grown[from:len(grown):len(grown)], grown
	}
	return keys, nil
}

// duplicate is the error for row's key of rec, whose columns cols are the identifier fields.
func (t *TxTable) duplicate(rec arrow.RecordBatch, cols []int, row int) *DuplicateKeyError {
	e := &DuplicateKeyError{Schema: t.schemaName(), Table: t.name(), Constraint: t.keyName(), Row: row}
	for i, c := range cols {
		e.Columns = append(e.Columns, t.keyFields[i].Name)
		e.Values = append(e.Values, valueText(rec.Column(c), row))
	}
	return e
}

// valueText is a value as PostgreSQL's DETAIL lines show it, for the types keys have.
func valueText(a arrow.Array, row int) string {
	if a.IsNull(row) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(row) {
			return "t"
		}
		return "f"
	case *array.Binary:
		return fmt.Sprintf("\\x%x", a.Value(row))
	case *array.FixedSizeBinary:
		return fmt.Sprintf("\\x%x", a.Value(row))
	case *array.Timestamp:
		typ := a.DataType().(*arrow.TimestampType)
		at := a.Value(row).ToTime(typ.Unit)
		if typ.TimeZone != "" {
			return at.UTC().Format("2006-01-02 15:04:05.999999-07")
		}
		return at.Format("2006-01-02 15:04:05.999999")
	case *array.Decimal128:
		return a.Value(row).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.List:
		var items []string
		for i, end := a.ValueOffsets(row); i < end; i++ {
			items = append(items, valueText(a.ListValues(), int(i)))
		}
		return "{" + strings.Join(items, ",") + "}"
	case *array.Time64:
		return time.UnixMicro(int64(a.Value(row))).UTC().Format("15:04:05.999999")
	}
	return a.ValueStr(row)
}

// fieldsOf are the fields of ids, which must be top-level.
func fieldsOf(sc *iceberg.Schema, ids []int) ([]iceberg.NestedField, []int, error) {
	fields := make([]iceberg.NestedField, len(ids))
	cols := make([]int, len(ids))
	for i, id := range ids {
		found := false
		for c, f := range sc.Fields() {
			if f.ID == id {
				fields[i], cols[i], found = f, c, true
			}
		}
		if !found {
			return nil, nil, fmt.Errorf("%w: field %d is not a top-level column", ErrInvalidTable, id)
		}
	}
	return fields, cols, nil
}

// subSchema is the schema of the given fields alone.
func subSchema(sc *iceberg.Schema, fields []iceberg.NestedField) *iceberg.Schema {
	return iceberg.NewSchema(sc.ID, fields...)
}
