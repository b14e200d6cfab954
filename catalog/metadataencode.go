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

// metadataDocument has the fields of iceberg-go's metadata, but for the three lists that grow with commits: snapshots, snapshot log and
// metadata log. It exists because the library encodes all of them whenever it is asked.
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
	SortOrders         []table.SortOrder               `json:"sort-orders"`
	DefaultSortOrderID int                             `json:"default-sort-order-id"`
	Refs               map[string]table.SnapshotRef    `json:"refs,omitempty"`
	Statistics         []table.StatisticsFile          `json:"statistics,omitempty"`
	PartitionStats     []table.PartitionStatisticsFile `json:"partition-statistics,omitempty"`
	EncryptionKeys     []table.EncryptionKey           `json:"encryption-keys,omitempty"`
	NextRowID          *int64                          `json:"next-row-id,omitempty"`
}

// document is a metadata file in parts: the head, and the lists, each the JSON of its elements joined by commas.
type document struct {
	head                             []byte // up to the lists, without the closing brace
	snapshots, snapshotLog, oldFiles []byte
}

// The lists' names, in the order of the file.
var documentLists = [...]string{`,"snapshots":[`, `,"snapshot-log":[`, `,"metadata-log":[`}

func (d *document) lists() [3][]byte { return [3][]byte{d.snapshots, d.snapshotLog, d.oldFiles} }

// bytes is the file, uncompressed.
func (d *document) bytes() []byte {
	size := len(d.head) + 3
	for _, l := range d.lists() {
		size += len(l) + 20
	}
	out := append(make([]byte, 0, size), d.head...)
	for i, l := range d.lists() {
		if len(l) > 0 {
			out = append(append(append(out, documentLists[i]...), l...), ']')
		}
	}
	return append(out, '}', '\n')
}

// encodeMetadata returns the bytes of a metadata file with the table's compression.
func encodeMetadata(meta table.Metadata) ([]byte, error) {
	d, err := encodeDocument(chainOf(meta, nil))
	if err != nil {
		return nil, err
	}
	plain := d.bytes()
	var buf bytes.Buffer
	var z io.WriteCloser
	switch codec := compressionOf(meta); codec {
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

func compressionOf(meta table.Metadata) string {
	return meta.Properties().Get(table.MetadataCompressionKey, table.MetadataCompressionDefault)
}

// encodeDocument encodes what is new in the metadata and takes the rest from its chain.
func encodeDocument(m *chained) (*document, error) {
	if m.Version() < 2 { // nobody adds to those
		b, err := json.Marshal(m.Metadata)
		return &document{head: bytes.TrimSuffix(b, []byte("}"))}, err
	}
	d := metadataDocument{
		FormatVersion: m.Version(), UUID: m.TableUUID(), Location: m.Location(), LastUpdatedMS: m.updated, LastColumnID: m.LastColumnID(),
		Schemas: m.fixed.schemas, CurrentSchemaID: m.fixed.schema.ID, Specs: m.fixed.specs, DefaultSpecID: m.DefaultPartitionSpec(),
		LastPartitionID: m.LastPartitionSpecID(), Properties: m.fixed.properties, CurrentSnapshotID: m.current,
		SortOrders: m.SortOrders(), DefaultSortOrderID: m.DefaultSortOrder(), Refs: m.refs,
		Statistics: slices.Collect(m.Statistics()), PartitionStats: slices.Collect(m.PartitionStatistics()), EncryptionKeys: slices.Collect(m.EncryptionKeys()),
	}
	d.LastSequenceNumber = &m.sequence
	if m.Version() >= 3 {
		d.NextRowID = &m.nextRow
	}
	head, err := json.Marshal(&d)
	if err != nil {
		return nil, err
	}
	head = head[:len(head)-1]
	if m.current == nil && m.Version() >= 3 {
		head = append(head, `,"current-snapshot-id":null`...) // required there
	}
	out := &document{head: head}
	c := m.chain
	c.mu.Lock()
	defer c.mu.Unlock()
	if out.snapshots, err = upTo(&c.mu.json, m.snapshots); err != nil {
		return nil, err
	}
	if out.snapshotLog, err = upTo(&c.mu.logJSON, m.log); err != nil {
		return nil, err
	}
	var old jsonList
	out.oldFiles, err = upTo(&old, m.metadataLog)
	return out, err
}
