package liveset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

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
		data, err := c.fs.ReadFile(f.Path + parquetio.KeyIndexSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return maybeIndex{}, 0, nil
		}
		if err != nil {
			return maybeIndex{}, 0, fmt.Errorf("read key index: %w", err)
		}
		c.stats.keyIndexes.Add(1)
		if n := parquetio.CountersOf(ctx); n != nil {
			n.Opens.Add(1)
			n.Reads.Add(1)
			n.Bytes.Add(int64(len(data)))
		}
		ix, err := keyindex.Decode(data)
		if err != nil || int64(ix.Len()) != f.Records {
			// The index is only a shortcut: one that is damaged is as good as none, and is said.
			c.log.Warn().Err(err).Str("file", f.Path+parquetio.KeyIndexSuffix).Msg("key index is unusable and will be rebuilt")
			return maybeIndex{}, 0, nil
		}
		return maybeIndex{ix}, int64(ix.Size()), nil
	})
	if err != nil || m.ix == nil || !slices.Equal(m.ix.Columns(), cols) {
		return nil, err
	}
	return m.ix, nil
}

// index is the file's key index over the fields p.ids in that order: its sidecar, else built from the key columns and cached. Rows with a NULL key
// column are not in it.
func (p *prober) index(ctx context.Context, f *File) (*keyindex.Index, error) {
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
		if ix, err = p.c.buildIndex(ctx, p.ref, f, p.ids, p.cols); err != nil {
			return maybeIndex{}, 0, err
		}
		return maybeIndex{ix}, int64(ix.Size()), nil
	})
	return m.ix, err
}

func (c *Cache) buildIndex(ctx context.Context, ref Ref, f *File, ids []int, cols []keyindex.Column) (*keyindex.Index, error) {
	c.stats.indexBuilds.Add(1)
	c.stats.dataFileScans.Add(1)
	r, err := c.Reader(ctx, f)
	if err != nil {
		return nil, err
	}
	type entry struct {
		at, end uint64
		pos     uint32
	}
	var arena []byte
	var entries []entry
	err = scanKeys(ctx, ref, r, ids, func(pos uint32, key []byte) {
		at := uint64(len(arena))
		var whole bool
		if arena, whole = withoutPresence(arena, cols, key); !whole {
			arena = arena[:at]
			return
		}
		entries = append(entries, entry{at, uint64(len(arena)), pos})
	})
	if err != nil {
		return nil, err
	}
	key := func(e entry) []byte { return arena[e.at:e.end] }
	slices.SortFunc(entries, func(a, b entry) int {
		if c := slices.Compare(key(a), key(b)); c != 0 {
			return c
		}
		return int(a.pos) - int(b.pos)
	})
	b := keyindex.NewBuilder(cols)
	for _, e := range entries {
		if err := b.Add(key(e), e.pos); err != nil {
			return nil, err
		}
	}
	data, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return keyindex.Decode(data)
}
