package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// part is one DuckDB query of a statement that needs several: its own sources and binds, the statement's parameters.
type part struct {
	rels  []*relEntry
	binds []Bind
	node  *selNode
}

// inPart analyses with fresh sources and binds.
func (az *analyzer) inPart(f func() *selNode) *part {
	rels, binds := az.rels, az.binds
	az.rels, az.binds = nil, nil
	n := f()
	p := &part{rels: az.rels, binds: az.binds, node: n}
	az.rels, az.binds = rels, binds
	return p
}

func (az *analyzer) finishPart(p *part, show bool) *Query {
	rels, binds := az.rels, az.binds
	az.rels, az.binds = p.rels, p.binds
	q := &Query{}
	var b strings.Builder
	p.node.show = show
	p.node.write(&b)
	az.finish(q, b.String())
	az.rels, az.binds = rels, binds
	return q
}

func columnsOf(targets []*target) []OutCol {
	var out []OutCol
	for _, t := range targets {
		out = append(out, outCol(t))
	}
	return out
}

// dmlTarget resolves the table of INSERT, UPDATE, DELETE.
func (az *analyzer) dmlTarget(v *pg_query.RangeVar, verb string) *Relation {
	rel, err := az.r.ResolveRelation(v.Schemaname, v.Relname)
	az.check(err, v.Location)
	if rel == nil {
		az.noRelation(v.Schemaname, v.Relname, v.Location)
	}
	if rel.Kind == View {
		e := az.errorAt(pgerr.FeatureNotSupported, -1, "cannot %s view %q", verb, rel.Name)
		e.Detail = "Views of skade-pg are not updatable."
		panic(e)
	}
	if rel.ReadOnly || rel.Kind != Table {
		az.fail(pgerr.InsufficientPrivilege, -1, "permission denied for table %s", rel.Name)
	}
	return rel
}

// stored are the columns that writes set: all but hidden and generated ones.
func stored(rel *Relation) []int {
	var out []int
	for i, c := range rel.Columns {
		if !c.Hidden && !c.Generated {
			out = append(out, i)
		}
	}
	return out
}

func (az *analyzer) insert(st *pg_query.InsertStmt) *Query {
	s := &scope{az: az}
	holder := &selNode{scope: s}
	if st.WithClause != nil {
		az.withClause(holder, st.WithClause, s)
	}
	rel := az.dmlTarget(st.Relation, "insert into")
	if st.Override == pg_query.OverridingKind_OVERRIDING_SYSTEM_VALUE || st.Override == pg_query.OverridingKind_OVERRIDING_USER_VALUE {
		az.unsupported(st.Relation.Location, "OVERRIDING")
	}
	ins := &Insert{Target: rel, Columns: stored(rel), Values: -1}
	var locs []int32
	ins.Given, locs = az.insertColumns(rel, st)
	ins.locs = locs
	n := az.insertSource(ins, st, s, locs)
	n.with, n.recursive = append(holder.with, n.with...), holder.recursive || n.recursive
	main := &part{rels: az.rels, binds: az.binds, node: n}
	var upd, ret *part
	if st.OnConflictClause != nil {
		ins.OnConflict, upd = az.onConflict(st, rel, ins)
	}
	if len(st.ReturningList) > 0 {
		ret = az.insertReturning(st, rel)
	}
	q := az.finishPart(main, true)
	q.Insert = ins
	if upd != nil {
		ins.OnConflict.Update = az.finishPart(upd, true)
	}
	if ret != nil {
		ins.Returning = az.finishPart(ret, true)
		ins.Returning.Columns = columnsOf(ret.node.targets)
		q.Columns = ins.Returning.Columns
	}
	az.insertRows(ins, n)
	return q
}

// insertColumns are the columns that INSERT names, or all.
func (az *analyzer) insertColumns(rel *Relation, st *pg_query.InsertStmt) (cols []int, locs []int32) {
	if len(st.Cols) == 0 {
		for i, c := range rel.Columns {
			if !c.Hidden {
				cols, locs = append(cols, i), append(locs, -1)
			}
		}
		return cols, locs
	}
	seen := map[int]bool{}
	for _, n := range st.Cols {
		rt := n.GetResTarget()
		i := az.columnIndex(rel, rt.Name, rt.Location)
		if len(rt.Indirection) > 0 {
			az.unsupported(rt.Location, "assigning to an element or field")
		}
		if seen[i] {
			az.fail(pgerr.DuplicateColumn, rt.Location, "column %q specified more than once", rt.Name)
		}
		seen[i] = true
		cols, locs = append(cols, i), append(locs, rt.Location)
	}
	return cols, locs
}

