package changelog

import (
	"context"
	"encoding/binary"
	"math/bits"
)

// entry is a row as the join sees it, so that rows are read where they stand only when all else is equal. removedBit in
// row says that it is a removed one.
type entry struct {
	hash uint64 // of the key
	rest uint64 // hash of the columns outside the key
	row  uint32
	key  uint32 // where the encoded key stands among the part's keys; exact hashes have none
}

const (
	removedBit = refLimit
	refMask    = refLimit - 1
)

// One pass of the join handles about partRows rows, so that what it touches stays in a core's cache. Rows are
// scattered twice: first into at most maxParts parts, as many as a core can write to at a time, then each part, where it
// has more rows than that, into at most maxPieces pieces.
const (
	maxParts  = 128
	maxPieces = 64
)

var partRows uint32 = 8192 // tests have small parts

const blockEntries = 128

// block is a piece of one part as one worker scattered it.
type block [blockEntries]entry

// bucket is the rows of one part that one worker found, in order.
type bucket struct {
	full []*block
	cur  *block
	n    int    // entries of cur
	keys []byte // encoded keys
}

// joinHashed matches by hash. Rows are scattered into parts by the hash of their key, then each part is joined in an
// open-addressing table of its own, then what became of the rows is noted. Every pass reads and writes memory in order.
// Within a part rows keep their order, whatever the workers.
func (a *arena) joinHashed(ctx context.Context, key, rest []vector, admit func(uint32) bool, mode joinMode) error {
	parts := 1 << min(bits.Len32(a.n/partRows), bits.Len32(maxParts-1))
	pieces := 1 << min(bits.Len32(a.n/partRows/uint32(parts)), bits.Len32(maxPieces-1))
	workers := max(min(a.workers, parts, len(a.rows)), 1)
	s := &scatterer{a: a, key: key, rest: rest, admit: admit, mode: mode, exact: exactHash(key), parts: parts, buckets: make([][]bucket, workers)}
	ends := a.shares(workers)
	err := inParallel(ctx, workers, workers, func(_, w int) error {
		lo := 0
		if w > 0 {
			lo = ends[w-1]
		}
		return s.run(ctx, w, lo, ends[w])
	})
	if err != nil {
		return err
	}
	joins := make([]*partJoin, workers)
	for w := range joins {
		joins[w] = &partJoin{settler: settler{a: a, rest: rest}, exact: s.exact, exactRest: exactHash(rest), mode: mode, marks: newMarks(len(a.rows)),
			shift: bits.Len32(uint32(parts) - 1), pieces: make([][]entry, pieces)}
	}
	err = inParallel(ctx, workers, parts, func(w, p int) error {
		j := joins[w]
		j.keys = j.keys[:0]
		for _, b := range s.buckets {
			j.take(&b[p])
		}
		for i := range j.pieces {
			j.entries, j.pieces[i] = j.pieces[i], j.pieces[i][:0]
			j.run()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return inParallel(ctx, workers, len(joins[0].marks.groups), func(_, g int) error {
		for _, j := range joins {
			j.marks.apply(a, g)
		}
		return nil
	})
}

// shares cuts the chunks into ranges of about equal rows; it returns their ends.
func (a *arena) shares(n int) []int {
	ends := make([]int, n)
	k := 0
	for w := range ends {
		for k < len(a.rows) && uint64(a.starts[k]) < uint64(a.n)*uint64(w+1)/uint64(n) {
			k++
		}
		ends[w] = k
	}
	ends[n-1] = len(a.rows)
	return ends
}

// scatterer sorts rows into parts.
type scatterer struct {
	a         *arena
	key, rest []vector
	admit     func(uint32) bool
	mode      joinMode
	exact     bool
	parts     int
	buckets   [][]bucket // by worker, by part
}

func (s *scatterer) run(ctx context.Context, w, lo, hi int) error {
	a := s.a
	out := make([]bucket, s.parts)
	s.buckets[w] = out
	mask := uint64(s.parts - 1)
	room := min(a.n, chunkRows) // small steps cost what they hold
	hashes, rests := make([]uint64, room), make([]uint64, room)
	var slab []block
	for k := lo; k < hi; k++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := a.rows[k]
		hashRows(s.key, s.exact, k, hashes[:n])
		hashRows(s.rest, exactHash(s.rest), k, rests[:n])
		sign := uint32(0)
		var removed []uint64
		if a.dels == mixedSigns {
			removed = a.removed[k]
		} else if k < a.dels {
			sign = removedBit
		}
		partner := a.partner[a.starts[k]:][:n]
		for i, x := range hashes[:n] {
			ref := uint32(k<<chunkBits | i)
			if partner[i] != 0 || s.admit != nil && !s.admit(ref) {
				continue
			}
			if s.mode != onlyUnique {
				partner[i] = cancelled // what is left is marked
			}
			if removed != nil {
				sign = uint32(removed[i>>6]>>(i&63)&1) << 31
			}
			b := &out[x&mask]
			if b.cur == nil || b.n == blockEntries {
				if len(slab) == 0 {
					slab = make([]block, min(64, a.n/blockEntries+1))
				}
				if b.cur != nil {
					b.full = append(b.full, b.cur)
				}
				b.cur, b.n, slab = &slab[0], 0, slab[1:]
			}
			b.cur[b.n&(blockEntries-1)] = entry{x, rests[i], ref | sign, uint32(len(b.keys))}
			b.n++
			if !s.exact {
				if b.keys == nil {
					b.keys = make([]byte, 0, 4096)
				}
				b.keys = appendKey(b.keys, s.key, ref)
			}
		}
	}
	return nil
}

// appendKey encodes the key of a row: the length of what follows, then each column's value with its own length where
// lengths differ, so that two keys are equal exactly when their bytes are.
func appendKey(dst []byte, key []vector, ref uint32) []byte {
	if len(key) == 1 {
		if v, ok := key[0].(*bytesVector); ok && v.valid == nil {
			t := v.at(ref)
			return append(binary.LittleEndian.AppendUint32(dst, uint32(len(t))), t...)
		}
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, v := range key {
		dst = v.encode(dst, ref)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// exactHash says whether hashRows is one to one: equal hashes are equal rows, as for one integer column without NULLs.
func exactHash(cols []vector) bool {
	if len(cols) != 1 {
		return len(cols) == 0
	}
	switch v := cols[0].(type) {
	case *intVector[int64]:
		return v.valid == nil
	case *intVector[int32]:
		return v.valid == nil
	}
	return false
}

// hashRows hashes columns of the rows of a chunk.
func hashRows(cols []vector, exact bool, chunk int, dst []uint64) {
	if exact && len(cols) == 1 {
		switch v := cols[0].(type) {
		case *intVector[int64]:
			invertible(v.v[chunk], dst)
		case *intVector[int32]:
			invertible(v.v[chunk], dst)
		}
		return
	}
	clear(dst)
	for _, v := range cols {
		v.hash(chunk, dst)
	}
}

// invertible hashes with a bijection of 64 bits.
// Source: the finaliser of MurmurHash3.
func invertible[T int32 | int64](v []T, dst []uint64) {
	for r, x := range v[:len(dst)] {
		h := uint64(int64(x))
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		dst[r] = h ^ h>>33
	}
}

// marks are what became of rows, gathered by place so that noting it touches memory in order.
type marks struct {
	shift  int // a group is 2^shift chunks
	groups [][]mark
}

type mark struct{ row, partner uint32 }

func newMarks(chunks int) marks {
	m := marks{}
	for chunks>>m.shift > 1024 {
		m.shift++
	}
	m.groups = make([][]mark, chunks>>m.shift+1)
	return m
}

func (m *marks) put(ref, partner uint32) {
	g := &m.groups[ref>>(chunkBits+m.shift)]
	*g = append(*g, mark{ref, partner})
}

func (m *marks) apply(a *arena, g int) {
	for _, x := range m.groups[g] {
		a.partner[a.number(x.row)] = x.partner
	}
}
