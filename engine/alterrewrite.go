package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// eachRow runs a query that pgsql made for the engine itself and yields its rows as data files hold them; lead columns come first as
// they are.
func (s *session) eachRow(ctx context.Context, q *pgsql.Query, cols []pgsql.RelColumn, lead int, f func(rec arrow.RecordBatch) error) error {
	d, err := s.startWrapped(ctx, binding{}, q, nil, func(sql string) string { return storedSQL(sql, lead, cols, 0) })
	if err != nil {
		return err
	}
	defer d.close()
	return d.eachBatch(ctx, f)
}

// relation is the table to be, as the analyser sees it.
func (a *alteration) relation() *pgsql.Relation {
	rel := &pgsql.Relation{Kind: pgsql.Table, Schema: a.old.Schema, Name: a.old.Name, OID: a.old.OID, Handle: a.old.Handle}
	for i, f := range a.fields {
		c := a.def.columns[f.ID]
		rel.Columns = append(rel.Columns, pgsql.RelColumn{Name: f.Name, Type: f.oid, Mod: f.mod, AttNum: int16(i + 1), NotNull: f.Required,
			Default: c.Default, Generated: c.Generated, Identity: c.Identity, Scale: pgtype.BareNumericScale})
	}
	return rel
}

// columns are the table's columns to be, and where their values come from.
func (a *alteration) columns() []pgsql.NewColumn {
	rel := a.relation()
	out := make([]pgsql.NewColumn, len(a.fields))
	for i, f := range a.fields {
		out[i] = pgsql.NewColumn{RelColumn: rel.Columns[i], From: f.from, Expr: f.expr, Loc: f.loc}
		out[i].Generated, out[i].Identity = "", "" // the guard computes the one; the other has been given its values
		switch {
		case rel.Columns[i].Generated != "":
			out[i].From, out[i].Expr, out[i].Default = -1, "", ""
		case f.from < 0 && !f.rewrite: // a constant that metadata keeps, or NULL
			out[i].Default = a.initialDefault(f)
		case f.nextval != "":
			out[i].Default = f.nextval
		}
	}
	return out
}

// initialDefault is the DEFAULT of a column whose initial default metadata keeps: rows that are rewritten for another column's sake get
// it written down.
func (a *alteration) initialDefault(f alteredField) string {
	if f.InitialDefault == nil {
		return ""
	}
	return a.def.columns[f.ID].Default
}

// finish checks the rows as they are, changes the metadata, and rewrites the rows where values change.
func (a *alteration) finish(ctx context.Context) error {
	for _, d := range a.cascade {
		if err := d.drop(ctx); err != nil {
			return err
		}
	}
	noticeCascade(a.w, a.cascade)
	views, err := a.listingViews(ctx)
	if err != nil {
		return err
	}
	if err := a.apply(ctx); err != nil {
		return err
	}
	return a.s.retarget(ctx, views, a.t.Ident(), a.t.Ident(), a.withoutDropped)
}

// listingViews are the views that may list the columns of a table that loses some.
func (a *alteration) listingViews(ctx context.Context) ([]viewUse, error) {
	if len(a.dropped) == 0 {
		return nil, nil
	}
	return a.s.viewsOn(ctx, a.t.Ident())
}

// withoutDropped takes dropped columns out of a view's list of column aliases.
func (a *alteration) withoutDropped(aliases []string) []string {
	var out []string
	for i, n := range aliases {
		if !slices.Contains(a.dropped, i) {
			out = append(out, n)
		}
	}
	return out
}

