package parquetio

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// Bloom is the bloom filter of one column in one row group. Safe for concurrent use.
type Bloom struct {
	f    metadata.BloomFilter
	phys parquet.Type
	none bool
}

// MayContain tells whether the column may hold the value of a key part. It is true when the column's type is not hashed the way keys
// can be turned back into.
func (b *Bloom) MayContain(part []byte, c keyindex.Column) bool {
	if b == nil || b.none {
		return true
	}
	var h uint64
	switch {
	case c.Kind == keyindex.KindLong && b.phys == parquet.Types.Int64:
		h = metadata.GetHash(b.f.Hasher(), keyindex.DecodeLong(part))
	case c.Kind == keyindex.KindLong && b.phys == parquet.Types.Int32:
		v := keyindex.DecodeLong(part)
		if int64(int32(v)) != v {
			return false
		}
		h = metadata.GetHash(b.f.Hasher(), int32(v))
	case c.Kind == keyindex.KindBytes && b.phys == parquet.Types.ByteArray:
		var buf [64]byte
		h = metadata.GetHash(b.f.Hasher(), parquet.ByteArray(keyindex.DecodeBytes(buf[:0], part)))
	case c.Kind == keyindex.KindFixed && b.phys == parquet.Types.FixedLenByteArray:
		h = metadata.GetHash(b.f.Hasher(), parquet.FixedLenByteArray(part))
	default:
		return true
	}
	return b.f.CheckHash(h)
}

// Blooms are the filters of the column with a field id, one per row group; nil when it has none.
func (r *Reader) Blooms(ctx context.Context, id int) (out []*Bloom, err error) {
	f := r.fieldByID(id, nil)
	if f == nil || f.flat == nil || !r.hasIDs {
		return nil, nil
	}
	defer r.guard(&err)
	var pq *file.Reader
	any := false
	for g := range r.groups {
		r.mu.Lock()
		b := r.groups[g].blooms[f.first]
		r.mu.Unlock()
		if b == nil {
			if pq == nil {
				if pq, err = r.open(r.source(ctx)); err != nil {
					return nil, r.damaged(err)
				}
			}
			if b, err = readBloom(pq, g, f.first, f.flat.PhysicalType()); err != nil {
				return nil, r.damaged(err)
			}
			r.mu.Lock()
			r.groups[g].blooms[f.first] = b
			r.mu.Unlock()
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
