package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// engineCall is a call of the caller's scalar function: it becomes a bind.
func (s *scope) engineCall(c *funcCallInfo) *expr {
	s.plainCallOnly(c)
	if c.node.Over != nil {
		s.az.fail(pgerr.WrongObjectType, c.node.Location, "OVER specified, but %s is not a window function nor an aggregate function", c.name)
	}
	fn := *c.proc.engine
	k := &Call{Func: fn, Args: make([]*Arg, len(fn.Args))}
	for i, a := range c.args {
		if a == nil {
			continue
		}
		if !a.isConstantLike() {
			if fn.PerRow {
				return s.rowCall(c)
			}
			s.az.unsupported(c.node.Location, "function %s over a column", c.name)
		}
		if a.typ == pgtype.Unknown && a.kind != kConst { // a parameter without a type, for an argument of any
			a = s.coerceTo(a, pgtype.Text, -1, implicitCoercion, "")
		}
		k.Args[i] = s.az.arg(a)
	}
	s.az.volatile = true
	e := s.az.bind(Bind{Call: k, Type: c.ret})
	e.loc = c.node.Location
	return e
}

// RowCall is the DuckDB scalar that calls a PerRow function: (backend pid, name, arguments as text) → result as text.
const RowCall = "skade_call"

// rowCall is a call of the caller's scalar function whose arguments come from the rows.
func (s *scope) rowCall(c *funcCallInfo) *expr {
	s.az.volatile = true
	args := []*expr{s.az.sessionValue(BackendPID, pgtype.Int4)}
	list := make([]string, len(c.proc.engine.Args))
	for i := range list {
		a := &expr{kind: kConst, typ: pgtype.Text, mod: -1, null: true, loc: -1} // left out
		if i < len(c.args) && c.args[i] != nil {
			a = c.args[i]
		}
		args = append(args, s.coerceTo(a, pgtype.Text, -1, explicitCoercion, ""))
		list[i] = "$" + strconv.Itoa(i+2)
	}
	tmpl := RowCall + "($1, " + quote(c.name) + ", [" + strings.Join(list, ", ") + "])"
	if t := duckType(c.ret, -1); t != "VARCHAR" && c.ret != pgtype.Void {
		tmpl = "CAST(" + tmpl + " AS " + t + ")"
	}
	e := call(c.ret, tmpl, args...)
	e.loc = c.node.Location
	return e
}

// arg is an expression as an argument for the caller.
func (az *analyzer) arg(e *expr) *Arg {
	a := &Arg{Type: e.typ, Mod: e.mod, Loc: az.src.position(e.loc)}
	switch {
	case e.kind == kConst && e.null:
		a.Const, a.Null = true, true
	case e.kind == kConst:
		a.Const, a.Text = true, e.lit
		if e.typ == pgtype.Bytea {
			a.Text = `\x` + hexOf(e.lit)
		}
	case e.zoneless != "":
		a.Const, a.Text = true, e.zoneless
	case e.kind == kParam:
		a.Param = e.param
	case e.kind == kRow:
		a.Row = []*Arg{}
		for _, f := range e.args {
			if f.typ == pgtype.Unknown && f.kind != kConst {
				f = (&scope{az: az}).coerceTo(f, pgtype.Text, -1, implicitCoercion, "")
			}
			a.Row = append(a.Row, az.arg(f))
		}
	case e.elems:
		a.Array = []*Arg{}
		for _, f := range e.items() {
			a.Array = append(a.Array, az.arg(f))
		}
	default:
		a.expr = e
	}
	return a
}

func hexOf(s string) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 2*len(s))
	for i := 0; i < len(s); i++ {
		out = append(out, digits[s[i]>>4], digits[s[i]&15])
	}
	return string(out)
}

// settleArgs writes the texts of arguments that are expressions, once all parameters have their types.
func (az *analyzer) settleArg(a *Arg) {
	if a == nil {
		return
	}
	if a.expr != nil {
		a.Expr, a.Binds = az.bindText("SELECT " + a.expr.sql())
		a.expr = nil
	}
	for _, r := range a.Row {
		az.settleArg(r)
	}
	for _, r := range a.Array {
		az.settleArg(r)
	}
}
