package parquetio

import (
	"sync"
	"sync/atomic"
)

// PageCache keeps inflated data pages that single-row reads asked for, under a byte budget (CLOCK). Files are immutable, so
// nothing is ever invalidated, only evicted. Safe for concurrent use; readers share one.
type PageCache struct {
	shards [pageShards]pageShard
}

const (
	pageShards = 16
	// cachedReadRows is the number of positions above which a read leaves the cache alone: it would only push others out.
	cachedReadRows = 64
	pageOverhead   = 256
)

type pageKey struct {
	reader            uint64
	group, leaf, page int32
}

type pageShard struct {
	mu     sync.Mutex
	slots  map[pageKey]int
	ring   []cachedPage
	hand   int
	bytes  int64
	budget int64
	_      [32]byte // shards are locked by different cores
}

type cachedPage struct {
	key   pageKey
	page  openPage // at its first row; never advanced
	bytes int64
	used  bool
}

// NewPageCache makes a cache of at most budget bytes.
func NewPageCache(budget int64) *PageCache {
	c := &PageCache{}
	for i := range c.shards {
		c.shards[i].slots, c.shards[i].budget = map[pageKey]int{}, budget/pageShards
	}
	return c
}

var readerIDs atomic.Uint64

// UsePageCache makes reads of few rows keep their pages in c. Call it before the reader is shared.
func (r *Reader) UsePageCache(c *PageCache) {
	r.pages, r.id = c, readerIDs.Add(1)
}

func (c *PageCache) shard(k pageKey) *pageShard {
	h := (k.reader*31+uint64(k.group))*31 + uint64(k.leaf)
	h = (h*31 + uint64(k.page)) * 0x9E3779B97F4A7C15
	return &c.shards[h>>60]
}

// get puts a page of its own to read forward in p, and reports whether it is cached. The bytes are shared and never written.
func (c *PageCache) get(k pageKey, p *openPage) bool {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.slots[k]
	if !ok {
		return false
	}
	s.ring[i].used = true
	*p = s.ring[i].page
	return true
}

// put keeps p, which has not been read from yet.
func (c *PageCache) put(k pageKey, p *openPage) {
	p.mark()
	n := int64(len(p.plain) + len(p.idx.b) + len(p.defs.b) + 4*len(p.marks) + pageOverhead)
	n += n / 8 // the allocator rounds a page's 16 KiB up
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.slots[k]; ok || n > s.budget {
		return
	}
	e := cachedPage{key: k, page: *p, bytes: n}
	s.bytes += n
	s.shrinkLocked()
	s.slots[k] = len(s.ring)
	s.ring = append(s.ring, e)
}

// SetBudget changes the budget; what is too much goes at once.
func (c *PageCache) SetBudget(budget int64) {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.budget = budget / pageShards
		s.shrinkLocked()
		s.mu.Unlock()
	}
}

// shrinkLocked evicts pages, those not asked for lately first, until the others fit. A page that is being put counts already and has no place yet.
func (s *pageShard) shrinkLocked() {
	for s.bytes > s.budget && len(s.ring) > 0 {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		if old := &s.ring[s.hand]; old.used {
			old.used = false
			s.hand++
			continue
		}
		s.evict(s.hand)
	}
}

// evict removes the i-th entry; the last one takes its place.
func (s *pageShard) evict(i int) {
	last := len(s.ring) - 1
	s.bytes -= s.ring[i].bytes
	delete(s.slots, s.ring[i].key)
	if i != last {
		s.ring[i] = s.ring[last]
		s.slots[s.ring[i].key] = i
	}
	s.ring[last] = cachedPage{}
	s.ring = s.ring[:last]
}
