package warehouse

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// build is the catalog's Build callback: it checks the change against the newest base and makes the manifest list on
// it. It runs in the serial point, so it reads and writes no more than the change, but for merges and rewritten
// manifests.
func (c *tableCommit) build(ctx context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
	out, err := c.buildOn(ctx, in)
	return out, c.t.conflictOf(err)
}

func (c *tableCommit) buildOn(ctx context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
	if err := c.newAttempt(in.Base); err != nil {
		return catalog.BuildOutput{}, err
	}
	meta, err := c.checkVersions(in.Base)
	if err != nil {
		return catalog.BuildOutput{}, err
	}
	out := catalog.BuildOutput{Updates: append([]icetable.Update(nil), c.t.alters...), Ref: c.t.writeBranch()}
	refs, own, err := c.refUpdates(in.Base)
	if err != nil {
		return out, err
	}
	out.Updates = append(out.Updates, refs...)
	if err := c.checkExclusive(in.Base); err != nil {
		return out, err
	}
	if !c.t.st.changed() {
		return out, nil
	}
	head, err := c.branchHead(in.Base)
	if err != nil {
		return out, err
	}
	set, err := c.headSet(ctx, in.Base, head)
	if err != nil {
		return out, err
	}
	at, err := c.conflicts(ctx, in.Base, set)
	if err != nil {
		return out, err
	}
	if err := c.replace(set, at); err != nil {
		return out, err
	}
	s := &snapshotBuild{w: c.t.tx.w, in: in, meta: meta, head: head, branch: c.t.writeBranch(), id: c.snapshotID, added: append([]iceberg.DataFile(nil), c.added...)}
	s.added = append(s.added, c.deletes...)
	s.manifests, s.removed, s.all, s.entries = c.manifests, newRemoval(), c.t.st.truncated, maps.Clone(c.entries)
	s.joined, s.dataSeq = c.joins(), c.dataSeq
	if s.all {
		c.gone = set.Rows()
	}
	defer func() { c.attempt = append([]string{}, s.paths...) }()
	for _, p := range c.batch.Paths() {
		in.Batch.Add(p)
	}
	for _, d := range c.dead {
		s.removeData(set, set.File(d.file.Path))
	}
	if c.t.v3() && len(c.sup) > 0 {
		if err := s.deletionVectors(ctx, set, c.sup); err != nil {
			return out, err
		}
	}
	op := icetable.OpOverwrite
	switch removes := s.all || len(c.deletes) > 0 || len(c.sup) > 0 || len(c.dead) > 0; {
	case !removes:
		op = icetable.OpAppend
	case len(c.added) == 0:
		op = icetable.OpDelete
	}
	if err := s.finish(ctx, op); err != nil {
		return out, err
	}
	out.Updates = append(append(out.Updates, s.updates...), own...)
	out.Operation = string(op)
	out.RowsAdded, out.RowsDeleted = c.rows, c.gone
	out.FilesAdded, out.FilesDeleted = s.metrics.addedDataFiles, s.metrics.removedDataFiles
	return out, nil
}

// checkVersions compares what the transaction was checked under with the newest base, and applies its alterations.
func (c *tableCommit) checkVersions(base icetable.Metadata) (icetable.Metadata, error) {
	mine := c.t.baseMeta
	switch {
	case base.TableUUID() != mine.TableUUID():
		return nil, fmt.Errorf("%w: the table was replaced", ErrConflict)
	case base.Version() != mine.Version():
		return nil, fmt.Errorf("%w: the format version changed", ErrConflict)
	case base.CurrentSchema().ID != mine.CurrentSchema().ID:
		return nil, fmt.Errorf("%w: the schema changed", ErrConflict)
	case base.Properties()[PropertyDefinition] != mine.Properties()[PropertyDefinition]:
		return nil, fmt.Errorf("%w: the table's defaults or constraints changed", ErrConflict)
	case base.DefaultPartitionSpec() != mine.DefaultPartitionSpec():
		return nil, fmt.Errorf("%w: the partition spec changed", ErrConflict)
	}
	if len(c.t.alters) == 0 {
		return base, nil
	}
	if base.LastColumnID() != mine.LastColumnID() {
		return nil, fmt.Errorf("%w: the schema changed", ErrConflict)
	}
	meta, err := icetable.UpdateTableMetadata(base, c.t.alters, "")
	if err != nil {
		return nil, fmt.Errorf("%w: alter table: %w", ErrConflict, err)
	}
	return meta, nil
}

