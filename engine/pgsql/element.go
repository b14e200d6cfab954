package pgsql

import (
	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// element is a[i] or a[i:j] on the left side of an assignment: transformAssignmentSubscripts for arrays of one dimension, whose lower bound
// is 1.
type element struct {
	slice        bool
	lower, upper *expr // nil: the array's own bound
}

// elementOf analyses the subscripts of a column; nil when the whole column is assigned.
func (s *scope) elementOf(rel *Relation, col int, indirection []*pg_query.Node, loc int32) *element {
	if len(indirection) == 0 {
		return nil
	}
	c := rel.Columns[col]
	ix := indirection[0].GetAIndices()
	switch {
	case ix == nil:
		s.az.fail(pgerr.DatatypeMismatch, loc, "cannot assign to field %q of column %q because its type %s is not a composite type",
			indirection[0].GetString_().GetSval(), c.Name, typeName(c.Type))
	case arrayElem(c.Type) == 0 && typeName(c.Type) == "jsonb":
		s.az.unsupported(loc, "assigning to a part of a jsonb column")
	case arrayElem(c.Type) == 0:
		s.az.fail(pgerr.DatatypeMismatch, loc, "cannot subscript type %s because it does not support subscripting", typeName(c.Type))
	case len(indirection) > 1:
		s.az.unsupported(loc, "assigning to an element of an array of several dimensions")
	}
	index := func(n *pg_query.Node) *expr {
		if n == nil {
			return nil
		}
		i := s.expr(n)
		v, ok := s.coerce(i, pgtype.Int4, -1, assignmentCoercion)
		if !ok {
			s.az.fail(pgerr.DatatypeMismatch, i.loc, "array subscript must have type integer")
		}
		return v
	}
	return &element{slice: ix.IsSlice, lower: index(ix.Lidx), upper: index(ix.Uidx)}
}

// assignElement is the array old with v at the element's place.
func (s *scope) assignElement(old *expr, el *element, v *expr, rel *Relation, col int) *expr {
	c := rel.Columns[col]
	want := RelColumn{Name: c.Name, Type: arrayElem(c.Type), Mod: c.Mod, Scale: c.Scale}
	if el.slice {
		want.Type = c.Type
	}
	loc := v.loc
	x, ok := s.coerce(v, want.Type, want.Mod, assignmentCoercion)
	if !ok {
		er := s.az.errorAt(pgerr.DatatypeMismatch, loc, "subscripted assignment to %q requires type %s but expression is of type %s", c.Name, typeName(want.Type), typeName(v.typ))
		er.Hint = "You will need to rewrite or cast the expression."
		panic(er)
	}
	x = s.storeNumeric(x, want, loc)
	out := call(c.Type, "skade_fn.array_set($1, $2, $3)", old, el.upper, x)
	if el.slice {
		lower, upper := el.lower, el.upper
		if lower == nil {
			lower = constant(pgtype.Int4, "1", -1)
		}
		if upper == nil {
			upper = call(pgtype.Int4, "CAST(coalesce(len($1), 0) AS INTEGER)", old)
		}
		out = call(c.Type, "skade_fn.array_set_slice($1, $2, $3, $4)", old, lower, upper, x)
	}
	out.prec, out.scale, out.loc = old.prec, old.scale, loc
	return s.assign(out, rel, col)
}
