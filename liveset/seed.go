package liveset

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"
)

// AddManifestList tells the cache a manifest list that was just written, as a reader of it sees it, so that nobody reads it back.
func (c *Cache) AddManifestList(path string, list []iceberg.ManifestFile) {
	c.lru.put(lruKey{kind: kindList, name: path}, list, 64+int64(len(list))*64)
}

// AddManifest tells the cache a version 2 manifest of unpartitioned files that was just written.
func (c *Cache) AddManifest(m iceberg.ManifestFile, entries []LiveEntry) {
	out := &manifest{}
	for _, e := range entries {
		if e.File.ContentType() == iceberg.EntryContentData {
			out.data = append(out.data, newFile(e.File, e.DataSeq, e.FileSeq, e.SnapshotID))
		} else {
			out.deletes = append(out.deletes, newDelete(e.File, e.DataSeq, e.FileSeq, e.SnapshotID))
		}
	}
	c.lru.put(manifestKey(m), out, out.memory(m))
}

func (m *manifest) memory(of iceberg.ManifestFile) int64 {
	return 64 + 2*of.Length() + int64(len(m.data)+len(m.deletes))*768
}

// AddPositions tells the cache the content of a position delete file that was just written: positions by data file. The bitmaps must not change
// afterwards.
func (c *Cache) AddPositions(df iceberg.DataFile, byPath map[string]*roaring.Bitmap) {
	p := &positions{byPath}
	c.lru.put(lruKey{kind: kindPositions, name: df.FilePath()}, p, p.memory())
}

func (p *positions) memory() int64 {
	size := int64(128)
	for path, b := range p.byPath {
		size += int64(len(path)) + int64(b.GetSizeInBytes()) + 128
	}
	return size
}

// LiveEntry is a file that a manifest holds, with its sequence numbers and the snapshot that added it.
type LiveEntry struct {
	File             iceberg.DataFile
	DataSeq, FileSeq int64
	SnapshotID       int64
}

// LiveEntries are a manifest's entries but for the removed ones, in its order.
func (c *Cache) LiveEntries(ctx context.Context, m iceberg.ManifestFile) ([]LiveEntry, error) {
	x, err := c.manifest(ctx, m)
	if err != nil {
		return nil, err
	}
	out := make([]LiveEntry, 0, len(x.data)+len(x.deletes))
	for _, f := range x.data {
		out = append(out, LiveEntry{f.Data, f.DataSeq, f.FileSeq, f.AddedSnapshot})
	}
	for _, f := range x.deletes {
		out = append(out, LiveEntry{f.Data, f.DataSeq, f.FileSeq, f.AddedSnapshot})
	}
	return out, nil
}
