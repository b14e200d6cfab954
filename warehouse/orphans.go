package warehouse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// RemoveOrphans removes the files below a table's location that no snapshot names, as a crash leaves them. Files younger
// than age stay: they may belong to a transaction that is still open, so age must exceed the longest transaction.
// Metadata JSON files are the catalog's and stay. It returns the number of files removed.
func (w *Warehouse) RemoveOrphans(ctx context.Context, ident icetable.Identifier, age time.Duration) (int, error) {
	state, err := w.opts.Catalog.Cut().Table(ident)
	if err != nil {
		return 0, err
	}
	meta, err := state.Metadata(ctx)
	if err != nil {
		return 0, err
	}
	var found []string // listed before the cut that says what is reachable: a file that gets committed later is young
	if err := w.listOld(ctx, storeio.PathOf(meta.Location()), time.Now().Add(-age), &found); err != nil {
		return 0, err
	}
	if state, err = w.opts.Catalog.Cut().Table(ident); err != nil {
		return 0, err
	}
	if meta, err = state.Metadata(ctx); err != nil {
		return 0, err
	}
	live := &reachable{files: map[string]bool{}, manifests: map[string]bool{}}
	for _, s := range meta.Snapshots() {
		if err := live.add(ctx, w, &s, false); err != nil {
			return 0, err
		}
	}
	for s := range meta.Statistics() {
		live.files[s.StatisticsPath] = true
	}
	for s := range meta.PartitionStatistics() {
		live.files[s.StatisticsPath] = true
	}
	keep := map[string]bool{}
	for f := range live.files {
		keep[storeio.PathOf(f)] = true
	}
	removed := 0
	for _, p := range found {
		if keep[p] || keep[strings.TrimSuffix(p, ".keyidx")] {
			continue
		}
		if err := w.opts.FS.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("remove orphan: %w", err)
		}
		removed++
	}
	return removed, nil
}

// listOld adds the files below dir that were last written before the instant.
func (w *Warehouse) listOld(ctx context.Context, dir string, before time.Time, out *[]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.opts.FS.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		if e.IsDir() {
			if err := w.listOld(ctx, p, before, out); err != nil {
				return err
			}
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stat %s: %w", p, err)
		}
		if info.ModTime().Before(before) && !strings.Contains(e.Name(), ".metadata.json") {
			*out = append(*out, p)
		}
	}
	return nil
}
