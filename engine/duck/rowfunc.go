package duck

import (
	"fmt"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/scalarfn"
)

// Value and Func are a scalar function's values and declaration.
type (
	Value = scalarfn.Value
	Func  = scalarfn.Func
)

// rowFunc is a Func in DuckDB.
type rowFunc struct {
	args []*logical
	ret  *logical
	fn   func(args []Value) (Value, error)
	// nullIn: fn sees NULLs; else a NULL argument makes a NULL without a call.
	nullIn bool
}

func (c *Conn) registerFunc(g Func) error {
	args, err := logicals(g.Args)
	if err != nil {
		return fmt.Errorf("function %s: %w", g.Name, err)
	}
	ret, err := logicals([]string{g.Ret})
	if err != nil {
		return fmt.Errorf("function %s: %w", g.Name, err)
	}
	// DuckDB's own NULL handling skips no row of a chunk, so NULLs always come here.
	return c.registerEvaluator(g.Name, g.Args, g.Ret, g.Volatile, true, &rowFunc{args: args, ret: ret[0], fn: g.Fn, nullIn: g.NullIn})
}

func (f *rowFunc) eval(in bind.DataChunk, out bind.Vector) error {
	n := int(bind.DataChunkGetSize(in))
	vecs := make([]vec, len(f.args))
	for i, t := range f.args {
		vecs[i] = newVec(t)
		vecs[i].load(bind.DataChunkGetVector(in, bind.IdxT(i)))
	}
	args := make([]Value, len(f.args))
	w := &valueWriter{v: out, t: f.ret}
rows:
	for row := range n {
		for i := range vecs {
			args[i] = readValue(&vecs[i], row)
			if args[i].Null && !f.nullIn {
				w.null(row)
				continue rows
			}
		}
		v, err := f.fn(args)
		if err != nil {
			return err
		}
		if v.Null {
			w.null(row)
			continue
		}
		w.set(row, v)
	}
	return nil
}

func readValue(v *vec, row int) Value {
	if v.null(row) {
		return Value{Null: true}
	}
	switch v.t.id {
	case bind.TypeVarchar, bind.TypeBlob:
		return Value{S: string(v.bytes(row))}
	case bind.TypeDouble, bind.TypeFloat:
		return Value{F: asFloat(v, row)}
	case bind.TypeInterval:
		x := at[interval](v, row)
		return Value{I: x.micros, Months: x.months, Days: x.days}
	case bind.TypeDate:
		return Value{I: int64(at[int32](v, row))}
	case bind.TypeTimestamp, bind.TypeTimestampTZ, bind.TypeTime:
		return Value{I: at[int64](v, row)}
	case bind.TypeList:
		from, to := v.list(row)
		l := make([]Value, 0, to-from)
		for i := from; i < to; i++ {
			l = append(l, readValue(&v.child[0], i))
		}
		return Value{L: l}
	}
	return Value{I: v.integer(row)}
}

// valueWriter writes results into a vector.
type valueWriter struct {
	v    bind.Vector
	t    *logical
	mask bool
}

func (w *valueWriter) null(row int) {
	if !w.mask {
		bind.VectorEnsureValidityWritable(w.v)
		w.mask = true
	}
	bind.ValiditySetRowInvalid(bind.VectorGetValidity(w.v), bind.IdxT(row))
	if w.t.id == bind.TypeList {
		put(w, row, listEntry{})
	}
}

func put[T any](w *valueWriter, row int, x T) { slice[T](w.v, row, 1)[0] = x }

func (w *valueWriter) set(row int, v Value) {
	switch w.t.id {
	case bind.TypeVarchar, bind.TypeBlob:
		bind.VectorAssignStringElement(w.v, bind.IdxT(row), v.S)
	case bind.TypeDouble:
		put(w, row, v.F)
	case bind.TypeFloat:
		put(w, row, float32(v.F))
	case bind.TypeInterval:
		put(w, row, interval{months: v.Months, days: v.Days, micros: v.I})
	case bind.TypeBoolean:
		put(w, row, v.I != 0)
	case bind.TypeSmallInt:
		put(w, row, int16(v.I))
	case bind.TypeInteger, bind.TypeDate:
		put(w, row, int32(v.I))
	case bind.TypeList:
		w.setList(row, v.L)
	default:
		put(w, row, v.I)
	}
}

func (w *valueWriter) setList(row int, l []Value) {
	base := int(bind.ListVectorGetSize(w.v))
	put(w, row, listEntry{offset: uint64(base), length: uint64(len(l))})
	total := bind.IdxT(base + len(l))
	bind.ListVectorReserve(w.v, total)
	bind.ListVectorSetSize(w.v, total)
	// Reserving may move the child: take it anew.
	child := &valueWriter{v: bind.ListVectorGetChild(w.v), t: w.t.child[0]}
	for i, v := range l {
		if v.Null {
			child.null(base + i)
			continue
		}
		child.set(base+i, v)
	}
}
