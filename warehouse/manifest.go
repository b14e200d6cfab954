package warehouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"github.com/nordisk/skade-pg/internal/manifestio"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// defaultMergeFanIn is how many manifests of one size class make a merge. Classes are powers of the fan-in, so a table
// with n files has at most (fan-in − 1)·log(n) manifests per content and spec, and each entry is rewritten log(n) times.
const defaultMergeFanIn = 16

const (
	propMergeEnabled  = "commit.manifest-merge.enabled"
	propMergeMinCount = "commit.manifest.min-count-to-merge"
)

// metadataWriter writes the manifests and manifest lists of one snapshot attempt. Files are complete but not durable
// when a method returns; their paths are in files.
type metadataWriter struct {
	fs         *storeio.FS
	live       *liveset.Cache
	meta       icetable.Metadata // the metadata the attempt builds on: schema, specs, version
	loc        icetable.LocationProvider
	snapshotID int64
	commit     uuid.UUID
	n          int
	files      []string
	written    []iceberg.ManifestFile // the last manifest list, as a reader sees it
	entries    newEntries
	keepLeft   bool                // carry leaves data entries to joinedManifest
	left       []liveset.LiveEntry // those
}

func newMetadataWriter(w *Warehouse, meta icetable.Metadata, snapshotID int64) (*metadataWriter, error) {
	loc, err := icetable.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return nil, fmt.Errorf("location provider: %w", err)
	}
	return &metadataWriter{fs: w.opts.FS, live: w.opts.Live, meta: meta, loc: loc, snapshotID: snapshotID, commit: uuid.New(), entries: newEntries{}}, nil
}

// newEntries are the live entries of manifests that were written, by path. A SnapshotID of 0 and sequence numbers of -1 are the snapshot's own.
type newEntries map[string][]liveset.LiveEntry

// tell saves the next commit reading back what this one wrote. Version 3 entries inherit row ids, and partition values have another form when they
// are read: those are read.
func (n newEntries) tell(live *liveset.Cache, version int, list []iceberg.ManifestFile, snapshotID, seq int64) {
	if version != 2 {
		return
	}
next:
	for _, mf := range list {
		entries, ok := n[mf.FilePath()]
		if !ok {
			continue
		}
		told := make([]liveset.LiveEntry, len(entries))
		for i, e := range entries {
			if len(e.File.Partition()) > 0 {
				continue next
			}
			if e.SnapshotID == 0 {
				e.SnapshotID = snapshotID
			}
			if e.DataSeq < 0 {
				e.DataSeq = seq
			}
			if e.FileSeq < 0 {
				e.FileSeq = seq
			}
			told[i] = e
		}
		live.AddManifest(mf, told)
	}
}

// countingWriter counts the bytes it passes on.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// file creates one metadata file, lets write fill it and closes it.
func (m *metadataWriter) file(name string, write func(path string, out *countingWriter) error) (err error) {
	path := m.loc.NewMetadataLocation(name)
	out, err := m.fs.CreateUnsynced(path)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	m.files = append(m.files, path)
	if err := write(path, &countingWriter{w: out}); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", name, err), out.Abort())
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("close %s: %w", name, err)
	}
	return nil
}

func (m *metadataWriter) nextName() string {
	m.n++
	return fmt.Sprintf("%s-m%d.avro", m.commit, m.n-1)
}

// manifest writes one manifest. firstRowID is nil where the list assigns it.
func (m *metadataWriter) manifest(content iceberg.ManifestContent, specID int, entries []manifestio.Entry, firstRowID *int64) (iceberg.ManifestFile, error) {
	spec := m.meta.PartitionSpecByID(specID)
	if spec == nil {
		return nil, fmt.Errorf("manifest: unknown partition spec %d", specID)
	}
	var mf iceberg.ManifestFile
	err := m.file(m.nextName(), func(path string, out *countingWriter) (err error) {
		mf, err = manifestio.Manifest{
			Version: m.meta.Version(), Content: content, Spec: *spec, Schema: manifestio.SpecSchema(m.meta.CurrentSchema(), m.meta.Schemas(), *spec), SnapshotID: m.snapshotID, FirstRowID: firstRowID,
		}.Write(out, path, entries)
		return err
	})
	return mf, err
}

