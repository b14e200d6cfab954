package sqlfuncs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// partitionsTable sums the current snapshot's files up by partition. An unpartitioned table has one row, with the partition {}.
var partitionsTable = &metaTable{
	name: "partitions", doc: "The partitions of every table, with their files and rows.", asOf: true,
	columns: []Column{
		{"partition", pgtype.JSONB, -1},
		{"spec_id", pgtype.Int4, -1},
		{"record_count", pgtype.Int8, -1},
		{"file_count", pgtype.Int4, -1},
		{"total_data_file_size_in_bytes", pgtype.Int8, -1},
		{"position_delete_record_count", pgtype.Int8, -1},
		{"position_delete_file_count", pgtype.Int4, -1},
		{"equality_delete_record_count", pgtype.Int8, -1},
		{"equality_delete_file_count", pgtype.Int4, -1},
		{"last_updated_at", pgtype.TimestampTZ, -1},
		{"last_updated_snapshot_id", pgtype.Int8, -1},
	},
	rows: partitionRows,
}

type partitionSum struct {
	text                           string
	spec                           int32
	records, files, bytes          int64
	posRecords, posFiles           int64
	equalityRecords, equalityFiles int64
	updated                        *table.Snapshot
}

func partitionRows(ctx context.Context, in *metaInput, out *rowSink) error {
	manifests, err := in.manifests(in.snapshot)
	if err != nil {
		return err
	}
	sums := map[string]*partitionSum{}
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return err
		}
		spec := in.meta.PartitionSpecByID(int(m.PartitionSpecID()))
		for e, err := range m.Entries(in.env.Files, true) {
			if err != nil {
				return err
			}
			f := e.DataFile()
			text := jsonOf(plainPartition(spec, f.Partition()))
			key := fmt.Sprint(f.SpecID(), text)
			p := sums[key]
			if p == nil {
				p = &partitionSum{text: text, spec: f.SpecID()}
				sums[key] = p
			}
			p.add(f, in.meta.SnapshotByID(e.SnapshotID()))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		p := sums[key]
		row := out.row()
		row.text(p.text)
		row.int4(p.spec)
		row.int8(p.records)
		row.int4(int32(p.files))
		row.int8(p.bytes)
		row.int8(p.posRecords)
		row.int4(int32(p.posFiles))
		row.int8(p.equalityRecords)
		row.int4(int32(p.equalityFiles))
		if p.updated == nil {
			row.nulls(2)
		} else {
			row.time(p.updated.TimestampMs * 1000)
			row.int8(p.updated.SnapshotID)
		}
		if !out.done() {
			return nil
		}
	}
	return nil
}

func (p *partitionSum) add(f iceberg.DataFile, s *table.Snapshot) {
	if s != nil && (p.updated == nil || p.updated.TimestampMs < s.TimestampMs) {
		p.updated = s
	}
	switch f.ContentType() {
	case iceberg.EntryContentData:
		p.records += f.Count()
		p.files++
		p.bytes += f.FileSizeBytes()
	case iceberg.EntryContentEqDeletes:
		p.equalityRecords += f.Count()
		p.equalityFiles++
	default:
		p.posRecords += f.Count()
		p.posFiles++
	}
}
