package keyindex

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/zeebo/xxh3"
)

// The layout's constants; docs/format/keyindex.md has the byte table.
const (
	magic        = "SKKEYIX"
	version      = 1
	headerSize   = 36
	columnSize   = 8
	trailerSize  = 8
	blockEntries = 128
	blockHeader  = 6

	flagOrdinals = 1 << 0 // an entry's position is its ordinal: the file is sorted by the key

	suffixFixed = 0
	suffixVar16 = 1
	suffixVar32 = 2
)

// Builder builds an index from keys in ascending order. Not safe for concurrent use.
type Builder struct {
	columns []Column
	n       uint64
	ordinal bool // so far every position equals its ordinal

	keys []byte // the open block's keys, one after the other
	ends []uint32
	last []byte

	firsts  [][]byte // first key of each block
	offsets []uint32
	data    []byte
	posData []uint32
}

// NewBuilder makes an empty builder for keys of the given columns.
func NewBuilder(cols []Column) *Builder {
	return &Builder{columns: cols, ordinal: true}
}

// Add appends one entry; keys ascend, and so do positions of equal keys.
func (b *Builder) Add(key []byte, pos uint32) error {
	if b.n > 0 {
		if c := bytes.Compare(b.last, key); c > 0 || c == 0 && pos <= b.posData[b.n-1] {
			return ErrNotSorted
		}
	}
	if b.n == math.MaxUint32 {
		return ErrTooManyRows
	}
	if uint64(pos) != b.n {
		b.ordinal = false
	}
	b.last = append(b.last[:0], key...)
	b.keys = append(b.keys, key...)
	b.ends = append(b.ends, uint32(len(b.keys)))
	b.posData = append(b.posData, pos)
	b.n++
	if len(b.ends) == blockEntries {
		b.flush()
	}
	return nil
}

// Len is the number of entries added.
func (b *Builder) Len() int { return int(b.n) }

// flush encodes the open block: the keys' shared prefix once, then their suffixes so that any entry is reached directly.
func (b *Builder) flush() {
	n := len(b.ends)
	if n == 0 {
		return
	}
	first := b.keys[:b.ends[0]]
	prefix := sharedPrefix(first, b.key(n-1))
	fixed, width, total := true, len(first)-prefix, 0
	for i := range n {
		l := len(b.key(i)) - prefix
		total += l
		fixed = fixed && l == width
	}
	mode := byte(suffixFixed)
	switch {
	case fixed && width <= math.MaxUint16:
	case total <= math.MaxUint16:
		mode, width = suffixVar16, 0
	default:
		mode, width = suffixVar32, 0
	}
	b.offsets = append(b.offsets, uint32(len(b.data)))
	b.firsts = append(b.firsts, bytes.Clone(first))
	b.data = binary.LittleEndian.AppendUint16(b.data, uint16(prefix))
	b.data = append(b.data, byte(n), mode)
	b.data = binary.LittleEndian.AppendUint16(b.data, uint16(width))
	b.data = append(b.data, first[:prefix]...)
	end := 0
	for i := range n {
		end += len(b.key(i)) - prefix
		switch mode {
		case suffixVar16:
			b.data = binary.LittleEndian.AppendUint16(b.data, uint16(end))
		case suffixVar32:
			b.data = binary.LittleEndian.AppendUint32(b.data, uint32(end))
		}
	}
	for i := range n {
		b.data = append(b.data, b.key(i)[prefix:]...)
	}
	b.keys, b.ends = b.keys[:0], b.ends[:0]
}

func (b *Builder) key(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.keys[start:b.ends[i]]
}

func sharedPrefix(x, y []byte) int {
	n := min(len(x), len(y), math.MaxUint16)
	for i := range n {
		if x[i] != y[i] {
			return i
		}
	}
	return n
}

// Finish returns the encoded index. The builder must not be used afterwards.
func (b *Builder) Finish() ([]byte, error) {
	b.flush()
	if len(b.data) > math.MaxUint32 {
		return nil, ErrTooManyRows
	}
	b.offsets = append(b.offsets, uint32(len(b.data)))
	var common []byte
	if len(b.firsts) > 0 {
		common = b.firsts[0][:sharedPrefix(b.firsts[0], b.last)]
	}
	flags := uint32(0)
	if b.ordinal {
		flags |= flagOrdinals
	}
	out := make([]byte, 0, headerSize+len(b.columns)*columnSize+len(common)+len(b.firsts)*12+len(b.data)+len(b.posData)*4+trailerSize)
	out = append(out, magic...)
	out = append(out, version)
	out = binary.LittleEndian.AppendUint32(out, flags)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.columns)))
	out = binary.LittleEndian.AppendUint64(out, b.n)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.firsts)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b.data)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(common)))
	for _, c := range b.columns {
		out = append(out, byte(c.Kind), byte(c.Unit))
		out = binary.LittleEndian.AppendUint16(out, c.Width)
		out = binary.LittleEndian.AppendUint32(out, uint32(c.FieldID))
	}
	out = append(out, common...)
	for _, f := range b.firsts {
		out = binary.LittleEndian.AppendUint64(out, head(f[len(common):]))
	}
	for _, o := range b.offsets {
		out = binary.LittleEndian.AppendUint32(out, o)
	}
	out = append(out, b.data...)
	if !b.ordinal {
		for _, p := range b.posData {
			out = binary.LittleEndian.AppendUint32(out, p)
		}
	}
	return seal(out), nil
}

// head is the first eight bytes of k as a number that orders like k does, shorter keys padded with zeros.
func head(k []byte) uint64 {
	if len(k) >= 8 {
		return binary.BigEndian.Uint64(k)
	}
	var h uint64
	for i, c := range k {
		h |= uint64(c) << (56 - 8*i)
	}
	return h
}

// seal appends the checksum trailer.
func seal(body []byte) []byte { return binary.LittleEndian.AppendUint64(body, xxh3.Hash(body)) }