// headSet is the set of the newest base: the transaction's own base set when nobody committed since.
func (c *tableCommit) headSet(ctx context.Context, base icetable.Metadata, head *icetable.Snapshot) (*liveset.Set, error) {
	if head == nil {
		return liveset.Empty(), nil
	}
	if id, ok := c.t.baseSet.SnapshotID(); ok && id == head.SnapshotID {
		return c.t.baseSet, nil
	}
	set, err := c.t.tx.w.opts.Live.At(ctx, liveset.Ref{UUID: base.TableUUID(), Metadata: base}, head.SnapshotID)
	if err != nil {
		return nil, fmt.Errorf("live set of the newest base: %w", err)
	}
	return set, nil
}

// conflicts is the first-committer-wins rule: rows suppressed, keys inserted. It returns where the suppressed rows are in the newest base.
func (c *tableCommit) conflicts(ctx context.Context, base icetable.Metadata, set *liveset.Set) (*placed, error) {
	st := c.t.st
	moved := set != c.t.baseSet
	if st.truncated {
		if _, had := c.t.baseSet.SnapshotID(); st.strict && moved && (had || set.NumFiles() > 0) {
			return nil, fmt.Errorf("%w: the table changed", ErrConflict)
		}
		return &placed{}, nil
	}
	if !moved {
		return &placed{suppress: st.suppress}, nil
	}
	at, err := c.place(set)
	if err != nil {
		return nil, err
	}
	if err := c.equalityConflicts(ctx, base, set, at); err != nil {
		return nil, err
	}
	if c.t.keyed() && len(c.added) > 0 {
		return at, c.keyConflicts(ctx, base, set, at)
	}
	return at, nil
}

// equalityConflicts refuses an equality delete that would delete rows this transaction did not see.
func (c *tableCommit) equalityConflicts(ctx context.Context, base icetable.Metadata, set *liveset.Set, at *placed) error {
	ref := liveset.Ref{UUID: base.TableUUID(), Metadata: base}
	for _, e := range c.t.st.eq {
		hits, err := c.t.tx.w.equalityHits(ctx, ref, set, c.t.schema, e.fieldIDs, e.rows)
		if err != nil {
			return err
		}
		for _, h := range hits {
			if b := at.suppress[h.Path]; b == nil || !b.Contains(h.Pos) {
				return fmt.Errorf("%w: a row to delete was added", ErrConflict)
			}
		}
	}
	return nil
}

// keyConflicts refuses keys that commits since the cut inserted. Rows that this transaction replaces are none of them, also where a compaction has moved
// them. The smaller side is probed in the larger.
func (c *tableCommit) keyConflicts(ctx context.Context, base icetable.Metadata, set *liveset.Set, at *placed) error {
	diffs, err := liveset.Diff(ctx, c.t.baseSet, set)
	if err != nil {
		return fmt.Errorf("commits since the cut: %w", err)
	}
	ov := liveset.Overlay{Suppress: map[string]*roaring.Bitmap{}}
	var theirs int64
	for _, d := range diffs {
		if d.Inserted == nil || d.Inserted.IsEmpty() {
			continue
		}
		theirs += card(d.Inserted)
		ov.Add = append(ov.Add, d.File)
		if card(d.Inserted) < d.File.Records {
			ov.Suppress[d.File.Path] = roaring.Flip(d.Inserted, 0, uint64(d.File.Records))
		}
		if b := at.suppress[d.File.Path]; b != nil {
			if s := ov.Suppress[d.File.Path]; s != nil {
				b = roaring.Or(s, b)
			}
			ov.Suppress[d.File.Path] = b
		}
	}
	if theirs == 0 {
		return nil
	}
	inserted := liveset.Empty().With(ov)
	ref := liveset.Ref{UUID: base.TableUUID(), Metadata: base}
	if c.keys != nil {
		if hits, err := c.t.tx.w.opts.Live.Probe(ctx, ref, inserted, c.t.keyIDs, c.keys); err != nil || len(hits) == 0 {
			return err
		}
	}
	if theirs <= c.rows {
		return c.probeKeys(ctx, ref, inserted, c.own)
	}
	return c.probeKeys(ctx, ref, c.own, inserted)
}

