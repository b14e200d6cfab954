package engine

import (
	"context"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// registerTable is register_table(name, metadata_location, replace): adopts a table that another catalog wrote. It is part of the
// transaction, and gives the id of the table's current snapshot, NULL when it has none.
var registerTable = &sessionFunction{schema: "skade", Function: sqlfuncs.Function{
	Name: "register_table",
	Args: []sqlfuncs.Arg{arg("name", pgtype.Text), arg("metadata_location", pgtype.Text),
		{Name: "replace", OID: pgtype.Bool, Default: "false"}},
	Returns: pgtype.Int8,
	Doc:     "Adopts a table of another catalog by its metadata file: from now on it is written here.",
}, call: callRegisterTable}

// unregisterTable is unregister_table(name): takes a table out of the catalog, leaves its files, and gives its metadata file.
var unregisterTable = &sessionFunction{schema: "skade", Function: sqlfuncs.Function{
	Name: "unregister_table", Args: []sqlfuncs.Arg{arg("name", pgtype.Text)}, Returns: pgtype.Text,
	Doc: "Takes a table out of the catalog, leaves its files, and tells its metadata file for another catalog to register.",
}, call: callUnregisterTable}

func callRegisterTable(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	if err := s.superuserOnly("register_table"); err != nil {
		return nil, err
	}
	for i, name := range []string{"name", "metadata_location"} {
		if args[i] == nil || args[i].Null {
			return nil, pgerr.Newf(pgerr.NullValueNotAllowed, "argument %s of register_table must not be null", name)
		}
	}
	if err := s.tx.writable("register_table"); err != nil {
		return nil, err
	}
	schema, name, err := pgsql.ParseQualifiedName(args[0].Text)
	if err != nil {
		return nil, err
	}
	ident, err := s.createIn(schema, name)
	if err != nil {
		return nil, err
	}
	f, err := s.gw.catalog.ReadForeign(ctx, args[1].Text)
	if err != nil {
		return nil, err
	}
	replace := len(args) > 2 && args[2] != nil && !args[2].Null && strings.HasPrefix(args[2].Text, "t")
	t, err := s.tx.warehouseTx().RegisterTable(ctx, ident, f, replace)
	if err != nil {
		return nil, err
	}
	out := &sqlfuncs.Value{OID: pgtype.Int8, Null: true}
	if id, ok := t.State().SnapshotID(); ok {
		out.Null, out.Text = false, strconv.FormatInt(id, 10)
	}
	return out, nil
}

func callUnregisterTable(ctx context.Context, s *session, args []*sqlfuncs.Value) (*sqlfuncs.Value, error) {
	if err := s.superuserOnly("unregister_table"); err != nil {
		return nil, err
	}
	if args[0] == nil || args[0].Null {
		return nil, pgerr.New(pgerr.NullValueNotAllowed, "argument name of unregister_table must not be null")
	}
	if err := s.tx.writable("unregister_table"); err != nil {
		return nil, err
	}
	ident, err := s.resolveTableName(ctx, args[0].Text, false)
	if err != nil {
		return nil, err
	}
	location, err := s.tx.warehouseTx().UnregisterTable(ctx, ident)
	if err != nil {
		return nil, err
	}
	return &sqlfuncs.Value{OID: pgtype.Text, Text: location}, nil
}

// superuserOnly refuses a function that reaches outside the warehouse's folder to everybody else.
func (s *session) superuserOnly(fn string) error {
	if !s.gw.isSuperuser(s.user()) {
		return pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied for function %s", fn).WithHint("Only superusers may call it.")
	}
	return nil
}
