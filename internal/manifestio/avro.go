package manifestio

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Avro's binary encoding. Source: Avro 1.11 specification, "Binary Encoding" and "Object Container Files".

func appendLong(b []byte, v int64) []byte {
	return binary.AppendUvarint(b, uint64(v)<<1^uint64(v>>63))
}

func appendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(appendLong(b, int64(len(v))), v...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendFloat(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

func appendDouble(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

// Every union here is ["null", T].
func appendNull(b []byte) []byte { return append(b, 0) }
func appendSome(b []byte) []byte { return append(b, 2) }

func appendOptLong(b []byte, v *int64) []byte {
	if v == nil {
		return appendNull(b)
	}
	return appendLong(appendSome(b), *v)
}

func appendOptBytes(b, v []byte) []byte {
	if v == nil {
		return appendNull(b)
	}
	return appendBytes(appendSome(b), v)
}

// appendOptMap writes Iceberg's maps with int keys: an array of pairs, here in the keys' order. nil is null.
func appendOptMap[V any](b []byte, m map[int]V, value func([]byte, V) []byte) []byte {
	if m == nil {
		return appendNull(b)
	}
	b = appendSome(b)
	if len(m) > 0 {
		b = appendLong(b, int64(len(m)))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			b = value(appendLong(b, int64(k)), m[k])
		}
	}
	return appendLong(b, 0)
}

func appendOptArray[V any](b []byte, vs []V, value func([]byte, V) []byte) []byte {
	if vs == nil {
		return appendNull(b)
	}
	b = appendSome(b)
	if len(vs) > 0 {
		b = appendLong(b, int64(len(vs)))
		for _, v := range vs {
			b = value(b, v)
		}
	}
	return appendLong(b, 0)
}

// A container of one block below plainBlock bytes is not compressed; one below fastBlock is compressed fast.
const (
	plainBlock = 4 << 10
	fastBlock  = 32 << 10
)

// blockSize is where a block of a container file ends, in bytes before compression.
const blockSize = 64 << 10

type deflater struct {
	buf bytes.Buffer
	w   *flate.Writer
}

// deflaters are kept because their state is large: one pool for small blocks, one for others.
var fastDeflaters, deflaters = deflaterPool(flate.BestSpeed), deflaterPool(flate.DefaultCompression)

func deflaterPool(level int) *sync.Pool {
	return &sync.Pool{New: func() any {
		d := new(deflater)
		d.w, _ = flate.NewWriter(&d.buf, level) // fails for unknown levels only
		return d
	}}
}

// container writes one Avro container file.
type container struct {
	out   io.Writer
	meta  map[string][]byte // nil once the header is written
	plain bool              // not compressed
	n     int64             // bytes written
	sync  [16]byte
	block []byte
	rows  int64
}

// newContainer begins a file. meta holds avro.schema; the codec is added when the first block ends.
func newContainer(out io.Writer, meta map[string][]byte) *container {
	c := &container{out: out, meta: meta}
	_, _ = rand.Read(c.sync[:]) // never fails
	return c
}

// header is the file's beginning.
func (c *container) header() []byte {
	codec := "deflate"
	if c.plain = len(c.block) < plainBlock; c.plain {
		codec = "null"
	}
	b := append(make([]byte, 0, 8<<10), "Obj\x01"...)
	b = appendLong(b, int64(len(c.meta)+1))
	for _, k := range slices.Sorted(maps.Keys(c.meta)) {
		b = appendBytes(appendBytes(b, k), c.meta[k])
	}
	b = appendBytes(appendBytes(b, "avro.codec"), codec)
	return append(appendLong(b, 0), c.sync[:]...)
}

func (c *container) write(b []byte) error {
	n, err := c.out.Write(b)
	c.n += int64(n)
	return err
}

// end writes what is left; a file without records has a header too.
func (c *container) end() error {
	if c.rows == 0 && c.meta != nil {
		return c.write(c.header())
	}
	return c.flush()
}

// record ends a record that was appended to block.
func (c *container) record() error {
	c.rows++
	if len(c.block) < blockSize {
		return nil
	}
	return c.flush()
}

func (c *container) flush() error {
	if c.rows == 0 {
		return nil
	}
	var out []byte
	if c.meta != nil {
		out = c.header()
		c.meta = nil
	}
	if c.plain {
		out = appendLong(appendLong(out, c.rows), int64(len(c.block)))
		out = append(append(out, c.block...), c.sync[:]...)
		c.block, c.rows = c.block[:0], 0
		return c.write(out)
	}
	pool := deflaters
	if len(c.block) < fastBlock {
		pool = fastDeflaters
	}
	d, _ := pool.Get().(*deflater)
	defer pool.Put(d)
	d.buf.Reset()
	d.w.Reset(&d.buf)
	if _, err := d.w.Write(c.block); err != nil {
		return err
	}
	if err := d.w.Close(); err != nil {
		return err
	}
	out = appendLong(appendLong(out, c.rows), int64(d.buf.Len()))
	out = append(append(out, d.buf.Bytes()...), c.sync[:]...)
	c.block, c.rows = c.block[:0], 0
	return c.write(out)
}
