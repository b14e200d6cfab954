package pgcatalog

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Scalar is a Go function to be registered with DuckDB under its name. Names are unique. It is not volatile within a statement.
type Scalar struct {
	Name string
	// Args and Result are DuckDB type names: BOOLEAN, INTEGER, BIGINT, DOUBLE, VARCHAR, TIMESTAMPTZ, VARCHAR[].
	Args   []string
	Result string
	// Eval computes one value a row. It gets NULLs.
	Eval func(args []arrow.Array, rows int) (arrow.Array, error)
	// Call computes one value from Go values: nil, bool, int32, int64, float64, string; the result may also be time.Time or []string.
	Call func(args []any) (any, error)
}

// kind is the type of an argument or result of a catalog function.
type kind byte

const (
	kOID  kind = iota // oid and reg*
	kText             // text and name
	kAny              // oid or text: an object by number or by name
	kBool
	kInt4
	kInt8
	kFloat
	kTime
	kTexts // name[] or text[]
	kName  // a result of type name
)

var kindDuck = [...]string{kOID: "BIGINT", kText: "VARCHAR", kAny: "VARCHAR", kBool: "BOOLEAN", kInt4: "INTEGER", kInt8: "BIGINT", kFloat: "DOUBLE", kTime: "TIMESTAMPTZ",
	kTexts: "VARCHAR[]", kName: "VARCHAR"}

var kindOID = [...]uint32{kOID: pgtype.OID, kText: pgtype.Text, kAny: pgtype.Text, kBool: pgtype.Bool, kInt4: pgtype.Int4, kInt8: pgtype.Int8, kFloat: pgtype.Float8,
	kTime: pgtype.TimestampTZ, kTexts: pgtype.NameArray, kName: pgtype.Name}

// function is a catalog function in Go. The first result of run is nil for NULL.
type function struct {
	name   string
	args   []kind
	result kind
	// returns is the result's type OID where kindOID does not say it.
	returns uint32
	// nullIn functions are called with NULLs (nil); the others give NULL for them.
	nullIn bool
	run    func(sc *scope, a []any) (any, error)
}

// overload distinguishes functions of one name by their number of arguments.
func (f *function) goName() string { return fmt.Sprintf("skade_cat_%s_%d", f.name, len(f.args)) }

func oidArg(v any) uint32 {
	switch n := v.(type) {
	case int64:
		return uint32(n)
	case int32:
		return uint32(n)
	}
	return 0
}

// Scalars lists the functions behind the macros of InitSQL. Their first argument is a Binding's ID.
func (c *Catalog) Scalars() []Scalar {
	out := make([]Scalar, 0, len(functions))
	for i := range functions {
		f := &functions[i]
		s := Scalar{Name: f.goName(), Args: []string{"VARCHAR"}, Result: kindDuck[f.result]}
		for _, k := range f.args {
			s.Args = append(s.Args, kindDuck[k])
		}
		s.Call = func(args []any) (any, error) { return c.call(f, args) }
		s.Eval = func(args []arrow.Array, rows int) (arrow.Array, error) { return c.eval(f, args, rows) }
		out = append(out, s)
	}
	return out
}

func (c *Catalog) call(f *function, args []any) (any, error) {
	id, _ := args[0].(string)
	sc, err := c.scopeByID(id)
	if err != nil {
		return nil, err
	}
	return f.apply(sc, args[1:])
}

func (f *function) apply(sc *scope, args []any) (any, error) {
	if !f.nullIn {
		for _, a := range args {
			if a == nil {
				return nil, nil
			}
		}
	}
	return f.run(sc, args)
}

// eval runs a function over the rows of a chunk. The binding is the same for all rows.
func (c *Catalog) eval(f *function, args []arrow.Array, rows int) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, arrowType(kindDuck[f.result]))
	defer b.Release()
	if rows == 0 {
		return b.NewArray(), nil
	}
	id, _ := cell(args[0], 0).(string)
	sc, err := c.scopeByID(id)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(args)-1)
	for row := range rows {
		for i := range values {
			values[i] = cell(args[i+1], row)
		}
		v, err := f.apply(sc, values)
		if err != nil {
			return nil, err
		}
		if err := appendValue(b, v); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// cell reads an argument.
func cell(a arrow.Array, row int) any {
	if a.IsNull(row) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int64:
		return a.Value(row)
	case *array.Int32:
		return a.Value(row)
	case *array.String:
		return a.Value(row)
	case *array.Boolean:
		return a.Value(row)
	case *array.Float64:
		return a.Value(row)
	}
	return nil
}

// macroSQL makes one macro of all functions with a name: it casts the arguments and adds the binding.
func macroSQL(name string, fs []*function) string {
	var bodies []string
	for _, f := range fs {
		params, call := make([]string, len(f.args)), []string{"getvariable('" + Variable + "')"}
		for i, k := range f.args {
			params[i] = fmt.Sprintf("skade_p%d", i)
			call = append(call, "CAST("+params[i]+" AS "+kindDuck[k]+")")
		}
		bodies = append(bodies, "("+strings.Join(params, ", ")+") AS "+f.goName()+"("+strings.Join(call, ", ")+")")
	}
	return "CREATE OR REPLACE MACRO " + Schema + "." + name + bodies[0] + join(bodies[1:])
}

func join(more []string) string {
	if len(more) == 0 {
		return ""
	}
	return ", " + strings.Join(more, ", ")
}
