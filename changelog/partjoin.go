package changelog

import (
	"encoding/binary"
	"math/bits"
)

// group is the rows of one key in a part; first, last and head are entries.
type group struct {
	hash  uint64
	first uint32
	last  uint32
	head  uint32 // cancelOnly: the oldest unmatched row + 1, 0 none
	slow  bool   // pairUnique: rows of the key do not alternate, or one that went is not the one that had come
}

// partJoin joins one part after the other; it is one worker's memory. What is left of the part goes to marks.
type partJoin struct {
	settler
	exact     bool // equal key hashes are equal keys
	exactRest bool // equal rest hashes are equal rests
	mode      joinMode
	shift     int       // of a hash: what is below says the part
	pieces    [][]entry // the part's rows; entries is one after the other
	entries   []entry
	keys      []byte
	table     []uint32
	groups    []group
	of        []uint32 // by entry: its group
	next      []uint32 // by entry, cancelOnly: the unmatched row after it + 1
	gone      []bool   // by entry, cancelOnly
	pairs     []pair
	pairOf    []uint32
	sub       *partJoin
	subOf     []uint32 // by entry of sub: its group here
	left      []leftRows
	marks     marks
}

// take moves a bucket's rows here, scattered into pieces.
func (j *partJoin) take(b *bucket) {
	base := uint32(len(j.keys))
	j.keys = append(j.keys, b.keys...)
	mask := uint64(len(j.pieces) - 1)
	put := func(from []entry) {
		for _, e := range from {
			e.key += base
			p := &j.pieces[e.hash>>j.shift&mask]
			*p = append(*p, e)
		}
	}
	for _, f := range b.full {
		put(f[:])
	}
	if b.cur != nil {
		put(b.cur[:b.n])
	}
	*b = bucket{}
}

func (j *partJoin) run() {
	size := 1 << bits.Len(uint(len(j.entries)*3/2))
	if len(j.table) < size {
		j.table = make([]uint32, size)
	}
	table := j.table[:size]
	clear(table)
	j.groups = j.groups[:0]
	if j.mode == cancelOnly {
		j.cancelEqual(table)
		for k, gone := range j.gone {
			if !gone {
				j.marks.put(j.entries[k].row&refMask, 0)
			}
		}
		return
	}
	j.fold(table)
}

// find returns the group of an entry, making it when there is none.
func (j *partJoin) find(table []uint32, k uint32, e *entry) (g *group, id uint32, made bool) {
	mask := uint64(len(table) - 1)
	for s := e.hash >> 32 & mask; ; s = (s + 1) & mask {
		id := table[s]
		if id == 0 {
			j.groups = append(j.groups, group{hash: e.hash, first: k, last: k})
			id = uint32(len(j.groups))
			table[s] = id
			return &j.groups[id-1], id - 1, true
		}
		g := &j.groups[id-1]
		if g.hash == e.hash && (j.exact || j.sameKey(&j.entries[g.first], e)) {
			return g, id - 1, false
		}
	}
}

func (j *partJoin) sameKey(x, y *entry) bool { return string(j.keyOf(x)) == string(j.keyOf(y)) }

// keyOf returns the encoded key; its length is in front.
func (j *partJoin) keyOf(e *entry) []byte {
	k := j.keys[e.key:]
	return k[4:][:binary.LittleEndian.Uint32(k)]
}

// cancelEqual cancels rows of opposite sides one for one, the first come first; all rows of a group are equal.
func (j *partJoin) cancelEqual(table []uint32) {
	j.next, j.gone = grow(j.next, len(j.entries)), grow(j.gone, len(j.entries))
	clear(j.gone)
	for k := range j.entries {
		e := &j.entries[k]
		g, _, _ := j.find(table, uint32(k), e)
		j.next[k] = 0
		switch {
		case g.head == 0:
			g.head = uint32(k) + 1
		case (j.entries[g.head-1].row^e.row)&removedBit == 0:
			j.next[g.last] = uint32(k) + 1
		default:
			j.gone[g.head-1], j.gone[k] = true, true
			g.head = j.next[g.head-1]
			continue
		}
		g.last = uint32(k)
	}
}

