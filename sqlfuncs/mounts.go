package sqlfuncs

import (
	"context"
	"net/url"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// mountsView is skade.mounts: the mounts and what their last poll saw. Options, which may hold secrets, are not shown.
var mountsView = &View{
	Name: "mounts",
	Doc:  "The mounts of other catalogs, and what their last poll saw.",
	Columns: []Column{
		{"name", pgtype.Text, -1},
		{"kind", pgtype.Text, -1},
		{"source", pgtype.Text, -1},
		{"poll", pgtype.Interval, -1},
		{"tables", pgtype.Int4, -1},
		{"last_poll", pgtype.TimestampTZ, -1},
		{"last_error", pgtype.Text, -1},
	},
}

func init() { mountsView.Open = openMounts }

func openMounts(_ context.Context, env *Env) (*Rows, error) {
	return oneBatch(arrowSchema(mountsView.Columns), func(_ context.Context, b *array.RecordBuilder) error {
		if env.Mounts != nil {
			for _, st := range env.Mounts.Status() {
				row := rowBuilder{b: b}
				row.text(st.Name)
				row.text(st.Kind)
				row.text(redacted(st.Source))
				row.text(string(pgenc.AppendIntervalISO(nil, pgenc.IntervalValue{Micros: st.Every.Microseconds()})))
				row.int4(int32(st.Tables))
				if st.LastPoll.IsZero() {
					row.nulls(1)
				} else {
					row.time(st.LastPoll.UnixMicro())
				}
				if st.LastError == "" {
					row.nulls(1)
				} else {
					row.text(st.LastError)
				}
			}
		}
		return nil
	}), nil
}

// redacted hides the password of a URL.
func redacted(source string) string {
	if u, err := url.Parse(source); err == nil && u.User != nil {
		return u.Redacted()
	}
	return source
}
