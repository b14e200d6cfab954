package pgsql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// KeyJoin says that of a stored table only those rows matter whose key's columns have values that other sources of the query give: the table is
// joined by its key. Its rows may then be found by their keys instead of by a scan. The keys may be more than are needed, and the join's condition
// stays in the SQL, so whoever uses a KeyJoin or not changes no answer.
type KeyJoin struct {
	// Target is the table's source number: a Table or a call of table_at.
	Target int
	// Columns are columns of the key, as indexes into the target's Relation.Columns; a Table's Relation.Key has them, perhaps among others.
	Columns []int
	// Keys give the values: the union of their rows holds the values of Columns (in that order) of every row that matters.
	Keys []KeySource
}

// KeySource is a query for keys. Its columns are named k0, k1 …; NULLs and duplicates among them mean nothing.
type KeySource struct {
	// Driver is the number of the source that it reads, -1 for none.
	Driver int
	// Filtered says that conditions of the statement keep rows of the driver out.
	Filtered bool
	Binds    []Bind

	text string
}

// Render writes the query as DuckDB text. rel is as in Query.Render.
func (k *KeySource) Render(q *Query, rel func(i int, use *RelUse) string) string {
	return renderText(k.text, q.Relations, rel)
}

// pendingJoin is column = x, which every row of the source that matters satisfies.
type pendingJoin struct {
	column int
	x      *expr
}

// maxKeyJoins bounds what is remembered of one source.
const maxKeyJoins = 8

// pushJoins hands a conjunct that ties columns of a source's key to other sources to that source, and one that a single source decides to that
// one. It holds for every row of the sources that can reach the result, as in pushPredicates. A condition from above an outer join that may leave the
// source out must be one that its row of NULLs fails, too: else the rows that it keeps from driving a join would make rows of NULLs that it lets through.
func (az *analyzer) pushJoins(c *expr, rels []*relEntry) {
	if r := az.decidedBy(c); r != nil && slices.Contains(rels, r) && (!r.nullable || c.rejectsNull(r)) {
		r.conds = append(r.conds, c)
	}
	switch {
	case c.cmp != nil && c.cmp.op == "=" && c.cmp.right != nil:
		joinBy(c.cmp.written(0), c.cmp.written(1), rels)
		joinBy(c.cmp.written(1), c.cmp.written(0), rels)
	case c.in != nil: // x IN (SELECT y …)
		for i, x := range c.in {
			y := c.sub.targets[i].e
			joinBy(x, &expr{kind: kColumn, typ: y.typ, mod: -1, node: c.sub, col: i}, rels)
			joinBy(y, x, c.sub.originRels())
		}
	case c.exists && c.sub.simple() && c.sub.where != nil:
		for _, in := range c.sub.where.conjuncts() {
			if in.cmp != nil && in.cmp.op == "=" && in.cmp.right != nil {
				joinBy(in.cmp.written(0), in.cmp.written(1), rels)
				joinBy(in.cmp.written(1), in.cmp.written(0), rels)
			}
		}
	}
}

// rejectsNull reports a condition that is a comparison of a column of r, so that it is not true where r is a row of NULLs.
func (e *expr) rejectsNull(r *relEntry) bool {
	if e.cmp == nil {
		return false
	}
	is := func(x *expr) bool { return x != nil && x.kind == kColumn && x.rel == r }
	switch e.cmp.op {
	case "=", "<>", "<", "<=", ">", ">=":
		return is(e.cmp.left) || is(e.cmp.rawLeft) || is(e.cmp.right) || is(e.cmp.rawRight)
	case "in", "any", "isnotnull":
		return is(e.cmp.left)
	}
	return false
}

// written are the operands as they stood in the statement, before they were made one type; constants as they are compared.
func (c *comparison) written(side int) *expr {
	x, raw := c.left, c.rawLeft
	if side == 1 {
		x, raw = c.right, c.rawRight
	}
	if raw != nil && !raw.isConstantLike() {
		return raw
	}
	return x
}

