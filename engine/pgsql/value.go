package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// subLink is transformSubLink.
func (s *scope) subLink(l *pg_query.SubLink) *expr {
	sub := func() *selNode {
		return s.az.selectNode(l.Subselect, &scope{az: s.az, parent: s}, selectOptions{})
	}
	mk := func(typ uint32, before, after string, n *selNode, args ...*expr) *expr {
		return &expr{kind: kSub, typ: typ, mod: -1, loc: l.Location, sub: n, text: []string{before, after}, args: args}
	}
	if s.az.noSubquery != "" {
		s.az.fail(pgerr.FeatureNotSupported, l.Location, "cannot use subquery in %s", s.az.noSubquery)
	}
	switch l.SubLinkType {
	case pg_query.SubLinkType_EXISTS_SUBLINK:
		e := mk(pgtype.Bool, "EXISTS ", "", sub())
		e.exists = true
		return e
	case pg_query.SubLinkType_EXPR_SUBLINK:
		n := sub()
		if len(n.targets) != 1 {
			s.az.fail(pgerr.SyntaxError, l.Location, "subquery must return only one column")
		}
		t := n.targets[0].e
		e := mk(t.typ, "", "", n)
		e.mod, e.prec, e.scale, e.loose, e.fields, e.dims = t.mod, t.prec, t.scale, t.loose, rowFields(t), t.dims
		return e
	case pg_query.SubLinkType_ARRAY_SUBLINK:
		n := sub()
		if len(n.targets) != 1 {
			s.az.fail(pgerr.SyntaxError, l.Location, "subquery must return only one column")
		}
		t := n.targets[0].e
		typ, nested := arrayType(t.typ), elemType(t.typ) != 0
		if nested {
			typ = t.typ
		}
		if typ == 0 {
			s.az.fail(pgerr.UndefinedObject, l.Location, "could not find array type for data type %s", typeName(t.typ))
		}
		e := mk(typ, "array", "", n)
		e.prec, e.scale, e.loose, e.fields = t.prec, t.scale, t.loose, rowFields(t)
		if !nested && t.typ != pgtype.Unknown {
			e.listed = n
		}
		return e
	case pg_query.SubLinkType_ANY_SUBLINK, pg_query.SubLinkType_ALL_SUBLINK:
		left := s.expr(l.Testexpr)
		return s.anySubLink(l, left, sub())
	}
	s.az.unsupported(l.Location, "this subquery")
	return nil
}

// anySubLink is x op ANY|ALL (SELECT …) and x IN (SELECT …).
func (s *scope) anySubLink(l *pg_query.SubLink, left *expr, n *selNode) *expr {
	op := "="
	if len(l.OperName) > 0 {
		op = s.opName(l.OperName, l.Location)
	}
	lefts := []*expr{left}
	if left.kind == kRow {
		lefts = left.args
	}
	switch {
	case len(lefts) < len(n.targets):
		s.az.fail(pgerr.SyntaxError, l.Location, "subquery has too many columns")
	case len(lefts) > len(n.targets):
		s.az.fail(pgerr.SyntaxError, l.Location, "subquery has too few columns")
	}
	coerced := make([]*expr, len(lefts))
	for i, le := range lefts {
		t := n.targets[i].e
		probe := &expr{kind: kColumn, typ: t.typ, mod: t.mod, loc: t.loc, ident: "x", prec: t.prec, scale: t.scale}
		row, amb := selectOperator(op, le.typ, probe.typ)
		if row == nil {
			s.noOperator(op, le, probe, amb, l.Location)
		}
		lt, rt := row.left, row.right
		if isPolymorphic(lt) {
			lt, rt = le.typ, probe.typ
		}
		coerced[i] = s.coerceArg(le, lt)
		if rt != t.typ {
			n.coerceTarget(i, func(e *expr) *expr { return s.coerceArg(e, rt) })
		}
	}
	all := l.SubLinkType == pg_query.SubLinkType_ALL_SUBLINK
	word := ""
	switch {
	case op == "=" && !all:
		word = " IN "
	case op == "<>" && all:
		word = " NOT IN "
	case op == "=" || op == "<>" || op == "<" || op == "<=" || op == ">" || op == ">=":
		word = " " + op + " ANY "
		if all {
			word = " " + op + " ALL "
		}
	default:
		s.az.unsupported(l.Location, "operator %s with a subquery", op)
	}
	if len(coerced) > 1 && word != " IN " && word != " NOT IN " {
		s.az.unsupported(l.Location, "a row comparison with ANY or ALL of a subquery")
	}
	e := &expr{kind: kSub, typ: pgtype.Bool, mod: -1, loc: l.Location, sub: n, args: coerced}
	if word == " IN " {
		e.in = lefts
	}
	if len(coerced) == 1 {
		e.text = []string{"(", word, ")"}
	} else {
		e.text = []string{"(("}
		for i := range coerced {
			if i == len(coerced)-1 {
				e.text = append(e.text, ")"+word)
			} else {
				e.text = append(e.text, ", ")
			}
		}
		e.text = append(e.text, ")")
	}
	return e
}

