package warehouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// keepOwnBytes is the size from which a file that was spilled within the transaction is committed as it is, and the part of the memory limit from
// which one is, too: a file that a full memory has become. Writing those again would cost as much as all that was written.
const (
	keepOwnBytes = 8 << 20
	keepOwnShare = 16
)

// tableCommit is one table's part of a commit. What does not depend on the newest base is made by prepare, the rest by
// build in the catalog's serial point.
type tableCommit struct {
	t          *TxTable
	snapshotID int64
	batch      *storeio.Batch // the transaction's files that the group has to make durable
	added      []iceberg.DataFile
	dataSeq    *int64             // the added data files' sequence number, nil for the commit's own
	deletes    []iceberg.DataFile // position and equality deletes that hold on any base
	own        *liveset.Set       // the added files
	sup        []suppression      // base rows that need a position delete
	dead       []suppression      // base files of which nothing is left
	manifests  []iceberg.ManifestFile
	entries    newEntries // of the manifests
	keys       [][]byte   // of the added rows, when they are few; else nil
	rows       int64      // added
	gone       int64      // suppressed
	moved      bool       // the delete files are for rows that compactions have moved
	paths      []string   // metadata and delete files of prepare
	attempt    []string   // files of the last build
	stale      []string   // files of builds the catalog asked to do again
}

// Commit makes the transaction's changes durable and visible as one commit seq, or nothing of them. It returns nil, nil
// when there is nothing to commit. ctx is honoured until the catalog's serial point. ErrConflict, *DuplicateKeyError,
// the catalog's sentinels; after any error but catalog.ErrUnknownOutcome nothing happened. The transaction has ended
// either way.
func (tx *Tx) Commit(ctx context.Context) (*catalog.Record, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if !tx.Changed() {
		tx.done = true
		tx.endPrivate(ctx, true)
		tx.w.removeFiles(tx.files, nil)
		tx.release()
		return nil, nil
	}
	if tx.opts.ReadOnly {
		return nil, errors.Join(ErrReadOnly, tx.Rollback())
	}
	rec, commits, err := tx.commit(ctx)
	if err != nil {
		if errors.Is(err, catalog.ErrUnknownOutcome) {
			tx.done = true // the files may be in a snapshot
			tx.endPrivate(ctx, false)
			tx.release()
			return nil, err
		}
		for _, c := range commits {
			tx.extra = slices.Concat(tx.extra, c.paths, c.attempt, c.stale)
		}
		return nil, errors.Join(err, tx.Rollback())
	}
	tx.done = true
	tx.endPrivate(ctx, true)
	taken := map[string]struct{}{}
	for _, c := range commits {
		for _, f := range c.added {
			taken[f.FilePath()] = struct{}{}
		}
		tx.w.removePaths(c.stale)
	}
	tx.w.removeFiles(tx.files, taken)
	tx.release()
	return rec, nil
}

