package liveset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/keyindex"
)

// indexShare is how many rows of a data file stand behind one deleted key when its key index is probed instead of its key columns scanned.
const indexShare = 16

// equalityKeys is an equality delete file's content: its keys, NULLs included, over the fields ids in that order.
type equalityKeys struct {
	ids  []int
	keys keySet
}

// equality reads an equality delete file, or takes it from the cache.
func (c *Cache) equality(ctx context.Context, ref Ref, d *DeleteFile) (*equalityKeys, error) {
	ids := ref.keyOrder(d.Data.EqualityFieldIDs())
	return cached(ctx, c, lruKey{kind: kindEquality, name: d.key, sub: fmt.Sprint(ids)}, func() (*equalityKeys, int64, error) {
		c.stats.deleteFiles.Add(1)
		if len(ids) == 0 {
			return nil, 0, &DamagedError{Path: d.Data.FilePath(), Offset: -1, Err: fmt.Errorf("equality delete without fields")}
		}
		e := &equalityKeys{ids: ids}
		r, err := c.reader(ctx, d.Data.FilePath(), d.Data.FileSizeBytes())
		if err != nil {
			return nil, 0, err
		}
		if err := hasKeys(ref, r, ids); err != nil {
			return nil, 0, err
		}
		err = scanKeys(ctx, ref, r, ids, func(_ uint32, key []byte) { e.keys.add(key) })
		return e, e.keys.bytes(), err
	})
}

// matcher resolves equality deletes against data files for one derivation.
type matcher struct {
	c   *Cache
	ref Ref
}

// deletes are the positions of f that the equality deletes in dels take. The match of a pair (delete, file) is a function of the two immutable
// files: it is found once, whatever their sequence numbers, which only decide who is asked.
func (m *matcher) deletes(ctx context.Context, f *File, dels []*DeleteFile) (*roaring.Bitmap, error) {
	var out *roaring.Bitmap
	groups := map[string][]*DeleteFile{}
	for _, d := range dels {
		if v, ok := m.c.lru.peek(matchKey(d, f)); ok {
			out = union(out, v.(*roaring.Bitmap))
			continue
		}
		if m.mayMatch(d, f) {
			k := fmt.Sprint(m.ref.keyOrder(d.Data.EqualityFieldIDs()))
			groups[k] = append(groups[k], d)
		}
	}
	for _, g := range groups {
		found, err := m.match(ctx, f, g)
		if err != nil {
			return nil, err
		}
		for i, b := range found {
			m.c.lru.put(matchKey(g[i], f), b, int64(b.GetSizeInBytes())+64)
			out = union(out, orNil(b))
		}
	}
	return orNil(out), nil
}

func matchKey(d *DeleteFile, f *File) lruKey {
	return lruKey{kind: kindMatch, name: d.key, sub: f.Path}
}

// match finds, per delete of one field list, the positions of f whose key it holds.
func (m *matcher) match(ctx context.Context, f *File, dels []*DeleteFile) ([]*roaring.Bitmap, error) {
	out := make([]*roaring.Bitmap, len(dels))
	sets := make([]*equalityKeys, len(dels))
	keys := 0
	for i, d := range dels {
		e, err := m.c.equality(ctx, m.ref, d)
		if err != nil {
			return nil, err
		}
		sets[i], out[i] = e, roaring.New()
		keys += e.keys.len()
	}
	if keys == 0 {
		return out, nil
	}
	if int64(keys)*indexShare <= f.Records {
		ok, err := m.probe(ctx, f, sets, out)
		if ok || err != nil {
			return out, err
		}
	}
	return out, m.scan(ctx, f, sets, out)
}

// probe resolves through the file's key index, ok false when it has none over these fields.
func (m *matcher) probe(ctx context.Context, f *File, sets []*equalityKeys, out []*roaring.Bitmap) (ok bool, err error) {
	sc, err := m.ref.keySchema(sets[0].ids)
	if err != nil {
		return false, err
	}
	cols, err := keyindex.ColumnsOf(sc, sets[0].ids)
	if err != nil {
		return false, nil
	}
	ix, err := m.c.existingIndex(ctx, f, cols)
	if ix == nil || err != nil {
		return false, err
	}
	var key []byte
	var pos []uint32
	var found []named
	for i, e := range sets {
		for k := range e.keys.len() {
			plain, whole := withoutPresence(key[:0], cols, e.keys.key(k))
			key = plain
			if !whole {
				continue // an index holds no NULLs
			}
			pos = ix.Find(pos[:0], key)
			if ix.Exact() {
				out[i].AddMany(pos)
				continue
			}
			for _, at := range pos {
				found = append(found, named{at, i, k})
			}
		}
	}
	return true, m.compare(ctx, f, cols, sets, found, out)
}

// named is a row that an index named by fingerprint for a key of a delete.
type named struct {
	pos      uint32
	del, key int
}

