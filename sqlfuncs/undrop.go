package sqlfuncs

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// undrop is undrop(name [, new_name]): brings a dropped table back, with its key, snapshots, branches, tags and the sequences of its columns. name is the table's name as view
// skade.dropped_tables has it (schema.table), or its uuid; of several tables with one name the one dropped last comes back. It returns the name it has now.
// Errors: 42P01 when there is none, 42P07 when the name is taken, 3F000 when the schema is gone.
var undrop = &Function{
	Name:    "undrop",
	Args:    []Arg{{Name: "name", OID: pgtype.Text}, {Name: "new_name", OID: pgtype.Text, Default: "NULL"}},
	Returns: pgtype.Text, Volatile: true,
	Doc: "Brings a dropped table back, under its name or another.",
	Call: func(ctx context.Context, env *Env, args []*Value) (*Value, error) {
		if !given(args, 0) {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "name of undrop must not be null")
		}
		tx, err := env.Write("undrop")
		if err != nil {
			return nil, err
		}
		d, err := findDropped(env, args[0].Text)
		if err != nil {
			return nil, err
		}
		ident := d.State.Ident
		if given(args, 1) {
			if ident, err = env.NewName(args[1].Text, ident); err != nil {
				return nil, err
			}
		}
		if err := tx.UndropTable(ctx, d, ident); err != nil {
			return nil, err
		}
		if err := env.RestoreOwned(ctx, d, ident); err != nil {
			return nil, err
		}
		return &Value{OID: pgtype.Text, Text: sqlName(ident)}, nil
	},
}

// findDropped finds a dropped table by name or uuid.
func findDropped(env *Env, name string) (*catalog.DroppedTable, error) {
	var found *catalog.DroppedTable
	names, err := env.Candidates(name)
	for d := range env.Cut.DroppedTables() {
		if !env.Visible(d.State.Ident) {
			continue
		}
		if d.State.UUID.String() == strings.ToLower(name) {
			return d, nil
		}
		if err == nil && slices.ContainsFunc(names, func(id table.Identifier) bool { return slices.Equal(id, d.State.Ident) }) &&
			(found == nil || d.Seq > found.Seq) {
			found = d
		}
	}
	switch {
	case found != nil:
		return found, nil
	case err != nil:
		return nil, err
	}
	return nil, pgerr.Newf(pgerr.UndefinedTable, "there is no dropped table \"%s\"", name).
		WithHint("View skade.dropped_tables lists the tables that can come back.")
}
