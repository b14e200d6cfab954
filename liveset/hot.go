package liveset

import (
	"context"
	"sync/atomic"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/parquetio"
)

// hot is a pointer from a File straight to a cache entry, so that a probe of many files takes no lock a file. The entry still belongs to the cache's
// budget: evicting it clears the pointer, and using it through the pointer keeps it from being evicted next.
type hot[T any] struct{ p atomic.Pointer[hotEntry[T]] }

type hotEntry[T any] struct {
	sub  string // which of the file's entries: the key columns
	val  T
	used atomic.Bool
	home *hot[T]
}

// get is the entry for sub, when the pointer has it.
func (h *hot[T]) get(sub string) (v T, ok bool) {
	e := h.p.Load()
	if e == nil || e.sub != sub {
		return v, false
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.val, true
}

// keep is asked before eviction: true once for every use since the last time.
func (e *hotEntry[T]) keep() bool { return e.used.Swap(false) }

// drop is told of the eviction.
func (e *hotEntry[T]) drop() {
	if e.home != nil {
		e.home.p.CompareAndSwap(e, nil)
	}
}

// evictable is what the lru asks and tells hot entries.
type evictable interface {
	keep() bool
	drop()
}

// hotLoad is cached for a value with a hot pointer.
func hotLoad[T any](ctx context.Context, c *Cache, home *hot[T], k lruKey, load1 func() (T, int64, error)) (T, error) {
	if v, ok := home.get(k.sub); ok {
		return v, nil
	}
	e, err := cached(ctx, c, k, func() (*hotEntry[T], int64, error) {
		v, size, err := load1()
		return &hotEntry[T]{sub: k.sub, val: v, home: home}, size, err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	// The entry may have been made through another File of the same path, or have left the cache already: then it is only used, not pointed to.
	if e.home == home {
		home.p.Store(e)
		if _, ok := c.lru.peek(k); !ok {
			e.drop()
		}
	}
	return e.val, nil
}

// fileHot are the hot pointers of a File.
type fileHot struct {
	constants atomic.Pointer[map[int]any] // see File.learnConstants; not evicted
	bounds    atomic.Pointer[fileBounds]
	index     hot[maybeIndex]
	blooms    hot[[][]*parquetio.Bloom]
}

// maybeIndex is a key index, or the knowledge that the file has no sidecar that fits.
type maybeIndex struct{ ix *keyindex.Index }
