package warehouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// Retain says which snapshots ExpireSnapshots keeps: of each branch's ancestry the newest Min (at least 1) and those younger than MaxAge, or what the
// branch's own retention says; what no branch has while it is younger than MaxAge; every snapshot a ref names, and every snapshot for which
// Pinned returns true.
type Retain struct {
	Min    int
	MaxAge time.Duration
	// MaxRefAge: branches and tags other than main whose snapshot is older go, unless they have a retention of their own. 0 keeps them.
	MaxRefAge time.Duration
	Pinned    func(snapshotID int64) bool
	// Before, when set, is told which snapshots are about to go; its error keeps them all.
	Before func(ctx context.Context, snapshots []int64) error
	// Later, when set, takes the files to be removed once nobody reads a cut from before the expiry. Else they are removed at once.
	Later func(rec *catalog.Record, paths []string)
}

// ExpireResult says what ExpireSnapshots removed.
type ExpireResult struct {
	Snapshots    int
	Refs         int
	FilesRemoved int             // or handed to Later
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
	var told, gone expiry
	build := func(_ context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
		before, gone = in.Base, expired(in.Base, in.Time, keep)
		gone.snapshots = slices.DeleteFunc(gone.snapshots, func(id int64) bool { return !slices.Contains(told.snapshots, id) })
		if gone.empty() {
			return catalog.BuildOutput{}, errNothingToExpire
		}
		var out catalog.BuildOutput
		for _, name := range gone.refs {
			out.Updates = append(out.Updates, icetable.NewRemoveSnapshotRefUpdate(name))
		}
		if len(gone.snapshots) > 0 {
			out.Updates = append(out.Updates, icetable.NewRemoveSnapshotsUpdate(gone.snapshots, false))
		}
		return out, nil
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return res, err
	}
	if told = expired(meta, w.opts.Catalog.Now(), keep); !meta.Properties().GetBool("gc.enabled", true) || told.empty() {
		return res, nil
	}
	if keep.Before != nil {
		if err := keep.Before(ctx, told.snapshots); err != nil {
			return res, err
		}
	}
	res.Record, err = w.opts.Catalog.Commit(ctx, &catalog.Request{ApplicationName: "expire",
		Changes: []catalog.Change{catalog.UpdateTable{Key: state.Key, Ident: state.Ident, Build: build}}})
	switch {
	case errors.Is(err, errNothingToExpire):
		return ExpireResult{}, nil
	case err != nil:
		return ExpireResult{}, fmt.Errorf("expire snapshots of %v: %w", ident, err)
	}
	res.Snapshots, res.Refs = len(gone.snapshots), len(gone.refs)
	if !before.Properties().GetBool("gc.enabled", true) { // its files are shared with another table
		return res, nil
	}
	paths, err := w.unreachable(ctx, state.Key, before, gone.snapshots)
	if err != nil {
		return res, err
	}
	res.FilesRemoved = len(paths)
	if keep.Later != nil {
		keep.Later(res.Record, paths)
		return res, nil
	}
	return res, w.RemoveFiles(ctx, paths)
}

var errNothingToExpire = errors.New("no snapshot to expire")

// expiry is what goes.
type expiry struct {
	refs      []string
	snapshots []int64
}

func (e expiry) empty() bool { return len(e.refs) == 0 && len(e.snapshots) == 0 }

// expired are the refs and snapshots of meta that keep does not keep.
func expired(meta icetable.Metadata, now time.Time, keep Retain) expiry {
	var out expiry
	age := func(s *icetable.Snapshot) time.Duration { return now.Sub(time.UnixMilli(s.TimestampMs)) }
	kept, onBranch := map[int64]bool{}, map[int64]bool{}
	for name, ref := range meta.Refs() {
		r, head := retentionOf(ref), meta.SnapshotByID(ref.SnapshotID)
		if max := cmp.Or(r.MaxRefAge, keep.MaxRefAge); max > 0 && name != icetable.MainBranch && head != nil && age(head) > max {
			out.refs = append(out.refs, name)
			continue
		}
		kept[ref.SnapshotID] = true
		if ref.SnapshotRefType != icetable.BranchRef {
			continue
		}
		n, maxAge := max(1, cmp.Or(r.MinSnapshotsToKeep, keep.Min)), cmp.Or(r.MaxSnapshotAge, keep.MaxAge)
		for s := head; s != nil; n-- {
			onBranch[s.SnapshotID] = true
			if n > 0 || age(s) < maxAge {
				kept[s.SnapshotID] = true
			}
			if s.ParentSnapshotID == nil {
				break
			}
			s = meta.SnapshotByID(*s.ParentSnapshotID)
		}
	}
	slices.Sort(out.refs)
	for _, s := range meta.Snapshots() {
		switch {
		case kept[s.SnapshotID]:
		case !onBranch[s.SnapshotID] && age(&s) < keep.MaxAge:
		case keep.Pinned != nil && keep.Pinned(s.SnapshotID):
		default:
			out.snapshots = append(out.snapshots, s.SnapshotID)
		}
	}
	return out
}

// unreachable are the files of the gone snapshots that no snapshot of the table's present metadata names, without what belongs to them by name.
func (w *Warehouse) unreachable(ctx context.Context, key catalog.TableKey, before icetable.Metadata, gone []int64) ([]string, error) {
	candidates := &reachable{files: map[string]bool{}, manifests: map[string]bool{}}
	for _, id := range gone {
		if err := candidates.add(ctx, w, before.SnapshotByID(id), true); err != nil {
			return nil, err
		}
	}
	state, ok := w.opts.Catalog.Cut().TableByKey(key)
	if !ok { // it was dropped meanwhile; purging is the drop's affair
		return nil, nil
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	live := &reachable{files: map[string]bool{}, manifests: map[string]bool{}}
	for _, s := range meta.Snapshots() {
		if err := live.add(ctx, w, &s, false); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, p := range slices.Sorted(maps.Keys(candidates.files)) {
		if !live.files[p] {
			out = append(out, p)
		}
	}
	return out, nil
}

// RemoveFiles removes files that nothing names, with their key indexes. What is gone already is passed over.
func (w *Warehouse) RemoveFiles(ctx context.Context, paths []string) error {
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.opts.FS.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove expired file: %w", err)
		}
		if ext := path.Ext(p); ext != ".avro" && ext != ".json" && ext != ".puffin" { // other writers name data files as they like
			_ = w.opts.FS.Remove(p + ".keyidx") // most have none
		}
	}
	return nil
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
