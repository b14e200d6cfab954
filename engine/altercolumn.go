package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// systemColumns are the names that no column of PostgreSQL can have.
var systemColumns = []string{"tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"}

// freeName refuses a column name that is taken.
func (a *alteration) freeName(name string) error {
	if slices.Contains(systemColumns, name) {
		return pgerr.Newf(pgerr.DuplicateColumn, "column name \"%s\" conflicts with a system column name", name)
	}
	if _, err := a.column(name); err == nil {
		return pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" of relation \"%s\" already exists", name, a.name())
	}
	return nil
}

// addColumn is ADD COLUMN: metadata alone when the column starts as NULL, or (format 3) as a constant; else the rows are rewritten.
func (a *alteration) addColumn(ctx context.Context, x *pgsql.AlterAction) error {
	d := x.Def
	if err := a.freeName(d.Name); err != nil {
		if _, cerr := a.column(d.Name); cerr == nil && x.Missing {
			n := notice(fmt.Sprintf("column \"%s\" of relation \"%s\" already exists, skipping", d.Name, a.name()))
			n.Code = pgerr.DuplicateColumn
			a.w.Notice(n)
			return nil
		}
		return err
	}
	typ, prop, msg, err := pgtype.ToIceberg(d.Type, d.Mod)
	if err != nil {
		return located(err, d.Loc)
	}
	if msg != "" {
		a.w.Notice(notice(fmt.Sprintf("column \"%s\": %s", d.Name, msg)))
	}
	f := alteredField{NestedField: iceberg.NestedField{Name: d.Name, Type: typ}, oid: d.Type, mod: d.Mod, from: -1}
	a.newFieldID(&f.NestedField)
	a.setType(f.ID, prop)
	a.fields = append(a.fields, f)
	if err := a.newColumnValues(ctx, &a.fields[len(a.fields)-1], d); err != nil {
		return err
	}
	if d.NotNull {
		if err := a.addNotNull(&a.fields[len(a.fields)-1]); err != nil {
			return err
		}
	}
	return a.addConstraints(ctx, x.Constraints)
}

// newColumnValues settles where the values of a new column come from.
func (a *alteration) newColumnValues(ctx context.Context, f *alteredField, d pgsql.ColumnDef) error {
	c := columnDef{Default: d.Default, Generated: d.Generated}
	switch {
	case d.Serial || d.Identity != "":
		return a.newIdentityColumn(ctx, f, d)
	case d.Generated != "":
		f.rewrite = true // the table's guard computes it
		rel := a.relation()
		rel.Columns[len(rel.Columns)-1].Generated = d.Generated
		var err error
		if c.Generated, err = a.s.checkGenerated(ctx, rel, len(rel.Columns)-1); err != nil {
			return located(err, d.GeneratedLoc)
		}
	case d.Default != "":
		var err error
		if c.Default, err = a.checkDefault(ctx, f, d.Default); err != nil {
			return err
		}
		var constant any
		ok := c.Default == ""
		if !ok {
			if constant, ok, err = a.constantDefault(ctx, f, c.Default); err != nil {
				return err
			}
		}
		switch {
		case ok && constant == nil: // DEFAULT NULL
		case ok && a.version() >= 3:
			f.InitialDefault, f.WriteDefault = constant, constant
		default:
			f.rewrite, f.loc = true, d.DefaultLoc
			if ok && a.version() >= 3 {
				f.WriteDefault = constant
			}
		}
	}
	a.def.setColumn(f.ID, c)
	return nil
}

// version is the table's format version to be.
func (a *alteration) version() int { return max(a.t.Metadata().Version(), a.opts.format) }

// checkDefault refuses a default that is no value of the column, and gives its text as it is stored. PostgreSQL tells no position here.
func (a *alteration) checkDefault(ctx context.Context, f *alteredField, expr string) (string, error) {
	rel := &pgsql.Relation{Schema: a.old.Schema, Name: a.old.Name, Columns: []pgsql.RelColumn{{Name: f.Name, Type: f.oid, Mod: f.mod, Default: expr, Scale: pgtype.BareNumericScale}}}
	text, err := a.s.checkDefault(ctx, rel, 0)
	if e := pgerr.As(err); e != nil {
		err = e.WithPosition(0)
	}
	return text, err
}

