package sqlfuncs

import (
	"context"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/changelog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// TableAt is the name of table_at, which engine runs as a scan of the table's files rather than through Open.
const TableAt = "table_at"

// tableAt is table_at(tbl, bound): a table as it was at a bound.
var tableAt = &Function{
	Name:    TableAt,
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "bound", OID: pgtype.Any}},
	Returns: pgtype.Record, SetOf: true,
	Doc:      "A table as it was at a bound: a snapshot id, a timestamp, seq:N, tag:x, branch:x, earliest or now.",
	Describe: describeTableAt,
	Open: func(context.Context, *Env, *Shape, []*Value) (*Rows, error) {
		return nil, pgerr.New(pgerr.InternalError, "table_at is a scan")
	},
}

func describeTableAt(ctx context.Context, env *Env, args []*Value) (*Shape, error) {
	ident, err := tableArg(env, TableAt, args)
	if err != nil {
		return nil, err
	}
	st, err := env.stored(ctx, ident)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, noPast(ident)
	}
	md, err := st.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	shape := &Shape{Ident: ident, Table: md.CurrentSchema(), TableOID: st.OID}
	if given(args, 1) {
		state, err := TableStateAt(ctx, env, ident, args[1])
		if err != nil {
			return nil, err
		}
		shape.Table = state.Schema
		if state.Metadata != nil {
			md = state.Metadata
		}
	}
	shape.Columns = tableColumns(shape.Table, md.Properties())
	return shape, nil
}

// TableStateAt resolves a bound value to a table's state. Errors: 22023 for NULL, 0A000 for a table that no commit knows yet.
func TableStateAt(ctx context.Context, env *Env, ident table.Identifier, bound *Value) (*changelog.State, error) {
	if bound == nil || bound.Null {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "bound must not be null").WithHint("Use 'now' for the present, 'earliest' for the oldest snapshot.")
	}
	st, err := env.stored(ctx, ident)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, noPast(ident)
	}
	b, err := stateBound(env, st, bound)
	if err != nil {
		return nil, err
	}
	return env.Changes.StateAt(ctx, env.Cut, st.Ident, b)
}
