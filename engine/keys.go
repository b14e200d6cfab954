package engine

import (
	"bytes"
	"context"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// keySet is what the conditions of a source say of a table's key: every row that they let through has one of the keys.
type keySet struct {
	// keys are encoded, sorted and different.
	keys [][]byte
	// parts is how many leading key columns they have values of; 0 when the conditions say nothing, or nothing that can be probed.
	parts int
	// single says of each of the parts that all keys have the same value.
	single []bool
}

// keyPartsOf are a table's key columns, in the order in which keys are encoded, as far as the columns of a relation have them. sc is the relation's schema,
// current the table's.
func keyPartsOf(rel *pgsql.Relation, sc, current *iceberg.Schema, ids []int) []keyPart {
	var out []keyPart
	for _, id := range ids {
		col := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if col < 0 || col >= len(rel.Columns) {
			break
		}
		typ, ok := current.FindTypeByID(id)
		if !ok {
			break
		}
		out = append(out, keyPart{sqlfuncs.KeyColumn{ID: id, Type: typ, OID: rel.Columns[col].Type, Mod: rel.Columns[col].Mod}, col})
	}
	return out
}

// keysOf finds the keys that the predicates of a source name, at most limit.
func (s *session) keysOf(ctx context.Context, parts []keyPart, use *pgsql.RelUse, args []value, limit int) (keySet, error) {
	b := &keyBinder{s: s, ctx: ctx, parts: parts, args: args, limit: limit}
	var tuples *pgsql.Predicate
	for i := range use.Preds {
		p := &use.Preds[i]
		switch p.Op {
		case "=", "in", "any":
			if err := b.column(p); err != nil {
				return keySet{}, err
			}
		case "keys":
			if tuples == nil || len(p.Columns) > len(tuples.Columns) {
				tuples = p
			}
		}
	}
	return b.build(tuples)
}

// keyBinder puts keys together.
type keyBinder struct {
	s     *session
	ctx   context.Context
	parts []keyPart
	args  []value
	limit int
	vals  [8][][]byte // by part: the values, encoded, that a predicate on the column alone gives
	given [8]bool
}

func (b *keyBinder) part(col int) int {
	return slices.IndexFunc(b.parts[:min(len(b.parts), len(b.vals))], func(k keyPart) bool { return k.col == col })
}

// column takes a predicate on one column. Of several on a column the one with the fewest values counts.
func (b *keyBinder) column(p *pgsql.Predicate) error {
	i := b.part(p.Column)
	if i < 0 {
		return nil
	}
	var vals [][]byte
	known := true
	for _, a := range p.Values {
		err := b.s.eachValue(b.ctx, a, b.args, func(oid uint32, v any) bool {
			enc, m := b.parts[i].Encode(nil, oid, v)
			switch m {
			case sqlfuncs.KeyKnown:
				vals = append(vals, enc)
			case sqlfuncs.KeyUnknown:
				known = false
			}
			return known && len(vals) <= b.limit
		})
		if err != nil {
			return err
		}
		if !known || len(vals) > b.limit {
			return nil
		}
	}
	if !b.given[i] || len(vals) < len(b.vals[i]) {
		b.vals[i], b.given[i] = vals, true
	}
	return nil
}

// rows are the tuples of a predicate of op keys: by row, encoded values by part; false when they cannot be told.
func (b *keyBinder) rows(p *pgsql.Predicate) ([]map[int][]byte, bool, error) {
	var out []map[int][]byte
rows:
	for _, row := range p.Rows {
		t := map[int][]byte{}
		for k, col := range p.Columns {
			i := b.part(col)
			if i < 0 {
				continue
			}
			found := sqlfuncs.KeyNone // NULL is equal to nothing
			err := b.s.eachValue(b.ctx, row[k], b.args, func(oid uint32, v any) bool {
				t[i], found = b.parts[i].Encode(nil, oid, v)
				return false
			})
			switch {
			case err != nil:
				return nil, false, err
			case found == sqlfuncs.KeyUnknown:
				return nil, false, nil
			case found == sqlfuncs.KeyNone:
				continue rows
			}
		}
		if len(t) == 0 {
			return nil, false, nil // it is about other columns
		}
		out = append(out, t)
	}
	return out, true, nil
}

var allSingle = [8]bool{true, true, true, true, true, true, true, true}

// one is the key when every column of it has one value; else nil.
func (b *keyBinder) one() []byte {
	if len(b.parts) > len(b.vals) {
		return nil
	}
	for i := range b.parts {
		if len(b.vals[i]) != 1 {
			return nil
		}
	}
	key := b.vals[0][0]
	for i := 1; i < len(b.parts); i++ {
		key = append(key, b.vals[i][0]...)
	}
	return key
}

// build multiplies the values of the leading columns.
func (b *keyBinder) build(tuples *pgsql.Predicate) (keySet, error) {
	if one := b.one(); one != nil && tuples == nil {
		return keySet{keys: [][]byte{one}, parts: len(b.parts), single: allSingle[:len(b.parts)]}, nil
	}
	set := keySet{keys: [][]byte{nil}}
	base := []map[int][]byte{nil}
	if tuples != nil {
		rows, ok, err := b.rows(tuples)
		if err != nil {
			return keySet{}, err
		}
		if ok {
			base = rows
		}
	}
	switch {
	case len(base) == 0:
		return keySet{parts: len(b.parts)}, nil // no row
	case len(base) > b.limit:
		return keySet{}, nil
	}
	type partial struct {
		key []byte
		row map[int][]byte
	}
	keys := make([]partial, len(base))
	for i, row := range base {
		keys[i].row = row
	}
	for i := range min(len(b.parts), len(b.vals)) {
		_, fixed := base[0][i]
		if !fixed && !b.given[i] {
			break
		}
		set.parts++
		if fixed {
			for k := range keys {
				keys[k].key = append(slices.Clip(keys[k].key), keys[k].row[i]...)
			}
			set.single = append(set.single, len(base) == 1)
			continue
		}
		set.single = append(set.single, len(b.vals[i]) == 1)
		if len(keys)*len(b.vals[i]) > b.limit {
			return keySet{}, nil
		}
		next := make([]partial, 0, len(keys)*len(b.vals[i]))
		for _, k := range keys {
			for _, v := range b.vals[i] {
				next = append(next, partial{append(slices.Clip(k.key), v...), k.row})
			}
		}
		keys = next
	}
	if set.parts == 0 {
		return keySet{}, nil
	}
	set.keys = make([][]byte, len(keys))
	for i, k := range keys {
		set.keys[i] = k.key
	}
	if len(set.keys) > 1 {
		slices.SortFunc(set.keys, bytes.Compare)
		set.keys = slices.CompactFunc(set.keys, bytes.Equal)
	}
	return set, nil
}
