package liveset

import (
	"iter"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// Set is a table at a snapshot. Immutable, safe for concurrent use.
type Set struct {
	uuid     uuid.UUID
	snapshot int64
	has      bool
	rows     int64
	touched  []string

	files  *node[*LiveFile]   // by place (V4)
	byPath *node[*LiveFile]   // by path
	dels   *node[*DeleteFile] // by key
	scoped *node[*delList]    // path → position deletes and vector of that file alone
	byPart *node[*delList]    // partition → position deletes of the partition
	equal  *node[*delList]    // partition, or global → equality deletes

	repeatedFiles *node[*repeated[*File]]       // path → its entries, of paths that have several
	repeatedDels  *node[*repeated[*DeleteFile]] // key → the same

	manifests map[string]iceberg.ManifestFile

	keyTrees *keyTrees // shared with the sets it was derived from and those derived from it
}

// globalPart is the key of equality deletes that reach every partition.
const globalPart = ""

// delList is a small immutable list of delete files.
type delList struct{ files []*DeleteFile }

func (l *delList) list() []*DeleteFile {
	if l == nil {
		return nil
	}
	return l.files
}

func addDel(t *node[*delList], key string, d *DeleteFile) *node[*delList] {
	old, _ := t.get(key)
	files := make([]*DeleteFile, 0, len(old.list())+1)
	for _, x := range old.list() {
		if x.key != d.key {
			files = append(files, x)
		}
	}
	return t.put(key, &delList{append(files, d)})
}

func dropDel(t *node[*delList], key string, d *DeleteFile) *node[*delList] {
	old, _ := t.get(key)
	var files []*DeleteFile
	for _, x := range old.list() {
		if x.key != d.key {
			files = append(files, x)
		}
	}
	if len(files) == 0 {
		return t.del(key)
	}
	return t.put(key, &delList{files})
}

var empty = &Set{}

// Empty is the set of a table without a snapshot.
func Empty() *Set { return empty }

// SnapshotID is the snapshot, ok false for the empty set. An overlaid set has its base's.
func (s *Set) SnapshotID() (id int64, ok bool) { return s.snapshot, s.has }

// Files yields the live files in order (V4), those with every row suppressed too.
func (s *Set) Files() iter.Seq[*LiveFile] {
	return func(yield func(*LiveFile) bool) {
		s.files.walk(func(_ string, f *LiveFile) bool { return yield(f) })
	}
}

// File returns the file at path, nil when the set has none.
func (s *Set) File(path string) *LiveFile {
	f, _ := s.byPath.get(path)
	return f
}

// Rows is the number of live rows.
func (s *Set) Rows() int64 { return s.rows }

// NumFiles is the number of data files.
func (s *Set) NumFiles() int { return s.files.size() }

// Touched are the paths, sorted, of files that were added, removed or got another bitmap against the set this one was derived from,
// which is its parent when that was cached. For the change between two given sets use Diff.
func (s *Set) Touched() []string { return s.touched }

// DeleteFilesOf are the position deletes and the deletion vector that are scoped to the one file at path, as the writer needs
// them to replace a vector. Partition-scoped deletes are not among them.
func (s *Set) DeleteFilesOf(path string) []*DeleteFile {
	l, _ := s.scoped.get(path)
	return l.list()
}

// DeleteFiles yields all delete files of the set, by path and content offset.
func (s *Set) DeleteFiles() iter.Seq[*DeleteFile] {
	return func(yield func(*DeleteFile) bool) {
		s.dels.walk(func(_ string, d *DeleteFile) bool { return yield(d) })
	}
}

// NumDeleteFiles is the number of delete files, each vector counted.
func (s *Set) NumDeleteFiles() int { return s.dels.size() }

// Manifests are the manifests of the snapshot, in no order. The caller must not change the map.
func (s *Set) Manifests() map[string]iceberg.ManifestFile { return s.manifests }

// putFile sets a file; the receiver is under construction.
func (s *Set) putFile(f *LiveFile) {
	if old, ok := s.byPath.get(f.File.Path); ok {
		s.rows -= old.Live()
		if old.File.order != f.File.order {
			s.files = s.files.del(old.File.order)
		}
	}
	s.rows += f.Live()
	s.files = s.files.put(f.File.order, f)
	s.byPath = s.byPath.put(f.File.Path, f)
}

func (s *Set) dropFile(path string) {
	old, ok := s.byPath.get(path)
	if !ok {
		return
	}
	s.rows -= old.Live()
	s.files = s.files.del(old.File.order)
	s.byPath = s.byPath.del(path)
}

// Overlay is a transaction's own writes on top of a set.
type Overlay struct {
	// Add are the transaction's files (NewFile).
	Add []*File
	// Remove are paths of files the transaction removed.
	Remove []string
	// Suppress is path → positions the transaction deleted, added to those suppressed. The bitmaps must not change afterwards.
	Suppress map[string]*roaring.Bitmap
}

// With returns the set with the overlay applied; the receiver does not change and most structure is shared.
func (s *Set) With(ov Overlay) *Set {
	out := *s
	for _, p := range ov.Remove {
		out.dropFile(p)
	}
	for _, f := range ov.Add {
		out.putFile(newLive(f, nil, nil))
	}
	for p, b := range ov.Suppress {
		if f := out.File(p); f != nil && !b.IsEmpty() {
			out.putFile(newLive(f.File, union(f.pos, b), f.eq))
		}
	}
	return &out
}
