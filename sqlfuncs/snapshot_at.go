package sqlfuncs

import (
	"context"
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// snapshotAt is snapshot_at(tbl, ts): the id of the snapshot that was current at an instant; NULL when the table had none.
var snapshotAt = &Function{
	Name:    "snapshot_at",
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "ts", OID: pgtype.Any}},
	Returns: pgtype.Int8, Strict: true, PerRow: true,
	Doc: "The id of the snapshot of a table that was current at an instant (or at any other bound).",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		ident, err := tableArg(env, "snapshot_at", args)
		if err != nil {
			return nil, err
		}
		b, err := boundArg(env, args, 1)
		if err != nil {
			return nil, err
		}
		at, err := env.stored(ctx, ident)
		if err != nil {
			return nil, err
		}
		if at == nil {
			return &Value{OID: pgtype.Int8, Null: true}, nil
		}
		st, err := env.Changes.StateAt(ctx, env.Cut, at.Ident, b)
		if err != nil {
			return nil, err
		}
		if st.Snapshot == nil {
			return &Value{OID: pgtype.Int8, Null: true}, nil
		}
		return &Value{OID: pgtype.Int8, Text: strconv.FormatInt(*st.Snapshot, 10)}, nil
	},
}
