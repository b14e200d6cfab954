package liveset

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"golang.org/x/sync/errgroup"
)

// maxAncestors is how far back a cached ancestor is looked for.
const maxAncestors = 256

// At returns the set of a snapshot: from the cache, or derived from the nearest cached ancestor, else from the table's set derived last, else from
// nothing. Errors: ErrSnapshotNotFound, and those of the files read.
func (c *Cache) At(ctx context.Context, ref Ref, snapshotID int64) (*Set, error) {
	return cached(ctx, c, setKey(ref, snapshotID), func() (*Set, int64, error) {
		snap := ref.Metadata.SnapshotByID(snapshotID)
		if snap == nil {
			return nil, 0, fmt.Errorf("%w: %d", ErrSnapshotNotFound, snapshotID)
		}
		s, err := c.derive(ctx, ref, c.baseFor(ref, snap), snap)
		if err != nil {
			return nil, 0, fmt.Errorf("live set of snapshot %d: %w", snapshotID, err)
		}
		c.latest.Lock()
		c.latest.byTable[ref.UUID] = snapshotID
		c.latest.Unlock()
		return s, s.memory(), nil
	})
}

func setKey(ref Ref, id int64) lruKey {
	return lruKey{kind: kindSet, name: ref.UUID.String(), sub: strconv.FormatInt(id, 10)}
}

// memory is about what a set adds to what it shares.
func (s *Set) memory() int64 {
	n := int64(256+len(s.manifests)*64) + int64(len(s.touched))*1024
	for _, p := range s.touched {
		if f := s.File(p); f != nil && f.Suppressed != nil {
			n += int64(f.Suppressed.GetSizeInBytes()) * 2
		}
	}
	return n
}

func (c *Cache) baseFor(ref Ref, snap *table.Snapshot) *Set {
	at := snap
	for range maxAncestors {
		if at == nil || at.ParentSnapshotID == nil {
			break
		}
		id := *at.ParentSnapshotID
		if v, ok := c.lru.peek(setKey(ref, id)); ok {
			return v.(*Set)
		}
		at = ref.Metadata.SnapshotByID(id)
	}
	c.latest.Lock()
	id, ok := c.latest.byTable[ref.UUID]
	c.latest.Unlock()
	if ok {
		if v, ok := c.lru.peek(setKey(ref, id)); ok {
			return v.(*Set)
		}
	}
	return empty
}

// derivation is a set under construction from a base.
type derivation struct {
	c    *Cache
	ref  Ref
	base *Set
	out  *Set
	m    *matcher

	work map[string]*rework // files whose bitmaps must be looked at, by path
}

// rework says what of a file's bitmap is computed again.
type rework struct {
	pos   bool // position deletes from nothing
	eq    bool // equality deletes from nothing
	addPD []*DeleteFile
	addEQ []*DeleteFile
}

func (d *derivation) mark(path string) *rework {
	w := d.work[path]
	if w == nil {
		w = &rework{}
		d.work[path] = w
	}
	return w
}

// derive is the one way sets are made (V2).
func (c *Cache) derive(ctx context.Context, ref Ref, base *Set, snap *table.Snapshot) (*Set, error) {
	c.stats.derived.Add(1)
	list, err := c.manifestList(snap)
	if err != nil {
		return nil, err
	}
	out := *base
	out.uuid, out.snapshot, out.has, out.manifests, out.touched = ref.UUID, snap.SnapshotID, true, list, nil
	if out.keyTrees == nil {
		out.keyTrees = &keyTrees{}
	}
	d := &derivation{c: c, ref: ref, base: base, out: &out, m: &matcher{c: c, ref: ref}, work: map[string]*rework{}}
	var fresh, gone []iceberg.ManifestFile
	for p, m := range list {
		if was, ok := base.manifests[p]; !ok || manifestKey(was) != manifestKey(m) {
			fresh = append(fresh, m)
		}
	}
	for p, m := range base.manifests {
		if is, ok := list[p]; !ok || manifestKey(is) != manifestKey(m) {
			gone = append(gone, m)
		}
	}
	came, err := c.manifestsOf(ctx, fresh)
	if err != nil {
		return nil, err
	}
	went, err := c.manifestsOf(ctx, gone)
	if err != nil {
		return nil, err
	}
	d.files(went, came)
	if err := d.deletes(ctx, went, came); err != nil {
		return nil, err
	}
	if err := d.resolve(ctx); err != nil {
		return nil, err
	}
	return &out, nil
}