// probeKeys looks for the keys of from in to.
func (c *tableCommit) probeKeys(ctx context.Context, ref liveset.Ref, from, to *liveset.Set) error {
	live := c.t.tx.w.opts.Live
	cols := make([]int, len(c.t.keyIDs))
	for i := range cols {
		cols[i] = i
	}
	for rec, err := range live.Scan(ctx, ref, from, subSchema(c.t.schema, c.t.keyFields), liveset.ScanOptions{}) {
		if err != nil {
			return err
		}
		err = func(rec arrow.RecordBatch) error {
			defer rec.Release()
			keys, err := encodeKeys(rec, cols)
			if err != nil {
				return err
			}
			hits, err := live.Probe(ctx, ref, to, c.t.keyIDs, keys)
			if err != nil || len(hits) == 0 {
				return err
			}
			dup := c.t.duplicate(rec, cols, hits[0].KeyOrdinal)
			if c.t.st.upserted {
				return fmt.Errorf("%w: %w", ErrConflict, dup)
			}
			return dup
		}(rec)
		if err != nil {
			return err
		}
	}
	return nil
}

// snapshotBuild makes one snapshot on a base.
type snapshotBuild struct {
	w         *Warehouse
	in        catalog.BuildInput
	meta      icetable.Metadata
	head      *icetable.Snapshot
	branch    string // "": main
	id        int64
	added     []iceberg.DataFile
	manifests []iceberg.ManifestFile // those of the added files
	entries   newEntries             // of manifests
	joined    bool                   // the added files, at dataSeq, are in no manifest yet
	dataSeq   *int64
	removed   *removal
	all       bool // remove every file of the base
	metrics   metrics
	updates   []icetable.Update
	paths     []string
}

// removeData removes a data file and the delete files that are scoped to it.
func (s *snapshotBuild) removeData(set *liveset.Set, f *liveset.LiveFile) {
	var all []seqs
	for _, e := range set.EntriesOf(f.File) {
		all = append(all, seqs{e.DataSeq, e.FileSeq})
	}
	s.removed.data[f.File.Path] = all
	for _, d := range set.DeleteFilesOf(f.File.Path) {
		s.removeDelete(set, d)
	}
}

func (s *snapshotBuild) removeDelete(set *liveset.Set, d *liveset.DeleteFile) {
	var all []seqs
	for _, e := range set.DeleteEntriesOf(d) {
		all = append(all, seqs{e.DataSeq, e.FileSeq})
	}
	s.removed.deletes[deleteFileKey(d.Data)] = all
}

// deletionVectors writes the vectors of the suppressed files: the positions their rows have suppressed in the newest
// base and the new ones. The vectors and file-scoped position deletes they replace are removed.
func (s *snapshotBuild) deletionVectors(ctx context.Context, set *liveset.Set, sup []suppression) error {
	full := make([]suppression, len(sup))
	for i, p := range sup {
		f := set.File(p.file.Path)
		full[i] = suppression{f.File, p.positions}
		if f.Suppressed != nil {
			full[i].positions = roaring.Or(f.Suppressed, p.positions)
		}
		for _, d := range set.DeleteFilesOf(p.file.Path) {
			s.removeDelete(set, d)
		}
	}
	files, path, err := writeDVs(ctx, s.w.opts.FS, s.meta, full)
	s.paths = append(s.paths, path)
	if err != nil {
		return err
	}
	s.in.Batch.Add(path)
	return s.addDeletes(files)
}

// addDeletes adds delete files that were made in the serial point, with their manifests.
func (s *snapshotBuild) addDeletes(files []iceberg.DataFile) error {
	mw, err := newMetadataWriter(s.w, s.meta, s.id)
	if err != nil {
		return err
	}
	var adds []added
	for _, f := range files {
		adds = append(adds, added{file: f})
	}
	more, err := mw.addManifests(adds)
	if s.entries == nil {
		s.entries = newEntries{}
	}
	maps.Copy(s.entries, mw.entries)
	s.paths = append(s.paths, mw.files...)
	for _, p := range mw.files {
		s.in.Batch.Add(p)
	}
	if err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	s.added = append(s.added, files...)
	s.manifests = append(s.manifests[:len(s.manifests):len(s.manifests)], more...)
	return nil
}

