package duck

// #include "suppress.h"
import "C"

import (
	"container/list"
	"fmt"
	"sync"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"
)

// bitmapCache keeps the C form of bitmaps of suppressed positions. A bitmap is immutable and shared by the snapshots that it
// holds for, so its address is its identity: the cache keeps the Go bitmap alive while it has an entry.
type bitmapCache struct {
	budget int64
	mu     struct {
		sync.Mutex
		size int64
		lru  *list.List // of *cachedBitmap, front = used last
		byGo map[*roaring.Bitmap]*list.Element
	}
}

type cachedBitmap struct {
	key  *roaring.Bitmap
	c    *C.skade_bitmap
	size int64
}

func (b *bitmapCache) init(budget int64) {
	b.budget = budget
	b.mu.lru = list.New()
	b.mu.byGo = make(map[*roaring.Bitmap]*list.Element)
}

// register makes a set of the files' bitmaps, nil for clean files, and returns its number.
func (b *bitmapCache) register(files []*roaring.Bitmap) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ptrs := make([]*C.skade_bitmap, len(files))
	for i, f := range files {
		if f == nil || f.IsEmpty() {
			continue
		}
		c, err := b.getLocked(f)
		if err != nil {
			return 0, err
		}
		ptrs[i] = c
	}
	// The set takes its references before anything is evicted.
	id := C.skade_set_register((**C.skade_bitmap)(unsafe.Pointer(unsafe.SliceData(ptrs))), C.uint64_t(len(ptrs)))
	b.evictLocked(b.budget)
	return uint64(id), nil
}

func (b *bitmapCache) getLocked(f *roaring.Bitmap) (*C.skade_bitmap, error) {
	if e, ok := b.mu.byGo[f]; ok {
		b.mu.lru.MoveToFront(e)
		return e.Value.(*cachedBitmap).c, nil
	}
	words := f.DenseSize()
	c := C.skade_bitmap_new(C.uint64_t(words))
	if c == nil {
		return nil, fmt.Errorf("bitmap of %d words: %w", words, ErrOutOfMemory)
	}
	f.WriteDenseTo(unsafe.Slice((*uint64)(unsafe.Pointer(c.words)), words))
	b.mu.byGo[f] = b.mu.lru.PushFront(&cachedBitmap{key: f, c: c, size: int64(words) * 8})
	b.mu.size += int64(words) * 8
	return c, nil
}

func (b *bitmapCache) evictLocked(budget int64) {
	for b.mu.size > budget && b.mu.lru.Len() > 0 {
		e := b.mu.lru.Back()
		c := e.Value.(*cachedBitmap)
		b.mu.lru.Remove(e)
		delete(b.mu.byGo, c.key)
		b.mu.size -= c.size
		C.skade_bitmap_unref(c.c)
	}
}

func (b *bitmapCache) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictLocked(-1)
}

func releaseSet(id uint64) { C.skade_set_release(C.uint64_t(id)) }

// setsAlive and bitmapsAlive count what C holds, for tests.
func setsAlive() int    { return int(C.skade_sets_alive()) }
func bitmapsAlive() int { return int(C.skade_bitmaps_alive()) }
