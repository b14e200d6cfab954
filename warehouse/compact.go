package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// CompactOptions tunes Compact.
type CompactOptions struct {
	// SmallFileBytes: files below it are rewritten together. 0 is 32 MiB.
	SmallFileBytes int64
	// MinInputFiles: fewer small files than this in a partition are left alone. 0 is 8.
	MinInputFiles int
	// SuppressedRatio: a file with more than this share of its rows suppressed is rewritten. 0 is 0.2.
	SuppressedRatio float64
	// MaxDeleteFiles: with more position and equality delete files than this they are rewritten into one position delete
	// file per partition (v2) or deletion vectors (v3), also when no data file is. 0 is 16.
	MaxDeleteFiles int
}

// CompactResult says what Compact did.
type CompactResult struct {
	FilesRemoved, FilesAdded             int
	DeleteFilesRemoved, DeleteFilesAdded int
	Rows                                 int64           // rewritten
	Record                               *catalog.Record // nil when there was nothing to do
}

func (o CompactOptions) defaults() CompactOptions {
	if o.SmallFileBytes <= 0 {
		o.SmallFileBytes = 32 << 20
	}
	if o.MinInputFiles <= 0 {
		o.MinInputFiles = 8
	}
	if o.SuppressedRatio <= 0 {
		o.SuppressedRatio = 0.2
	}
	if o.MaxDeleteFiles <= 0 {
		o.MaxDeleteFiles = 16
	}
	return o
}

// compaction is one run of Compact.
type compaction struct {
	tableCommit
	start    *icetable.Snapshot // the snapshot that was compacted
	victims  []*liveset.LiveFile
	merge    bool // rewrite the delete files of the remaining files
	replaced []*liveset.DeleteFile
	result   CompactResult
}

// Compact rewrites small files and files with many suppressed rows into sorted ones, and scattered delete files into
// few, as one replace snapshot that changes no row (L5). On v3 rows keep their _row_id and
// _last_updated_sequence_number. The new files carry the data sequence number of the snapshot they were read from, so
// that later equality deletes still reach them. ErrConflict when a concurrent commit touched the same files.
func (w *Warehouse) Compact(ctx context.Context, ident icetable.Identifier, opts CompactOptions) (CompactResult, error) {
	tx := w.Begin(ctx, TxOptions{ApplicationName: "compact"})
	c := &compaction{}
	err := c.run(ctx, tx, ident, opts.defaults())
	if err != nil && !errors.Is(err, catalog.ErrUnknownOutcome) {
		tx.extra = slices.Concat(tx.extra, c.paths, c.attempt, c.stale)
		return CompactResult{}, errors.Join(err, tx.Rollback())
	}
	if err == nil {
		w.removePaths(c.stale)
	}
	tx.done = true
	return c.result, err
}

