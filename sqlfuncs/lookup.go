package sqlfuncs

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/lookup"
)

// lookupFunc is lookup(tbl, key [, as_of [, key_columns [, strict]]]): the live row or rows of a key. A composite key is ROW(…); fewer parts
// than the identifier has are a prefix. strict makes several rows an error (21000).
//
// Columns: the table's (at as_of when that is a constant).
var lookupFunc = &Function{
	Name:    "lookup",
	Args:    lookupArgs("key"),
	Returns: pgtype.Record, SetOf: true,
	Doc:      "The live rows of a key, now or as of a bound.",
	Describe: describeLookup,
	Open:     openLookup,
	Plan:     planLookup(func(key *Value) ([]*Value, error) { return []*Value{key}, nil }),
}

// lookupArgs are the arguments of lookup and lookup_many, by the name of the second.
func lookupArgs(key string) []Arg {
	return []Arg{
		{Name: "tbl", OID: pgtype.Text},
		{Name: key, OID: pgtype.Any},
		{Name: "as_of", OID: pgtype.Any, Default: "NULL"},
		{Name: "key_columns", OID: pgtype.TextArray, Default: "NULL"},
		{Name: "strict", OID: pgtype.Bool, Default: "false"},
	}
}

func describeLookup(ctx context.Context, env *Env, args []*Value) (*Shape, error) {
	return lookupShape(ctx, env, "lookup", args)
}

// lookupShape is the shape of the rows that a call of lookup or lookup_many finds.
func lookupShape(ctx context.Context, env *Env, fn string, args []*Value) (*Shape, error) {
	shape, _, err := lookupColumns(ctx, env, fn, args)
	return shape, err
}

// lookupColumns are the rows and the key of a call of lookup or lookup_many.
func lookupColumns(ctx context.Context, env *Env, fn string, args []*Value) (*Shape, *lookup.Columns, error) {
	ident, err := tableNamed(env.resolveOwn, fn, args)
	if err != nil {
		return nil, nil, err
	}
	md, oid, err := lookupTable(ctx, env, ident)
	if err != nil {
		return nil, nil, err
	}
	target, err := lookupTarget(ctx, env, &Shape{Ident: ident}, args)
	if err != nil {
		return nil, nil, err
	}
	cols, err := env.Lookup.Columns(ctx, target)
	if err != nil {
		return nil, nil, badKey(err, md, ident[len(ident)-1], target.KeyColumns)
	}
	return &Shape{Ident: ident, Table: cols.Table, TableOID: oid, Columns: tableColumns(cols.Table, md.Properties())}, cols, nil
}

// lookupTable is the metadata and the OID of the table that a call names.
func lookupTable(ctx context.Context, env *Env, ident table.Identifier) (table.Metadata, uint32, error) {
	created, err := env.created(ctx, ident)
	if err != nil {
		return nil, 0, err
	}
	if created != nil {
		return created.Ref.Metadata, created.OID, nil
	}
	st, err := env.stored(ctx, ident)
	if err != nil {
		return nil, 0, err
	}
	if st == nil {
		return nil, 0, noPast(ident)
	}
	md, err := st.Metadata(ctx)
	return md, st.OID, err
}

// lookupTarget says what a call looks in, and by which columns: key_columns, else the primary key in its order.
func lookupTarget(ctx context.Context, env *Env, shape *Shape, args []*Value) (lookup.Target, error) {
	t, err := lookupIn(ctx, env, shape, args)
	if err == nil && t.KeyColumns == nil {
		t.KeyColumns, err = declaredKey(ctx, env, &t)
	}
	return t, err
}

// lookupIn says what a call looks in: the bound's state, else the session's as_of, else the present with the transaction's own writes.
func lookupIn(ctx context.Context, env *Env, shape *Shape, args []*Value) (lookup.Target, error) {
	t := lookup.Target{Cut: env.Cut, Ident: shape.Ident, Schema: shape.Table, Strict: boolArg(args, 4)}
	var err error
	if t.KeyColumns, err = columnsArg("key_columns", args, 3); err != nil {
		return t, err
	}
	created, err := env.created(ctx, shape.Ident)
	if err != nil {
		return t, err
	}
	if created != nil {
		if given(args, 2) {
			return t, noPast(shape.Ident)
		}
		t.Ref, t.Live = &created.Ref, created.Live
		return t, nil
	}
	st, err := env.stored(ctx, shape.Ident)
	if err != nil {
		return t, err
	}
	if st == nil {
		return t, noPast(shape.Ident)
	}
	t.Ident = st.Ident
	var bound *Value
	switch {
	case given(args, 2):
		bound = args[2]
	case env.SessionAsOf != "":
		bound = &Value{OID: pgtype.Text, Text: env.SessionAsOf}
	}
	if bound != nil {
		st, err := TableStateAt(ctx, env, shape.Ident, bound)
		if err != nil {
			return t, err
		}
		t.AsOf = &lookup.AsOf{Metadata: st.Metadata, Snapshot: st.Snapshot, Schema: st.Schema}
	} else if env.Own != nil {
		own, err := env.Own(ctx, shape.Ident)
		if err != nil {
			return t, err
		}
		t.Live = own
	}
	return t, nil
}

// prepareLookup binds what a call looks in, and makes keys for it.
func prepareLookup(ctx context.Context, env *Env, shape *Shape, args []*Value) (*lookup.Lookuper, *keyEncoder, error) {
	target, err := lookupTarget(ctx, env, shape, args)
	if err != nil {
		return nil, nil, err
	}
	p, err := env.Lookup.Prepare(ctx, target)
	if err != nil {
		return nil, nil, err
	}
	enc, err := newKeyEncoder(env, p)
	return p, enc, err
}

func openLookup(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error) {
	p, enc, err := prepareLookup(ctx, env, shape, args)
	if err != nil {
		return nil, err
	}
	key, parts, err := enc.encode(args[1])
	if err != nil {
		return nil, err
	}
	batches := func(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			if key == nil { // a NULL part: no row
				return
			}
			rec, err := p.FindPart(ctx, key, parts)
			if err != nil {
				yield(nil, err)
				return
			}
			defer rec.Release()
			yield(rec, nil)
		}
	}
	return &Rows{Schema: p.Columns().Schema, N: 1, Batches: batches}, nil
}
