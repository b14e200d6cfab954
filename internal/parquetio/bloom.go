package parquetio

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/cespare/xxhash/v2"

	"github.com/nordisk/skade-pg/internal/keyindex"
	"github.com/nordisk/skade-pg/internal/storeio"
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

// Blooms reads the filters of the columns with the field ids: per column one a row group, nil when it has none. Filters that lie together, as our own do at a
// file's end, come in one read. The caller keeps them.
func (r *Reader) Blooms(ctx context.Context, ids ...int) (out [][]*Bloom, err error) {
	out = make([][]*Bloom, len(ids))
	if !r.hasIDs {
		return out, nil
	}
	defer r.guard(&err)
	s := r.source(ctx)
	var fields []*fileField
	for _, id := range ids {
		f := r.fieldByID(id, nil)
		if f != nil && f.flat == nil {
			f = nil
		}
		fields = append(fields, f)
	}
	if err := r.prefetchBlooms(s, fields); err != nil {
		return nil, r.damaged(err)
	}
	pq, err := r.open(s)
	if err != nil {
		return nil, r.damaged(err)
	}
	for i, f := range fields {
		for g := 0; f != nil && g < len(r.groups); g++ {
			b, err := readBloom(pq, g, f.first, f.flat.PhysicalType())
			if err != nil {
				return nil, r.damaged(err)
			}
			out[i] = append(out[i], b)
		}
		if !slices.ContainsFunc(out[i], func(b *Bloom) bool { return !b.none }) {
			out[i] = nil
		}
	}
	return out, nil
}

// prefetchBlooms reads the filters whose length the footer says.
func (r *Reader) prefetchBlooms(s *source, fields []*fileField) error {
	var ranges []storeio.Range
	for _, f := range fields {
		for g := 0; f != nil && g < len(r.groups); g++ {
			chunk, err := r.meta.RowGroup(g).ColumnChunk(f.first)
			if err != nil {
				return err
			}
			off, n := chunk.BloomFilterOffset(), int64(chunk.BloomFilterLength())
			if off <= 0 {
				continue
			}
			s.c.Groups.Add(1)
			if n > 0 && off+n <= s.f.Size() {
				ranges = append(ranges, storeio.Range{Off: off, Buf: make([]byte, n)})
			}
		}
	}
	if len(ranges) == 0 {
		return nil
	}
	err := s.readRanges(ranges)
	s.windows = ranges
	return err
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
