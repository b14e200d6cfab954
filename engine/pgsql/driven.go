package pgsql

import (
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// A driven call is a call of one of the caller's table functions whose arguments are not known before the query runs: they hold columns of
// another FROM item, or subqueries. The arguments are a part (Query.Parts) that runs first and gives each different list of them once:
//
//	SELECT row_number() OVER () AS n, a.* FROM (SELECT DISTINCT x AS a0, y AS a1 FROM item WHERE …) AS a
//
// The caller runs the function once for each of its rows, and the results, marked with n, are joined back:
//
//	LATERAL (SELECT r.* FROM (SELECT x AS a0, y AS a1) AS x, arguments AS a, results AS r
//	         WHERE r.n = a.n AND a.a0 IS NOT DISTINCT FROM x.a0 AND a.a1 IS NOT DISTINCT FROM x.a1)
//
// The item is read twice. One that need not be the same twice (a function, a subquery) becomes a part, too.

// Names that no client can write.
const (
	callNumber  = "\x00call"
	hiddenNames = "\x00"
)

// drivenCall is f as the FROM item that it means; nil for another call.
func (s *scope) drivenCall(f *pg_query.FuncCall, alias *pg_query.Alias) *fromItem {
	if !s.az.drivable(f) {
		return nil
	}
	name, colnames := aliasOf(alias)
	if name == "" {
		name = lastName(f.Funcname)
	}
	d := &driver{s: s, f: f}
	d.arguments()
	if len(d.columns) == 0 {
		return s.engineItem(d.source(false), name, colnames, name, false)
	}
	d.findItem()
	if alias == nil {
		alias = &pg_query.Alias{Aliasname: name}
	}
	return d.join(alias)
}

// drivable reports a table function of the caller's with arguments that hold columns or subqueries.
func (az *analyzer) drivable(f *pg_query.FuncCall) bool {
	if f == nil || az.r == nil || az.noSubquery != "" {
		return false
	}
	driven := false
	for _, a := range drivingArgs(f) {
		driven = driven || mentionsColumn(a) || mentionsSubquery(a)
	}
	if !driven {
		return false
	}
	names := stringList(f.Funcname)
	schema := ""
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	for _, fn := range az.r.Functions(schema, names[len(names)-1]) {
		if fn.SetOf {
			return true
		}
	}
	return false
}

// drivingArgs are the arguments that a call may be driven by. A lookup over columns is a join (lookupJoin), of which only the point in time drives.
func drivingArgs(f *pg_query.FuncCall) []*pg_query.Node {
	named, many := lookupCallArgs(f)
	if !overColumns(named["key"], many) {
		return f.Args
	}
	if at := named["as_of"]; at != nil {
		return []*pg_query.Node{at}
	}
	return nil
}

func mentionsSubquery(n *pg_query.Node) bool {
	found := false
	eachNode(n.ProtoReflect(), func(m any) {
		if _, ok := m.(*pg_query.SubLink); ok {
			found = true
		}
	})
	return found
}

// driver is a driven call while it is taken apart.
type driver struct {
	s *scope
	f *pg_query.FuncCall
	// args are the arguments that are not known before the query runs, in the call's order.
	args    []*pg_query.Node
	columns []*pg_query.ColumnRef
	item    *nsItem
	level   *scope
	part    *pendingPart
}

func (d *driver) arguments() {
	for _, a := range d.f.Args {
		if n := a.GetNamedArgExpr(); n != nil {
			a = n.Arg
		}
		if mentionsColumn(a) || mentionsSubquery(a) {
			d.args = append(d.args, a)
			outerColumns(a, &d.columns)
		}
	}
}

// outerColumns are the columns of an expression that do not stand in a subquery of it.
func outerColumns(n *pg_query.Node, out *[]*pg_query.ColumnRef) {
	inside := map[*pg_query.ColumnRef]bool{}
	eachNode(n.ProtoReflect(), func(m any) {
		if sub, ok := m.(*pg_query.SubLink); ok {
			walkMessages(sub.GetSubselect().ProtoReflect(), func(c *pg_query.ColumnRef) { inside[c] = true })
		}
	})
	walkMessages(n.ProtoReflect(), func(c *pg_query.ColumnRef) {
		if !inside[c] {
			*out = append(*out, c)
		}
	})
}

// findItem finds the one FROM item that the arguments' columns are of.
func (d *driver) findItem() {
	for _, c := range d.columns {
		it, level := d.s.ownerOf(c)
		if it == nil {
			d.s.expr(&pg_query.Node{Node: &pg_query.Node_ColumnRef{ColumnRef: c}}) // says what is wrong with it
			d.refuse(c.Location, "it is of no item in FROM")
		}
		if d.item != nil && d.item != it {
			d.refuse(c.Location, "the columns are of several items in FROM")
		}
		d.item, d.level = it, level
	}
	if d.item.source == nil {
		d.refuse(d.columns[0].Location, "\""+d.item.name+"\" depends on other items in FROM, or is on the side of an outer join that may be missing")
	}
}

func (d *driver) refuse(loc int32, why string) {
	e := d.s.az.errorAt(pgerr.FeatureNotSupported, loc, "function %s over these columns is not supported", lastName(d.f.Funcname))
	e.Detail = "Its arguments must come from one item in FROM: " + why + "."
	e.Hint = "Collect the arguments in a query of WITH, and select from it."
	panic(e)
}

// ownerOf is the FROM item that a column is of, as far as names tell; nil when there is none.
func (s *scope) ownerOf(c *pg_query.ColumnRef) (*nsItem, *scope) {
	names := stringList(c.Fields)
	if len(names) > 1 {
		schema := ""
		if len(names) > 2 {
			schema = names[len(names)-3]
		}
		return s.item(schema, names[len(names)-2], c.Location)
	}
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for _, it := range lvl.ns {
			if it.colsVisible && it.column(names[0]) != nil {
				return it, lvl
			}
		}
	}
	return nil, nil
}

