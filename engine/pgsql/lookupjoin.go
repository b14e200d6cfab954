package pgsql

import (
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// lookupOver is a call of lookup or lookup_many whose keys come from other items of FROM or from an outer query, as the subquery that it means: the
// rows of t whose key is x. It is a join like any other, so that its keys are looked up together, or t is scanned when that is cheaper (KeyJoin).
//
//	SELECT k.* FROM (SELECT x1 AS k1, x2 AS k2) AS x, t AS k WHERE k.a = x.k1 AND k.b = x.k2
//
// x stands in a subquery of its own, where t's columns are out of sight. lookup_many numbers its keys there:
//
//	SELECT k.*, x.n AS _key_ordinal FROM unnest(keys) WITH ORDINALITY AS x(k1, n), t AS k WHERE k.a = x.k1
type lookupOver struct {
	s    *scope
	f    *pg_query.FuncCall
	args map[string]*pg_query.Node
	many bool
	rel  *Relation
	key  []int // columns of the key
}

// lookupArgs are the arguments of lookup in their order; lookup_many's second is keys.
var lookupArgs = []string{"tbl", "key", "as_of", "key_columns", "strict"}

// keyOrdinal is lookup_many's own column.
const keyOrdinal = "_key_ordinal"

// Names that no client can write: the numbers of keys, and the functions that compare a key and that refuse several rows.
const (
	keyNumber  = "\x00n"
	keyEquals  = "\x00key"
	singleRows = "\x00single"
)

// lookupCallArgs are the arguments of a call of lookup or lookup_many by name; nil for another call, and for one that is not well formed.
func lookupCallArgs(f *pg_query.FuncCall) (args map[string]*pg_query.Node, many bool) {
	names := stringList(f.GetFuncname())
	if len(names) == 0 || len(names) > 2 || len(names) == 2 && names[0] != "skade" {
		return nil, false
	}
	switch names[len(names)-1] {
	case "lookup":
	case "lookup_many":
		many = true
	default:
		return nil, false
	}
	args = map[string]*pg_query.Node{}
	for i, a := range f.Args {
		switch n := a.GetNamedArgExpr(); {
		case n != nil && n.Name == "keys" && many:
			args["key"] = n.Arg
		case n != nil:
			args[n.Name] = n.Arg
		case i < len(lookupArgs):
			args[lookupArgs[i]] = a
		}
	}
	if len(f.Args) < 2 || len(f.Args) > len(args) {
		return nil, many
	}
	return args, many
}

// overColumns says that a key holds columns. Of a subquery that gives lookup_many's keys the order is kept: its rows are the keys of one call.
func overColumns(key *pg_query.Node, many bool) bool {
	if key == nil || !many {
		return key != nil && mentionsColumn(key)
	}
	var cols []*pg_query.ColumnRef
	outerColumns(key, &cols)
	return len(cols) > 0
}

// lookupJoin is a lookup whose key holds columns as a subquery; nil for another call.
func (s *scope) lookupJoin(f *pg_query.FuncCall, alias *pg_query.Alias) *pg_query.RangeSubselect {
	l := &lookupOver{s: s, f: f}
	l.args, l.many = lookupCallArgs(f)
	tbl, key := nameConst(l.args["tbl"]).GetSval(), l.args["key"]
	if tbl == nil || !overColumns(key, l.many) {
		return nil
	}
	schema, name, ok := splitName(tbl.Sval)
	if !ok {
		return nil
	}
	rel, err := s.az.r.ResolveRelation(schema, name)
	s.az.check(err, f.Location)
	switch {
	case rel == nil:
		s.az.fail(pgerr.UndefinedTable, f.Location, "relation %q does not exist", tbl.Sval)
	case rel.Kind != Table:
		s.az.fail(pgerr.WrongObjectType, f.Location, "%q is not a table", rel.Name)
	}
	l.rel = rel
	if l.asOf() != nil {
		l.rel = l.pastRelation(rel)
	}
	l.keyColumns()
	if alias == nil {
		alias = &pg_query.Alias{Aliasname: lastName(f.Funcname)}
	}
	return &pg_query.RangeSubselect{Lateral: true, Alias: alias, Subquery: l.query()}
}

// asOf is the bound; nil for the present.
func (l *lookupOver) asOf() *pg_query.Node {
	at := l.args["as_of"]
	c := at
	if cast := at.GetTypeCast(); cast != nil {
		c = cast.Arg
	}
	if c.GetAConst().GetIsnull() {
		return nil
	}
	return at
}

// pastRelation is the table with the columns and the key that table_at shows: those of the state when the bound is a constant, else the present's.
func (l *lookupOver) pastRelation(rel *Relation) *Relation {
	az, at := l.s.az, l.asOf()
	args := []*Arg{{Type: pgtype.Text, Const: true, Text: nameConst(l.args["tbl"]).GetSval().Sval}, nil}
	known := true
	eachNode(at.ProtoReflect(), func(m any) {
		switch m.(type) {
		case *pg_query.ColumnRef, *pg_query.ParamRef, *pg_query.FuncCall, *pg_query.SubLink, *pg_query.SQLValueFunction:
			known = false
		}
	})
	if known {
		binds := len(az.binds)
		args[1] = az.arg(l.s.expr(at))
		az.binds = az.binds[:binds]
	}
	fns := az.r.Functions("skade", "table_at")
	if len(fns) == 0 {
		return rel
	}
	past, err := az.r.TableFunction(fns[0], args)
	az.check(err, l.f.Location)
	out := *rel
	out.Columns, out.Key = past.Columns, past.Key
	return &out
}

// keyColumns settles the key: key_columns, else the table's.
func (l *lookupOver) keyColumns() {
	az, loc := l.s.az, l.f.Location
	l.key = l.rel.Key
	if n := l.args["key_columns"]; n != nil && !n.GetAConst().GetIsnull() {
		l.key = nil
		for _, name := range l.columnNames(n) {
			i := slices.IndexFunc(l.rel.Columns, func(c RelColumn) bool { return c.Name == name && !c.Hidden })
			if i < 0 {
				az.fail(pgerr.UndefinedColumn, loc, "column %q of relation %q does not exist", name, l.rel.Name)
			}
			l.key = append(l.key, i)
		}
	}
	if len(l.key) == 0 {
		e := az.errorAt(pgerr.InvalidColumnReference, loc, "table has no identifier fields")
		e.Hint = "Name the columns to compare with key_columns => ARRAY['column']."
		panic(e)
	}
}

// columnNames reads '{a,b}' or ARRAY['a', 'b'].
func (l *lookupOver) columnNames(n *pg_query.Node) (names []string) {
	if cast := n.GetTypeCast(); cast != nil {
		n = cast.Arg
	}
	bad := func() {
		l.s.az.fail(pgerr.FeatureNotSupported, l.f.Location, "key_columns must be a constant array of names where the key comes from columns")
	}
	if a := n.GetAArrayExpr(); a != nil {
		for _, el := range a.Elements {
			c := nameConst(el).GetSval()
			if c == nil {
				bad()
			}
			names = append(names, c.Sval)
		}
		return names
	}
	c := n.GetAConst().GetSval()
	if c == nil {
		bad()
	}
	v, err := pgenc.Decode(pgtype.TextArray, pgenc.Text, []byte(c.Sval), pgenc.Style{})
	l.s.az.check(err, l.f.Location)
	for _, el := range v.(pgenc.Array).Elems {
		name, ok := el.(string)
		if !ok {
			bad()
		}
		names = append(names, name)
	}
	return names
}

// hint names the key's columns and their types.
func (l *lookupOver) hint() string {
	out := "The key is ("
	for i, k := range l.key {
		if i > 0 {
			out += ", "
		}
		out += l.rel.Columns[k].Name + " " + typeNameNoMod(l.rel.Columns[k].Type)
	}
	return out + ")."
}

// parts are the values of a key: those of ROW(…), or the one that it is.
func (l *lookupOver) parts(key *pg_query.Node) []*pg_query.Node {
	parts := []*pg_query.Node{key}
	if row := key.GetRowExpr(); row != nil {
		parts = row.Args
	}
	if len(parts) > len(l.key) || len(parts) == 0 {
		e := l.s.az.errorAt(pgerr.DatatypeMismatch, l.f.Location, "key has %d columns, got %d values", len(l.key), len(parts))
		e.Hint = l.hint()
		panic(e)
	}
	return parts
}

func partName(i int) string { return "k" + argName(i) }

// keys is the FROM item x, and the number of parts that each key in it has.
func (l *lookupOver) keys() (x *pg_query.Node, parts int) {
	key := l.args["key"]
	alias := &pg_query.Alias{Aliasname: "x"}
	sub := func(q *pg_query.Node) *pg_query.Node {
		return &pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Lateral: true, Alias: alias, Subquery: q}}}
	}
	one := func(key *pg_query.Node) (targets []*pg_query.Node) {
		for i, p := range l.parts(key) {
			targets = append(targets, targetNode(partName(i), p))
		}
		return targets
	}
	if !l.many {
		targets := one(key)
		return sub(selectNode(targets, nil, nil)), len(targets)
	}
	list := key
	if cast := key.GetTypeCast(); cast != nil && cast.Arg.GetAArrayExpr() != nil {
		list = cast.Arg
	}
	a := list.GetAArrayExpr()
	if a == nil || list != key || len(a.Elements) == 0 || a.Elements[0].GetRowExpr() == nil {
		alias.Colnames = []*pg_query.Node{nameNode(partName(0)), nameNode(keyNumber)}
		return &pg_query.Node{Node: &pg_query.Node_RangeFunction{RangeFunction: &pg_query.RangeFunction{Ordinality: true, Alias: alias,
			Functions: []*pg_query.Node{listNode(callNode([]string{"pg_catalog", "unnest"}, l.f.Location, key), &pg_query.Node{})}}}}, 1
	}
	// Rows have no array type of their own: a query each.
	var all *pg_query.Node
	for n, el := range a.Elements {
		targets := one(el)
		if parts != 0 && len(targets) != parts {
			e := l.s.az.errorAt(pgerr.DatatypeMismatch, l.f.Location, "keys have %d and %d values", parts, len(targets))
			e.Hint = l.hint()
			panic(e)
		}
		parts = len(targets)
		q := selectNode(append(targets, targetNode(keyNumber, intNode(n+1))), nil, nil)
		if all != nil {
			q = unionAll(all, q)
		}
		all = q
	}
	return sub(all), parts
}

