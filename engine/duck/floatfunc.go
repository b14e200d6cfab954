package duck

import (
	"fmt"
	"math"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// floatFunc is +, -, * or / of floating-point numbers, a chunk at a time, with PostgreSQL's errors: DuckDB's own operators give infinity
// and zero where those overflow and underflow. Source: utils/float.h.
type floatFunc[T float32 | float64] struct{ op byte }

// registerFloats adds skade_fadd, skade_fsub, skade_fmul and skade_fdiv of DOUBLE, and skade_radd … of FLOAT.
func (c *Conn) registerFloats() error {
	for op, name := range map[byte]string{'+': "add", '-': "sub", '*': "mul", '/': "div"} {
		two := func(t string) []string { return []string{t, t} }
		if err := c.registerEvaluator("skade_f"+name, two("DOUBLE"), "DOUBLE", false, true, floatFunc[float64]{op}); err != nil {
			return fmt.Errorf("function skade_f%s: %w", name, err)
		}
		if err := c.registerEvaluator("skade_r"+name, two("FLOAT"), "FLOAT", false, true, floatFunc[float32]{op}); err != nil {
			return fmt.Errorf("function skade_r%s: %w", name, err)
		}
	}
	return nil
}

func (f floatFunc[T]) eval(in bind.DataChunk, out bind.Vector) error {
	n := int(bind.DataChunkGetSize(in))
	a, b := bind.DataChunkGetVector(in, 0), bind.DataChunkGetVector(in, 1)
	x, y, z := slice[T](a, 0, n), slice[T](b, 0, n), slice[T](out, 0, n)
	na, nb := vec{valid: bind.VectorGetValidity(a)}, vec{valid: bind.VectorGetValidity(b)}
	nulls := na.valid != nil || nb.valid != nil
	w := &valueWriter{v: out, t: &logical{id: bind.TypeDouble}}
	for i := range z {
		if nulls && (na.null(i) || nb.null(i)) {
			w.null(i)
			continue
		}
		r, err := f.apply(x[i], y[i])
		if err != nil {
			return err
		}
		z[i] = r
	}
	return nil
}

func (f floatFunc[T]) apply(a, b T) (r T, err error) {
	switch f.op {
	case '+':
		r = a + b
	case '-':
		r = a - b
	case '*':
		r = a * b
		if r == 0 && a != 0 && b != 0 {
			return 0, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
		}
	default:
		if b == 0 && a == a {
			return 0, pgerr.New(pgerr.DivisionByZero, "division by zero")
		}
		r = a / b
		if r == 0 && a != 0 && !math.IsInf(float64(b), 0) {
			return 0, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: underflow")
		}
	}
	if r-r != 0 && math.IsInf(float64(r), 0) && !math.IsInf(float64(a), 0) && (f.op == '/' || !math.IsInf(float64(b), 0)) {
		return 0, pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
	}
	return r, nil
}
