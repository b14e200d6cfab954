package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	icecatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/pgwire"
)

func (s *session) drop(ctx context.Context, w pgwire.Writer, u *pgsql.Drop) error {
	if u.What == "table" || u.What == "view" {
		return s.dropRelations(ctx, w, u)
	}
	for _, n := range u.Names {
		var err error
		switch u.What {
		case "schema":
			err = s.dropSchema(ctx, w, n, u)
		default:
			err = s.dropSequence(ctx, w, n, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func skipMissing(w pgwire.Writer, what, name string) {
	w.Notice(notice(fmt.Sprintf("%s \"%s\" does not exist, skipping", what, name)))
}

// dropTable drops a table and the sequences that its columns own.
func (s *session) dropTable(ctx context.Context, ident table.Identifier, key catalog.TableKey) error {
	if err := s.dropOwnedSequences(ctx, key, 0); err != nil {
		return err
	}
	return s.tx.warehouseTx().DropTable(ctx, ident, false)
}

func (s *session) dropSchema(ctx context.Context, w pgwire.Writer, n pgsql.QName, u *pgsql.Drop) error {
	tx := s.tx.warehouseTx()
	ns := strings.Split(n.Name, ".")
	if reservedSchema(n.Name) && !(strings.HasPrefix(n.Name, tempAlias) && !tx.NamespaceExists(ns)) {
		return pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", n.Name)
	}
	if !tx.NamespaceExists(ns) {
		if u.IfExists {
			skipMissing(w, "schema", n.Name)
			return nil
		}
		return pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", n.Name)
	}
	inside := s.inSchema(tx, ns)
	if len(inside) > 0 && !u.Cascade {
		return notEmpty(n.Name, inside)
	}
	outside, err := s.dependsOnSchema(ctx, ns)
	if err != nil {
		return err
	}
	inside = append(outside, inside...)
	for _, d := range inside {
		if err := d.drop(ctx); err != nil {
			return err
		}
	}
	noticeCascade(w, inside)
	err = tx.DropNamespace(ctx, ns)
	if errors.Is(err, icecatalog.ErrNamespaceNotEmpty) {
		return notEmpty(n.Name, nil)
	}
	return err
}

func notEmpty(schema string, inside []dependent) error {
	e := pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop schema %s because other objects depend on it", schema).
		WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	lines := make([]string, len(inside))
	for i, d := range inside {
		lines[i] = d.name + " depends on schema " + schema
	}
	if len(lines) > 0 {
		return e.WithDetail("%s", strings.Join(lines, "\n"))
	}
	return e
}
