package lookup

import (
	"encoding/binary"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/zeebo/xxh3"
)

// rowCache keeps answers under (owner, key): the rows of a key at a snapshot, and single rows by (data file, position).
// Both are pure functions of immutable files, so nothing is ever invalidated, only evicted (CLOCK, by bytes). A full cache
// takes only what is asked for a second time: keys that come once would push out those that come often.
type rowCache struct {
	shards [cacheShards]cacheShard
}

const cacheShards = 16

type cacheShard struct {
	mu struct {
		sync.Mutex
		slots  map[uint64]int32 // hash → place in ring
		ring   []cacheEntry
		free   []int32
		hand   int32
		bytes  int64
		budget int64
		door   doorkeeper
	}
	_ [32]byte // shards are locked by different cores
}

// cacheEntry is one answer. rows nil is a free slot.
type cacheEntry struct {
	hash  uint64
	owner uint64
	key   string
	rows  arrow.RecordBatch
	bytes int64
	used  bool
}

func newRowCache(budget int64) *rowCache {
	c := &rowCache{}
	for i := range c.shards {
		c.shards[i].mu.slots = make(map[uint64]int32)
		c.shards[i].mu.budget = budget / cacheShards
	}
	return c
}

func cacheHash(owner uint64, key []byte) uint64 {
	return xxh3.Hash(key) ^ owner*0x9e3779b97f4a7c15
}

// get returns the answer, retained for the caller, or nil.
func (c *rowCache) get(owner uint64, key []byte) arrow.RecordBatch {
	if c == nil {
		return nil
	}
	h := cacheHash(owner, key)
	s := &c.shards[h>>60]
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.mu.slots[h]
	if !ok {
		return nil
	}
	e := &s.mu.ring[i]
	if e.owner != owner || e.key != unsafe.String(unsafe.SliceData(key), len(key)) {
		return nil
	}
	e.used = true
	e.rows.Retain()
	return e.rows
}

// put keeps an answer. An answer of another key with the same hash is replaced.
func (c *rowCache) put(owner uint64, key []byte, rows arrow.RecordBatch) {
	if c == nil {
		return
	}
	h := cacheHash(owner, key)
	s := &c.shards[h>>60]
	size := int64(len(key)) + batchBytes(rows)
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.mu.budget/8 {
		return
	}
	if i, ok := s.mu.slots[h]; ok {
		s.dropLocked(i)
	} else if s.mu.bytes+size > s.mu.budget && !s.mu.door.again(h) {
		return
	}
	for s.mu.bytes+size > s.mu.budget && len(s.mu.slots) > 0 {
		s.evictLocked()
	}
	rows.Retain()
	e := cacheEntry{hash: h, owner: owner, key: string(key), rows: rows, bytes: size}
	i := int32(len(s.mu.ring))
	if n := len(s.mu.free); n > 0 {
		i = s.mu.free[n-1]
		s.mu.free = s.mu.free[:n-1]
		s.mu.ring[i] = e
	} else {
		s.mu.ring = append(s.mu.ring, e)
	}
	s.mu.slots[h] = i
	s.mu.bytes += size
}

// doorkeeper remembers, roughly, the last few thousand answers that were not taken.
type doorkeeper struct {
	seen [doorBits / 64]uint64
	n    int
}

const doorBits = 1 << 16

// again reports whether h came before, and remembers it.
func (d *doorkeeper) again(h uint64) bool {
	word, bit := &d.seen[h%doorBits/64], uint64(1)<<(h%64)
	if *word&bit != 0 {
		return true
	}
	if d.n++; d.n > doorBits/8 {
		clear(d.seen[:])
		d.n = 1
	}
	*word |= bit
	return false
}

func (s *cacheShard) dropLocked(i int32) {
	e := &s.mu.ring[i]
	delete(s.mu.slots, e.hash)
	s.mu.bytes -= e.bytes
	e.rows.Release()
	*e = cacheEntry{}
	s.mu.free = append(s.mu.free, i)
}

// evictLocked drops the first entry from the hand on that was not used since the hand last passed.
func (s *cacheShard) evictLocked() {
	for {
		s.mu.hand = (s.mu.hand + 1) % int32(len(s.mu.ring))
		e := &s.mu.ring[s.mu.hand]
		switch {
		case e.rows == nil:
		case e.used:
			e.used = false
		default:
			s.dropLocked(s.mu.hand)
			return
		}
	}
}

// batchBytes estimates what a small batch holds: its headers weigh more than its values.
func batchBytes(b arrow.RecordBatch) int64 {
	n := int64(256)
	for _, c := range b.Columns() {
		n += 256
		for _, buf := range c.Data().Buffers() {
			if buf != nil {
				n += int64(buf.Cap()) + 64
			}
		}
	}
	return n
}

// rowKey appends the cache key of a row of a data file.
func rowKey(dst []byte, path string, pos uint32) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, pos), path...)
}
