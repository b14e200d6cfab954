package sqlfuncs

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

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
	Open:     openChanges(false),
	Plan:     planChanges(false),
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
		st, err := env.stored(ctx, ident)
		if err != nil {
			return nil, err
		}
		if st == nil {
			return shapeOfCreated(ctx, env, ident)
		}
		cols, err := env.Changes.ColumnsAt(ctx, env.Cut, st.Ident, to)
		if err != nil {
			return nil, err
		}
		md, err := st.Metadata(ctx)
		if err != nil {
			return nil, err
		}
		return changesShape(ident, st.OID, cols, md.Properties()), nil
	}
}

func changesShape(ident table.Identifier, oid uint32, cols *changelog.Columns, props iceberg.Properties) *Shape {
	s := &Shape{Table: cols.Table, Ident: ident, TableOID: oid, Columns: tableColumns(cols.Table, props)}
	s.Columns = append(s.Columns, metadataColumns(cols.Schema, len(s.Columns))...)
	return s
}

// shapeOfCreated is that of a table which the transaction has made: it has columns, and no changes yet.
func shapeOfCreated(ctx context.Context, env *Env, ident table.Identifier) (*Shape, error) {
	created, err := env.created(ctx, ident)
	if err != nil {
		return nil, err
	}
	if created == nil {
		return nil, noPast(ident)
	}
	md := created.Ref.Metadata
	cols, err := changelog.ColumnsOf(md.CurrentSchema(), md.Version())
	if err != nil {
		return nil, err
	}
	return changesShape(ident, created.OID, cols, md.Properties()), nil
}

// changesRequest reads the arguments of a call. Cut is nil for a table that no commit knows.
func changesRequest(ctx context.Context, env *Env, shape *Shape, args []*Value) (q changelog.Request, err error) {
	q = changelog.Request{Schema: shape.Table}
	if q.From, err = boundArg(env, args, 1); err != nil {
		return q, err
	}
	if q.To, err = boundArg(env, args, 2); err != nil {
		return q, err
	}
	if q.Identifier, err = columnsArg("identifier", args, 3); err != nil {
		return q, err
	}
	if given(args, 4) {
		if q.Shard, err = changelog.ParseShard(args[4].Text); err != nil {
			return q, err
		}
	}
	st, err := env.stored(ctx, shape.Ident)
	if st != nil {
		q.Cut, q.Ident = env.Cut, st.Ident
	}
	return q, err
}

// changesOf opens a call by Changes or Net; nil for a table that no commit knows.
func changesOf(ctx context.Context, env *Env, shape *Shape, args []*Value, net bool) (*changelog.Result, error) {
	q, err := changesRequest(ctx, env, shape, args)
	switch {
	case err != nil || q.Cut == nil:
		return nil, err
	case net:
		return env.Changes.Net(ctx, q)
	}
	return env.Changes.Changes(ctx, q)
}

// planChanges shows the files of the window.
func planChanges(net bool) func(ctx context.Context, env *Env, shape *Shape, args []*Value) ([]Fact, error) {
	return func(ctx context.Context, env *Env, shape *Shape, args []*Value) ([]Fact, error) {
		res, err := changesOf(ctx, env, shape, args, net)
		if err != nil || res == nil {
			return nil, err
		}
		p, err := res.Plan(ctx)
		if err != nil {
			return nil, err
		}
		return []Fact{
			{"Steps", p.Steps}, {"Files Considered", p.FilesConsidered}, {"Files Opened", p.FilesOpened},
			{"Rows", p.RowsRead}, {"Bytes", p.BytesRead},
		}, nil
	}
}

func openChanges(net bool) func(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error) {
	return func(ctx context.Context, env *Env, shape *Shape, args []*Value) (*Rows, error) {
		res, err := changesOf(ctx, env, shape, args, net)
		if err != nil {
			return nil, err
		}
		if res == nil {
			return noChanges(ctx, env, shape)
		}
		return &Rows{Schema: res.Schema(), N: -1, Batches: res.Batches, Warnings: res.Warnings}, nil
	}
}

// noChanges are those of a table that no commit knows.
func noChanges(ctx context.Context, env *Env, shape *Shape) (*Rows, error) {
	created, err := env.created(ctx, shape.Ident)
	if err != nil {
		return nil, err
	}
	if created == nil {
		return nil, noPast(shape.Ident)
	}
	cols, err := changelog.ColumnsOf(shape.Table, created.Ref.Metadata.Version())
	if err != nil {
		return nil, err
	}
	return &Rows{Schema: cols.Schema, Batches: func(context.Context) iter.Seq2[arrow.RecordBatch, error] {
		return func(func(arrow.RecordBatch, error) bool) {}
	}}, nil
}
