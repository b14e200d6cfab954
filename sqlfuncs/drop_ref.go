package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// dropRef is drop_ref(tbl, name): removes a branch or tag. Its snapshots stay until they expire. It returns the snapshot that it named.
// Errors: 42704, 55000 for main.
var dropRef = &Function{
	Name:    "drop_ref",
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "name", OID: pgtype.Text}},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Removes a branch or tag of a table.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		ident, err := tableArg(env, "drop_ref", args)
		if err != nil {
			return nil, err
		}
		name, err := nameArg("drop_ref", args, 1, "name")
		if err != nil {
			return nil, err
		}
		tx, err := env.Write("drop_ref")
		if err != nil {
			return nil, err
		}
		id, err := tx.DropRef(ctx, ident, name)
		if err != nil {
			return nil, err
		}
		return snapshotValue(id), nil
	},
}