// rowSubCompare is (a, b) op (SELECT x, y).
func (s *scope) rowSubCompare(name string, l *expr, sub *pg_query.SubLink, loc int32) *expr {
	if name != "=" {
		s.az.unsupported(loc, "a row comparison of a subquery with %s", name)
	}
	n := s.az.selectNode(sub.Subselect, &scope{az: s.az, parent: s}, selectOptions{})
	return s.anySubLink(&pg_query.SubLink{SubLinkType: pg_query.SubLinkType_ANY_SUBLINK, Location: loc}, l, n)
}

func (s *scope) arrayExpr(a *pg_query.A_ArrayExpr, want uint32) *expr {
	var items []*expr
	nested := false
	for _, n := range a.Elements {
		if sub := n.GetAArrayExpr(); sub != nil {
			items = append(items, s.arrayExpr(sub, want))
			nested = true
			continue
		}
		items = append(items, s.expr(n))
	}
	if want != 0 && !nested {
		for i := range items {
			c, ok := s.coerce(items[i], elemType(want), -1, explicitCoercion)
			if !ok {
				s.az.fail(pgerr.CannotCoerce, items[i].loc, "cannot cast type %s to %s", typeName(items[i].typ), typeName(elemType(want)))
			}
			items[i] = c
		}
		return listOf(want, items, a.Location)
	}
	if len(items) == 0 {
		if want != 0 {
			return listOf(want, nil, a.Location)
		}
		e := s.az.errorAt(pgerr.IndeterminateDatatype, a.Location, "cannot determine type of empty array")
		e.Hint = "Explicitly cast to the desired type, for example ARRAY[]::integer[]."
		panic(e)
	}
	typ := s.commonTypeText(items, "ARRAY")
	for i := range items {
		items[i] = s.coerceCommon(items[i], typ, "ARRAY")
	}
	arr := typ
	if elemType(typ) == 0 && typ != pgtype.RecordArray {
		arr = arrayType(typ)
	}
	if arr == 0 {
		s.az.fail(pgerr.UndefinedObject, a.Location, "could not find array type for data type %s", typeName(typ))
	}
	e := listOf(arr, items, a.Location)
	if typ == pgtype.Record && items[0].kind == kRow {
		e = call(arr, "[$*]", items...)
		e.fields, e.elems, e.loc = rowFields(items[0]), true, a.Location
	}
	return e
}

func (s *scope) rowExpr(r *pg_query.RowExpr) *expr {
	row := &expr{kind: kRow, typ: pgtype.Record, mod: -1, loc: r.Location}
	for _, n := range r.Args {
		if ref := n.GetColumnRef(); ref != nil && ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			for _, t := range s.expandStarRef(ref) {
				row.args = append(row.args, t.e)
			}
			continue
		}
		row.args = append(row.args, s.exprKeepParam(n))
	}
	return row
}

// exprKeepParam keeps unknown literals of a row unknown: a comparison with another row decides their types.
func (s *scope) exprKeepParam(n *pg_query.Node) *expr { return s.expr(n) }

// indirection is subscripting, slicing and field selection.
func (s *scope) indirection(a *pg_query.A_Indirection) *expr {
	e := s.expr(a.Arg)
	for i, n := range a.Indirection {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_AIndices:
			e = s.subscript(e, x.AIndices)
		case *pg_query.Node_String_:
			e = s.field(e, x.String_.Sval)
		default:
			_ = i
			s.az.fail(pgerr.SyntaxError, e.loc, "row expansion via \"*\" is not supported here")
		}
	}
	return e
}

func (s *scope) field(e *expr, name string) *expr {
	fields := rowFields(e)
	if fields == nil {
		s.az.fail(pgerr.WrongObjectType, e.loc, "column notation .%s applied to type %s, which is not a composite type", name, typeName(e.typ))
	}
	for i, f := range fields {
		if f.name == name {
			return fieldOf(e, i, f)
		}
	}
	if e.typ == pgtype.Record && e.fields == nil {
		s.az.fail(pgerr.UndefinedColumn, e.loc, "could not identify column %q in record data type", name)
	}
	s.az.fail(pgerr.UndefinedColumn, e.loc, "column %q not found in data type %s", name, typeName(e.typ))
	return nil
}

// fieldOf takes field i out of a record.
func fieldOf(e *expr, i int, f *nsCol) *expr {
	if e.kind == kRow {
		return e.args[i]
	}
	out := call(f.e.typ, "struct_extract_at($1, "+strconv.Itoa(i+1)+")", e)
	out.mod, out.prec, out.scale, out.loose = f.e.mod, f.e.prec, f.e.scale, f.e.loose
	return out
}

