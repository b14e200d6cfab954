package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// fromItem is an analysed FROM item: its names and its text, which is written at the end.
type fromItem struct {
	ns    []*nsItem
	write func(b *strings.Builder)
	// rels are the sources in it, for predicates; nullable ones are on the null-extended side of an outer join inside the item.
	rels []*relEntry
	// locks are what a locking clause can name in it.
	locks []*lockItem
}

// fromClause analyses FROM: items from left to right, each seeing those before it laterally.
func (s *scope) fromClause(nodes []*pg_query.Node) []*fromItem {
	var items []*fromItem
	s.drivers = s.az.driversIn(nodes)
	for _, n := range nodes {
		it := s.fromNode(n)
		s.checkAliases(s.ns, it.ns)
		for _, x := range it.ns {
			x.lateralOnly, x.lateralOK = true, true
		}
		s.ns = append(s.ns, it.ns...)
		items = append(items, it)
	}
	for _, x := range s.ns {
		x.lateralOnly = false
	}
	return items
}

func (s *scope) checkAliases(have, add []*nsItem) {
	for _, a := range have {
		for _, b := range add {
			if a.relVisible && b.relVisible && a.name == b.name && a.name != "" {
				if a.rel != nil && b.rel != nil && a.schema != b.schema && a.rel.use.Alias == a.rel.use.Relation.Name && b.rel.use.Alias == b.rel.use.Relation.Name {
					continue
				}
				panic(pgerr.Newf(pgerr.DuplicateAlias, "table name %q specified more than once", a.name))
			}
		}
	}
}

func (s *scope) fromNode(n *pg_query.Node) *fromItem {
	s.az.deeper()
	defer s.az.shallower()
	if it := s.spooledLeaf(n); it != nil {
		return it
	}
	switch x := n.GetNode().(type) {
	case *pg_query.Node_RangeVar:
		it := s.rangeVar(x.RangeVar)
		it.ns[0].source = n
		return it
	case *pg_query.Node_RangeSubselect:
		return s.rangeSubselect(x.RangeSubselect)
	case *pg_query.Node_RangeFunction:
		return s.rangeFunction(x.RangeFunction)
	case *pg_query.Node_JoinExpr:
		return s.joinExpr(x.JoinExpr)
	case *pg_query.Node_RangeTableSample:
		return s.tableSample(x.RangeTableSample)
	}
	s.az.unsupported(-1, "%s in FROM", nodeName(n))
	return nil
}

// maxDepth bounds the nesting of expressions and subqueries that analysis accepts.
const maxDepth = 3000

func (az *analyzer) deeper() {
	az.depth++
	if az.depth > maxDepth {
		panic(pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded"))
	}
}

func (az *analyzer) shallower() { az.depth-- }

func (s *scope) rangeVar(v *pg_query.RangeVar) *fromItem {
	if v.Catalogname != "" {
		s.az.fail(pgerr.FeatureNotSupported, v.Location, "cross-database references are not implemented: \"%s.%s.%s\"", v.Catalogname, v.Schemaname, v.Relname)
	}
	name, colnames := aliasOf(v.Alias)
	if name == "" {
		name = v.Relname
	}
	if v.Schemaname == "" {
		if c := s.cte(v.Relname); c != nil {
			return s.cteItem(c, name, colnames, v)
		}
	}
	rel, err := s.az.r.ResolveRelation(v.Schemaname, v.Relname)
	s.az.check(err, v.Location)
	if rel == nil {
		s.az.noRelation(v.Schemaname, v.Relname, v.Location)
	}
	if v.Schemaname == "" && s.az.views == 0 {
		s.az.names = append(s.az.names, resolvedName{begin: v.Location, schema: rel.Schema, name: rel.Name})
	}
	if rel.Kind == View {
		if s.az.views == 0 {
			s.az.viewRels = append(s.az.viewRels, rel)
		}
		return s.viewItem(rel, name, colnames, v.Location)
	}
	return s.relItem(s.az.addRel(rel, name, v.Location), name, colnames, v.Location)
}

func (az *analyzer) noRelation(schema, name string, loc int32) {
	if schema != "" {
		name = schema + "." + name
	}
	az.fail(pgerr.UndefinedTable, loc, "relation %q does not exist", name)
}

func aliasOf(a *pg_query.Alias) (string, []string) {
	if a == nil {
		return "", nil
	}
	return a.Aliasname, stringList(a.Colnames)
}

func stringList(nodes []*pg_query.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.GetString_().GetSval())
	}
	return out
}

