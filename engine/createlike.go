package engine

import (
	"context"
	"slices"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/warehouse"
)

// expandLikes replaces LIKE table INCLUDING … by what it stands for. u itself is not changed: it may run again.
func (s *session) expandLikes(ctx context.Context, u *pgsql.CreateTable, n *newTable) (*pgsql.CreateTable, error) {
	out := *u
	out.Checks, out.Unique = slices.Clone(u.Checks), slices.Clone(u.Unique)
	out.Columns = nil
	at := 0
	for _, l := range u.Likes {
		out.Columns = append(out.Columns, u.Columns[at:l.At]...)
		at = l.At
		if err := s.expandLike(ctx, &out, n, l); err != nil {
			return nil, err
		}
	}
	out.Columns = append(out.Columns, u.Columns[at:]...)
	for i, c := range out.Columns {
		if slices.ContainsFunc(out.Columns[:i], func(d pgsql.ColumnDef) bool { return d.Name == c.Name }) {
			return nil, pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", c.Name)
		}
	}
	return &out, nil
}

func (s *session) expandLike(ctx context.Context, u *pgsql.CreateTable, n *newTable, l pgsql.LikeClause) error {
	t, view, err := s.findRelation(ctx, l.Table)
	switch {
	case err != nil:
		return err
	case view != nil:
		v, err := s.view(view)
		if err != nil {
			return err
		}
		for _, c := range v.Columns {
			u.Columns = append(u.Columns, pgsql.ColumnDef{Name: c.Name, Type: c.OID, Mod: c.Mod})
		}
		return nil
	case t == nil:
		return undefinedTable(l.Table)
	}
	rel, def := tableRelation(t), readTableDef(t.Metadata().Properties())
	for i, c := range rel.Columns {
		d := pgsql.ColumnDef{Name: c.Name, Type: c.Type, Mod: c.Mod, NotNull: c.NotNull}
		switch {
		case c.Identity != "" && l.Identity:
			d.Identity = c.Identity
			if d.Sequence, err = s.likeSequence(t, t.Schema().Fields()[i].ID); err != nil {
				return err
			}
		case c.Identity != "":
		case c.Generated != "" && l.Generated:
			d.Generated = c.Generated
		case c.Default != "" && c.Generated == "" && l.Defaults:
			d.Default = c.Default
		}
		if l.Comments {
			n.comments[c.Name] = t.Schema().Fields()[i].Doc
		}
		u.Columns = append(u.Columns, d)
	}
	if l.Constraints {
		for _, c := range def.checks {
			if slices.ContainsFunc(u.Checks, func(h pgsql.CheckDef) bool { return h.Name == c.Name }) {
				continue
			}
			u.Checks = append(u.Checks, pgsql.CheckDef{Name: c.Name, Expr: c.Expr, NoInherit: c.NoInherit})
		}
	}
	if !l.Indexes || len(rel.Key) == 0 {
		return nil
	}
	var key []string
	for _, i := range rel.Key {
		key = append(key, rel.Columns[i].Name)
	}
	if def.unique {
		u.Unique = append(u.Unique, pgsql.KeyDef{Columns: key})
		return nil
	}
	if u.PrimaryKey != nil {
		return pgerr.Newf(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", u.Name)
	}
	u.PrimaryKey = key
	return nil
}

// likeSequence are the options that make a sequence like the one behind an identity column.
func (s *session) likeSequence(t *warehouse.TxTable, field int) (*pgsql.SequenceOptions, error) {
	owned, err := s.ownedSequences(t.Key(), field)
	if err != nil || len(owned) == 0 {
		return nil, err
	}
	q := owned[0]
	return &pgsql.SequenceOptions{Type: q.typeOID(), Start: &q.Start, Increment: &q.Increment, Min: &q.Min, Max: &q.Max, Cache: &q.Cache, Cycle: &q.Cycle}, nil
}
