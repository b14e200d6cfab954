package liveset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/manifestio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// manifest is a decoded manifest's live entries.
type manifest struct {
	data    []*File
	deletes []*DeleteFile
}

// manifestList reads a snapshot's manifest list: manifests by path.
func (c *Cache) manifestList(snap *table.Snapshot) (out map[string]iceberg.ManifestFile, err error) {
	defer guard(snap.ManifestList, &err)
	var list []iceberg.ManifestFile
	if v, ok := c.lru.peek(lruKey{kind: kindList, name: snap.ManifestList}); ok {
		list = v.([]iceberg.ManifestFile)
	} else {
		c.stats.manifestLists.Add(1)
		if list, err = snap.Manifests(c.fs); err != nil {
			return nil, fileError(snap.ManifestList, "manifest list", err)
		}
	}
	out = make(map[string]iceberg.ManifestFile, len(list))
	for _, m := range list {
		out[m.FilePath()] = m
	}
	return out, nil
}

// manifestKey names a manifest as its list shows it: files inherit row ids from there, and a list of a table that became version 3 gives a manifest
// some that had none before.
func manifestKey(m iceberg.ManifestFile) lruKey {
	k := lruKey{kind: kindManifest, name: m.FilePath()}
	if first := m.FirstRowID(); first != nil && m.ManifestContent() == iceberg.ManifestContentData {
		k.sub = strconv.FormatInt(*first, 10)
	}
	return k
}

// minManifestLimit is how large any manifest may be in bytes, others twice as large as their list says: there are writers who round that.
const minManifestLimit = 64 << 20

// manifest decodes a manifest, or takes it from the cache. DELETED entries are left out: a set holds what is live.
func (c *Cache) manifest(ctx context.Context, m iceberg.ManifestFile) (*manifest, error) {
	return cached(ctx, c, manifestKey(m), func() (_ *manifest, size int64, err error) {
		defer guard(m.FilePath(), &err)
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		c.stats.manifests.Add(1)
		data, err := c.fs.ReadAtMost(m.FilePath(), max(2*m.Length(), minManifestLimit))
		if err != nil {
			return nil, 0, fileError(m.FilePath(), "manifest", err)
		}
		entries, err := manifestio.ReadEntries(m, data, true)
		if err != nil {
			return nil, 0, fileError(m.FilePath(), "manifest", err)
		}
		out, err := liveEntries(m.FilePath(), entries)
		if err != nil {
			return nil, 0, err
		}
		return out, out.memory(m), nil
	})
}

func liveEntries(path string, entries []iceberg.ManifestEntry) (*manifest, error) {
	out := &manifest{}
	for _, e := range entries {
		if e.Status() != iceberg.EntryStatusDELETED && e.SequenceNum() < 0 {
			// Only ADDED entries inherit one, and those of manifests from before there were any.
			return nil, &DamagedError{Path: path, Offset: -1, Err: fmt.Errorf("the entry of %s has no sequence number", e.DataFile().FilePath())}
		}
		if err := out.add(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *manifest) add(e iceberg.ManifestEntry) error {
	if e.Status() == iceberg.EntryStatusDELETED {
		return nil
	}
	df := e.DataFile()
	fileSeq := e.SequenceNum()
	if s := e.FileSequenceNum(); s != nil {
		fileSeq = *s
	}
	switch f := string(df.FileFormat()); {
	case strings.EqualFold(f, string(iceberg.ParquetFile)):
	case strings.EqualFold(f, string(iceberg.PuffinFile)) && df.ContentType() == iceberg.EntryContentPosDeletes:
	default:
		return fmt.Errorf("%w: %s is %s", ErrUnsupportedFormat, df.FilePath(), f)
	}
	if df.ContentType() == iceberg.EntryContentData {
		m.data = append(m.data, newFile(df, e.SequenceNum(), fileSeq, e.SnapshotID()))
	} else {
		m.deletes = append(m.deletes, newDelete(df, e.SequenceNum(), fileSeq, e.SnapshotID()))
	}
	return nil
}

// guard turns a decoder's panic into a *DamagedError: metadata files are other writers' bytes too.
func guard(path string, err *error) {
	if p := recover(); p != nil {
		*err = &DamagedError{Path: path, Offset: -1, Err: fmt.Errorf("decoder panic: %v", p)}
	}
}

// fileError says what went wrong with a metadata or delete file.
func fileError(path, what string, err error) error {
	var d *DamagedError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s %s", ErrMissingFile, what, path)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &d),
		errors.Is(err, ErrMissingFile), errors.Is(err, ErrNoFieldIDs):
		return err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && !errors.Is(err, storeio.ErrTooLarge) && !errors.Is(err, storeio.ErrNotRegular) {
		return fmt.Errorf("read %s %s: %w", what, path, err)
	}
	return &DamagedError{Path: path, Offset: -1, Err: err}
}