// relItem gives a source's names.
func (s *scope) relItem(e *relEntry, name string, colnames []string, loc int32) *fromItem {
	rel := e.use.Relation
	it := &nsItem{name: name, schema: rel.Schema, relVisible: true, colsVisible: true, rel: e}
	for i := range rel.Columns {
		c := &rel.Columns[i]
		col := &nsCol{name: c.Name, hidden: c.Hidden, e: relColumn(e, i, name), table: rel.OID, attnum: c.AttNum}
		if c.Hidden {
			col.attnum = c.AttNum
		}
		it.cols = append(it.cols, col)
	}
	s.renameColumns(it, colnames, loc)
	return &fromItem{ns: []*nsItem{it}, rels: []*relEntry{e}, locks: []*lockItem{{name: name, rel: e}}, write: func(b *strings.Builder) { b.WriteString(e.from()) }}
}

// relColumn is the expression of a source's column.
func relColumn(r *relEntry, i int, alias string) *expr {
	c := r.column(i)
	e := &expr{kind: kColumn, typ: c.Type, mod: c.Mod, loc: -1, rel: r, col: i, name: alias + "." + c.Name}
	if c.Type == pgtype.Numeric || elemType(c.Type) == pgtype.Numeric {
		e.prec, e.scale = numericShape(c.Mod)
		if c.Mod < 0 {
			e.loose = true
			if c.Scale > 0 {
				e.scale = c.Scale
			}
		}
	}
	return e
}

func (s *scope) renameColumns(it *nsItem, names []string, loc int32) {
	if len(names) == 0 {
		return
	}
	visible := 0
	for _, c := range it.cols {
		if c.hidden {
			continue
		}
		if visible < len(names) {
			c.name = names[visible]
		}
		visible++
	}
	if len(names) > visible {
		s.az.fail(pgerr.InvalidColumnReference, loc, "table %q has %d columns available but %d columns specified", it.name, visible, len(names))
	}
}

func (s *scope) cte(name string) *cteEntry {
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for i := len(lvl.ctes) - 1; i >= 0; i-- {
			if lvl.ctes[i].name == name {
				return lvl.ctes[i]
			}
		}
	}
	return nil
}

func (s *scope) cteItem(c *cteEntry, name string, colnames []string, v *pg_query.RangeVar) *fromItem {
	if c.part != nil {
		c.used++
		return s.spooledItem(c, name, colnames, v)
	}
	if c.rel != nil {
		return s.relItem(c.rel, name, colnames, -1)
	}
	if c.cols == nil {
		s.az.fail(pgerr.FeatureNotSupported, v.Location, "recursive reference to query %q must not appear within its non-recursive term", c.name)
	}
	c.used++
	alias := s.az.alias()
	it := &nsItem{name: name, relVisible: true, colsVisible: true, cols: derivedCols(alias, name, c.cols)}
	s.renameColumns(it, colnames, v.Location)
	return &fromItem{ns: []*nsItem{it}, rels: c.rels, locks: []*lockItem{{name: name, cte: c}}, write: func(b *strings.Builder) { b.WriteString(c.ident + " AS " + alias) }}
}

