package sqlfuncs

import (
	"context"

	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// createBranch is create_branch(tbl, name [, bound [, retain [, min_snapshots_to_keep [, max_snapshot_age]]]]): a second line of snapshots,
// which starts at the bound, or at the table as the transaction sees it. retain is how long the branch stays, the other two what expiry keeps of its past.
//
// It returns the id of the snapshot it starts at, as create_tag does. Errors: 42710, 42704, 22023, 55000.
var createBranch = &Function{
	Name: "create_branch",
	Args: []Arg{
		{Name: "tbl", OID: pgtype.Text}, {Name: "name", OID: pgtype.Text},
		{Name: "bound", OID: pgtype.Any, Default: "NULL"}, {Name: "retain", OID: pgtype.Interval, Default: "NULL"},
		{Name: "min_snapshots_to_keep", OID: pgtype.Int4, Default: "NULL"}, {Name: "max_snapshot_age", OID: pgtype.Interval, Default: "NULL"},
	},
	Returns: pgtype.Int8, Volatile: true,
	Doc: "Begins a branch of a table: SET skade.branch reads and writes it.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		var r warehouse.RefRetention
		var err error
		if r.MaxRefAge, err = ageArg("create_branch", args, 3, "retain"); err != nil {
			return nil, err
		}
		if r.MinSnapshotsToKeep, err = countArg("create_branch", args, 4, "min_snapshots_to_keep"); err != nil {
			return nil, err
		}
		if r.MaxSnapshotAge, err = ageArg("create_branch", args, 5, "max_snapshot_age"); err != nil {
			return nil, err
		}
		return createRef(ctx, env, "create_branch", args, warehouse.NewRef{Retention: r})
	},
}
