package warehouse

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/storeio"
	"github.com/nordisk/skade-pg/liveset"
)

// ManifestResult says what RewriteManifests did.
type ManifestResult struct {
	Removed, Added int
	Record         *catalog.Record // nil when there was nothing to do
}

const (
	// minManifests: fewer small manifests than this of one content and spec are left alone.
	minManifests = 8
	// maxManifestEntries bounds a rewritten manifest.
	maxManifestEntries = 16 << 10
)

// manifestRewrite is one run of RewriteManifests.
type manifestRewrite struct {
	w      *Warehouse
	id     int64           // of the snapshot: the joined manifests name it
	old    map[string]bool // replaced manifests
	joined []iceberg.ManifestFile
	paths  []string // of prepare
	built  []string // of build
	batch  *storeio.Batch
}

// RewriteManifests joins small manifests into few, as one replace snapshot without any change of files. Entries keep their snapshot id,
// sequence numbers and first_row_id. ErrConflict when commits replaced one of the manifests meanwhile.
func (w *Warehouse) RewriteManifests(ctx context.Context, ident icetable.Identifier) (ManifestResult, error) {
	state, err := w.opts.Catalog.Cut().Table(ident)
	if err != nil {
		return ManifestResult{}, err
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return ManifestResult{}, err
	}
	r := &manifestRewrite{w: w, old: map[string]bool{}, batch: w.opts.FS.NewBatch()}
	if err := r.prepare(ctx, meta); err != nil || len(r.joined) == 0 {
		w.removePaths(r.paths)
		return ManifestResult{}, err
	}
	rec, err := w.opts.Catalog.Commit(ctx, &catalog.Request{ApplicationName: "rewrite_manifests",
		Changes: []catalog.Change{catalog.UpdateTable{Key: state.Key, Ident: state.Ident, Build: r.build}}})
	if err != nil {
		if !errors.Is(err, catalog.ErrUnknownOutcome) {
			w.removePaths(slices.Concat(r.paths, r.built))
		}
		if errors.Is(err, catalog.ErrConflict) && !errors.Is(err, ErrConflict) {
			err = fmt.Errorf("%w: %w", ErrConflict, err)
		}
		return ManifestResult{}, err
	}
	return ManifestResult{Removed: len(r.old), Added: len(r.joined), Record: rec}, nil
}

// prepare writes the joined manifests.
func (r *manifestRewrite) prepare(ctx context.Context, meta icetable.Metadata) error {
	manifests, err := r.w.manifestsOf(meta.CurrentSnapshot())
	if err != nil || meta.Version() < 2 {
		return err
	}
	type group struct {
		content iceberg.ManifestContent
		spec    int32
	}
	groups := map[group][]iceberg.ManifestFile{}
	var order []group
	for _, m := range manifests {
		if int(m.AddedDataFiles())+int(m.ExistingDataFiles()) > maxManifestEntries/2 || (!m.HasAddedFiles() && !m.HasExistingFiles()) {
			continue
		}
		g := group{m.ManifestContent(), m.PartitionSpecID()}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], m)
	}
	r.id = newSnapshotID(meta)
	mw, err := newMetadataWriter(r.w, meta, r.id)
	if err != nil {
		return err
	}
	defer func() { r.paths = mw.files }()
	for _, g := range order {
		if len(groups[g]) < minManifests {
			continue
		}
		if err := r.join(ctx, mw, g.content, int(g.spec), groups[g]); err != nil {
			return err
		}
	}
	for _, p := range mw.files {
		r.batch.Add(p)
	}
	return r.batch.SyncLarge(ctx)
}

// join writes the live entries of manifests into as few as hold them.
func (r *manifestRewrite) join(ctx context.Context, mw *metadataWriter, content iceberg.ManifestContent, spec int, manifests []iceberg.ManifestFile) error {
	var entries []liveset.LiveEntry
	flush := func() error {
		if len(entries) == 0 {
			return nil
		}
		m, err := mw.existingManifest(content, spec, entries)
		if err != nil {
			return fmt.Errorf("write manifest: %w", err)
		}
		r.joined, entries = append(r.joined, m), nil
		return nil
	}
	for _, m := range manifests {
		if err := ctx.Err(); err != nil {
			return err
		}
		es, err := r.w.opts.Live.LiveEntries(ctx, m)
		if err != nil {
			return err
		}
		r.old[m.FilePath()] = true
		if entries = append(entries, es...); len(entries) >= maxManifestEntries {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// build is the Build callback: the replaced manifests must all be there still.
func (r *manifestRewrite) build(_ context.Context, in catalog.BuildInput) (catalog.BuildOutput, error) {
	out := catalog.BuildOutput{Ref: icetable.MainBranch, Operation: string(icetable.OpReplace)}
	if r.built != nil || in.Base.SnapshotByID(r.id) != nil {
		return out, fmt.Errorf("%w: the catalog put the request back", ErrConflict) // the id may have been read
	}
	head := in.Base.CurrentSnapshot()
	manifests, err := r.w.manifestsOf(head)
	if err != nil {
		return out, err
	}
	next := slices.Clone(r.joined)
	found := 0
	for _, m := range manifests {
		switch {
		case r.old[m.FilePath()]:
			found++
		case m.HasAddedFiles() || m.HasExistingFiles():
			next = append(next, m)
		}
	}
	if found != len(r.old) {
		return out, fmt.Errorf("%w: manifests were rewritten", ErrConflict)
	}
	s := &snapshotBuild{w: r.w, in: in, meta: in.Base, head: head, id: r.id}
	mw, err := newMetadataWriter(r.w, in.Base, s.id)
	if err != nil {
		return out, err
	}
	err = s.snapshot(mw, next, summarize(icetable.OpReplace, &s.metrics, nil, head))
	r.built = mw.files
	for _, p := range append(r.batch.Paths(), mw.files...) {
		in.Batch.Add(p)
	}
	out.Updates = s.updates
	return out, err
}
