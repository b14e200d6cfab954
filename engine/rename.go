package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// alter runs ALTER … RENAME, SET SCHEMA and ALTER SCHEMA … OWNER TO.
func (s *session) alter(ctx context.Context, w pgwire.Writer, u *pgsql.Alter) error {
	switch u.What {
	case "schema":
		return s.alterSchema(ctx, u)
	case "sequence":
		return s.renameSequence(ctx, u)
	case "index":
		return s.renameIndex(ctx, w, u)
	case "table", "view":
	default:
		return pgerr.Newf(pgerr.FeatureNotSupported, "ALTER %s is not supported", strings.ToUpper(u.What))
	}
	if s.systemSchema(u.Name.Schema) {
		return pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", u.Name.Name)
	}
	name := u.Name
	name.Loc = 0 // PostgreSQL tells no position here
	t, view, err := s.findRelation(ctx, name)
	switch {
	case err != nil:
		return err
	case t == nil && view == nil:
		if u.IfExists {
			skipMissing(w, "relation", name.Name)
			return nil
		}
		return undefinedTable(name)
	case view == nil && u.What == "view":
		return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", name.Name)
	}
	from := view
	if t != nil {
		from = t.Ident()
	}
	switch u.Action {
	case "rename":
		to := slices.Clone(from)
		to[len(to)-1] = u.NewName
		return s.renameRelation(ctx, t, from, to)
	case "set schema":
		to, err := s.moveTarget(from, u.NewName)
		if err != nil || slices.Equal(from, to) { // the schema it is in: nothing to do, as in PostgreSQL
			return err
		}
		return s.renameRelation(ctx, t, from, to)
	case "rename column":
		if t == nil {
			return s.renameViewColumn(ctx, view, u.Column, u.NewName)
		}
		return s.renameColumn(ctx, w, t, u.Column, u.NewName)
	}
	if t == nil {
		return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", name.Name)
	}
	a, err := s.newAlteration(ctx, w, t)
	if err != nil {
		return err
	}
	if err := a.renameConstraint(u.Column, u.NewName); err != nil {
		return err
	}
	return a.finish(ctx)
}

// alterSchema is ALTER SCHEMA.
func (s *session) alterSchema(ctx context.Context, u *pgsql.Alter) error {
	switch {
	case u.Action == "rename" && reservedSchema(u.Name.Name):
		return pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system schema", u.Name.Name)
	case !s.tx.warehouseTx().NamespaceExists(strings.Split(u.Name.Name, ".")):
		return pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", u.Name.Name)
	case u.Action == "owner to":
		return s.newOwner(u.NewName)
	}
	return s.renameSchema(ctx, u)
}

// renameRelation gives a table (t) or a view another name. Views that read it follow.
func (s *session) renameRelation(ctx context.Context, t *warehouse.TxTable, from, to table.Identifier) error {
	if ok, err := s.exists(ctx, to); err != nil || ok {
		if err != nil {
			return err
		}
		if schemaOf(from) != schemaOf(to) {
			return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists in schema \"%s\"", to[len(to)-1], schemaOf(to))
		}
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", to[len(to)-1])
	}
	views, err := s.viewsOn(ctx, from)
	if err != nil {
		return err
	}
	tx := s.tx.warehouseTx()
	if t != nil {
		if err := tx.RenameTable(ctx, from, to); err != nil {
			return err
		}
		if schemaOf(from) != schemaOf(to) {
			if err := s.moveOwnedSequences(ctx, t, schemaOf(to)); err != nil {
				return err
			}
		}
	} else {
		o, err := tx.Object(viewKind, from[:len(from)-1], from[len(from)-1])
		if err != nil {
			return err
		}
		if err := tx.DropObject(ctx, viewKind, from[:len(from)-1], from[len(from)-1]); err != nil {
			return err
		}
		moved := catalog.Object{Kind: viewKind, Namespace: to[:len(to)-1], Name: to[len(to)-1], Payload: o.Payload}
		if err := tx.PutObject(ctx, moved, false); err != nil {
			return err
		}
	}
	return s.retarget(ctx, views, from, to, nil)
}

