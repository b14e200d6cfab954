package sqlfuncs

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// fileColumns are those of Iceberg's files tables. Maps and structs are jsonb.
var fileColumns = []Column{
	{"content", pgtype.Int4, -1}, // 0 data, 1 position deletes, 2 equality deletes
	{"file_path", pgtype.Text, -1},
	{"file_format", pgtype.Text, -1},
	{"spec_id", pgtype.Int4, -1},
	{"partition", pgtype.JSONB, -1},
	{"record_count", pgtype.Int8, -1},
	{"file_size_in_bytes", pgtype.Int8, -1},
	{"column_sizes", pgtype.JSONB, -1},
	{"value_counts", pgtype.JSONB, -1},
	{"null_value_counts", pgtype.JSONB, -1},
	{"nan_value_counts", pgtype.JSONB, -1},
	{"lower_bounds", pgtype.JSONB, -1},
	{"upper_bounds", pgtype.JSONB, -1},
	{"key_metadata", pgtype.Bytea, -1},
	{"split_offsets", pgtype.Int8Array, -1},
	{"equality_ids", pgtype.Int4Array, -1},
	{"sort_order_id", pgtype.Int4, -1},
	{"first_row_id", pgtype.Int8, -1},
	{"referenced_data_file", pgtype.Text, -1},
	{"content_offset", pgtype.Int8, -1},
	{"content_size_in_bytes", pgtype.Int8, -1},
	{"readable_metrics", pgtype.JSONB, -1},
}

// filesTable lists the data and delete files of the current snapshot.
var filesTable = &metaTable{
	name: "files", doc: "The data and delete files of every table.", columns: fileColumns, asOf: true,
	rows: func(ctx context.Context, in *metaInput, out *rowSink) error {
		return fileRows(ctx, in, out, in.snapshot, nil, func(iceberg.ManifestFile) bool { return true })
	},
}

// deleteFilesTable lists the delete files of the current snapshot.
var deleteFilesTable = &metaTable{
	name: "delete_files", doc: "The position and equality delete files and deletion vectors of every table.", columns: fileColumns, asOf: true,
	rows: func(ctx context.Context, in *metaInput, out *rowSink) error {
		return fileRows(ctx, in, out, in.snapshot, nil, func(m iceberg.ManifestFile) bool { return m.ManifestContent() == iceberg.ManifestContentDeletes })
	},
}

// allFilesTable lists the files of every retained snapshot, those of one manifest once.
var allFilesTable = &metaTable{
	name: "all_files", doc: "The data and delete files of every table, in any retained snapshot.", columns: fileColumns,
	rows: func(ctx context.Context, in *metaInput, out *rowSink) error {
		seen := map[string]bool{}
		for _, s := range in.meta.Snapshots() {
			if err := fileRows(ctx, in, out, &s, seen, func(iceberg.ManifestFile) bool { return true }); err != nil || out.ended {
				return err
			}
		}
		return nil
	},
}

