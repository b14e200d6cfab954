package catalog

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// maxMetadata bounds a metadata file, decompressed, in bytes.
const maxMetadata = 1 << 30

// decodeMetadata reads a metadata file.
func decodeMetadata(location string, data []byte) (table.Metadata, error) {
	data, err := plainMetadata(location, data, maxMetadata)
	if err != nil {
		return nil, err
	}
	return decodePlain(data)
}

// plainMetadata decompresses a metadata file; the name tells the compression, as everywhere in Iceberg.
func plainMetadata(location string, data []byte, limit int) ([]byte, error) {
	name := path.Base(location)
	var plain io.Reader
	switch {
	case strings.HasSuffix(name, ".gz.metadata.json"), strings.HasSuffix(name, ".metadata.json.gz"):
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		plain = z
	case strings.HasSuffix(name, ".zstd.metadata.json"):
		z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMetadata))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		plain = z
	}
	if plain == nil {
		return data, nil
	}
	all, err := io.ReadAll(io.LimitReader(plain, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(all) > limit {
		return nil, fmt.Errorf("%w: more than %d MB when decompressed", ErrTooLarge, limit>>20)
	}
	return all, nil
}

// metadataVersion is the number in front of a metadata file's name (00012-<uuid>.metadata.json, v12.metadata.json), -1 for
// a name of another form.
func metadataVersion(location string) int {
	name := path.Base(location)
	head, _, ok := strings.Cut(name, "-")
	if !ok {
		head, _, _ = strings.Cut(strings.TrimPrefix(name, "v"), ".")
	}
	n, err := strconv.Atoi(head)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// newMetadataLocation names the table's next metadata file.
func newMetadataLocation(meta table.Metadata, version int) (string, error) {
	provider, err := table.LoadLocationProvider(meta.Location(), meta.Properties())
	if err != nil {
		return "", fmt.Errorf("%w: location %q: %w", ErrInvalidRequest, meta.Location(), err)
	}
	return provider.NewTableMetadataFileLocation(version)
}

// metadataCache holds decoded metadata by location, the least recently used going first. Metadata files are immutable, so
// an entry is never wrong.
type metadataCache struct {
	fs     *storeio.FS
	late   func(path string) (*document, bool)
	budget int64

	mu struct {
		sync.Mutex
		entries map[string]*list.Element
		order   list.List // of *metadataEntry, most recently used in front
		size    int64
	}
}

// metadataWeight is how much more memory decoded metadata takes than its file, about: a snapshot and its summary are maps and
// pointers (2.0 measured with small summaries).
const metadataWeight = 3

type metadataEntry struct {
	location string
	size     int64 // in memory, about; the newest of a chain carries all of it

	once   sync.Once
	loaded atomic.Bool // set behind meta
	meta   table.Metadata
	err    error
	// The head of meta: asking meta clones.
	head     *int64
	schemaID int
	refs     []Ref
}

func (e *metadataEntry) set(meta table.Metadata) {
	meta = chainOf(meta, nil)
	e.meta, e.head, e.schemaID, e.refs = meta, headOf(meta), meta.CurrentSchema().ID, refsOf(meta)
	e.loaded.Store(true)
}

func (e *metadataEntry) headIs(t *TableState) bool {
	if (e.head == nil) != (t.snapshotID == nil) || (e.head != nil && *e.head != *t.snapshotID) {
		return false
	}
	return e.schemaID == t.schemaID && slices.Equal(e.refs, t.refs)
}

func newMetadataCache(fs *storeio.FS, late func(string) (*document, bool), budget int64) *metadataCache {
	c := &metadataCache{fs: fs, late: late, budget: budget}
	c.mu.entries = map[string]*list.Element{}
	return c
}

// put adds metadata that was just written.
func (c *metadataCache) put(location string, meta table.Metadata, size int64) {
	e := &metadataEntry{location: location, size: metadataWeight * size}
	e.once.Do(func() { e.set(meta) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(location)
	c.carryLocked(e)
	c.addLocked(e)
}

// chainedSize is what metadata adds to the chain that it shares with its successor, in bytes, about.
const chainedSize = 4 << 10

// carryLocked moves the weight of a chain to its newest entry.
func (c *metadataCache) carryLocked(e *metadataEntry) {
	m, ok := e.meta.(*chained)
	if !ok {
		return
	}
	if old := m.chain.carrier; old != nil && old.size > chainedSize {
		if el, ok := c.mu.entries[old.location]; ok && el.Value == old {
			c.mu.size -= old.size - chainedSize
		}
		old.size = chainedSize
	}
	m.chain.carrier = e
}

func (c *metadataCache) addLocked(e *metadataEntry) {
	c.mu.entries[e.location] = c.mu.order.PushFront(e)
	c.mu.size += e.size
	for c.mu.size > c.budget && c.mu.order.Len() > 1 {
		c.dropLocked(c.mu.order.Back().Value.(*metadataEntry).location)
	}
}

func (c *metadataCache) dropLocked(location string) {
	el, ok := c.mu.entries[location]
	if !ok {
		return
	}
	c.mu.size -= c.mu.order.Remove(el).(*metadataEntry).size
	delete(c.mu.entries, location)
}

// have returns an entry that was loaded.
func (c *metadataCache) have(location string) (*metadataEntry, bool) {
	c.mu.Lock()
	el, ok := c.mu.entries[location]
	if !ok {
		c.mu.Unlock()
		return nil, false
	}
	c.mu.order.MoveToFront(el)
	e := el.Value.(*metadataEntry)
	c.mu.Unlock()
	return e, e.loaded.Load()
}

// get returns the metadata of a location; concurrent callers share one read. A failed read is not kept.
func (c *metadataCache) get(location string, load func() (table.Metadata, int64, error)) (*metadataEntry, error) {
	c.mu.Lock()
	el, ok := c.mu.entries[location]
	var e *metadataEntry
	if ok {
		c.mu.order.MoveToFront(el)
		e = el.Value.(*metadataEntry)
	} else {
		e = &metadataEntry{location: location}
		c.addLocked(e)
	}
	c.mu.Unlock()
	e.once.Do(func() {
		meta, size, err := load()
		if e.err = err; err == nil {
			e.set(meta)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if el, ok := c.mu.entries[location]; ok && el.Value == e {
			c.dropLocked(location)
			if e.err == nil {
				e.size = metadataWeight * size
				c.addLocked(e)
			}
		}
	})
	return e, e.err
}

// read loads a metadata file. size, when it is known, is what the catalog wrote.
func (c *metadataCache) read(location string, size int64, id uuid.UUID) (*metadataEntry, error) {
	if e, ok := c.have(location); ok {
		return e, nil
	}
	return c.get(location, func() (table.Metadata, int64, error) {
		data, err := c.file(location, size)
		if errors.Is(err, storeio.ErrTooLarge) || errors.Is(err, storeio.ErrNotRegular) {
			return nil, 0, &DamagedError{Path: storeio.PathOf(location), Detail: err.Error()}
		}
		if err != nil {
			return nil, 0, err
		}
		if size != 0 && int64(len(data)) != size {
			return nil, 0, &DamagedError{Path: storeio.PathOf(location), Detail: fmt.Sprintf("%d bytes, %d were written", len(data), size)}
		}
		meta, err := decodeMetadata(location, data)
		if err != nil {
			return nil, 0, &DamagedError{Path: storeio.PathOf(location), Detail: err.Error()}
		}
		if id != uuid.Nil && meta.TableUUID() != id {
			return nil, 0, &DamagedError{Path: storeio.PathOf(location), Detail: fmt.Sprintf("is of table %s, not %s", meta.TableUUID(), id)}
		}
		return meta, int64(len(data)), nil
	})
}

// file is a metadata file's content, also of one that the settler has not written yet. size is what it has, 0 when that is not known.
func (c *metadataCache) file(location string, size int64) ([]byte, error) {
	if d, ok := c.late(filepath.Clean(storeio.PathOf(location))); ok {
		return d.bytes(), nil
	}
	return c.fs.ReadAtMost(location, cmp.Or(size, maxMetadata))
}

// at returns the metadata of a table at a cut.
func (c *metadataCache) at(ctx context.Context, t *TableState) (table.Metadata, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := c.read(t.MetadataLocation, t.metadataSize, t.UUID)
	if errors.Is(err, fs.ErrNotExist) {
		now, ok := t.cat.Cut().TableByKey(t.Key)
		if !ok || now.MetadataLocation == t.MetadataLocation {
			return nil, fmt.Errorf("metadata of %s: %w", dotted(t.Ident), err)
		}
		e, err = c.read(now.MetadataLocation, now.metadataSize, now.UUID)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", dotted(t.Ident), err)
	}
	if e.headIs(t) {
		return e.meta, nil
	}
	if t.snapshotID != nil && e.meta.SnapshotByID(*t.snapshotID) == nil {
		return nil, fmt.Errorf("snapshot %d of %s: %w", *t.snapshotID, dotted(t.Ident), ErrExpired)
	}
	head := "none"
	if t.snapshotID != nil {
		head = strconv.FormatInt(*t.snapshotID, 10)
	}
	back, err := c.get(fmt.Sprintf("%s#%s.%d%v", t.MetadataLocation, head, t.schemaID, t.refs), func() (table.Metadata, int64, error) {
		if m, ok := e.meta.(*chained); ok {
			if back, ok := m.at(t.snapshotID, t.schemaID, t.refs); ok {
				return back, chainedSize / metadataWeight, nil
			}
		}
		back, err := withHead(e.meta, t.snapshotID, t.schemaID, t.refs)
		return back, t.metadataSize, err
	})
	if err != nil {
		return nil, fmt.Errorf("metadata of %s at an older head: %w", dotted(t.Ident), err)
	}
	return back.meta, nil
}

// withHead returns metadata with main, the other refs and the current schema set to older ones: the state of an earlier request of a group
// that shares its metadata file, or of a commit whose file is gone. iceberg-go's builder cannot do that (it stamps, logs and
// refuses), so the JSON is edited.
func withHead(meta table.Metadata, snapshotID *int64, schemaID int, older []Ref) (table.Metadata, error) {
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	if snapshotID == nil {
		delete(doc, "current-snapshot-id")
	} else {
		doc["current-snapshot-id"] = fmt.Appendf(nil, "%d", *snapshotID)
	}
	if doc["refs"], err = json.Marshal(refsBack(meta, snapshotID, older)); err != nil {
		return nil, err
	}
	for _, s := range meta.Schemas() {
		if s.ID == schemaID {
			doc["current-schema-id"] = fmt.Appendf(nil, "%d", schemaID)
		}
	}
	if doc["snapshot-log"], err = json.Marshal(logUntil(meta, snapshotID)); err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	return table.ParseMetadataBytes(raw)
}

// logUntil cuts the snapshot log behind the last entry of the snapshot.
func logUntil(meta table.Metadata, snapshotID *int64) []table.SnapshotLogEntry {
	entries := []table.SnapshotLogEntry{}
	if snapshotID == nil {
		return entries
	}
	end := 0
	for e := range meta.SnapshotLogs() {
		entries = append(entries, e)
		if e.SnapshotID == *snapshotID {
			end = len(entries)
		}
	}
	return entries[:end]
}

// summaryInt reads a number of a snapshot summary, 0 when it is missing or not a number.
func summaryInt(props iceberg.Properties, keys ...string) int64 {
	n := int64(0)
	for _, k := range keys {
		v, err := strconv.ParseInt(props[k], 10, 64)
		if err == nil {
			n += v
		}
	}
	return n
}
