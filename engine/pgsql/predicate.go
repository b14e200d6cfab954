package pgsql

import "slices"

// flipped mirrors an operator.
var flipped = map[string]string{"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

// pushPredicates hands the conjuncts of a condition that compare a source's column with values to that source, for pruning.
// The condition must hold for every row of the sources that can reach the result; all its comparisons reject NULL, so outer joins do not matter,
// except for IS NULL, which is taken only where the source is not null-extended.
func (az *analyzer) pushPredicates(cond *expr, rels []*relEntry, s *scope) {
	for _, c := range cond.conjuncts() {
		if len(c.or) > 0 {
			for _, r := range rels {
				if p, _ := keysOf(c, r); p.op != "" {
					r.push(p)
				}
			}
		}
		az.pushJoins(c, rels)
		if c.cmp == nil {
			continue
		}
		if col, p := predicateOf(c.cmp); col != nil {
			for _, r := range rels {
				if r == col.rel {
					if p.op == "isnull" {
						continue
					}
					r.push(p)
				}
			}
		}
	}
}

func (r *relEntry) push(p pendingPred) {
	p.ctes = slices.Clone(r.ctes)
	r.preds = append(r.preds, p)
}

// holds reports a predicate that every reader of the source's rows is behind: a WITH query may have several.
func (p pendingPred) holds(volatile bool) bool {
	return !slices.ContainsFunc(p.ctes, func(c *cteEntry) bool { return c.used > 1 || volatile })
}

// pendingPred is a predicate whose values are still expressions.
type pendingPred struct {
	column int
	op     string
	values []*expr
	// columns and rows are those of op keys
	columns []int
	rows    [][]*expr
	// ctes are the WITH queries that the predicate was pushed into
	ctes []*cteEntry
}

// predicateOf reads column op value, either way round.
func predicateOf(c *comparison) (*expr, pendingPred) {
	left := c.left.keyColumn()
	switch c.op {
	case "isnull", "isnotnull":
		if left != nil {
			return left, pendingPred{column: left.col, op: c.op}
		}
		return nil, pendingPred{}
	case "in":
		if left == nil {
			return nil, pendingPred{}
		}
		for _, v := range c.list {
			if !v.isConstantLike() {
				return nil, pendingPred{}
			}
		}
		return left, pendingPred{column: left.col, op: "in", values: c.list}
	case "any":
		if left == nil || !c.right.isConstantLike() {
			return nil, pendingPred{}
		}
		return left, pendingPred{column: left.col, op: "any", values: []*expr{c.right}}
	}
	if flipped[c.op] == "" {
		return nil, pendingPred{}
	}
	if left != nil && c.right != nil && c.right.isConstantLike() {
		return left, pendingPred{column: left.col, op: c.op, values: []*expr{c.right}}
	}
	if c.right != nil {
		if right := c.right.keyColumn(); right != nil && c.left.isConstantLike() {
			return right, pendingPred{column: right.col, op: flipped[c.op], values: []*expr{c.left}}
		}
	}
	return nil, pendingPred{}
}

// settlePreds turns pending predicates into the ones that the caller sees.
func (az *analyzer) settlePreds(r *relEntry) {
	for _, p := range r.preds {
		if az.volatile && p.computed() || !p.holds(az.volatile) {
			continue // a value that may differ from row to row
		}
		out := Predicate{Column: p.column, Op: p.op, Values: az.settledArgs(p.values), Columns: p.columns}
		for _, row := range p.rows {
			out.Rows = append(out.Rows, az.settledArgs(row))
		}
		r.use.Preds = append(r.use.Preds, out)
	}
	r.preds = nil
}

func (az *analyzer) settledArgs(es []*expr) []*Arg {
	var out []*Arg
	for _, e := range es {
		a := az.arg(e)
		az.settleArg(a)
		out = append(out, a)
	}
	return out
}

// lookupCall recognises SELECT columns FROM lookup(…).
func (az *analyzer) lookupCall(n *selNode) *DirectCall {
	if !n.simpleButLimit() || n.where != nil || n.having != nil || len(n.order) > 0 || n.limit != nil || n.offset != nil || len(n.with) > 0 ||
		len(n.from) != 1 || len(n.from[0].rels) != 1 || len(az.rels) != 1 {
		return nil
	}
	r := n.from[0].rels[0]
	if r.use.Func == nil || r.use.Func.Name != "lookup" || r.use.Driver > 0 {
		return nil
	}
	d := &DirectCall{Rel: r.index}
	for _, t := range n.targets {
		if t.e.kind != kColumn || t.e.rel != r || t.e.typ != r.column(t.e.col).Type || r.column(t.e.col).Hidden {
			return nil
		}
		d.Output = append(d.Output, t.e.col)
	}
	if len(d.Output) == 0 {
		return nil
	}
	return d
}

func (n *selNode) simpleButLimit() bool {
	return n.op == "" && n.values == nil && !n.grouped && !n.distinct && len(n.distinctOn) == 0 && n.scope.wins == 0 && n.scope.srfs == 0
}
