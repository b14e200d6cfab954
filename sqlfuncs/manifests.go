package sqlfuncs

import (
	"context"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/manifestio"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// manifestsTable lists the manifests of the current snapshot.
var manifestsTable = &metaTable{
	name: "manifests", doc: "The manifests of every table's current snapshot.", asOf: true,
	columns: []Column{
		{"content", pgtype.Int4, -1}, // 0 data, 1 deletes
		{"path", pgtype.Text, -1},
		{"length", pgtype.Int8, -1},
		{"partition_spec_id", pgtype.Int4, -1},
		{"added_snapshot_id", pgtype.Int8, -1},
		{"added_data_files_count", pgtype.Int4, -1},
		{"existing_data_files_count", pgtype.Int4, -1},
		{"deleted_data_files_count", pgtype.Int4, -1},
		{"added_delete_files_count", pgtype.Int4, -1},
		{"existing_delete_files_count", pgtype.Int4, -1},
		{"deleted_delete_files_count", pgtype.Int4, -1},
		{"partition_summaries", pgtype.JSONB, -1},
	},
	rows: func(_ context.Context, in *metaInput, out *rowSink) error {
		manifests, err := in.manifests(in.snapshot)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			row := out.row()
			row.int4(int32(m.ManifestContent()))
			row.text(m.FilePath())
			row.int8(m.Length())
			row.int4(m.PartitionSpecID())
			row.int8(m.SnapshotID())
			counts := []int32{m.AddedDataFiles(), m.ExistingDataFiles(), m.DeletedDataFiles()}
			for _, content := range []iceberg.ManifestContent{iceberg.ManifestContentData, iceberg.ManifestContentDeletes} {
				for _, n := range counts {
					if m.ManifestContent() != content {
						n = 0
					}
					row.int4(n)
				}
			}
			row.json(partitionSummaries(in, m))
			if !out.done() {
				return nil
			}
		}
		return nil
	},
}

// partitionSummaries are a manifest's bounds by partition field, in the spec's order.
func partitionSummaries(in *metaInput, m iceberg.ManifestFile) []any {
	out := []any{}
	spec := in.meta.PartitionSpecByID(int(m.PartitionSpecID()))
	if spec == nil {
		return out
	}
	fields := spec.PartitionType(manifestio.SpecSchema(in.meta.CurrentSchema(), in.meta.Schemas(), *spec)).FieldList
	for i, p := range m.Partitions() {
		bound := func(b *[]byte) any {
			if b == nil || len(*b) == 0 || i >= len(fields) {
				return nil
			}
			v := plainBound(fields[i].Type, *b)
			if lit, err := iceberg.LiteralFromBytes(fields[i].Type, *b); err == nil {
				//lint:ignore SA1019 the literal has the partition's type, not the source's that ToHumanStrType wants
				v = spec.Field(i).Transform.ToHumanStr(lit.Any())
			}
			return v
		}
		out = append(out, map[string]any{
			"contains_null": p.ContainsNull, "contains_nan": p.ContainsNaN, "lower_bound": bound(p.LowerBound), "upper_bound": bound(p.UpperBound),
		})
	}
	return out
}
