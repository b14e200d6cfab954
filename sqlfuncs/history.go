package sqlfuncs

import (
	"context"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// historyTable lists when which snapshot was made main's head. Snapshots that expired are still listed, without their parent.
var historyTable = &metaTable{
	name: "history", doc: "The snapshots that were current in every table, and when.",
	columns: []Column{
		{"made_current_at", pgtype.TimestampTZ, -1},
		{"snapshot_id", pgtype.Int8, -1},
		{"parent_id", pgtype.Int8, -1},
		{"is_current_ancestor", pgtype.Bool, -1},
	},
	rows: func(_ context.Context, in *metaInput, out *rowSink) error {
		ancestors := map[int64]bool{}
		for s := in.meta.CurrentSnapshot(); s != nil && !ancestors[s.SnapshotID]; {
			ancestors[s.SnapshotID] = true
			if s.ParentSnapshotID == nil {
				break
			}
			s = in.meta.SnapshotByID(*s.ParentSnapshotID)
		}
		for e := range in.meta.SnapshotLogs() {
			row := out.row()
			row.time(e.TimestampMs * 1000)
			row.int8(e.SnapshotID)
			if s := in.meta.SnapshotByID(e.SnapshotID); s != nil {
				row.optional(s.ParentSnapshotID)
			} else {
				row.nulls(1)
			}
			row.bool(ancestors[e.SnapshotID])
			if !out.done() {
				return nil
			}
		}
		return nil
	},
}

// metadataLogTable lists the metadata files that the table's metadata log names, and the current one.
var metadataLogTable = &metaTable{
	name: "metadata_log", doc: "The metadata files of every table.",
	columns: []Column{
		{"timestamp", pgtype.TimestampTZ, -1},
		{"file", pgtype.Text, -1},
		{"latest_snapshot_id", pgtype.Int8, -1},
		{"latest_schema_id", pgtype.Int4, -1},
		{"latest_sequence_number", pgtype.Int8, -1},
	},
	rows: func(_ context.Context, in *metaInput, out *rowSink) error {
		if err := in.env.Catalog.WriteMetadata(); err != nil {
			return err
		}
		write := func(ms int64, file string) bool {
			row := out.row()
			row.time(ms * 1000)
			row.text(file)
			s := snapshotAsOf(in.meta, ms)
			if s == nil {
				row.nulls(3)
				return out.done()
			}
			row.int8(s.SnapshotID)
			row.optional4(s.SchemaID)
			row.int8(s.SequenceNumber)
			return out.done()
		}
		for m := range in.meta.PreviousFiles() {
			if !write(m.TimestampMs, m.MetadataFile) {
				return nil
			}
		}
		write(in.meta.LastUpdatedMillis(), in.state.MetadataLocation)
		return nil
	},
}

// snapshotAsOf is the snapshot that was current at a time of the snapshot log.
func snapshotAsOf(meta table.Metadata, ms int64) *table.Snapshot {
	var last *table.Snapshot
	for e := range meta.SnapshotLogs() {
		if e.TimestampMs <= ms {
			last = meta.SnapshotByID(e.SnapshotID)
		}
	}
	return last
}
