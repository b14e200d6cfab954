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
	chain                            *chain // whose lists the first two begin
}

// The lists' names, in the order of the file.
var documentLists = [...]string{`,"snapshots":[`, `,"snapshot-log":[`, `,"metadata-log":[`}

func (d *document) lists() [3][]byte { return [3][]byte{d.snapshots, d.snapshotLog, d.oldFiles} }

const documentEnd = "}\n"

// size is the file's in bytes, uncompressed.
func (d *document) size() int {
	size := len(d.head) + len(documentEnd)
	for i, l := range d.lists() {
		if len(l) > 0 {
			size += len(documentLists[i]) + len(l) + 1
		}
	}
	return size
}

// bytes is the file, uncompressed.
func (d *document) bytes() []byte {
	out := append(make([]byte, 0, d.size()), d.head...)
	for i, l := range d.lists() {
		if len(l) > 0 {
			out = append(append(append(out, documentLists[i]...), l...), ']')
		}
	}
	return append(out, documentEnd...)
}

// patch makes the file from the one at path that holds base, nil when they have nothing in common.
func (d *document) patch(path string, base *document) *patch {
	if base == nil || d.chain == nil || d.chain != base.chain || len(base.snapshots) == 0 || len(base.snapshots) > len(d.snapshots) || len(base.snapshotLog) > len(d.snapshotLog) {
		return nil
	}
	p := &patch{base: path, baseSize: int64(base.size()), size: int64(d.size())}
	var fresh []byte
	flush := func() {
		if len(fresh) > 0 {
			p.parts = append(p.parts, patchPart{bytes: fresh})
			fresh = nil
		}
	}
	fresh = append(fresh, d.head...)
	was, at := base.lists(), int64(len(base.head))
	for i, l := range d.lists() {
		if len(was[i]) > 0 {
			at += int64(len(documentLists[i]))
		}
		if len(l) > 0 {
			fresh = append(fresh, documentLists[i]...)
			skip, same := 0, len(was[i])
			if i == 2 {
				skip, same = shifted(was[i], l)
			}
			if same > 0 {
				flush()
				p.parts = append(p.parts, patchPart{off: at + int64(skip), n: int64(same)})
			}
			fresh = append(append(fresh, l[same:]...), ']')
		}
		if len(was[i]) > 0 {
			at += int64(len(was[i])) + 1
		}
	}
	fresh = append(fresh, documentEnd...)
	flush()
	return p
}

// shifted finds where the list now begins in the list it was before, of which the first elements may have been dropped, and how many bytes
// they share from there.
func shifted(was, now []byte) (skip, same int) {
	first, _, _ := bytes.Cut(now, []byte("},"))
	skip = bytes.Index(was, first)
	if skip < 0 || len(was)-skip > len(now) || !bytes.Equal(was[skip:], now[:len(was)-skip]) {
		return 0, 0
	}
	return skip, len(was) - skip
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
	out := &document{head: head, chain: m.chain}
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
