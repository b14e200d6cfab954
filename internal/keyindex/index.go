package keyindex

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Index is an immutable map from keys to positions (K1, K2). Safe for concurrent use.
type Index struct {
	columns []Column
	source  Source
	n       int
	ordinal bool // an entry's position is its ordinal in key order

	// Exact: packed keys in blocks.
	pack    packing
	heads   []uint64
	offsets []byte // blocks+1 of offset<<8 | width
	data    []byte
	posData []byte // posBits each, unless ordinal
	posBits uint

	// Fingerprints.
	shape   shape
	dir     []byte // u32 each
	entries []byte
	sparse  [][]byte // the first bytes of every 512th key, when ordinal

	size int
}

// Decode checks data (K3) and returns an index over it; data must not change afterwards. Errors: ErrVersion for an index of an older layout, else a *FormatError.
func Decode(data []byte) (*Index, error) {
	r := formatReader{data: data}
	if len(data) < headerSize+slack+trailerSize {
		return nil, r.fail("shorter than a header")
	}
	if string(data[:len(magic)]) != magic {
		return nil, r.fail("no magic")
	}
	switch v := data[len(magic)]; {
	case v == 1:
		return nil, ErrVersion
	case v != version:
		r.at = len(magic)
		return nil, r.fail("unknown version")
	}
	body := data[:len(data)-trailerSize]
	if xxh3.Hash(body) != binary.LittleEndian.Uint64(data[len(body):]) {
		r.at = len(body)
		return nil, r.fail("checksum does not match")
	}
	r.data, r.at = body[:len(body)-slack], len(magic)+1
	flags, ncols := r.u32(), r.u32()
	n := r.u64()
	ix := &Index{n: int(n), ordinal: flags&flagOrdinals != 0, size: len(data)}
	ix.source = Source{Size: int64(r.u64()), Hash: r.u64()}
	if n > 1<<32-1 {
		return nil, r.fail("too many entries")
	}
	cols := r.bytes(int(min(ncols, 1<<16)) * columnSize)
	for i := 0; i < len(cols); i += columnSize {
		c := cols[i:]
		ix.columns = append(ix.columns, Column{
			Kind: Kind(c[0]), Unit: Unit(c[1]), Width: binary.LittleEndian.Uint16(c[2:]), FieldID: int32(binary.LittleEndian.Uint32(c[4:])),
		})
		if flags&flagExact != 0 {
			ix.pack = append(ix.pack, packedColumn{binary.LittleEndian.Uint64(c[8:]), uint8(min(binary.LittleEndian.Uint64(c[16:]), 255))})
		}
	}
	var err error
	if flags&flagExact != 0 {
		err = ix.decodeExact(&r)
	} else {
		err = ix.decodeFingerprints(&r)
	}
	if err == nil && (r.bad || r.at != len(r.data)) {
		err = r.fail("sizes do not add up")
	}
	if err != nil {
		return nil, err
	}
	return ix, nil
}

func (ix *Index) decodeExact(r *formatReader) error {
	if len(ix.pack) == 0 || ix.pack.width() > 64 {
		return r.fail("keys of more than 64 bits")
	}
	for _, c := range ix.columns {
		if !c.packable() {
			return r.fail("a column that is no number")
		}
	}
	blocks := (ix.n + blockEntries - 1) / blockEntries
	heads := r.bytes(blocks * 8)
	ix.offsets = r.bytes((blocks + 1) * 8)
	if r.bad {
		return r.fail("sizes do not add up")
	}
	ix.heads = make([]uint64, blocks)
	for i := range ix.heads {
		ix.heads[i] = binary.LittleEndian.Uint64(heads[i*8:])
	}
	at := uint64(0)
	for i := range blocks {
		off, width := ix.offset(i)
		if off != at || width > 64 {
			return r.fail("block offsets do not fit")
		}
		at += (uint64(min(blockEntries, ix.n-i*blockEntries))*uint64(width) + 7) / 8
	}
	if off, _ := ix.offset(blocks); off != at {
		return r.fail("block offsets do not fit")
	}
	ix.data = r.loose(int(at))
	if !ix.ordinal {
		ix.posBits = uint(min(r.u64(), 64))
		if ix.posBits > 32 {
			return r.fail("positions of more than 32 bits")
		}
		ix.posData = r.loose(int((uint64(ix.n)*uint64(ix.posBits) + 7) / 8))
	}
	return nil
}