// joinBy notes col = x where col is a column of the key of a stored table among rels.
func joinBy(col, x *expr, rels []*relEntry) {
	o := col.originColumn()
	if o == nil || o.rel == nil || !slices.Contains(rels, o.rel) || !slices.Contains(o.rel.use.Relation.Key, o.col) || len(o.rel.joins) >= maxKeyJoins {
		return
	}
	if len(o.rel.ctes) > 0 { // from outside of a WITH query, which others may read, too
		return
	}
	if !joinable(o.rel.column(o.col).Type, x.typ) {
		return
	}
	o.rel.joins = append(o.rel.joins, pendingJoin{column: o.col, x: x})
}

// joinable reports types whose values are equal only where a cast of the other value to the key's type is the key: a cast that rounds gives keys
// that join nothing, one that fails gives none.
func joinable(key, other uint32) bool {
	k, o := keyFamily(key), keyFamily(other)
	return k != 0 && k == o
}

// keyFamily groups types; 0 for those of which several values are equal (char(n), interval) or rounded when compared (double precision).
func keyFamily(oid uint32) uint32 {
	switch oid {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8, pgtype.Numeric:
		return pgtype.Numeric
	case pgtype.Text, pgtype.Varchar, pgtype.Name:
		return pgtype.Text
	case pgtype.Bool, pgtype.Date, pgtype.Time, pgtype.Timestamp, pgtype.TimestampTZ, pgtype.UUID, pgtype.Bytea:
		return oid
	}
	return 0
}

// repeatable reports an expression of columns and constants that has the same value whenever it is computed from the same row.
func (az *analyzer) repeatable(e *expr) bool {
	switch e.kind {
	case kConst, kParam, kColumn:
		return true
	case kSession:
		return az.binds[e.param].Call == nil
	case kCall, kRow:
		if e.volatile {
			return false
		}
	case kSRF:
		if e.srf.rel != nil {
			return false
		}
	default:
		return false
	}
	for _, a := range e.args {
		if !az.repeatable(a) {
			return false
		}
	}
	return true
}

// leaf is the only source that an expression has columns of, nil when it has none; ok is false when there are others.
func leaf(es ...*expr) (r *relEntry, ok bool) {
	ok = true
	for _, e := range es {
		e.walk(func(x *expr) bool {
			switch {
			case x.kind != kColumn || x.rel == nil && x.ident == lambdaVar:
			case x.rel == nil || r != nil && r != x.rel:
				ok = false
			default:
				r = x.rel
			}
			return ok
		})
	}
	return r, ok
}

// decidedBy is the one source that a condition is about.
func (az *analyzer) decidedBy(c *expr) *relEntry {
	if !az.repeatable(c) {
		return nil
	}
	r, ok := leaf(c)
	if !ok {
		return nil
	}
	return r
}

// keyOrigin is a query for keys while it is made: the values of exprs over the rows of rel that satisfy its conds, or over rows of VALUES.
type keyOrigin struct {
	rel   *relEntry
	exprs []*expr
	rows  [][]*expr
}

// keyOrigins traces expressions to sources, through subqueries: nil when it cannot be said where their values come from. A value may be missing
// where an outer join makes a column NULL, unless it is the NULL of a bare column, which equals nothing.
func (az *analyzer) keyOrigins(xs []*expr, depth int) []keyOrigin {
	if depth > 16 {
		return nil
	}
	all := true
	for _, x := range xs {
		all = all && az.repeatable(x)
	}
	if r, ok := leaf(xs...); all && ok {
		return []keyOrigin{{rel: r, exprs: xs}}
	}
	n, fn, ok := derivedFrom(xs)
	if !ok {
		return nil
	}
	inner := func(of func(x *expr) *expr) []*expr {
		out := make([]*expr, len(xs))
		for i, x := range xs {
			out[i] = replaceColumns(x, of)
		}
		return out
	}
	out := az.derivedOrigins(n, fn, inner, depth+1)
	bare := true
	for _, x := range xs {
		bare = bare && (x.kind == kColumn || x.isConstantLike())
	}
	if out != nil && !bare { // where an outer join leaves the subquery out
		none := inner(func(x *expr) *expr { return nullConst(x.typ, -1) })
		for _, x := range none {
			if !az.repeatable(x) {
				return nil
			}
		}
		out = append(out, keyOrigin{exprs: none})
	}
	return out
}