// compare adds the rows that do have the key they were named for.
func (m *matcher) compare(ctx context.Context, f *File, cols []keyindex.Column, sets []*equalityKeys, found []named, out []*roaring.Bitmap) error {
	if len(found) == 0 {
		return nil
	}
	k, err := m.ref.keyColumns(sets[0].ids)
	if err != nil {
		return err
	}
	slices.SortFunc(found, func(a, b named) int { return cmp.Compare(a.pos, b.pos) })
	positions := make([]uint32, len(found))
	for i, n := range found {
		positions[i] = n.pos
	}
	var want []byte
	return m.c.keysAt(ctx, m.ref, f, k, positions, func(i int, key []byte) {
		n := found[i]
		want, _ = withoutPresence(want[:0], cols, sets[n.del].keys.key(n.key))
		if key != nil && bytes.Equal(key, want) {
			out[n.del].Add(n.pos)
		}
	})
}

// withoutPresence strips the presence bytes off a key, ok false when a column is NULL.
func withoutPresence(dst []byte, cols []keyindex.Column, key []byte) (_ []byte, ok bool) {
	for _, c := range cols {
		if len(key) == 0 || key[0] == 0 {
			return dst, false
		}
		n := c.Len(key[1:])
		if n < 0 {
			return dst, false
		}
		dst, key = append(dst, key[1:1+n]...), key[1+n:]
	}
	return dst, true
}

// scan resolves by reading the file's key columns once for all deletes.
func (m *matcher) scan(ctx context.Context, f *File, sets []*equalityKeys, out []*roaring.Bitmap) error {
	m.c.stats.dataFileScans.Add(1)
	r, err := m.c.Reader(ctx, f)
	if err != nil {
		return err
	}
	hits := make([][]uint32, len(sets))
	if len(sets) == 1 {
		e := sets[0]
		err = scanKeys(ctx, m.ref, r, e.ids, func(pos uint32, key []byte) {
			if e.keys.find(key) >= 0 {
				hits[0] = append(hits[0], pos)
			}
		})
	} else {
		owners := unite(sets)
		err = scanKeys(ctx, m.ref, r, sets[0].ids, func(pos uint32, key []byte) {
			owners.each(key, func(i int32) { hits[i] = append(hits[i], pos) })
		})
	}
	for i, h := range hits {
		out[i].AddMany(h)
	}
	return err
}

// owners is the union of several key sets that remembers whose a key is.
type owners struct {
	keys keySet
	head []int32
	next []int32
	own  []int32
}

func unite(sets []*equalityKeys) *owners {
	o := &owners{}
	for i, e := range sets {
		for k := range e.keys.len() {
			n := o.keys.add(e.keys.key(k))
			if n == len(o.head) {
				o.head = append(o.head, -1)
			}
			o.own = append(o.own, int32(i))
			o.next = append(o.next, o.head[n])
			o.head[n] = int32(len(o.own) - 1)
		}
	}
	return o
}

func (o *owners) each(key []byte, do func(int32)) {
	n := o.keys.find(key)
	if n < 0 {
		return
	}
	for at := o.head[n]; at >= 0; at = o.next[at] {
		do(o.own[at])
	}
}

// mayMatch compares the bounds of delete and data file: false only when no row can match.
func (m *matcher) mayMatch(d *DeleteFile, f *File) bool {
	for _, id := range d.Data.EqualityFieldIDs() {
		if mayBeNull(d.Data, id) && mayBeNull(f.Data, id) {
			continue
		}
		fl, ok := m.ref.field(id)
		if !ok {
			continue
		}
		dlo, dhi, ok1 := encodedBounds(d.Data, fl)
		flo, fhi, ok2 := encodedBounds(f.Data, fl)
		if ok1 && ok2 && (bytes.Compare(dhi, flo) < 0 || bytes.Compare(fhi, dlo) < 0) {
			return false
		}
	}
	return true
}

func mayBeNull(df iceberg.DataFile, id int) bool {
	n, ok := df.NullValueCounts()[id]
	return !ok || n > 0
}

// encodedBounds are a column's bounds as key encodings, ok false when there are none that can be trusted: NaN is above every bound, so
// columns that may hold it have none.
func encodedBounds(df iceberg.DataFile, f iceberg.NestedField) (lo, hi []byte, ok bool) {
	typ := f.Type
	switch typ.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return nil, nil, false
	}
	lo, ok1 := encodeBound(typ, df.LowerBoundValues()[f.ID])
	hi, ok2 := encodeBound(typ, df.UpperBoundValues()[f.ID])
	return lo, hi, ok1 && ok2
}

// encodeBound decodes a bound, written perhaps before the column was widened, into a key encoding.
func encodeBound(typ iceberg.Type, raw []byte) ([]byte, bool) {
	if raw == nil {
		return nil, false
	}
	switch typ.(type) {
	case iceberg.Int64Type:
		if len(raw) == 4 {
			typ = iceberg.PrimitiveTypes.Int32
		}
	case iceberg.TimestampType, iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		if len(raw) != 8 {
			return nil, false
		}
	}
	lit, err := iceberg.LiteralFromBytes(typ, raw)
	if err != nil {
		return nil, false
	}
	key, err := keyindex.AppendLiteral(nil, lit)
	return key, err == nil
}
