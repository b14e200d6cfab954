package testkit

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Raw commits snapshots to a table of a catalog entry by entry, with nothing of ours between it and the files but the catalog's swap of the metadata:
// what any other writer may do, it can do.
type Raw struct {
	Catalog *catalog.Catalog
	FS      *storeio.FS
	Ident   icetable.Identifier

	snapshots int64
}

// RawFile is a data or delete file to add. Seq is an older data sequence number, as of a compaction with use-starting-sequence-number; 0 is the
// commit's own.
type RawFile struct {
	iceberg.DataFile
	Seq int64
}

// RawCommit is one snapshot.
type RawCommit struct {
	Add    []RawFile
	Remove []string           // entries, by EntryKey
	Op     icetable.Operation // default: overwrite
	Branch string             // default: main. A branch that is not there begins at main's head
	Merge  bool               // rewrite all manifests into one per content and spec
	// NoSummary leaves the summary out, NoParent the parent.
	NoSummary, NoParent bool
}

// Meta is the table's current metadata.
func (w *Raw) Meta(t testing.TB) icetable.Metadata {
	t.Helper()
	st, err := w.Catalog.Cut().Table(w.Ident)
	must(t, err)
	m, err := st.Metadata(context.Background())
	must(t, err)
	return m
}

// Alter commits metadata updates as they are.
func (w *Raw) Alter(t testing.TB, updates ...icetable.Update) {
	t.Helper()
	st, err := w.Catalog.Cut().Table(w.Ident)
	must(t, err)
	_, err = w.Catalog.Commit(context.Background(), &catalog.Request{Changes: []catalog.Change{
		catalog.UpdateTable{Ident: w.Ident, Key: st.Key, Updates: updates}}})
	must(t, err)
}

// SetRef points a branch or tag at a snapshot.
func (w *Raw) SetRef(t testing.TB, name string, kind icetable.RefType, id int64) {
	t.Helper()
	w.Alter(t, icetable.NewSetSnapshotRefUpdate(name, id, kind, -1, -1, -1))
}

// Path is a fresh place for a file of the table.
func (w *Raw) Path(t testing.TB, folder, suffix string) string {
	t.Helper()
	dir := filepath.Join(storeio.PathOf(w.Meta(t).Location()), folder)
	must(t, os.MkdirAll(dir, 0o755))
	return filepath.Join(dir, "raw-"+uuid.NewString()+suffix)
}

// head is the snapshot a commit goes on from.
func (w *Raw) head(meta icetable.Metadata, branch string) *icetable.Snapshot {
	for name, ref := range meta.Refs() {
		if name == branch {
			return meta.SnapshotByID(ref.SnapshotID)
		}
	}
	return meta.CurrentSnapshot()
}

// Commit writes the snapshot's manifests and its list, and commits it. It returns the snapshot's id.
func (w *Raw) Commit(t testing.TB, c RawCommit) int64 {
	t.Helper()
	meta := w.Meta(t)
	if c.Branch == "" {
		c.Branch = icetable.MainBranch
	}
	if c.Op == "" {
		c.Op = icetable.OpOverwrite
	}
	id := func() int64 { return w.snapshots*1_000_003 + 17 }
	for w.snapshots++; meta.SnapshotByID(id()) != nil; w.snapshots++ {
	}
	s := &rawSnapshot{Raw: w, t: t, meta: meta, id: id(), seq: meta.LastSequenceNumber() + 1, commit: c}
	s.parent = w.head(meta, c.Branch)
	s.manifests()
	snap := s.list()
	w.Alter(t, icetable.NewAddSnapshotUpdate(snap), icetable.NewSetSnapshotRefUpdate(c.Branch, s.id, icetable.BranchRef, -1, -1, -1))
	return s.id
}

// rawSnapshot is a snapshot under construction.
type rawSnapshot struct {
	*Raw
	t      testing.TB
	meta   icetable.Metadata
	id     int64
	seq    int64
	parent *icetable.Snapshot
	commit RawCommit
	out    []iceberg.ManifestFile
}

type rawEntry struct {
	status iceberg.ManifestEntryStatus
	snap   int64
	seq    *int64
	fseq   *int64
	df     iceberg.DataFile
}

// group is one manifest to write.
type group struct {
	spec    int
	content iceberg.ManifestContent
}

