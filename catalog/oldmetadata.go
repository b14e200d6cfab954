package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// RemoveOldMetadata removes the metadata JSON files of a table that its metadata log no longer names: by default those before the last
// 100 (write.metadata.previous-versions-max). Older cuts read the table's current file from then on (TableState.Metadata). A table with
// write.metadata.delete-after-commit.enabled = false keeps them, and so does a registered one: they are its former catalog's.
// It returns the number of files removed.
func (c *Catalog) RemoveOldMetadata(ctx context.Context, ident table.Identifier) (int, error) {
	t, err := c.Cut().Table(ident)
	if err != nil {
		return 0, err
	}
	meta, err := t.Metadata(ctx)
	if err != nil {
		return 0, err
	}
	if t.registered || strings.EqualFold(meta.Properties().Get(table.MetadataDeleteAfterCommitEnabledKey, ""), "false") {
		return 0, nil
	}
	oldest := -1
	for m := range meta.PreviousFiles() {
		v := metadataVersion(m.MetadataFile)
		if v < 0 {
			return 0, nil // names that somebody else chose say nothing about age
		}
		if oldest < 0 || v < oldest {
			oldest = v
		}
	}
	if oldest <= 0 {
		return 0, nil
	}
	if err := c.settler.settle(); err != nil { // from here on none of the files to remove is needed to make another one again
		return 0, err
	}
	dir := filepath.Dir(storeio.PathOf(t.MetadataLocation))
	entries, err := c.fs.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", dir, err)
	}
	removed := 0
	for _, e := range entries {
		v := metadataVersion(e.Name())
		if e.IsDir() || !strings.Contains(e.Name(), ".metadata.json") || v < 0 || v >= oldest {
			continue
		}
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		if err := c.fs.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, fmt.Errorf("remove old metadata: %w", err)
		}
		removed++
	}
	return removed, nil
}
