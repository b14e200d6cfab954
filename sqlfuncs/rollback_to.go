package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// rollbackTo is rollback_to(tbl, bound): sets the session's branch (main) back to a snapshot that it came from. The snapshots after it stay until they
// expire. It returns the snapshot that is current now. Errors: 55000 when the snapshot is no ancestor, 40001 at COMMIT when the branch was moved meanwhile.
var rollbackTo = &Function{
	Name:    "rollback_to",
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "bound", OID: pgtype.Any}},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Sets a table back to an earlier snapshot.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		return moveTo(ctx, env, "rollback_to", args, warehouse.MoveBack)
	},
}

// moveTo sets the session's branch of a table to the snapshot at a bound.
func moveTo(ctx context.Context, env *Env, fn string, args []*Value, move warehouse.Move) (*Value, error) {
	ident, err := tableArg(env, fn, args)
	if err != nil {
		return nil, err
	}
	if !given(args, 1) {
		return nil, pgerr.Newf(pgerr.InvalidParameterValue, "bound of %s must not be null", fn)
	}
	tx, err := env.Write(fn)
	if err != nil {
		return nil, err
	}
	to, err := snapshotArg(ctx, env, ident, args, 1)
	if err != nil {
		return nil, err
	}
	if _, err := tx.MoveBranch(ctx, ident, "", *to, move); err != nil {
		return nil, err
	}
	return snapshotValue(*to), nil
}
