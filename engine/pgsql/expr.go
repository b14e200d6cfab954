package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// exprKind says which fields of an expr count.
type exprKind byte

const (
	kCall     exprKind = iota // text and args
	kConst                    // lit, null
	kParam                    // param
	kColumn                   // rel/col or alias text
	kAgg                      // as kCall, with owner
	kWindow                   // as kCall
	kGrouping                 // as kCall, with owner
	kSRF                      // as kCall: set-returning in the select list
	kRow                      // args, names
	kSub                      // sub, with text around it
	kSession                  // bind
	kDefault                  // DEFAULT in VALUES and SET
)

// expr is a typed expression. Text has one element more than args: text[0] args[0] text[1] … (G1: text comes from templates only).
type expr struct {
	kind exprKind
	typ  uint32
	mod  int32
	// prec and scale are those of the DuckDB DECIMAL that carries a numeric.
	prec, scale int
	loc         int32
	text        []string
	args        []*expr
	// show, when set, is what a top-level output column emits instead: PostgreSQL's text of the value, or a padded string.
	show *expr

	lit  string
	null bool

	param int

	rel   *relEntry
	col   int    // index into rel's Relation.Columns
	name  string // of a column, for messages: "t.x"
	ident string // the column's SQL when rel is nil: t3.c2
	owner *scope // scope of a column, aggregate or grouping call

	names []string // of a row's fields
	// dims is the number of dimensions of an array when it is known to have more than one.
	dims int
	// base is the parameter that an assignment cast wraps.
	base *expr
	// draws is the OID of the sequence when the expression is its nextval and nothing else.
	draws uint32
	// elems marks a list constructor over args.
	elems bool
	// interval is the value of an interval constant; zoneless the local time of a timestamptz literal without zone.
	interval *pgenc.IntervalValue
	zoneless string
	// loose marks a numeric whose DuckDB scale is not PostgreSQL's: trailing zeros are dropped when shown.
	loose bool
	// fields describe the fields of a record-typed column.
	fields []*nsCol
	// origin is the base column that a derived column passes on unchanged.
	origin *expr
	sub    *selNode
	// and are the conjuncts of AND, or the disjuncts of OR.
	and, or []*expr
	// bare is the column under casts that lose nothing: equal before, equal after.
	bare *expr
	// cmp is set on column-op-value comparisons, for pruning.
	cmp *comparison
	// window expressions, for the checks of what may be inside
	srf *srfCall
	// part marks a column of the rows that drive a call.
	part *pendingPart
	// node is the subquery whose column number col a derived column is; item and def are the functions of FROM whose column it is, and its value.
	node *selNode
	item *nsItem
	def  *expr
	// in are the values that IN looks for in sub, as they were written; exists marks EXISTS over sub.
	in     []*expr
	exists bool
	// listed is the query of ARRAY(SELECT …), when its rows are the array's elements.
	listed *selNode
	// volatile marks a call of a volatile function.
	volatile bool
}

// comparison remembers left op right before it became text.
type comparison struct {
	op          string
	left, right *expr
	list        []*expr // IN
	// rawLeft and rawRight are the operands before they were coerced, when that is known.
	rawLeft, rawRight *expr
}

// call makes a kCall from a template with $1 … $9 and $* (all arguments, comma separated).
func call(typ uint32, tmpl string, args ...*expr) *expr {
	e := &expr{kind: kCall, typ: typ, mod: -1, loc: -1}
	if strings.Contains(tmpl, "len(") || strings.Contains(tmpl, "array_to_string") || strings.Contains(tmpl, "slice(") {
		args = hideParams(args)
	}
	e.text, e.args = fillTemplate(tmpl, args)
	if typ == pgtype.Numeric {
		e.prec, e.scale = 38, 0
	}
	if len(args) > 0 {
		e.loc = args[0].loc
	}
	return e
}

// hideParams puts array parameters behind a subquery: DuckDB leaves the type of len($1) and its kin open as long as they see a parameter.
func hideParams(args []*expr) []*expr {
	out := append([]*expr(nil), args...)
	for i, a := range out {
		if a == nil || arrayElem(a.typ) == 0 || !a.isConstantLike() {
			continue
		}
		param := false
		a.walk(func(x *expr) bool {
			param = param || x.kind == kParam || x.kind == kSession
			return !param
		})
		if param {
			c := *a
			c.kind, c.text, c.args = kCall, []string{"(SELECT ", ")"}, []*expr{a}
			out[i] = &c
		}
	}
	return out
}

// fillTemplate splits a template at its references.
func fillTemplate(tmpl string, args []*expr) ([]string, []*expr) {
	text := []string{""}
	var out []*expr
	add := func(a *expr) {
		out = append(out, a)
		text = append(text, "")
	}
	for i := 0; i < len(tmpl); i++ {
		if tmpl[i] != '$' || i+1 >= len(tmpl) {
			text[len(text)-1] += string(tmpl[i])
			continue
		}
		i++
		switch c := tmpl[i]; {
		case c == '*':
			for n, a := range args {
				if n > 0 {
					text[len(text)-1] += ", "
				}
				add(a)
			}
		case c == 't': // the argument as PostgreSQL text
			i++
			add(textOf(args[tmpl[i]-'1']))
		case c >= '1' && c <= '9':
			add(args[c-'1'])
		default:
			text[len(text)-1] += "$" + string(c)
		}
	}
	return text, out
}

func constant(typ uint32, lit string, loc int32) *expr {
	return &expr{kind: kConst, typ: typ, mod: -1, lit: lit, loc: loc}
}

func nullConst(typ uint32, loc int32) *expr {
	return &expr{kind: kConst, typ: typ, mod: -1, null: true, loc: loc}
}

