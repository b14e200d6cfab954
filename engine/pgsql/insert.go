package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

func (az *analyzer) insert(st *pg_query.InsertStmt, ctes []*cteEntry, sub bool) *pendingDML {
	s := &scope{az: az, ctes: ctes}
	holder := &selNode{scope: s}
	if st.WithClause != nil {
		az.withClause(holder, st.WithClause, s)
	}
	rel := az.dmlTarget(st.Relation, "insert into")
	ins := &Insert{Target: rel, Columns: stored(rel), Values: -1, override: st.Override}
	var locs []int32
	ins.Given, locs = az.insertColumns(rel, st.Cols)
	ins.locs, ins.names = locs, st.Cols
	n := az.insertSource(ins, st, s, locs)
	n.with, n.recursive = append(holder.with, n.with...), holder.recursive || n.recursive
	main := &part{rels: az.rels, binds: az.binds, node: n}
	var upd, ret *part
	if st.OnConflictClause != nil {
		ins.OnConflict, upd = az.onConflict(st, rel, ins, s.ctes)
	}
	d := &pendingDML{}
	if len(st.ReturningList) > 0 {
		ret = az.insertReturning(st, rel, s.ctes)
		d.ret = ret.node.targets
	}
	d.finish = func() *Query {
		q := az.finishPart(main, true)
		q.Insert = ins
		if upd != nil {
			ins.OnConflict.Update = az.finishPart(upd, true)
		}
		if ret != nil {
			ins.Returning = az.finishPart(ret, !sub)
			ins.Returning.Columns = returned(d.ret)
			q.Columns = ins.Returning.Columns
		}
		az.insertRows(ins, n)
		return q
	}
	return d
}

// insertColumns are the columns that INSERT names, or all.
func (az *analyzer) insertColumns(rel *Relation, names []*pg_query.Node) (cols []int, locs []int32) {
	if len(names) == 0 {
		for i, c := range rel.Columns {
			if !c.Hidden {
				cols, locs = append(cols, i), append(locs, -1)
			}
		}
		return cols, locs
	}
	seen := map[int]bool{} // whether the whole column was named
	for _, n := range names {
		rt := n.GetResTarget()
		i := az.columnIndex(rel, rt.Name, rt.Location)
		whole := len(rt.Indirection) == 0
		if was, again := seen[i]; again && (was || whole) {
			az.fail(pgerr.DuplicateColumn, rt.Location, "column %q specified more than once", rt.Name)
		}
		seen[i] = whole
		cols, locs = append(cols, i), append(locs, rt.Location)
	}
	return cols, locs
}

// insertSource is the rows to insert, one column per ins.Columns.
func (az *analyzer) insertSource(ins *Insert, st *pg_query.InsertStmt, s *scope, locs []int32) *selNode {
	rel := ins.Target
	n := &selNode{scope: s}
	sel := st.SelectStmt.GetSelectStmt()
	if sel == nil {
		// DEFAULT VALUES
		ins.Values = 1
		n.values = [][]*expr{az.defaultRow(s, ins, nil)}
	} else if len(sel.ValuesLists) > 0 && len(sel.SortClause) == 0 && sel.LimitCount == nil && sel.LimitOffset == nil {
		if sel.WithClause != nil {
			az.withClause(n, sel.WithClause, s)
		}
		ins.Values = len(sel.ValuesLists)
		n.values = az.insertValues(ins, sel, s, locs)
	} else {
		return az.insertSelect(ins, st, s, locs)
	}
	for i := range ins.Columns {
		c := rel.Columns[ins.Columns[i]]
		n.targets = append(n.targets, &target{name: c.Name, e: n.valuesColumn(i)})
		n.targets[i].e.typ, n.targets[i].e.mod, n.targets[i].e.loose = c.Type, c.Mod, false
	}
	return n
}

