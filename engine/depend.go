package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// viewUse is a view that reads a relation.
type viewUse struct {
	ident table.Identifier
	oid   uint32
	view  *storedView
	// columns are the relation's columns that the view uses, by place; nil for a relation whose columns are not followed.
	columns []int
}

// label is how PostgreSQL names an object in messages: with its schema when it is not on the path.
func (s *session) label(ident table.Identifier) string {
	name := pgsql.QuoteIdent(ident[len(ident)-1])
	if schema := schemaOf(ident); !slices.Contains(s.effectivePath(), schema) {
		return pgsql.QuoteIdent(schema) + "." + name
	}
	return name
}

// viewsOn are the views that read a relation, in the order of their making. Nothing about it is stored: a view's text is asked. A view
// that cannot be analysed (its table went before this release knew dependencies) reads nothing.
func (s *session) viewsOn(ctx context.Context, ident table.Identifier) ([]viewUse, error) {
	var out []viewUse
	name := ident[len(ident)-1]
	for _, o := range s.tx.warehouseTx().Objects(viewKind) {
		v, err := decodeView(o)
		if err != nil {
			return nil, err
		}
		if !mentions(v.SQL, name) {
			continue
		}
		uses, err := pgsql.ViewUses(v.SQL, &resolver{ctx: ctx, s: s})
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			continue
		}
		u := viewUse{ident: append(slices.Clone(o.Namespace), o.Name), oid: o.OID, view: v}
		if u.oid == 0 {
			u.oid = math.MaxUint32 // made in this transaction
		}
		found := false
		for _, use := range uses {
			if !slices.Equal(relationIdent(use.Relation), ident) {
				continue
			}
			found = true
			u.columns = append(u.columns, use.Columns...)
		}
		if found {
			out = append(out, u)
		}
	}
	slices.SortStableFunc(out, func(a, b viewUse) int { return int(int64(a.oid) - int64(b.oid)) })
	return out, nil
}

// mentions says whether a text can name a relation: quoted or not, its name is in it; a quote in the name is doubled there.
func mentions(sql, name string) bool {
	return strings.Contains(strings.ToLower(sql), strings.ToLower(strings.ReplaceAll(name, `"`, `""`)))
}

// relationIdent is what a relation of an analysed statement is in the catalog; nil for one that is not there.
func relationIdent(rel *pgsql.Relation) table.Identifier {
	if rel.Kind == pgsql.View {
		return identOf(rel.Schema, rel.Name)
	}
	if h, ok := rel.Handle.(*handle); ok && h != nil {
		return h.table
	}
	return nil
}

// dependsOn are the views that go when a relation goes: those that read it, those that read them and so on, with the line that says why.
func (s *session) dependsOn(ctx context.Context, ident table.Identifier, what string) (deps []dependent, lines []string, err error) {
	seen := map[string]bool{}
	var follow func(ident table.Identifier, what string) error
	follow = func(ident table.Identifier, what string) error {
		views, err := s.viewsOn(ctx, ident)
		if err != nil {
			return err
		}
		for _, v := range views {
			if seen[strings.Join(v.ident, "\x00")] {
				continue
			}
			seen[strings.Join(v.ident, "\x00")] = true
			lines = append(lines, "view "+s.label(v.ident)+" depends on "+what)
			deps = append(deps, s.viewDependent(v.ident, v.oid))
			if err := follow(v.ident, "view "+s.label(v.ident)); err != nil {
				return err
			}
		}
		return nil
	}
	return deps, lines, follow(ident, what)
}

func (s *session) viewDependent(ident table.Identifier, oid uint32) dependent {
	return dependent{name: "view " + s.label(ident), oid: oid, drop: func(ctx context.Context) error {
		return s.tx.warehouseTx().DropObject(ctx, viewKind, ident[:len(ident)-1], ident[len(ident)-1])
	}}
}

// stillNeeded is the error for an object that others depend on.
func stillNeeded(what string, lines []string) error {
	return pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop %s because other objects depend on it", what).
		WithDetail("%s", strings.Join(lines, "\n")).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
}

