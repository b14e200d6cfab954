package sqlfuncs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

func newBatch(s *arrow.Schema, cols []arrow.Array, n int64) arrow.RecordBatch {
	rec := array.NewRecordBatch(s, cols, n)
	for _, c := range cols {
		c.Release()
	}
	return rec
}

// KeyPart makes a one-row column of a key value. A literal of unknown type takes the column's; else the families must match. Errors: 42804, 22P02.
func KeyPart(dt arrow.DataType, v *Value) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	if err := appendKeyPart(b, v); err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

func appendKeyPart(b array.Builder, v *Value) error {
	dt := b.Type()
	if !comparable(dt, v.OID) {
		return pgerr.Newf(pgerr.DatatypeMismatch, "key of type %s does not match column type %s", pgtype.FormatNoTypmod(v.OID), typeName(dt))
	}
	text := v.Text
	switch dt.ID() {
	case arrow.INT32, arrow.INT64:
		// A numeric equals an integer when nothing follows the point.
		if whole, fraction, ok := strings.Cut(text, "."); ok && v.OID == pgtype.Numeric && strings.Trim(fraction, "0") == "" {
			text = whole
		}
	case arrow.TIMESTAMP, arrow.DATE32, arrow.TIME64:
		text = strings.Replace(text, " ", "T", 1)
	}
	if err := b.AppendValueFromString(text); err != nil {
		return pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid key value: \"%s\"", v.Text).WithCause(err)
	}
	return nil
}

// keyParts are the values of a key, nil for one that no row has: a part is NULL, or has a fraction where its column is an integer.
func keyParts(schema *arrow.Schema, key *Value) []*Value {
	if key == nil || key.Null {
		return nil
	}
	parts := key.Row
	if parts == nil {
		parts = []*Value{key}
	}
	for _, v := range parts {
		if v.Null {
			return nil
		}
	}
	if unmatched(schema, parts) {
		return nil
	}
	return parts
}

// unmatched reports a key that no row has: a part is a numeric with a fraction, and its column an integer.
func unmatched(key *arrow.Schema, parts []*Value) bool {
	for i, v := range parts {
		if i >= key.NumFields() || v.OID != pgtype.Numeric {
			continue
		}
		if id := key.Field(i).Type.ID(); id != arrow.INT32 && id != arrow.INT64 {
			continue
		}
		if v.Text == "NaN" || strings.HasSuffix(v.Text, "Infinity") {
			return true
		}
		if _, fraction, ok := strings.Cut(v.Text, "."); ok && strings.Trim(fraction, "0") != "" {
			return true
		}
	}
	return false
}

// keyBuilder collects keys as a batch for a lookup.
type keyBuilder struct {
	schema *arrow.Schema // of the parts that keys have
	cols   []array.Builder
	n      int64
}

// newKeyBuilder collects keys of the first parts columns of a key. Errors: 42804 with the key's columns.
func newKeyBuilder(key *arrow.Schema, parts int) (*keyBuilder, error) {
	if parts > key.NumFields() {
		return nil, pgerr.Newf(pgerr.DatatypeMismatch, "key has %d columns, got %d values", key.NumFields(), parts).WithHint("%s", keyHint(key))
	}
	b := &keyBuilder{schema: arrow.NewSchema(key.Fields()[:parts], nil)}
	for _, f := range b.schema.Fields() {
		b.cols = append(b.cols, array.NewBuilder(memory.DefaultAllocator, f.Type))
	}
	return b, nil
}

// keyHint names the columns of a key with their types.
func keyHint(key *arrow.Schema) string {
	return "The key is " + keyColumns(key) + "."
}

// keyColumns are a key's columns with their types: (id integer, line smallint).
func keyColumns(key *arrow.Schema) string {
	names := make([]string, key.NumFields())
	for i, f := range key.Fields() {
		names[i] = f.Name + " " + typeName(f.Type)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// add takes one key of as many parts as the builder was made for. Errors: 42804, 22P02.
func (b *keyBuilder) add(parts []*Value) error {
	for i, v := range parts {
		if err := appendKeyPart(b.cols[i], v); err != nil {
			err = fmt.Errorf("key column %q: %w", b.schema.Field(i).Name, err)
			var pe *pgerr.Error
			if errors.As(err, &pe) && pe.Code == pgerr.DatatypeMismatch && pe.Hint == "" {
				pe.Hint = keyHint(b.schema)
			}
			return err
		}
	}
	b.n++
	return nil
}

func (b *keyBuilder) batch() arrow.RecordBatch {
	arrs := make([]arrow.Array, len(b.cols))
	for i, c := range b.cols {
		arrs[i] = c.NewArray()
	}
	n := b.n
	b.n = 0
	return newBatch(b.schema, arrs, n)
}

func (b *keyBuilder) release() {
	for _, c := range b.cols {
		c.Release()
	}
}

// typeName is PostgreSQL's name of the type that a key column is stored as.
func typeName(dt arrow.DataType) string {
	oid := uint32(pgtype.Text)
	switch dt.ID() {
	case arrow.INT32:
		oid = pgtype.Int4
	case arrow.INT64:
		oid = pgtype.Int8
	case arrow.DECIMAL128:
		oid = pgtype.Numeric
	case arrow.BOOL:
		oid = pgtype.Bool
	case arrow.DATE32:
		oid = pgtype.Date
	case arrow.TIMESTAMP:
		oid = pgtype.Timestamp
		if t, ok := dt.(*arrow.TimestampType); ok && t.TimeZone != "" {
			oid = pgtype.TimestampTZ
		}
	case arrow.TIME64:
		oid = pgtype.Time
	case arrow.EXTENSION, arrow.FIXED_SIZE_BINARY:
		oid = pgtype.UUID
	case arrow.BINARY, arrow.LARGE_BINARY:
		oid = pgtype.Bytea
	}
	return pgtype.FormatNoTypmod(oid)
}

// comparable reports whether PostgreSQL compares a column of that storage type with a value of that type without a cast.
func comparable(dt arrow.DataType, oid uint32) bool {
	if oid == pgtype.Unknown {
		return true
	}
	integer := oid == pgtype.Int2 || oid == pgtype.Int4 || oid == pgtype.Int8
	switch dt.ID() {
	case arrow.INT32, arrow.INT64:
		return integer || oid == pgtype.Numeric
	case arrow.DECIMAL128:
		return integer || oid == pgtype.Numeric
	case arrow.STRING, arrow.LARGE_STRING:
		return oid == pgtype.Text || oid == pgtype.Varchar || oid == pgtype.BPChar || oid == pgtype.Name
	case arrow.BOOL:
		return oid == pgtype.Bool
	case arrow.DATE32:
		return oid == pgtype.Date
	case arrow.TIMESTAMP:
		return oid == pgtype.Timestamp || oid == pgtype.TimestampTZ || oid == pgtype.Date
	case arrow.TIME64:
		return oid == pgtype.Time
	case arrow.EXTENSION, arrow.FIXED_SIZE_BINARY:
		return oid == pgtype.UUID
	case arrow.BINARY, arrow.LARGE_BINARY:
		return oid == pgtype.Bytea
	}
	return false
}
