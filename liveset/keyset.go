package liveset

import (
	"bytes"

	"github.com/zeebo/xxh3"
)

// keySet is a set of byte strings, numbered from 0 in order of insertion: open addressing over one arena, no allocation a key.
type keySet struct {
	arena  []byte
	ends   []uint64
	hashes []uint64
	slots  []uint32 // number + 1
}

func (k *keySet) len() int { return len(k.ends) }

func (k *keySet) key(i int) []byte {
	start := uint64(0)
	if i > 0 {
		start = k.ends[i-1]
	}
	return k.arena[start:k.ends[i]]
}

// slot is where the key stands or would stand.
func (k *keySet) slot(h uint64, key []byte) int {
	mask := uint64(len(k.slots) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		n := k.slots[at]
		if n == 0 || k.hashes[n-1] == h && bytes.Equal(k.key(int(n-1)), key) {
			return int(at)
		}
	}
}

// find is the key's number, -1 when absent.
func (k *keySet) find(key []byte) int {
	if len(k.slots) == 0 {
		return -1
	}
	return int(k.slots[k.slot(xxh3.Hash(key), key)]) - 1
}

// add inserts a key and returns its number.
func (k *keySet) add(key []byte) int {
	if 2*(len(k.ends)+1) > len(k.slots) {
		k.grow()
	}
	h := xxh3.Hash(key)
	at := k.slot(h, key)
	if n := k.slots[at]; n != 0 {
		return int(n) - 1
	}
	k.arena = append(k.arena, key...)
	k.ends = append(k.ends, uint64(len(k.arena)))
	k.hashes = append(k.hashes, h)
	k.slots[at] = uint32(len(k.ends))
	return len(k.ends) - 1
}

func (k *keySet) grow() {
	k.slots = make([]uint32, max(16, 2*len(k.slots)))
	mask := uint64(len(k.slots) - 1)
	for i, h := range k.hashes {
		at := h & mask
		for k.slots[at] != 0 {
			at = (at + 1) & mask
		}
		k.slots[at] = uint32(i + 1)
	}
}

// bytes is about how much memory the set holds.
func (k *keySet) bytes() int64 {
	return int64(cap(k.arena)) + 16*int64(cap(k.ends)) + 4*int64(cap(k.slots)) + 128
}
