package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/puffin"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog/store"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// Problem is one finding of Check.
type Problem struct {
	// Path is the file, or the table or key that is wrong.
	Path   string
	Detail string
}

func (p Problem) String() string { return p.Path + ": " + p.Detail }

// Check opens a folder that no process holds and checks it. ErrLocked when one does: ask that process. The folder is
// brought to rest as any Open does, so an interrupted commit's files are in place.
func Check(ctx context.Context, dir string, report func(Problem)) error {
	if _, err := os.Stat(filepath.Join(dir, dbName)); err != nil {
		return err
	}
	c, err := Open(ctx, Options{Dir: dir, Logger: zerolog.Nop()})
	var damaged *DamagedError
	if errors.As(err, &damaged) {
		report(Problem{Path: damaged.Path, Detail: err.Error()})
		return nil
	}
	if err != nil {
		return err
	}
	err = c.Check(ctx, report)
	return errors.Join(err, c.Close())
}

// Check reads the whole catalog at one cut and reports what does not hold together:
//   - the store's own structure;
//   - the log: seqs without a gap (C2), timestamps that grow (C5), every entry of COMMITS and of the history in its record;
//   - the newest values against the history and against the cut;
//   - for every table each file that its metadata refers to: metadata files (the metadata log too), manifest lists,
//     manifests, data files, delete files and statistics exist with the recorded size, and a deletion vector is of the data
//     file that its manifest says. Files of mounted tables are not looked at: their own
//     catalog may remove them at any time.
//
// Commits go on meanwhile; a table that they drop or change is checked as of the cut. The error is a failure to look, not
// a finding.
func (c *Catalog) Check(ctx context.Context, report func(Problem)) error {
	if err := c.settler.settle(); err != nil {
		return err
	}
	k := &checker{c: c, cut: c.Cut(), report: report, files: map[string]int64{}}
	if err := c.store.Check(ctx, func(detail string) { k.problem(c.store.Path(), "%s", detail) }); err != nil {
		return err
	}
	if err := k.log(ctx); err != nil {
		return err
	}
	if err := k.entities(ctx); err != nil {
		return err
	}
	if err := k.sequences(ctx); err != nil {
		return err
	}
	for t := range k.cut.AllTables() {
		if err := k.table(ctx, t); err != nil {
			return err
		}
	}
	return ctx.Err()
}

type checker struct {
	c      *Catalog
	cut    *Cut
	report func(Problem)
	files  map[string]int64 // checked files and their sizes; -1 for a missing one
	// puffin is the file whose deletion vectors were read last: those of a commit share one.
	puffin struct {
		path  string
		blobs []puffin.BlobMetadata
	}
}

func (k *checker) problem(path, format string, args ...any) {
	k.report(Problem{Path: path, Detail: fmt.Sprintf(format, args...)})
}

// storeProblem reports an unreadable value and goes on.
func (k *checker) storeProblem(key []byte, err error) {
	k.problem(k.c.store.Path(), "key %q: %s", key, err)
}

// sequences reads every sequence's state.
func (k *checker) sequences(ctx context.Context) error {
	from := []byte{familySequence}
	err := store.All(ctx, k.c.store, store.RangeRequest{From: from, To: store.PrefixEnd(from)}, func(p store.Pair) error {
		_, err := decodeSequence(p.Value)
		if err == nil && len(p.Key) != 17 {
			err = fmt.Errorf("sequence key of %d bytes", len(p.Key))
		}
		if err != nil {
			k.storeProblem(p.Key, err)
		}
		return nil
	})
	return storeError(k.c.store, from, err)
}

// log walks the records.
func (k *checker) log(ctx context.Context) error {
	due := k.cut.s.first
	var last time.Time
	r := store.RangeRequest{From: recordKey(due), To: recordKey(k.cut.Seq() + 1)} // what a trim left behind, when it was interrupted, is none
	err := store.All(ctx, k.c.store, r, func(p store.Pair) error {
		rec, err := decodeRecord(p.Value)
		if err != nil {
			k.storeProblem(p.Key, err)
			due++
			return nil
		}
		if rec.Seq != due || !bytes.Equal(p.Key, recordKey(rec.Seq)) {
			k.storeProblem(p.Key, fmt.Errorf("record of seq %d where %d is due", rec.Seq, due))
		}
		if !rec.Time.After(last) {
			k.storeProblem(p.Key, fmt.Errorf("timestamp %s is not after its predecessor's", rec.Time))
		}
		due, last = rec.Seq+1, rec.Time
		for i := range rec.Tables {
			k.entry(ctx, rec, i)
		}
		return nil
	})
	if err != nil {
		return storeError(k.c.store, r.From, err)
	}
	if due != k.cut.Seq()+1 && k.cut.Seq() > 0 {
		k.problem(k.c.store.Path(), "log ends at seq %d, the catalog is at %d", due-1, k.cut.Seq())
	}
	return nil
}

