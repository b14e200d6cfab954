package sqlfuncs

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
)

// manyKeys and manyBytes bound the keys that are probed at once: their pages are read together, each once, and their rows are held.
const (
	manyKeys  = 256 << 10
	manyBytes = 64 << 20
)

// atOnce is how many keys are probed at once, by the bytes of a row in the files.
func atOnce(p *lookup.Lookuper) int {
	return int(max(256, min(manyKeys, manyBytes/max(1, 4*p.RowBytes()))))
}

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
	p, enc, err := prepareLookup(ctx, env, shape, args)
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
			n := atOnce(p)
			for at := 0; at < len(keys); at += n {
				rec, err := lookupKeys(ctx, p, enc, keys[at:min(at+n, len(keys))], int64(at))
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

// keyList is an array's elements. Errors: 42804 for what is no array of one dimension.
func keyList(v *Value) ([]*Value, error) {
	switch {
	case v == nil || v.Null:
		return nil, nil
	case v.Array != nil:
		if severalDims(v.Text) || slices.ContainsFunc(v.Array, func(e *Value) bool { return e.Array != nil }) {
			return nil, flatKeys()
		}
		return v.Array, nil
	case pgtype.ElemOf(v.OID) != 0: // '{}'
		return nil, nil
	case v.OID == pgtype.Unknown || v.OID == pgtype.Text:
		// A literal or parameter without a type: an array whose elements take the key's.
		parsed, err := pgenc.Decode(pgtype.TextArray, pgenc.Text, []byte(v.Text), pgenc.Style{})
		if err != nil {
			return nil, err
		}
		list := parsed.(pgenc.Array)
		if len(list.Dims) > 1 {
			return nil, flatKeys()
		}
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

// severalDims reports the text of an array of several dimensions: {{1,2},{3,4}}, perhaps behind its bounds.
func severalDims(text string) bool {
	i := strings.IndexByte(text, '{')
	return i >= 0 && i+1 < len(text) && text[i+1] == '{'
}

func flatKeys() error {
	return pgerr.New(pgerr.DatatypeMismatch, "keys must be an array of one dimension").WithHint("A key of several columns is a row: ARRAY[ROW(1, 'x'), ROW(2, 'y')].")
}

// lookupKeys looks keys up whose first has the given place; nil when none can have rows.
func lookupKeys(ctx context.Context, p *lookup.Lookuper, enc *keyEncoder, keys []*Value, first int64) (arrow.RecordBatch, error) {
	b, err := enc.batch(keys, first)
	if err != nil || len(b.keys) == 0 {
		return nil, err
	}
	rec, err := p.FindEach(ctx, b.keys, b.parts)
	if err != nil {
		return nil, err
	}
	defer rec.Release()
	last := int(rec.NumCols()) - 1
	found := rec.Column(last).(*array.Int64).Int64Values()
	ordinals := array.NewInt64Builder(memory.DefaultAllocator)
	defer ordinals.Release()
	for _, k := range found {
		ordinals.Append(b.places[k])
	}
	col := ordinals.NewArray()
	defer col.Release()
	return array.NewRecordBatch(rec.Schema(), append(append([]arrow.Array(nil), rec.Columns()[:last]...), col), rec.NumRows()), nil
}
