package keyindex

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

// The layout's constants; docs/format/keyindex.md has the byte table.
const (
	magic        = "SKKEYIX"
	version      = 2
	headerSize   = 40
	columnSize   = 24
	trailerSize  = 8
	slack        = 8 // bytes behind the sections, so that a bit field is read with one load
	blockEntries = 128

	flagOrdinals = 1 << 0 // an entry's position is its ordinal: the file is sorted by the key
	flagExact    = 1 << 1 // packed keys, else fingerprints

	bucketEntries   = 16  // about how many fingerprints share a bucket
	fingerprintBits = 20  // at least
	sparseEntries   = 512 // a sorted file of fingerprints has every so many a key
	sparseBytes     = 32  // of it
)

// Hash makes fingerprints. It is a variable so that tests can make them collide.
var Hash = xxh3.Hash

// Source binds an index to the one data file it was built from.
type Source struct {
	Size int64  // the file's length in bytes
	Hash uint64 // of its name and its footer
}

// Builder builds an index from keys in any order; ascending ones need no sorting, and of a file that is sorted no position is kept. It holds about eight
// bytes a key and key column, and four for the position. Not safe for concurrent use.
type Builder struct {
	columns []Column
	n       uint64
	ordinal bool // so far keys ascend and every position equals its ordinal

	vals     []uint64 // the keys as numbers, len(columns) each; nil once one has no room in a packing
	exact    bool
	min, max []uint64
	hashes   []uint64 // nil when the packing cannot fail
	pos      []uint32 // nil while ordinal
	last     []byte
	sparse   [][]byte
}

// NewBuilder makes an empty builder for keys of the given columns.
func NewBuilder(cols []Column) *Builder {
	b := &Builder{columns: cols, ordinal: true, exact: len(cols) > 0, min: make([]uint64, len(cols)), max: make([]uint64, len(cols))}
	for _, c := range cols {
		b.exact = b.exact && c.packable()
	}
	return b
}

// certain says that any keys can be packed: nothing is kept for the case that they cannot.
func (b *Builder) certain() bool {
	return b.exact && len(b.columns) == 1 && b.columns[0].Kind != KindDecimal
}

// Add appends one entry.
func (b *Builder) Add(key []byte, pos uint32) error {
	if b.n == math.MaxUint32 {
		return ErrTooManyRows
	}
	if b.ordinal && (uint64(pos) != b.n || b.n > 0 && bytes.Compare(b.last, key) > 0) {
		b.ordinal, b.sparse, b.last = false, nil, nil
		b.pos = make([]uint32, b.n, max(2*b.n, 64))
		for i := range b.pos {
			b.pos[i] = uint32(i)
		}
	}
	if b.ordinal {
		b.last = append(b.last[:0], key...)
		if b.n%sparseEntries == 0 && !b.certain() {
			b.sparse = append(b.sparse, bytes.Clone(key[:min(len(key), sparseBytes)]))
		}
	} else {
		b.pos = append(b.pos, pos)
	}
	if b.exact {
		b.addNumbers(key)
	}
	if !b.certain() {
		b.hashes = append(b.hashes, Hash(key))
	}
	b.n++
	return nil
}

func (b *Builder) addNumbers(key []byte) {
	at := len(b.vals)
	var ok bool
	if b.vals, ok = numbers(b.vals, b.columns, key); !ok {
		b.exact, b.vals = false, nil
		return
	}
	width := 0
	for i, v := range b.vals[at:] {
		if b.n == 0 {
			b.min[i], b.max[i] = v, v
		}
		b.min[i], b.max[i] = min(b.min[i], v), max(b.max[i], v)
		width += bits.Len64(b.max[i] - b.min[i])
	}
	if width > 64 {
		b.exact, b.vals = false, nil
	}
}

// Len is the number of entries added.
func (b *Builder) Len() int { return int(b.n) }

// entry is a packed key or a hash, and its row.
type entry struct {
	key uint64
	pos uint32
}

// Finish returns the encoded index of a data file. The builder must not be used afterwards.
func (b *Builder) Finish(of Source) ([]byte, error) {
	flags := uint32(0)
	if b.ordinal {
		flags |= flagOrdinals
	}
	if b.exact {
		flags |= flagExact
	}
	out := append(make([]byte, 0, headerSize+8*b.n), magic...)
	out = append(out, version)
	out = binary.LittleEndian.AppendUint32(out, flags)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.columns)))
	out = binary.LittleEndian.AppendUint64(out, b.n)
	out = binary.LittleEndian.AppendUint64(out, uint64(of.Size))
	out = binary.LittleEndian.AppendUint64(out, of.Hash)
	pk := make(packing, len(b.columns))
	for i, c := range b.columns {
		if b.exact {
			pk[i] = packedColumn{b.min[i], uint8(bits.Len64(b.max[i] - b.min[i]))}
		}
		out = append(out, byte(c.Kind), byte(c.Unit))
		out = binary.LittleEndian.AppendUint16(out, c.Width)
		out = binary.LittleEndian.AppendUint32(out, uint32(c.FieldID))
		out = binary.LittleEndian.AppendUint64(out, pk[i].min)
		out = binary.LittleEndian.AppendUint64(out, uint64(pk[i].bits))
	}
	if b.exact {
		out = b.appendExact(out, pk)
	} else {
		out = b.appendFingerprints(out)
	}
	return seal(append(out, make([]byte, slack)...)), nil
}