// manifestsOf decodes manifests in parallel.
func (c *Cache) manifestsOf(ctx context.Context, list []iceberg.ManifestFile) ([]*manifest, error) {
	out := make([]*manifest, len(list))
	eg, ctx := errgroup.WithContext(ctx)
	eg.SetLimit(2 * runtime.GOMAXPROCS(0))
	for i, m := range list {
		eg.Go(func() (err error) {
			out[i], err = c.manifest(ctx, m)
			return err
		})
	}
	return out, eg.Wait()
}

// files applies the data files that left and came. A file that a rewritten manifest carries over stays as it is, but for the row ids it may inherit now.
func (d *derivation) files(went, came []*manifest) {
	old := func(path string) (*File, bool) {
		if l := d.out.File(path); l != nil {
			return l.File, true
		}
		return nil, false
	}
	var changed map[string]*File
	changed, d.out.repeatedFiles = settle(went, came, func(m *manifest) []*File { return m.data }, old, d.out.repeatedFiles)
	for path, f := range changed {
		was := d.out.File(path)
		switch {
		case f == nil:
			d.out.dropFile(path)
			d.mark(path)
		case was != nil && was.File.same(f):
			if !equalInt(was.File.FirstRowID, f.FirstRowID) {
				f.learnConstants(d.ref)
				d.out.putFile(&LiveFile{File: f, Suppressed: was.Suppressed, pos: was.pos, eq: was.eq})
			}
		default:
			f.learnConstants(d.ref)
			d.out.dropFile(path)
			d.out.putFile(newLive(f, nil, nil))
			w := d.mark(path)
			w.pos, w.eq = true, true
		}
	}
}

