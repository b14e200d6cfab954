package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// RowSpec says what AnalyzeRows computes for rows of a relation.
type RowSpec struct {
	// Defaults and Generated are columns of the relation whose values are computed, in that order: a generated column sees the defaults.
	Defaults, Generated []int
	// Checks are conditions that must not be false, in the order in which they are evaluated.
	Checks []string
}

// AnalyzeRows writes the query that completes and checks rows: Relations[0] is the rows (Kind Rows, rel's columns). It yields, per row and in the
// rows' order, Defaults' values, Generated's values, and a BIGINT: 0, or the place (from 1) of the first of Checks that is false.
func AnalyzeRows(rel *Relation, spec RowSpec, r Resolver) (q *Query, err error) {
	az := newAnalyzer(&source{}, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	rows := *rel
	rows.Kind = Rows
	entry := az.addRel(&rows, rel.Name, -1)
	s := &scope{az: az}
	cols := make([]*expr, len(rel.Columns))
	for i := range cols {
		cols[i] = relColumn(entry, i, rel.Name)
	}
	n := &selNode{scope: s, from: []*fromItem{{write: func(b *strings.Builder) { b.WriteString(entry.from()) }}}}
	if len(spec.Defaults) > 0 {
		n, cols = az.computed(n, rel, cols, spec.Defaults, func(i int) *expr { return az.defaultExpr(&scope{az: az}, rel, i) })
	}
	if len(spec.Generated) > 0 {
		n, cols = az.computed(n, rel, cols, spec.Generated, func(i int) *expr { return az.generatedExpr(rel, i, cols) })
	}
	var out []*target
	for _, i := range append(append([]int(nil), spec.Defaults...), spec.Generated...) {
		out = append(out, &target{name: rel.Columns[i].Name, e: cols[i]})
	}
	n.targets = append(out, &target{name: "violated", e: az.firstFalse(rel, cols, spec.Checks)})
	q = az.finishPart(&part{rels: az.rels, binds: az.binds, node: n}, true)
	q.Columns = columnsOf(n.targets)
	return q, nil
}

// computed puts a query level around n in which some columns are replaced; it returns the level above it and its columns.
func (az *analyzer) computed(n *selNode, rel *Relation, cols []*expr, which []int, value func(i int) *expr) (*selNode, []*expr) {
	alias := az.alias()
	values := append([]*expr(nil), cols...)
	for _, i := range which {
		values[i] = value(i)
	}
	out := make([]*expr, len(cols))
	for i, e := range values {
		c := rel.Columns[i]
		n.targets = append(n.targets, &target{name: c.Name, e: e})
		out[i] = &expr{kind: kColumn, typ: c.Type, mod: c.Mod, prec: e.prec, scale: e.scale, loose: e.loose, ident: alias + ".c" + strconv.Itoa(i+1), name: rel.Name + "." + c.Name, loc: -1}
		switch c.Type {
		case pgtype.Numeric:
			out[i].loose = cols[i].loose
		case pgtype.BPChar:
			padded := out[i]
			out[i] = call(c.Type, "rtrim($1, ' ')", padded)
			out[i].mod, out[i].name = c.Mod, padded.name
		}
	}
	item := &fromItem{write: func(b *strings.Builder) {
		b.WriteString("(")
		n.write(b)
		b.WriteString(") AS " + alias)
	}}
	return &selNode{scope: &scope{az: az}, from: []*fromItem{item}}, out
}

// firstFalse is the place of the first condition that is false.
func (az *analyzer) firstFalse(rel *Relation, cols []*expr, checks []string) *expr {
	zero := constant(pgtype.Int8, "0", -1)
	if len(checks) == 0 {
		return zero
	}
	tmpl, args := "CASE", []*expr(nil)
	for i, text := range checks {
		args = append(args, az.condition(rel, cols, text))
		tmpl += " WHEN NOT \x01 THEN CAST(" + strconv.Itoa(i+1) + " AS BIGINT)"
	}
	parts := strings.Split(tmpl+" ELSE CAST(0 AS BIGINT) END", "\x01")
	return &expr{kind: kCall, typ: pgtype.Int8, mod: -1, loc: -1, text: parts, args: args}
}

// condition analyses a CHECK constraint's expression over the columns.
func (az *analyzer) condition(rel *Relation, cols []*expr, text string) *expr {
	s := az.columnScope(rel, cols)
	s.clause = "check constraints"
	var e *expr
	az.inForeign(text, "check constraint", func(n foreign) { e = s.toBool(s.expr(n.node), "CHECK") })
	return e
}

// generatedExpr analyses a generated column's expression over the columns, as a value of the column.
func (az *analyzer) generatedExpr(rel *Relation, col int, cols []*expr) *expr {
	s := az.columnScope(rel, cols)
	s.clause = "column generation expressions"
	var e *expr
	az.inForeign(rel.Columns[col].Generated, "column generation expression", func(n foreign) {
		e = s.expr(n.node)
		e.loc = -1
		e = s.assign(e, rel, col)
	})
	return e
}

// columnScope is a scope in which a relation's columns have the given values.
func (az *analyzer) columnScope(rel *Relation, cols []*expr) *scope {
	it := &nsItem{name: rel.Name, schema: rel.Schema, relVisible: true, colsVisible: true}
	for i, c := range rel.Columns {
		if !c.Hidden {
			it.cols = append(it.cols, &nsCol{name: c.Name, e: cols[i]})
		}
	}
	return &scope{az: az, ns: []*nsItem{it}}
}

// CheckCondition checks the expression of a CHECK constraint on rel. Errors are PostgreSQL's, without a position.
func CheckCondition(rel *Relation, text string, r Resolver) (err error) {
	az := newAnalyzer(&source{}, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	az.condition(rel, az.plainColumns(rel), text)
	return nil
}

// CheckGenerated checks the expression of rel's generated column: immutable, over columns that are not generated.
func CheckGenerated(rel *Relation, col int, r Resolver) (err error) {
	az := newAnalyzer(&source{}, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	az.declaring = "default "
	cols := az.plainColumns(rel)
	e := az.generatedExpr(rel, col, cols)
	if az.unstable {
		return pgerr.New(pgerr.InvalidObjectDefinition, "generation expression is not immutable")
	}
	e.walk(func(x *expr) bool {
		for i, c := range rel.Columns {
			if x.kind == kColumn && x.ident == columnMark(i) && c.Generated != "" {
				panic(pgerr.Newf(pgerr.InvalidObjectDefinition, "cannot use generated column %q in column generation expression", c.Name).
					WithDetail("A generated column cannot reference another generated column."))
			}
		}
		return true
	})
	return nil
}

// ColumnsOf are the indexes of rel's columns that an expression over them uses, in order of first use: what PostgreSQL keeps in conkey.
func ColumnsOf(rel *Relation, text string, r Resolver) (used []int, err error) {
	az := newAnalyzer(&source{}, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	seen := map[int]bool{}
	s := az.columnScope(rel, az.plainColumns(rel))
	az.inForeign(text, "expression", func(n foreign) {
		s.expr(n.node).walk(func(x *expr) bool {
			for i := range rel.Columns {
				if x.kind == kColumn && x.ident == columnMark(i) && !seen[i] {
					seen[i] = true
					used = append(used, i)
				}
			}
			return true
		})
	})
	return used, nil
}

func columnMark(i int) string { return "c." + strconv.Itoa(i) }

// plainColumns are column references that are analysed and never written.
func (az *analyzer) plainColumns(rel *Relation) []*expr {
	out := make([]*expr, len(rel.Columns))
	for i, c := range rel.Columns {
		e := &expr{kind: kColumn, typ: c.Type, mod: c.Mod, ident: columnMark(i), name: rel.Name + "." + c.Name, loc: -1}
		if c.Type == pgtype.Numeric || elemType(c.Type) == pgtype.Numeric {
			e.prec, e.scale = numericShape(c.Mod)
		}
		out[i] = e
	}
	return out
}
