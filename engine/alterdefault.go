package engine

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// constantDefault and metadataDefault evaluate a default that is the same for every row, as metadata keeps defaults: Iceberg's JSON single-value
// serialization. ok is false for one that differs from row to row, or whose value metadata cannot keep; nil is DEFAULT NULL.
func (a *alteration) constantDefault(ctx context.Context, f *alteredField, expr string) (v any, ok bool, err error) {
	return a.s.metadataDefault(ctx, f.NestedField, f.oid, f.mod, expr)
}

func (s *session) metadataDefault(ctx context.Context, f iceberg.NestedField, oid uint32, mod int32, expr string) (v any, ok bool, err error) {
	col := pgsql.RelColumn{Name: f.Name, Type: oid, Mod: mod}
	q, err := pgsql.AnalyzeExpr(expr, oid, mod, &resolver{ctx: ctx, s: s})
	if err != nil {
		return nil, false, s.sqlError(ctx, err)
	}
	if q.Volatile || len(q.Binds) > 0 { // a call of the session's: nextval, now()
		return nil, false, nil
	}
	err = s.eachRow(ctx, q, []pgsql.RelColumn{col}, 0, func(rec arrow.RecordBatch) error {
		if rec.NumRows() > 0 {
			v, ok = jsonValue(rec.Column(0), f.Type)
		}
		return nil
	})
	return v, ok, err
}

// keptDefault is metadataDefault of a DEFAULT that no row takes yet: one that is no value of its column is INSERT's error, as in PostgreSQL.
func (s *session) keptDefault(ctx context.Context, f iceberg.NestedField, oid uint32, mod int32, expr string) (v any, ok bool, err error) {
	v, ok, err = s.metadataDefault(ctx, f, oid, mod, expr)
	if e := pgerr.As(s.sqlError(ctx, err)); e != nil && strings.HasPrefix(string(e.Code), "22") {
		return nil, false, nil
	}
	return v, ok, err
}

// writeDefault keeps a column's write-default (format 3) what its DEFAULT is, for the writers of other engines.
func (a *alteration) writeDefault(ctx context.Context, f *alteredField) error {
	f.WriteDefault = nil
	expr := a.def.columns[f.ID].Default
	if a.version() < 3 || expr == "" {
		return nil
	}
	v, ok, err := a.s.keptDefault(ctx, f.NestedField, f.oid, f.mod, expr)
	if err == nil && ok {
		f.WriteDefault = v
	}
	return err
}

// promoteDefaults keeps the defaults in the form of the column's wider type.
func (a *alteration) promoteDefaults(ctx context.Context, f *alteredField) error {
	return a.writeDefault(ctx, f) // the initial default's text or number is the same in the wider type
}

// jsonValue is the first value of an array in Iceberg's JSON single-value serialization; ok is false for a value that this form, or a
// reader that takes JSON's numbers as doubles, would not give back.
func jsonValue(a arrow.Array, typ iceberg.Type) (v any, ok bool) {
	if a.IsNull(0) {
		return nil, true
	}
	if ext, is := a.(array.ExtensionArray); is {
		if _, isUUID := typ.(iceberg.UUIDType); isUUID {
			return ext.ValueStr(0), true
		}
		a = ext.Storage()
	}
	exact := func(f float64) (any, bool) {
		return f, !math.IsNaN(f) && !math.IsInf(f, 0) && !(f == 0 && math.Signbit(f))
	}
	switch x := a.(type) {
	case *array.Boolean:
		return x.Value(0), true
	case *array.Int32:
		return float64(x.Value(0)), true
	case *array.Int64:
		const limit = 1 << 53
		n := x.Value(0)
		return float64(n), n > -limit && n < limit
	case *array.Float32:
		return exact(float64(x.Value(0)))
	case *array.Float64:
		return exact(x.Value(0))
	case *array.String:
		return x.Value(0), true
	case *array.Binary:
		return fmt.Sprintf("%x", x.Value(0)), true
	case *array.Decimal128:
		return x.Value(0).ToString(x.DataType().(*arrow.Decimal128Type).Scale), true
	case *array.Date32:
		t := time.Unix(int64(x.Value(0))*86400, 0).UTC()
		return t.Format("2006-01-02"), plainYear(t)
	case *array.Time64:
		return time.UnixMicro(int64(x.Value(0))).UTC().Format("15:04:05.000000"), true
	case *array.Timestamp:
		t := time.UnixMicro(int64(x.Value(0))).UTC()
		text := t.Format("2006-01-02T15:04:05.000000")
		if x.DataType().(*arrow.TimestampType).TimeZone != "" {
			text += "+00:00"
		}
		return text, plainYear(t)
	}
	return nil, false
}

// plainYear says whether a year has the four digits of ISO 8601.
func plainYear(t time.Time) bool {
	return t.Year() >= 1 && t.Year() <= 9999 && !strings.HasPrefix(t.Format("2006"), "-")
}