// fileRows writes the live files of a snapshot's manifests but those seen before.
func fileRows(ctx context.Context, in *metaInput, out *rowSink, s *table.Snapshot, seen map[string]bool, want func(iceberg.ManifestFile) bool) error {
	manifests, err := in.manifests(s)
	if err != nil {
		return err
	}
	sc := in.meta.CurrentSchema()
	for _, m := range manifests {
		if !want(m) || seen[m.FilePath()] {
			continue
		}
		if seen != nil {
			seen[m.FilePath()] = true
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for e, err := range m.Entries(in.env.Files, true) {
			if err != nil {
				return err
			}
			row := out.row()
			fileRow(row, sc, in.meta.PartitionSpecByID(int(m.PartitionSpecID())), e.DataFile())
			if !out.done() {
				return nil
			}
		}
	}
	return nil
}

func fileRow(row *rowBuilder, sc *iceberg.Schema, spec *iceberg.PartitionSpec, f iceberg.DataFile) {
	row.int4(int32(f.ContentType()))
	row.text(f.FilePath())
	row.text(string(f.FileFormat()))
	row.int4(f.SpecID())
	row.text(jsonOf(plainPartition(spec, f.Partition())))
	row.int8(f.Count())
	row.int8(f.FileSizeBytes())
	for _, m := range []map[int]int64{f.ColumnSizes(), f.ValueCounts(), f.NullValueCounts(), f.NaNValueCounts()} {
		row.json(plainCounts(m))
	}
	row.json(plainBytes(f.LowerBoundValues()))
	row.json(plainBytes(f.UpperBoundValues()))
	row.bytes(f.KeyMetadata())
	row.list8(f.SplitOffsets())
	row.list4(f.EqualityFieldIDs())
	row.optional4(f.SortOrderID())
	row.optional(f.FirstRowID())
	if ref := f.ReferencedDataFile(); ref != nil {
		row.text(*ref)
	} else {
		row.nulls(1)
	}
	row.optional(f.ContentOffset())
	row.optional(f.ContentSizeInBytes())
	row.json(readableMetrics(sc, f))
}

// json appends a value as JSON; nil is NULL.
func (r *rowBuilder) json(v any) {
	if v == nil {
		r.next().AppendNull()
		return
	}
	r.text(jsonOf(v))
}

// entriesTable lists the manifest entries of the current snapshot, removed files too.
var entriesTable = &metaTable{
	name: "entries", doc: "The manifest entries of every table's current snapshot, those of removed files too.", asOf: true,
	columns: []Column{
		{"status", pgtype.Int4, -1}, // 0 existing, 1 added, 2 deleted
		{"snapshot_id", pgtype.Int8, -1},
		{"sequence_number", pgtype.Int8, -1},
		{"file_sequence_number", pgtype.Int8, -1},
		{"data_file", pgtype.JSONB, -1},
		{"readable_metrics", pgtype.JSONB, -1},
	},
	rows: func(ctx context.Context, in *metaInput, out *rowSink) error {
		manifests, err := in.manifests(in.snapshot)
		if err != nil {
			return err
		}
		sc := in.meta.CurrentSchema()
		for _, m := range manifests {
			if err := ctx.Err(); err != nil {
				return err
			}
			spec := in.meta.PartitionSpecByID(int(m.PartitionSpecID()))
			for e, err := range m.Entries(in.env.Files, false) {
				if err != nil {
					return err
				}
				f := e.DataFile()
				row := out.row()
				row.int4(int32(e.Status()))
				row.int8(e.SnapshotID())
				row.int8(e.SequenceNum())
				row.optional(e.FileSequenceNum())
				row.json(plainFile(spec, f))
				row.json(readableMetrics(sc, f))
				if !out.done() {
					return nil
				}
			}
		}
		return nil
	},
}

// plainFile is a data file as an object with the fields of Iceberg's data_file struct.
func plainFile(spec *iceberg.PartitionSpec, f iceberg.DataFile) map[string]any {
	out := map[string]any{
		"content": int(f.ContentType()), "file_path": f.FilePath(), "file_format": string(f.FileFormat()), "spec_id": f.SpecID(),
		"partition": plainPartition(spec, f.Partition()), "record_count": f.Count(), "file_size_in_bytes": f.FileSizeBytes(),
		"column_sizes": plainCounts(f.ColumnSizes()), "value_counts": plainCounts(f.ValueCounts()), "null_value_counts": plainCounts(f.NullValueCounts()),
		"nan_value_counts": plainCounts(f.NaNValueCounts()), "lower_bounds": plainBytes(f.LowerBoundValues()), "upper_bounds": plainBytes(f.UpperBoundValues()),
		"key_metadata": nil, "split_offsets": f.SplitOffsets(), "equality_ids": f.EqualityFieldIDs(), "sort_order_id": f.SortOrderID(),
		"first_row_id": f.FirstRowID(), "referenced_data_file": f.ReferencedDataFile(), "content_offset": f.ContentOffset(), "content_size_in_bytes": f.ContentSizeInBytes(),
	}
	if k := f.KeyMetadata(); k != nil {
		out["key_metadata"] = hexText(k)
	}
	return out
}