func (az *analyzer) columnIndex(rel *Relation, name string, loc int32) int {
	for i, c := range rel.Columns {
		if c.Name == name && !c.Hidden {
			return i
		}
	}
	for _, c := range rel.Columns {
		if c.Name == name {
			az.fail(pgerr.FeatureNotSupported, loc, "cannot assign to system column %q", name)
		}
	}
	az.fail(pgerr.UndefinedColumn, loc, "column %q of relation %q does not exist", name, rel.Name)
	return 0
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
			if rel.Columns[col].Generated {
				az.generatedColumn(rel, col)
			}
			given[col] = s.assign(e, rel, col)
		}
		rows = append(rows, az.defaultRow(s, ins, given))
	}
	s.clause = ""
	if s.wins > 0 || s.aggs > 0 {
		az.fail(pgerr.GroupingError, -1, "aggregate functions are not allowed in VALUES")
	}
	return rows
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

func (az *analyzer) generatedColumn(rel *Relation, col int) {
	e := pgerr.Newf("428C9", "cannot insert a non-DEFAULT value into column %q", rel.Columns[col].Name)
	e.Detail = "Column \"" + rel.Columns[col].Name + "\" is a generated column."
	panic(e)
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

// defaultExpr is a column's DEFAULT, or NULL.
func (az *analyzer) defaultExpr(s *scope, rel *Relation, col int) *expr {
	c := rel.Columns[col]
	if c.Default == "" {
		n := nullConst(c.Type, -1)
		n.mod = c.Mod
		shapeNumeric(n, c.Mod)
		return s.assign(n, rel, col)
	}
	e := az.foreignExpr(c.Default)
	return s.assign(e, rel, col)
}

// foreignExpr analyses an expression that is not part of the statement: a column's default.
func (az *analyzer) foreignExpr(text string) *expr {
	stmts, err := Parse("SELECT " + text)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		panic(pgerr.Newf(pgerr.InternalError, "the default expression %q cannot be read", text))
	}
	src, noParams := az.src, az.noParams
	az.src, az.noParams = stmts[0].src, true
	defer func() { az.src, az.noParams = src, noParams }()
	sel := stmts[0].Node.GetSelectStmt()
	sub := &scope{az: az, clause: "DEFAULT"}
	e := sub.expr(sel.TargetList[0].GetResTarget().Val)
	e.loc = -1
	return e
}

// assign is transformAssignedExpr: e as a value of a column, ready to store.
func (s *scope) assign(e *expr, rel *Relation, col int) *expr {
	c := rel.Columns[col]
	loc := e.loc
	out, ok := s.coerce(e, c.Type, c.Mod, assignmentCoercion)
	if !ok {
		er := s.az.errorAt(pgerr.DatatypeMismatch, loc, "column %q is of type %s but expression is of type %s", c.Name, typeName(c.Type), typeName(e.typ))
		er.Hint = "You will need to rewrite or cast the expression."
		panic(er)
	}
	out = s.storeNumeric(out, c, loc)
	if c.Type == pgtype.BPChar && c.Mod >= 4 && !(out.kind == kConst && out.null) {
		padded := call(c.Type, "rpad($1, "+strconv.Itoa(int(c.Mod-4))+", ' ')", out)
		padded.base, out = out.base, padded
	}
	if out.kind != kConst && out.kind != kParam && out.base == nil && e.kind == kParam {
		out.base = newParam(e.param, s.az.params[e.param-1].oid, e.loc)
	}
	if out.mod != c.Mod {
		cp := *out
		cp.mod = c.Mod
		out = &cp
	}
	return out
}

// storeNumericArray does for the elements what storeNumeric does for a number.
func storeNumericArray(e *expr, c RelColumn) *expr {
	p, sc := numericShape(c.Mod)
	as := "DECIMAL(" + strconv.Itoa(p) + "," + strconv.Itoa(sc) + ")"
	tmpl := "CAST($1 AS " + as + "[])"
	if c.Mod < 0 && e.scale > sc {
		tmpl = "list_transform($1, lambda v: skade_fn.store_numeric(v, CAST(v AS " + as + "), " + quote(c.Name) + "))"
	}
	out := call(c.Type, tmpl, e)
	out.prec, out.scale, out.dims, out.base = p, sc, e.dims, e.base
	return out
}

