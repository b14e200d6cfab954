package liveset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
	"github.com/nordisk/skade-pg/internal/storeio"
)

// off switches parts of a probe off, for the tests that prove that what they save is counted.
var off struct{ pruning, index bool }

// columnsKey names key columns in cache keys.
func columnsKey(cols []keyindex.Column) string { return fmt.Sprint(cols) }

// existingIndex is the file's key index when it is cached or has a sidecar over exactly these columns; else nil.
func (c *Cache) existingIndex(ctx context.Context, f *File, cols []keyindex.Column) (*keyindex.Index, error) {
	sub := columnsKey(cols)
	if m, ok := f.hot.index.get(sub); ok {
		return m.ix, nil
	}
	if v, ok := c.lru.peek(lruKey{kind: kindIndex, name: f.Path, sub: sub}); ok {
		return v.(*hotEntry[maybeIndex]).val.ix, nil
	}
	return c.sidecar(ctx, f, cols)
}

// sidecar is the index next to the file, nil when there is none over these columns that can be used. That there is none is remembered.
func (c *Cache) sidecar(ctx context.Context, f *File, cols []keyindex.Column) (*keyindex.Index, error) {
	m, err := cached(ctx, c, lruKey{kind: kindSidecar, name: f.Path}, func() (maybeIndex, int64, error) {
		m, err := c.readSidecar(ctx, f)
		size := int64(0)
		if m.ix != nil {
			size = int64(m.ix.Size())
		}
		return m, size, err
	})
	if err != nil || m.ix == nil || !slices.Equal(m.ix.Columns(), cols) {
		return nil, err
	}
	return m.ix, nil
}

// maxIndexColumns bounds the key columns of a stored index: one of more is not read.
const maxIndexColumns = 1024

func (c *Cache) readSidecar(ctx context.Context, f *File) (maybeIndex, error) {
	if err := ctx.Err(); err != nil {
		return maybeIndex{}, err
	}
	path := f.Path + parquetio.KeyIndexSuffix
	data, err := c.fs.ReadAtMost(path, keyindex.MaxSize(f.Records, maxIndexColumns))
	if errors.Is(err, fs.ErrNotExist) {
		return maybeIndex{}, nil
	}
	if err != nil {
		c.warnOnce(path, err)
		return maybeIndex{}, nil
	}
	c.stats.keyIndexes.Add(1)
	if n := parquetio.CountersOf(ctx); n != nil {
		n.Opens.Add(1)
		n.Reads.Add(1)
		n.Bytes.Add(int64(len(data)))
	}
	ix, err := keyindex.Decode(data)
	if err == nil {
		r, openErr := c.Reader(ctx, f)
		if openErr != nil {
			return maybeIndex{}, openErr
		}
		if ix.Source() != r.Source() {
			err = errors.New("it was built from another file")
		}
	}
	if err != nil {
		// The index is only a shortcut: one that is of no use is as good as none, and is said.
		c.warnOnce(path, err)
		return maybeIndex{}, nil
	}
	return maybeIndex{ix}, nil
}

// maxWarned bounds the files that are remembered to have been warned of.
const maxWarned = 4096

func (c *Cache) warnOnce(path string, err error) {
	c.warned.Lock()
	was := c.warned.m[path]
	if len(c.warned.m) >= maxWarned {
		clear(c.warned.m)
	}
	c.warned.m[path] = true
	c.warned.Unlock()
	if !was {
		c.log.Warn().Err(err).Str("file", path).Msg("key index is unusable and will be rebuilt")
	}
}

// index is the file's key index over the fields p.ids in that order: its sidecar, else built from the key columns, cached, and stored where that is
// allowed. Rows with a NULL key column are not in it.
func (p *prober) index(ctx context.Context, f *File) (*keyindex.Index, error) {
	if off.index {
		data, err := p.c.buildIndex(ctx, p.ref, f, p.ids, p.cols)
		if err != nil {
			return nil, err
		}
		return keyindex.Decode(data)
	}
	if m, ok := f.hot.index.get(p.sub); ok {
		return m.ix, nil
	}
	m, err := hotLoad(ctx, p.c, &f.hot.index, lruKey{kind: kindIndex, name: f.Path, sub: p.sub}, func() (maybeIndex, int64, error) {
		ix, err := p.c.sidecar(ctx, f, p.cols)
		if err != nil {
			return maybeIndex{}, 0, err
		}
		if ix != nil {
			p.c.lru.forget(lruKey{kind: kindSidecar, name: f.Path}) // it moves here: held once, counted once
			return maybeIndex{ix}, int64(ix.Size()), nil
		}
		p.n.Built++
		data, err := p.c.buildIndex(ctx, p.ref, f, p.ids, p.cols)
		if err != nil {
			return maybeIndex{}, 0, fmt.Errorf("build key index of %s: %w", f.Path, err)
		}
		if ix, err = keyindex.Decode(data); err != nil {
			return maybeIndex{}, 0, err
		}
		if p.storable() && f.Records >= parquetio.KeyIndexMinRows {
			p.c.store(f, data)
		}
		return maybeIndex{ix}, int64(ix.Size()), nil
	})
	return m.ix, err
}

// storable says whether the index over these fields is the one that a file's sidecar holds: over the identifier fields, or the first that was asked
// for where the table has none.
func (p *prober) storable() bool {
	ident := p.ref.Metadata.CurrentSchema().IdentifierFieldIDs
	return len(ident) == 0 && !p.leading || slices.Equal(ident, p.ids)
}

func homeOf(dir string) string {
	if dir == "" {
		return ""
	}
	return strings.TrimSuffix(storeio.PathOf(dir), "/") + "/"
}

// store keeps an index beside its data file, when that lies in the warehouse's own folder and there is none that another key uses. That it cannot be
// written, to a read-only disk for one, costs only the next process its time.
func (c *Cache) store(f *File, data []byte) {
	if c.home == "" || !strings.HasPrefix(storeio.PathOf(f.Path), c.home) {
		return
	}
	if m, ok := c.lru.peek(lruKey{kind: kindSidecar, name: f.Path}); ok && m.(maybeIndex).ix != nil {
		return
	}
	if err := c.fs.WriteFile(f.Path+parquetio.KeyIndexSuffix, data); err != nil {
		c.log.Debug().Err(err).Str("file", f.Path).Msg("key index is not stored")
		return
	}
	c.lru.forget(lruKey{kind: kindSidecar, name: f.Path})
}

// buildIndex encodes the index of a file over key columns by reading them.
func (c *Cache) buildIndex(ctx context.Context, ref Ref, f *File, ids []int, cols []keyindex.Column) ([]byte, error) {
	c.stats.indexBuilds.Add(1)
	c.stats.dataFileScans.Add(1)
	r, err := c.Reader(ctx, f)
	if err != nil {
		return nil, err
	}
	b := keyindex.NewBuilder(cols)
	var key []byte
	var addErr error
	err = scanKeys(ctx, ref, r, ids, func(pos uint32, raw []byte) {
		var whole bool
		if key, whole = withoutPresence(key[:0], cols, raw); whole && addErr == nil {
			addErr = b.Add(key, pos)
		}
	})
	if err == nil {
		err = addErr
	}
	if err != nil {
		return nil, err
	}
	return b.Finish(r.Source())
}
