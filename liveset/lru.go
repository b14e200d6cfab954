package liveset

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// lru is one byte budget for everything a Cache keeps. Entries are pure functions of immutable files: they are evicted, never invalidated.
// Equal loads under way are done once.
type lru struct {
	budget int64
	// resized is told, when it is set, of every change of what is used by more than a 64th of the budget. It is called under the lock.
	resized func(used int64)

	mu struct {
		sync.Mutex
		used    int64
		told    int64 // what resized knows
		entries map[lruKey]*list.Element
		order   *list.List // front = newest
		loading map[lruKey]*load
	}
}

// lruKey names an entry: what it is and of which file or snapshot.
type lruKey struct {
	kind kind
	name string
	sub  string
}

type kind uint8

const (
	kindManifest kind = iota + 1
	kindFooter
	kindPositions
	kindVector
	kindEquality
	kindMatch
	kindIndex
	kindSidecar
	kindBlooms
	kindSet
	kindList
)

type lruEntry struct {
	key  lruKey
	val  any
	size int64
}

type load struct {
	done chan struct{}
	val  any
	err  error
}

func newLRU(budget int64) *lru {
	c := &lru{budget: budget}
	c.mu.entries = map[lruKey]*list.Element{}
	c.mu.order = list.New()
	c.mu.loading = map[lruKey]*load{}
	return c
}

func (c *lru) peek(k lruKey) (any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.mu.entries[k]
	if !ok {
		return nil, false
	}
	c.mu.order.MoveToFront(e)
	return e.Value.(*lruEntry).val, true
}

func (c *lru) put(k lruKey, v any, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(k, v, size)
}

func (c *lru) putLocked(k lruKey, v any, size int64) {
	if e, ok := c.mu.entries[k]; ok {
		c.mu.order.MoveToFront(e)
		return
	}
	size += 128
	if size > c.budget {
		return
	}
	c.mu.entries[k] = c.mu.order.PushFront(&lruEntry{k, v, size})
	c.mu.used += size
	// Entries used through a hot pointer get a second chance; bounded, since they may be used again meanwhile.
	for chances := c.mu.order.Len(); c.mu.used > c.budget; {
		e := c.mu.order.Back()
		old := e.Value.(*lruEntry)
		h, hot := old.val.(evictable)
		if hot && chances > 0 && h.keep() {
			chances--
			c.mu.order.MoveToFront(e)
			continue
		}
		if hot {
			h.drop()
		}
		c.mu.order.Remove(e)
		delete(c.mu.entries, old.key)
		c.mu.used -= old.size
	}
	c.tellLocked()
}

func (c *lru) tellLocked() {
	if d := c.mu.used - c.mu.told; c.resized != nil && (d > c.budget/64 || -d > c.budget/64) {
		c.mu.told = c.mu.used
		c.resized(c.mu.used)
	}
}

// forget takes an entry out.
func (c *lru) forget(k lruKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.mu.entries[k]; ok {
		c.mu.order.Remove(e)
		delete(c.mu.entries, k)
		c.mu.used -= e.Value.(*lruEntry).size
		c.tellLocked()
	}
}

// get returns the entry, loading it when it is not there. A waiter whose loader was cancelled loads for itself.
func (c *lru) get(ctx context.Context, k lruKey, load1 func() (any, int64, error)) (any, error) {
	for {
		c.mu.Lock()
		if e, ok := c.mu.entries[k]; ok {
			c.mu.order.MoveToFront(e)
			c.mu.Unlock()
			return e.Value.(*lruEntry).val, nil
		}
		l, busy := c.mu.loading[k]
		if !busy {
			l = &load{done: make(chan struct{}), err: errLoadPanicked}
			c.mu.loading[k] = l
			c.mu.Unlock()
			return c.run(k, l, load1)
		}
		c.mu.Unlock()
		select {
		case <-l.done:
			if errors.Is(l.err, context.Canceled) || errors.Is(l.err, context.DeadlineExceeded) {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				continue
			}
			return l.val, l.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

var errLoadPanicked = errors.New("liveset: load panicked")

func (c *lru) run(k lruKey, l *load, load1 func() (any, int64, error)) (any, error) {
	var size int64
	defer func() {
		c.mu.Lock()
		delete(c.mu.loading, k)
		if l.err == nil {
			c.putLocked(k, l.val, size)
		}
		c.mu.Unlock()
		close(l.done)
	}()
	l.val, size, l.err = load1()
	return l.val, l.err
}

// cached is get with the entry's type.
func cached[T any](ctx context.Context, c *Cache, k lruKey, load1 func() (T, int64, error)) (T, error) {
	v, err := c.lru.get(ctx, k, func() (any, int64, error) { return load1() })
	if err != nil {
		var zero T
		return zero, err
	}
	return v.(T), nil
}
