package pgsql

import (
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/scalarfn"
)

// Value and GoFunc are a scalar function's values and declaration: what macros cannot express. engine/duck registers a GoFunc under its
// name, which begins with "skade_". An *pgerr.Error it returns reaches the client as itself.
type (
	Value  = scalarfn.Value
	GoFunc = scalarfn.Func
)

// GoFuncs lists the functions to register before InitSQL runs.
func GoFuncs() []GoFunc {
	var out []GoFunc
	for _, group := range [][]GoFunc{numericFuncs, textFuncs, jsonFuncs, datetimeFuncs, formatFuncs, regexFuncs, floatFuncs} {
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