func equalInt(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// deletes applies the delete files that left and came, and marks the files they reach.
func (d *derivation) deletes(ctx context.Context, went, came []*manifest) error {
	var changed map[string]*DeleteFile
	changed, d.out.repeatedDels = settle(went, came, func(m *manifest) []*DeleteFile { return m.deletes }, d.out.dels.get, d.out.repeatedDels)
	keys := make([]string, 0, len(changed))
	for k := range changed {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys { // all that left before any that came
		if err := d.leave(ctx, k, changed[k]); err != nil {
			return err
		}
	}
	for _, k := range keys {
		x := changed[k]
		if old, ok := d.out.dels.get(k); x == nil || ok && old.same(x) {
			continue
		}
		d.out.dels = d.out.dels.put(k, x)
		d.index(x, addDel)
		if err := d.reach(ctx, x, true); err != nil {
			return err
		}
	}
	return nil
}

// leave takes out a delete file that is not there any more, or is another (next) now.
func (d *derivation) leave(ctx context.Context, key string, next *DeleteFile) error {
	old, ok := d.out.dels.get(key)
	if !ok || next != nil && old.same(next) {
		return nil
	}
	d.index(old, dropDel)
	d.out.dels = d.out.dels.del(key)
	return d.reach(ctx, old, false)
}

func (d *derivation) index(x *DeleteFile, apply func(*node[*delList], string, *DeleteFile) *node[*delList]) {
	switch {
	case x.Kind == EqualityDelete:
		d.out.equal = apply(d.out.equal, d.scope(x), x)
	case x.ref != "":
		d.out.scoped = apply(d.out.scoped, x.ref, x)
	default:
		d.out.byPart = apply(d.out.byPart, x.part, x)
	}
}

// scope is the partition an equality delete reaches: all of them when its spec is unpartitioned.
func (d *derivation) scope(x *DeleteFile) string {
	spec := d.ref.Metadata.PartitionSpecByID(int(x.Data.SpecID()))
	if spec != nil && spec.IsUnpartitioned() || spec == nil && len(x.Data.Partition()) == 0 {
		return globalPart
	}
	return x.part
}

// reach marks the files whose bitmaps a delete file changes by coming or by leaving.
func (d *derivation) reach(ctx context.Context, x *DeleteFile, came bool) error {
	switch {
	case x.Kind == EqualityDelete:
		scope := d.scope(x)
		for f := range d.out.Files() {
			if f.File.DataSeq >= x.DataSeq || scope != globalPart && f.File.part != scope || !d.m.mayMatch(x, f.File) {
				continue
			}
			w := d.mark(f.File.Path)
			if came && !w.eq {
				w.addEQ = append(w.addEQ, x)
			} else {
				w.eq = true
			}
		}
	case x.ref != "":
		d.reachPath(x, x.ref, came && x.Kind == PositionDelete)
	default:
		p, err := d.c.positions(ctx, x)
		if err != nil {
			// A delete file that has left may be gone from disk: then every file of its partition is looked at.
			if came || !errors.Is(err, ErrMissingFile) {
				return err
			}
			for f := range d.out.Files() {
				if f.File.part == x.part {
					d.reachPath(x, f.File.Path, false)
				}
			}
			return nil
		}
		for path := range p.byPath {
			d.reachPath(x, path, came)
		}
	}
	return nil
}

func (d *derivation) reachPath(x *DeleteFile, path string, add bool) {
	f := d.out.File(path)
	if f == nil || f.File.DataSeq > x.DataSeq {
		return
	}
	w := d.mark(path)
	if add && !w.pos {
		w.addPD = append(w.addPD, x)
	} else {
		w.pos = true
	}
}

// resolve computes the marked files' bitmaps, in parallel, and puts those that changed.
func (d *derivation) resolve(ctx context.Context) error {
	var mu sync.Mutex
	done := map[string]*LiveFile{}
	eg, gctx := errgroup.WithContext(ctx)
	eg.SetLimit(runtime.GOMAXPROCS(0))
	for path, w := range d.work {
		f := d.out.File(path)
		if f == nil {
			continue
		}
		eg.Go(func() error {
			l, err := d.bitmap(gctx, f, w)
			if err != nil {
				return err
			}
			mu.Lock()
			done[path] = l
			mu.Unlock()
			return nil
		})
	}
	if err := eg.Wait(); err != nil {
		return err
	}
	for path, l := range done {
		if old := d.out.File(path); old != l {
			d.out.putFile(l)
		}
	}
	for path := range d.work {
		if was, is := d.base.File(path), d.out.File(path); was != is {
			d.out.touched = append(d.out.touched, path)
		}
	}
	slices.Sort(d.out.touched)
	return nil
}

// bitmap is the file with what its rework asks for. An unchanged bitmap keeps the LiveFile, so that trees share it.
func (d *derivation) bitmap(ctx context.Context, f *LiveFile, w *rework) (*LiveFile, error) {
	pos, eq := f.pos, f.eq
	var err error
	switch {
	case w.pos:
		pos, err = d.c.positionDeletes(ctx, d.out, f.File)
	case len(w.addPD) > 0 && d.vectorOf(f.File) == nil:
		for _, x := range w.addPD {
			b, perr := d.c.positionsIn(ctx, x, f.File)
			if perr != nil {
				return nil, perr
			}
			pos = union(pos, b)
		}
	}
	if err != nil {
		return nil, err
	}
	var more *roaring.Bitmap
	switch {
	case w.eq:
		eq, err = d.m.deletes(ctx, f.File, d.equalityOf(f.File))
	case len(w.addEQ) > 0:
		more, err = d.m.deletes(ctx, f.File, w.addEQ)
		eq = union(eq, more)
	}
	if err != nil {
		return nil, err
	}
	pos, eq = orNil(pos), orNil(eq)
	if bitmapsEqual(pos, f.pos) && bitmapsEqual(eq, f.eq) {
		return f, nil
	}
	return newLive(f.File, pos, eq), nil
}

// vectorOf is the deletion vector that applies to a file, nil when none does.
func (d *derivation) vectorOf(f *File) *DeleteFile {
	l, _ := d.out.scoped.get(f.Path)
	for _, x := range l.list() {
		if x.Kind == DeletionVector && f.DataSeq <= x.DataSeq {
			return x
		}
	}
	return nil
}

// equalityOf are the equality deletes that apply to a file: strictly newer, of its partition or global.
func (d *derivation) equalityOf(f *File) []*DeleteFile {
	var out []*DeleteFile
	for _, key := range [2]string{f.part, globalPart} {
		l, _ := d.out.equal.get(key)
		for _, x := range l.list() {
			if f.DataSeq < x.DataSeq {
				out = append(out, x)
			}
		}
	}
	return out
}
