package liveset

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
)

// File is a data file as a manifest lists it. Immutable, shared by all sets that hold it.
type File struct {
	Path          string
	Records       int64
	Size          int64
	DataSeq       int64 // data sequence number: which deletes apply
	FileSeq       int64 // file sequence number: when it was added
	SpecID        int
	FirstRowID    *int64 // v3, nil when rows have no implicit ids
	Data          iceberg.DataFile
	AddedSnapshot int64

	part  string   // spec and partition values, for the scope of deletes
	order string   // place among the files (V4)
	mem   *MemRows // its rows, when they are in no file

	hot fileHot
}

// overlayFile marks files that no snapshot holds yet: they order after all that do.
const overlaySeq = 1<<63 - 1

// NewFile describes a data file that no manifest lists yet, for Overlay. Its sequence numbers are the largest there are: no delete of
// the base reaches it and it orders last.
func NewFile(df iceberg.DataFile) *File {
	return newFile(df, overlaySeq, overlaySeq, 0)
}

func newFile(df iceberg.DataFile, dataSeq, fileSeq, snapshot int64) *File {
	f := &File{
		Path: df.FilePath(), Records: df.Count(), Size: df.FileSizeBytes(), DataSeq: dataSeq, FileSeq: fileSeq,
		SpecID: int(df.SpecID()), FirstRowID: df.FirstRowID(), Data: df, AddedSnapshot: snapshot, part: partitionKey(df),
	}
	f.order = orderKey(fileSeq, dataSeq, f.Path)
	return f
}

func orderKey(fileSeq, dataSeq int64, path string) string {
	b := make([]byte, 0, 16+len(path))
	b = binary.BigEndian.AppendUint64(b, uint64(fileSeq)^1<<63)
	b = binary.BigEndian.AppendUint64(b, uint64(dataSeq)^1<<63)
	return string(append(b, path...))
}

// same says whether two descriptions are of one entry: a file rewritten under its old path is another.
func (f *File) same(g *File) bool {
	return f == g || f.Path == g.Path && f.DataSeq == g.DataSeq && f.FileSeq == g.FileSeq && f.Records == g.Records && f.part == g.part
}

// partitionKey is a string that two files of one spec and partition share, and no others.
func partitionKey(df iceberg.DataFile) string {
	vals := df.Partition()
	ids := make([]int, 0, len(vals))
	for id := range vals {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(df.SpecID())))
	for _, id := range ids {
		fmt.Fprintf(&b, "/%d=", id)
		switch v := vals[id].(type) {
		case nil:
			b.WriteString("null")
		case []byte:
			fmt.Fprintf(&b, "%x", v)
		default:
			fmt.Fprintf(&b, "%q", fmt.Sprint(v))
		}
	}
	return b.String()
}

// LiveFile is a data file in a set. Suppressed is nil when every row is live; it is NEVER modified.
type LiveFile struct {
	File       *File
	Suppressed *roaring.Bitmap

	pos *roaring.Bitmap // of Suppressed, what position deletes or the deletion vector take
	eq  *roaring.Bitmap // and what equality deletes take
}

// Live is the number of live rows.
func (f *LiveFile) Live() int64 {
	if f.Suppressed == nil {
		return f.File.Records
	}
	return f.File.Records - int64(f.Suppressed.GetCardinality())
}

// IsLive tells whether the row at pos is live.
func (f *LiveFile) IsLive(pos uint32) bool {
	return f.Suppressed == nil || !f.Suppressed.Contains(pos)
}

// newLive joins the parts; empty bitmaps become nil.
func newLive(f *File, pos, eq *roaring.Bitmap) *LiveFile {
	l := &LiveFile{File: f, pos: orNil(pos), eq: orNil(eq)}
	switch {
	case l.pos == nil:
		l.Suppressed = l.eq
	case l.eq == nil:
		l.Suppressed = l.pos
	default:
		l.Suppressed = roaring.Or(l.pos, l.eq)
	}
	return l
}

func orNil(b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil || b.IsEmpty() {
		return nil
	}
	return b
}

// union is a ∪ b; either may be nil, neither changes.
func union(a, b *roaring.Bitmap) *roaring.Bitmap {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return roaring.Or(a, b)
}

func bitmapsEqual(a, b *roaring.Bitmap) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equals(b)
}

// DeleteKind says what a delete file is.
type DeleteKind int

// The kinds of delete files.
const (
	PositionDelete DeleteKind = iota
	DeletionVector
	EqualityDelete
)

func (k DeleteKind) String() string {
	return [...]string{"position delete", "deletion vector", "equality delete"}[k]
}

// DeleteFile is a delete file, or one deletion vector of a Puffin file, as a manifest lists it. Immutable.
type DeleteFile struct {
	Kind          DeleteKind
	Data          iceberg.DataFile
	DataSeq       int64
	FileSeq       int64
	AddedSnapshot int64

	key  string // path and offset: one Puffin file holds many vectors
	ref  string // the one data file it is scoped to, empty when partition-scoped
	part string
}

func newDelete(df iceberg.DataFile, dataSeq, fileSeq, snapshot int64) *DeleteFile {
	d := &DeleteFile{Data: df, DataSeq: dataSeq, FileSeq: fileSeq, AddedSnapshot: snapshot, part: partitionKey(df)}
	d.key = df.FilePath()
	switch {
	case df.ContentType() == iceberg.EntryContentEqDeletes:
		d.Kind = EqualityDelete
	case df.FileFormat() == iceberg.PuffinFile:
		d.Kind = DeletionVector
		if o := df.ContentOffset(); o != nil {
			d.key += "#" + strconv.FormatInt(*o, 10)
		}
	}
	if d.Kind != EqualityDelete {
		d.ref = referencedFile(df)
	}
	return d
}

// Reserved field ids of position delete files.
const (
	deletePathID = 2147483546
	deletePosID  = 2147483545
)

// referencedFile is the data file a position delete is scoped to: named, or told by equal bounds of its path column (a bound that was cut
// differs from the other).
func referencedFile(df iceberg.DataFile) string {
	if r := df.ReferencedDataFile(); r != nil {
		return *r
	}
	lo, hi := df.LowerBoundValues()[deletePathID], df.UpperBoundValues()[deletePathID]
	if len(lo) > 0 && string(lo) == string(hi) {
		return string(lo)
	}
	return ""
}