func (ix *Index) decodeFingerprints(r *formatReader) error {
	pw := uint(min(r.u64(), 64))
	if pw > 32 || len(ix.columns) == 0 {
		return r.fail("positions of more than 32 bits")
	}
	s := shapeOf(uint64(ix.n), pw)
	ix.shape = s
	ix.dir = r.bytes((1<<s.dirBits + 1) * 4)
	ix.entries = r.loose(ix.n * s.entry)
	if r.bad {
		return r.fail("sizes do not add up")
	}
	last := uint32(0)
	for i := 0; i < len(ix.dir); i += 4 {
		d := binary.LittleEndian.Uint32(ix.dir[i:])
		if d < last || i == 0 && d != 0 {
			return r.fail("buckets do not ascend")
		}
		last = d
	}
	if int(last) != ix.n {
		return r.fail("buckets do not hold the entries")
	}
	if !ix.ordinal {
		return nil
	}
	k := (ix.n + sparseEntries - 1) / sparseEntries
	ends := r.bytes(k * 4)
	if r.bad {
		return r.fail("sizes do not add up")
	}
	ix.sparse = make([][]byte, k)
	start := uint32(0)
	for i := range ix.sparse {
		end := binary.LittleEndian.Uint32(ends[i*4:])
		if end < start {
			return r.fail("keys do not ascend")
		}
		ix.sparse[i] = r.bytes(int(end - start))
		start = end
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

// loose is bytes that may be read sixteen bytes behind their end: slack and trailer stand there at least.
func (r *formatReader) loose(n int) []byte {
	b := r.bytes(n)
	if b == nil {
		return nil
	}
	return r.data[r.at-n : r.at+slack+trailerSize]
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

// Len is the number of entries.
func (ix *Index) Len() int { return ix.n }

// Size is the number of bytes of memory the index holds.
func (ix *Index) Size() int {
	return ix.size + len(ix.heads)*8 + len(ix.sparse)*24 + int(unsafe.Sizeof(*ix))
}

// Columns are the key columns the index was built for.
func (ix *Index) Columns() []Column { return ix.columns }

// Source is the data file the index was built from.
func (ix *Index) Source() Source { return ix.source }

// Exact says that Find names the rows of a key and no others. Else it names all of them and, with a chance of less than one in 30,000 a probe, another.
func (ix *Index) Exact() bool { return ix.pack != nil }

// Find appends the positions that a key may have to dst, ascending.
func (ix *Index) Find(dst []uint32, key []byte) []uint32 {
	if ix.n == 0 {
		return dst
	}
	if ix.pack == nil {
		return ix.findPrint(dst, Hash(key))
	}
	var buf [4]uint64
	vals, ok := numbers(buf[:0], ix.columns, key)
	if !ok {
		return dst
	}
	if x, ok := ix.pack.pack(vals); ok {
		return ix.findRange(dst, x, x)
	}
	return dst
}

// FindPrefix appends the positions of all keys that begin with prefix, whole leading columns, in key order. ok is false when the index cannot tell: it
// holds fingerprints.
func (ix *Index) FindPrefix(dst []uint32, prefix []byte) (_ []uint32, ok bool) {
	if ix.pack == nil {
		return dst, false
	}
	var parts [8][]byte
	n := len(Split(parts[:0], ix.columns, prefix))
	var buf [4]uint64
	vals, ok := numbers(buf[:0], ix.columns[:n], prefix)
	if !ok || n == 0 || ix.n == 0 {
		return dst, true
	}
	if x, ok := ix.pack.pack(vals); ok {
		return ix.findRange(dst, x, x|ones(ix.pack.below(n))), true
	}
	return dst, true
}

// PrefixRange is where, in a file sorted by the key, keys that begin with prefix stand: at positions in [lo, hi), among others. ok is false when the index
// cannot tell.
func (ix *Index) PrefixRange(prefix []byte) (lo, hi uint32, ok bool) {
	if !ix.ordinal || ix.sparse == nil {
		return 0, uint32(ix.n), ix.n == 0
	}
	cut := prefix[:min(len(prefix), sparseBytes)]
	// A cut key is at most the key: keys from the first one ≥ prefix on begin in the stretch before, those past the prefix at the first cut above it.
	from := sort.Search(len(ix.sparse), func(i int) bool { return bytes.Compare(ix.sparse[i], cut) >= 0 })
	to := from + sort.Search(len(ix.sparse)-from, func(i int) bool {
		return bytes.Compare(ix.sparse[from+i], cut) > 0 && !bytes.HasPrefix(ix.sparse[from+i], cut)
	})
	return uint32(max(from-1, 0) * sparseEntries), uint32(min(to*sparseEntries, ix.n)), true
}

// offset is where block i begins in the data, and its bits a key.
func (ix *Index) offset(i int) (off uint64, width uint) {
	x := binary.LittleEndian.Uint64(ix.offsets[i*8:])
	return x >> 8, uint(x & 0xff)
}

func (ix *Index) position(ord int) uint32 {
	if ix.ordinal {
		return uint32(ord)
	}
	return uint32(bitsAt(ix.posData, uint64(ord)*uint64(ix.posBits), ix.posBits))
}

// findRange appends the positions of packed keys in [x, y].
func (ix *Index) findRange(dst []uint32, x, y uint64) []uint32 {
	blk, _ := slices.BinarySearch(ix.heads, x) // keys equal to a head may begin in the block before
	i := 0
	if blk > 0 {
		blk--
		i = ix.lowerBound(blk, x)
	}
	for ; blk < len(ix.heads); blk, i = blk+1, 0 {
		if ix.heads[blk] > y {
			return dst
		}
		off, width := ix.offset(blk)
		n := min(blockEntries, ix.n-blk*blockEntries)
		for ; i < n; i++ {
			if k := ix.heads[blk] + bitsAt(ix.data, off*8+uint64(i)*uint64(width), width); k > y {
				return dst
			}
			dst = append(dst, ix.position(blk*blockEntries+i))
		}
	}
	return dst
}

// lowerBound is the first entry of a block that is at least x, which its head is below.
func (ix *Index) lowerBound(blk int, x uint64) int {
	off, width := ix.offset(blk)
	x -= ix.heads[blk]
	lo, hi := 0, min(blockEntries, ix.n-blk*blockEntries)
	if bits.Len64(x) > int(width) {
		return hi
	}
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bitsAt(ix.data, off*8+uint64(mid)*uint64(width), width) < x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// findPrint appends the positions whose fingerprint is that of a hash.
func (ix *Index) findPrint(dst []uint32, h uint64) []uint32 {
	s := ix.shape
	b := s.bucket(h) * 4
	i, end := int(binary.LittleEndian.Uint32(ix.dir[b:])), int(binary.LittleEndian.Uint32(ix.dir[b+4:]))
	low := s.print(h) << s.posBits
	if end-i > 4*bucketEntries {
		i += sort.Search(end-i, func(k int) bool { return s.at(ix.entries, i+k) >= low })
	}
	for ; i < end; i++ {
		e := s.at(ix.entries, i)
		if e < low {
			continue
		}
		if e>>s.posBits != low>>s.posBits {
			break
		}
		dst = append(dst, uint32(e&ones(s.posBits)))
	}
	return dst
}
