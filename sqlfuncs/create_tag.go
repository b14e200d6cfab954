package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// createTag is create_tag(tbl, name [, bound [, retain]]): a name for a snapshot, which keeps it from expiry. Without a bound it is the table as the
// transaction sees it. retain is how long the tag stays (Iceberg's max-ref-age-ms).
//
// It returns the snapshot's id; NULL when that is the one the transaction's commit makes. Errors: 42710, 42704, 22023, 55000.
var createTag = &Function{
	Name: "create_tag",
	Args: []Arg{
		{Name: "tbl", OID: pgtype.Text}, {Name: "name", OID: pgtype.Text},
		{Name: "bound", OID: pgtype.Any, Default: "NULL"}, {Name: "retain", OID: pgtype.Interval, Default: "NULL"},
	},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Gives a snapshot of a table a name that keeps it from expiry.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		retain, err := ageArg("create_tag", args, 3, "retain")
		if err != nil {
			return nil, err
		}
		return createRef(ctx, env, "create_tag", args, warehouse.NewRef{Tag: true, Retention: warehouse.RefRetention{MaxRefAge: retain}})
	},
}

// createRef makes a branch or tag from the arguments tbl, name and bound.
func createRef(ctx context.Context, env *Env, fn string, args []*Value, r warehouse.NewRef) (*Value, error) {
	ident, err := tableArg(env, fn, args)
	if err != nil {
		return nil, err
	}
	if r.Name, err = nameArg(fn, args, 1, "name"); err != nil {
		return nil, err
	}
	tx, err := env.Write(fn)
	if err != nil {
		return nil, err
	}
	if r.Snapshot, err = snapshotArg(ctx, env, ident, args, 2); err != nil {
		return nil, err
	}
	id, err := tx.CreateRef(ctx, ident, r)
	if err != nil {
		return nil, err
	}
	return snapshotValue(id), nil
}