// added is a file that a snapshot adds. Seq is its data sequence number, nil for the snapshot's own.
type added struct {
	file iceberg.DataFile
	seq  *int64
}

// addManifests writes the manifests of added files, one per content and spec.
func (m *metadataWriter) addManifests(files []added) ([]iceberg.ManifestFile, error) {
	var out []iceberg.ManifestFile
	for _, g := range groupBySpec(files, func(a added) iceberg.DataFile { return a.file }) {
		entries, live := make([]manifestio.Entry, len(g.items)), make([]liveset.LiveEntry, len(g.items))
		for i, a := range g.items {
			file := manifestio.Share(a.file)
			entries[i] = manifestio.Entry{Status: iceberg.EntryStatusADDED, Sequence: a.seq, File: file}
			live[i] = liveset.LiveEntry{File: file, DataSeq: -1, FileSeq: -1}
			if a.seq != nil {
				live[i].DataSeq = *a.seq
			}
		}
		mf, err := m.manifest(g.content, g.spec, entries, nil)
		if err != nil {
			return nil, err
		}
		m.entries[mf.FilePath()] = live
		out = append(out, mf)
	}
	return out, nil
}

// removeManifests writes manifests that hold nothing but DELETED entries, so that a reader of the change decodes no
// more than the change.
func (m *metadataWriter) removeManifests(entries []liveset.LiveEntry) ([]iceberg.ManifestFile, error) {
	var out []iceberg.ManifestFile
	for _, g := range groupBySpec(entries, func(e liveset.LiveEntry) iceberg.DataFile { return e.File }) {
		mf, err := m.manifest(g.content, g.spec, carriedEntries(iceberg.EntryStatusDELETED, g.items), nil)
		if err != nil {
			return nil, err
		}
		m.entries[mf.FilePath()] = nil
		out = append(out, mf)
	}
	return out, nil
}

// joinedManifest writes what a commit adds, what it removes and what carry left as one manifest of data files.
func (m *metadataWriter) joinedManifest(files []iceberg.DataFile, dataSeq *int64, gone []liveset.LiveEntry) (iceberg.ManifestFile, error) {
	entries, live := carriedEntries(iceberg.EntryStatusDELETED, gone), slices.Clone(m.left)
	entries = append(entries, carriedEntries(iceberg.EntryStatusEXISTING, m.left)...)
	for _, f := range files {
		f = manifestio.Share(f)
		e := liveset.LiveEntry{File: f, DataSeq: -1, FileSeq: -1}
		if dataSeq != nil {
			e.DataSeq = *dataSeq
		}
		entries = append(entries, manifestio.Entry{Status: iceberg.EntryStatusADDED, Sequence: dataSeq, File: f})
		live = append(live, e)
	}
	mf, err := m.manifest(iceberg.ManifestContentData, int(files[0].SpecID()), entries, nil)
	if err == nil {
		m.entries[mf.FilePath()] = live
	}
	return mf, err
}

// carriedEntries are entries of older manifests with another status. The snapshot of a removal is the one that removes.
func carriedEntries(status iceberg.ManifestEntryStatus, entries []liveset.LiveEntry) []manifestio.Entry {
	out := make([]manifestio.Entry, len(entries))
	for i, e := range entries {
		out[i] = manifestio.Entry{Status: status, Sequence: &e.DataSeq, FileSequence: &e.FileSeq, File: e.File}
		if status == iceberg.EntryStatusEXISTING {
			out[i].SnapshotID = e.SnapshotID
		}
	}
	return out
}

// existingManifest writes a manifest of EXISTING entries. On v3 data entries carry their explicit first_row_id already
// (readers assign it by inheritance), so the manifest's own is the least of them and reserves no new ids. Entries of a
// table that was version 2 until now have none: the list gives the manifest one, as it does to those that are carried whole.
func (m *metadataWriter) existingManifest(content iceberg.ManifestContent, specID int, entries []liveset.LiveEntry) (iceberg.ManifestFile, error) {
	var first *int64
	if m.meta.Version() >= 3 && content == iceberg.ManifestContentData {
		first = leastRowID(entries)
	}
	mf, err := m.manifest(content, specID, carriedEntries(iceberg.EntryStatusEXISTING, entries), first)
	if err == nil {
		m.entries[mf.FilePath()] = entries
	}
	return mf, err
}

