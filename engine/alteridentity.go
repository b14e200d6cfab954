package engine

import (
	"context"
	"fmt"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// generatedFrom are the generated columns of the table to be that are computed from a column.
func (a *alteration) generatedFrom(_ context.Context, f *alteredField) ([]string, error) {
	var out []string
	for _, g := range a.fields {
		if expr := a.def.columns[g.ID].Generated; expr != "" && g.ID != f.ID {
			uses, err := pgsql.ExprUses(expr, f.Name)
			if err != nil {
				return nil, err
			}
			if uses {
				out = append(out, g.Name)
			}
		}
	}
	return out, nil
}

// dropColumnChecks drops the CHECK constraints that involve a column.
func (a *alteration) dropColumnChecks(_ context.Context, column string) error {
	var gone []string
	for _, c := range a.def.checks {
		uses, err := pgsql.ExprUses(c.Expr, column)
		if err != nil {
			return err
		}
		if uses {
			gone = append(gone, c.Name)
		}
	}
	for _, name := range gone {
		a.def.dropCheck(name)
	}
	return nil
}

// renameInExpressions gives a column its new name in generated columns and CHECK constraints.
func (a *alteration) renameInExpressions(old, now string) error {
	for id, c := range a.def.columns {
		if c.Generated == "" {
			continue
		}
		var err error
		if c.Generated, err = pgsql.RenameInExpr(c.Generated, old, now); err != nil {
			return err
		}
		a.def.setColumn(id, c)
	}
	for i, c := range a.def.checks {
		var err error
		if a.def.checks[i].Expr, err = pgsql.RenameInExpr(c.Expr, old, now); err != nil {
			return err
		}
	}
	return nil
}

// newIdentityColumn gives a new serial or identity column its sequence; rows that are there draw numbers from it.
func (a *alteration) newIdentityColumn(ctx context.Context, f *alteredField, d pgsql.ColumnDef) error {
	q, err := a.newSequence(ctx, d, f.ID)
	if err != nil {
		return located(err, d.Loc)
	}
	c := columnDef{Default: q.nextvalSQL()}
	if d.Identity != "" {
		c = columnDef{Identity: d.Identity, Sequence: q.qualified()}
	}
	a.def.setColumn(f.ID, c)
	f.rewrite, f.nextval, f.Required = true, q.nextvalSQL(), true
	return nil
}

// newSequence makes and stores the sequence behind a column.
func (a *alteration) newSequence(ctx context.Context, d pgsql.ColumnDef, field int) (*storedSequence, error) {
	var lookup error
	q, err := a.s.columnSequence(ctx, d, a.old.Schema, a.old.Name, func(name string) bool {
		ok, err := a.s.exists(ctx, identOf(a.old.Schema, name))
		if err != nil {
			lookup = err
		}
		return ok
	})
	if err == nil {
		err = lookup
	}
	if err != nil {
		return nil, err
	}
	q.Owner = &sequenceOwner{Table: a.t.Key(), Field: field, Internal: d.Identity != ""}
	return q, a.s.putSequence(ctx, q, false)
}

// moveOwnership makes the sequences of a column those of the field that it became.
func (a *alteration) moveOwnership(ctx context.Context, old, now int) error {
	owned, err := a.s.ownedSequences(a.t.Key(), old)
	if err != nil {
		return err
	}
	for _, q := range owned {
		q.Owner.Field = now
		if err := a.s.putSequence(ctx, q, true); err != nil {
			return err
		}
	}
	return nil
}

// actIdentity runs the actions about generated and identity columns.
func (a *alteration) actIdentity(ctx context.Context, x *pgsql.AlterAction) error {
	f, err := a.column(x.Column)
	if err != nil {
		return err
	}
	c := a.def.columns[f.ID]
	lacks := func(what string) error {
		msg := fmt.Sprintf("column \"%s\" of relation \"%s\" is not %s", f.Name, a.name(), what)
		if x.Missing {
			a.w.Notice(notice(msg + ", skipping"))
			return nil
		}
		return pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "%s", msg)
	}
	switch x.Do {
	case pgsql.DropExpression:
		if c.Generated == "" {
			return lacks("a stored generated column")
		}
		c.Generated = ""
	case pgsql.DropIdentity:
		if c.Identity == "" {
			return lacks("an identity column")
		}
		c.Identity, c.Sequence = "", ""
		if err := a.s.dropOwnedSequences(ctx, a.t.Key(), f.ID); err != nil {
			return err
		}
	case pgsql.AddIdentity:
		if c, err = a.addIdentity(ctx, f, c, x); err != nil {
			return err
		}
	case pgsql.SetIdentity:
		if c.Identity == "" {
			return lacks("an identity column")
		}
		if x.Def.Identity != "" {
			c.Identity = x.Def.Identity
		}
		owned, err := a.s.ownedSequences(a.t.Key(), f.ID)
		if err != nil {
			return err
		}
		for _, q := range owned {
			if err := a.s.changeSequence(ctx, q, x.Def.Sequence); err != nil {
				return err
			}
		}
	default:
		return pgerr.Newf(pgerr.FeatureNotSupported, "ALTER TABLE ... %s is not supported", x.Do)
	}
	a.def.setColumn(f.ID, c)
	return nil
}

// addIdentity is ADD GENERATED … AS IDENTITY: rows that are there keep their values.
func (a *alteration) addIdentity(ctx context.Context, f *alteredField, c columnDef, x *pgsql.AlterAction) (columnDef, error) {
	fail := func(format string) (columnDef, error) {
		return c, pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, format, f.Name, a.name())
	}
	switch {
	case !f.Required:
		return fail("column \"%s\" of relation \"%s\" must be declared NOT NULL before identity can be added")
	case c.Identity != "":
		return fail("column \"%s\" of relation \"%s\" is already an identity column")
	case c.Default != "":
		return fail("column \"%s\" of relation \"%s\" already has a default value")
	case c.Generated != "":
		return fail("column \"%s\" of relation \"%s\" is a generated column")
	}
	d := x.Def
	d.Name, d.Type, d.Mod = f.Name, f.oid, f.mod
	q, err := a.newSequence(ctx, d, f.ID)
	if err != nil {
		return c, err
	}
	return columnDef{Identity: d.Identity, Sequence: q.qualified()}, nil
}
