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

func indexKey(f *File, cols []keyindex.Column) lruKey {
	return lruKey{kind: kindIndex, name: f.Path, sub: fmt.Sprint(cols)}
}

// maybeIndex is an index, or the knowledge that the file has no sidecar that fits.
type maybeIndex struct{ ix *keyindex.Index }

// existingIndex is the file's key index when it is cached or has a sidecar over exactly these columns; else nil.
func (c *Cache) existingIndex(ctx context.Context, f *File, cols []keyindex.Column) (*keyindex.Index, error) {
	if v, ok := c.lru.peek(indexKey(f, cols)); ok {
		return v.(*keyindex.Index), nil
	}
	m, err := cached(ctx, c, lruKey{kind: kindIndex, name: f.Path}, func() (maybeIndex, int64, error) {
		data, err := c.fs.ReadFile(f.Path + parquetio.KeyIndexSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return maybeIndex{}, 0, nil
		}
		if err != nil {
			return maybeIndex{}, 0, fmt.Errorf("read key index: %w", err)
		}
		c.stats.keyIndexes.Add(1)
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

// index is the file's key index over the fields ids in that order: its sidecar, else built from the key columns and cached. Rows with a
// NULL key column are not in it.
func (c *Cache) index(ctx context.Context, ref Ref, f *File, ids []int, cols []keyindex.Column) (*keyindex.Index, error) {
	ix, err := c.existingIndex(ctx, f, cols)
	if ix != nil || err != nil {
		return ix, err
	}
	return cached(ctx, c, indexKey(f, cols), func() (*keyindex.Index, int64, error) {
		ix, err := c.buildIndex(ctx, ref, f, ids, cols)
		if err != nil {
			return nil, 0, err
		}
		return ix, int64(ix.Size()), nil
	})
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
