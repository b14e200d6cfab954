package keyindex

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Index is an immutable map from keys to positions (K1, K2). Safe for concurrent use.
type Index struct {
	columns []Column
	n       int
	common  []byte // prefix of every key
	heads   []uint64
	offsets []uint32 // blocks+1
	data    []byte
	pos     []uint32 // nil: an entry's position is its ordinal
}

// Decode checks data (K3) and returns an index over it; data must not change afterwards. The error is a *FormatError.
func Decode(data []byte) (*Index, error) {
	r := formatReader{data: data}
	if len(data) < headerSize+trailerSize {
		return nil, r.fail("shorter than a header")
	}
	if string(data[:len(magic)]) != magic {
		return nil, r.fail("no magic")
	}
	if v := data[len(magic)]; v != version {
		r.at = len(magic)
		return nil, r.fail("unknown version")
	}
	body := data[:len(data)-trailerSize]
	if xxh3.Hash(body) != binary.LittleEndian.Uint64(data[len(body):]) {
		r.at = len(body)
		return nil, r.fail("checksum does not match")
	}
	r.data, r.at = body, len(magic)+1
	flags, ncols := r.u32(), r.u32()
	n, blocks, dataLen, commonLen := r.u64(), int(r.u32()), int(r.u32()), int(r.u32())
	ix := &Index{n: int(n)}
	if n > 1<<32-1 || uint64(blocks) != (n+blockEntries-1)/blockEntries {
		return nil, r.fail("entries and blocks do not agree")
	}
	cols := r.bytes(int(min(ncols, 1<<16)) * columnSize)
	ix.common = r.bytes(commonLen)
	heads := r.bytes(blocks * 8)
	offsets := r.bytes((blocks + 1) * 4)
	ix.data = r.bytes(dataLen)
	if flags&flagOrdinals == 0 {
		ix.pos = u32s(r.bytes(int(n) * 4))
	}
	if r.bad || r.at != len(body) {
		return nil, r.fail("sizes do not add up")
	}
	for i := 0; i < len(cols); i += columnSize {
		ix.columns = append(ix.columns, Column{
			Kind: Kind(cols[i]), Unit: Unit(cols[i+1]), Width: binary.LittleEndian.Uint16(cols[i+2:]),
			FieldID: int32(binary.LittleEndian.Uint32(cols[i+4:])),
		})
	}
	ix.heads = make([]uint64, blocks)
	for i := range ix.heads {
		ix.heads[i] = binary.LittleEndian.Uint64(heads[i*8:])
	}
	ix.offsets = u32s(offsets)
	return ix, ix.checkBlocks(r.at - dataLen)
}

// checkBlocks verifies that every block lies within the data and adds up, so that probes need no bounds checks of their own.
func (ix *Index) checkBlocks(at int) error {
	r := formatReader{at: at}
	left := ix.n
	if ix.offsets[0] != 0 || int(ix.offsets[len(ix.heads)]) != len(ix.data) {
		return r.fail("blocks do not cover the data")
	}
	for i := range ix.heads {
		lo, hi := ix.offsets[i], ix.offsets[i+1]
		if lo > hi || int(hi) > len(ix.data) || hi-lo < blockHeader {
			return r.fail("block offsets do not ascend")
		}
		raw := ix.data[lo:hi]
		prefix, n, mode := int(binary.LittleEndian.Uint16(raw)), int(raw[2]), raw[3]
		if n == 0 || n != min(left, blockEntries) {
			return r.fail("block has a wrong number of entries")
		}
		left -= n
		rest := len(raw) - blockHeader - prefix
		width := 0
		switch mode {
		case suffixFixed:
			if rest != n*int(binary.LittleEndian.Uint16(raw[4:])) {
				return r.fail("block size does not add up")
			}
			continue
		case suffixVar16:
			width = 2
		case suffixVar32:
			width = 4
		default:
			return r.fail("unknown block mode")
		}
		if rest < n*width {
			return r.fail("block is too short for its offsets")
		}
		blk := ix.block(i)
		end := 0
		for j := range n {
			e := blk.end(j)
			if e < end || e > len(blk.suffixes) {
				return r.fail("suffix offsets do not ascend")
			}
			end = e
		}
		if end != len(blk.suffixes) {
			return r.fail("suffixes do not fill the block")
		}
	}
	return nil
}

// formatReader cuts fields off a byte string and remembers where it ran short.
type formatReader struct {
	data []byte
	at   int
	bad  bool
}

func (r *formatReader) fail(reason string) error {
	return &FormatError{Offset: int64(r.at), Reason: reason}
}

func (r *formatReader) bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.data)-r.at {
		r.bad = true
		return nil
	}
	b := r.data[r.at : r.at+n : r.at+n]
	r.at += n
	return b
}

func (r *formatReader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *formatReader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func u32s(b []byte) []uint32 {
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[i*4:])
	}
	return out
}

// Len is the number of entries.
func (ix *Index) Len() int { return ix.n }

// Size is the number of bytes of memory the index holds.
func (ix *Index) Size() int {
	return len(ix.data) + len(ix.common) + len(ix.heads)*8 + (len(ix.offsets)+len(ix.pos))*4 + int(unsafe.Sizeof(*ix))
}

// Columns are the key columns the index was built for.
func (ix *Index) Columns() []Column { return ix.columns }

// block is one decoded block header.
type block struct {
	prefix, ends, suffixes []byte
	n, width               int
	mode                   byte
}