// leastRowID is the least first_row_id of files, nil when one has none.
func leastRowID(entries []liveset.LiveEntry) (first *int64) {
	for _, e := range entries {
		id := e.File.FirstRowID()
		if id == nil {
			return nil
		}
		if first == nil || *id < *first {
			first = id
		}
	}
	return first
}

// list writes the manifest list. It returns its path and, on v3, the rows ids were reserved for.
func (m *metadataWriter) list(manifests []iceberg.ManifestFile, seq, firstRowID int64, parent *int64) (path string, rows int64, err error) {
	name := fmt.Sprintf("snap-%d-0-%s.avro", m.snapshotID, m.commit)
	err = m.file(name, func(p string, file *countingWriter) (err error) {
		path = p
		l := manifestio.List{Version: m.meta.Version(), SnapshotID: m.snapshotID, ParentSnapshotID: parent, Sequence: seq, FirstRowID: firstRowID}
		if l.Version < 3 {
			_, m.written, err = l.Write(file, manifests)
			return err
		}
		// iceberg-go's entries of a manifest inherit row ids from a manifest that it decoded itself only.
		var buf bytes.Buffer
		if rows, _, err = l.Write(io.MultiWriter(file, &buf), manifests); err != nil {
			return err
		}
		m.written, err = iceberg.ReadManifestList(&buf)
		return err
	})
	return path, rows, err
}

type specGroup[T any] struct {
	content iceberg.ManifestContent
	spec    int
	items   []T
}

// groupBySpec groups by manifest content and partition spec, in order of first appearance.
func groupBySpec[T any](items []T, file func(T) iceberg.DataFile) []specGroup[T] {
	var out []specGroup[T]
next:
	for _, it := range items {
		f := file(it)
		content := manifestContent(f)
		for i := range out {
			if out[i].content == content && out[i].spec == int(f.SpecID()) {
				out[i].items = append(out[i].items, it)
				continue next
			}
		}
		out = append(out, specGroup[T]{content, int(f.SpecID()), []T{it}})
	}
	return out
}

func manifestContent(f iceberg.DataFile) iceberg.ManifestContent {
	if f.ContentType() == iceberg.EntryContentData {
		return iceberg.ManifestContentData
	}
	return iceberg.ManifestContentDeletes
}

// removal names the files a snapshot removes, each with all the entries that it has: careless writers list a file twice, and it is gone with the last
// of them. A deletion vector is named by its puffin file, offset and data file: several share one path.
type removal struct {
	data    map[string][]seqs
	deletes map[string][]seqs
}

// seqs are an entry's data and file sequence number: manifests outside them need no reading.
type seqs struct{ data, file int64 }

func newRemoval() *removal { return &removal{map[string][]seqs{}, map[string][]seqs{}} }

func (r *removal) empty() bool { return len(r.data) == 0 && len(r.deletes) == 0 }

func deleteFileKey(f iceberg.DataFile) string {
	if !isDV(f) {
		return f.FilePath()
	}
	var off int64
	if o := f.ContentOffset(); o != nil {
		off = *o
	}
	return f.FilePath() + "#" + strconv.FormatInt(off, 10)
}

func (r *removal) matches(f iceberg.DataFile) bool {
	if f.ContentType() == iceberg.EntryContentData {
		_, ok := r.data[f.FilePath()]
		return ok
	}
	_, ok := r.deletes[deleteFileKey(f)]
	return ok
}

// mayBeIn says whether a manifest can hold a file that is still to be found.
func (r *removal) mayBeIn(mf iceberg.ManifestFile) bool {
	m := r.data
	if mf.ManifestContent() != iceberg.ManifestContentData {
		m = r.deletes
	}
	for _, list := range m {
		for _, s := range list {
			if s.file <= mf.SequenceNum() && s.data >= mf.MinSequenceNum() {
				return true
			}
		}
	}
	return false
}

func (r *removal) done(e liveset.LiveEntry) {
	m, key := r.data, e.File.FilePath()
	if e.File.ContentType() != iceberg.EntryContentData {
		m, key = r.deletes, deleteFileKey(e.File)
	}
	list := m[key]
	if len(list) < 2 {
		delete(m, key)
		return
	}
	i := max(slices.Index(list, seqs{e.DataSeq, e.FileSeq}), 0)
	m[key] = slices.Delete(list, i, i+1)
}