// renameColumn is ALTER TABLE … RENAME COLUMN. Views that use the column go on under its old name, generated columns and CHECK constraints
// get the new one.
func (s *session) renameColumn(ctx context.Context, w pgwire.Writer, t *warehouse.TxTable, old, now string) error {
	a, err := s.newAlteration(ctx, w, t)
	if err != nil {
		return err
	}
	if slices.Contains(systemColumns, old) {
		return pgerr.Newf(pgerr.FeatureNotSupported, "cannot rename system column \"%s\"", old)
	}
	f, err := a.column(old)
	if err != nil {
		return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" does not exist", old)
	}
	if err := a.freeName(now); err != nil {
		return err
	}
	views, err := s.viewsOn(ctx, t.Ident())
	if err != nil {
		return err
	}
	place, shown := f.from, make([]string, len(a.fields))
	for i, f := range a.fields {
		shown[i] = f.Name
	}
	f.Name = now
	if err := a.renameInExpressions(old, now); err != nil {
		return err
	}
	if err := a.finish(ctx); err != nil {
		return err
	}
	views = slices.DeleteFunc(views, func(v viewUse) bool { return !slices.Contains(v.columns, place) })
	return s.retarget(ctx, views, t.Ident(), t.Ident(), func(aliases []string) []string {
		if len(aliases) > place {
			return aliases
		}
		return append(slices.Clone(aliases), shown[len(aliases):place+1]...)
	})
}

// renameViewColumn is ALTER VIEW … RENAME COLUMN.
func (s *session) renameViewColumn(ctx context.Context, ident table.Identifier, old, now string) error {
	v, err := s.view(ident)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(v.Columns, func(c viewColumn) bool { return c.Name == old })
	if i < 0 {
		return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" does not exist", old)
	}
	if slices.ContainsFunc(v.Columns, func(c viewColumn) bool { return c.Name == now }) {
		return pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", now, ident[len(ident)-1])
	}
	views, err := s.viewsOn(ctx, ident)
	if err != nil {
		return err
	}
	shown := make([]string, len(v.Columns))
	for k, c := range v.Columns {
		shown[k] = c.Name
	}
	v.Columns = slices.Clone(v.Columns)
	v.Columns[i].Name = now
	if err := s.putView(ctx, ident, v); err != nil {
		return err
	}
	return s.retarget(ctx, views, ident, ident, func(aliases []string) []string {
		if len(aliases) > i {
			return aliases
		}
		return append(slices.Clone(aliases), shown[len(aliases):i+1]...)
	})
}

// renameIndex is ALTER INDEX … RENAME TO: the only index of a table is its key's, and has the constraint's name.
func (s *session) renameIndex(ctx context.Context, w pgwire.Writer, u *pgsql.Alter) error {
	schemas := []string{s.schemaName(u.Name.Schema)}
	if u.Name.Schema == "" {
		schemas = s.effectivePath()
	}
	for _, schema := range schemas {
		for _, info := range s.tx.warehouseTx().Tables() {
			if schemaOf(info.Ident) != schema {
				continue
			}
			t, err := s.table(ctx, info.Ident)
			if err != nil {
				return err
			}
			if len(t.Schema().IdentifierFieldIDs) == 0 || constraintName(info.Ident, t.Metadata().Properties()) != u.Name.Name {
				continue
			}
			a, err := s.newAlteration(ctx, w, t)
			if err != nil {
				return err
			}
			if err := a.renameConstraint(u.Name.Name, u.NewName); err != nil {
				return err
			}
			return a.finish(ctx)
		}
	}
	if u.IfExists {
		skipMissing(w, "relation", u.Name.Name)
		return nil
	}
	name := u.Name
	name.Loc = 0
	return undefinedTable(name)
}
