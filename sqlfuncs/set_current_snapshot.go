package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// setCurrentSnapshot is set_current_snapshot(tbl, bound): rollback_to without the condition that the snapshot is an ancestor.
var setCurrentSnapshot = &Function{
	Name:    "set_current_snapshot",
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "bound", OID: pgtype.Any}},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Sets a table to any retained snapshot.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		return moveTo(ctx, env, "set_current_snapshot", args, warehouse.MoveAnywhere)
	},
}
