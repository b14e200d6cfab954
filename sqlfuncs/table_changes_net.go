package sqlfuncs

import "github.com/nordisk/skade-pg/internal/pgtype"

// tableChangesNet is table_changes_net(tbl, from, to): the net effect of a window, the state at from against the state at to.
//
// A keyed table gives at most one INSERT, one DELETE or one UPDATE_BEFORE with its UPDATE_AFTER per key; a table without a key the
// signed multiset difference. The two states may come in either order. Columns as of table_changes.
var tableChangesNet = &Function{
	Name: "table_changes_net",
	Args: []Arg{
		{Name: "tbl", OID: pgtype.Text},
		{Name: "from", OID: pgtype.Any},
		{Name: "to", OID: pgtype.Any, Default: "NULL"},
	},
	Returns: pgtype.Record, SetOf: true,
	Doc:      "The net effect of a window: the state at from against the state at to, one change per key.",
	Describe: describeChanges("table_changes_net"),
	Open:     openChanges(true),
	Plan:     planChanges(true),
}