// storeNumeric gives a numeric the DECIMAL of its column. A column without typmod refuses what does not fit instead of rounding it.
func (s *scope) storeNumeric(e *expr, c RelColumn, loc int32) *expr {
	if elemType(c.Type) == pgtype.Numeric {
		return storeNumericArray(e, c)
	}
	if c.Type != pgtype.Numeric {
		return e
	}
	p, sc := numericShape(c.Mod)
	if c.Mod < 0 && c.Scale > 0 {
		sc = c.Scale
	}
	if c.Mod >= 0 || e.kind == kConst && e.null || e.scale <= sc {
		out := decimalCast(e, p, sc)
		out.base = e.base
		return out
	}
	if e.kind == kConst {
		if strings.Trim(e.lit[strings.IndexByte(e.lit, '.')+1+sc:], "0") != "" {
			er := s.az.errorAt(pgerr.NumericValueOutOfRange, loc, "value has more than %d digits after the decimal point", sc)
			er.Detail = "Column \"" + c.Name + "\" is numeric without precision, which holds " + strconv.Itoa(sc) + " digits after the point."
			panic(er)
		}
		return decimalCast(e, p, sc)
	}
	x := e
	if e.show != nil {
		x = call(pgtype.Text, "$1", e.show)
		out := call(pgtype.Numeric, "skade_fn.store_numeric_text($1, "+quote(c.Name)+")", x)
		out.prec, out.scale = p, sc
		return decimalCast(out, p, sc)
	}
	out := call(pgtype.Numeric, "skade_fn.store_numeric($1, CAST($1 AS DECIMAL(38,"+strconv.Itoa(sc)+")), "+quote(c.Name)+")", x)
	out.prec, out.scale, out.base = p, sc, e.base
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
	wrap := len(n.targets) != len(ins.Columns) || n.distinct || n.op != "" || n.values != nil || len(n.distinctOn) > 0
	for i := range n.targets {
		wrap = wrap || ins.Given[i] != ins.Columns[min(i, len(ins.Columns)-1)]
		if n.targets[i].e.typ == pgtype.Unknown {
			col := ins.Given[i]
			n.coerceTarget(i, func(e *expr) *expr { return s.assign(e, rel, col) })
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
		if rel.Columns[ins.Given[i]].Generated {
			az.generatedColumn(rel, ins.Given[i])
		}
		e := s.reference(s, c, n.targets[i].e.loc)
		given[ins.Given[i]] = s.assign(e, rel, ins.Given[i])
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

// onConflict is transformOnConflictClause.
func (az *analyzer) onConflict(st *pg_query.InsertStmt, rel *Relation, ins *Insert) (*OnConflict, *part) {
	c := st.OnConflictClause
	oc := &OnConflict{DoUpdate: c.Action == pg_query.OnConflictAction_ONCONFLICT_UPDATE}
	if c.Infer == nil {
		if oc.DoUpdate {
			e := az.errorAt(pgerr.SyntaxError, c.Location, "ON CONFLICT DO UPDATE requires inference specification or constraint name")
			e.Hint = "For example, ON CONFLICT (column_name)."
			panic(e)
		}
		return oc, nil
	}
	az.arbiter(c.Infer, rel)
	if !oc.DoUpdate {
		return oc, nil
	}
	p := az.inPart(func() *selNode { return az.conflictUpdate(c, st, rel, ins, oc) })
	return oc, p
}

// arbiter checks that ON CONFLICT names the key.
func (az *analyzer) arbiter(in *pg_query.InferClause, rel *Relation) {
	if in.Conname != "" {
		if in.Conname != rel.Constraint || rel.Constraint == "" {
			az.fail(pgerr.UndefinedObject, -1, "constraint %q for table %q does not exist", in.Conname, rel.Name)
		}
		return
	}
	cols := map[int]bool{}
	for _, n := range in.IndexElems {
		el := n.GetIndexElem()
		if el == nil || el.Expr != nil || len(el.Opclass) > 0 {
			az.noArbiter()
		}
		cols[az.columnIndexPlain(rel, el.Name, in.Location)] = true
	}
	if in.WhereClause != nil || len(cols) != len(rel.Key) || len(rel.Key) == 0 {
		az.noArbiter()
	}
	for _, k := range rel.Key {
		if !cols[k] {
			az.noArbiter()
		}
	}
}

func (az *analyzer) columnIndexPlain(rel *Relation, name string, loc int32) int {
	for i, c := range rel.Columns {
		if c.Name == name {
			return i
		}
	}
	az.fail(pgerr.UndefinedColumn, loc, "column %q does not exist", name)
	return 0
}

func (az *analyzer) noArbiter() {
	panic(pgerr.New(pgerr.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification"))
}

// conflictUpdate writes DO UPDATE over pairs of the existing and the proposed row.
func (az *analyzer) conflictUpdate(c *pg_query.OnConflictClause, st *pg_query.InsertStmt, rel *Relation, ins *Insert, oc *OnConflict) *selNode {
	pair := &Relation{Kind: Rows, Schema: rel.Schema, Name: rel.Name, Columns: append(append([]RelColumn(nil), rel.Columns...), rel.Columns...)}
	e := az.addRel(pair, rel.Name, st.Relation.Location)
	name, _ := aliasOf(st.Relation.Alias)
	if name == "" {
		name = rel.Name
	}
	s := &scope{az: az}
	n := &selNode{scope: s}
	old := &nsItem{name: name, schema: rel.Schema, relVisible: true, colsVisible: true, rel: e}
	excluded := &nsItem{name: "excluded", relVisible: true, colsVisible: true}
	for i := range rel.Columns {
		old.cols = append(old.cols, &nsCol{name: rel.Columns[i].Name, hidden: rel.Columns[i].Hidden, e: relColumn(e, i, name)})
		if !rel.Columns[i].Hidden {
			excluded.cols = append(excluded.cols, &nsCol{name: rel.Columns[i].Name, e: relColumn(e, len(rel.Columns)+i, "excluded")})
		}
	}
	s.ns = []*nsItem{old, excluded}
	n.from = []*fromItem{{ns: s.ns, write: func(b *strings.Builder) { b.WriteString(e.from()) }}}
	set := az.setClause(s, rel, c.TargetList)
	for i := range rel.Columns {
		if set[i] != nil {
			oc.Set = append(oc.Set, i)
		}
	}
	for _, i := range ins.Columns {
		v := set[i]
		if v == nil {
			v = s.reference(s, old.cols[i], -1)
		}
		n.targets = append(n.targets, &target{name: rel.Columns[i].Name, e: v})
	}
	keep := constant(pgtype.Bool, "true", -1)
	if c.WhereClause != nil {
		s.clause = "WHERE"
		keep = call(pgtype.Bool, "coalesce($1, false)", s.boolean(c.WhereClause, "WHERE"))
	}
	n.targets = append(n.targets, &target{name: "keep", e: keep})
	return n
}

// setClause analyses SET: column index → value.
func (az *analyzer) setClause(s *scope, rel *Relation, list []*pg_query.Node) map[int]*expr {
	out := map[int]*expr{}
	s.clause = "UPDATE"
	defer func() { s.clause = "" }()
	for _, n := range list {
		rt := n.GetResTarget()
		i := az.columnIndex(rel, rt.Name, rt.Location)
		if len(rt.Indirection) > 0 {
			az.unsupported(rt.Location, "assigning to an element or field")
		}
		if out[i] != nil {
			panic(pgerr.Newf(pgerr.SyntaxError, "multiple assignments to same column %q", rt.Name))
		}
		if d := rt.Val.GetSetToDefault(); d != nil {
			out[i] = az.defaultExpr(s, rel, i)
			continue
		}
		if rel.Columns[i].Generated {
			az.fail("428C9", -1, "column %q can only be updated to DEFAULT", rt.Name)
		}
		if m := rt.Val.GetMultiAssignRef(); m != nil {
			out[i] = az.multiAssign(s, rel, i, m)
			continue
		}
		out[i] = s.assign(s.expr(rt.Val), rel, i)
	}
	return out
}

// multiAssign is one column of SET (a, b) = (…).
func (az *analyzer) multiAssign(s *scope, rel *Relation, col int, m *pg_query.MultiAssignRef) *expr {
	if row := m.Source.GetRowExpr(); row != nil {
		if len(row.Args) != int(m.Ncolumns) {
			az.fail(pgerr.SyntaxError, row.Location, "number of columns does not match number of values")
		}
		item := row.Args[m.Colno-1]
		if item.GetSetToDefault() != nil {
			return az.defaultExpr(s, rel, col)
		}
		return s.assign(s.expr(item), rel, col)
	}
	sub := m.Source.GetSubLink()
	if sub == nil {
		az.fail(pgerr.FeatureNotSupported, nodeLocation(m.Source), "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
	}
	n := az.selectNode(sub.Subselect, &scope{az: az, parent: s}, selectOptions{})
	if len(n.targets) != int(m.Ncolumns) {
		az.fail(pgerr.SyntaxError, sub.Location, "number of columns does not match number of values")
	}
	t := n.targets[m.Colno-1].e
	q := &expr{kind: kSub, typ: pgtype.Record, mod: -1, loc: sub.Location, sub: n, text: []string{"", ""}}
	e := call(t.typ, "(SELECT z.c"+strconv.Itoa(int(m.Colno))+" FROM $1 AS z)", q)
	e.prec, e.scale, e.loose, e.mod = t.prec, t.scale, t.loose, t.mod
	return s.assign(e, rel, col)
}

func (az *analyzer) insertReturning(st *pg_query.InsertStmt, rel *Relation) *part {
	return az.inPart(func() *selNode {
		rows := *rel
		rows.Kind = Rows
		name, _ := aliasOf(st.Relation.Alias)
		if name == "" {
			name = rel.Name
		}
		s := &scope{az: az}
		e := az.addRel(&rows, name, st.Relation.Location)
		item := s.relItem(e, name, nil, -1)
		s.ns = item.ns
		n := &selNode{scope: s, from: []*fromItem{item}}
		n.targets = az.returning(s, st.ReturningList)
		return n
	})
}

// returning analyses RETURNING.
func (az *analyzer) returning(s *scope, list []*pg_query.Node) []*target {
	s.clause = "RETURNING"
	out := s.targetList(list)
	s.clause = ""
	for _, t := range out {
		if t.e.typ == pgtype.Unknown {
			t.e = s.coerceTo(t.e, pgtype.Text, -1, implicitCoercion, "RETURNING")
		}
	}
	return out
}

// dmlScope opens the target of UPDATE and DELETE, and FROM or USING beside it.
func (az *analyzer) dmlScope(v *pg_query.RangeVar, rel *Relation, with *pg_query.WithClause, from []*pg_query.Node) (*scope, *selNode, *relEntry) {
	s := &scope{az: az}
	n := &selNode{scope: s}
	if with != nil {
		az.withClause(n, with, s)
	}
	name, _ := aliasOf(v.Alias)
	if name == "" {
		name = rel.Name
	}
	e := az.addRel(rel, name, v.Location)
	e.use.Position = true
	item := s.relItem(e, name, nil, v.Location)
	s.ns = append(s.ns, item.ns...)
	items := s.fromClause(from)
	n.from = append([]*fromItem{item}, items...)
	return s, n, e
}

func filePos(e *relEntry) []*target {
	return []*target{
		{name: "file", e: &expr{kind: kColumn, typ: pgtype.Text, mod: -1, ident: e.alias + ".f"}},
		{name: "pos", e: &expr{kind: kColumn, typ: pgtype.Int8, mod: -1, ident: e.alias + ".p"}},
	}
}

func (az *analyzer) dmlWhere(s *scope, n *selNode, where *pg_query.Node) {
	if where == nil {
		return
	}
	s.clause = "WHERE"
	n.where = s.boolean(where, "WHERE")
	s.clause = ""
	var rels []*relEntry
	for _, f := range n.from {
		rels = append(rels, f.rels...)
	}
	az.pushPredicates(n.where, rels, s)
}

func (az *analyzer) update(st *pg_query.UpdateStmt) *Query {
	rel := az.dmlTarget(st.Relation, "update")
	s, n, e := az.dmlScope(st.Relation, rel, st.WithClause, st.FromClause)
	set := az.setClause(s, rel, st.TargetList)
	if s.aggs > 0 || s.wins > 0 {
		az.fail(pgerr.GroupingError, -1, "aggregate functions are not allowed in UPDATE")
	}
	az.dmlWhere(s, n, st.WhereClause)
	upd := &Update{Target: rel, Rel: e.index, Columns: stored(rel)}
	n.targets = filePos(e)
	item := s.ns[0]
	for _, i := range upd.Columns {
		v := set[i]
		if v == nil {
			v = az.oldValue(s, item, i, rel)
		} else {
			upd.Set = append(upd.Set, i)
		}
		n.targets = append(n.targets, &target{name: rel.Columns[i].Name, e: v})
	}
	if len(st.FromClause) > 0 {
		n.distinctOn = []*expr{n.targets[0].e, n.targets[1].e}
	}
	out := n
	var ret []*target
	if len(st.ReturningList) > 0 {
		out, ret = az.updateReturning(st, rel, upd, s, n)
	}
	q := az.finishPart(&part{rels: az.rels, binds: az.binds, node: out}, true)
	q.Update = upd
	q.Columns = columnsOf(ret)
	return q
}

// oldValue passes a stored column on unchanged.
func (az *analyzer) oldValue(s *scope, item *nsItem, i int, rel *Relation) *expr {
	e := s.reference(s, item.cols[i], -1)
	e.loose = false
	if e.typ == pgtype.BPChar && rel.Columns[i].Mod >= 4 {
		return call(e.typ, "rpad($1, "+strconv.Itoa(int(rel.Columns[i].Mod-4))+", ' ')", e)
	}
	return e
}

// updateReturning wraps the new rows, so that RETURNING sees new values of the target and the columns of FROM.
func (az *analyzer) updateReturning(st *pg_query.UpdateStmt, rel *Relation, upd *Update, s *scope, n *selNode) (*selNode, []*target) {
	rs := &scope{az: az}
	alias := az.alias()
	column := func(i int, like *expr, name string) *expr {
		return &expr{kind: kColumn, typ: like.typ, mod: like.mod, prec: like.prec, scale: like.scale, loose: like.loose, fields: like.fields,
			ident: alias + ".c" + strconv.Itoa(i+1), name: name, loc: -1}
	}
	for k, it := range s.ns {
		cp := &nsItem{name: it.name, schema: it.schema, relVisible: it.relVisible, colsVisible: it.colsVisible, rel: it.rel}
		for i, c := range it.cols {
			if k == 0 {
				at := -1
				for j, col := range upd.Columns {
					if col == i {
						at = j
					}
				}
				if at < 0 {
					continue
				}
				e := column(2+at, c.e, c.e.name)
				cp.cols = append(cp.cols, &nsCol{name: c.name, e: e, table: c.table, attnum: c.attnum})
				continue
			}
			n.targets = append(n.targets, &target{name: c.name, e: s.reference(s, c, -1)})
			cp.cols = append(cp.cols, &nsCol{name: c.name, hidden: c.hidden, e: column(len(n.targets)-1, c.e, c.e.name), table: c.table, attnum: c.attnum})
		}
		rs.ns = append(rs.ns, cp)
	}
	ret := az.returning(rs, st.ReturningList)
	item := &fromItem{write: func(b *strings.Builder) {
		b.WriteString("(")
		n.write(b)
		b.WriteString(") AS " + alias)
	}}
	out := &selNode{scope: rs, from: []*fromItem{item}, with: n.with, recursive: n.recursive}
	n.with = nil
	for i := 0; i < 2+len(upd.Columns); i++ {
		e := column(i, n.targets[i].e, "")
		e.loose = false
		if e.typ == pgtype.BPChar {
			e.typ = pgtype.Text
		}
		out.targets = append(out.targets, &target{name: n.targets[i].name, e: e})
	}
	out.targets = append(out.targets, ret...)
	return out, ret
}

func (az *analyzer) delete(st *pg_query.DeleteStmt) *Query {
	rel := az.dmlTarget(st.Relation, "delete from")
	s, n, e := az.dmlScope(st.Relation, rel, st.WithClause, st.UsingClause)
	az.dmlWhere(s, n, st.WhereClause)
	n.targets = filePos(e)
	if len(st.UsingClause) > 0 {
		n.distinctOn = []*expr{n.targets[0].e, n.targets[1].e}
	}
	var ret []*target
	if len(st.ReturningList) > 0 {
		ret = az.returning(s, st.ReturningList)
		n.targets = append(n.targets, ret...)
	}
	del := &Delete{Target: rel, Rel: e.index, All: st.WhereClause == nil && len(st.UsingClause) == 0}
	if len(st.UsingClause) == 0 {
		del.Key = az.keyValues(n.where, e)
	}
	q := az.finishPart(&part{rels: az.rels, binds: az.binds, node: n}, true)
	q.Delete = del
	q.Columns = columnsOf(ret)
	return q
}
