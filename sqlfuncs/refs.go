package sqlfuncs

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// refsTable lists the branches and tags.
var refsTable = &metaTable{
	name: "refs", doc: "The branches and tags of every table.",
	columns: []Column{
		{"name", pgtype.Text, -1},
		{"type", pgtype.Text, -1}, // BRANCH or TAG
		{"snapshot_id", pgtype.Int8, -1},
		{"max_reference_age_in_ms", pgtype.Int8, -1},
		{"min_snapshots_to_keep", pgtype.Int4, -1},
		{"max_snapshot_age_in_ms", pgtype.Int8, -1},
	},
	rows: func(_ context.Context, in *metaInput, out *rowSink) error {
		refs := maps.Collect(in.meta.Refs())
		for _, name := range slices.Sorted(maps.Keys(refs)) {
			r := refs[name]
			row := out.row()
			row.text(name)
			row.text(strings.ToUpper(string(r.SnapshotRefType)))
			row.int8(r.SnapshotID)
			row.optional(r.MaxRefAgeMs)
			row.optional4(r.MinSnapshotsToKeep)
			row.optional(r.MaxSnapshotAgeMs)
			if !out.done() {
				return nil
			}
		}
		return nil
	},
}