func (tx *Tx) commit(ctx context.Context) (*catalog.Record, []*tableCommit, error) {
	batch := tx.w.opts.FS.NewBatch()
	var commits []*tableCommit
	byKey := map[catalog.TableKey]*tableCommit{}
	for _, key := range slices.Sorted(maps.Keys(tx.names.tables)) {
		t := tx.names.tables[key]
		if !t.altered() {
			continue
		}
		c := &tableCommit{t: t, batch: batch}
		commits, byKey[key] = append(commits, c), c
		if err := c.prepare(ctx); err != nil {
			return nil, commits, fmt.Errorf("commit %v: %w", t.ident, err)
		}
	}
	if err := batch.SyncLarge(ctx); err != nil {
		return nil, commits, fmt.Errorf("sync data files: %w", err)
	}
	req := &catalog.Request{TxID: tx.opts.TxID, Actor: tx.opts.Actor, ApplicationName: tx.opts.ApplicationName, Context: tx.opts.Context}
	adopted := tx.registered()
	req.Changes = append(req.Changes, tx.requires...) // they come first: own changes are none to them
	for _, c := range commits {
		if c.t.base != nil && !c.t.undropped && !adopted[c.t.key] {
			req.Changes = append(req.Changes, catalog.UpdateTable{Key: c.t.key, Ident: c.t.base.Ident, Build: c.build})
		}
	}
	for _, o := range tx.ops {
		if c, ok := o.change.(catalog.CreateTable); ok {
			if tc := byKey[o.key]; tc != nil {
				c.Build = tc.build
			}
			o.change = c
		}
		req.Changes = append(req.Changes, o.change)
	}
	for _, c := range commits {
		if c.t.undropped || adopted[c.t.key] {
			req.Changes = append(req.Changes, catalog.UpdateTable{Key: c.t.key, Ident: c.t.ident, Build: c.build})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, commits, err
	}
	rec, err := tx.w.opts.Catalog.Commit(ctx, req)
	switch {
	case err == nil:
		return rec, commits, nil
	case errors.Is(err, catalog.ErrConflict) && !errors.Is(err, ErrConflict):
		err = fmt.Errorf("%w: %w", ErrConflict, err)
	case errors.Is(err, icecat.ErrNoSuchTable):
		err = fmt.Errorf("%w: a table was dropped: %w", ErrConflict, err)
	}
	return nil, commits, err
}

// prepare writes what does not depend on the newest base: the final data files, v2 position deletes, equality deletes
// and their manifests.
func (c *tableCommit) prepare(ctx context.Context) error {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.waitSpillLocked(ctx); err != nil {
		return err
	}
	c.keys = t.fewKeysLocked()
	own, err := t.finalFilesLocked(ctx)
	if err != nil {
		return err
	}
	ov := liveset.Overlay{}
	for _, o := range own {
		c.added = append(c.added, o.written.DataFile)
		c.rows += o.file.Records
		c.batch.Add(o.written.Path)
		if o.written.KeyIndexPath != "" {
			c.batch.Add(o.written.KeyIndexPath)
		}
		ov.Add = append(ov.Add, o.file)
	}
	c.own = liveset.Empty().With(ov)
	c.snapshotID = newSnapshotID(t.baseMeta)
	c.collectSuppressions()
	if err := c.writeDeletes(); err != nil {
		return err
	}
	return c.writeManifests()
}

// fewKeys is up to how many keys a commit looks for by themselves, without reading its own files.
const fewKeys = 64

// fewKeysLocked are the keys of all rows to add, nil when they are many or not all in memory.
func (t *TxTable) fewKeysLocked() [][]byte {
	st := t.st
	if len(st.own) > 0 || st.log.keys == nil || len(st.log.keys.rows) > fewKeys || len(t.alters) > 0 {
		return nil
	}
	var keys [][]byte
	for i, row := range st.log.keys.rows {
		if row < st.rows && !st.isDead(row) {
			keys = append(keys, bytes.Clone(st.log.keys.key(i)))
		}
	}
	if int64(len(keys)) != liveRows(st.rows, st.dead) {
		return nil
	}
	return keys
}

// maxJoined is the number of entries up to which a commit that replaces files of one row writes them, what it adds and what is left in the manifest that
// held them as one manifest: otherwise it takes three.
const maxJoined = 64

// joins says whether the commit's manifest is written in the serial point, where it is known what is left.
func (c *tableCommit) joins() bool {
	spec := c.t.meta.PartitionSpec()
	if c.t.meta.Version() != 2 || !spec.IsUnpartitioned() || len(c.dead) == 0 || len(c.deletes) > 0 || len(c.added) == 0 || len(c.added)+len(c.dead) > maxJoined {
		return false
	}
	for _, d := range c.dead {
		if d.file.SpecID != spec.ID() {
			return false
		}
	}
	return true
}

// writeManifests writes the manifests of the added data and delete files.
func (c *tableCommit) writeManifests() error {
	if c.joins() {
		c.manifests, c.entries = nil, nil
		return nil
	}
	mw, err := newMetadataWriter(c.t.tx.w, c.t.meta, c.snapshotID)
	if err != nil {
		return err
	}
	files := make([]added, 0, len(c.added)+len(c.deletes))
	for _, f := range c.added {
		files = append(files, added{file: f, seq: c.dataSeq})
	}
	for _, f := range c.deletes {
		files = append(files, added{file: f})
	}
	c.manifests, err = mw.addManifests(files)
	c.entries = mw.entries
	c.wrote(mw.files...)
	if err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	return nil
}

// newAttempt is called by every build: the catalog may put a request back and build it in a later group. The next
// snapshot then gets an id of its own, because requests of the first group may have read the one that was given up.
func (c *tableCommit) newAttempt(base icetable.Metadata) error {
	if c.attempt == nil {
		return nil
	}
	c.stale, c.attempt = append(c.stale, c.attempt...), nil
	c.snapshotID = newSnapshotID(base)
	return c.writeManifests()
}

// wrote notes files of the attempt: to be synced by the group, and to be removed when it fails.
func (c *tableCommit) wrote(paths ...string) {
	c.paths = append(c.paths, paths...)
	for _, p := range paths {
		c.batch.Add(p)
	}
}

// collectSuppressions sorts the suppressed base rows into those that need a delete file and files that are all dead.
func (c *tableCommit) collectSuppressions() {
	st := c.t.st
	if st.truncated {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(st.suppress)) {
		f := c.t.baseSet.File(p)
		b := st.suppress[p]
		if f == nil || b.IsEmpty() {
			continue
		}
		c.gone += card(b)
		if f.Live() == card(b) && len(st.eq) == 0 {
			c.dead = append(c.dead, suppression{f.File, b})
			continue
		}
		rest := b
		for _, e := range st.eq {
			if cov := e.covered[p]; cov != nil {
				rest = roaring.AndNot(rest, cov)
			}
		}
		if !rest.IsEmpty() {
			c.sup = append(c.sup, suppression{f.File, rest})
		}
	}
}

func (c *tableCommit) writeDeletes() error {
	t := c.t
	if !t.v3() && len(c.sup) > 0 {
		files, paths, err := writePositionDeletes(t.tx.w.opts.FS, t.meta, c.sup)
		c.wrote(paths...)
		if err != nil {
			return err
		}
		c.deletes = append(c.deletes, files...)
		if len(files) == 1 {
			t.tx.w.opts.Live.AddPositions(files[0], positionsOf(c.sup))
		}
	}
	if len(t.st.eq) > 0 {
		files, paths, err := writeEqualityDeletes(t.tx.w.opts.FS, t.meta, t.st.eq)
		c.wrote(paths...)
		if err != nil {
			return err
		}
		c.deletes = append(c.deletes, files...)
	}
	return nil
}

func positionsOf(sup []suppression) map[string]*roaring.Bitmap {
	out := make(map[string]*roaring.Bitmap, len(sup))
	for _, s := range sup {
		out[s.file.Path] = s.positions.Clone()
	}
	return out
}

// finalFilesLocked are the data files to commit: large spilled files as they are; the live rows of all others and of
// the log in new ones, so that no row born and dead inside the transaction is in them.
func (t *TxTable) finalFilesLocked(ctx context.Context) ([]*ownFile, error) {
	st := t.st
	var keep, again []*ownFile
	large := min(keepOwnBytes, t.tx.w.opts.MemoryLimit/keepOwnShare)
	for _, o := range st.own {
		if b := st.suppress[o.file.Path]; b != nil && !b.IsEmpty() {
			again = append(again, o)
		} else if o.file.Size < large {
			again = append(again, o)
		} else {
			keep = append(keep, o)
		}
	}
	inLog := liveRows(st.rows, st.dead)
	if len(again) == 1 && inLog == 0 && st.suppress[again[0].file.Path] == nil && len(t.alters) == 0 {
		return append(keep, again...), nil
	}
	if len(again) == 0 {
		files, _, err := t.writeLog(ctx, st.log, st.rows, st.dead)
		return append(keep, files...), err
	}
	w, err := t.newFileWriter(t.v3())
	if err != nil {
		return nil, err
	}
	err = t.rewriteLocked(ctx, w, again)
	if err == nil {
		err = st.log.live(st.rows, st.dead, func(rec arrow.RecordBatch, ids []int64, first int32) error { return w.write(ctx, rec, ids, first) })
	}
	if err != nil {
		w.abort()
		return nil, fmt.Errorf("write data file: %w", err)
	}
	files, err := w.close(ctx)
	return append(keep, files...), err
}

// rewriteLocked writes the live rows of own files.
func (t *TxTable) rewriteLocked(ctx context.Context, w *fileWriter, files []*ownFile) error {
	ov := liveset.Overlay{Suppress: map[string]*roaring.Bitmap{}}
	for _, o := range files {
		ov.Add = append(ov.Add, o.file)
		if b := t.st.suppress[o.file.Path]; b != nil {
			ov.Suppress[o.file.Path] = b
		}
	}
	opts := liveset.ScanOptions{}
	if w.rowIDs {
		opts.Meta = liveset.MetaColumns{RowID: true, LastUpdatedSeq: true}
	}
	for rec, err := range t.tx.w.opts.Live.Scan(ctx, t.Ref(), liveset.Empty().With(ov), t.schema, opts) {
		if err != nil {
			return err
		}
		err = w.route(ctx, rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