// derivedCols are the columns of a subquery or CTE as seen through an alias: t5.c1, t5.c2 …
func derivedCols(alias, name string, from []*nsCol) []*nsCol {
	var out []*nsCol
	for i, c := range from {
		e := &expr{kind: kColumn, typ: c.e.typ, mod: c.e.mod, loc: -1, prec: c.e.prec, scale: c.e.scale, loose: c.e.loose,
			ident: alias + ".c" + strconv.Itoa(i+1), name: name + "." + c.name, names: c.e.names, args: nil, fields: c.e.fields, origin: c.e.origin, node: c.e.node, col: c.e.col}
		out = append(out, &nsCol{name: c.name, e: e, table: c.table, attnum: c.attnum})
	}
	return out
}

// outputCols are a select's output columns as the level above sees them.
func outputCols(n *selNode) []*nsCol {
	var out []*nsCol
	simple := n.simple()
	for i, t := range n.outputs() {
		e := &expr{kind: kColumn, typ: t.e.typ, mod: t.e.mod, prec: t.e.prec, scale: t.e.scale, loose: t.e.loose, fields: rowFields(t.e)}
		if !n.working {
			e.node, e.col = n, i
		}
		if simple {
			if o := t.e.originColumn(); o != nil {
				e.origin = o
			}
		}
		out = append(out, &nsCol{name: t.name, e: e, table: t.table, attnum: t.attnum})
	}
	return out
}

func (s *scope) rangeSubselect(r *pg_query.RangeSubselect) *fromItem {
	if r.Alias == nil {
		e := s.az.errorAt(pgerr.SyntaxError, s.az.openParen(r.Subquery), "subquery in FROM must have an alias")
		if sel := r.Subquery.GetSelectStmt(); sel != nil && len(sel.ValuesLists) > 0 {
			e.Message = "VALUES in FROM must have an alias"
			e.Hint = "For example, FROM (VALUES ...) [AS] foo."
		} else {
			e.Hint = "For example, FROM (SELECT ...) [AS] foo."
		}
		panic(e)
	}
	name, colnames := aliasOf(r.Alias)
	sub := s.subScope(r.Lateral)
	n := s.az.selectNode(r.Subquery, sub, selectOptions{})
	return s.selectItem(n, name, colnames, r.Lateral)
}

// openParen is the parenthesis before a subquery, which the tree does not record.
func (az *analyzer) openParen(n *pg_query.Node) int32 {
	first := int32(-1)
	eachNode(n.ProtoReflect(), func(m any) {
		if node, ok := m.(*pg_query.Node); ok {
			if loc := nodeLocation(node); loc > 0 {
				first = leftmost(first, loc)
			}
		}
	})
	if first < 0 || int(first) > len(az.src.text) {
		return -1
	}
	return int32(strings.LastIndexByte(az.src.text[:first], '('))
}

// subScope is the level of a subquery in FROM: it sees the outer levels, and the items to its left only when LATERAL.
func (s *scope) subScope(lateral bool) *scope {
	p := &scope{az: s.az, parent: s.parent, ctes: s.ctes}
	if lateral {
		p.ns, p.where = s.ns, s.where
	}
	// References to p's items are outer references of the subquery that belong to s.
	p.forward = s
	return &scope{az: s.az, parent: p}
}

func (s *scope) selectItem(n *selNode, name string, colnames []string, lateral bool) *fromItem {
	alias := s.az.alias()
	it := &nsItem{name: name, relVisible: true, colsVisible: true, cols: derivedCols(alias, name, outputCols(n))}
	s.renameColumns(it, colnames, -1)
	return &fromItem{ns: []*nsItem{it}, rels: n.originRels(), locks: []*lockItem{{name: name, sub: n, alias: alias}}, write: func(b *strings.Builder) {
		if lateral {
			b.WriteString("LATERAL ")
		}
		b.WriteString("(")
		n.write(b)
		b.WriteString(") AS " + alias)
	}}
}