// source is the function as a source whose calls are the rows of a part; numbered ones yield the number of their call, too.
func (d *driver) source(numbered bool) *relEntry {
	d.part = d.s.az.readingPart(d.query(numbered), d.visibleParts())
	d.part.entry.used++
	row := &nsItem{name: hiddenNames, relVisible: true}
	for i, c := range d.part.entry.cols {
		e := *c.e
		e.loc, e.part, e.col = -1, d.part, i
		row.cols = append(row.cols, &nsCol{name: c.name, e: &e})
	}
	call := &pg_query.FuncCall{Funcname: d.f.Funcname, Funcformat: d.f.Funcformat, Location: d.f.Location}
	for _, a := range d.f.Args {
		arg := a
		if n := a.GetNamedArgExpr(); n != nil {
			arg = n.Arg
		}
		for i, x := range d.args {
			if x == arg {
				arg = columnNode(d.f.Location, nameNode(hiddenNames), nameNode(argName(i)))
			}
		}
		if n := a.GetNamedArgExpr(); n != nil {
			arg = &pg_query.Node{Node: &pg_query.Node_NamedArgExpr{NamedArgExpr: &pg_query.NamedArgExpr{Name: n.Name, Arg: arg, Argnumber: n.Argnumber, Location: n.Location}}}
		}
		call.Args = append(call.Args, arg)
	}
	s := &scope{az: d.s.az, ns: []*nsItem{row}, clause: "functions in FROM"}
	e := s.funcCall(call, true).srf.rel
	e.use.Driver = d.part.rel.Handle.(int) + 1
	if numbered {
		rel := *e.use.Relation
		e.use.Numbered = true
		rel.Columns = append(rel.Columns[:len(rel.Columns):len(rel.Columns)], RelColumn{Name: callNumber, Type: pgtype.Int8, Mod: -1, Hidden: true})
		e.use.Relation = &rel
	}
	return e
}

func argName(i int) string { return "a" + strconv.Itoa(i) }

// query gives the arguments of every call.
func (d *driver) query(numbered bool) *pg_query.SelectStmt {
	var targets []*pg_query.Node
	for i, a := range d.args {
		targets = append(targets, targetNode(argName(i), a))
	}
	if !numbered {
		return selectNode(targets, nil, nil).GetSelectStmt()
	}
	inner := selectNode(targets, []*pg_query.Node{d.item.source}, d.conditions())
	inner.GetSelectStmt().DistinctClause = []*pg_query.Node{{}}
	number := callNode([]string{"pg_catalog", "row_number"}, -1)
	number.GetFuncCall().Over = &pg_query.WindowDef{FrameOptions: defaultFrame, Location: -1}
	out := []*pg_query.Node{targetNode("n", number)}
	for i := range d.args {
		out = append(out, targetNode(argName(i), columnNode(-1, nameNode("a"), nameNode(argName(i)))))
	}
	// The arguments come first, as source expects them.
	out = append(out[1:], out[0])
	return selectNode(out, []*pg_query.Node{{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{
		Alias: &pg_query.Alias{Aliasname: "a"}, Subquery: inner}}}}, nil).GetSelectStmt()
}

