package engine

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/warehouse"
)

// declaredColumn shows what a column declares to the system catalogs.
func declaredColumn(c *pgcatalog.RelationColumn, d columnDef) {
	switch {
	case d.Generated != "":
		c.Generated, c.Default = true, d.Generated
	case d.Identity == "always":
		c.Identity = 'a'
	case d.Identity != "":
		c.Identity = 'd'
	case d.Default != "":
		c.Default = shownDefault(d.Default, c.TypeOID)
	}
}

// declaredExpressions adds CHECK constraints, and what columns the expressions use.
func declaredExpressions(rel *pgcatalog.Relation, d *tableDef) {
	uses := func(text string) []int16 {
		var out []int16
		for _, name := range pgsql.ExprColumns(text) {
			i := slices.IndexFunc(rel.Columns, func(c pgcatalog.RelationColumn) bool { return c.Name == name })
			if i >= 0 && !slices.Contains(out, rel.Columns[i].AttNum) {
				out = append(out, rel.Columns[i].AttNum)
			}
		}
		return out
	}
	for i := range rel.Columns {
		c := &rel.Columns[i]
		if c.Generated {
			c.Uses = uses(c.Default)
			c.Default, c.Pretty = shownOver(rel, c.Default, c.TypeOID)
		} else if c.Default != "" {
			if full, pretty := shownOver(rel, c.Default, c.TypeOID); full != shownExpr(c.Default) {
				c.Default, c.Pretty = full, pretty
			}
		}
	}
	for _, c := range d.checks {
		full, pretty := shownOver(rel, c.Expr, 0)
		rel.Checks = append(rel.Checks, pgcatalog.Check{Name: c.Name, Expr: full, Pretty: pretty, Columns: uses(c.Expr), NotValid: c.NotValid, NoInherit: c.NoInherit})
	}
}

// shownOver is an expression over a relation's columns as PostgreSQL prints it, and prettily; pretty is "" when that is full without the parentheses
// around it.
func shownOver(rel *pgcatalog.Relation, text string, want uint32) (full, pretty string) {
	r := &pgsql.Relation{Schema: rel.Namespace, Name: rel.Name}
	for _, c := range rel.Columns {
		r.Columns = append(r.Columns, pgsql.RelColumn{Name: c.Name, Type: c.TypeOID, Mod: c.TypeMod})
	}
	if full, pretty, ok := pgsql.ShownExpr(r, text, want); ok {
		return full, pretty
	}
	return shownExpr(text), ""
}

// shownExprs keeps the shown form of expressions: finding it takes a parse.
var shownExprs sync.Map

// shownExpr is an expression as pg_get_expr shows it: an operator in parentheses.
func shownExpr(text string) string {
	if v, ok := shownExprs.Load(text); ok {
		return v.(string)
	}
	out := text
	if pgsql.IsOperator(text) {
		out = "(" + text + ")"
	}
	shownExprs.Store(text, out)
	return out
}

// shownDefault is a default as pg_get_expr shows it: PostgreSQL has cast a bare string literal to the column's type.
func shownDefault(sql string, oid uint32) string {
	if len(sql) < 2 || sql[0] != '\'' || strings.IndexByte(strings.ReplaceAll(sql[1:], "''", ""), '\'') != len(strings.ReplaceAll(sql[1:], "''", ""))-1 {
		return shownExpr(sql)
	}
	return sql + "::" + pgtype.FormatNoTypmod(oid)
}

// sequenceObject describes a sequence to the system catalogs.
func (gw *Gateway) sequenceObject(tables map[catalog.TableKey]warehouse.TableInfo, obj *catalog.Object) (pgcatalog.Relation, bool) {
	q, err := decodeSequence(obj)
	if err != nil {
		gw.log.Error().Err(err).Msg("sequence is left out of the system catalogs")
		return pgcatalog.Relation{}, false
	}
	rel := pgcatalog.Relation{OID: q.oid, Kind: pgcatalog.Sequence, Namespace: strings.Join(obj.Namespace, "."), Name: obj.Name, Owner: 10, Rows: 1, Bytes: 8192, Comment: q.Comment,
		Sequence: &pgcatalog.SequenceInfo{Type: q.typeOID(), Start: q.Start, Increment: q.Increment, Min: q.Min, Max: q.Max, Cache: q.Cache, Cycle: q.Cycle}}
	for _, c := range sequenceRelation(q).Columns {
		rel.Columns = append(rel.Columns, pgcatalog.RelationColumn{Name: c.Name, AttNum: c.AttNum, TypeOID: c.Type, TypeMod: -1, NotNull: true})
	}
	if q.Owner != nil {
		rel.Sequence.OwnerTable, rel.Sequence.OwnerColumn = ownerColumn(tables, q)
		rel.Sequence.Internal = q.Owner.Internal
	}
	return rel, true
}

// SequenceValue implements pgcatalog.Session.
func (v *catalogView) SequenceValue(oid uint32) (int64, bool) {
	q, err := v.s.sequenceByOID(oid)
	if err != nil {
		return 0, false
	}
	st, _, err := v.s.sequenceRun(q).state(context.Background(), q)
	return st.Last, err == nil && st.Called
}

// ownerColumn is the column that owns a sequence, 0 when there is none.
func ownerColumn(tables map[catalog.TableKey]warehouse.TableInfo, q *storedSequence) (oid uint32, attnum int16) {
	t, ok := tables[q.Owner.Table]
	if !ok {
		return 0, 0
	}
	if t.Own != nil {
		return tableOID(t.Own), attNumOf(t.Own.Schema(), q.Owner.Field)
	}
	md, err := t.State.Metadata(context.Background())
	if err != nil {
		return 0, 0 // the table is left out of the catalogs as well
	}
	return t.State.OID, attNumOf(md.CurrentSchema(), q.Owner.Field)
}
