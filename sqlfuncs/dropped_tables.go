package sqlfuncs

import (
	"context"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// droppedTablesView is skade.dropped_tables: the tables that skade.undrop can bring back, the one dropped last first. Their files are removed by
// maintenance after expires_at.
var droppedTablesView = &View{
	Name: "dropped_tables", Doc: "The dropped tables that skade.undrop can bring back.",
	Columns: []Column{
		{"table_schema", pgtype.Text, -1},
		{"table_name", pgtype.Text, -1},
		{"uuid", pgtype.Text, -1},
		{"dropped_at", pgtype.TimestampTZ, -1},
		{"commit_seq", pgtype.Int8, -1},
		{"rows", pgtype.Int8, -1},
		{"expires_at", pgtype.TimestampTZ, -1},
	},
}

func init() { droppedTablesView.Open = openDroppedTables }

func openDroppedTables(_ context.Context, env *Env) (*Rows, error) {
	return sinkRows(droppedTablesView.Columns, func(ctx context.Context, out *rowSink) error {
		var all []*catalog.DroppedTable
		for d := range env.Cut.DroppedTables() {
			if env.Visible(d.State.Ident) {
				all = append(all, d)
			}
		}
		slices.SortFunc(all, func(a, b *catalog.DroppedTable) int { return int(int64(b.Seq) - int64(a.Seq)) })
		for _, d := range all {
			ident := d.State.Ident
			row := out.row()
			row.text(sqlName(ident[:len(ident)-1]))
			row.text(ident[len(ident)-1])
			row.text(d.State.UUID.String())
			row.time(d.Time.UnixMicro())
			row.int8(int64(d.Seq))
			if meta, err := d.State.Metadata(ctx); err == nil {
				row.int8(rowsOf(meta))
			} else {
				row.nulls(1) // it is not readable any more; it can still be seen
			}
			row.time(d.Time.Add(env.DropRetention).UnixMicro())
			if !out.done() {
				return nil
			}
		}
		return nil
	}), nil
}

// rowsOf is the number of rows that the current snapshot's summary tells.
func rowsOf(meta table.Metadata) int64 {
	s := meta.CurrentSnapshot()
	if s == nil || s.Summary == nil {
		return 0
	}
	n := func(key string) int64 {
		v, _ := strconv.ParseInt(s.Summary.Properties[key], 10, 64)
		return v
	}
	return max(0, n("total-records")-n("total-position-deletes"))
}
