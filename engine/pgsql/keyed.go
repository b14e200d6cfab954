package pgsql

import (
	"slices"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// maxKeyRows bounds the rows of a predicate of op keys.
const maxKeyRows = 4096

// lossless reports a cast under which two values of a column are equal if and only if they were before, for every value that meets the other side of a
// comparison (a bigint beyond 2^53 as a double is the reader's concern).
func lossless(from, to uint32) bool {
	switch from {
	case pgtype.Int2, pgtype.Int4, pgtype.Int8:
		switch to {
		case pgtype.Int4, pgtype.Int8:
			return intDigits[to] >= intDigits[from]
		case pgtype.Numeric, pgtype.Float8:
			return true
		}
	case pgtype.Date:
		return to == pgtype.Timestamp
	case pgtype.BPChar:
		return to == pgtype.Text || to == pgtype.Varchar
	}
	return false
}

// keyColumn is the base column that an expression shows, behind casts that lose nothing; nil for other expressions.
func (e *expr) keyColumn() *expr {
	if c := e.originColumn(); c != nil {
		return c
	}
	return e.bare
}

// computed reports values that are neither constants nor parameters.
func (p pendingPred) computed() bool {
	other := func(e *expr) bool {
		for _, i := range e.items() {
			if i.kind != kConst && i.kind != kParam {
				return true
			}
		}
		return e.kind != kConst && e.kind != kParam && e.zoneless == "" && e.items() == nil
	}
	return slices.ContainsFunc(p.values, other) || slices.ContainsFunc(p.rows, func(row []*expr) bool { return slices.ContainsFunc(row, other) })
}

// keysOf reads a disjunction whose every arm gives values to columns of r, such as (a, b) IN ((1, 2), (3, 4)) or a = 1 OR a = 2, as a predicate of op keys
// over the columns that all arms have; op is "" when there is none. exact says that the predicate is all that the condition says.
func keysOf(c *expr, r *relEntry) (p pendingPred, exact bool) {
	arms := make([]map[int][]*expr, len(c.or))
	exact = true
	for i, arm := range c.or {
		var whole bool
		if arms[i], whole = armValues(arm, r); len(arms[i]) == 0 {
			return pendingPred{}, false
		}
		exact = exact && whole
	}
	for col := range arms[0] {
		if !slices.ContainsFunc(arms, func(a map[int][]*expr) bool { return a[col] == nil }) {
			p.columns = append(p.columns, col)
		}
	}
	if len(p.columns) == 0 {
		return pendingPred{}, false
	}
	slices.Sort(p.columns)
	for _, a := range arms {
		exact = exact && len(a) == len(p.columns)
		rows := [][]*expr{nil}
		for _, col := range p.columns {
			if len(p.rows)+len(rows)*len(a[col]) > maxKeyRows {
				return pendingPred{}, false
			}
			var next [][]*expr
			for _, row := range rows {
				for _, v := range a[col] {
					next = append(next, append(slices.Clip(row), v))
				}
			}
			rows = next
		}
		p.rows = append(p.rows, rows...)
	}
	p.op = "keys"
	return p, exact
}

// armValues are the values that a conjunction gives to columns of r. whole says that it says no more.
func armValues(arm *expr, r *relEntry) (vals map[int][]*expr, whole bool) {
	vals, whole = map[int][]*expr{}, true
	for _, c := range arm.conjuncts() {
		if c.cmp == nil {
			whole = false
			continue
		}
		col, p := predicateOf(c.cmp)
		if col == nil || col.rel != r || p.op != "=" && p.op != "in" || vals[p.column] != nil {
			whole = false
			continue
		}
		vals[p.column] = p.values
	}
	return vals, whole
}

// givesKey reports a condition that gives values to every key column of r, to each once, and says nothing else.
func (az *analyzer) givesKey(where *expr, r *relEntry) bool {
	key := r.use.Relation.Key
	if where == nil || len(key) == 0 {
		return false
	}
	var given []int
	for _, c := range where.conjuncts() {
		var p pendingPred
		switch {
		case len(c.or) > 0:
			var exact bool
			if p, exact = keysOf(c, r); !exact {
				return false
			}
			given = append(given, p.columns...)
		case c.cmp == nil:
			return false
		default:
			var col *expr
			if col, p = predicateOf(c.cmp); col == nil || col.rel != r || p.op != "=" && p.op != "in" && p.op != "any" {
				return false
			}
			given = append(given, p.column)
		}
		if az.volatile && p.computed() {
			return false
		}
	}
	sorted := slices.Clone(key)
	slices.Sort(sorted)
	slices.Sort(given)
	return slices.Equal(given, sorted)
}

// keyedSelect recognises SELECT columns and values FROM one table WHERE its whole key is given.
func (az *analyzer) keyedSelect(n *selNode) *KeyedSelect {
	if !n.simpleButLimit() || len(n.from) != 1 || len(n.from[0].rels) != 1 || len(az.rels) != 1 || len(n.with) > 0 || n.ties {
		return nil
	}
	r := n.from[0].rels[0]
	switch {
	case r.use.Relation.Kind == Table && r.use.Func == nil:
	case r.use.Func != nil && r.use.Func.Name == "table_at" && len(r.use.Args) == 2 && r.use.Driver == 0:
	default:
		return nil
	}
	if !az.givesKey(n.where, r) {
		return nil
	}
	k := &KeyedSelect{Rel: r.index}
	if r.use.Func != nil {
		k.AsOf = r.use.Args[1]
	}
	for _, t := range n.targets {
		out, ok := az.keyedOutput(t.e, r)
		if !ok {
			return nil
		}
		k.Output = append(k.Output, out)
	}
	for _, l := range []struct {
		from *expr
		to   **Arg
	}{{n.limit, &k.Limit}, {n.offset, &k.Offset}} {
		if l.from == nil {
			continue
		}
		if l.from.kind != kConst && l.from.kind != kParam {
			return nil
		}
		*l.to = az.arg(l.from)
	}
	k.order(n, r)
	return k
}

// keyedOutput is an output column that is a column of r, or a value that needs no computing.
func (az *analyzer) keyedOutput(e *expr, r *relEntry) (KeyedOutput, bool) {
	if e.kind == kColumn {
		ok := e.rel == r && e.typ == r.column(e.col).Type && !r.column(e.col).Hidden
		return KeyedOutput{Column: e.col}, ok
	}
	if e.kind != kParam && (e.kind != kConst || e.show != nil) {
		return KeyedOutput{}, false
	}
	switch t := e.typ; {
	case isReg(t), t == pgtype.BPChar, t == pgtype.Record, t == pgtype.Unknown, t == pgtype.Void, e.mod >= 0:
		return KeyedOutput{}, false
	}
	return KeyedOutput{Value: az.arg(e)}, true
}

// order notes ORDER BY.
func (k *KeyedSelect) order(n *selNode, r *relEntry) {
	for _, o := range n.order {
		e, desc := o.e, strings.HasPrefix(o.suffix, " DESC")
		if o.target >= 0 {
			e = n.targets[o.target].e
		}
		if e.kind == kConst || e.kind == kParam {
			continue // the same in every row
		}
		if e.kind != kColumn || e.rel != r || e.typ != r.column(e.col).Type || e.typ == pgtype.BPChar || len(k.Order) > 0 && desc != k.Desc {
			k.Unordered = true
			return
		}
		k.Order, k.Desc = append(k.Order, e.col), desc
	}
}