func (s *rawSnapshot) manifests() {
	fresh := map[group][]rawEntry{}
	var order []group
	put := func(g group, e rawEntry) {
		if fresh[g] == nil {
			order = append(order, g)
		}
		fresh[g] = append(fresh[g], e)
	}
	left := slices.Clone(s.commit.Remove)
	for _, m := range s.old() {
		entries, rewrite := s.carried(m, &left)
		if !rewrite {
			s.out = append(s.out, m)
			continue
		}
		g := group{int(m.PartitionSpecID()), m.ManifestContent()}
		for _, e := range entries {
			put(g, e)
		}
		if !s.commit.Merge {
			s.write(g, fresh[g])
			delete(fresh, g)
			order = slices.DeleteFunc(order, func(x group) bool { return x == g })
		}
	}
	if len(left) > 0 {
		s.t.Fatalf("the table has no entries %v to remove", left)
	}
	for _, f := range s.commit.Add {
		g := group{int(f.SpecID()), iceberg.ManifestContentData}
		if f.ContentType() != iceberg.EntryContentData {
			g.content = iceberg.ManifestContentDeletes
		}
		e := rawEntry{status: iceberg.EntryStatusADDED, snap: s.id, df: f.DataFile}
		if f.Seq > 0 {
			e.seq = &f.Seq
		}
		put(g, e)
	}
	for _, g := range order {
		s.write(g, fresh[g])
	}
}

func (s *rawSnapshot) old() []iceberg.ManifestFile {
	if s.parent == nil {
		return nil
	}
	list, err := s.parent.Manifests(s.FS)
	must(s.t, err)
	return list
}

// carried are a manifest's entries as the next one has them, and whether it must be rewritten at all.
func (s *rawSnapshot) carried(m iceberg.ManifestFile, remove *[]string) (out []rawEntry, rewrite bool) {
	rewrite = s.commit.Merge
	for e, err := range m.Entries(s.FS, true) {
		must(s.t, err)
		seq := e.SequenceNum()
		x := rawEntry{status: iceberg.EntryStatusEXISTING, snap: e.SnapshotID(), seq: &seq, fseq: e.FileSequenceNum(), df: e.DataFile()}
		if slices.Contains(s.commit.Remove, EntryKey(x.df)) {
			*remove = slices.DeleteFunc(*remove, func(k string) bool { return k == EntryKey(x.df) })
			x.status, x.snap, rewrite = iceberg.EntryStatusDELETED, s.id, true
		}
		out = append(out, x)
	}
	return out, rewrite
}

func (s *rawSnapshot) write(g group, entries []rawEntry) {
	if len(entries) == 0 {
		return
	}
	path := s.Path(s.t, "metadata", ".avro")
	f, err := os.Create(path)
	must(s.t, err)
	w, err := iceberg.NewManifestWriter(s.meta.Version(), f, *s.meta.PartitionSpecByID(g.spec), s.meta.CurrentSchema(), s.id,
		iceberg.WithManifestWriterContent(g.content))
	must(s.t, err)
	for _, e := range entries {
		x := iceberg.NewManifestEntry(e.status, &e.snap, e.seq, e.fseq, e.df)
		switch e.status {
		case iceberg.EntryStatusADDED:
			err = w.Add(x)
		case iceberg.EntryStatusEXISTING:
			err = w.Existing(x)
		default:
			err = w.Delete(x)
		}
		must(s.t, err)
	}
	must(s.t, w.Close())
	st, err := f.Stat()
	must(s.t, err)
	mf, err := w.ToManifestFile(path, st.Size())
	must(s.t, err)
	must(s.t, f.Close())
	s.out = append(s.out, mf)
}

// list writes the manifest list and describes the snapshot.
func (s *rawSnapshot) list() *icetable.Snapshot {
	path := s.Path(s.t, "metadata", "-list.avro")
	f, err := os.Create(path)
	must(s.t, err)
	snap := &icetable.Snapshot{SnapshotID: s.id, SequenceNumber: s.seq, ManifestList: path, TimestampMs: time.Now().UnixMilli()}
	if s.parent != nil && !s.commit.NoParent {
		snap.ParentSnapshotID = &s.parent.SnapshotID
	}
	first := s.meta.NextRowID()
	must(s.t, iceberg.WriteManifestList(s.meta.Version(), f, s.id, snap.ParentSnapshotID, &s.seq, first, s.out))
	must(s.t, f.Close())
	snap.TimestampMs = max(snap.TimestampMs, s.meta.LastUpdatedMillis())
	if !s.commit.NoSummary {
		snap.Summary = &icetable.Summary{Operation: s.commit.Op}
	}
	schema := s.meta.CurrentSchema().ID
	snap.SchemaID = &schema
	if s.meta.Version() >= 3 {
		added := s.nextRow(path, first) - first
		snap.FirstRowID, snap.AddedRows = &first, &added
	}
	return snap
}

// nextRow is the row id after those that the list assigned.
func (s *rawSnapshot) nextRow(path string, first int64) int64 {
	f, err := os.Open(path)
	must(s.t, err)
	defer f.Close()
	list, err := iceberg.ReadManifestList(f)
	must(s.t, err)
	next := first
	for _, m := range list {
		if at := m.FirstRowID(); at != nil && m.ManifestContent() == iceberg.ManifestContentData {
			next = max(next, *at+m.AddedRows()+m.ExistingRows())
		}
	}
	return next
}