func (c *compaction) run(ctx context.Context, tx *Tx, ident icetable.Identifier, opts CompactOptions) error {
	t, err := tx.Table(ctx, ident)
	if err != nil {
		return err
	}
	if t.unwritable != nil {
		return t.unwritable
	}
	c.t, c.start, c.batch = t, t.baseMeta.CurrentSnapshot(), tx.w.opts.FS.NewBatch()
	if c.start == nil {
		return nil
	}
	c.choose(opts)
	if len(c.victims) == 0 && !c.merge {
		return nil
	}
	if err := c.rewrite(ctx); err != nil {
		return fmt.Errorf("compact %v: %w", ident, err)
	}
	if err := c.batch.SyncLarge(ctx); err != nil {
		return fmt.Errorf("sync data files: %w", err)
	}
	c.result.Record, err = tx.w.opts.Catalog.Commit(ctx, &catalog.Request{
		TxID: tx.opts.TxID, ApplicationName: tx.opts.ApplicationName,
		Changes: []catalog.Change{catalog.UpdateTable{Key: t.key, Ident: t.ident, Build: c.build}},
	})
	if errors.Is(err, catalog.ErrConflict) && !errors.Is(err, ErrConflict) {
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

// choose picks the files to rewrite.
func (c *compaction) choose(opts CompactOptions) {
	small := map[string][]*liveset.LiveFile{}
	picked := map[string]bool{}
	pick := func(f *liveset.LiveFile) {
		if !picked[f.File.Path] {
			picked[f.File.Path] = true
			c.victims = append(c.victims, f)
		}
	}
	for f := range c.t.baseSet.Files() {
		gone := f.File.Records - f.Live()
		if gone > 0 && float64(gone) > opts.SuppressedRatio*float64(f.File.Records) {
			pick(f)
		}
		if f.File.Size < opts.SmallFileBytes {
			k := partitionKey(int32(f.File.SpecID), f.File.Data.Partition())
			small[k] = append(small[k], f)
		}
	}
	for f := range c.t.baseSet.Files() { // in the set's order, so that a run is reproducible
		k := partitionKey(int32(f.File.SpecID), f.File.Data.Partition())
		if f.File.Size < opts.SmallFileBytes && len(small[k]) >= opts.MinInputFiles {
			pick(f)
		}
	}
	scattered := 0
	for d := range c.t.baseSet.DeleteFiles() {
		if d.Kind != liveset.DeletionVector {
			scattered++
		}
	}
	c.merge = scattered > opts.MaxDeleteFiles || (scattered > 0 && len(c.victims) > 0)
}

// rewrite writes the victims' live rows into new files, and the suppressed rows of the others into new delete files.
func (c *compaction) rewrite(ctx context.Context) error {
	t := c.t
	c.snapshotID = newSnapshotID(t.baseMeta)
	w, err := t.newFileWriter(t.v3())
	if err != nil {
		return err
	}
	opts := liveset.ScanOptions{Files: c.victims}
	if t.v3() {
		opts.Meta = liveset.MetaColumns{RowID: true, LastUpdatedSeq: true}
	}
	var want int64
	for _, v := range c.victims {
		want += v.Live()
	}
	if len(c.victims) > 0 {
		for rec, err := range t.tx.w.opts.Live.Scan(ctx, t.Ref(), t.baseSet, t.schema, opts) {
			if err != nil {
				w.abort()
				return err
			}
			c.rows += rec.NumRows()
			err = w.route(ctx, rec)
			rec.Release()
			if err != nil {
				w.abort()
				return err
			}
		}
	}
	if c.rows != want {
		w.abort()
		return fmt.Errorf("read %d rows, want %d", c.rows, want)
	}
	own, err := w.close(ctx)
	if err != nil {
		return err
	}
	for _, o := range own {
		c.added = append(c.added, o.written.DataFile)
		c.batch.Add(o.written.Path)
		if o.written.KeyIndexPath != "" {
			c.batch.Add(o.written.KeyIndexPath)
		}
	}
	c.result.FilesAdded, c.result.FilesRemoved, c.result.Rows = len(c.added), len(c.victims), c.rows
	return c.rewriteDeletes()
}

// rewriteDeletes writes v2 position deletes for the files that stay, and the manifests.
func (c *compaction) rewriteDeletes() error {
	t := c.t
	if c.merge {
		victim := map[string]bool{}
		for _, v := range c.victims {
			victim[v.File.Path] = true
		}
		for f := range t.baseSet.Files() {
			if f.Suppressed != nil && !f.Suppressed.IsEmpty() && !victim[f.File.Path] {
				c.sup = append(c.sup, suppression{f.File, f.Suppressed})
			}
		}
		for d := range t.baseSet.DeleteFiles() {
			if d.Kind != liveset.DeletionVector {
				c.replaced = append(c.replaced, d)
			}
		}
		if err := c.writeDeletes(); err != nil {
			return err
		}
	}
	c.dataSeq = &c.start.SequenceNumber
	return c.writeManifests()
}

// build is the Build callback of a compaction: the victims must be as they were read.
func (c *compaction) build(ctx context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
	out := catalog.BuildOutput{Ref: icetable.MainBranch, Operation: string(icetable.OpReplace)}
	if err := c.newAttempt(in.Base); err != nil {
		return out, err
	}
	meta, err := c.checkVersions(in.Base)
	if err != nil {
		return out, err
	}
	head := in.Base.CurrentSnapshot()
	set, err := c.headSet(ctx, in.Base, head)
	if err != nil {
		return out, err
	}
	s := &snapshotBuild{w: c.t.tx.w, in: in, meta: meta, head: head, id: c.snapshotID, manifests: c.manifests, removed: newRemoval()}
	s.added = append(append([]iceberg.DataFile(nil), c.added...), c.deletes...)
	defer func() { c.attempt = append([]string{}, s.paths...) }()
	for _, p := range c.batch.Paths() {
		in.Batch.Add(p)
	}
	for _, v := range c.victims {
		f := set.File(v.File.Path)
		if f == nil || !sameBitmap(f.Suppressed, v.Suppressed) {
			return out, fmt.Errorf("%w: data file %s changed during compaction", ErrConflict, v.File.Path)
		}
		s.removeData(set, f)
	}
	if err := c.replaceDeletes(ctx, s, set); err != nil {
		return out, err
	}
	if err := s.finish(ctx, icetable.OpReplace); err != nil {
		return out, err
	}
	out.Updates = s.updates
	out.FilesAdded, out.FilesDeleted = s.metrics.addedDataFiles, s.metrics.removedDataFiles
	c.result.DeleteFilesAdded, c.result.DeleteFilesRemoved = int(s.metrics.addedDeleteFiles), int(s.metrics.removedDeleteFiles)
	return out, nil
}

// replaceDeletes removes the delete files whose positions the new ones hold.
func (c *compaction) replaceDeletes(ctx context.Context, s *snapshotBuild, set *liveset.Set) error {
	if !c.merge {
		return nil
	}
	still := map[string]bool{}
	for d := range set.DeleteFiles() {
		still[deleteFileKey(d.Data)] = true
	}
	for _, d := range c.replaced {
		if !still[deleteFileKey(d.Data)] {
			return fmt.Errorf("%w: delete file %s was replaced", ErrConflict, d.Data.FilePath())
		}
		s.removeDelete(d)
	}
	for _, p := range c.sup {
		if set.File(p.file.Path) == nil {
			return fmt.Errorf("%w: data file %s was replaced", ErrConflict, p.file.Path)
		}
	}
	for f := range set.Files() {
		// A file that came in with an older data sequence number may be in reach of the deletes to be removed.
		if c.t.baseSet.File(f.File.Path) == nil && f.File.DataSeq <= c.start.SequenceNumber {
			return fmt.Errorf("%w: another compaction committed", ErrConflict)
		}
	}
	if c.t.v3() && len(c.sup) > 0 {
		return s.deletionVectors(ctx, set, c.sup)
	}
	return nil
}

func sameBitmap(a, b *roaring.Bitmap) bool {
	if a == nil || b == nil {
		return (a == nil || a.IsEmpty()) && (b == nil || b.IsEmpty())
	}
	return a == b || a.Equals(b)
}
