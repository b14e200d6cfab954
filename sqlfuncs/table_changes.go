package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// tableChanges is table_changes(tbl, from, to [, identifier => text[], shard => 'i/n']): the row changes of a table in the
// window (from, to], commit by commit, with full before images.
//
// Columns: the table's columns at to (the current ones when to is a parameter), then _change_type text, _change_ordinal int4,
// _commit_snapshot_id int8, _commit_seq int8, _commit_timestamp timestamptz, _change_row int8, and _row_id int8 on format v3.
var tableChanges = &Function{
	Name: "table_changes",
	Args: []Arg{
		{Name: "tbl", OID: pgtype.Text},
		{Name: "from", OID: pgtype.Any},
		{Name: "to", OID: pgtype.Any, Default: "NULL"},
		{Name: "identifier", OID: pgtype.TextArray, Default: "NULL"},
		{Name: "shard", OID: pgtype.Text, Default: "NULL"},
	},
	Returns: pgtype.Record, SetOf: true,
	Doc:      "The row changes of a table in the window (from, to], in commit order, with full before images.",
	Describe: describeChanges("table_changes"),
	Open:     openChanges,
	Plan:     planChanges,
}

// describeChanges gives the columns of a change relation; fn is named in errors.
func describeChanges(fn string) func(ctx context.Context, env *Env, args []*Value) (*Shape, error) {
	return func(ctx context.Context, env *Env, args []*Value) (*Shape, error) {
		ident, err := tableArg(env, fn, args)
		if err != nil {
			return nil, err
		}
		to, err := boundArg(env, args, 2)
		if err != nil {
			return nil, err
		}
		cols, err := env.Changes.ColumnsAt(ctx, env.Cut, ident, to)
		if err != nil {
			return nil, err
		}
		st, err := env.Cut.Table(ident)
		if err != nil {
			return nil, err
		}
		md, err := st.Metadata(ctx)
		if err != nil {
			return nil, err
		}
		shape := &Shape{Table: cols.Table, Ident: ident, TableOID: st.OID, Columns: tableColumns(cols.Table, md.Properties())}
		shape.Columns = append(shape.Columns, metadataColumns(cols.Schema, len(shape.Columns))...)
		return shape, nil
	}
}

// changesRequest reads the arguments of a call.
func changesRequest(env *Env, shape *Shape, args []*Value) (q changelog.Request, err error) {
	q = changelog.Request{Cut: env.Cut, Ident: shape.Ident, Schema: shape.Table}
	if q.From, err = boundArg(env, args, 1); err != nil {
		return q, err
	}
	if q.To, err = boundArg(env, args, 2); err != nil {
		return q, err
	}
	if given(args, 3) {
		for _, v := range args[3].Array {
			q.Identifier = append(q.Identifier, v.Text)
		}
	}
	if given(args, 4) {
		q.Shard, err = changelog.ParseShard(args[4].Text)
	}
	return q, err
}

// planChanges shows the files of the window.
func planChanges(ctx context.Context, env *Env, shape *Shape, args []*Value) ([]Fact, error) {
	q, err := changesRequest(env, shape, args)
	if err != nil {
		return nil, err
	}
	x, err := env.Changes.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	p, err := x.Plan(ctx)
	if err != nil {
		return nil, err
	}
	return []Fact{
		{"Snapshots", p.Steps}, {"Files Considered", p.FilesConsidered}, {"Files Opened", p.FilesOpened},
		{"Rows", p.RowsRead}, {"Bytes", p.BytesRead},
	}, nil
}

func openChanges(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error) {
	q, err := changesRequest(env, shape, args)
	if err != nil {
		return nil, err
	}
	res, err := env.Changes.Changes(ctx, q)
	if err != nil {
		return nil, err
	}
	return &Rows{Schema: res.Schema(), N: -1, Batches: res.Batches, Warnings: res.Warnings}, nil
}
