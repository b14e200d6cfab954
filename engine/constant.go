package engine

import (
	"context"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/pgcopy"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// constantRows makes INSERT … VALUES of constants and parameters into a batch without DuckDB. ok is false when the statement
// is not of that kind, or a value's type is not its column's: assignment casts are SQL's business.
func (s *session) constantRows(ctx context.Context, b binding, ins *pgsql.Insert, as *arrow.Schema) (rec arrow.RecordBatch, ok bool, err error) {
	if len(ins.Rows) == 0 {
		return nil, false, nil
	}
	cols := make([]pgcopy.Column, len(ins.Columns))
	for i, c := range ins.Columns {
		rc := ins.Target.Columns[c]
		cols[i] = pgcopy.Column{Name: rc.Name, OID: rc.Type, Mod: rc.Mod, Source: i}
	}
	for _, row := range ins.Rows {
		for i, a := range row {
			if !sameType(a, cols[i].OID, b.args) {
				return nil, false, nil
			}
		}
	}
	st := s.style()
	app, err := pgcopy.NewAppender(ins.Target.Name, cols, as, st)
	if err != nil {
		return nil, false, nil // a type that only SQL can store
	}
	defer app.Release()
	fields := make([]pgcopy.Field, len(cols))
	for _, row := range ins.Rows {
		for i, a := range row {
			if a.Draws != 0 {
				err = s.nextvals(ctx, a.Draws, 1, func(v int64) { fields[i] = pgcopy.Field{Data: strconv.AppendInt(nil, v, 10)} })
			} else {
				fields[i], err = argField(a, b.args, st)
			}
			if err != nil {
				return nil, false, err
			}
		}
		if err := app.Append(fields, 0); err != nil {
			return nil, false, err
		}
	}
	return app.Take(), true, nil
}

// sameType reports a value that needs no cast: NULL, or of the column's own type.
func sameType(a *pgsql.Arg, oid uint32, args []value) bool {
	switch {
	case a == nil || a.Row != nil || a.Array != nil || a.Expr != "":
		return false
	case a.Param > 0:
		return a.Param <= len(args) && args[a.Param-1].oid == oid
	case a.Draws != 0:
		return true
	}
	return a.Const && (a.Null || a.Type == oid)
}

func argField(a *pgsql.Arg, args []value, st pgenc.Style) (pgcopy.Field, error) {
	if a.Param == 0 {
		return pgcopy.Field{Data: []byte(a.Text), Null: a.Null}, nil
	}
	v := args[a.Param-1]
	if v.null {
		return pgcopy.Field{Null: true}, nil
	}
	data, err := pgenc.Append(nil, v.oid, pgenc.Text, v.v, st)
	return pgcopy.Field{Data: data}, err
}

// defaultText is a column's initial default as text that casts to its DuckDB type; nil for none.
func defaultText(f iceberg.NestedField) (*string, error) {
	if f.InitialDefault == nil {
		return nil, nil
	}
	text, err := parquetio.DefaultText(f.Type, f.InitialDefault)
	if err != nil {
		return nil, pgerr.Newf(pgerr.DataCorrupted, "the initial default of column \"%s\" cannot be read", f.Name).WithCause(err)
	}
	return &text, nil
}
