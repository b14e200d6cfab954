package engine

import (
	"context"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/sqlfuncs"
)

// keyPart is a column of a table's key.
type keyPart struct {
	sqlfuncs.KeyColumn
	col int // index into Relation.Columns
}

// eachValue calls f with every value that a predicate's argument stands for, as pgenc decodes it, but NULLs: an array's elements, or the value itself.
// f says whether to go on.
func (s *session) eachValue(ctx context.Context, a *pgsql.Arg, args []value, f func(oid uint32, v any) bool) error {
	for _, e := range a.Array {
		if err := s.eachValue(ctx, e, args, f); err != nil {
			return err
		}
	}
	if a.Array != nil {
		return nil
	}
	if a.Param > 0 && a.Param <= len(args) {
		eachElement(args[a.Param-1], f)
		return nil
	}
	vals, err := s.evaluateNative(ctx, []*pgsql.Arg{a}, args)
	if err == nil {
		eachElement(vals[0], f)
	}
	return err
}

func eachElement(v value, f func(oid uint32, v any) bool) {
	if v.null {
		return
	}
	arr, ok := v.v.(pgenc.Array)
	if !ok {
		f(v.oid, v.v)
		return
	}
	for _, e := range arr.Elems {
		if e != nil && !f(arr.ElemOID, e) {
			return
		}
	}
}
