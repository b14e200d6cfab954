package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// defaultExpr is a column's DEFAULT, or NULL.
func (az *analyzer) defaultExpr(s *scope, rel *Relation, col int) *expr {
	c := rel.Columns[col]
	if c.Default == "" || c.Generated != "" {
		n := nullConst(c.Type, -1)
		n.mod = c.Mod
		shapeNumeric(n, c.Mod)
		return s.assign(n, rel, col)
	}
	e := az.foreignExpr(c.Default)
	out := s.assign(e, rel, col)
	if e.draws != 0 && out.draws == 0 {
		cp := *out
		cp.draws, out = e.draws, &cp
	}
	return out
}

// foreignExpr analyses a column's default.
func (az *analyzer) foreignExpr(text string) *expr {
	var e *expr
	az.inForeign(text, "DEFAULT expression", func(n foreign) {
		sub := &scope{az: az, clause: "DEFAULT expressions", columnless: "DEFAULT expression"}
		e = sub.expr(n.node)
	})
	e.loc = -1
	return e
}

// foreignPrefix stands before a declared expression while it is analysed; ForeignOffset is how far it moves positions.
const (
	foreignPrefix = "SELECT ("
	ForeignOffset = len(foreignPrefix)
)

// foreign is an expression that is not part of the statement.
type foreign struct{ node *pg_query.Node }

// inForeign reads an expression that a table declares and hands it to f, in whose time positions are the expression's, parameters are refused
// and subqueries are, too: what is the expression's name in messages.
func (az *analyzer) inForeign(text, what string, f func(foreign)) {
	stmts, err := Parse(foreignPrefix + text + ")")
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		panic(pgerr.Newf(pgerr.InternalError, "the %s %q cannot be read", what, text))
	}
	src, noParams, noSubquery := az.src, az.noParams, az.noSubquery
	az.src, az.noParams, az.noSubquery = stmts[0].src, true, what
	defer func() { az.src, az.noParams, az.noSubquery = src, noParams, noSubquery }()
	f(foreign{stmts[0].Node.GetSelectStmt().TargetList[0].GetResTarget().Val})
}

// assign is transformAssignedExpr: e as a value of a column, ready to store.
func (s *scope) assign(e *expr, rel *Relation, col int) *expr {
	c := rel.Columns[col]
	loc := e.loc
	out, ok := s.coerce(e, c.Type, c.Mod, assignmentCoercion)
	if !ok {
		er := s.az.errorAt(pgerr.DatatypeMismatch, loc, "column %q is of type %s but %sexpression is of type %s", c.Name, typeName(c.Type), s.az.declaring, typeName(e.typ))
		if s.az.declaring != "" {
			er.Position = 0
		}
		er.Hint = "You will need to rewrite or cast the expression."
		panic(er)
	}
	if out.dims > 1 {
		panic(s.az.errorAt(pgerr.FeatureNotSupported, loc, "arrays of several dimensions cannot be stored"))
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
