package warehouse

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// build is the Build callback of a compaction. What commits since its start suppressed in the victims is suppressed in the new files.
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
	late, err := c.lateSuppressions(s, set)
	if err != nil {
		return out, err
	}
	if err := c.replaceDeletes(ctx, s, set); err != nil {
		return out, err
	}
	if err := c.carryOver(ctx, s, late); err != nil {
		return out, err
	}
	if err := s.finish(ctx, icetable.OpReplace); err != nil {
		return out, err
	}
	c.t.tx.w.moves.add(c.moves) // before a writer of the same group looks for its rows
	out.Updates = s.updates
	out.FilesAdded, out.FilesDeleted = s.metrics.addedDataFiles, s.metrics.removedDataFiles
	c.result.DeleteFilesAdded, c.result.DeleteFilesRemoved = int(s.metrics.addedDeleteFiles), int(s.metrics.removedDeleteFiles)
	return out, nil
}

// lateSuppressions removes the victims from the snapshot and finds, in the new files, the rows that died since they were read.
func (c *compaction) lateSuppressions(s *snapshotBuild, set *liveset.Set) (map[string]*roaring.Bitmap, error) {
	late := map[string]*roaring.Bitmap{}
	for _, v := range c.victims {
		path := v.File.Path
		gone := roaring.New()
		gone.AddRange(0, uint64(v.File.Records)) // a file that is there no longer has lost all its rows
		if f := set.File(path); f != nil {
			s.removeData(set, f)
			if gone = f.Suppressed; gone == nil {
				gone = roaring.New()
			}
		} else if m := c.t.tx.w.moves.of(path); m != nil && m != c.moves && slices.ContainsFunc(m.files, func(p string) bool { return set.File(p) != nil }) {
			return nil, fmt.Errorf("%w: another compaction rewrote data file %s", ErrConflict, path)
		}
		if v.Suppressed != nil {
			if !v.Suppressed.IsEmpty() && roaring.AndNot(v.Suppressed, gone).GetCardinality() > 0 {
				return nil, fmt.Errorf("%w: rows of data file %s came back during compaction", ErrConflict, path)
			}
			gone = roaring.AndNot(gone, v.Suppressed)
		}
		if !gone.IsEmpty() && !c.moves.translate(path, gone, late) {
			return nil, fmt.Errorf("%w: data file %s changed during compaction", ErrConflict, path)
		}
	}
	return late, nil
}

// carryOver writes the delete files of the new data files.
func (c *compaction) carryOver(ctx context.Context, s *snapshotBuild, late map[string]*roaring.Bitmap) error {
	if len(late) == 0 {
		return nil
	}
	files := map[string]*liveset.File{}
	for _, o := range c.own {
		files[o.file.Path] = o.file
	}
	var sup []suppression
	for _, p := range slices.Sorted(maps.Keys(late)) {
		sup = append(sup, suppression{files[p], late[p]})
	}
	fs := s.w.opts.FS
	var deletes []iceberg.DataFile
	var paths []string
	var err error
	if c.t.v3() {
		var path string
		deletes, path, err = writeDVs(ctx, fs, s.meta, sup)
		paths = []string{path}
	} else {
		deletes, paths, err = writePositionDeletes(fs, s.meta, sup)
	}
	s.paths = append(s.paths, paths...)
	if err != nil {
		return err
	}
	for _, p := range paths {
		s.in.Batch.Add(p)
	}
	return s.addDeletes(deletes)
}

// replaceDeletes removes the delete files whose positions the new ones hold. Those that commits removed since, with their data files, are passed over.
func (c *compaction) replaceDeletes(ctx context.Context, s *snapshotBuild, set *liveset.Set) error {
	if !c.merge {
		return nil
	}
	still := map[string]bool{}
	for d := range set.DeleteFiles() {
		still[deleteFileKey(d.Data)] = true
	}
	for _, d := range c.replaced {
		if still[deleteFileKey(d.Data)] {
			s.removeDelete(set, d)
		}
	}
	var sup []suppression
	for _, p := range c.sup {
		f := set.File(p.file.Path)
		if f == nil {
			continue // v2: the positions name a file that is gone, which is allowed
		}
		if f.Suppressed == nil || roaring.AndNot(p.positions, f.Suppressed).GetCardinality() > 0 {
			return fmt.Errorf("%w: rows of data file %s came back during compaction", ErrConflict, p.file.Path)
		}
		sup = append(sup, p)
	}
	for f := range set.Files() {
		// A file that came in with an older data sequence number may be in reach of the deletes to be removed.
		if c.t.baseSet.File(f.File.Path) == nil && f.File.DataSeq <= c.start.SequenceNumber {
			return fmt.Errorf("%w: another compaction committed", ErrConflict)
		}
	}
	if c.t.v3() && len(sup) > 0 {
		return s.deletionVectors(ctx, set, sup)
	}
	return nil
}
