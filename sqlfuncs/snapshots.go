package sqlfuncs

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// snapshotsView is skade.snapshots: the retained snapshots of every table, shaped like Iceberg's snapshots metadata table.
var snapshotsView = &View{
	Name: "snapshots",
	Doc:  "The retained snapshots of every table.",
	Columns: []Column{
		{"table_name", pgtype.Text, -1},
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
}

func init() { snapshotsView.Open = openSnapshots }

func openSnapshots(_ context.Context, env *Env) (*Rows, error) {
	schema := arrowSchema(snapshotsView.Columns)
	batches := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for _, t := range sortedTables(env) {
				rec, err := snapshotBatch(ctx, env, schema, t)
				if err != nil {
					yield(nil, err)
					return
				}
				ok := yield(rec, nil)
				rec.Release()
				if !ok {
					return
				}
			}
		}
	}
	return &Rows{Schema: schema, N: -1, Batches: batches}, nil
}

func snapshotBatch(ctx context.Context, env *Env, schema *arrow.Schema, t *catalog.TableState) (arrow.RecordBatch, error) {
	md, err := t.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	current, hasCurrent := t.SnapshotID()
	for _, sn := range md.Snapshots() {
		row := rowBuilder{b: b}
		row.text(sqlName(t.Ident))
		at := time.UnixMilli(sn.TimestampMs)
		var seq *int64
		if rec, err := env.Catalog.CommitBySnapshot(ctx, t.Key, sn.SnapshotID); err == nil && rec != nil {
			at = rec.Time
			n := int64(rec.Seq)
			seq = &n
		}
		row.time(at.UnixMicro())
		row.int8(sn.SnapshotID)
		row.optional(sn.ParentSnapshotID)
		op, summary := summaryOf(&sn)
		row.text(op)
		row.text(sn.ManifestList)
		row.text(summary)
		row.int8(sn.SequenceNumber)
		if sn.SchemaID == nil {
			row.nulls(1)
		} else {
			row.int4(int32(*sn.SchemaID))
		}
		row.optional(seq)
		row.bool(hasCurrent && sn.SnapshotID == current)
	}
	return b.NewRecordBatch(), nil
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
