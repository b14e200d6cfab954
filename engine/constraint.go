package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// declareTable checks the expressions of a new table and puts them into its definition. sequences are those of its columns, nil where there is none.
func (s *session) declareTable(ctx context.Context, n *newTable, u *pgsql.CreateTable, sequences []*storedSequence) error {
	rel := n.relation(u)
	for i, c := range u.Columns {
		d := columnDef{Identity: c.Identity}
		switch q := sequences[i]; {
		case q != nil && c.Identity != "":
			d.Sequence = q.qualified()
		case q != nil:
			d.Default = q.nextvalSQL()
		case c.Default != "":
			text, err := s.checkDefault(ctx, rel, i)
			if e := pgerr.As(err); e != nil && e.Position == 0 && strings.HasPrefix(string(e.Code), "22") {
				return e.WithPosition(c.DefaultLoc) // a literal that is no value of the type: it is the whole default
			}
			if err != nil {
				return inExpression(err, c.DefaultLoc)
			}
			d.Default = text
		case c.Generated != "":
			text, err := s.checkGenerated(ctx, rel, i)
			if err != nil {
				return inExpression(err, c.GeneratedLoc)
			}
			d.Generated = text
		}
		n.def.setColumn(i+1, d)
	}
	for i, c := range u.Checks {
		if c.Name != "" && slices.ContainsFunc(u.Checks[:i], func(d pgsql.CheckDef) bool { return d.Name == c.Name }) {
			return pgerr.Newf(pgerr.DuplicateObject, "check constraint \"%s\" already exists", c.Name)
		}
		check, err := s.newCheck(ctx, rel, c, n.def, n.keyName(u))
		if err != nil {
			return inExpression(err, c.Loc)
		}
		n.def.addCheck(check)
	}
	return nil
}

// keyName is the name of the key's constraint, "" without a key.
func (n *newTable) keyName(u *pgsql.CreateTable) string {
	if len(u.PrimaryKey) == 0 {
		return ""
	}
	return constraintName(n.ident, n.props)
}

// relation describes the new table to the analyser.
func (n *newTable) relation(u *pgsql.CreateTable) *pgsql.Relation {
	rel := &pgsql.Relation{Kind: pgsql.Table, Schema: schemaOf(n.ident), Name: n.ident[len(n.ident)-1]}
	for i, c := range u.Columns {
		rel.Columns = append(rel.Columns, pgsql.RelColumn{Name: c.Name, Type: c.Type, Mod: c.Mod, AttNum: int16(i + 1), NotNull: n.fields[i].Required,
			Default: c.Default, Generated: c.Generated, Identity: c.Identity, Scale: pgtype.BareNumericScale})
	}
	return rel
}

// checkDefault checks a column's default and gives its text as it is stored; "" for NULL.
func (s *session) checkDefault(ctx context.Context, rel *pgsql.Relation, col int) (string, error) {
	r := &resolver{ctx: ctx, s: s}
	c := rel.Columns[col]
	if err := pgsql.CheckDefault(pgsql.ColumnDef{Name: c.Name, Type: c.Type, Mod: c.Mod, Default: c.Default}, r); err != nil {
		return "", s.sqlError(ctx, err)
	}
	if pgsql.IsNullLiteral(c.Default) {
		return "", nil
	}
	text, err := pgsql.StoredExpr(nil, c.Default, r)
	if err == nil && s.namesTemp(text) && !s.isTemp(identOf(rel.Schema, rel.Name)) {
		return "", pgerr.Newf(pgerr.FeatureNotSupported, "a default of table \"%s\" cannot draw from a temporary sequence", rel.Name)
	}
	return text, err
}

// checkGenerated checks the expression of a generated column and gives its text as it is stored.
func (s *session) checkGenerated(ctx context.Context, rel *pgsql.Relation, col int) (string, error) {
	r := &resolver{ctx: ctx, s: s}
	if err := pgsql.CheckGenerated(rel, col, r); err != nil {
		return "", s.sqlError(ctx, err)
	}
	return pgsql.StoredExpr(rel, rel.Columns[col].Generated, r)
}