// markers of what Render and finish fill in; NUL cannot occur in a query.
const (
	markParam = "\x00P" // number \x00: a client's parameter
	markBind  = "\x00B" // index \x00: another bind
	markRel   = "\x00R" // index \x00: a source with its alias
)

// write renders e as DuckDB SQL.
func (e *expr) write(b *strings.Builder) {
	switch e.kind {
	case kConst:
		b.WriteString(constSQL(e))
	case kParam:
		writeParam(b, e)
	case kSession:
		b.WriteString("CAST(" + markBind + strconv.Itoa(e.param) + "\x00 AS " + duckType(e.typ, -1) + ")")
	case kColumn:
		e.writeColumn(b)
	case kRow:
		b.WriteString("row(")
		for i, a := range e.args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.write(b)
		}
		b.WriteString(")")
	case kSub:
		// text[0] args[0] … text[n] (subquery) text[n+1]
		b.WriteString(e.text[0])
		for i, a := range e.args {
			a.write(b)
			b.WriteString(e.text[i+1])
		}
		b.WriteString("(")
		e.sub.write(b)
		b.WriteString(")" + e.text[len(e.text)-1])
	case kDefault:
		b.WriteString("NULL")
	default:
		for i, a := range e.args {
			b.WriteString(e.text[i])
			a.write(b)
		}
		b.WriteString(e.text[len(e.args)])
	}
}

func (e *expr) writeColumn(b *strings.Builder) {
	if e.rel == nil {
		b.WriteString(e.ident)
		return
	}
	e.rel.markUsed(e.col)
	name := e.rel.alias + ".c" + strconv.Itoa(e.col+1)
	if e.typ == pgtype.BPChar {
		// stored padded, computed with unpadded
		name = "rtrim(" + name + ", ' ')"
	}
	b.WriteString(name)
}

// writeParam casts a parameter to its type. numeric parameters are bound as text, so that no digit is lost before the scale is known.
func writeParam(b *strings.Builder, e *expr) {
	p := markParam + strconv.Itoa(e.param) + "\x00"
	if e.typ == pgtype.Numeric {
		b.WriteString("CAST(CAST(" + p + " AS VARCHAR) AS DECIMAL(38," + strconv.Itoa(e.scale) + "))")
		return
	}
	b.WriteString("CAST(" + p + " AS " + duckType(e.typ, -1) + ")")
}

func (e *expr) sql() string {
	var b strings.Builder
	e.write(&b)
	return b.String()
}

// isConstantLike reports an expression without columns, aggregates, subqueries and set-returning calls.
func (e *expr) isConstantLike() bool {
	switch e.kind {
	case kColumn:
		return e.rel == nil && e.ident == lambdaVar
	case kAgg, kWindow, kGrouping, kSRF, kSub, kDefault:
		return false
	}
	for _, a := range e.args {
		if !a.isConstantLike() {
			return false
		}
	}
	return true
}

// lambdaVar is the SQL of a lambda's variable, which stands for an element of the array that the lambda is applied to.
const lambdaVar = "v"

// walk visits e and what is inside it; visit returns false to stay out of a node's arguments.
func (e *expr) walk(visit func(*expr) bool) {
	if e == nil || !visit(e) {
		return
	}
	for _, a := range e.args {
		a.walk(visit)
	}
}

// quote writes a string literal for DuckDB.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// duckType is the DuckDB type in which values of a PostgreSQL type are computed.
func duckType(oid uint32, mod int32) string {
	switch oid {
	case pgtype.JSON, pgtype.JSONB, pgtype.Unknown, pgtype.TimeTZ:
		return "VARCHAR"
	case pgtype.Numeric:
		p, s := numericShape(mod)
		return "DECIMAL(" + strconv.Itoa(p) + "," + strconv.Itoa(s) + ")"
	case pgtype.Int2Vector:
		return "SMALLINT[]"
	case pgtype.OIDVector:
		return "BIGINT[]"
	case pgtype.Void:
		return "VARCHAR"
	}
	if e := elemType(oid); e != 0 {
		return duckType(e, mod) + "[]"
	}
	if isOIDLike(oid) {
		return "BIGINT"
	}
	return pgtype.DuckName(oid, mod)
}

// DuckType is the DuckDB type that carries values of a PostgreSQL type in a Query's sources and results: pgtype.DuckName, except that json and jsonb are VARCHAR.
func DuckType(oid uint32, mod int32) string { return duckType(oid, mod) }

func numericShape(mod int32) (prec, scale int) {
	if p, s, ok := pgtype.NumericPS(mod); ok && p <= 38 && s >= 0 && s <= p {
		return int(p), int(s)
	} else if ok {
		return 38, int(max(0, min(s, 37)))
	}
	return 38, DefaultNumericScale
}

// isOIDLike reports oid and the types that are oids: regclass and its kind, xid, cid.
func isOIDLike(oid uint32) bool {
	switch oid {
	case pgtype.OID, pgtype.XID, pgtype.CID:
		return true
	}
	return isReg(oid)
}

var regNames = map[uint32]string{
	pgtype.RegProc: "regproc", pgtype.RegProcedure: "regprocedure", pgtype.RegOper: "regoper", pgtype.RegOperator: "regoperator",
	pgtype.RegClass: "regclass", pgtype.RegType: "regtype", pgtype.RegConfig: "regconfig", 3769: "regdictionary", 4089: "regnamespace",
	4096: "regrole", 4191: "regcollation",
}

func isReg(oid uint32) bool { return regNames[oid] != "" }

func isString(oid uint32) bool {
	switch oid {
	case pgtype.Text, pgtype.Varchar, pgtype.BPChar, pgtype.Name, pgtype.Char:
		return true
	}
	return false
}
