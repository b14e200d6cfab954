package sqlfuncs

import (
	"context"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// fastForward is fast_forward(tbl, branch, to): moves a branch to the head of another branch or tag, which must descend from it. It returns the snapshot
// that the branch is at now. Errors: 42704, 55000 when it does not descend, 40001 at COMMIT when the branch was moved meanwhile.
var fastForward = &Function{
	Name:    "fast_forward",
	Args:    []Arg{{Name: "tbl", OID: pgtype.Text}, {Name: "branch", OID: pgtype.Text}, {Name: "to", OID: pgtype.Text}},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Moves a branch forward to the head of another branch or tag.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		ident, err := tableArg(env, "fast_forward", args)
		if err != nil {
			return nil, err
		}
		branch, err := nameArg("fast_forward", args, 1, "branch")
		if err != nil {
			return nil, err
		}
		to, err := nameArg("fast_forward", args, 2, "to")
		if err != nil {
			return nil, err
		}
		tx, err := env.Write("fast_forward")
		if err != nil {
			return nil, err
		}
		id, err := refHead(ctx, env, ident, to)
		if err != nil {
			return nil, err
		}
		if _, err := tx.MoveBranch(ctx, ident, branch, id, warehouse.MoveForward); err != nil {
			return nil, err
		}
		return snapshotValue(id), nil
	},
}

// refHead is the snapshot of a branch or tag at the cut.
func refHead(ctx context.Context, env *Env, ident table.Identifier, name string) (int64, error) {
	st, err := env.stored(ctx, ident)
	if err != nil {
		return 0, err
	}
	if st == nil {
		return 0, noPast(ident)
	}
	if id, ok := st.SnapshotID(); ok && name == table.MainBranch {
		return id, nil
	}
	if r, ok := st.Ref(name); ok {
		return r.SnapshotID, nil
	}
	return 0, pgerr.Newf(pgerr.UndefinedObject, "table \"%s\" has no branch or tag \"%s\"", ident[len(ident)-1], name).
		WithHint("View skade.refs lists the branches and tags.")
}
