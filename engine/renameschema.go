package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// renameSchema is ALTER SCHEMA … RENAME TO. Iceberg's catalogs have no renaming of namespaces: the new one is made, what is in the old one
// moves there, the old one goes, all in this transaction. Tables keep their keys, OIDs and places; defaults and views follow.
func (s *session) renameSchema(ctx context.Context, u *pgsql.Alter) error {
	from, to := strings.Split(u.Name.Name, "."), strings.Split(u.NewName, ".")
	tx := s.tx.warehouseTx()
	switch {
	case strings.HasPrefix(u.NewName, "pg_"):
		return pgerr.Newf(pgerr.ReservedName, "unacceptable schema name \"%s\"", u.NewName).WithDetail("The prefix \"pg_\" is reserved for system schemas.")
	case reservedSchema(u.NewName) || tx.NamespaceExists(to):
		return pgerr.Newf(pgerr.DuplicateSchema, "schema \"%s\" already exists", u.NewName)
	}
	for _, ns := range tx.Namespaces() {
		if len(ns) > len(from) && slices.Equal(ns[:len(from)], from) {
			return pgerr.Newf(pgerr.FeatureNotSupported, "cannot rename schema \"%s\"", u.Name.Name).
				WithDetail("Iceberg namespace \"%s\" is inside of it.", strings.Join(ns, "."))
		}
	}
	if err := tx.CreateNamespace(ctx, to, iceberg.Properties{"owner": s.user()}); err != nil {
		return err
	}
	if err := s.moveRelations(ctx, from, to); err != nil {
		return err
	}
	return tx.DropNamespace(ctx, from)
}

// moveRelations moves the tables with the sequences that they own, the views, and the other sequences.
func (s *session) moveRelations(ctx context.Context, from, to table.Identifier) error {
	tx := s.tx.warehouseTx()
	moved := func(name string) table.Identifier { return append(slices.Clone(to), name) }
	tables, err := s.tablesIn(ctx, from)
	if err != nil {
		return err
	}
	for _, t := range tables {
		ident := t.Ident()
		if err := s.renameRelation(ctx, t, ident, moved(ident[len(ident)-1])); err != nil {
			return err
		}
	}
	for _, o := range tx.Objects(viewKind) {
		if slices.Equal(o.Namespace, from) {
			if err := s.renameRelation(ctx, nil, append(slices.Clone(from), o.Name), moved(o.Name)); err != nil {
				return err
			}
		}
	}
	for _, o := range tx.Objects(sequenceKind) {
		if !slices.Equal(o.Namespace, from) {
			continue
		}
		q, err := decodeSequence(o)
		if err != nil {
			return err
		}
		if err := s.moveSequence(ctx, q, moved(o.Name)); err != nil {
			return err
		}
	}
	return nil
}

// tablesIn are the tables of a schema.
func (s *session) tablesIn(ctx context.Context, ns table.Identifier) ([]*warehouse.TxTable, error) {
	var out []*warehouse.TxTable
	for _, info := range s.tx.warehouseTx().Tables() {
		if !slices.Equal(info.Ident[:len(info.Ident)-1], ns) {
			continue
		}
		t, err := s.table(ctx, info.Ident)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}