// finish writes the manifest list and makes the metadata updates.
func (s *snapshotBuild) finish(ctx context.Context, op icetable.Operation) (err error) {
	mw, err := newMetadataWriter(s.w, s.meta, s.id)
	if err != nil {
		return err
	}
	defer func() {
		s.paths = append(s.paths, mw.files...)
		for _, p := range mw.files {
			s.in.Batch.Add(p)
		}
	}()
	base, err := s.w.manifestsOf(s.head)
	if err != nil {
		return err
	}
	mw.keepLeft = s.joined
	kept, gone, err := mw.carry(ctx, base, s.removed, s.all)
	if err != nil {
		return fmt.Errorf("carry manifests: %w", err)
	}
	if !s.removed.empty() {
		return fmt.Errorf("%w: %d files to remove are not in the snapshot", ErrConflict, len(s.removed.data)+len(s.removed.deletes))
	}
	tombs, err := s.removals(mw, gone)
	if err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	manifests := append(append(append([]iceberg.ManifestFile(nil), s.manifests...), tombs...), kept...)
	if manifests, err = mw.merge(ctx, manifests); err != nil {
		return fmt.Errorf("merge manifests: %w", err)
	}
	partitions := map[string]struct{}{}
	note := func(f iceberg.DataFile) {
		if k := partitionKey(f.SpecID(), f.Partition()); k != "" {
			partitions[k] = struct{}{}
		}
	}
	for _, f := range s.added {
		s.metrics.add(f)
		note(f)
	}
	for _, e := range gone {
		s.metrics.remove(e.File)
		note(e.File)
	}
	return s.snapshot(mw, manifests, summarize(op, &s.metrics, partitions, s.head))
}

// removals writes the manifests of removed files: those of data files of a joined commit together with what it adds and what is left beside them.
func (s *snapshotBuild) removals(mw *metadataWriter, gone []liveset.LiveEntry) ([]iceberg.ManifestFile, error) {
	if !s.joined {
		return mw.removeManifests(gone)
	}
	var data, deletes []liveset.LiveEntry
	for _, e := range gone {
		if e.File.ContentType() == iceberg.EntryContentData {
			data = append(data, e)
		} else {
			deletes = append(deletes, e)
		}
	}
	tombs, err := mw.removeManifests(deletes)
	if err != nil {
		return nil, err
	}
	mf, err := mw.joinedManifest(s.added, s.dataSeq, data)
	return append(tombs, mf), err
}

func (s *snapshotBuild) snapshot(mw *metadataWriter, manifests []iceberg.ManifestFile, sum *icetable.Summary) error {
	schemaID := s.meta.CurrentSchema().ID
	snap := &icetable.Snapshot{
		SnapshotID: s.id, SequenceNumber: s.in.Base.LastSequenceNumber() + 1, TimestampMs: s.in.Time.UnixMilli(),
		SchemaID: &schemaID, Summary: sum,
	}
	if s.head != nil {
		parent := s.head.SnapshotID
		snap.ParentSnapshotID = &parent
	}
	first := int64(0)
	if s.meta.Version() >= 3 {
		first = s.in.Base.NextRowID()
	}
	path, rows, err := mw.list(manifests, snap.SequenceNumber, first, snap.ParentSnapshotID)
	if err != nil {
		return fmt.Errorf("write manifest list: %w", err)
	}
	snap.ManifestList = path
	if s.meta.Version() >= 3 {
		snap.FirstRowID, snap.AddedRows = &first, &rows
	}
	branch := cmp.Or(s.branch, icetable.MainBranch)
	var maxRef, maxSnap int64
	var minKeep int
	for name, ref := range s.in.Base.Refs() {
		if name == branch {
			maxRef, maxSnap, minKeep = deref(ref.MaxRefAgeMs), deref(ref.MaxSnapshotAgeMs), deref(ref.MinSnapshotsToKeep)
		}
	}
	s.updates = []icetable.Update{
		icetable.NewAddSnapshotUpdate(snap),
		icetable.NewSetSnapshotRefUpdate(branch, s.id, icetable.BranchRef, maxRef, maxSnap, minKeep),
	}
	s.w.lists.put(path, mw.written)
	live := s.w.opts.Live
	live.AddManifestList(path, mw.written)
	for _, known := range []newEntries{s.entries, mw.entries} {
		known.tell(live, s.meta.Version(), mw.written, s.id, snap.SequenceNumber)
	}
	return nil
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// manifestsOf reads a snapshot's manifest list; the lists of recent own commits are in memory.
func (w *Warehouse) manifestsOf(s *icetable.Snapshot) ([]iceberg.ManifestFile, error) {
	if s == nil {
		return nil, nil
	}
	if m, ok := w.lists.get(s.ManifestList); ok {
		return m, nil
	}
	m, err := s.Manifests(w.opts.FS)
	if err != nil {
		return nil, fmt.Errorf("read manifest list: %w", err)
	}
	return m, nil
}
