package manifestio

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
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

// blockSize is where a block of a container file ends, in bytes before compression.
const blockSize = 64 << 10

type deflater struct {
	buf bytes.Buffer
	w   *flate.Writer
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.w, _ = flate.NewWriter(&d.buf, flate.DefaultCompression) // fails for unknown levels only
	return d
}}

// container writes one Avro container file.
type container struct {
	out   io.Writer
	n     int64 // bytes written
	sync  [16]byte
	block []byte
	rows  int64
}

// newContainer writes the header. meta holds avro.schema; the codec is added.
func newContainer(out io.Writer, meta map[string][]byte) (*container, error) {
	c := &container{out: out}
	_, _ = rand.Read(c.sync[:]) // never fails
	b := []byte("Obj\x01")
	b = appendLong(b, int64(len(meta)+1))
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		b = appendBytes(appendBytes(b, k), meta[k])
	}
	b = appendBytes(appendBytes(b, "avro.codec"), "deflate")
	b = append(appendLong(b, 0), c.sync[:]...)
	return c, c.write(b)
}

func (c *container) write(b []byte) error {
	n, err := c.out.Write(b)
	c.n += int64(n)
	return err
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
	d, _ := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.buf.Reset()
	d.w.Reset(&d.buf)
	if _, err := d.w.Write(c.block); err != nil {
		return err
	}
	if err := d.w.Close(); err != nil {
		return err
	}
	head := appendLong(appendLong(nil, c.rows), int64(d.buf.Len()))
	if err := c.write(head); err != nil {
		return err
	}
	if err := c.write(d.buf.Bytes()); err != nil {
		return err
	}
	c.block, c.rows = c.block[:0], 0
	return c.write(c.sync[:])
}
