package pgsql

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// funcArgs are a call's arguments as given.
type funcArgs struct {
	exprs []*expr
	names []string // "" for positional ones
	types []uint32
}

func (s *scope) funcArgs(f *pg_query.FuncCall) funcArgs {
	var a funcArgs
	for _, n := range f.Args {
		name := ""
		if na := n.GetNamedArgExpr(); na != nil {
			name = na.Name
			n = na.Arg
			for _, have := range a.names {
				if have == name {
					s.az.fail(pgerr.SyntaxError, nodeLocation(n), "argument name %q used more than once", name)
				}
			}
		} else if len(a.names) > 0 && a.names[len(a.names)-1] != "" {
			s.az.fail(pgerr.SyntaxError, nodeLocation(n), "positional argument cannot follow named argument")
		}
		e := s.expr(n)
		a.exprs = append(a.exprs, e)
		a.names = append(a.names, name)
		a.types = append(a.types, e.typ)
	}
	return a
}

// funcCall is ParseFuncOrColumn. inFrom allows set-returning functions.
func (s *scope) funcCall(f *pg_query.FuncCall, inFrom bool) *expr {
	names := stringList(f.Funcname)
	schema, name := "", names[len(names)-1]
	if len(names) > 1 {
		schema = names[len(names)-2]
	}
	if len(names) > 2 {
		s.az.fail(pgerr.FeatureNotSupported, f.Location, "cross-database references are not implemented: %s", strings.Join(names, "."))
	}
	if sp := specialForms[name]; sp != nil && (schema == "" || schema == "pg_catalog") {
		if e := sp(s, f); e != nil {
			return e
		}
	}
	aggDepth := s.inAgg
	isAgg := s.isAggName(schema, name)
	if isAgg && f.Over == nil {
		if s.inAgg {
			s.az.fail(pgerr.GroupingError, f.Location, "aggregate function calls cannot be nested")
		}
		s.inAgg = true
	}
	args := s.funcArgs(f)
	s.inAgg = aggDepth
	// WITHIN GROUP's ordered arguments count as arguments.
	var within []*sortKey
	if f.AggWithinGroup {
		within = s.aggOrder(f.AggOrder)
		for _, k := range within {
			args.exprs = append(args.exprs, k.e)
			args.names = append(args.names, "")
			args.types = append(args.types, k.e.typ)
		}
	}
	c := s.resolveFunction(schema, name, args, f)
	if c == nil {
		if e := s.castCall(schema, name, args, f); e != nil {
			return e
		}
		s.noFunction(names, args, f)
	}
	return s.emitFunction(c, names, args, f, within, inFrom)
}

func (s *scope) isAggName(schema, name string) bool {
	if schema != "" && schema != "pg_catalog" {
		return false
	}
	rows := catalog().procs[name]
	return len(rows) > 0 && rows[0].kind == 'a'
}

// castCall is int4('1') and text(x): a function-like cast.
func (s *scope) castCall(schema, name string, args funcArgs, f *pg_query.FuncCall) *expr {
	if len(args.exprs) != 1 || schema != "" && schema != "pg_catalog" || f.Over != nil || f.AggStar {
		return nil
	}
	t := catalog().byName[name]
	if t == nil || t.kind == 'p' {
		return nil
	}
	e := args.exprs[0]
	ok, relabel := coercePath(e.typ, t.oid, explicitCoercion)
	if e.typ != pgtype.Unknown && (!ok || !relabel && catalog().casts[[2]uint32{e.typ, t.oid}].context != 0) {
		return nil
	}
	out, ok := s.coerce(e, t.oid, -1, explicitCoercion)
	if !ok {
		return nil
	}
	return out
}

// signature is func_signature_string.
func signature(names []string, args funcArgs) string {
	var parts []string
	for i, t := range args.types {
		p := typeNameNoMod(t)
		if args.names[i] != "" {
			p = args.names[i] + " => " + p
		}
		parts = append(parts, p)
	}
	return strings.Join(names, ".") + "(" + strings.Join(parts, ", ") + ")"
}

func (s *scope) noFunction(names []string, args funcArgs, f *pg_query.FuncCall) {
	s.az.checkSchema(names, f.Location)
	e := s.az.errorAt(pgerr.UndefinedFunction, f.Location, "function %s does not exist", signature(names, args))
	e.Hint = "No function matches the given name and argument types. You might need to add explicit type casts."
	if len(f.AggOrder) > 0 {
		e.Hint = "No aggregate function matches the given name and argument types. Perhaps you misplaced ORDER BY; ORDER BY must appear after all regular arguments of the aggregate."
	}
	panic(e)
}

