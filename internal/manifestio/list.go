package manifestio

import (
	"fmt"
	"io"
	"strconv"

	"github.com/apache/iceberg-go"
)

// List describes a manifest list to write.
type List struct {
	Version          int // 2 or 3
	SnapshotID       int64
	ParentSnapshotID *int64
	Sequence         int64
	// FirstRowID is where the snapshot's row ids begin, on version 3.
	FirstRowID int64
}

// Write writes the list to out. It returns how many row ids the snapshot takes on version 3, and the manifests as a reader of the
// list sees them, with the sequence numbers and first row ids that were assigned.
func (l List) Write(out io.Writer, manifests []iceberg.ManifestFile) (rows int64, read []iceberg.ManifestFile, err error) {
	if l.Version != 2 && l.Version != 3 {
		return 0, nil, fmt.Errorf("manifest list version %d cannot be written", l.Version)
	}
	schema, err := listSchema(l.Version)
	if err != nil {
		return 0, nil, err
	}
	parent := "null"
	if l.ParentSnapshotID != nil {
		parent = strconv.FormatInt(*l.ParentSnapshotID, 10)
	}
	meta := map[string][]byte{
		"avro.schema":        schema,
		"format-version":     []byte(strconv.Itoa(l.Version)),
		"snapshot-id":        []byte(strconv.FormatInt(l.SnapshotID, 10)),
		"parent-snapshot-id": []byte(parent),
		"sequence-number":    []byte(strconv.FormatInt(l.Sequence, 10)),
	}
	if l.Version == 3 {
		meta["first-row-id"] = []byte(strconv.FormatInt(l.FirstRowID, 10))
	}
	c := newContainer(out, meta)
	next := l.FirstRowID
	read = make([]iceberg.ManifestFile, 0, len(manifests))
	for _, m := range manifests {
		r, err := l.assign(m, &next)
		if err != nil {
			return 0, nil, err
		}
		c.block = l.append(c.block, r)
		if err := c.record(); err != nil {
			return 0, nil, err
		}
		read = append(read, r)
	}
	return next - l.FirstRowID, read, c.end()
}

// assign gives a manifest what it inherits from the list. Source: the spec's "Sequence Number Inheritance" and "First Row ID
// Assignment".
func (l List) assign(m iceberg.ManifestFile, next *int64) (iceberg.ManifestFile, error) {
	if m.Version() > l.Version {
		return nil, fmt.Errorf("a version %d manifest list cannot hold %s of version %d", l.Version, m.FilePath(), m.Version())
	}
	seq, least, first := m.SequenceNum(), m.MinSequenceNum(), m.FirstRowID()
	if (seq == -1 || least == -1) && m.SnapshotID() != l.SnapshotID {
		return nil, fmt.Errorf("%s of snapshot %d has no sequence number", m.FilePath(), m.SnapshotID())
	}
	if seq == -1 {
		seq = l.Sequence
	}
	if least == -1 {
		least = l.Sequence
	}
	if l.Version == 3 && first == nil && m.ManifestContent() == iceberg.ManifestContentData {
		at := *next
		first = &at
		*next += m.ExistingRows() + m.AddedRows()
	}
	if seq == m.SequenceNum() && least == m.MinSequenceNum() && first == m.FirstRowID() {
		return m, nil
	}
	b := iceberg.NewManifestFile(m.Version(), m.FilePath(), m.Length(), m.PartitionSpecID(), m.SnapshotID()).Content(m.ManifestContent()).
		SequenceNum(seq, least).AddedFiles(m.AddedDataFiles()).ExistingFiles(m.ExistingDataFiles()).DeletedFiles(m.DeletedDataFiles()).
		AddedRows(m.AddedRows()).ExistingRows(m.ExistingRows()).DeletedRows(m.DeletedRows()).Partitions(m.Partitions()).KeyMetadata(m.KeyMetadata())
	if l.Version == 3 {
		return &file{b.Build(), first}, nil
	}
	return b.Build(), nil
}

func (l List) append(b []byte, m iceberg.ManifestFile) []byte {
	b = appendBytes(b, m.FilePath())
	b = appendLong(b, m.Length())
	b = appendLong(b, int64(m.PartitionSpecID()))
	b = appendLong(b, int64(m.ManifestContent()))
	b = appendLong(b, m.SequenceNum())
	b = appendLong(b, m.MinSequenceNum())
	b = appendLong(b, m.SnapshotID())
	b = appendLong(b, int64(m.AddedDataFiles()))
	b = appendLong(b, int64(m.ExistingDataFiles()))
	b = appendLong(b, int64(m.DeletedDataFiles()))
	partitions := m.Partitions()
	if partitions == nil {
		partitions = []iceberg.FieldSummary{} // some readers want a list
	}
	b = appendOptArray(b, partitions, func(b []byte, s iceberg.FieldSummary) []byte {
		b = appendBool(b, s.ContainsNull)
		if s.ContainsNaN != nil {
			b = appendBool(appendSome(b), *s.ContainsNaN)
		} else {
			b = appendNull(b)
		}
		for _, v := range []*[]byte{s.LowerBound, s.UpperBound} {
			if v == nil {
				b = appendNull(b)
			} else {
				b = appendBytes(appendSome(b), *v)
			}
		}
		return b
	})
	b = appendLong(b, m.AddedRows())
	b = appendLong(b, m.ExistingRows())
	b = appendLong(b, m.DeletedRows())
	b = appendOptBytes(b, m.KeyMetadata())
	if l.Version == 3 {
		b = appendOptLong(b, m.FirstRowID())
	}
	return b
}
