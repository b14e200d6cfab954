package manifestio

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/iceberg-go"
)

// Entry is one line of a manifest. Source: the spec's manifest_entry.
type Entry struct {
	Status iceberg.ManifestEntryStatus
	// SnapshotID added or removed the file; 0 is the manifest's own.
	SnapshotID int64
	// Sequence and FileSequence are nil where they are inherited: ADDED files only.
	Sequence, FileSequence *int64
	File                   iceberg.DataFile
}

// Manifest describes a manifest to write.
type Manifest struct {
	Version    int // 2 or 3
	Content    iceberg.ManifestContent
	Spec       iceberg.PartitionSpec
	Schema     *iceberg.Schema
	SnapshotID int64
	// FirstRowID is the manifest's own on version 3, when it is not assigned by the list.
	FirstRowID *int64
}

// file is a manifest file with a first_row_id, which iceberg-go's builder cannot set.
type file struct {
	iceberg.ManifestFile
	firstRowID *int64
}

func (f *file) FirstRowID() *int64 { return f.firstRowID }

// Write writes a manifest to out and returns what the manifest list says of it: its path is path, its sequence numbers are -1
// when they are the commit's. Entries of another content, or none, are an error.
func (m Manifest) Write(out io.Writer, path string, entries []Entry) (iceberg.ManifestFile, error) {
	if m.Version != 2 && m.Version != 3 {
		return nil, fmt.Errorf("manifest version %d cannot be written", m.Version)
	}
	if len(entries) == 0 {
		return nil, iceberg.ErrEmptyManifest
	}
	meta, err := manifestHeader(m.Version, m.Content, m.Spec, m.Schema)
	if err != nil {
		return nil, err
	}
	fields, err := partitionFields(m.Spec, m.Schema)
	if err != nil {
		return nil, err
	}
	c := newContainer(out, meta)
	var files [3]int32
	var rows [3]int64
	least := int64(-1)
	for i := range entries {
		e := &entries[i]
		if err := m.check(e); err != nil {
			return nil, err
		}
		if c.block, err = m.append(c.block, e, fields); err != nil {
			return nil, err
		}
		if err := c.record(); err != nil {
			return nil, err
		}
		files[e.Status]++
		rows[e.Status] += e.File.Count()
		if e.Status != iceberg.EntryStatusDELETED && e.Sequence != nil && *e.Sequence >= 0 && (least < 0 || *e.Sequence < least) {
			least = *e.Sequence
		}
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	summaries := make([]iceberg.FieldSummary, len(fields))
	for i := range fields {
		summaries[i] = fields[i].done()
	}
	mf := iceberg.NewManifestFile(m.Version, path, c.n, int32(m.Spec.ID()), m.SnapshotID).Content(m.Content).SequenceNum(-1, least).
		AddedFiles(files[iceberg.EntryStatusADDED]).ExistingFiles(files[iceberg.EntryStatusEXISTING]).DeletedFiles(files[iceberg.EntryStatusDELETED]).
		AddedRows(rows[iceberg.EntryStatusADDED]).ExistingRows(rows[iceberg.EntryStatusEXISTING]).DeletedRows(rows[iceberg.EntryStatusDELETED]).
		Partitions(summaries).Build()
	return &file{mf, m.FirstRowID}, nil
}

func (m Manifest) check(e *Entry) error {
	if e.Status < iceberg.EntryStatusEXISTING || e.Status > iceberg.EntryStatusDELETED {
		return fmt.Errorf("manifest entry of %s: unknown status %d", e.File.FilePath(), e.Status)
	}
	if data := e.File.ContentType() == iceberg.EntryContentData; data != (m.Content == iceberg.ManifestContentData) {
		return fmt.Errorf("%s does not belong into a manifest of %s", e.File.FilePath(), m.Content)
	}
	if e.Sequence == nil && e.Status != iceberg.EntryStatusADDED {
		return fmt.Errorf("manifest entry of %s has no sequence number", e.File.FilePath())
	}
	return nil
}

// append writes one manifest_entry.
func (m Manifest) append(b []byte, e *Entry, fields []partitionField) ([]byte, error) {
	id := e.SnapshotID
	if id == 0 {
		id = m.SnapshotID
	}
	b = appendLong(b, int64(e.Status))
	b = appendLong(appendSome(b), id)
	b = appendOptLong(b, e.Sequence)
	b = appendOptLong(b, e.FileSequence)

	d, ok := e.File.(*dataFile)
	if !ok || m.Version != 2 || len(fields) > 0 {
		return m.appendFile(b, e.File, fields)
	}
	if known := d.record.Load(); known != nil {
		return append(b, *known...), nil
	}
	start := len(b)
	b, err := m.appendFile(b, e.File, fields)
	if err == nil {
		known := bytes.Clone(b[start:])
		d.record.Store(&known)
	}
	return b, err
}

// appendFile writes one data_file.
func (m Manifest) appendFile(b []byte, f iceberg.DataFile, fields []partitionField) ([]byte, error) {
	b = appendLong(b, int64(f.ContentType()))
	b = appendBytes(b, f.FilePath())
	b = appendBytes(b, string(f.FileFormat()))
	b = appendLong(b, f.Count())
	b = appendLong(b, f.FileSizeBytes())
	b = appendOptMap(b, f.ColumnSizes(), appendLong)
	b = appendOptMap(b, f.ValueCounts(), appendLong)
	b = appendOptMap(b, f.NullValueCounts(), appendLong)
	b = appendOptMap(b, f.NaNValueCounts(), appendLong)
	b = appendOptMap(b, f.LowerBoundValues(), appendBytes[[]byte])
	b = appendOptMap(b, f.UpperBoundValues(), appendBytes[[]byte])
	b = appendOptBytes(b, f.KeyMetadata())
	b = appendOptArray(b, f.SplitOffsets(), appendLong)
	b = appendOptArray(b, f.EqualityFieldIDs(), func(b []byte, v int) []byte { return appendLong(b, int64(v)) })
	if s := f.SortOrderID(); s != nil {
		b = appendLong(appendSome(b), int64(*s))
	} else {
		b = appendNull(b)
	}
	if m.Version >= 3 {
		b = appendOptLong(b, f.FirstRowID())
		b = m.appendReferenced(b, f)
		b = appendOptLong(b, f.ContentOffset())
		b = appendOptLong(b, f.ContentSizeInBytes())
	}
	partition := f.Partition()
	var err error
	for i := range fields {
		if b, err = fields[i].append(b, partition[fields[i].id]); err != nil {
			return nil, fmt.Errorf("%s: %w", f.FilePath(), err)
		}
	}
	if m.Version == 2 {
		b = m.appendReferenced(b, f)
	}
	return b, nil
}

func (m Manifest) appendReferenced(b []byte, f iceberg.DataFile) []byte {
	ref := f.ReferencedDataFile()
	if ref == nil {
		return appendNull(b)
	}
	return appendBytes(appendSome(b), *ref)
}