// query is the subquery.
func (l *lookupOver) query() *pg_query.Node {
	loc := l.f.Location
	from := &pg_query.Node{Node: &pg_query.Node_RangeVar{RangeVar: &pg_query.RangeVar{
		Schemaname: l.rel.Schema, Relname: l.rel.Name, Inh: true, Relpersistence: "p", Alias: &pg_query.Alias{Aliasname: "k"}, Location: loc}}}
	if at := l.asOf(); at != nil {
		from = &pg_query.Node{Node: &pg_query.Node_RangeFunction{RangeFunction: &pg_query.RangeFunction{Alias: &pg_query.Alias{Aliasname: "k"},
			Functions: []*pg_query.Node{listNode(callNode([]string{"skade", "table_at"}, loc, l.args["tbl"], at), &pg_query.Node{})}}}}
	}
	x, parts := l.keys()
	var same []*pg_query.Node
	for i, k := range l.key[:parts] {
		same = append(same, callNode([]string{keyEquals}, loc, columnNode(loc, nameNode("k"), nameNode(l.rel.Columns[k].Name)), columnNode(loc, nameNode("x"), nameNode(partName(i)))))
	}
	where := same[0]
	if len(same) > 1 {
		where = andNode(same)
	}
	var targets []*pg_query.Node
	for _, c := range l.rel.Columns {
		if !c.Hidden {
			targets = append(targets, targetNode(c.Name, columnNode(loc, nameNode("k"), nameNode(c.Name))))
			if c.Name == keyOrdinal && l.many {
				l.s.az.fail(pgerr.DuplicateColumn, loc, "column %q of the table has the name of a column of lookup_many", c.Name)
			}
		}
	}
	if l.many {
		n := &pg_query.Node{Node: &pg_query.Node_AExpr{AExpr: &pg_query.A_Expr{Kind: pg_query.A_Expr_Kind_AEXPR_OP, Name: []*pg_query.Node{nameNode("-")},
			Lexpr: columnNode(loc, nameNode("x"), nameNode(keyNumber)), Rexpr: intNode(1), Location: loc}}}
		bigint := &pg_query.TypeName{Names: []*pg_query.Node{nameNode("pg_catalog"), nameNode("int8")}, Typemod: -1, Location: -1}
		targets = append(targets, targetNode(keyOrdinal, &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{Arg: n, TypeName: bigint, Location: -1}}}))
	}
	tables := []*pg_query.Node{x, from}
	if !l.strict() {
		return selectNode(targets, tables, where)
	}
	return l.single(targets, tables, where)
}