// fold reads the rows of each key in order. While a removed row follows an inserted one and is the same, both go: they
// came and went. What stays is the first row when it was removed and the last when it was inserted. Keys whose rows
// do not go like this are matched as multisets.
func (j *partJoin) fold(table []uint32) {
	j.of, j.pairs, j.pairOf = grow(j.of, len(j.entries)), j.pairs[:0], j.pairOf[:0]
	slow := false
	for k := range j.entries {
		e := &j.entries[k]
		g, id, made := j.find(table, uint32(k), e)
		j.of[k] = id
		if made {
			continue
		}
		last := &j.entries[g.last]
		g.last = uint32(k)
		switch {
		case (last.row^e.row)&removedBit == 0:
			g.slow, slow = true, true
		case e.row&removedBit == 0:
		case last.rest != e.rest:
			g.slow, slow = true, true
		case !j.exactRest:
			j.pairs, j.pairOf = append(j.pairs, pair{e.row & refMask, last.row}), append(j.pairOf, id)
		}
	}
	for k, same := range j.compare(j.pairs) {
		if !same {
			j.groups[j.pairOf[k]].slow, slow = true, true
		}
	}
	j.pairs = j.pairs[:0]
	for i := range j.groups {
		if g := &j.groups[i]; !g.slow {
			j.leave(&j.entries[g.first], &j.entries[g.last])
		}
	}
	for k, same := range j.compare(j.pairs) {
		if !same {
			j.update(j.pairs[k])
		} else if j.mode == onlyUnique {
			j.marks.put(j.pairs[k].del, cancelled)
			j.marks.put(j.pairs[k].ins, cancelled)
		}
	}
	if slow && j.mode == pairUnique {
		j.foldSlow()
	}
}

// leave marks the ends of a key's rows; a pair that may be equal waits to be compared.
func (j *partJoin) leave(first, last *entry) {
	removed, inserted := first.row&removedBit != 0, last.row&removedBit == 0
	switch {
	case removed && inserted && first.rest != last.rest:
		j.update(pair{first.row & refMask, last.row})
	case removed && inserted:
		j.pairs = append(j.pairs, pair{first.row & refMask, last.row})
	case j.mode == onlyUnique:
	case removed:
		j.marks.put(first.row&refMask, 0)
	case inserted:
		j.marks.put(last.row, 0)
	}
}

func (j *partJoin) update(p pair) {
	j.marks.put(p.del, p.ins+1)
	j.marks.put(p.ins, p.del+1)
}

// leftRows is what is left of a key.
type leftRows struct{ del, ins, dels, inss uint32 }

// foldSlow matches the rows of the slow groups: identical ones cancel, and what is then alone on both sides of a key is
// an update.
func (j *partJoin) foldSlow() {
	if j.sub == nil {
		j.sub = &partJoin{mode: cancelOnly}
	}
	sub := j.sub
	sub.entries, sub.keys, j.subOf = sub.entries[:0], sub.keys[:0], j.subOf[:0]
	for k, e := range j.entries {
		id := j.of[k]
		if !j.groups[id].slow {
			continue
		}
		// Within one key only the rest tells rows apart.
		e.hash, e.key = mix(e.rest, uint64(id)), uint32(len(sub.keys))
		sub.keys = append(sub.keys, 0, 0, 0, 0)
		sub.keys = binary.LittleEndian.AppendUint32(sub.keys, id)
		for _, v := range j.rest {
			sub.keys = v.encode(sub.keys, e.row&refMask)
		}
		binary.LittleEndian.PutUint32(sub.keys[e.key:], uint32(len(sub.keys))-e.key-4)
		sub.entries, j.subOf = append(sub.entries, e), append(j.subOf, id)
	}
	size := 1 << bits.Len(uint(len(sub.entries)*3/2))
	sub.table, sub.groups = grow(sub.table, size), sub.groups[:0]
	clear(sub.table)
	sub.cancelEqual(sub.table)
	j.left = grow(j.left, len(j.groups))
	clear(j.left)
	for k, e := range sub.entries {
		if sub.gone[k] {
			continue
		}
		l := &j.left[j.subOf[k]]
		if e.row&removedBit != 0 {
			l.del, l.dels = e.row&refMask, l.dels+1
		} else {
			l.ins, l.inss = e.row, l.inss+1
		}
	}
	for k, e := range sub.entries {
		if sub.gone[k] {
			continue
		}
		l := &j.left[j.subOf[k]]
		switch {
		case l.dels != 1 || l.inss != 1:
			j.marks.put(e.row&refMask, 0)
		case e.row&removedBit != 0:
			j.update(pair{l.del, l.ins})
		}
	}
}

// grow returns a slice of n elements, s when it is large enough; their values are whatever they were.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
