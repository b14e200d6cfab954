package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// write writes a query. Output columns are named c1, c2 …
func (n *selNode) write(b *strings.Builder) {
	show := n.show && n.needsShow()
	if show && (n.distinct || n.op != "" || n.values != nil || n.ties) {
		// The shown forms go around, so that DISTINCT, UNION and ORDER BY work on the values.
		b.WriteString("SELECT ")
		for i, t := range n.targets {
			comma(b, i)
			c := *t.e
			c.kind, c.rel, c.ident, c.show, c.args = kColumn, nil, "x.c"+strconv.Itoa(i+1), nil, nil
			shown(&c).write(b)
			b.WriteString(" AS c" + strconv.Itoa(i+1))
		}
		b.WriteString(" FROM (")
		n.body(b, false)
		b.WriteString(") AS x")
		return
	}
	n.body(b, show)
}

func comma(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteString(", ")
	}
}

func (n *selNode) needsShow() bool {
	for _, t := range n.targets {
		if shown(t.e) != t.e {
			return true
		}
	}
	return false
}

// shown is what a top-level output column emits for a value.
func shown(e *expr) *expr {
	if e.show != nil {
		return e.show
	}
	switch {
	case elemType(e.typ) == pgtype.Numeric && e.loose:
		return textOf(e)
	case e.typ == pgtype.Record, e.typ == pgtype.RecordArray:
		return textOf(e)
	case e.typ == pgtype.BPChar && e.mod >= 4:
		return call(pgtype.BPChar, "rpad($1, "+strconv.Itoa(int(e.mod-4))+", ' ')", e)
	}
	return e
}

func (n *selNode) body(b *strings.Builder, show bool) {
	n.writeWith(b)
	if n.ties {
		n.writeTies(b)
		return
	}
	switch {
	case n.op != "":
		b.WriteString("(")
		n.left.write(b)
		b.WriteString(") " + n.op)
		if n.all {
			b.WriteString(" ALL")
		}
		b.WriteString(" (")
		n.right.write(b)
		b.WriteString(")")
	case n.values != nil:
		b.WriteString("SELECT * FROM (VALUES ")
		for i, row := range n.values {
			comma(b, i)
			b.WriteString("(")
			for j, e := range row {
				comma(b, j)
				e.write(b)
			}
			b.WriteString(")")
		}
		b.WriteString(") AS v(")
		for i := range n.targets {
			comma(b, i)
			b.WriteString("c" + strconv.Itoa(i+1))
		}
		b.WriteString(")")
	default:
		n.writePlain(b, show, "")
	}
	n.writeOrder(b)
	if n.limit != nil {
		b.WriteString(" LIMIT ")
		n.limit.write(b)
	}
	if n.offset != nil {
		b.WriteString(" OFFSET ")
		n.offset.write(b)
	}
}

func (n *selNode) writeWith(b *strings.Builder) {
	if len(n.with) == 0 {
		return
	}
	b.WriteString("WITH ")
	if n.recursive {
		b.WriteString("RECURSIVE ")
	}
	for i, w := range n.with {
		comma(b, i)
		b.WriteString(w.cte.ident + "(")
		for j := range w.cte.cols {
			comma(b, j)
			b.WriteString("c" + strconv.Itoa(j+1))
		}
		b.WriteString(") AS" + w.mat + " (")
		w.node.write(b)
		b.WriteString(")")
	}
	b.WriteString(" ")
}

// writePlain writes SELECT … up to WINDOW; extra is appended to the select list.
func (n *selNode) writePlain(b *strings.Builder, show bool, extra string) {
	b.WriteString("SELECT ")
	if n.distinct {
		b.WriteString("DISTINCT ")
	}
	if len(n.distinctOn) > 0 {
		b.WriteString("DISTINCT ON (")
		for i, d := range n.distinctOn {
			comma(b, i)
			writeNonInteger(b, d)
		}
		b.WriteString(") ")
	}
	for i, t := range n.targets {
		comma(b, i)
		e := t.e
		if show {
			e = shown(e)
		}
		e.write(b)
		b.WriteString(" AS c" + strconv.Itoa(i+1))
	}
	if len(n.targets) == 0 {
		b.WriteString("NULL")
	}
	b.WriteString(extra)
	for i, f := range n.from {
		if i == 0 {
			b.WriteString(" FROM ")
		} else {
			b.WriteString(", ")
		}
		f.write(b)
	}
	if n.where != nil {
		b.WriteString(" WHERE ")
		n.where.write(b)
	}
	if len(n.groups) > 0 {
		b.WriteString(" GROUP BY ")
		writeGroups(b, n.groups)
	}
	if n.having != nil {
		b.WriteString(" HAVING ")
		n.having.write(b)
	}
}

func (n *selNode) writeOrder(b *strings.Builder) {
	if len(n.order) == 0 {
		return
	}
	b.WriteString(" ORDER BY ")
	n.writeKeys(b, n.op != "" || n.values != nil || n.distinct)
}

func (n *selNode) writeKeys(b *strings.Builder, byPosition bool) {
	for i, k := range n.order {
		comma(b, i)
		if k.target >= 0 && byPosition {
			b.WriteString(strconv.Itoa(k.target + 1))
		} else if k.target >= 0 {
			writeSortKey(b, n.targets[k.target].e)
		} else {
			writeSortKey(b, k.e)
		}
		b.WriteString(k.suffix)
	}
}

// writeSortKey writes a key that is no output column itself when it is a float: DuckDB takes the values of a sorted column from its
// sort keys, which have no negative zero.
func writeSortKey(b *strings.Builder, e *expr) {
	if e.typ == pgtype.Float4 || e.typ == pgtype.Float8 {
		b.WriteByte('(')
		writeNonInteger(b, e)
		b.WriteString(" + 0)")
		return
	}
	writeNonInteger(b, e)
}

// writeTies is FETCH FIRST … WITH TIES, which DuckDB lacks: the rows whose rank is within the limit.
func (n *selNode) writeTies(b *strings.Builder) {
	var keys strings.Builder
	plain := n.op == "" && n.values == nil && !n.distinct && len(n.distinctOn) == 0
	if plain {
		n.writeKeys(&keys, false)
	} else {
		for i, k := range n.order {
			comma(&keys, i)
			keys.WriteString("y.c" + strconv.Itoa(k.target+1) + k.suffix)
		}
	}
	extra := ", rank() OVER (ORDER BY " + keys.String() + ") AS r, row_number() OVER (ORDER BY " + keys.String() + ") AS n"
	b.WriteString("SELECT ")
	for i := range n.targets {
		comma(b, i)
		b.WriteString("z.c" + strconv.Itoa(i+1) + " AS c" + strconv.Itoa(i+1))
	}
	b.WriteString(" FROM (")
	if plain {
		n.writePlain(b, false, extra)
	} else {
		inner := *n
		inner.order, inner.limit, inner.offset, inner.ties, inner.with = nil, nil, nil, false, nil
		b.WriteString("SELECT y.*" + extra + " FROM (")
		inner.body(b, false)
		b.WriteString(") AS y")
	}
	b.WriteString(") AS z WHERE ")
	if n.offset != nil {
		b.WriteString("z.n > ")
		n.offset.write(b)
		b.WriteString(" AND z.r <= ")
		n.offset.write(b)
		b.WriteString(" + ")
		n.limit.write(b)
	} else {
		b.WriteString("z.r <= ")
		n.limit.write(b)
	}
	b.WriteString(" ORDER BY z.n")
}
