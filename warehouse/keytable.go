package warehouse

import (
	"bytes"

	"github.com/zeebo/xxh3"
)

// keyTable maps encoded keys to the newest row of a row log that has the key. Open addressing over an arena: no
// allocation per key. Not safe for concurrent use.
type keyTable struct {
	slots []int32 // entry number + 1; 0 is empty
	ends  []int   // entry i's key is arena[ends[i-1]:ends[i]]
	rows  []int32 // entry i's newest row
	arena []byte
}

// find returns the newest row of the key.
func (t *keyTable) find(key []byte) (int32, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	i, ok := t.slot(key)
	if !ok {
		return 0, false
	}
	return t.rows[t.slots[i]-1], true
}

// put makes row the key's newest row.
func (t *keyTable) put(key []byte, row int32) {
	if len(t.rows)*4 >= len(t.slots)*3 {
		t.grow()
	}
	i, ok := t.slot(key)
	if ok {
		t.rows[t.slots[i]-1] = row
		return
	}
	t.arena = append(t.arena, key...)
	t.ends = append(t.ends, len(t.arena))
	t.rows = append(t.rows, row)
	t.slots[i] = int32(len(t.rows))
}

func (t *keyTable) key(entry int) []byte {
	start := 0
	if entry > 0 {
		start = t.ends[entry-1]
	}
	return t.arena[start:t.ends[entry]]
}

func (t *keyTable) slot(key []byte) (int, bool) {
	mask := len(t.slots) - 1
	i := int(xxh3.Hash(key)) & mask
	for {
		e := t.slots[i]
		if e == 0 {
			return i, false
		}
		if bytes.Equal(t.key(int(e-1)), key) {
			return i, true
		}
		i = (i + 1) & mask
	}
}

func (t *keyTable) grow() {
	n := max(64, 2*len(t.slots))
	t.slots = make([]int32, n)
	mask := n - 1
	for e := range t.rows {
		i := int(xxh3.Hash(t.key(e))) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = int32(e + 1)
	}
}

// bytes is the memory the table holds.
func (t *keyTable) bytes() int64 {
	return int64(cap(t.slots))*4 + int64(cap(t.ends))*8 + int64(cap(t.rows))*4 + int64(cap(t.arena))
}

func (t *keyTable) len() int { return len(t.rows) }
