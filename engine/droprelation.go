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
)

// dropTarget is a table or a view that is to go.
type dropTarget struct {
	ident table.Identifier
	key   catalog.TableKey // "" for a view
}

// dropRelations is DROP TABLE and DROP VIEW. A view that reads what goes, goes with it or keeps it.
func (s *session) dropRelations(ctx context.Context, w pgwire.Writer, u *pgsql.Drop) error {
	var targets []dropTarget
	for _, n := range u.Names {
		t, err := s.dropTarget(ctx, w, n, u)
		if err != nil {
			return err
		}
		if t != nil && !slices.ContainsFunc(targets, func(o dropTarget) bool { return slices.Equal(o.ident, t.ident) }) {
			targets = append(targets, *t)
		}
	}
	var deps []dependent
	var lines []string
	for _, t := range targets {
		d, why, err := s.dependents(ctx, t, u.What+" "+s.label(t.ident))
		if err != nil {
			return err
		}
		for i := range d {
			named := slices.ContainsFunc(targets, func(o dropTarget) bool {
				return o.key == "" && "view "+s.label(o.ident) == d[i].name || o.key != "" && o.key == d[i].table
			})
			if !named && !slices.ContainsFunc(deps, func(o dependent) bool { return o.name == d[i].name }) {
				deps, lines = append(deps, d[i]), append(lines, why[i])
			}
		}
	}
	if len(deps) > 0 && !u.Cascade {
		if len(targets) > 1 {
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop desired object(s) because other objects depend on them").
				WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
		}
		return stillNeeded(u.What+" "+s.label(targets[0].ident), lines)
	}
	for _, d := range deps {
		if err := d.drop(ctx); err != nil {
			return err
		}
	}
	noticeCascade(w, deps)
	for _, t := range targets {
		if err := s.dropOne(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// dependents are what goes when a table or view goes, with the lines that say why: defaults of other tables that draw from its sequences, and views.
func (s *session) dependents(ctx context.Context, t dropTarget, what string) (deps []dependent, lines []string, err error) {
	if t.key != "" {
		owned, err := s.ownedSequences(t.key, 0)
		if err != nil {
			return nil, nil, err
		}
		for _, q := range owned {
			draws, err := s.drawers(ctx, q)
			if err != nil {
				return nil, nil, err
			}
			for _, d := range draws {
				if d.t.Key() == t.key {
					continue
				}
				name := "default value for column " + d.column + " of table " + d.table
				deps = append(deps, dependent{name: name, oid: tableOID(d.t), table: d.t.Key(), drop: func(ctx context.Context) error { return d.dropDefault(ctx, s) }})
				lines = append(lines, name+" depends on sequence "+s.label(q.ident))
			}
		}
	}
	views, why, err := s.dependsOn(ctx, t.ident, what)
	return append(deps, views...), append(lines, why...), err
}

func (s *session) dropOne(ctx context.Context, t dropTarget) error {
	if t.key != "" {
		return s.dropTable(ctx, t.ident, t.key)
	}
	return s.tx.warehouseTx().DropObject(ctx, viewKind, t.ident[:len(t.ident)-1], t.ident[len(t.ident)-1])
}

// dropTarget finds what a name means; nil without an error when there is nothing and IF EXISTS was given.
func (s *session) dropTarget(ctx context.Context, w pgwire.Writer, n pgsql.QName, u *pgsql.Drop) (*dropTarget, error) {
	if s.systemSchema(n.Schema) {
		return nil, pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", n.Name)
	}
	t, view, err := s.findRelation(ctx, n)
	if e := pgerr.As(err); e != nil && e.Code == pgerr.InvalidSchemaName {
		err = nil // said below
	}
	switch {
	case err != nil:
		return nil, err
	case t == nil && view == nil:
		lost := n.Schema != "" && n.Schema != tempAlias && !s.tx.warehouseTx().NamespaceExists(strings.Split(n.Schema, "."))
		switch {
		case u.IfExists && lost:
			skipMissing(w, "schema", n.Schema)
		case u.IfExists:
			skipMissing(w, u.What, n.Name)
		case lost:
			return nil, pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", n.Schema)
		default:
			return nil, pgerr.Newf(pgerr.UndefinedTable, "%s \"%s\" does not exist", u.What, n.Name)
		}
		return nil, nil
	case t != nil && u.What == "view":
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", n.Name).WithHint("Use DROP TABLE to remove a table.")
	case view != nil && u.What == "table":
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", n.Name).WithHint("Use DROP VIEW to remove a view.")
	case t != nil:
		return &dropTarget{t.Ident(), t.Key()}, nil
	}
	return &dropTarget{ident: view}, nil
}

// dependsOnSchema are the views of other schemas that read what is in one.
func (s *session) dependsOnSchema(ctx context.Context, ns table.Identifier) ([]dependent, error) {
	tx := s.tx.warehouseTx()
	var inside []table.Identifier
	for _, t := range tx.Tables() {
		if slices.Equal(t.Ident[:len(t.Ident)-1], ns) {
			inside = append(inside, t.Ident)
		}
	}
	for _, o := range tx.Objects(viewKind) {
		if slices.Equal(o.Namespace, ns) {
			inside = append(inside, append(slices.Clone(o.Namespace), o.Name))
		}
	}
	var out []dependent
	for _, ident := range inside {
		deps, _, err := s.dependsOn(ctx, ident, "")
		if err != nil {
			return nil, err
		}
		for _, d := range deps {
			own := slices.ContainsFunc(inside, func(i table.Identifier) bool { return "view "+s.label(i) == d.name })
			if !own && !slices.ContainsFunc(out, func(o dependent) bool { return o.name == d.name }) {
				out = append(out, d)
			}
		}
	}
	return out, nil
}
