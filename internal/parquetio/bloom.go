package parquetio

import (
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/cespare/xxhash/v2"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// Bloom is the bloom filter of one column in one row group. Safe for concurrent use.
type Bloom struct {
	f    metadata.BloomFilter
	phys parquet.Type
	none bool
}

// KeyHash is a key part hashed the ways a column may store it, so that many filters are asked for one hash.
type KeyHash struct {
	kind keyindex.Kind
	long uint64 // of the eight-byte integer, or of the bytes
	int  uint64 // of the four-byte integer
	fits bool   // the value fits four bytes
}

// HashKey hashes a key part as Parquet's bloom filters do: XXH64 of the PLAIN value.
func HashKey(part []byte, c keyindex.Column) KeyHash {
	h := KeyHash{kind: c.Kind}
	switch c.Kind {
	case keyindex.KindLong:
		var b [8]byte
		v := keyindex.DecodeLong(part)
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		h.long, h.int, h.fits = xxhash.Sum64(b[:]), xxhash.Sum64(b[:4]), int64(int32(v)) == v
	case keyindex.KindBytes:
		var buf [64]byte
		h.long = xxhash.Sum64(keyindex.DecodeBytes(buf[:0], part))
	case keyindex.KindFixed:
		h.long = xxhash.Sum64(part)
	}
	return h
}

// MayContain tells whether the column may hold the value. It is true when the column's type is not hashed the way keys can be turned back into.
func (b *Bloom) MayContain(h KeyHash) bool {
	if b == nil || b.none {
		return true
	}
	switch {
	case h.kind == keyindex.KindLong && b.phys == parquet.Types.Int32:
		return h.fits && b.f.CheckHash(h.int)
	case h.kind == keyindex.KindLong && b.phys == parquet.Types.Int64,
		h.kind == keyindex.KindBytes && b.phys == parquet.Types.ByteArray,
		h.kind == keyindex.KindFixed && b.phys == parquet.Types.FixedLenByteArray:
		return b.f.CheckHash(h.long)
	}
	return true
}

// Size is the filter's size in bytes of memory.
func (b *Bloom) Size() int64 {
	if b.none {
		return 16
	}
	return b.f.Size() + 64
}

// Blooms reads the filters of the column with a field id, one per row group; nil when it has none. The caller keeps them.
func (r *Reader) Blooms(ctx context.Context, id int) (out []*Bloom, err error) {
	f := r.fieldByID(id, nil)
	if f == nil || f.flat == nil || !r.hasIDs {
		return nil, nil
	}
	defer r.guard(&err)
	pq, err := r.open(r.source(ctx))
	if err != nil {
		return nil, r.damaged(err)
	}
	any := false
	countersOf(ctx).Groups.Add(int64(len(r.groups)))
	for g := range r.groups {
		b, err := readBloom(pq, g, f.first, f.flat.PhysicalType())
		if err != nil {
			return nil, r.damaged(err)
		}
		any = any || !b.none
		out = append(out, b)
	}
	if !any {
		return nil, nil
	}
	return out, nil
}

func readBloom(pq *file.Reader, g, leaf int, t parquet.Type) (*Bloom, error) {
	chunk, err := pq.MetaData().RowGroup(g).ColumnChunk(leaf)
	if err != nil {
		return nil, err
	}
	if chunk.BloomFilterOffset() <= 0 {
		return &Bloom{none: true}, nil
	}
	rg, err := pq.GetBloomFilterReader().RowGroup(g)
	if err != nil {
		return nil, err
	}
	bf, err := rg.GetColumnBloomFilter(leaf)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &Bloom{f: bf, phys: t, none: bf == nil}, nil
}
