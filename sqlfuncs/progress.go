package sqlfuncs

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Progress is how far a session's statement that writes has come.
type Progress struct {
	PID     int32
	Table   string // as SQL writes it; "" for none
	Command string
	Phase   string // "reading", "writing files", "committing"
	Started time.Time
	Rows    int64 // read from the client or from the statement's query
	// Written, Files and Bytes are the data files that the transaction has finished so far.
	Written, Files, Bytes int64
}

// progressView is skade.progress: the statements that write at this moment.
var progressView = &View{
	Name: "progress",
	Doc:  "How far the running INSERT, UPDATE, DELETE, MERGE, CREATE TABLE AS, COPY and COMMIT of all sessions have come.",
	Columns: []Column{
		{"pid", pgtype.Int4, -1},
		{"table_name", pgtype.Text, -1},
		{"command", pgtype.Text, -1},
		{"phase", pgtype.Text, -1},
		{"started_at", pgtype.TimestampTZ, -1},
		{"rows_processed", pgtype.Int8, -1},
		{"rows_written", pgtype.Int8, -1},
		{"files_written", pgtype.Int8, -1},
		{"bytes_written", pgtype.Int8, -1},
	},
}

func init() { progressView.Open = openProgress }

func openProgress(_ context.Context, env *Env) (*Rows, error) {
	return oneBatch(arrowSchema(progressView.Columns), func(_ context.Context, b *array.RecordBuilder) error {
		for _, p := range env.Progress() {
			row := rowBuilder{b: b}
			row.int4(p.PID)
			if p.Table == "" {
				row.nulls(1)
			} else {
				row.text(p.Table)
			}
			row.text(p.Command)
			row.text(p.Phase)
			row.time(p.Started.UnixMicro())
			for _, n := range []int64{p.Rows, p.Written, p.Files, p.Bytes} {
				row.int8(n)
			}
		}
		return nil
	}), nil
}