// dropColumn is DROP COLUMN. What the column was part of goes with it as in PostgreSQL: a key, a CHECK constraint; a view or a generated
// column only with CASCADE. The files keep the values, which older snapshots show.
func (a *alteration) dropColumn(ctx context.Context, x *pgsql.AlterAction) error {
	f, err := a.column(x.Column)
	if err != nil {
		if x.Missing {
			a.w.Notice(notice(fmt.Sprintf("column \"%s\" of relation \"%s\" does not exist, skipping", x.Column, a.name())))
			return nil
		}
		return err
	}
	if len(a.fields) == 1 {
		return pgerr.Newf(pgerr.FeatureNotSupported, "cannot drop the last column of table \"%s\"", a.name()).WithHint("A table has at least one column here; DROP TABLE removes it.")
	}
	if err := a.dropDependents(ctx, f, x.Cascade); err != nil {
		return err
	}
	if slices.Contains(a.keys, f.ID) {
		a.dropKey()
	}
	if err := a.dropColumnChecks(ctx, f.Name); err != nil {
		return err
	}
	id := f.ID
	if f.from >= 0 {
		a.dropped = append(a.dropped, f.from)
	}
	a.opts.forgetColumn(a.t.Metadata(), id)
	a.def.dropColumn(id)
	if err := a.s.dropOwnedSequences(ctx, a.t.Key(), id); err != nil {
		return err
	}
	a.unset(pgtype.PropertyKey(id))
	a.fields = slices.DeleteFunc(a.fields, func(f alteredField) bool { return f.ID == id })
	return nil
}

// alterType is SET DATA TYPE: metadata alone where every stored value is a value of the new type as it is (Iceberg's promotions, a longer
// varchar) and no partition value changes its type; else the column becomes a new field and the rows are rewritten.
func (a *alteration) alterType(ctx context.Context, x *pgsql.AlterAction) error {
	f, err := a.column(x.Column)
	if err != nil {
		return err
	}
	if f.from < 0 { // PostgreSQL adds columns after this pass, so it cannot see them
		return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", x.Column, a.name())
	}
	if a.def.columns[f.ID].Generated != "" && x.Using != "" {
		return pgerr.Newf("42611", "cannot specify USING when altering type of generated column").WithDetail("Column \"%s\" is a generated column.", f.Name)
	}
	typ, prop, msg, err := pgtype.ToIceberg(x.Def.Type, x.Def.Mod)
	if err != nil {
		return located(err, x.Def.Loc)
	}
	if f.retyped {
		return pgerr.Newf(pgerr.FeatureNotSupported, "cannot alter type of column \"%s\" twice", f.Name)
	}
	f.retyped = true
	same := f.oid == x.Def.Type && f.mod == x.Def.Mod
	if same && x.Using == "" {
		return nil
	}
	if err := a.typeDependents(ctx, f); err != nil {
		return err
	}
	if msg != "" {
		a.w.Notice(notice(fmt.Sprintf("column \"%s\": %s", f.Name, msg)))
	}
	if x.Using == "" {
		if err := pgsql.CheckNewType(f.Name, f.oid, x.Def.Type, x.Def.Mod); err != nil {
			return err
		}
	}
	promote := x.Using == "" && promotes(f.oid, f.mod, x.Def.Type, x.Def.Mod) && a.def.columns[f.ID].Generated == ""
	if promote && !typ.Equals(f.Type) && partitionsBy(a.t.Metadata(), f.ID) {
		promote = false // manifests hold values of the old type
	}
	oldType, oldMod := f.oid, f.mod
	f.oid, f.mod = x.Def.Type, x.Def.Mod
	if err := a.keyType(f, typ); err != nil {
		return err
	}
	if a.def.columns[f.ID].Default != "" {
		if err := a.convertDefault(ctx, f, oldType, oldMod); err != nil {
			return err
		}
	}
	if promote {
		if _, list := typ.(*iceberg.ListType); !list {
			f.Type = typ
		}
		a.setType(f.ID, prop)
		return a.promoteDefaults(ctx, f)
	}
	return a.replaceField(ctx, f, typ, prop, x)
}

// replaceField gives a column whose values change a new field id: the old files hold another type under the old one.
func (a *alteration) replaceField(ctx context.Context, f *alteredField, typ iceberg.Type, prop string, x *pgsql.AlterAction) error {
	old := f.ID
	f.Type, f.rewrite, f.expr, f.loc = typ, true, x.Using, x.UsingLoc
	a.newFieldID(&f.NestedField)
	f.InitialDefault, f.WriteDefault = nil, nil
	a.setType(f.ID, prop)
	a.unset(pgtype.PropertyKey(old))
	if c, ok := a.def.columns[old]; ok {
		a.def.dropColumn(old)
		a.def.setColumn(f.ID, c)
	}
	if err := a.moveOwnership(ctx, old, f.ID); err != nil {
		return err
	}
	for i, id := range a.keys {
		if id == old {
			a.keys[i] = f.ID
			a.newKey = true
		}
	}
	a.opts.replaceColumn(a.t.Metadata(), old, f.ID)
	return a.writeDefault(ctx, f)
}

// keyType refuses a type that an identifier field cannot have.
func (a *alteration) keyType(f *alteredField, typ iceberg.Type) error {
	if !slices.Contains(a.keys, f.ID) {
		return nil
	}
	return keyable(f.Name, typ, f.oid)
}