func (az *analyzer) insertValues(ins *Insert, sel *pg_query.SelectStmt, s *scope, locs []int32) [][]*expr {
	rel := ins.Target
	var rows [][]*expr
	width := -1
	s.clause = "VALUES"
	s.hidden = []*nsItem{targetItem(rel)}
	for _, row := range sel.ValuesLists {
		items := row.GetList().GetItems()
		if width >= 0 && len(items) != width {
			az.fail(pgerr.SyntaxError, exprLocation(items, 0), "VALUES lists must all be the same length")
		}
		width = len(items)
		given := map[int]*expr{}
		var exprs []*expr
		for _, it := range items {
			if d := it.GetSetToDefault(); d != nil {
				exprs = append(exprs, &expr{kind: kDefault, loc: d.Location})
				continue
			}
			exprs = append(exprs, s.expr(it))
		}
		az.checkWidth(ins, st2cols(locs), exprs)
		for i, e := range exprs {
			col := ins.Given[i]
			if e.kind == kDefault {
				continue
			}
			if az.takesDefault(ins, col) {
				continue
			}
			given[col] = s.assignGiven(ins, i, given[col], e)
		}
		rows = append(rows, az.defaultRow(s, ins, given))
	}
	s.clause = ""
	if s.wins > 0 || s.aggs > 0 {
		az.fail(pgerr.GroupingError, -1, "aggregate functions are not allowed in VALUES")
	}
	return rows
}

// subscripts are those of the i-th column that INSERT names.
func (ins *Insert) subscripts(i int) []*pg_query.Node {
	if i < len(ins.names) {
		return ins.names[i].GetResTarget().GetIndirection()
	}
	return nil
}

// elements reports an INSERT that names elements of arrays.
func (ins *Insert) elements() bool {
	for i := range ins.names {
		if ins.subscripts(i) != nil {
			return true
		}
	}
	return false
}

// assignGiven is the value of the i-th column that INSERT names; before is what its elements were given so far.
func (s *scope) assignGiven(ins *Insert, i int, before, e *expr) *expr {
	rel, col := ins.Target, ins.Given[i]
	el := s.elementOf(rel, col, ins.subscripts(i), ins.givenLoc(s.az, i))
	if el == nil {
		return s.assign(e, rel, col)
	}
	if before == nil {
		before = nullConst(rel.Columns[col].Type, -1)
		before.mod = rel.Columns[col].Mod
		before = s.assign(before, rel, col)
	}
	return s.assignElement(before, el, e, rel, col)
}

// targetItem is the target table as something that VALUES cannot name, for hints.
func targetItem(rel *Relation) *nsItem {
	it := &nsItem{name: rel.Name}
	for _, c := range rel.Columns {
		it.cols = append(it.cols, &nsCol{name: c.Name, hidden: c.Hidden})
	}
	return it
}

// st2cols says whether the statement named its columns.
func st2cols(locs []int32) bool { return len(locs) > 0 && locs[0] >= 0 }

// checkWidth compares the number of expressions with that of target columns.
func (az *analyzer) checkWidth(ins *Insert, named bool, exprs []*expr) {
	if len(exprs) > len(ins.Given) {
		az.fail(pgerr.SyntaxError, exprs[len(ins.Given)].loc, "INSERT has more expressions than target columns")
	}
	if named && len(exprs) < len(ins.Given) {
		az.fail(pgerr.SyntaxError, ins.givenLoc(az, len(exprs)), "INSERT has more target columns than expressions")
	}
}

func (ins *Insert) givenLoc(_ *analyzer, i int) int32 {
	if i < len(ins.locs) {
		return ins.locs[i]
	}
	return -1
}

// takesDefault says whether a value given for a column is dropped in favour of its default (OVERRIDING USER VALUE), and refuses one that the
// column cannot take.
func (az *analyzer) takesDefault(ins *Insert, col int) bool {
	c := ins.Target.Columns[col]
	switch {
	case c.Generated != "":
		panic(computedColumn(c, "cannot insert a non-DEFAULT value into column %q"))
	case c.Identity == "":
		return false
	case ins.override == pg_query.OverridingKind_OVERRIDING_USER_VALUE:
		return true
	case c.Identity == "always" && ins.override != pg_query.OverridingKind_OVERRIDING_SYSTEM_VALUE:
		e := computedColumn(c, "cannot insert a non-DEFAULT value into column %q")
		e.Hint = "Use OVERRIDING SYSTEM VALUE to override."
		panic(e)
	}
	return false
}

// computedColumn is the error for a value for a column that computes its own.
func computedColumn(c RelColumn, format string) *pgerr.Error {
	e := pgerr.Newf(pgerr.GeneratedAlways, format, c.Name)
	if e.Detail = "Column \"" + c.Name + "\" is a generated column."; c.Identity != "" {
		e.Detail = "Column \"" + c.Name + "\" is an identity column defined as GENERATED ALWAYS."
	}
	return e
}