// defaultFrame is FRAMEOPTION_DEFAULTS.
const defaultFrame = 1058

// conditions are those of WHERE that the item alone decides, so that calls which no row needs are not made.
func (d *driver) conditions() *pg_query.Node {
	where := d.level.where
	if where == nil {
		return nil
	}
	all := []*pg_query.Node{where}
	if b := where.GetBoolExpr(); b != nil && b.Boolop == pg_query.BoolExprType_AND_EXPR {
		all = b.Args
	}
	var keep []*pg_query.Node
	for _, c := range all {
		ok := true
		eachNode(c.ProtoReflect(), func(m any) {
			switch m.(type) {
			case *pg_query.SubLink, *pg_query.FuncCall: // what it gives need not be the same twice
				ok = false
			}
		})
		walkMessages(c.ProtoReflect(), func(ref *pg_query.ColumnRef) {
			names := stringList(ref.Fields)
			switch len(names) {
			case 1:
				ok = ok && d.item.colsVisible && d.item.column(names[0]) != nil
			case 2:
				ok = ok && names[0] == d.item.name && d.item.column(names[1]) != nil
			default:
				ok = false
			}
		})
		if ok {
			keep = append(keep, c)
		}
	}
	switch len(keep) {
	case 0:
		return nil
	case 1:
		return keep[0]
	}
	return andNode(keep)
}

// visibleParts are the CTEs that a part can read: those that are parts themselves.
func (d *driver) visibleParts() []*cteEntry {
	var out []*cteEntry
	seen := map[string]bool{}
	for lvl := d.s; lvl != nil; lvl = lvl.parent {
		for i := len(lvl.ctes) - 1; i >= 0; i-- {
			c := lvl.ctes[i]
			if !seen[c.name] {
				out = append([]*cteEntry{c}, out...)
			}
			seen[c.name] = true
		}
	}
	for _, c := range out {
		if c.part == nil && (d.item != nil && mentionsIn(d.item.source.ProtoReflect(), c.name) || d.argsMention(c.name)) {
			d.refuse(d.f.Location, "WITH query \""+c.name+"\" is not at the top level of the statement")
		}
	}
	if d.item != nil && d.item.part != nil {
		out = append(out, d.item.part)
	}
	return out
}

func (d *driver) argsMention(name string) bool {
	for _, a := range d.args {
		if mentionsIn(a.ProtoReflect(), name) {
			return true
		}
	}
	return false
}

// join is the FROM item that has, for each row to its left, the rows of its call.
func (d *driver) join(alias *pg_query.Alias) *fromItem {
	results := d.source(true)
	rel := results.use.Relation
	loc := d.f.Location
	s := d.s
	calls := &cteEntry{name: hiddenNames + "a", part: d.part, cols: d.part.entry.cols}
	found := &cteEntry{name: hiddenNames + "r", rel: results}
	outer := s.ctes
	s.ctes = append(outer[:len(outer):len(outer)], calls, found)
	defer func() { s.ctes = outer }()

	var own, stars []*pg_query.Node
	where := []*pg_query.Node{compareNode(pg_query.A_Expr_Kind_AEXPR_OP, columnNode(loc, nameNode("r"), nameNode(callNumber)), columnNode(loc, nameNode("a"), nameNode("n")), loc)}
	for i, a := range d.args {
		own = append(own, targetNode(argName(i), a))
		where = append(where, compareNode(pg_query.A_Expr_Kind_AEXPR_NOT_DISTINCT, columnNode(loc, nameNode("a"), nameNode(argName(i))), columnNode(loc, nameNode("x"), nameNode(argName(i))), loc))
	}
	for _, c := range rel.Columns[:len(rel.Columns)-1] {
		stars = append(stars, targetNode(c.Name, columnNode(loc, nameNode("r"), nameNode(c.Name))))
	}
	x := &pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Lateral: true, Alias: &pg_query.Alias{Aliasname: "x"}, Subquery: selectNode(own, nil, nil)}}}
	body := selectNode(stars, []*pg_query.Node{x, rangeOf(calls.name, "a"), rangeOf(found.name, "r")},
		andNode(where))
	return s.rangeSubselect(&pg_query.RangeSubselect{Lateral: true, Alias: alias, Subquery: body})
}