// carry returns the base's manifests without the removed files: manifests that held one are written again, and the
// removed entries are returned. all removes every file. The removal is consumed; what is left in it was not found.
func (m *metadataWriter) carry(ctx context.Context, base []iceberg.ManifestFile, r *removal, all bool) (kept []iceberg.ManifestFile, gone []liveset.LiveEntry, err error) {
	for _, mf := range base {
		if !mf.HasAddedFiles() && !mf.HasExistingFiles() {
			continue // nothing but removals of an older snapshot
		}
		if !all && !r.mayBeIn(mf) {
			kept = append(kept, mf)
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		entries, err := m.live.LiveEntries(ctx, mf)
		if err != nil {
			return nil, nil, err
		}
		var live []liveset.LiveEntry
		for _, e := range entries {
			if all || r.matches(e.File) {
				gone = append(gone, e)
				r.done(e)
			} else {
				live = append(live, e)
			}
		}
		switch {
		case len(live) == len(entries):
			kept = append(kept, mf)
		case m.keepLeft && mf.ManifestContent() == iceberg.ManifestContentData && len(m.left)+len(live) <= maxJoined:
			m.left = append(m.left, live...)
		case len(live) > 0:
			again, err := m.existingManifest(mf.ManifestContent(), int(mf.PartitionSpecID()), live)
			if err != nil {
				return nil, nil, err
			}
			kept = append(kept, again)
		}
	}
	return kept, gone, nil
}

// merge joins manifests of one content, spec and size class when a class is full. Manifests of this snapshot stay as
// they are, so that its change is readable from them alone.
func (m *metadataWriter) merge(ctx context.Context, manifests []iceberg.ManifestFile) ([]iceberg.ManifestFile, error) {
	props := m.meta.Properties()
	if !props.GetBool(propMergeEnabled, true) {
		return manifests, nil
	}
	fanIn := max(2, int(props.GetInt64(propMergeMinCount, defaultMergeFanIn)))
	type class struct {
		content iceberg.ManifestContent
		spec    int32
		size    int
	}
	classes := map[class][]int{}
	var order []class
	for i, mf := range manifests {
		if mf.SnapshotID() == m.snapshotID {
			continue
		}
		c := class{mf.ManifestContent(), mf.PartitionSpecID(), sizeClass(mf, fanIn)}
		if _, ok := classes[c]; !ok {
			order = append(order, c)
		}
		classes[c] = append(classes[c], i)
	}
	merged := make(map[int]iceberg.ManifestFile) // first member → the merged manifest; other members → nil
	for _, c := range order {
		members := classes[c]
		if len(members) < fanIn {
			continue
		}
		var entries []liveset.LiveEntry
		for _, i := range members {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			es, err := m.live.LiveEntries(ctx, manifests[i])
			if err != nil {
				return nil, err
			}
			entries = append(entries, es...)
			merged[i] = nil
		}
		mf, err := m.existingManifest(c.content, int(c.spec), entries)
		if err != nil {
			return nil, fmt.Errorf("merge manifests: %w", err)
		}
		merged[members[0]] = mf
	}
	if len(merged) == 0 {
		return manifests, nil
	}
	out := make([]iceberg.ManifestFile, 0, len(manifests))
	for i, mf := range manifests {
		if repl, ok := merged[i]; ok {
			if mf = repl; mf == nil {
				continue
			}
		}
		out = append(out, mf)
	}
	return out, nil
}

// sizeClass is the logarithm of a manifest's live entries to the base fanIn.
func sizeClass(mf iceberg.ManifestFile, fanIn int) int {
	n := uint(max(1, int(mf.AddedDataFiles())+int(mf.ExistingDataFiles())))
	return (bits.Len(n) - 1) / max(1, bits.Len(uint(fanIn))-1)
}

// newSnapshotID returns an id no snapshot of the table has.
func newSnapshotID(meta icetable.Metadata) int64 {
	for {
		u := uuid.New()
		var id int64
		for i := range 8 {
			id = id<<8 | int64(u[i]^u[i+8])
		}
		id &= 1<<63 - 1
		if id != 0 && (meta == nil || meta.SnapshotByID(id) == nil) {
			return id
		}
	}
}