// dropDependents refuses to drop a column that views or generated columns use, or marks those for dropping.
func (a *alteration) dropDependents(ctx context.Context, f *alteredField, cascade bool) error {
	what := "column " + pgsql.QuoteIdent(f.Name) + " of table " + a.s.label(a.t.Ident())
	deps, lines, err := a.columnViews(ctx, f, what)
	if err != nil {
		return err
	}
	generated, err := a.generatedFrom(ctx, f)
	if err != nil {
		return err
	}
	for _, g := range generated {
		lines = append(lines, "column "+pgsql.QuoteIdent(g)+" of table "+a.s.label(a.t.Ident())+" depends on "+what)
	}
	if len(lines) == 0 {
		return nil
	}
	if !cascade {
		return stillNeeded(what, lines)
	}
	a.cascade = append(a.cascade, deps...)
	id := f.ID
	for _, g := range generated {
		label := "column " + pgsql.QuoteIdent(g) + " of table " + a.s.label(a.t.Ident())
		a.cascade = append(a.cascade, dependent{name: label, drop: func(context.Context) error { return nil }})
		if err := a.dropColumn(ctx, &pgsql.AlterAction{Do: pgsql.DropColumn, Column: g, Cascade: true}); err != nil {
			return err
		}
	}
	_ = id
	return nil
}

// columnViews are the views that use a column, and what depends on those.
func (a *alteration) columnViews(ctx context.Context, f *alteredField, what string) (deps []dependent, lines []string, err error) {
	if f.from < 0 {
		return nil, nil, nil
	}
	views, err := a.s.viewsOn(ctx, a.t.Ident())
	if err != nil {
		return nil, nil, err
	}
	for _, v := range views {
		if !slices.Contains(v.columns, f.from) || slices.ContainsFunc(a.cascade, func(d dependent) bool { return d.name == "view "+a.s.label(v.ident) }) {
			continue
		}
		lines = append(lines, "view "+a.s.label(v.ident)+" depends on "+what)
		deps = append(deps, a.s.viewDependent(v.ident, v.oid))
		more, why, err := a.s.dependsOn(ctx, v.ident, "view "+a.s.label(v.ident))
		if err != nil {
			return nil, nil, err
		}
		for i, d := range more {
			if !slices.ContainsFunc(deps, func(o dependent) bool { return o.name == d.name }) {
				deps, lines = append(deps, d), append(lines, why[i])
			}
		}
	}
	return deps, lines, nil
}

// typeDependents refuses to change the type of a column that others use.
func (a *alteration) typeDependents(ctx context.Context, f *alteredField) error {
	generated, err := a.generatedFrom(ctx, f)
	if err != nil {
		return err
	}
	if len(generated) > 0 {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used by a generated column").
			WithDetail("Column \"%s\" is used by generated column \"%s\".", f.Name, generated[0])
	}
	views, err := a.s.viewsOn(ctx, a.t.Ident())
	if err != nil {
		return err
	}
	for _, v := range views {
		if slices.Contains(v.columns, f.from) {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot alter type of a column used by a view or rule").
				WithDetail("rule _RETURN on view %s depends on column %s", a.s.label(v.ident), strconv.Quote(f.Name))
		}
	}
	return nil
}

// retarget rewrites the views that read a relation after it got another name, or a column of it did: columns says what names of columns
// a mention shows (nil: as it did). The relation has its new name already. What cannot be rewritten is refused.
func (s *session) retarget(ctx context.Context, views []viewUse, old, now table.Identifier, columns func(aliases []string) []string) error {
	from, to := pgsql.QName{Schema: schemaOf(old), Name: old[len(old)-1]}, pgsql.QName{Schema: schemaOf(now), Name: now[len(now)-1]}
	for _, v := range views {
		sql, err := pgsql.Retarget(v.view.SQL, from, to, columns)
		if err != nil {
			return err
		}
		if sql == v.view.SQL {
			if slices.Equal(old, now) {
				continue
			}
		}
		next := *v.view
		next.SQL, next.Text = sql, sql
		if err := s.sameView(ctx, v, &next); err != nil {
			return err
		}
		if err := s.putView(ctx, v.ident, &next); err != nil {
			return err
		}
	}
	return nil
}

// putView replaces a view.
func (s *session) putView(ctx context.Context, ident table.Identifier, v *storedView) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	o := catalog.Object{Kind: viewKind, Namespace: ident[:len(ident)-1], Name: ident[len(ident)-1], Payload: payload}
	return s.tx.warehouseTx().PutObject(ctx, o, true)
}

// sameView refuses a rewritten view that does not mean what it meant.
func (s *session) sameView(ctx context.Context, v viewUse, next *storedView) error {
	cols, err := pgsql.ViewColumns(next.SQL, &resolver{ctx: ctx, s: s})
	same := err == nil && len(cols) >= len(next.Columns)
	for i := range next.Columns {
		same = same && (cols[i].Type == next.Columns[i].OID || cols[i].Type == pgtype.Unknown && next.Columns[i].OID == pgtype.Text)
	}
	if same {
		return nil
	}
	return pgerr.Newf(pgerr.FeatureNotSupported, "view %s names the object in a way that cannot follow the new name", s.label(v.ident)).
		WithHint("Drop the view, rename, and create the view again.").WithCause(err)
}
