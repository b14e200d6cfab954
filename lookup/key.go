package lookup

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// Key builds one key, part by part, in the order of Columns.Key, without allocation once warm. It belongs to one
// goroutine. The first parts alone are a prefix.
type Key struct {
	p     *Lookuper
	buf   []byte
	parts int
	null  bool
	err   error
}

// NewKey returns an empty key of p.
func (p *Lookuper) NewKey() *Key { return &Key{p: p} }

// Reset empties the key.
func (k *Key) Reset() *Key {
	k.buf, k.parts, k.null, k.err = k.buf[:0], 0, false, nil
	return k
}

// next checks that there is another key column, of one of the kinds, and returns its place.
func (k *Key) next(kind keyindex.Kind) bool {
	i := k.parts
	k.parts++
	switch {
	case k.err != nil:
	case i >= len(k.p.b.kinds):
		k.err = fmt.Errorf("%w: the key has %d columns", ErrKeyType, len(k.p.b.kinds))
	case k.p.b.kinds[i].Kind != kind:
		k.err = fmt.Errorf("%w: column %q is %s", ErrKeyType, k.p.b.cols.Key.Field(i).Name, k.p.b.cols.Key.Field(i).Type)
	}
	return k.err == nil
}

// Int appends an integer part: int and long columns; dates in days, times and timestamps in their column's unit.
func (k *Key) Int(v int64) *Key {
	if k.next(keyindex.KindLong) {
		k.buf = binary.BigEndian.AppendUint64(k.buf, uint64(v)^1<<63)
	}
	return k
}

// String appends a string part.
func (k *Key) String(v string) *Key {
	if k.next(keyindex.KindBytes) {
		for i := range len(v) {
			if k.buf = append(k.buf, v[i]); v[i] == 0 {
				k.buf = append(k.buf, 0xff)
			}
		}
		k.buf = append(k.buf, 0, 1)
	}
	return k
}

// Null appends a NULL part: the key finds no row.
func (k *Key) Null() *Key {
	k.parts++
	k.null = true
	return k
}

// Literal appends a part of any type; nil is NULL. It is converted to the column's type.
func (k *Key) Literal(v iceberg.Literal) *Key {
	if v == nil {
		return k.Null()
	}
	i := k.parts
	if i >= len(k.p.b.kinds) {
		k.next(0)
		return k
	}
	k.parts++
	want := k.p.b.keyTypes[i]
	if !v.Type().Equals(want) {
		to, err := v.To(want)
		if err != nil {
			k.err = fmt.Errorf("%w: column %q is %s: %w", ErrKeyType, k.p.b.cols.Key.Field(i).Name, want, err)
			return k
		}
		switch to.(type) {
		case iceberg.AboveMaxLiteral, iceberg.BelowMinLiteral:
			k.null = true // no value of the column's type is equal
			return k
		}
		v = to
	}
	var err error
	if k.buf, err = keyindex.AppendLiteral(k.buf, v); err != nil {
		k.err = fmt.Errorf("%w: column %q: %w", ErrKeyType, k.p.b.cols.Key.Field(i).Name, err)
	}
	return k
}

// encodeRows encodes every row of a batch of keys. A nil key has a NULL part. parts is the number of columns given.
func (p *Lookuper) encodeRows(ctx context.Context, rec arrow.RecordBatch) (keys [][]byte, parts int, err error) {
	parts = int(rec.NumCols())
	if parts == 0 || parts > len(p.b.kinds) {
		return nil, 0, fmt.Errorf("%w: %d parts are given, the key has %d columns", ErrKeyType, parts, len(p.b.kinds))
	}
	cols, idx := make([]arrow.Array, parts), make([]int, parts)
	for i := range cols {
		if cols[i], err = p.keyColumn(ctx, i, rec.Column(i)); err != nil {
			return nil, 0, err
		}
		idx[i] = i
	}
	fields := p.b.cols.Key.Fields()[:parts]
	n := int(rec.NumRows())
	typed := make([]arrow.Field, parts)
	for i, f := range fields {
		typed[i] = arrow.Field{Name: f.Name, Type: cols[i].DataType(), Nullable: true}
	}
	enc, err := keyindex.NewEncoder(array.NewRecordBatch(arrow.NewSchema(typed, nil), cols, int64(n)), idx)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrKeyType, err)
	}
	keys = make([][]byte, n)
	var buf []byte
rows:
	for r := range n {
		for _, c := range cols {
			if c.IsNull(r) {
				continue rows
			}
		}
		start := len(buf)
		if buf, err = enc.Append(buf, r); err != nil {
			return nil, 0, fmt.Errorf("%w: %w", ErrKeyType, err)
		}
		keys[r] = buf[start:len(buf):len(buf)]
	}
	return keys, parts, nil
}

// keyColumn gives a key column the type of its column in the table, except that integers of any width are one encoding.
func (p *Lookuper) keyColumn(ctx context.Context, i int, col arrow.Array) (arrow.Array, error) {
	want := p.b.cols.Key.Field(i).Type
	if arrow.TypeEqual(col.DataType(), want) {
		return col, nil
	}
	isInt := func(t arrow.DataType) bool { return t.ID() == arrow.INT32 || t.ID() == arrow.INT64 }
	if isInt(col.DataType()) && isInt(want) {
		return col, nil
	}
	if e, ok := want.(arrow.ExtensionType); ok && arrow.TypeEqual(col.DataType(), e.StorageType()) {
		return array.NewExtensionArrayWithStorage(e, col), nil
	}
	out, err := compute.CastArray(ctx, col, compute.SafeCastOptions(want))
	if err != nil {
		return nil, fmt.Errorf("%w: column %q is %s, not %s", ErrKeyType, p.b.cols.Key.Field(i).Name, want, col.DataType())
	}
	return out, nil
}