// resolveFunction is func_get_detail: nil when nothing matches.
func (s *scope) resolveFunction(schema, name string, args funcArgs, f *pg_query.FuncCall) *candidate {
	var rows []*procRow
	switch schema {
	case "", "pg_catalog", "information_schema":
		rows = append(rows, catalog().procs[name]...)
		if schema != "pg_catalog" {
			rows = append(rows, extraProcs[name]...)
		}
	}
	if s.az.r != nil {
		for _, fn := range s.az.r.Functions(schema, name) {
			// The caller's own function takes the place of a built-in one of the same signature.
			rows = slices.DeleteFunc(rows, func(p *procRow) bool { return slices.Equal(p.args, fn.Args) })
			rows = append(rows, &procRow{name: fn.Name, kind: 'f', setOf: fn.SetOf, defaults: fn.Defaults, ret: fn.Ret, args: fn.Args,
				argNames: fn.ArgNames, strict: fn.Strict, volatile: true, engine: &fn})
		}
	}
	var cands []*candidate
	for _, p := range rows {
		if c := fitCandidate(p, args, f.FuncVariadic); c != nil {
			cands = append(cands, c)
		}
	}
	// An exact match wins at once; so does a call without variadic expansion over one with the same types.
	for _, c := range cands {
		exact := true
		for i := range args.types {
			exact = exact && c.args[i] == args.types[i]
		}
		if exact {
			return c
		}
	}
	best, ambiguous := selectCandidate(preferPlain(cands), args.types)
	if ambiguous {
		e := s.az.errorAt(pgerr.AmbiguousFunction, f.Location, "function %s is not unique", signature(stringList(f.Funcname), args))
		e.Hint = "Could not choose a best candidate function. You might need to add explicit type casts."
		panic(e)
	}
	return best
}

// preferPlain drops variadic candidates that have the same argument types as a plain one.
func preferPlain(cands []*candidate) []*candidate {
	var out []*candidate
next:
	for _, c := range cands {
		if c.expanded || c.defaults > 0 {
			for _, d := range cands {
				if d != c && (!d.expanded && d.defaults < c.defaults || c.expanded && !d.expanded) && sameTypes(c.args, d.args) {
					continue next
				}
			}
		}
		out = append(out, c)
	}
	return out
}

