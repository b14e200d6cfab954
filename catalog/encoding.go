package catalog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"sort"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// The envelope of every value in the store: kind, version, payload, CRC-32C of all before it (docs/format/catalog.md).
const (
	kindMeta      = 'M'
	kindHead      = 'H'
	kindNamespace = 'N'
	kindTable     = 'T'
	kindObject    = 'O'
	kindRecord    = 'R'
	kindCommit    = 'C'
	kindFile      = 'W'
	kindTombstone = 'X'
	kindDropped   = 'D'
	kindSequence  = 'Q'
	kindFeed      = 'F'
	kindRedo      = 'G'

	formatVersion = 1
	// folderVersion is the version of the folder, in the value of kind M: 2 since redo values.
	folderVersion = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer appends the fields of one value.
type writer struct{ b []byte }

func newWriter(kind byte) *writer {
	return &writer{b: append(make([]byte, 0, 256), kind, formatVersion)}
}

func (w *writer) fixed64(v uint64)  { w.b = binary.BigEndian.AppendUint64(w.b, v) }
func (w *writer) uvarint(v uint64)  { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) varint(v int64)    { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) string(s string)   { w.uvarint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) bytes(p []byte)    { w.uvarint(uint64(len(p))); w.b = append(w.b, p...) }
func (w *writer) uuid(id uuid.UUID) { w.b = append(w.b, id[:]...) }

func (w *writer) ident(id table.Identifier) {
	w.uvarint(uint64(len(id)))
	for _, part := range id {
		w.string(part)
	}
}

func (w *writer) optional(v *int64) {
	if v == nil {
		w.b = append(w.b, 0)
		return
	}
	w.b = append(w.b, 1)
	w.varint(*v)
}

func (w *writer) props(p iceberg.Properties) {
	keys := make([]string, 0, len(p))
	for k := range p {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	w.uvarint(uint64(len(keys)))
	for _, k := range keys {
		w.string(k)
		w.string(p[k])
	}
}

// seal ends the value.
func (w *writer) seal() []byte {
	return binary.BigEndian.AppendUint32(w.b, crc32.Checksum(w.b, castagnoli))
}

// reader takes the fields of one value apart. The first error sticks; every length is checked against what is left, so no
// input makes it allocate more than its own size.
type reader struct {
	b   []byte
	err error
}

func newReader(kind byte, value []byte) *reader {
	r := &reader{}
	switch {
	case len(value) < 6:
		r.fail("value of %d bytes", len(value))
	case value[0] != kind:
		r.fail("value of kind %q, not %q", value[0], kind)
	case value[1] != formatVersion && (kind != kindMeta || value[1] != folderVersion):
		r.fail("value of version %d, this program reads %d", value[1], formatVersion)
	case crc32.Checksum(value[:len(value)-4], castagnoli) != binary.BigEndian.Uint32(value[len(value)-4:]):
		r.fail("checksum does not match")
	default:
		r.b = value[2 : len(value)-4]
	}
	return r
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.b = nil
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("field of %d bytes, %d left", n, len(r.b))
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) fixed64() uint64 {
	p := r.take(8)
	if p == nil {
		return 0
	}
	return binary.BigEndian.Uint64(p)
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("bad integer")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail("bad integer")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.take(r.uvarint())) }

func (r *reader) bytes() []byte {
	p := r.take(r.uvarint())
	if len(p) == 0 {
		return nil
	}
	return append([]byte(nil), p...)
}

func (r *reader) uuid() (id uuid.UUID) {
	copy(id[:], r.take(16))
	return id
}

func (r *reader) uint32() uint32 {
	v := r.uvarint()
	if v > math.MaxUint32 {
		r.fail("%d does not fit 32 bits", v)
		return 0
	}
	return uint32(v)
}

// count reads a number of elements of at least one byte each.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail("%d elements in %d bytes", n, len(r.b))
		return 0
	}
	return int(n)
}

func (r *reader) ident() table.Identifier {
	n := r.count()
	if n == 0 {
		return nil
	}
	id := make(table.Identifier, n)
	for i := range id {
		id[i] = r.string()
	}
	return id
}

func (r *reader) optional() *int64 {
	p := r.take(1)
	switch {
	case p == nil:
		return nil
	case p[0] == 0:
		return nil
	case p[0] != 1:
		r.fail("bad flag %d", p[0])
		return nil
	}
	v := r.varint()
	return &v
}

func (r *reader) props() iceberg.Properties {
	n := r.count()
	p := make(iceberg.Properties, n)
	for range n {
		k := r.string()
		p[k] = r.string()
	}
	return p
}

// done returns the first error; bytes left over are one.
func (r *reader) done() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail("%d bytes left over", len(r.b))
	}
	return r.err
}