// strict says whether several rows of a key are an error.
func (l *lookupOver) strict() bool {
	n := l.args["strict"]
	if n == nil {
		return false
	}
	c := n.GetAConst()
	if cast := n.GetTypeCast(); cast != nil {
		c = cast.Arg.GetAConst()
	}
	switch {
	case c.GetIsnull():
		return false
	case c.GetBoolval() != nil:
		return c.GetBoolval().Boolval
	case c.GetSval() != nil && (c.GetSval().Sval == "t" || c.GetSval().Sval == "true"):
		return true
	case c.GetSval() != nil && (c.GetSval().Sval == "f" || c.GetSval().Sval == "false"):
		return false
	}
	l.s.az.fail(pgerr.FeatureNotSupported, l.f.Location, "strict must be a constant where the key comes from columns")
	return false
}

// single puts a query around the lookup that refuses a key with several rows.
func (l *lookupOver) single(targets, tables []*pg_query.Node, where *pg_query.Node) *pg_query.Node {
	count := callNode([]string{"pg_catalog", "count"}, -1)
	count.GetFuncCall().AggStar = true
	over := &pg_query.WindowDef{FrameOptions: defaultFrame, Location: -1}
	if l.many {
		over.PartitionClause = []*pg_query.Node{columnNode(-1, nameNode("x"), nameNode(keyNumber))}
	}
	count.GetFuncCall().Over = over
	inner := &pg_query.Node{Node: &pg_query.Node_RangeSubselect{RangeSubselect: &pg_query.RangeSubselect{Lateral: true, Alias: &pg_query.Alias{Aliasname: "s"},
		Subquery: selectNode(append(targets[:len(targets):len(targets)], targetNode(keyNumber, count)), tables, where)}}}
	var outer []*pg_query.Node
	for _, t := range targets {
		name := t.GetResTarget().Name
		outer = append(outer, targetNode(name, columnNode(-1, nameNode("s"), nameNode(name))))
	}
	return selectNode(outer, []*pg_query.Node{inner}, callNode([]string{singleRows}, -1, columnNode(-1, nameNode("s"), nameNode(keyNumber))))
}

func init() {
	specialForms = map[string]func(*scope, *pg_query.FuncCall) *expr{keyEquals: keyEqual, singleRows: onlyRow}
}

// keyEqual is column = value, where another type than the column compares with is 42804.
func keyEqual(s *scope, f *pg_query.FuncCall) *expr {
	col, val := s.expr(f.Args[0]), s.expr(f.Args[1])
	if op, _ := selectOperator("=", col.typ, val.typ); op == nil {
		e := s.az.errorAt(pgerr.DatatypeMismatch, f.Location, "key of type %s does not match column type %s", typeNameNoMod(val.typ), typeNameNoMod(col.typ))
		e.Hint = "The column is " + col.name + "."
		panic(e)
	}
	return s.operator("=", col, val, f.Location)
}

// onlyRow is true for the number 1.
func onlyRow(s *scope, f *pg_query.FuncCall) *expr {
	return call(pgtype.Bool, "CASE WHEN $1 > 1 THEN error('skade:21000 lookup found more than one row') ELSE true END", s.expr(f.Args[0]))
}