// entry checks what one entry of a record promises: a version in the table's history, and a way back from its snapshot.
func (k *checker) entry(ctx context.Context, rec *Record, i int) {
	t := &rec.Tables[i]
	if t.Key == "" {
		return
	}
	key := historyKey(tableKey(t.UUID), rec.Seq)
	if _, err := k.c.store.Get(ctx, key); err != nil {
		k.storeProblem(key, err)
	}
	if t.SnapshotID == nil || (t.Kind != KindCommit && t.Kind != KindCreate) {
		return
	}
	key = commitKey(t.UUID, *t.SnapshotID)
	value, err := k.c.store.Get(ctx, key)
	if err != nil {
		k.storeProblem(key, err)
		return
	}
	ref, err := decodeCommitRef(value)
	if err != nil {
		k.storeProblem(key, err)
		return
	}
	if ref.seq > rec.Seq {
		k.storeProblem(key, fmt.Errorf("snapshot of seq %d is attributed to seq %d", rec.Seq, ref.seq))
	}
}

// entities compares the newest values with the cut and with their history.
func (k *checker) entities(ctx context.Context) error {
	same := func(key []byte, want []byte) {
		value, err := k.c.versionAt(ctx, key, k.cut.Seq())
		switch {
		case err != nil:
			k.storeProblem(key, err)
		case !bytes.Equal(value, want):
			k.storeProblem(key, errors.New("value is not the newest of its history"))
		}
	}
	for n := range k.cut.Namespaces() {
		same(namespaceKey(n.Ident), n.encode())
	}
	oids := map[uint32]bool{}
	for t := range k.cut.AllTables() {
		same(tableKey(t.UUID), t.encode())
		if _, err := k.cut.Namespace(t.Ident[:len(t.Ident)-1]); err != nil {
			k.problem(dotted(t.Ident), "%s", err)
		}
		if oids[t.OID] || t.OID < firstOID || t.OID >= k.cut.s.nextOID {
			k.problem(dotted(t.Ident), "OID %d is in use or was never assigned", t.OID)
		}
		oids[t.OID] = true
	}
	k.cut.s.objects.Scan(func(_ string, o *Object) bool {
		same(objectKey(o.Kind, o.Namespace, o.Name), o.encode())
		return true
	})
	return ctx.Err()
}

// file checks that a file exists with a size; a negative size asks for existence only. It reports each file once.
func (k *checker) file(location string, size int64, what string) bool {
	path := storeio.PathOf(location)
	have, seen := k.files[path]
	if !seen {
		st, err := k.c.fs.Stat(path)
		if err != nil {
			have = -1
			k.problem(path, "%s: %s", what, err)
		} else {
			have = st.Size()
		}
		k.files[path] = have
	}
	if have < 0 {
		return false
	}
	if size >= 0 && have != size {
		k.problem(path, "%s has %d bytes, %d are recorded", what, have, size)
		return false
	}
	return true
}