// readingPart makes a query that runs before the statement.
func (az *analyzer) readingPart(sel *pg_query.SelectStmt, ctes []*cteEntry) *pendingPart {
	p := &pendingPart{entry: &cteEntry{}, rel: &Relation{Kind: Spooled}}
	rels, binds := az.rels, az.binds
	az.rels, az.binds = nil, nil
	az.selectPart(p, &pg_query.WithClause{}, nil, sel, ctes, nil)
	az.rels, az.binds = rels, binds
	az.addPart(p)
	return p
}

// addPart settles a part's place among those of the statement.
func (az *analyzer) addPart(p *pendingPart) {
	for _, col := range p.entry.cols {
		p.rel.Columns = append(p.rel.Columns, RelColumn{Name: col.name, Type: col.e.typ, Mod: col.e.mod})
	}
	p.entry.part, p.rel.Handle = p, len(az.parts)
	az.parts = append(az.parts, p)
}

// drivers finds which items of FROM later items may take arguments from: by name, or any, when a column is not qualified.
type drivers struct {
	names map[string]bool
	any   bool
}

func (az *analyzer) driversIn(nodes []*pg_query.Node) *drivers {
	var d *drivers
	visit := func(f *pg_query.FuncCall) {
		if !az.drivable(f) {
			return
		}
		var refs []*pg_query.ColumnRef
		for _, a := range drivingArgs(f) {
			outerColumns(a, &refs)
		}
		if d == nil {
			d = &drivers{names: map[string]bool{}}
		}
		for _, c := range refs {
			if names := stringList(c.Fields); len(names) > 1 {
				d.names[names[len(names)-2]] = true
			} else {
				d.any = true
			}
		}
	}
	var look func(n *pg_query.Node)
	look = func(n *pg_query.Node) {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_RangeFunction:
			for _, f := range x.RangeFunction.Functions {
				if items := f.GetList().GetItems(); len(items) > 0 {
					visit(items[0].GetFuncCall())
				}
			}
		case *pg_query.Node_JoinExpr:
			look(x.JoinExpr.Larg)
			look(x.JoinExpr.Rarg)
		case *pg_query.Node_RangeSubselect:
			if x.RangeSubselect.Lateral {
				eachNode(n.ProtoReflect(), func(m any) {
					if f, ok := m.(*pg_query.FuncCall); ok {
						visit(f)
					}
				})
			}
		}
	}
	for _, n := range nodes {
		look(n)
	}
	return d
}

// spooledLeaf is a function or subquery of FROM that a driven call takes its arguments from: its rows are kept. nil for another item.
func (s *scope) spooledLeaf(n *pg_query.Node) *fromItem {
	if s.drivers == nil {
		return nil
	}
	var alias *pg_query.Alias
	name := ""
	switch x := n.GetNode().(type) {
	case *pg_query.Node_RangeFunction:
		if items := x.RangeFunction.Functions[0].GetList().GetItems(); len(items) > 0 {
			name = lastName(items[0].GetFuncCall().GetFuncname())
		}
		for _, f := range x.RangeFunction.Functions {
			if mentionsColumn(f) {
				return nil
			}
		}
		alias = x.RangeFunction.Alias
	case *pg_query.Node_RangeSubselect:
		if x.RangeSubselect.Lateral {
			return nil
		}
		alias = x.RangeSubselect.Alias
	default:
		return nil
	}
	if alias != nil {
		name = alias.Aliasname
	}
	if name == "" || !s.drivers.any && !s.drivers.names[name] {
		return nil
	}
	star := columnNode(-1, &pg_query.Node{Node: &pg_query.Node_AStar{AStar: &pg_query.A_Star{}}})
	d := &driver{s: s, f: &pg_query.FuncCall{Location: -1}}
	p := s.az.readingPart(selectNode([]*pg_query.Node{targetNode("", star)}, []*pg_query.Node{n}, nil).GetSelectStmt(), d.visibleParts())
	p.entry.name = hiddenNames + strconv.Itoa(p.rel.Handle.(int))
	p.entry.used++
	item := s.spooledItem(p.entry, name, nil, &pg_query.RangeVar{Location: -1})
	item.ns[0].part = p.entry
	item.ns[0].source = rangeOf(p.entry.name, name)
	return item
}
