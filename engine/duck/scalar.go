package duck

// #include "relation.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	bind "github.com/duckdb/duckdb-go-bindings"
)

// Scalar is a scalar function whose values Go computes, a chunk at a time. Several Scalars of one Name are overloads.
type Scalar struct {
	Name string
	// Args and Result are DuckDB type names.
	Args   []string
	Result string
	// Volatile functions are not folded.
	Volatile bool
	// Eval computes rows values. NULLs are passed to it. The result's Arrow type must be what a relation's column of type Result would
	// have. An error ends the statement and comes out of it as itself.
	Eval func(args []arrow.Array, rows int) (arrow.Array, error)
}

// evaluator is what stands behind the number of a scalar function.
type evaluator interface {
	eval(in bind.DataChunk, out bind.Vector) error
}

type arrowFunc struct {
	args []*logical
	fn   func(args []arrow.Array, rows int) (arrow.Array, error)
	name string
	ret  string
}

// registerScalar adds a function to the instance. Its number lives as long as the DB.
func (c *Conn) registerScalar(s Scalar) error {
	f := &arrowFunc{fn: s.Eval, name: s.Name, ret: s.Result}
	var err error
	if f.args, err = logicals(s.Args); err != nil {
		return fmt.Errorf("function %s: %w", s.Name, err)
	}
	return c.registerEvaluator(s.Name, s.Args, s.Result, s.Volatile, true, f)
}

func logicals(names []string) ([]*logical, error) {
	var ts []*logical
	for _, n := range names {
		lt, err := typeByName(n)
		if err != nil {
			return nil, err
		}
		ts = append(ts, newLogical(lt))
	}
	return ts, nil
}

func (c *Conn) registerEvaluator(name string, args []string, result string, volatile, nulls bool, e evaluator) error {
	f := bind.CreateScalarFunction()
	defer bind.DestroyScalarFunction(&f)
	bind.ScalarFunctionSetName(f, name)
	for _, a := range args {
		lt, err := typeByName(a)
		if err != nil {
			return fmt.Errorf("function %s: %w", name, err)
		}
		bind.ScalarFunctionAddParameter(f, lt)
		bind.DestroyLogicalType(&lt)
	}
	lt, err := typeByName(result)
	if err != nil {
		return fmt.Errorf("function %s: %w", name, err)
	}
	bind.ScalarFunctionSetReturnType(f, lt)
	bind.DestroyLogicalType(&lt)
	if volatile {
		bind.ScalarFunctionSetVolatile(f)
	}
	if nulls {
		bind.ScalarFunctionSetSpecialHandling(f)
	}
	h := newHandle(e)
	c.db.evaluators = append(c.db.evaluators, h)
	if C.skade_register_scalar(C.duckdb_connection(c.conn.Ptr), C.duckdb_scalar_function(f.Ptr), C.uint64_t(h)) != 0 {
		return fmt.Errorf("function %s: %w", name, ErrConfig)
	}
	return nil
}

//export skadeScalar
func skadeScalar(h C.uint64_t, infoPtr, inPtr, outPtr unsafe.Pointer) {
	err := func() (err error) {
		defer recovered(&err)
		return handleValue(uint64(h)).(evaluator).eval(bind.DataChunk{Ptr: inPtr}, bind.Vector{Ptr: outPtr})
	}()
	if err != nil {
		bind.ScalarFunctionSetError(bind.FunctionInfo{Ptr: infoPtr}, carry(err))
	}
}

// recovered turns a panic into an error: Go code that DuckDB calls must not unwind through C frames (S3).
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", ErrPanic, p)
	}
}

func (f *arrowFunc) eval(in bind.DataChunk, out bind.Vector) error {
	n := int(bind.DataChunkGetSize(in))
	args := make([]arrow.Array, len(f.args))
	for i, t := range f.args {
		v := newVec(t)
		v.load(bind.DataChunkGetVector(in, bind.IdxT(i)))
		d, err := v.arrowData(0, n)
		if err != nil {
			return err
		}
		args[i] = array.MakeFromData(d)
		d.Release()
	}
	defer func() {
		for _, a := range args {
			a.Release()
		}
	}()
	res, err := f.fn(args, n)
	if err != nil {
		return err
	}
	defer res.Release()
	if res.Len() != n {
		return fmt.Errorf("%w: function %s made %d values for %d rows", ErrArguments, f.name, res.Len(), n)
	}
	if name, err := duckTypeName(res.DataType()); err != nil || name != f.ret && f.ret != "JSON" {
		return fmt.Errorf("%w: function %s made %s, not %s", ErrUnsupportedType, f.name, res.DataType(), f.ret)
	}
	return fillVector(out, res, 0)
}
