package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// keyName is the name that the key's constraint has, "" without a key.
func (a *alteration) keyName() string {
	if len(a.keys) == 0 {
		return ""
	}
	props := a.t.Metadata().Properties()
	if n, ok := a.props[propConstraint]; ok {
		return n
	}
	if slices.Contains(a.gone, propConstraint) {
		return constraintName(a.t.Ident(), nil)
	}
	return constraintName(a.t.Ident(), props)
}

// hasConstraint says whether a constraint of the table to be has the name.
func (a *alteration) hasConstraint(name string) bool {
	_, ok := a.def.check(name)
	return ok || name == a.keyName()
}

// addConstraints adds what ADD COLUMN or ADD CONSTRAINT brought.
func (a *alteration) addConstraints(ctx context.Context, c *pgsql.CreateTable) error {
	if c == nil {
		return nil
	}
	if c.PrimaryKey != nil {
		if err := a.addKey(c.PrimaryKey, c.ConstraintName, false); err != nil {
			return err
		}
	}
	for _, u := range c.Unique {
		if err := a.addUnique(u); err != nil {
			return err
		}
	}
	for _, ch := range c.Checks {
		if err := a.addCheck(ctx, ch); err != nil {
			return err
		}
	}
	return nil
}

// addCheck adds a CHECK constraint; NOT VALID leaves the rows that are there alone.
func (a *alteration) addCheck(ctx context.Context, c pgsql.CheckDef) error {
	check, err := a.s.newCheck(ctx, a.relation(), c, a.def, a.keyName())
	if err != nil {
		return located(err, c.Loc)
	}
	a.def.addCheck(check)
	if !check.NotValid {
		a.checks = append(a.checks, check.Name)
	}
	return nil
}

// addKey makes columns the table's identifier fields. Rows that are there must have different keys, and no NULL in them.
func (a *alteration) addKey(cols []string, name string, unique bool) error {
	if len(a.keys) > 0 {
		if a.def.unique || unique {
			return pgerr.Newf(pgerr.FeatureNotSupported, "table \"%s\" has a key already", a.name()).
				WithHint("A table has one key here: the identifier fields of Iceberg's schema.")
		}
		return pgerr.Newf(pgerr.InvalidTableDefinition, "multiple primary keys for table \"%s\" are not allowed", a.name())
	}
	if name != "" && a.hasConstraint(name) {
		return pgerr.Newf(pgerr.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", name, a.name())
	}
	var ids []int
	for _, col := range cols {
		f, err := a.column(col)
		if err != nil {
			return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" named in key does not exist", col)
		}
		if err := keyable(f.Name, f.Type, f.oid); err != nil {
			return err
		}
		if unique && !f.Required {
			return pgerr.Newf(pgerr.FeatureNotSupported, "column \"%s\" of a UNIQUE constraint must be NOT NULL", col).
				WithHint("ALTER COLUMN ... SET NOT NULL first, or declare a PRIMARY KEY.")
		}
		if err := a.addNotNull(f); err != nil {
			return err
		}
		ids = append(ids, f.ID)
	}
	a.keys, a.newKey, a.def.unique = ids, true, unique
	if name == "" && unique {
		name = objectName(a.name(), joinNames(cols), "key")
	}
	a.setKeyName(name)
	return nil
}

func joinNames(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += "_"
		}
		out += n
	}
	return out
}

// setKeyName names the key's constraint; "" is <table>_pkey.
func (a *alteration) setKeyName(name string) {
	if name == "" || name == constraintName(a.t.Ident(), nil) {
		a.unset(propConstraint)
		return
	}
	a.gone = slices.DeleteFunc(a.gone, func(k string) bool { return k == propConstraint })
	a.props[propConstraint] = name
}

func (a *alteration) addUnique(u pgsql.KeyDef) error { return a.addKey(u.Columns, u.Name, true) }

// dropKey takes the key away; its columns stay NOT NULL, as in PostgreSQL.
func (a *alteration) dropKey() {
	for _, id := range a.keys {
		if f := a.fieldByID(id); f != nil {
			f.Required = true
		}
	}
	a.keys, a.newKey, a.def.unique = nil, false, false
	a.unset(propConstraint)
}

// dropConstraint is DROP CONSTRAINT.
func (a *alteration) dropConstraint(x *pgsql.AlterAction) error {
	switch {
	case len(a.keys) > 0 && x.Column == a.keyName():
		a.dropKey()
	case a.def.dropCheck(x.Column):
		a.checks = slices.DeleteFunc(a.checks, func(n string) bool { return n == x.Column })
	case x.Missing:
		a.w.Notice(notice(fmt.Sprintf("constraint \"%s\" of relation \"%s\" does not exist, skipping", x.Column, a.name())))
	default:
		return pgerr.Newf(pgerr.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", x.Column, a.name())
	}
	return nil
}

// validateConstraint is VALIDATE CONSTRAINT: the rows from before a constraint that was added NOT VALID are checked.
func (a *alteration) validateConstraint(x *pgsql.AlterAction) error {
	i, ok := a.def.check(x.Column)
	if !ok {
		if len(a.keys) > 0 && x.Column == a.keyName() {
			return pgerr.Newf(pgerr.WrongObjectType, "constraint \"%s\" of relation \"%s\" is not a foreign key or check constraint", x.Column, a.name())
		}
		return pgerr.Newf(pgerr.UndefinedObject, "constraint \"%s\" of relation \"%s\" does not exist", x.Column, a.name())
	}
	if a.def.checks[i].NotValid {
		a.def.checks[i].NotValid = false
		a.checks = append(a.checks, x.Column)
	}
	return nil
}

// renameConstraint is RENAME CONSTRAINT.
func (a *alteration) renameConstraint(old, now string) error {
	if !a.hasConstraint(old) {
		return pgerr.Newf(pgerr.UndefinedObject, "constraint \"%s\" for table \"%s\" does not exist", old, a.name())
	}
	if a.hasConstraint(now) {
		return pgerr.Newf(pgerr.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", now, a.name())
	}
	i, ok := a.def.check(old)
	if !ok {
		a.setKeyName(now)
		return nil
	}
	c := a.def.checks[i]
	a.def.dropCheck(old)
	c.Name = now
	a.def.addCheck(c)
	return nil
}

// recheck reads the CHECK constraints of columns that got another type again, as PostgreSQL does: their operators may be others now, or none,
// and the rows may not satisfy them any more.
func (a *alteration) recheck(ctx context.Context) error {
	for i, c := range a.def.checks {
		if slices.Contains(a.checks, c.Name) || !slices.ContainsFunc(pgsql.ExprColumns(c.Expr), a.wasRetyped) {
			continue
		}
		// Its literals keep the types that they have: PostgreSQL reads the condition as it prints it.
		if full, _, ok := pgsql.ShownExpr(a.old, c.Expr, 0); ok {
			c.Expr = full
		}
		if err := pgsql.CheckCondition(a.relation(), c.Expr, &resolver{ctx: ctx, s: a.s}); err != nil {
			e := pgerr.As(a.s.sqlError(ctx, err))
			return e.WithPosition(0)
		}
		a.def.checks[i] = c
		if !c.NotValid {
			a.checks = append(a.checks, c.Name)
		}
	}
	return nil
}

func (a *alteration) wasRetyped(column string) bool {
	f, err := a.column(column)
	return err == nil && f.retyped
}
