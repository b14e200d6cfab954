package sqlfuncs

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
)

// manyKeys is how many keys are probed at once: their pages are read together, and the rows of so many are held.
const manyKeys = 16 << 10

// lookupMany is lookup_many(tbl, keys [, as_of [, key_columns [, strict]]]): the live rows of each key of an array, in its order; a key that
// occurs twice gives its rows twice. Keys of several columns are ROW(…).
//
// Columns: the table's, then _key_ordinal bigint, the key's place in the array from 0.
var lookupMany = &Function{
	Name:    "lookup_many",
	Args:    lookupArgs("keys"),
	Returns: pgtype.Record, SetOf: true,
	Doc: "The live rows of many keys, now or as of a bound, with each key's place in the array.",
	Describe: func(ctx context.Context, env *Env, args []*Value) (*Shape, error) {
		shape, err := lookupShape(ctx, env, "lookup_many", args)
		if err != nil {
			return nil, err
		}
		for _, c := range shape.Columns {
			if c.Name == lookup.ColKeyOrdinal {
				return nil, pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" of the table has the name of a column of lookup_many", c.Name).
					WithHint("Use lookup, or rename the column.")
			}
		}
		shape.Columns = append(shape.Columns, Column{Name: lookup.ColKeyOrdinal, OID: pgtype.Int8, Mod: -1})
		return shape, nil
	},
	Open: openLookupMany,
	Plan: planLookup(keyList),
}

func openLookupMany(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error) {
	target, err := lookupTarget(ctx, env, shape, args)
	if err != nil {
		return nil, err
	}
	p, err := env.Lookup.Prepare(ctx, target)
	if err != nil {
		return nil, err
	}
	keys, err := keyList(args[1])
	if err != nil {
		return nil, err
	}
	sc, err := p.ManySchema()
	if err != nil {
		return nil, err
	}
	batches := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for at := 0; at < len(keys); at += manyKeys {
				rec, err := lookupKeys(ctx, p, keys[at:min(at+manyKeys, len(keys))], int64(at))
				if err != nil {
					yield(nil, err)
					return
				}
				if rec == nil {
					continue
				}
				ok := yield(rec, nil)
				rec.Release()
				if !ok {
					return
				}
			}
		}
	}
	return &Rows{Schema: sc, N: int64(len(keys)), Batches: batches}, nil
}

// keyList is an array's elements. Errors: 42804 for what is no array.
func keyList(v *Value) ([]*Value, error) {
	switch {
	case v == nil || v.Null:
		return nil, nil
	case v.Array != nil:
		return v.Array, nil
	case pgtype.ElemOf(v.OID) != 0: // '{}'
		return nil, nil
	case v.OID == pgtype.Unknown || v.OID == pgtype.Text:
		// A literal or parameter without a type: an array whose elements take the key's.
		parsed, err := pgenc.Decode(pgtype.TextArray, pgenc.Text, []byte(v.Text), pgenc.Style{})
		if err != nil {
			return nil, err
		}
		list := parsed.(pgenc.Array) // of several dimensions: all elements, as unnest gives them
		out := make([]*Value, len(list.Elems))
		for i, e := range list.Elems {
			out[i] = &Value{OID: pgtype.Unknown, Null: e == nil}
			if s, ok := e.(string); ok {
				out[i].Text = s
			}
		}
		return out, nil
	}
	return nil, pgerr.Newf(pgerr.DatatypeMismatch, "keys must be an array, not %s", pgtype.FormatNoTypmod(v.OID)).WithHint("Look one key up with lookup.")
}

// lookupKeys looks keys up whose first has the given place; nil when none can have rows.
func lookupKeys(ctx context.Context, p *lookup.Lookuper, keys []*Value, first int64) (arrow.RecordBatch, error) {
	batch, places, err := keysBatch(p.Columns().Key, keys, first)
	if err != nil || batch == nil {
		return nil, err
	}
	defer batch.Release()
	rec, err := p.LookupMany(ctx, batch)
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	last := int(rec.NumCols()) - 1
	found := rec.Column(last).(*array.Int64).Int64Values()
	ordinals := array.NewInt64Builder(memory.DefaultAllocator)
	defer ordinals.Release()
	for _, k := range found {
		ordinals.Append(places[k])
	}
	col := ordinals.NewArray()
	defer col.Release()
	return array.NewRecordBatch(rec.Schema(), append(append([]arrow.Array(nil), rec.Columns()[:last]...), col), rec.NumRows()), nil
}

// keysBatch is keys as a batch, and the place of each; nil when none can have rows. The first key's place is first.
func keysBatch(key *arrow.Schema, keys []*Value, first int64) (arrow.RecordBatch, []int64, error) {
	var b *keyBuilder
	var places []int64
	for i, k := range keys {
		parts := keyParts(key, k)
		if parts == nil {
			continue
		}
		if b == nil {
			var err error
			if b, err = newKeyBuilder(key, len(parts)); err != nil {
				return nil, nil, err
			}
			defer b.release()
		}
		if len(parts) != len(b.cols) {
			return nil, nil, pgerr.Newf(pgerr.DatatypeMismatch, "keys have %d and %d values", len(b.cols), len(parts)).WithHint("%s", keyHint(key))
		}
		if err := b.add(parts); err != nil {
			return nil, nil, err
		}
		places = append(places, first+int64(i))
	}
	if b == nil {
		return nil, nil, nil
	}
	return b.batch(), places, nil
}
