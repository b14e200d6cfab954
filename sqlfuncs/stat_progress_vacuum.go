package sqlfuncs

import (
	"context"
	"time"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// VacuumProgress is a table that VACUUM or the background is at.
type VacuumProgress struct {
	PID                 int32 // 0: the background
	Ident               table.Identifier
	Phase               string
	Started             time.Time
	RowsDone, RowsTotal int64 // of the rewrite under way
}

// statProgressVacuumView is skade.stat_progress_vacuum: one row for each table that is being maintained. pid is NULL for background maintenance.
var statProgressVacuumView = &View{
	Name: "stat_progress_vacuum", Doc: "The tables that VACUUM or background maintenance is at.",
	Columns: []Column{
		{"pid", pgtype.Int4, -1},
		{"table_schema", pgtype.Text, -1},
		{"table_name", pgtype.Text, -1},
		{"phase", pgtype.Text, -1},
		{"rows_done", pgtype.Int8, -1},
		{"rows_total", pgtype.Int8, -1},
		{"started_at", pgtype.TimestampTZ, -1},
	},
}

func init() { statProgressVacuumView.Open = openStatProgressVacuum }

func openStatProgressVacuum(_ context.Context, env *Env) (*Rows, error) {
	return sinkRows(statProgressVacuumView.Columns, func(_ context.Context, out *rowSink) error {
		for _, v := range env.Vacuums() {
			if !env.Visible(v.Ident) {
				continue
			}
			row := out.row()
			if v.PID == 0 {
				row.nulls(1)
			} else {
				row.int4(v.PID)
			}
			row.text(sqlName(v.Ident[:len(v.Ident)-1]))
			row.text(v.Ident[len(v.Ident)-1])
			row.text(v.Phase)
			row.int8(v.RowsDone)
			row.int8(v.RowsTotal)
			row.time(v.Started.UnixMicro())
			if !out.done() {
				return nil
			}
		}
		return nil
	}), nil
}