// newCheck checks a CHECK constraint, names it as PostgreSQL does, and gives it as it is stored. keyName is the name of the table's key constraint.
func (s *session) newCheck(ctx context.Context, rel *pgsql.Relation, c pgsql.CheckDef, d *tableDef, keyName string) (checkDef, error) {
	r := &resolver{ctx: ctx, s: s}
	out := checkDef{Name: c.Name, NotValid: c.NotValid, NoInherit: c.NoInherit}
	if err := pgsql.CheckCondition(rel, c.Expr, r); err != nil {
		return out, s.sqlError(ctx, err)
	}
	taken := func(name string) bool {
		_, ok := d.check(name)
		return ok || name == keyName
	}
	if out.Name == "" {
		used, err := pgsql.ColumnsOf(rel, c.Expr, r)
		if err != nil {
			return out, s.sqlError(ctx, err)
		}
		column := ""
		if len(used) == 1 {
			column = rel.Columns[used[0]].Name
		}
		out.Name = chooseName(rel.Name, column, "check", taken)
	} else if taken(out.Name) {
		return out, pgerr.Newf(pgerr.DuplicateObject, "constraint \"%s\" for relation \"%s\" already exists", out.Name, rel.Name)
	}
	var err error
	out.Expr, err = pgsql.StoredExpr(rel, c.Expr, r)
	return out, err
}

// columnSequences makes the sequences of serial and identity columns, one per column, nil where there is none. They are not stored yet.
func (s *session) columnSequences(ctx context.Context, n *newTable, u *pgsql.CreateTable) ([]*storedSequence, error) {
	out := make([]*storedSequence, len(u.Columns))
	names := []string{u.Name}
	for i, c := range u.Columns {
		if !c.Serial && c.Identity == "" {
			continue
		}
		var lookup error
		q, err := s.columnSequence(ctx, c, schemaOf(n.ident), u.Name, func(name string) bool {
			ok, err := s.exists(ctx, identOf(schemaOf(n.ident), name))
			lookup = err
			return ok || slices.Contains(names, name)
		})
		if err == nil {
			err = lookup
		}
		if err != nil {
			return nil, located(err, c.Loc)
		}
		q.Owner = &sequenceOwner{Field: i + 1, Internal: c.Identity != ""}
		names = append(names, q.name())
		out[i] = q
	}
	return out, nil
}

// columnSequence makes the sequence behind one serial or identity column.
func (s *session) columnSequence(_ context.Context, c pgsql.ColumnDef, schema, tableName string, taken func(string) bool) (*storedSequence, error) {
	o := c.Sequence
	if o == nil {
		o = &pgsql.SequenceOptions{}
	}
	if o.Type == 0 {
		o.Type = c.Type
	}
	switch c.Type {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
	default:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "identity column type must be smallint, integer, or bigint")
	}
	name := o.Name.Name
	switch {
	case name == "":
		name = chooseName(tableName, c.Name, "seq", taken)
	case taken(name):
		return nil, pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", name)
	}
	return newSequence(identOf(schema, name), o)
}

// constantDefault evaluates a default that is the same for every row of a statement; ok is false for one that must be computed per row.
func (s *session) constantDefault(ctx context.Context, c pgsql.RelColumn) (v *sqlfuncs.Value, ok bool, err error) {
	q, err := pgsql.AnalyzeExpr(c.Default, c.Type, c.Mod, &resolver{ctx: ctx, s: s})
	if err != nil {
		return nil, false, s.sqlError(ctx, err)
	}
	if q.Volatile {
		return nil, false, nil
	}
	raw, null, err := s.defaultValue(ctx, c)
	if err != nil {
		return nil, false, err
	}
	return &sqlfuncs.Value{OID: c.Type, Null: null, Text: string(raw)}, true, nil
}
