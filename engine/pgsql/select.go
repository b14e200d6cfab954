package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// target is an entry of the select list.
type target struct {
	e      *expr
	name   string
	table  uint32
	attnum int16
	// hidden entries exist for ORDER BY only.
}

// selNode is an analysed SELECT, VALUES or set operation, written at the end.
type selNode struct {
	scope     *scope
	with      []*withEntry
	recursive bool

	targets       []*target
	from          []*fromItem
	where         *expr
	groups        []groupEntry
	groupText     bool
	groupDistinct bool
	having        *expr
	distinct      bool
	distinctOn    []*expr
	windows       []*windowDef
	values        [][]*expr

	op          string // UNION …, set for set operations
	all         bool
	left, right *selNode

	order   []*sortKey
	limit   *expr
	offset  *expr
	ties    bool
	grouped bool
	show    bool
	// working marks a recursive union, whose rows depend on themselves.
	working bool
}

type withEntry struct {
	cte  *cteEntry
	node *selNode
	mat  string
}

type sortKey struct {
	e      *expr
	target int // index of an output column, -1 for an expression
	suffix string
}

type selectOptions struct {
	top         bool
	keepUnknown bool // INSERT … SELECT coerces unknown literals itself
}

// outputs are the visible output columns.
func (n *selNode) outputs() []*target {
	if n.op != "" {
		return n.targets
	}
	return n.targets
}

// simple reports a select whose rows are its FROM's rows, filtered: predicates may pass through it.
func (n *selNode) simple() bool {
	return n.op == "" && n.values == nil && !n.grouped && !n.distinct && len(n.distinctOn) == 0 && n.limit == nil && n.offset == nil &&
		n.scope.wins == 0 && n.scope.srfs == 0
}

func (n *selNode) originRels() []*relEntry {
	if !n.simple() {
		return nil
	}
	var out []*relEntry
	for _, f := range n.from {
		out = append(out, f.rels...)
	}
	return out
}

func (e *expr) originColumn() *expr {
	if e.kind != kColumn {
		return nil
	}
	if e.rel != nil {
		return e
	}
	return e.origin
}

func rowFields(e *expr) []*nsCol {
	if e.fields != nil {
		return e.fields
	}
	if e.kind == kRow {
		var out []*nsCol
		for i, a := range e.args {
			name := "f" + strconv.Itoa(i+1)
			if i < len(e.names) {
				name = e.names[i]
			}
			out = append(out, &nsCol{name: name, e: a})
		}
		return out
	}
	return nil
}

// selectNode analyses a node that must be a SELECT.
func (az *analyzer) selectNode(n *pg_query.Node, s *scope, opt selectOptions) *selNode {
	sel := n.GetSelectStmt()
	if sel == nil {
		az.unsupported(-1, "%s inside a query", statementName(n))
	}
	return az.selectStmtIn(sel, s, opt)
}

func (az *analyzer) selectStmt(s *pg_query.SelectStmt, parent *scope, opt selectOptions) *selNode {
	return az.selectStmtIn(s, &scope{az: az, parent: parent}, opt)
}

// selectStmtIn analyses a SELECT at level s and settles what is still unknown.
func (az *analyzer) selectStmtIn(sel *pg_query.SelectStmt, s *scope, opt selectOptions) *selNode {
	n := az.selectBody(sel, s)
	if !opt.keepUnknown {
		n.settleUnknowns()
	}
	return n
}

// settleUnknowns makes unknown literals and parameters of the output text, as PostgreSQL 10 and later do.
func (n *selNode) settleUnknowns() {
	if n.op != "" {
		n.left.settleUnknowns()
		n.right.settleUnknowns()
	}
	for i, t := range n.targets {
		if t.e.typ == pgtype.Unknown {
			n.coerceTarget(i, func(e *expr) *expr { return n.scope.coerceTo(e, pgtype.Text, -1, implicitCoercion, "SELECT") })
		}
	}
}

// coerceTarget replaces an output column's expression, in the legs of a set operation and in the rows of VALUES as well.
func (n *selNode) coerceTarget(i int, f func(*expr) *expr) {
	switch {
	case n.op != "":
		n.left.coerceTarget(i, f)
		n.right.coerceTarget(i, f)
		l := n.left.targets[i].e
		t := *n.targets[i].e
		t.typ, t.mod, t.prec, t.scale = l.typ, l.mod, max(l.prec, n.right.targets[i].e.prec), max(l.scale, n.right.targets[i].e.scale)
		n.targets[i].e = &t
	case n.values != nil:
		for _, row := range n.values {
			row[i] = f(row[i])
		}
		n.targets[i].e = n.valuesColumn(i)
	default:
		n.targets[i].e = f(n.targets[i].e)
	}
}

