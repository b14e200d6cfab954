package pgsql

import (
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Value is an argument or a result of a GoFunc.
type Value struct {
	Null bool
	// I carries BIGINT, BOOLEAN (0, 1), TIMESTAMP and TIMESTAMPTZ (microseconds since 1970, UTC), DATE (days since 1970), TIME (microseconds) and INTERVAL's microseconds.
	I int64
	// Months and Days are an INTERVAL's other parts.
	Months, Days int32
	F            float64 // DOUBLE
	S            string  // VARCHAR, BLOB
	L            []Value // VARCHAR[]
}

// GoFunc is a scalar function that macros cannot express. engine/duck registers it with this name.
type GoFunc struct {
	// Name is the DuckDB function's name; names are unique (no overloads) and begin with "skade_".
	Name string
	// Args and Ret are DuckDB type names out of BIGINT, BOOLEAN, DOUBLE, VARCHAR, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL and VARCHAR[].
	Args []string
	Ret  string
	// Volatile functions are not folded.
	Volatile bool
	// NullIn functions are called with NULL arguments; the others yield NULL for them without a call.
	NullIn bool
	// Fn computes one row. args is reused between calls. An error is a *pgerr.Error; see RaiseText for callers that can only pass text.
	Fn func(args []Value) (Value, error)
}

// GoFuncs lists the functions to register before InitSQL runs.
func GoFuncs() []GoFunc {
	var out []GoFunc
	for _, group := range [][]GoFunc{numericFuncs, textFuncs, jsonFuncs, datetimeFuncs, formatFuncs, regexFuncs} {
		out = append(out, group...)
	}
	return out
}

// RaiseText is an error of a GoFunc as the text of a DuckDB error that carries its SQLSTATE.
func RaiseText(err error) string {
	e := pgerr.As(err)
	if e == nil {
		return RaisePrefix + string(pgerr.InternalError) + " " + err.Error()
	}
	text := RaisePrefix + string(e.Code) + " " + e.Message
	if e.Detail != "" {
		text += "\nDETAIL: " + e.Detail
	}
	if e.Hint != "" {
		text += "\nHINT: " + e.Hint
	}
	return text
}

// Short forms for the tables of functions.
const (
	dV = "VARCHAR"
	dI = "BIGINT"
	dD = "DOUBLE"
	dB = "BOOLEAN"
	dL = "VARCHAR[]"
	dX = "BLOB"
)

func types(t ...string) []string { return t }

// textFn is a function over texts that yields a text.
func textFn(name string, n int, f func(a []Value) (string, error)) GoFunc {
	args := make([]string, n)
	for i := range args {
		args[i] = dV
	}
	return fn(name, args, dV, func(a []Value) (Value, error) {
		s, err := f(a)
		return Value{S: s}, err
	})
}

func fn(name string, args []string, ret string, f func(a []Value) (Value, error)) GoFunc {
	return GoFunc{Name: name, Args: args, Ret: ret, Fn: f}
}

var sqlNull = Value{Null: true}

func boolValue(b bool) Value {
	if b {
		return Value{I: 1}
	}
	return Value{}
}

func textList(items []string) Value {
	v := Value{L: make([]Value, len(items))}
	for i, s := range items {
		v.L[i].S = s
	}
	return v
}
