package pgsql

import "github.com/nordisk/skade-pg/internal/scalarfn"

// Value and GoFunc are a scalar function's values and declaration: what macros cannot express. engine/duck registers a GoFunc under its
// name, which begins with "skade_". An *pgerr.Error it returns reaches the client as itself.
type (
	Value  = scalarfn.Value
	GoFunc = scalarfn.Func
)

// GoFuncs lists the functions to register before InitSQL runs.
func GoFuncs() []GoFunc { return nil }

// InitSQL lists the statements that define FuncSchema and its macros.
func InitSQL() []string { return nil }