func (n *selNode) valuesColumn(i int) *expr {
	first := n.values[0][i]
	e := &expr{kind: kColumn, typ: first.typ, mod: first.mod, prec: first.prec, scale: first.scale, ident: "c" + strconv.Itoa(i+1), loc: first.loc}
	for _, row := range n.values {
		e.loose = e.loose || row[i].loose || row[i].scale != first.scale
		e.prec, e.scale = max(e.prec, row[i].prec), max(e.scale, row[i].scale)
		if row[i].mod != e.mod {
			e.mod = -1
		}
	}
	e.prec = min(38, e.prec+e.scale)
	return e
}

func (az *analyzer) selectBody(sel *pg_query.SelectStmt, s *scope) *selNode {
	az.deeper()
	defer az.shallower()
	n := &selNode{scope: s}
	if sel.IntoClause != nil {
		az.fail(pgerr.SyntaxError, sel.IntoClause.GetRel().GetLocation(), "SELECT ... INTO is not allowed here")
	}
	if sel.WithClause != nil {
		az.withClause(n, sel.WithClause, s)
	}
	switch {
	case len(sel.ValuesLists) > 0:
		az.valuesBody(n, sel, s)
	case sel.Op == pg_query.SetOperation_SETOP_NONE || sel.Op == pg_query.SetOperation_SET_OPERATION_UNDEFINED:
		az.plainBody(n, sel, s)
	default:
		az.setOpBody(n, sel, s)
	}
	az.limitClause(n, sel, s)
	az.lockClauses(n, sel)
	return n
}

func (az *analyzer) plainBody(n *selNode, sel *pg_query.SelectStmt, s *scope) {
	s.where = sel.WhereClause
	n.from = s.fromClause(sel.FromClause)
	for _, w := range sel.WindowClause {
		s.namedWindow(w.GetWindowDef())
	}
	n.targets = s.targetList(sel.TargetList)
	if sel.WhereClause != nil {
		s.clause = "WHERE"
		n.where = s.boolean(sel.WhereClause, "WHERE")
		s.clause = ""
		var rels []*relEntry
		for _, f := range n.from {
			rels = append(rels, f.rels...)
		}
		az.pushPredicates(n.where, rels, s)
	}
	if sel.HavingClause != nil {
		s.clause = "HAVING"
		n.having = s.boolean(sel.HavingClause, "HAVING")
		s.clause = ""
	}
	s.sortClause(n, sel.SortClause)
	s.groupClause(n, sel)
	s.distinctClause(n, sel)
	n.windows = s.windowDefs
	n.grouped = len(n.groups) > 0 || n.groupText || s.aggs > 0 || n.having != nil
	if n.grouped {
		if len(sel.LockingClause) > 0 { // PostgreSQL looks at it first
			(&lockClause{az: az, name: lockName(sel.LockingClause[0].GetLockingClause())}).checkLevel(n)
		}
		s.checkGrouping(n)
	}
}

func (az *analyzer) valuesBody(n *selNode, sel *pg_query.SelectStmt, s *scope) {
	width := -1
	s.clause = "VALUES"
	for _, row := range sel.ValuesLists {
		items := row.GetList().GetItems()
		if width >= 0 && len(items) != width {
			az.fail(pgerr.SyntaxError, exprLocation(items, 0), "VALUES lists must all be the same length")
		}
		width = len(items)
		var out []*expr
		for _, it := range items {
			if it.GetSetToDefault() != nil {
				az.fail(pgerr.SyntaxError, it.GetSetToDefault().Location, "DEFAULT is not allowed in this context")
			}
			out = append(out, s.expr(it))
		}
		n.values = append(n.values, out)
	}
	s.clause = ""
	if s.aggs > 0 || s.wins > 0 {
		az.fail(pgerr.GroupingError, -1, "aggregate functions are not allowed in VALUES")
	}
	for i := 0; i < width; i++ {
		col := make([]*expr, len(n.values))
		for r := range n.values {
			col[r] = n.values[r][i]
		}
		n.targets = append(n.targets, &target{name: "column" + strconv.Itoa(i+1)})
		common := s.commonType(col, "VALUES")
		if common != pgtype.Unknown {
			for r := range n.values {
				n.values[r][i] = s.coerceCommon(n.values[r][i], common, "VALUES")
			}
		}
		n.targets[i].e = n.valuesColumn(i)
	}
	s.sortClause(n, sel.SortClause)
}

