package sqlfuncs

import (
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
	if !comparable(dt, v.OID) {
		return nil, pgerr.Newf(pgerr.DatatypeMismatch, "key of type %s does not match column type %s", pgtype.FormatNoTypmod(v.OID), typeName(dt))
	}
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	text := v.Text
	switch dt.ID() {
	case arrow.TIMESTAMP, arrow.DATE32, arrow.TIME64:
		text = strings.Replace(text, " ", "T", 1)
	}
	if err := b.AppendValueFromString(text); err != nil {
		return nil, pgerr.Newf(pgerr.InvalidTextRepresentation, "invalid key value: \"%s\"", v.Text).WithCause(err)
	}
	return b.NewArray(), nil
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
