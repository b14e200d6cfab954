package liveset

import (
	"context"
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Options configures a Cache.
type Options struct {
	FS     *storeio.FS
	Budget int64 // bytes of all caches together (default 512 MiB)
	Logger zerolog.Logger
}

// Cache derives sets and keeps what they were made from.
type Cache struct{ _ int }

// NewCache makes an empty cache.
func NewCache(o Options) *Cache { return &Cache{} }

// Ref says which table a set belongs to. Metadata must hold the snapshots asked for.
type Ref struct {
	UUID     uuid.UUID
	Metadata table.Metadata
}

// At returns the set of a snapshot.
func (c *Cache) At(ctx context.Context, ref Ref, snapshotID int64) (*Set, error) {
	return nil, ErrSnapshotNotFound
}

// Empty is the set of a table without a snapshot.
func Empty() *Set { return &Set{} }

// Set is a table at a snapshot. Immutable, safe for concurrent use.
type Set struct{ _ int }

// SnapshotID is the snapshot, ok false for the empty set.
func (s *Set) SnapshotID() (id int64, ok bool) { return 0, false }

// Files yields the live files in order (S4), those with all rows suppressed too.
func (s *Set) Files() iter.Seq[*LiveFile] { return func(func(*LiveFile) bool) {} }

// File returns the file at path, nil when the set has none.
func (s *Set) File(path string) *LiveFile { return nil }

// Rows is the number of live rows.
func (s *Set) Rows() int64 { return 0 }

// NumFiles is the number of data files.
func (s *Set) NumFiles() int { return 0 }

// Touched are the paths of files that were added, removed or got another bitmap against the set this one was derived from.
func (s *Set) Touched() []string { return nil }

// LiveFile is a data file in a set. Suppressed is nil when no row is; it is never modified.
type LiveFile struct {
	File       *File
	Suppressed *roaring.Bitmap
}

// Live is the number of live rows.
func (f *LiveFile) Live() int64 { return 0 }

// File is a data file as a manifest lists it.
type File struct {
	Path          string
	Records       int64
	Size          int64
	DataSeq       int64
	FileSeq       int64
	SpecID        int
	FirstRowID    *int64
	Data          iceberg.DataFile
	AddedSnapshot int64
}

// FileDiff is what changed in one file: rows live before and not after, and the reverse.
type FileDiff struct {
	File              *File
	Deleted, Inserted *roaring.Bitmap // nil when empty
}

// Diff returns the changed files in order (S4); its cost follows the change when the sets share structure.
func Diff(ctx context.Context, before, after *Set) ([]FileDiff, error) { return nil, nil }

// DeleteKind says what a delete file is.
type DeleteKind int

const (
	PositionDelete DeleteKind = iota
	DeletionVector
	EqualityDelete
)

// DeleteFile is a delete file as a manifest lists it.
type DeleteFile struct {
	Kind          DeleteKind
	Data          iceberg.DataFile
	DataSeq       int64
	FileSeq       int64
	AddedSnapshot int64
}

// DeleteFilesOf are the position deletes and the deletion vector that are scoped to the one file at path.
func (s *Set) DeleteFilesOf(path string) []*DeleteFile { return nil }

// DeleteFiles yields all delete files of the set, by path and content offset.
func (s *Set) DeleteFiles() iter.Seq[*DeleteFile] { return func(func(*DeleteFile) bool) {} }

// Overlay is a transaction's own writes on top of a set.
type Overlay struct {
	Add      []*File                    // files of the transaction
	Remove   []string                   // paths of files it removed
	Suppress map[string]*roaring.Bitmap // path → positions it deleted, added to those suppressed
}

// NewFile describes a data file that no manifest lists yet.
func NewFile(df iceberg.DataFile) *File { return &File{Data: df} }

// With returns the set with the overlay applied; the receiver does not change.
func (s *Set) With(ov Overlay) *Set { return s }

// Hit is a live row found by key. KeyOrdinal indexes the keys of the probe.
type Hit struct {
	KeyOrdinal int
	File       *LiveFile
	Pos        uint32
}

// Probe finds the live rows of keys, encoded by keyindex over the fields keyIDs in that order. Hits come by key ordinal, file order, position.
func (c *Cache) Probe(ctx context.Context, ref Ref, s *Set, keyIDs []int, keys [][]byte) ([]Hit, error) {
	return nil, nil
}

// ProbePrefix is Probe for keys that hold only the first len(keyIDs)-k columns of an index over indexIDs.
func (c *Cache) ProbePrefix(ctx context.Context, ref Ref, s *Set, indexIDs []int, n int, prefixes [][]byte) ([]Hit, error) {
	return nil, nil
}

// MetaColumns asks for columns that are not in the file's schema; appended in this order.
type MetaColumns struct {
	File           bool // _file text
	Pos            bool // _pos long
	RowID          bool // _row_id long, NULL when the table assigns none
	LastUpdatedSeq bool // _last_updated_sequence_number long
}

// ReadRows reads rows of one file by position (ascending), live or not.
func (c *Cache) ReadRows(ctx context.Context, ref Ref, f *File, sc *iceberg.Schema, meta MetaColumns, positions []uint32) (arrow.RecordBatch, error) {
	return nil, nil
}

// ReadHits reads the rows of hits, in the order of hits.
func (c *Cache) ReadHits(ctx context.Context, ref Ref, sc *iceberg.Schema, meta MetaColumns, hits []Hit) (arrow.RecordBatch, error) {
	return nil, nil
}

// ScanOptions says what Scan yields.
type ScanOptions struct {
	Meta      MetaColumns
	BatchRows int
	Files     []*LiveFile // nil = all of the set
}

// Scan yields the live rows, files and rows in order (S4). The consumer releases each batch.
func (c *Cache) Scan(ctx context.Context, ref Ref, s *Set, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(func(arrow.RecordBatch, error) bool) {}
}

// ScanPositions yields the rows at positions of one file, live or not.
func (c *Cache) ScanPositions(ctx context.Context, ref Ref, f *File, positions *roaring.Bitmap, sc *iceberg.Schema, o ScanOptions) iter.Seq2[arrow.RecordBatch, error] {
	return func(func(arrow.RecordBatch, error) bool) {}
}

// Reader returns the opened file with its footer cached. The caller does not close it.
func (c *Cache) Reader(ctx context.Context, f *File) (*parquetio.Reader, error) {
	return nil, ErrMissingFile
}

// Stats count the cache's work since it was made.
type Stats struct {
	ManifestLists, Manifests, DeleteFiles, DataFileScans, Footers, KeyIndexes, IndexBuilds int64
}

// Stats returns the counters.
func (c *Cache) Stats() Stats { return Stats{} }
