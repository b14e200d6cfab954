package engine

import (
	"context"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// resolveTableName finds the table of a name as written in SQL text, or of a regclass's OID. temp says whether it may be a temporary one.
func (s *session) resolveTableName(ctx context.Context, name string, temp bool) (table.Identifier, error) {
	tx := s.readTx()
	if name != "" && strings.Trim(name, "0123456789") == "" {
		if oid, err := parseOID(name); err == nil {
			if ident, err := s.tableByOID(ctx, tx, oid, temp); ident != nil || err != nil {
				return ident, err
			}
		}
	}
	schema, rel, err := pgsql.ParseQualifiedName(name)
	if err != nil {
		return nil, err
	}
	schemas := []string{s.schemaName(schema)}
	if schema == "" {
		schemas = s.effectivePath()
	}
	for _, sch := range schemas {
		t, err := tx.Table(ctx, identOf(sch, rel))
		if err == nil {
			if t.Private() && !temp {
				return nil, refuseTemp(rel)
			}
			return t.Ident(), nil
		}
		if !notFound(err) {
			return nil, err
		}
		if v, err := s.view(identOf(sch, rel)); err == nil && v != nil {
			return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", rel)
		}
	}
	if other, err := (&resolver{ctx: ctx, s: s}).ResolveRelation(schema, rel); err != nil || other != nil {
		if err != nil {
			return nil, err
		}
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", rel)
	}
	if schema != "" {
		rel = schema + "." + rel
	}
	return nil, pgerr.Newf(pgerr.UndefinedTable, "relation \"%s\" does not exist", rel)
}

// tableByOID finds the table of a regclass; nil when no relation has the OID.
func (s *session) tableByOID(ctx context.Context, tx *warehouse.Tx, oid uint32, temp bool) (table.Identifier, error) {
	if st, ok := tx.Cut().TableByOID(oid); ok {
		// The transaction may have renamed or dropped it since.
		if t, err := tx.Table(ctx, st.Ident); err == nil && t.Key() == st.Key {
			return st.Ident, nil
		}
	}
	if ident := s.tempTableByOID(tx, oid); ident != nil && temp {
		return ident, nil
	} else if ident != nil {
		return nil, refuseTemp(ident[1])
	}
	name := s.catalogSnapshot().RegOut(&catalogView{s}, pgtype.RegClass, oid)
	if _, err := parseOID(name); err == nil {
		return nil, nil
	}
	return s.resolveTableName(ctx, name, temp)
}
