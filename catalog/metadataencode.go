package catalog

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
)

// snapshotJSONBudget bounds the encoded snapshots that a metadataEncoder keeps, in bytes.
const snapshotJSONBudget = 32 << 20

// metadataEncoder writes metadata files. A table's snapshots are most of its metadata and never change, so their JSON is kept
// from one file to the next: a commit encodes its own snapshot only. One goroutine uses it, the leader of the group.
type metadataEncoder struct {
	tables map[uuid.UUID]map[int64]snapshotJSON
	size   int
}

// snapshotJSON is a snapshot as it was encoded, with what tells it from another one of the same id.
type snapshotJSON struct {
	sequence, timestamp int64
	list                string
	raw                 json.RawMessage
}

func (j snapshotJSON) is(s *table.Snapshot) bool {
	return j.sequence == s.SequenceNumber && j.timestamp == s.TimestampMs && j.list == s.ManifestList
}

// metadataDocument has the fields of iceberg-go's metadata in its order. It exists because the library's own encoding is
// O(snapshots) with a large constant.
type metadataDocument struct {
	LastSequenceNumber *int64                          `json:"last-sequence-number,omitempty"`
	FormatVersion      int                             `json:"format-version"`
	UUID               uuid.UUID                       `json:"table-uuid"`
	Location           string                          `json:"location"`
	LastUpdatedMS      int64                           `json:"last-updated-ms"`
	LastColumnID       int                             `json:"last-column-id"`
	Schemas            []*iceberg.Schema               `json:"schemas"`
	CurrentSchemaID    int                             `json:"current-schema-id"`
	Specs              []iceberg.PartitionSpec         `json:"partition-specs"`
	DefaultSpecID      int                             `json:"default-spec-id"`
	LastPartitionID    *int                            `json:"last-partition-id,omitempty"`
	Properties         iceberg.Properties              `json:"properties,omitempty"`
	CurrentSnapshotID  *int64                          `json:"current-snapshot-id,omitempty"`
	SnapshotLog        []table.SnapshotLogEntry        `json:"snapshot-log,omitempty"`
	MetadataLog        []table.MetadataLogEntry        `json:"metadata-log,omitempty"`
	SortOrders         []table.SortOrder               `json:"sort-orders"`
	DefaultSortOrderID int                             `json:"default-sort-order-id"`
	Refs               map[string]table.SnapshotRef    `json:"refs,omitempty"`
	Statistics         []table.StatisticsFile          `json:"statistics,omitempty"`
	PartitionStats     []table.PartitionStatisticsFile `json:"partition-statistics,omitempty"`
	EncryptionKeys     []table.EncryptionKey           `json:"encryption-keys,omitempty"`
	NextRowID          *int64                          `json:"next-row-id,omitempty"`
}

// encode returns the bytes of a metadata file with the table's compression.
func (e *metadataEncoder) encode(meta table.Metadata) ([]byte, error) {
	plain, err := e.document(meta)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	var z io.WriteCloser
	switch codec := meta.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault); codec {
	case table.MetadataCompressionCodecNone:
		return plain, nil
	case table.MetadataCompressionCodecGzip:
		z = gzip.NewWriter(&buf)
	case table.MetadataCompressionCodecZstd:
		if z, err = zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%w: metadata compression %q", ErrInvalidRequest, codec)
	}
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func (e *metadataEncoder) document(meta table.Metadata) ([]byte, error) {
	if meta.Version() < 2 { // nobody writes many of those
		b, err := json.Marshal(meta)
		return append(b, '\n'), err
	}
	seq := meta.LastSequenceNumber()
	d := metadataDocument{
		LastSequenceNumber: &seq, FormatVersion: meta.Version(), UUID: meta.TableUUID(), Location: meta.Location(), LastUpdatedMS: meta.LastUpdatedMillis(),
		LastColumnID: meta.LastColumnID(), Schemas: meta.Schemas(), CurrentSchemaID: meta.CurrentSchema().ID,
		Specs: meta.PartitionSpecs(), DefaultSpecID: meta.DefaultPartitionSpec(), LastPartitionID: meta.LastPartitionSpecID(),
		Properties: meta.Properties(), CurrentSnapshotID: headOf(meta),
		SnapshotLog: slices.Collect(meta.SnapshotLogs()), MetadataLog: slices.Collect(meta.PreviousFiles()),
		SortOrders: meta.SortOrders(), DefaultSortOrderID: meta.DefaultSortOrder(), Refs: map[string]table.SnapshotRef{},
		Statistics: slices.Collect(meta.Statistics()), PartitionStats: slices.Collect(meta.PartitionStatistics()), EncryptionKeys: slices.Collect(meta.EncryptionKeys()),
	}
	for name, ref := range meta.Refs() {
		d.Refs[name] = ref
	}
	if meta.Version() >= 3 {
		next := meta.NextRowID()
		d.NextRowID = &next
	}
	head, err := json.Marshal(&d)
	if err != nil {
		return nil, err
	}
	snapshots, size, err := e.snapshots(meta)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+size+len(snapshots)+64)
	out = append(out, head[:len(head)-1]...)
	if d.CurrentSnapshotID == nil && meta.Version() >= 3 {
		out = append(out, `,"current-snapshot-id":null`...) // required there
	}
	for i, s := range snapshots {
		if i == 0 {
			out = append(out, `,"snapshots":[`...)
		} else {
			out = append(out, ',')
		}
		out = append(out, s...)
	}
	if len(snapshots) > 0 {
		out = append(out, ']')
	}
	return append(out, '}', '\n'), nil
}

// snapshots returns the JSON of every snapshot, and its size in all.
func (e *metadataEncoder) snapshots(meta table.Metadata) ([]json.RawMessage, int, error) {
	old := e.tables[meta.TableUUID()]
	list := meta.Snapshots()
	now := make(map[int64]snapshotJSON, len(list))
	out := make([]json.RawMessage, len(list))
	size := 0
	for i := range list {
		s := &list[i]
		j, ok := old[s.SnapshotID]
		if !ok || !j.is(s) {
			raw, err := json.Marshal(s)
			if err != nil {
				return nil, 0, err
			}
			j = snapshotJSON{s.SequenceNumber, s.TimestampMs, s.ManifestList, raw}
		}
		now[s.SnapshotID], out[i] = j, j.raw
		size += len(j.raw)
	}
	for _, j := range old {
		e.size -= len(j.raw)
	}
	if e.size+size > snapshotJSONBudget || e.tables == nil {
		e.tables, e.size = map[uuid.UUID]map[int64]snapshotJSON{}, 0
	}
	if size <= snapshotJSONBudget {
		e.tables[meta.TableUUID()] = now
		e.size += size
	} else {
		delete(e.tables, meta.TableUUID())
	}
	return out, size, nil
}
