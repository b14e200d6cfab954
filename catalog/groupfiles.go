package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// lateSize is the size in bytes from which a metadata file that only adds commits to the one before is written by the settler, once for all
// commits of some time: writing it for each would cost the table's whole past.
const lateSize = 64 << 10

// writeMetadata writes one metadata file for every table that changed, or leaves it to the settler.
func (g *group) writeMetadata() ([]redoFile, error) {
	var files []redoFile
	for _, key := range slices.Sorted(maps.Keys(g.tables)) {
		t := g.tables[key]
		if t.meta == nil || len(t.states) == 0 {
			continue
		}
		t.path = filepath.Clean(storeio.PathOf(t.location))
		f, size, err := g.metadataFile(t)
		if err != nil {
			return nil, err
		}
		for _, st := range t.states {
			st.metadataSize = int64(size)
		}
		files = append(files, f)
	}
	return files, nil
}

// metadataFile makes one table's file.
func (g *group) metadataFile(t *stagedTable) (f redoFile, size int, err error) {
	f.path = t.path
	m := chainOf(t.meta, nil)
	if m.Version() < 2 || compressionOf(m) != table.MetadataCompressionCodecNone {
		if f.data, err = encodeMetadata(m); err != nil {
			return f, 0, fmt.Errorf("encode metadata: %w", err)
		}
		g.created = append(g.created, f.path)
		return f, len(f.data), writeUnsyncedFile(g.c.fs, f.path, f.data)
	}
	if t.doc, err = encodeDocument(m); err != nil {
		return f, 0, fmt.Errorf("encode metadata: %w", err)
	}
	size = t.doc.size()
	if !g.c.noSync {
		f.patch = t.doc.patch(m.chain.path, m.chain.last)
	}
	if f.patch != nil && size > g.c.lateSize && f.size() < storeio.InlineLimit {
		f.late = true
		g.late = append(g.late, f.path)
		g.c.settler.later(f.path, t.doc)
		return f, size, nil
	}
	f.data = t.doc.bytes()
	g.created = append(g.created, f.path)
	return f, size, writeUnsyncedFile(g.c.fs, f.path, f.data)
}

// writeUnsyncedFile makes a file that is not durable yet.
func writeUnsyncedFile(fs *storeio.FS, path string, data []byte) error {
	w, err := fs.CreateUnsynced(path)
	if err != nil {
		return fmt.Errorf("create metadata: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(fmt.Errorf("write metadata: %w", err), w.Abort())
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("close metadata: %w", err)
	}
	return nil
}

// drop lets go of bytes that only the store's transaction needed.
func (f *redoFile) drop() {
	f.data = nil
	if f.patch != nil {
		f.patch.parts = nil
	}
}

// syncOrInline decides for every file of the group whether the store's transaction says how to make it again or it is synced now, and syncs the
// latter. metadata are the group's metadata files.
func (g *group) syncOrInline(ctx context.Context, metadata []redoFile) (carried []redoFile, err error) {
	if g.c.noSync {
		return nil, nil
	}
	budget := g.c.store.Limits().InlineBytes
	sync := g.c.fs.NewBatch()
	total := 0
	take := func(f redoFile) bool {
		n := f.size()
		if !f.late && (n > storeio.InlineLimit || total+n > budget || !g.c.settler.room(total+n)) {
			return false
		}
		total += n
		carried = append(carried, f)
		return true
	}
	for _, f := range metadata {
		if f.patch != nil {
			f.data = nil
		}
		if !take(f) {
			sync.Add(f.path)
		}
	}
	for _, path := range g.batch.Paths() {
		data, err := g.c.fs.ReadAtMost(path, storeio.InlineLimit)
		if errors.Is(err, storeio.ErrTooLarge) || err == nil && !take(redoFile{path: path, data: data}) {
			sync.Add(path)
			continue
		}
		if err != nil && !storeio.Cache(path) {
			return nil, fmt.Errorf("file of the commit: %w", err)
		}
	}
	return carried, sync.Sync(ctx)
}