func (s *scope) subscript(e *expr, ix *pg_query.A_Indices) *expr {
	if e.typ == pgtype.JSONB && !ix.IsSlice {
		key := s.expr(ix.Uidx)
		if key.typ == pgtype.Int4 || key.typ == pgtype.Int8 || key.typ == pgtype.Int2 {
			return call(pgtype.JSONB, "skade_jsonb_at($1, CAST($2 AS BIGINT))", e, key)
		}
		return call(pgtype.JSONB, "skade_jsonb_get($1, $2)", e, s.coerceTo(key, pgtype.Text, -1, implicitCoercion, "subscript"))
	}
	elem := arrayElem(e.typ)
	if elem == 0 {
		s.az.fail(pgerr.DatatypeMismatch, e.loc, "cannot subscript type %s because it does not support subscripting", typeName(e.typ))
	}
	index := func(n *pg_query.Node) *expr {
		i := s.expr(n)
		c, ok := s.coerce(i, pgtype.Int4, -1, assignmentCoercion)
		if !ok {
			s.az.fail(pgerr.DatatypeMismatch, i.loc, "array subscript must have type integer")
		}
		return c
	}
	// int2vector and oidvector count from 0.
	shift := ""
	if e.typ == pgtype.Int2Vector || e.typ == pgtype.OIDVector {
		shift = " + 1"
	}
	var out *expr
	if !ix.IsSlice {
		typ := elem
		if e.dims > 1 {
			typ = e.typ
		}
		out = call(typ, "skade_fn.item($1, $2"+shift+")", e, index(ix.Uidx))
		out.dims = max(0, e.dims-1)
		if out.dims <= 1 {
			out.dims = 0
		}
		if e.dims == 2 {
			// One subscript of a two-dimensional array is NULL in PostgreSQL unless the second follows.
			out.typ = e.typ
			out.dims = 1
		} else if e.dims == 1 {
			out.typ = elem
		}
	} else {
		lo, hi := constant(pgtype.Int4, "1", -1), (*expr)(nil)
		if ix.Lidx != nil {
			lo = index(ix.Lidx)
		}
		if ix.Uidx != nil {
			hi = index(ix.Uidx)
			out = call(e.typ, "skade_fn.slice($1, $2"+shift+", $3"+shift+")", e, lo, hi)
		} else {
			out = call(e.typ, "skade_fn.slice($1, $2"+shift+", len($1))", e, lo)
		}
		if e.typ == pgtype.Int2Vector {
			out.typ = pgtype.Int2Array
		}
		out.dims = e.dims
	}
	out.prec, out.scale, out.loose, out.loc, out.fields = e.prec, e.scale, e.loose, e.loc, e.fields
	return out
}

// checkSchema fails when a qualified name's schema does not exist.
func (az *analyzer) checkSchema(names []string, loc int32) {
	if c, ok := az.r.(SchemaChecker); ok && len(names) == 2 && !c.SchemaExists(names[0]) {
		az.fail(pgerr.InvalidSchemaName, loc, "schema %q does not exist", names[0])
	}
}

// typeName resolves a type's name: its OID and typmod.
func (az *analyzer) typeName(t *pg_query.TypeName) (uint32, int32) {
	names := stringList(t.Names)
	if t.PctType {
		az.unsupported(t.Location, "%%TYPE")
	}
	if t.Setof {
		az.unsupported(t.Location, "SETOF")
	}
	name := names[len(names)-1]
	row := catalog().byName[name]
	if len(names) > 1 && names[0] != "pg_catalog" || len(names) > 2 {
		row = nil
	}
	if row == nil {
		az.checkSchema(names, t.Location)
	}
	if row == nil || row.kind == 'p' && name != "record" && name != "void" {
		az.fail(pgerr.UndefinedObject, t.Location, "type %q does not exist", strings.Join(names, "."))
	}
	var args []int32
	for _, m := range t.Typmods {
		c := m.GetAConst()
		if c == nil {
			az.fail(pgerr.SyntaxError, t.Location, "type modifiers must be simple constants or identifiers")
		}
		args = append(args, c.GetIval().GetIval())
	}
	mod := int32(-1)
	oid := row.oid
	if len(args) > 0 {
		var err error
		mod, err = pgtype.EncodeTypmod(oid, args)
		az.check(err, t.Location)
	}
	if len(t.ArrayBounds) > 0 {
		arr := arrayType(oid)
		if arr == 0 {
			az.fail(pgerr.UndefinedObject, t.Location, "type %q does not exist", name+"[]")
		}
		oid = arr
	}
	return oid, mod
}
