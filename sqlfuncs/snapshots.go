package sqlfuncs

import (
	"context"
	"encoding/json"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// snapshotsTable lists the retained snapshots; the columns after summary are not in Iceberg's table.
var snapshotsTable = &metaTable{
	name: "snapshots", doc: "The retained snapshots of every table.",
	columns: []Column{
		{"committed_at", pgtype.TimestampTZ, -1},
		{"snapshot_id", pgtype.Int8, -1},
		{"parent_id", pgtype.Int8, -1},
		{"operation", pgtype.Text, -1},
		{"manifest_list", pgtype.Text, -1},
		{"summary", pgtype.JSONB, -1},
		{"sequence_number", pgtype.Int8, -1},
		{"schema_id", pgtype.Int4, -1},
		{"commit_seq", pgtype.Int8, -1},
		{"is_current", pgtype.Bool, -1},
	},
	rows: func(ctx context.Context, in *metaInput, out *rowSink) error {
		current := in.meta.CurrentSnapshot()
		for _, sn := range in.meta.Snapshots() {
			at, seq := in.commitTime(ctx, &sn)
			row := out.row()
			row.time(at.UnixMicro())
			row.int8(sn.SnapshotID)
			row.optional(sn.ParentSnapshotID)
			op, summary := summaryOf(&sn)
			row.text(op)
			row.text(sn.ManifestList)
			row.text(summary)
			row.int8(sn.SequenceNumber)
			row.optional4(sn.SchemaID)
			row.optional(seq)
			row.bool(current != nil && sn.SnapshotID == current.SnapshotID)
			if !out.done() {
				return nil
			}
		}
		return nil
	},
}

func summaryOf(sn *table.Snapshot) (op, text string) {
	if sn.Summary == nil {
		return "", ""
	}
	b, err := json.Marshal(sn.Summary.Properties)
	if err != nil {
		return string(sn.Summary.Operation), ""
	}
	return string(sn.Summary.Operation), string(b)
}