// viewItem analyses a view's query in place of its name.
func (s *scope) viewItem(rel *Relation, name string, colnames []string, loc int32) *fromItem {
	if s.az.views++; s.az.views > 64 {
		s.az.fail(pgerr.ProgramLimitExceeded, loc, "infinite recursion detected in rules for relation %q", rel.Name)
	}
	defer func() { s.az.views-- }()
	stmts, err := Parse(rel.ViewSQL)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		panic(pgerr.Newf(pgerr.InternalError, "the definition of view %q cannot be read", rel.Name).WithCause(err))
	}
	outer := s.az.src
	s.az.src = stmts[0].src
	depth := s.az.depth
	n := func() *selNode {
		defer func() {
			s.az.src, s.az.depth = outer, depth
			if e, ok := recover().(*pgerr.Error); ok {
				c := *e
				c.Position = s.az.src.position(loc)
				c.Where = "view \"" + rel.Name + "\""
				panic(&c)
			}
		}()
		return s.az.selectNode(stmts[0].Node, &scope{az: s.az}, selectOptions{})
	}()
	it := s.selectItem(n, name, nil, false)
	item := it.ns[0]
	item.schema = rel.Schema
	for i, c := range item.cols {
		c.table, c.attnum = rel.OID, int16(i+1)
		if i < len(rel.Columns) {
			c.name, c.attnum = rel.Columns[i].Name, rel.Columns[i].AttNum
		}
		c.e.name = name + "." + c.name
	}
	s.renameColumns(item, colnames, loc)
	return it
}

func (s *scope) tableSample(t *pg_query.RangeTableSample) *fromItem {
	item := s.fromNode(t.Relation)
	method := strings.ToLower(strings.Join(stringList(t.Method), "."))
	switch method {
	case "bernoulli", "system":
	default:
		s.az.fail(pgerr.UndefinedObject, t.Location, "tablesample method %s does not exist", method)
	}
	if len(t.Args) != 1 {
		s.az.fail(pgerr.InvalidParameterValue, t.Location, "tablesample method %s requires 1 argument, not %d", method, len(t.Args))
	}
	pct := s.samplePercent(t.Args[0])
	if pct < 0 || pct > 100 {
		s.az.fail("2202H", t.Location, "sample percentage must be between 0 and 100")
	}
	repeat := ""
	if t.Repeatable != nil {
		if c := t.Repeatable.GetAConst(); c != nil {
			repeat = " REPEATABLE (" + strconv.Itoa(int(c.GetIval().GetIval())) + ")"
		}
	}
	s.az.volatile = s.az.volatile || repeat == ""
	inner := item.write
	alias := s.az.alias()
	// A sample is taken of the source alone, so that it does not move behind a filter.
	for _, it := range item.ns {
		for _, c := range it.cols {
			e := *c.e
			if e.rel != nil {
				e.rel.markUsed(e.col)
				e.ident = alias + ".c" + strconv.Itoa(e.col+1)
				e.rel = nil
				c.e = &e
			}
		}
	}
	item.write = func(b *strings.Builder) {
		b.WriteString("(SELECT * FROM ")
		inner(b)
		b.WriteString(" TABLESAMPLE " + method + " (" + strconv.FormatFloat(pct, 'f', -1, 64) + " PERCENT)" + repeat + ") AS " + alias)
	}
	item.rels = nil
	return item
}

func (s *scope) samplePercent(n *pg_query.Node) float64 {
	e := s.coerceTo(s.expr(n), pgtype.Float4, -1, implicitCoercion, "TABLESAMPLE")
	if e.kind == kConst && !e.null {
		if f, err := strconv.ParseFloat(e.lit, 64); err == nil {
			return f
		}
	}
	if src := e; len(src.args) == 1 && src.args[0].kind == kConst {
		if f, err := strconv.ParseFloat(src.args[0].lit, 64); err == nil {
			return f
		}
	}
	s.az.unsupported(e.loc, "TABLESAMPLE with a percentage that is not a constant")
	return 0
}