// table checks every file that a table's metadata refers to.
func (k *checker) table(ctx context.Context, t *TableState) error {
	if _, ok := k.c.Cut().TableByKey(t.Key); !ok {
		return nil // dropped since: its files may go
	}
	if t.mounted {
		return nil
	}
	size := int64(-1)
	if t.metadataSize > 0 {
		size = t.metadataSize
	}
	if !k.file(t.MetadataLocation, size, "metadata of "+dotted(t.Ident)) {
		return nil
	}
	data, err := k.c.fs.ReadAtMost(t.MetadataLocation, cmp.Or(t.metadataSize, maxMetadata)) // not the cache: the bytes on disk are in question
	if err != nil {
		k.problem(storeio.PathOf(t.MetadataLocation), "%s", err)
		return nil
	}
	meta, err := decodeMetadata(t.MetadataLocation, data)
	if err != nil {
		k.problem(storeio.PathOf(t.MetadataLocation), "metadata of %s: %s", dotted(t.Ident), err)
		return nil
	}
	if meta.TableUUID() != t.UUID {
		k.problem(storeio.PathOf(t.MetadataLocation), "metadata of %s: uuid is %s, not %s", dotted(t.Ident), meta.TableUUID(), t.UUID)
	}
	var e metadataEntry
	if e.set(meta); !e.headIs(t) {
		k.problem(storeio.PathOf(t.MetadataLocation), "metadata of %s: head is not the catalog's", dotted(t.Ident))
	}
	if !t.registered { // an adopted table's older metadata files are its former catalog's
		for m := range meta.PreviousFiles() {
			k.file(m.MetadataFile, -1, "earlier metadata of "+dotted(t.Ident))
		}
	}
	for s := range meta.Statistics() {
		k.file(s.StatisticsPath, s.FileSizeInBytes, "statistics of "+dotted(t.Ident))
	}
	for _, s := range meta.Snapshots() {
		if err := ctx.Err(); err != nil {
			return err
		}
		k.snapshot(t, s)
	}
	return nil
}

func (k *checker) snapshot(t *TableState, s table.Snapshot) {
	what := fmt.Sprintf("of %s, snapshot %d", dotted(t.Ident), s.SnapshotID)
	if s.ManifestList != "" && !k.file(s.ManifestList, -1, "manifest list "+what) {
		return
	}
	manifests, err := s.Manifests(k.c.fs)
	if err != nil {
		k.problem(storeio.PathOf(s.ManifestList), "manifest list %s: %s", what, err)
		return
	}
	for _, m := range manifests {
		path := storeio.PathOf(m.FilePath())
		_, seen := k.files[path]
		if !k.file(m.FilePath(), m.Length(), "manifest "+what) || seen {
			continue
		}
		for e, err := range m.Entries(k.c.fs, true) {
			if err != nil {
				k.problem(path, "manifest %s: %s", what, err)
				break
			}
			kind := "data file "
			if e.DataFile().ContentType() != iceberg.EntryContentData {
				kind = "delete file "
			}
			if k.file(e.DataFile().FilePath(), e.DataFile().FileSizeBytes(), kind+what) && e.DataFile().FileFormat() == iceberg.PuffinFile {
				k.vector(e.DataFile(), path, what)
			}
		}
	}
}

// vector compares a manifest's entry with what the deletion vector says of itself: one that names the wrong data file would let deleted rows live.
func (k *checker) vector(d iceberg.DataFile, manifest, what string) {
	path := storeio.PathOf(d.FilePath())
	if k.puffin.path != path {
		k.puffin.path, k.puffin.blobs = path, nil
		f, err := k.c.fs.Open(path)
		if err == nil {
			var r *puffin.Reader
			if r, err = puffin.NewReader(f); err == nil {
				k.puffin.blobs = r.Blobs()
			}
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			k.problem(path, "delete file %s: %s", what, err)
		}
	}
	if k.puffin.blobs == nil {
		return // said above
	}
	if d.ContentOffset() == nil || d.ContentSizeInBytes() == nil || d.ReferencedDataFile() == nil {
		k.problem(manifest, "manifest %s: deletion vector in %s without a place or a data file", what, path)
		return
	}
	for _, b := range k.puffin.blobs {
		if b.Offset != *d.ContentOffset() {
			continue
		}
		rows := strconv.FormatInt(d.Count(), 10)
		if b.Length != *d.ContentSizeInBytes() || b.Properties["referenced-data-file"] != *d.ReferencedDataFile() || b.Properties["cardinality"] != rows {
			k.problem(manifest, "manifest %s: deletion vector at %d of %s is recorded as %s rows of %s in %d bytes, and says itself: %s rows of %s in %d bytes", what,
				b.Offset, path, rows, *d.ReferencedDataFile(), *d.ContentSizeInBytes(), b.Properties["cardinality"], b.Properties["referenced-data-file"], b.Length)
		}
		return
	}
	k.problem(manifest, "manifest %s: no deletion vector at %d of %s", what, *d.ContentOffset(), path)
}