func sameTypes(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// fitCandidate matches a function's parameters with the arguments given: positions, names, defaults, VARIADIC.
func fitCandidate(p *procRow, args funcArgs, variadicCall bool) *candidate {
	n := len(args.types)
	c := &candidate{proc: p}
	named := n > 0 && args.names[n-1] != ""
	if p.variadic != 0 && !variadicCall && !named {
		fixed := len(p.args) - 1
		if n < fixed || n == fixed && p.variadic != pgtype.Any {
			return nil
		}
		c.expanded = true
		c.args = append(c.args, p.args[:fixed]...)
		for len(c.args) < n {
			c.args = append(c.args, p.variadic)
		}
		return c
	}
	if variadicCall && p.variadic == 0 {
		return nil
	}
	if n > len(p.args) || n < len(p.args)-p.defaults {
		return nil
	}
	if !named {
		c.args = p.args[:n]
		c.defaults = len(p.args) - n
		return c
	}
	taken := make([]bool, len(p.args))
	c.order = make([]int, len(p.args))
	for i := range c.order {
		c.order[i] = -1
	}
	for i, name := range args.names {
		pos := i
		if name != "" {
			pos = -1
			for j, an := range p.argNames {
				if an == name && j < len(p.args) {
					pos = j
				}
			}
		}
		if pos < 0 || taken[pos] {
			return nil
		}
		taken[pos] = true
		c.order[pos] = i
		c.args = append(c.args, p.args[pos])
	}
	for i, ok := range taken {
		if !ok {
			if i < len(p.args)-p.defaults {
				return nil
			}
			c.defaults++
		}
	}
	return c
}

// emitFunction coerces the arguments and writes the call.
func (s *scope) emitFunction(c *candidate, names []string, args funcArgs, f *pg_query.FuncCall, within []*sortKey, inFrom bool) *expr {
	p := c.proc
	declared, ret := c.args, p.ret
	poly := isPolymorphic(ret)
	for _, t := range declared {
		poly = poly || isPolymorphic(t)
	}
	if poly {
		declared, ret = resolvePolymorphic(c.args, args.types, p.ret)
		for i, t := range declared {
			if t == 0 {
				// all inputs unknown: anyelement and anyarray become text
				if c.args[i] == pgtype.AnyArray {
					s.az.fail(pgerr.IndeterminateDatatype, f.Location, "could not determine polymorphic type because input has type unknown")
				}
				s.az.fail(pgerr.IndeterminateDatatype, f.Location, "could not determine polymorphic type because input has type unknown")
			}
		}
	}
	coerced := make([]*expr, len(args.exprs))
	for i, e := range args.exprs {
		typ := declared[i]
		if typ == pgtype.Any {
			// An untyped parameter stays so, and is refused in the end when nothing else gives it a type; so does an untyped literal of the
			// caller's functions, which take it for what they need.
			if e.typ == pgtype.Unknown && e.kind != kParam && (p.engine == nil || e.kind != kConst) {
				e = s.coerceTo(e, pgtype.Text, -1, implicitCoercion, "")
			}
			coerced[i] = e
			continue
		}
		coerced[i] = s.coerceArg(e, typ)
	}
	for i, k := range within {
		k.e = coerced[len(coerced)-len(within)+i]
	}
	if c.order != nil {
		// back into declared order
		ordered := make([]*expr, len(c.order))
		for pos, i := range c.order {
			if i >= 0 {
				ordered[pos] = coerced[i]
			}
		}
		coerced = ordered
	}
	if p.volatile && p.engine == nil {
		s.az.volatile = true
	}
	if !p.immutable {
		s.az.unstable = true
	}
	call := &funcCallInfo{cand: c, proc: p, name: names[len(names)-1], names: names, args: coerced, given: args, ret: ret, node: f, within: within}
	switch {
	case p.engine != nil && !p.setOf:
		return s.engineCall(call)
	case p.setOf:
		return s.srfCall(call, inFrom)
	case p.kind == 'a' || p.kind == 'w' && f.Over != nil || f.Over != nil:
		return s.aggOrWindow(call)
	case p.kind == 'w':
		s.az.fail(pgerr.WrongObjectType, f.Location, "window function %s requires an OVER clause", call.name)
	}
	s.plainCallOnly(call)
	e := s.scalarCall(call)
	if p.volatile && e.kind == kCall {
		e.volatile = true
	}
	return e
}

// funcCallInfo is a resolved call.
type funcCallInfo struct {
	cand   *candidate
	proc   *procRow
	name   string
	names  []string
	args   []*expr
	given  funcArgs
	ret    uint32
	node   *pg_query.FuncCall
	within []*sortKey
}

func (s *scope) plainCallOnly(c *funcCallInfo) {
	f := c.node
	var what string
	switch {
	case f.AggStar:
		what = c.name + "(*) specified, but " + c.name + " is not an aggregate function"
	case f.AggDistinct:
		what = "DISTINCT specified, but " + c.name + " is not an aggregate function"
	case f.AggWithinGroup:
		what = "WITHIN GROUP specified, but " + c.name + " is not an aggregate function"
	case len(f.AggOrder) > 0:
		what = "ORDER BY specified, but " + c.name + " is not an aggregate function"
	case f.AggFilter != nil:
		what = "FILTER specified, but " + c.name + " is not an aggregate function"
	default:
		return
	}
	s.az.fail(pgerr.WrongObjectType, f.Location, "%s", what)
}

// unmapped is a function that PostgreSQL has and the gate does not let through.
func (s *scope) unmapped(c *funcCallInfo) {
	e := s.az.errorAt(pgerr.UndefinedFunction, c.node.Location, "function %s does not exist", signature(c.names, c.given))
	e.Hint = "PostgreSQL has this function; skade-pg does not offer it."
	panic(e)
}

// scalarCall writes a plain function from its template.
func (s *scope) scalarCall(c *funcCallInfo) *expr {
	t := findTemplate(c.name, c.proc, len(c.args))
	if t == nil {
		s.unmapped(c)
	}
	args := fillDefaults(s, c)
	if t.special != nil {
		e := t.special(s, c)
		if e.loc < 0 || e.loc > c.node.Location {
			e.loc = c.node.Location
		}
		return e
	}
	e := s.applyTemplate(t, c.ret, args)
	e.loc = c.node.Location
	return e
}

// applyTemplate writes args into a template and settles the DECIMAL of a numeric result.
func (s *scope) applyTemplate(t *funcTemplate, ret uint32, args []*expr) *expr {
	for i := range args {
		if args[i] == nil {
			args[i] = nullConst(pgtype.Text, -1)
		}
	}
	var e *expr
	switch {
	case t.exact:
		e = exactNumeric(t.tmpl, args...)
	default:
		e = call(ret, t.tmpl, args...)
		if ret == pgtype.Numeric || elemType(ret) == pgtype.Numeric {
			e.prec, e.scale = 38, 0
			for _, a := range args {
				if a.typ == ret || a.typ == pgtype.Numeric || elemType(a.typ) == pgtype.Numeric {
					e.prec, e.scale, e.loose = a.prec, a.scale, a.loose
					break
				}
			}
			if t.scale >= 0 && ret == pgtype.Numeric {
				e.prec, e.scale, e.loose = 38, t.scale, t.loose
			}
		}
		if elemType(ret) != 0 {
			for _, a := range args {
				if elemType(a.typ) != 0 {
					e.dims = a.dims
					e.fields = a.fields
					break
				}
			}
		}
	}
	return e
}

// fillDefaults supplies the defaults of pg_proc that templates rely on: they are written into the templates' own arity, so missing arguments stay away.
func fillDefaults(_ *scope, c *funcCallInfo) []*expr {
	return append([]*expr(nil), c.args...)
}