// entries are all entries by key and position.
func (b *Builder) entries(key func(i int) uint64) []entry {
	es := make([]entry, b.n)
	for i := range es {
		es[i] = entry{key(i), uint32(i)}
		if b.pos != nil {
			es[i].pos = b.pos[i]
		}
	}
	return es
}

func sortEntries(es []entry) {
	slices.SortFunc(es, func(a, b entry) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.pos, b.pos)
	})
}

// appendExact writes blocks of keys, each as the distance from its block's first in as many bits as the largest takes.
func (b *Builder) appendExact(out []byte, pk packing) []byte {
	c := len(b.columns)
	es := b.entries(func(i int) uint64 {
		x, _ := pk.pack(b.vals[i*c : (i+1)*c])
		return x
	})
	b.vals, b.hashes = nil, nil
	if !b.ordinal {
		sortEntries(es)
	}
	blocks := (len(es) + blockEntries - 1) / blockEntries
	var heads, offsets []byte
	w := bitWriter{out: make([]byte, 0, len(es))}
	for i := range blocks {
		blk := es[i*blockEntries : min((i+1)*blockEntries, len(es))]
		width := uint(bits.Len64(blk[len(blk)-1].key - blk[0].key))
		heads = binary.LittleEndian.AppendUint64(heads, blk[0].key)
		offsets = binary.LittleEndian.AppendUint64(offsets, uint64(len(w.out))<<8|uint64(width))
		for _, e := range blk {
			w.add(e.key-blk[0].key, width)
		}
		w.flush()
	}
	offsets = binary.LittleEndian.AppendUint64(offsets, uint64(len(w.out))<<8)
	out = append(append(append(out, heads...), offsets...), w.out...)
	if b.ordinal {
		return out
	}
	pw := b.posBits()
	p := bitWriter{out: binary.LittleEndian.AppendUint64(out, uint64(pw))}
	for _, e := range es {
		p.add(uint64(e.pos), pw)
	}
	p.flush()
	return p.out
}

// posBits is how many bits a position takes.
func (b *Builder) posBits() uint {
	top := uint32(max(b.n, 1) - 1)
	for _, p := range b.pos {
		top = max(top, p)
	}
	return uint(bits.Len32(top))
}

// shape is how fingerprints are laid out: buckets by the top bits of a hash; an entry is the next bits of it over the position.
type shape struct {
	dirBits, posBits uint
	entry            int // bytes
}

func (s shape) fpBits() uint           { return uint(s.entry)*8 - s.posBits }
func (s shape) bucket(h uint64) uint64 { return h >> (64 - s.dirBits) & ones(s.dirBits) }
func (s shape) print(h uint64) uint64  { return h << s.dirBits >> (64 - s.fpBits()) }
func shapeOf(n uint64, pw uint) shape  { return shape{dirBitsOf(n), pw, int(fingerprintBits+pw+7) / 8} }
func dirBitsOf(n uint64) uint          { return uint(bits.Len64((max(n, 1) - 1) / bucketEntries)) }
func (s shape) at(b []byte, i int) uint64 {
	return binary.LittleEndian.Uint64(b[i*s.entry:]) & ones(uint(s.entry)*8)
}

// appendFingerprints writes the directory and the entries of every bucket, ascending: hashes are dealt out to their buckets and sorted there.
func (b *Builder) appendFingerprints(out []byte) []byte {
	s := shapeOf(b.n, b.posBits())
	out = binary.LittleEndian.AppendUint64(out, uint64(s.posBits))
	dir := make([]uint32, 1<<s.dirBits+1)
	for _, h := range b.hashes {
		dir[s.bucket(h)+1]++
	}
	for i := 1; i < len(dir); i++ {
		dir[i] += dir[i-1]
	}
	for _, d := range dir {
		out = binary.LittleEndian.AppendUint32(out, d)
	}
	es := make([]uint64, b.n)
	for i, h := range b.hashes {
		pos := uint32(i)
		if b.pos != nil {
			pos = b.pos[i]
		}
		at := &dir[s.bucket(h)]
		es[*at] = s.print(h)<<s.posBits | uint64(pos)
		*at++ // afterwards dir holds the ends
	}
	b.vals, b.hashes = nil, nil
	start := uint32(0)
	for _, end := range dir[:len(dir)-1] {
		slices.Sort(es[start:end])
		start = end
	}
	for _, e := range es {
		var x [8]byte
		binary.LittleEndian.PutUint64(x[:], e)
		out = append(out, x[:s.entry]...)
	}
	if !b.ordinal {
		return out
	}
	end := uint32(0)
	for _, k := range b.sparse {
		end += uint32(len(k))
		out = binary.LittleEndian.AppendUint32(out, end)
	}
	for _, k := range b.sparse {
		out = append(out, k...)
	}
	return out
}

// seal appends the checksum trailer.
func seal(body []byte) []byte { return binary.LittleEndian.AppendUint64(body, xxh3.Hash(body)) }
