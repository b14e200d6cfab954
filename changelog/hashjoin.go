package changelog

import "math/bits"

// joinTable groups the removed rows by key and hangs the inserted rows of the key on the group's head, the first
// removed row. Numbers are row + 1; 0 is none.
type joinTable struct {
	dels     uint32
	nextDel  []uint32 // by removed row: next removed row of the key
	firstIns []uint32 // by head: first inserted row of the key
	lastIns  []uint32 // by head
	nextIns  []uint32 // by inserted row − dels
}

// entry is a row with its key's hash.
type entry struct {
	hash uint64
	row  uint32
}

// partRows is about how many removed rows one pass of the join handles, so that its table stays in a core's cache.
const partRows = 4096

// hashJoin groups the unmatched rows that admit (nil: all) lets in. Rows are first scattered by hash, then each part is
// joined in an open-addressing table of its own.
func (a *arena) hashJoin(key []vector, admit func(uint32) bool) *joinTable {
	t := &joinTable{dels: a.dels, nextDel: make([]uint32, a.dels), firstIns: make([]uint32, a.dels),
		lastIns: make([]uint32, a.dels), nextIns: make([]uint32, a.n-a.dels)}
	hashes := make([]uint64, a.n)
	exact := exactHash(key, hashes)
	parts := 1 << min(bits.Len32(a.dels/partRows), 12)
	dels, delEnds := a.scatter(hashes, 0, a.dels, parts, admit)
	inss, insEnds := a.scatter(hashes, a.dels, a.n, parts, admit)
	var slots []uint32
	d, i := 0, 0
	for p := range parts {
		slots = t.joinPart(dels[d:delEnds[p]], inss[i:insEnds[p]], slots, key, exact)
		d, i = delEnds[p], insEnds[p]
	}
	return t
}

// exactHash hashes the key of every row; true when equal hashes are equal keys, as for one integer column without NULLs.
func exactHash(key []vector, hashes []uint64) bool {
	if len(key) == 1 {
		switch v := key[0].(type) {
		case *intVector[int64]:
			return invertible(v, hashes)
		case *intVector[int32]:
			return invertible(v, hashes)
		}
	}
	for _, v := range key {
		v.hash(hashes)
	}
	return false
}

// invertible hashes with a bijection of 64 bits.
// Source: the finaliser of MurmurHash3.
func invertible[T int32 | int64](c *intVector[T], hashes []uint64) bool {
	if c.valid != nil {
		c.hash(hashes)
		return false
	}
	for r, x := range c.v[:len(hashes)] {
		h := uint64(int64(x))
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		hashes[r] = h ^ h>>33
	}
	return true
}

// scatter orders the rows [lo, hi) by part, keeping their order within one; ends holds each part's end.
func (a *arena) scatter(hashes []uint64, lo, hi uint32, parts int, admit func(uint32) bool) (out []entry, ends []int) {
	mask := uint64(parts - 1)
	at := make([]int, parts+1)
	in := func(r uint32) bool { return a.partner[r] == 0 && (admit == nil || admit(r)) }
	for r := lo; r < hi; r++ {
		if in(r) {
			at[hashes[r]&mask+1]++
		}
	}
	for p := range parts {
		at[p+1] += at[p]
	}
	out = make([]entry, at[parts])
	for r := lo; r < hi; r++ {
		if in(r) {
			p := hashes[r] & mask
			out[at[p]] = entry{hashes[r], r}
			at[p]++
		}
	}
	return out, at[:parts]
}

// joinPart joins one part. slots is reused memory; it is returned for the next part.
func (t *joinTable) joinPart(dels, inss []entry, slots []uint32, key []vector, exact bool) []uint32 {
	if len(dels) == 0 || len(inss) == 0 {
		return slots
	}
	size := 1 << bits.Len(uint(len(dels)*2-1))
	if len(slots) < size {
		slots = make([]uint32, size)
	}
	table, mask := slots[:size], uint64(size-1)
	clear(table)
	// find returns the slot of a key: its head's, or the empty one where it belongs.
	find := func(e entry) uint64 {
		for s := e.hash >> 32 & mask; ; s = (s + 1) & mask {
			head := table[s]
			if head == 0 {
				return s
			}
			if h := &dels[head-1]; h.hash == e.hash && (exact || equalRows(key, h.row, e.row)) {
				return s
			}
		}
	}
	for k, e := range dels {
		s := find(e)
		if head := table[s]; head != 0 {
			first := dels[head-1].row
			t.nextDel[e.row], t.nextDel[first] = t.nextDel[first], e.row+1
			continue
		}
		table[s] = uint32(k + 1)
	}
	for _, e := range inss {
		head := table[find(e)]
		if head == 0 {
			continue
		}
		first := dels[head-1].row
		if t.firstIns[first] == 0 {
			t.firstIns[first] = e.row + 1
		} else {
			t.nextIns[t.lastIns[first]-t.dels] = e.row + 1
		}
		t.lastIns[first] = e.row
	}
	return slots
}

// group lists the rows of a head's key, each side in order.
func (t *joinTable) group(head uint32) (dels, inss []uint32) {
	dels = append(dels, head)
	for d := t.nextDel[head]; d != 0; d = t.nextDel[d-1] {
		dels = append(dels, d-1)
	}
	reverse(dels[1:]) // rows were put behind the head, last first
	for i := t.firstIns[head]; i != 0; i = t.nextIns[i-1-t.dels] {
		inss = append(inss, i-1)
	}
	return dels, inss
}