// apply is finish without the views.
func (a *alteration) apply(ctx context.Context) error {
	if err := a.recheck(ctx); err != nil {
		return err
	}
	set, err := a.t.Live(ctx)
	if err != nil {
		return err
	}
	hasRows, rewrite := set.Rows() > 0, false
	for _, f := range a.fields {
		rewrite = rewrite || f.rewrite
	}
	if rewrite || a.looks() {
		if err := a.oneBranch(); err != nil {
			return err
		}
	}
	if rewrite && !hasRows { // the expressions have to be right anyway
		if _, err := pgsql.Rewrite(a.old, a.columns(), &resolver{ctx: ctx, s: a.s}); err != nil {
			return a.s.sqlError(ctx, err)
		}
	}
	rewrite = rewrite && hasRows
	if hasRows {
		if err := a.checkOldRows(ctx, rewrite); err != nil {
			return err
		}
	}
	updates, err := a.updates()
	if err != nil {
		return err
	}
	if len(updates) == 0 {
		return nil
	}
	if !rewrite {
		if err := a.change(ctx, updates); err != nil || !hasRows {
			return err
		}
		return a.checkNewRows(ctx)
	}
	if err := a.rewriteRows(ctx, updates); err != nil {
		return err
	}
	return a.checkNewRows(ctx)
}

// looks says whether old rows are looked at: then no others may come in between.
func (a *alteration) looks() bool { return len(a.notNull) > 0 || a.newKey || len(a.checks) > 0 }

// checkOldRows checks what the old rows show: NULLs and duplicate keys in columns that keep their values.
func (a *alteration) checkOldRows(ctx context.Context, rewrite bool) error {
	if a.looks() || rewrite {
		if err := a.t.Exclusive(ctx); err != nil {
			return err
		}
	}
	for _, id := range a.notNull {
		f := a.fieldByID(id)
		switch {
		case f == nil || f.rewrite:
			continue // the rewritten rows are checked as they are written
		case f.from < 0 && f.InitialDefault != nil:
			continue
		case f.from < 0:
			return a.containsNulls(f.Name)
		}
		found, err := a.exists(ctx, a.old, pgsql.QuoteIdent(a.old.Columns[f.from].Name)+" IS NULL")
		if err != nil {
			return err
		}
		if found {
			return a.containsNulls(f.Name)
		}
	}
	if a.newKey && !rewrite {
		return a.checkKeys(ctx)
	}
	return nil
}

// oneBranch refuses to check or rewrite the rows of a table that has others on further branches: a definition is that of all of them.
func (a *alteration) oneBranch() error {
	var branches []string
	for name, ref := range a.t.Metadata().Refs() {
		if ref.SnapshotRefType == table.BranchRef {
			branches = append(branches, name)
		}
	}
	if len(branches) < 2 {
		return nil
	}
	slices.Sort(branches)
	return pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "cannot check or rewrite the rows of table \"%s\" while it has several branches", a.name()).
		WithDetail("Branches: %s.", strings.Join(branches, ", ")).WithHint("Drop the other branches first.")
}

func (a *alteration) containsNulls(column string) error {
	return a.columnError(pgerr.NotNullViolation, column, "column \"%s\" of relation \"%s\" contains null values", column, a.name())
}

// exists says whether a row satisfies a condition.
func (a *alteration) exists(ctx context.Context, rel *pgsql.Relation, where string) (bool, error) {
	q, err := pgsql.Checked(rel, where, &resolver{ctx: ctx, s: a.s})
	if err != nil {
		return false, a.s.sqlError(ctx, err)
	}
	found := false
	err = a.s.eachRow(ctx, q, nil, len(q.Columns), func(rec arrow.RecordBatch) error {
		found = found || rec.NumRows() > 0
		return nil
	})
	return found, a.s.sqlError(ctx, err)
}

// checkKeys refuses rows with one key.
func (a *alteration) checkKeys(ctx context.Context) error {
	var cols, texts, names []string
	for _, id := range a.keys {
		f := a.fieldByID(id)
		if f.from < 0 {
			return a.duplicateKey([]string{f.Name}, nil) // one constant for all rows; they were checked for NULL
		}
		name := pgsql.QuoteIdent(a.old.Columns[f.from].Name)
		cols, texts, names = append(cols, name), append(texts, name+"::text"), append(names, f.Name)
	}
	list := strings.Join(cols, ", ")
	stmts, err := pgsql.Parse("SELECT " + strings.Join(texts, ", ") + " FROM " + pgsql.QuoteIdent(a.old.Schema) + "." + pgsql.QuoteIdent(a.old.Name) +
		" GROUP BY " + list + " HAVING count(*) > 1 LIMIT 1")
	if err != nil {
		return err
	}
	q, err := pgsql.Analyze(stmts[0], &resolver{ctx: ctx, s: a.s}, nil)
	if err != nil {
		return a.s.sqlError(ctx, err)
	}
	var dup []string
	err = a.s.eachRow(ctx, q, nil, len(q.Columns), func(rec arrow.RecordBatch) error {
		if rec.NumRows() > 0 && dup == nil {
			dup = warehouse.RowText(rec, 0)
		}
		return nil
	})
	if err == nil && dup != nil {
		return a.duplicateKey(names, dup)
	}
	return a.s.sqlError(ctx, err)
}