func exprLocation(items []*pg_query.Node, i int) int32 {
	if i < len(items) {
		return nodeLocation(items[i])
	}
	return -1
}

func (az *analyzer) setOpBody(n *selNode, sel *pg_query.SelectStmt, s *scope) {
	words := map[pg_query.SetOperation]string{
		pg_query.SetOperation_SETOP_UNION: "UNION", pg_query.SetOperation_SETOP_INTERSECT: "INTERSECT", pg_query.SetOperation_SETOP_EXCEPT: "EXCEPT",
	}
	n.op, n.all = words[sel.Op], sel.All
	leg := func(x *pg_query.SelectStmt) *selNode {
		if len(x.LockingClause) > 0 {
			az.fail(pgerr.FeatureNotSupported, -1, "%s is not allowed with UNION/INTERSECT/EXCEPT", lockName(x.LockingClause[0].GetLockingClause()))
		}
		ls := &scope{az: az, parent: s.parent, ctes: s.ctes, forward: nil}
		ls.parent = &scope{az: az, parent: s.parent, ctes: s.ctes, forward: s}
		return az.selectBody(x, ls)
	}
	n.left = leg(sel.Larg)
	n.right = leg(sel.Rarg)
	if len(n.left.targets) != len(n.right.targets) {
		az.fail(pgerr.SyntaxError, firstTargetLoc(n.right), "each %s query must have the same number of columns", n.op)
	}
	for i, lt := range n.left.targets {
		l, r := lt.e, n.right.targets[i].e
		common := s.commonType([]*expr{l, r}, n.op)
		col := &expr{kind: kColumn, typ: common, mod: -1, ident: "c" + strconv.Itoa(i+1), loc: l.loc, name: lt.name}
		if common != pgtype.Unknown {
			if l.typ != common || l.kind == kConst && l.typ == pgtype.Unknown {
				n.left.coerceTarget(i, func(e *expr) *expr { return s.coerceCommon(e, common, n.op) })
			}
			if r.typ != common {
				n.right.coerceTarget(i, func(e *expr) *expr { return s.coerceCommon(e, common, n.op) })
			}
		}
		l, r = n.left.targets[i].e, n.right.targets[i].e
		if l.mod == r.mod {
			col.mod = l.mod
		}
		col.scale = max(l.scale, r.scale)
		col.prec = min(38, max(l.prec-l.scale, r.prec-r.scale)+col.scale)
		col.loose = l.loose || r.loose || l.scale != r.scale
		n.targets = append(n.targets, &target{e: col, name: lt.name})
	}
	s.sortClause(n, sel.SortClause)
}

func firstTargetLoc(n *selNode) int32 {
	if len(n.targets) > 0 {
		return n.targets[0].e.loc
	}
	return -1
}

func (az *analyzer) limitClause(n *selNode, sel *pg_query.SelectStmt, s *scope) {
	get := func(node *pg_query.Node, what string) *expr {
		if node == nil {
			return nil
		}
		if c := node.GetAConst(); c != nil && c.Isnull {
			return nil
		}
		ls := &scope{az: az, parent: s.parent, ctes: s.ctes, clause: what, noColumns: what}
		e := ls.coerceTo(ls.expr(node), pgtype.Int8, -1, assignmentCoercion, what)
		if e.typ != pgtype.Int8 {
			az.fail(pgerr.DatatypeMismatch, e.loc, "argument of %s must be type bigint, not type %s", what, typeName(e.typ))
		}
		if e.kind == kConst && strings.HasPrefix(e.lit, "-") {
			code := pgerr.Code("2201W")
			if what == "OFFSET" {
				code = "2201X"
			}
			panic(pgerr.Newf(code, "%s must not be negative", what))
		}
		return e
	}
	n.offset = get(sel.LimitOffset, "OFFSET")
	n.limit = get(sel.LimitCount, "LIMIT")
	if sel.LimitOption == pg_query.LimitOption_LIMIT_OPTION_WITH_TIES && n.limit != nil {
		if len(n.order) == 0 {
			az.fail(pgerr.SyntaxError, -1, "WITH TIES cannot be specified without ORDER BY clause")
		}
		n.ties = true
	}
}