// defaultRow fills the columns that were not given.
func (az *analyzer) defaultRow(s *scope, ins *Insert, given map[int]*expr) []*expr {
	var out []*expr
	for _, c := range ins.Columns {
		if e := given[c]; e != nil {
			out = append(out, e)
		} else {
			out = append(out, az.defaultExpr(s, ins.Target, c))
		}
	}
	return out
}

// insertSelect is INSERT … SELECT: the select list is coerced in place; columns that it lacks get their defaults around it.
func (az *analyzer) insertSelect(ins *Insert, st *pg_query.InsertStmt, s *scope, locs []int32) *selNode {
	rel := ins.Target
	n := az.selectNode(st.SelectStmt, &scope{az: az, parent: &scope{az: az, ctes: s.ctes, forward: s}}, selectOptions{keepUnknown: true})
	exprs := make([]*expr, len(n.targets))
	for i, t := range n.targets {
		exprs[i] = t.e
	}
	az.checkWidth(ins, st2cols(locs), exprs)
	wrap := ins.elements() || len(n.targets) != len(ins.Columns) || n.distinct || n.op != "" || n.values != nil || len(n.distinctOn) > 0
	for i := range n.targets {
		c := rel.Columns[ins.Given[i]]
		wrap = wrap || c.Generated != "" || c.Identity != "" || ins.Given[i] != ins.Columns[min(i, len(ins.Columns)-1)]
		if n.targets[i].e.typ == pgtype.Unknown {
			col := ins.Given[i]
			n.coerceTarget(i, func(e *expr) *expr {
				if ix := ins.subscripts(i); ix != nil && arrayElem(rel.Columns[col].Type) != 0 {
					typ := rel.Columns[col].Type
					if !ix[0].GetAIndices().GetIsSlice() {
						typ = arrayElem(typ)
					}
					return s.coerceTo(e, typ, -1, assignmentCoercion, "INSERT")
				}
				return s.assign(e, rel, col)
			})
		}
	}
	if !wrap {
		for i := range n.targets {
			n.targets[i].e = s.assign(n.targets[i].e, rel, ins.Given[i])
			n.targets[i].name = rel.Columns[ins.Given[i]].Name
			// ORDER BY must not see the cast value.
		}
		return n
	}
	item := s.selectItem(n, "*SELECT*", nil, false)
	out := &selNode{scope: &scope{az: az}, from: []*fromItem{item}}
	given := map[int]*expr{}
	for i, c := range item.ns[0].cols {
		if az.takesDefault(ins, ins.Given[i]) {
			continue
		}
		e := s.reference(s, c, n.targets[i].e.loc)
		given[ins.Given[i]] = s.assignGiven(ins, i, given[ins.Given[i]], e)
	}
	for i, e := range az.defaultRow(s, ins, given) {
		out.targets = append(out.targets, &target{name: rel.Columns[ins.Columns[i]].Name, e: e})
	}
	return out
}

// insertRows collects constants and parameters for the fast path.
func (az *analyzer) insertRows(ins *Insert, n *selNode) {
	if n.values == nil {
		return
	}
	var rows [][]*Arg
	for _, row := range n.values {
		var out []*Arg
		for _, e := range row {
			switch {
			case e.base != nil:
				a := az.arg(e.base)
				a.Mod = e.mod
				out = append(out, a)
			case e.draws != 0:
				a := &Arg{Type: e.typ, Mod: e.mod, Draws: e.draws}
				out = append(out, a)
			case e.kind == kConst || e.kind == kParam || e.zoneless != "":
				out = append(out, az.arg(e))
			default:
				return
			}
		}
		rows = append(rows, out)
	}
	ins.Rows = rows
}

func (az *analyzer) insertReturning(st *pg_query.InsertStmt, rel *Relation, ctes []*cteEntry) *part {
	return az.inPart(func() *selNode {
		rows := *rel
		rows.Kind = Rows
		name, _ := aliasOf(st.Relation.Alias)
		if name == "" {
			name = rel.Name
		}
		s := &scope{az: az, ctes: ctes}
		e := az.addRel(&rows, name, st.Relation.Location)
		item := s.relItem(e, name, nil, -1)
		s.ns = item.ns
		n := &selNode{scope: s, from: []*fromItem{item}}
		n.targets = az.returning(s, st.ReturningList)
		return n
	})
}