func (a *alteration) duplicateKey(cols, values []string) error {
	e := pgerr.Newf(pgerr.UniqueViolation, "could not create unique index \"%s\"", a.keyName())
	e.Schema, e.Table, e.Constraint = a.old.Schema, a.old.Name, a.keyName()
	if values == nil {
		return e
	}
	return e.WithDetail("Key (%s)=(%s) is duplicated.", strings.Join(cols, ", "), strings.Join(values, ", "))
}

// change changes the metadata.
func (a *alteration) change(ctx context.Context, updates []table.Update) error {
	return a.s.tx.warehouseTx().AlterTable(ctx, a.t.Ident(), updates...)
}

// rewriteRows computes every row anew and changes the metadata. The query reads the table as it was: it is open before the change.
func (a *alteration) rewriteRows(ctx context.Context, updates []table.Update) error {
	cols := a.columns()
	q, err := pgsql.Rewrite(a.old, cols, &resolver{ctx: ctx, s: a.s})
	if err != nil {
		return a.s.sqlError(ctx, err)
	}
	to := make([]pgsql.RelColumn, len(cols))
	for i := range cols {
		to[i] = cols[i].RelColumn
	}
	d, err := a.s.startWrapped(ctx, binding{}, q, nil, func(sql string) string { return storedSQL(sql, 2, to, 0) })
	if err != nil {
		return err
	}
	defer d.close()
	if err := a.change(ctx, updates); err != nil {
		return err
	}
	defer a.computeOnly()()
	as := a.t.ArrowSchema()
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		olds, err := rowRefs(rec, d.files)
		if err != nil {
			return err
		}
		news, err := conform(rec, 2, as)
		if err != nil {
			return err
		}
		defer news.Release()
		return a.t.Update(ctx, olds, news)
	})
	var null *warehouse.NotNullError
	var dup *warehouse.DuplicateKeyError
	switch {
	case errors.As(err, &null):
		return a.containsNulls(null.Column)
	case errors.As(err, &dup) && !errors.Is(err, warehouse.ErrConflict):
		return a.duplicateKey(dup.Columns, dup.Values)
	}
	return a.s.sqlError(ctx, err)
}

// computeOnly gives the table a guard that computes generated columns and checks nothing: old rows need not satisfy a constraint that is NOT VALID,
// and the others are checked when they are rewritten. done leaves the table without a guard.
func (a *alteration) computeOnly() (done func()) {
	g := a.s.newRowGuard(a.t, nil)
	if g != nil {
		g.spec.Checks = nil
		if len(g.spec.Generated) == 0 {
			g = nil
		}
	}
	if a.s.tx.guards == nil {
		a.s.tx.guards = map[*warehouse.TxTable]tableGuard{}
	}
	a.s.setGuard(a.t, g, -1)
	return func() { a.s.setGuard(a.t, nil, -1) }
}

// checkNewRows checks the constraints that old rows have to satisfy, on the table as it is now.
func (a *alteration) checkNewRows(ctx context.Context) error {
	for _, name := range a.checks {
		i, ok := a.def.check(name)
		if !ok {
			continue
		}
		found, err := a.exists(ctx, tableRelation(a.t), "NOT ("+a.def.checks[i].Expr+")")
		if err != nil {
			return err
		}
		if found {
			e := pgerr.Newf(pgerr.CheckViolation, "check constraint \"%s\" of relation \"%s\" is violated by some row", name, a.name())
			e.Schema, e.Table, e.Constraint = a.old.Schema, a.old.Name, name
			return e
		}
	}
	return nil
}