func (ix *Index) block(i int) block {
	raw := ix.data[ix.offsets[i]:ix.offsets[i+1]]
	b := block{n: int(raw[2]), mode: raw[3], width: int(binary.LittleEndian.Uint16(raw[4:]))}
	p := blockHeader + int(binary.LittleEndian.Uint16(raw))
	b.prefix = raw[blockHeader:p]
	e := p
	switch b.mode {
	case suffixVar16:
		e += 2 * b.n
	case suffixVar32:
		e += 4 * b.n
	}
	b.ends, b.suffixes = raw[p:e], raw[e:]
	return b
}

func (b *block) end(i int) int {
	if b.mode == suffixVar16 {
		return int(binary.LittleEndian.Uint16(b.ends[2*i:]))
	}
	return int(binary.LittleEndian.Uint32(b.ends[4*i:]))
}

func (b *block) suffix(i int) []byte {
	if b.mode == suffixFixed {
		return b.suffixes[i*b.width : (i+1)*b.width]
	}
	start := 0
	if i > 0 {
		start = b.end(i - 1)
	}
	return b.suffixes[start:b.end(i)]
}

// lowerBound is the first entry of the block that is not below key.
func (b *block) lowerBound(key []byte) int {
	if !bytes.HasPrefix(key, b.prefix) {
		if bytes.Compare(key, b.prefix) < 0 {
			return 0
		}
		return b.n
	}
	key = key[len(b.prefix):]
	lo, hi := 0, b.n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(b.suffix(mid), key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// compareFirst compares block i's first key with key.
func (ix *Index) compareFirst(i int, key []byte) int {
	b := ix.block(i)
	if !bytes.HasPrefix(key, b.prefix) {
		if c := bytes.Compare(b.prefix, key); c != 0 {
			return c
		}
	}
	return bytes.Compare(b.suffix(0), key[len(b.prefix):])
}

// lowerBound is the block and the entry of the first key that is not below key; key begins with the common prefix.
func (ix *Index) lowerBound(key []byte) (int, int) {
	h := head(key[len(ix.common):])
	lo, _ := slices.BinarySearch(ix.heads, h) // first block with head ≥ h
	for lo < len(ix.heads) && ix.heads[lo] == h && ix.compareFirst(lo, key) < 0 {
		// Heads of one value are told apart by their keys; long runs are searched, not walked.
		hi := lo + 1
		step := 1
		for hi < len(ix.heads) && ix.heads[hi] == h && ix.compareFirst(hi, key) < 0 {
			lo = hi
			step *= 2
			hi += step
		}
		hi = min(hi, len(ix.heads))
		for lo+1 < hi {
			mid := int(uint(lo+hi) >> 1)
			if ix.heads[mid] == h && ix.compareFirst(mid, key) < 0 {
				lo = mid
			} else {
				hi = mid
			}
		}
		lo++
	}
	if lo == 0 {
		return 0, 0
	}
	b := ix.block(lo - 1)
	if i := b.lowerBound(key); i < b.n {
		return lo - 1, i
	}
	return lo, 0
}

func (ix *Index) position(blk, i int) uint32 {
	ord := blk*blockEntries + i
	if ix.pos == nil {
		return uint32(ord)
	}
	return ix.pos[ord]
}

// Find appends the positions of key to dst, ascending.
func (ix *Index) Find(dst []uint32, key []byte) []uint32 {
	if ix.n == 0 || !bytes.HasPrefix(key, ix.common) {
		return dst
	}
	blk, i := ix.lowerBound(key)
	for ; blk < len(ix.heads); blk, i = blk+1, 0 {
		b := ix.block(blk)
		if !bytes.HasPrefix(key, b.prefix) {
			return dst
		}
		rest := key[len(b.prefix):]
		for ; i < b.n; i++ {
			if !bytes.Equal(b.suffix(i), rest) {
				return dst
			}
			dst = append(dst, ix.position(blk, i))
		}
	}
	return dst
}

// FindPrefix appends the positions of all keys that begin with prefix (whole leading columns) to dst, in key order.
func (ix *Index) FindPrefix(dst []uint32, prefix []byte) []uint32 {
	blk, i := 0, 0
	switch {
	case ix.n == 0:
		return dst
	case bytes.HasPrefix(ix.common, prefix):
	case bytes.HasPrefix(prefix, ix.common):
		blk, i = ix.lowerBound(prefix)
	default:
		return dst
	}
	for ; blk < len(ix.heads); blk, i = blk+1, 0 {
		b := ix.block(blk)
		rest := []byte(nil)
		if len(prefix) > len(b.prefix) {
			if !bytes.HasPrefix(prefix, b.prefix) {
				return dst
			}
			rest = prefix[len(b.prefix):]
		} else if !bytes.HasPrefix(b.prefix, prefix) {
			return dst
		}
		for ; i < b.n; i++ {
			if !bytes.HasPrefix(b.suffix(i), rest) {
				return dst
			}
			dst = append(dst, ix.position(blk, i))
		}
	}
	return dst
}

// FindBatch probes keys and calls yield with each hit's ordinal in keys, until yield returns false. Ascending keys probe
// neighbouring blocks and are fastest.
func (ix *Index) FindBatch(keys [][]byte, yield func(ord int, pos uint32) bool) {
	var buf [8]uint32
	for ord, k := range keys {
		for _, p := range ix.Find(buf[:0], k) {
			if !yield(ord, p) {
				return
			}
		}
	}
}