// derivedFrom is the one subquery, or the one call in FROM, that all columns of expressions are of.
func derivedFrom(xs []*expr) (n *selNode, fn *nsItem, ok bool) {
	ok = true
	for _, e := range xs {
		e.walk(func(x *expr) bool {
			switch {
			case x.kind != kColumn || x.rel == nil && x.ident == lambdaVar:
			case x.rel == nil && x.node != nil && fn == nil && (n == nil || n == x.node):
				n = x.node
			case x.rel == nil && x.def != nil && n == nil && (fn == nil || fn == x.item):
				fn = x.item
			default:
				ok = false
			}
			return ok
		})
	}
	return n, fn, ok && (n != nil || fn != nil)
}

// replaceColumns is an expression with other expressions in the place of its columns.
func replaceColumns(e *expr, of func(x *expr) *expr) *expr {
	switch {
	case e.kind == kColumn && e.rel == nil && e.ident == lambdaVar:
		return e
	case e.kind == kColumn:
		return of(e)
	case len(e.args) == 0:
		return e
	}
	c := *e
	c.args = make([]*expr, len(e.args))
	for i, a := range e.args {
		c.args[i] = replaceColumns(a, of)
	}
	return &c
}

// derivedOrigins traces expressions through a subquery or a call: inner writes them with other expressions for its columns.
func (az *analyzer) derivedOrigins(n *selNode, fn *nsItem, inner func(func(*expr) *expr) []*expr, depth int) []keyOrigin {
	switch {
	case fn != nil:
		return az.keyOrigins(inner(func(x *expr) *expr { return x.def }), depth)
	case n.op != "":
		leg := func(n *selNode) func(x *expr) *expr {
			return func(x *expr) *expr {
				return &expr{kind: kColumn, typ: n.targets[x.col].e.typ, mod: -1, node: n, col: x.col}
			}
		}
		l, r := az.keyOrigins(inner(leg(n.left)), depth), az.keyOrigins(inner(leg(n.right)), depth)
		if l == nil || r == nil {
			return nil
		}
		return append(l, r...)
	case n.values != nil:
		return az.valuesOrigins(n, inner, depth)
	}
	if !n.rowwise() {
		return nil
	}
	return az.keyOrigins(inner(func(x *expr) *expr { return n.targets[x.col].e }), depth)
}

// rowwise reports a query whose output columns, as far as they are repeatable, are functions of one row of its FROM: not where grouping sets make some of them
// NULL, nor where set-returning functions of different lengths do.
func (n *selNode) rowwise() bool {
	return n.scope.srfs < 2 && !slices.ContainsFunc(n.groups, func(g groupEntry) bool { return g.kind != "" && g.kind != "row" })
}

// valuesOrigins are the rows of VALUES: together when they are constants.
func (az *analyzer) valuesOrigins(n *selNode, inner func(func(*expr) *expr) []*expr, depth int) (out []keyOrigin) {
	constant := true
	var rows [][]*expr
	for r := range n.values {
		row := inner(func(x *expr) *expr { return n.values[r][x.col] })
		for _, x := range row {
			constant = constant && az.repeatable(x) && x.isConstantLike()
		}
		rows = append(rows, row)
	}
	if constant {
		return []keyOrigin{{rows: rows}}
	}
	if len(rows) > maxKeyJoins {
		return nil
	}
	for _, row := range rows {
		o := az.keyOrigins(row, depth+1)
		if o == nil {
			return nil
		}
		out = append(out, o...)
	}
	return out
}

