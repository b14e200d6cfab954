package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// Retain says which snapshots ExpireSnapshots keeps: the newest Min of main's ancestry (at least 1), all younger than
// MaxAge, every snapshot a ref names, and every snapshot for which Pinned returns true. Whoever reads an older cut must
// be covered by it: the files of expired snapshots are removed at once.
type Retain struct {
	Min    int
	MaxAge time.Duration
	Pinned func(snapshotID int64) bool
}

// ExpireResult says what ExpireSnapshots removed.
type ExpireResult struct {
	Snapshots    int
	FilesRemoved int
	Record       *catalog.Record // nil when there was nothing to do
}

// ExpireSnapshots removes old snapshots from the metadata, then the files only they referenced: data and delete files,
// key indexes, manifests and manifest lists. A crash in between leaves orphans, never a missing file.
func (w *Warehouse) ExpireSnapshots(ctx context.Context, ident icetable.Identifier, keep Retain) (ExpireResult, error) {
	var res ExpireResult
	state, err := w.opts.Catalog.Cut().Table(ident)
	if err != nil {
		return res, err
	}
	var before icetable.Metadata
	var gone []int64
	build := func(_ context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
		before, gone = in.Base, expired(in.Base, in.Time, keep)
		if len(gone) == 0 {
			return catalog.BuildOutput{}, errNothingToExpire
		}
		return catalog.BuildOutput{Updates: []icetable.Update{icetable.NewRemoveSnapshotsUpdate(gone, false)}}, nil
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return res, err
	}
	if len(expired(meta, time.Now(), keep)) == 0 {
		return res, nil
	}
	res.Record, err = w.opts.Catalog.Commit(ctx, &catalog.Request{ApplicationName: "expire",
		Changes: []catalog.Change{catalog.UpdateTable{Key: state.Key, Ident: state.Ident, Build: build}}})
	switch {
	case errors.Is(err, errNothingToExpire):
		return ExpireResult{}, nil
	case err != nil:
		return ExpireResult{}, fmt.Errorf("expire snapshots of %v: %w", ident, err)
	}
	res.Snapshots = len(gone)
	res.FilesRemoved, err = w.removeUnreachable(ctx, state.Key, before, gone)
	return res, err
}

var errNothingToExpire = errors.New("no snapshot to expire")

// expired are the snapshots of meta that keep does not keep.
func expired(meta icetable.Metadata, now time.Time, keep Retain) []int64 {
	kept := map[int64]bool{}
	for _, ref := range meta.Refs() {
		kept[ref.SnapshotID] = true
	}
	n := max(1, keep.Min)
	for s := meta.CurrentSnapshot(); s != nil && n > 0; n-- {
		kept[s.SnapshotID] = true
		if s.ParentSnapshotID == nil {
			break
		}
		s = meta.SnapshotByID(*s.ParentSnapshotID)
	}
	var out []int64
	for _, s := range meta.Snapshots() {
		switch {
		case kept[s.SnapshotID]:
		case now.Sub(time.UnixMilli(s.TimestampMs)) < keep.MaxAge:
		case keep.Pinned != nil && keep.Pinned(s.SnapshotID):
		default:
			out = append(out, s.SnapshotID)
		}
	}
	return out
}

// removeUnreachable removes the files of the gone snapshots that no snapshot of the table's present metadata names.
func (w *Warehouse) removeUnreachable(ctx context.Context, key catalog.TableKey, before icetable.Metadata, gone []int64) (int, error) {
	candidates := &reachable{files: map[string]bool{}, manifests: map[string]bool{}}
	for _, id := range gone {
		if err := candidates.add(ctx, w, before.SnapshotByID(id), true); err != nil {
			return 0, err
		}
	}
	live := &reachable{files: map[string]bool{}, manifests: map[string]bool{}}
	state, ok := w.opts.Catalog.Cut().TableByKey(key)
	if ok { // else it was dropped meanwhile; nothing is reachable, but purging is the drop's affair
		meta, err := state.Metadata(ctx)
		if err != nil {
			return 0, err
		}
		for _, s := range meta.Snapshots() {
			if err := live.add(ctx, w, &s, false); err != nil {
				return 0, err
			}
		}
	} else {
		return 0, nil
	}
	removed := 0
	for _, p := range slices.Sorted(maps.Keys(candidates.files)) {
		if live.files[p] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if err := w.opts.FS.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("remove expired file: %w", err)
		}
		removed++
		if err := w.opts.FS.Remove(p + ".keyidx"); err == nil {
			removed++
		}
	}
	return removed, nil
}

// reachable collects the files that snapshots name. Each manifest is read once.
type reachable struct {
	files     map[string]bool
	manifests map[string]bool
}

// add adds a snapshot's files. lenient passes over what an earlier, interrupted expiry removed already.
func (r *reachable) add(ctx context.Context, w *Warehouse, s *icetable.Snapshot, lenient bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	skip := func(err error) bool { return lenient && errors.Is(err, fs.ErrNotExist) }
	list, err := w.manifestsOf(s)
	if err != nil {
		if skip(err) {
			return nil
		}
		return err
	}
	if s.ManifestList != "" {
		r.files[s.ManifestList] = true
	}
	for _, m := range list {
		if r.manifests[m.FilePath()] {
			continue
		}
		r.manifests[m.FilePath()] = true
		if err := r.addManifest(w, m, lenient); err != nil && !skip(err) {
			return fmt.Errorf("read manifest %s: %w", m.FilePath(), err)
		}
	}
	return nil
}

// addManifest adds a manifest and the files it lists; those it lists as removed only when they are candidates.
func (r *reachable) addManifest(w *Warehouse, m iceberg.ManifestFile, removed bool) error {
	for e, err := range m.Entries(w.opts.FS, false) {
		if err != nil {
			return err
		}
		if e.Status() != iceberg.EntryStatusDELETED || removed {
			r.files[e.DataFile().FilePath()] = true
		}
	}
	r.files[m.FilePath()] = true
	return nil
}
