package keyindex

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
)

// Encoder encodes the key columns of one record batch. Not safe for concurrent use.
type Encoder struct{ _ int }

// Option changes an Encoder.
type Option func(*Encoder)

// WithNulls admits NULL in key columns; each column then carries a presence byte.
func WithNulls() Option { return func(*Encoder) {} }

// NewEncoder prepares the encoding of columns cols (indices into rec) of rec.
func NewEncoder(rec arrow.RecordBatch, cols []int, opts ...Option) (*Encoder, error) {
	return nil, ErrUnsupportedType
}

// Append appends row's key to dst. It allocates only when dst must grow.
func (e *Encoder) Append(dst []byte, row int) ([]byte, error) { return dst, ErrUnsupportedType }

// AppendKey appends the key of one row to dst; for many rows make an Encoder once.
func AppendKey(dst []byte, rec arrow.RecordBatch, cols []int, row int) ([]byte, error) {
	return dst, ErrUnsupportedType
}

// AppendLiteral appends one column's encoding of a literal. A nil literal is NULL.
func AppendLiteral(dst []byte, lit iceberg.Literal) ([]byte, error) { return dst, ErrUnsupportedType }

// Builder builds an index from keys in ascending order.
type Builder struct{ _ int }

// NewBuilder makes an empty builder for keys of the given Iceberg column types.
func NewBuilder(types []iceberg.Type) (*Builder, error) { return nil, ErrUnsupportedType }

// Add appends one entry; keys ascend, positions of equal keys ascend too.
func (b *Builder) Add(key []byte, pos uint32) error { return nil }

// Finish returns the encoded index.
func (b *Builder) Finish() ([]byte, error) { return nil, nil }

// Index is an immutable map from keys to positions. Safe for concurrent use.
type Index struct{ _ int }

// Decode checks data and returns an index over it; data must not change afterwards.
func Decode(data []byte) (*Index, error) { return nil, &FormatError{} }

// Len is the number of entries.
func (ix *Index) Len() int { return 0 }

// Size is the number of bytes the index holds.
func (ix *Index) Size() int { return 0 }

// Find appends the positions of key to dst, ascending.
func (ix *Index) Find(dst []uint32, key []byte) []uint32 { return dst }

// FindPrefix appends the positions of all keys that begin with prefix (whole leading columns) to dst, in key order.
func (ix *Index) FindPrefix(dst []uint32, prefix []byte) []uint32 { return dst }

// FindBatch probes keys in ascending order and calls yield with each hit's ordinal in keys.
func (ix *Index) FindBatch(keys [][]byte, yield func(ord int, pos uint32) bool) {}