// keyable refuses a column that cannot be part of a key.
func keyable(name string, typ iceberg.Type, oid uint32) error {
	switch typ.(type) {
	case iceberg.Float32Type, iceberg.Float64Type:
		return pgerr.Newf(pgerr.FeatureNotSupported, "primary key column \"%s\" cannot be of type %s", name, pgtype.FormatNoTypmod(oid)).
			WithHint("Iceberg forbids floating-point identifier fields.")
	case *iceberg.ListType:
		return pgerr.Newf(pgerr.FeatureNotSupported, "primary key column \"%s\" cannot be an array", name)
	}
	return nil
}

// promotes says whether every stored value of the old type is, byte for byte or by an Iceberg promotion, the same value of the new one.
// date → timestamp is none: few engines read that promotion of format 3.
func promotes(from uint32, fromMod int32, to uint32, toMod int32) bool {
	switch {
	case from == to && toMod < 0 && from != pgtype.Numeric && from != pgtype.BPChar && pgtype.ElemOf(from) == 0:
		return true // a limit less
	case from == pgtype.Int2:
		return to == pgtype.Int4 || to == pgtype.Int8
	case from == pgtype.Int4:
		return to == pgtype.Int8
	case from == pgtype.Float4:
		return to == pgtype.Float8
	case from == pgtype.Numeric && to == pgtype.Numeric:
		return wider(fromMod, toMod)
	case from == pgtype.Varchar || from == pgtype.Text || from == pgtype.Name:
		return (to == pgtype.Text || to == pgtype.Varchar) && (toMod < 0 || from == pgtype.Varchar && fromMod >= 0 && toMod >= fromMod)
	case from == to && fromMod >= 0 && toMod >= fromMod:
		return from == pgtype.Timestamp || from == pgtype.TimestampTZ || from == pgtype.Time
	}
	return false
}

// wider says whether a decimal keeps its scale and gets no fewer digits.
func wider(fromMod, toMod int32) bool {
	p1, s1, ok1 := pgtype.NumericPS(fromMod)
	p2, s2, ok2 := pgtype.NumericPS(toMod)
	return ok1 && ok2 && s1 == s2 && s1 >= 0 && s1 <= p1 && p2 >= p1 && p2 <= pgtype.MaxPrecision
}

// setDefault is SET DEFAULT and DROP DEFAULT: rows that are there keep their values.
func (a *alteration) setDefault(ctx context.Context, x *pgsql.AlterAction) error {
	f, err := a.column(x.Column)
	if err != nil {
		return err
	}
	c := a.def.columns[f.ID]
	switch {
	case c.Identity != "":
		e := pgerr.Newf(pgerr.SyntaxError, "column \"%s\" of relation \"%s\" is an identity column", f.Name, a.name())
		if x.Do == pgsql.DropDefault {
			e.Hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead."
		}
		return e
	case c.Generated != "":
		e := pgerr.Newf(pgerr.SyntaxError, "column \"%s\" of relation \"%s\" is a generated column", f.Name, a.name())
		if x.Do == pgsql.DropDefault {
			e.Hint = "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead."
		}
		return e
	}
	c.Default = ""
	if x.Do == pgsql.SetDefault {
		if c.Default, err = a.checkDefault(ctx, f, x.Def.Default); err != nil {
			return err
		}
	}
	a.def.setColumn(f.ID, c)
	return a.writeDefault(ctx, f)
}

// convertDefault is the default of a column that gets another type; PostgreSQL casts it from the old type to the new one.
func (a *alteration) convertDefault(ctx context.Context, f *alteredField, oldType uint32, oldMod int32) error {
	c := a.def.columns[f.ID]
	refused := pgerr.Newf(pgerr.DatatypeMismatch, "default for column \"%s\" cannot be cast automatically to type %s", f.Name, pgtype.FormatNoTypmod(f.oid))
	if !pgsql.Assignable(oldType, f.oid) {
		return refused
	}
	text, err := a.checkDefault(ctx, f, c.Default)
	if err != nil {
		text, err = a.checkDefault(ctx, f, "("+c.Default+")::"+pgtype.Format(oldType, oldMod))
	}
	if e := pgerr.As(err); e != nil && e.Code == pgerr.DatatypeMismatch {
		return refused
	}
	c.Default = text
	a.def.setColumn(f.ID, c)
	return err
}

// setNotNull is SET NOT NULL, which looks at the rows, and DROP NOT NULL.
func (a *alteration) setNotNull(x *pgsql.AlterAction) error {
	f, err := a.column(x.Column)
	if err != nil {
		return err
	}
	if x.Do == pgsql.SetNotNull {
		return a.addNotNull(f)
	}
	switch {
	case slices.Contains(a.keys, f.ID):
		return pgerr.Newf(pgerr.InvalidTableDefinition, "column \"%s\" is in a primary key", f.Name)
	case a.def.columns[f.ID].Identity != "":
		return pgerr.Newf(pgerr.SyntaxError, "column \"%s\" of relation \"%s\" is an identity column", f.Name, a.name())
	}
	f.Required = false
	return nil
}

func (a *alteration) addNotNull(f *alteredField) error {
	if !f.Required {
		f.Required = true
		a.notNull = append(a.notNull, f.ID)
	}
	return nil
}