// settleJoins makes the KeyJoins of a source: for each expression that its key is compared with, what is compared with the rest of the key and
// comes from the same rows.
func (az *analyzer) settleJoins(q *Query, r *relEntry) {
	use := r.use
	if use.Relation.Kind != Table && (use.Func == nil || use.Func.Name != "table_at") || len(r.joins) == 0 {
		return
	}
	seen := map[string]bool{}
	for _, anchor := range r.joins {
		if anchor.x.isConstantLike() && anchor.x.kind != kColumn {
			continue
		}
		cols, xs := []int{anchor.column}, []*expr{anchor.x}
		origins := az.keyOrigins(xs, 0)
		for _, j := range r.joins {
			if origins == nil || slices.Contains(cols, j.column) {
				continue
			}
			if more := az.keyOrigins(append(xs[:len(xs):len(xs)], j.x), 0); more != nil {
				cols, xs, origins = append(cols, j.column), append(xs, j.x), more
			}
		}
		if k, ok := az.keyJoin(r, cols, origins); ok {
			name := strconv.Itoa(cols[0])
			for _, s := range k.Keys {
				name += "\x01" + s.text
			}
			if !seen[name] {
				seen[name] = true
				q.KeyJoins = append(q.KeyJoins, k)
			}
		}
	}
}

func (az *analyzer) keyJoin(r *relEntry, cols []int, origins []keyOrigin) (k KeyJoin, ok bool) {
	k = KeyJoin{Target: r.index, Columns: cols}
	for _, o := range origins {
		s := KeySource{Driver: -1}
		if o.rel != nil {
			if o.rel == r || o.rel.index >= len(az.rels) || az.rels[o.rel.index] != o.rel {
				return k, false // a row's own columns; a source of another part
			}
			s.Driver, s.Filtered = o.rel.index, len(o.rel.conds) > 0
		}
		s.text, s.Binds = az.bindText(o.sql())
		k.Keys = append(k.Keys, s)
	}
	return k, len(k.Keys) > 0
}

// sql writes the query for keys.
func (o *keyOrigin) sql() string {
	var b strings.Builder
	if o.rows != nil {
		b.WriteString("SELECT ")
		for i := range o.rows[0] {
			comma(&b, i)
			b.WriteString("v.c" + strconv.Itoa(i) + " AS k" + strconv.Itoa(i))
		}
		b.WriteString(" FROM (VALUES ")
		for n, row := range o.rows {
			comma(&b, n)
			b.WriteString("(")
			for i, x := range row {
				comma(&b, i)
				x.write(&b)
			}
			b.WriteString(")")
		}
		b.WriteString(") AS v(")
		for i := range o.rows[0] {
			comma(&b, i)
			b.WriteString("c" + strconv.Itoa(i))
		}
		b.WriteString(")")
		return b.String()
	}
	bare := true
	list := func() {
		b.WriteString("SELECT ")
		for i, x := range o.exprs {
			comma(&b, i)
			x.write(&b)
			b.WriteString(" AS k" + strconv.Itoa(i))
			bare = bare && x.kind == kColumn
		}
	}
	list()
	if o.rel == nil {
		return b.String()
	}
	b.WriteString(" FROM " + o.rel.from())
	for i, c := range o.rel.conds {
		b.WriteString([]string{" WHERE ", " AND "}[min(i, 1)])
		c.write(&b)
	}
	if !bare { // where an outer join leaves the source out, its columns are NULL, and an expression over them need not be
		b.WriteString(" UNION ALL ")
		list()
		b.WriteString(" FROM (SELECT ")
		for i := range o.rel.use.Relation.Columns {
			c := o.rel.column(i)
			comma(&b, i)
			b.WriteString("CAST(NULL AS " + duckType(c.Type, c.Mod) + ") AS c" + strconv.Itoa(i+1))
		}
		b.WriteString(") AS " + o.rel.alias)
	}
	return b.String()
}
