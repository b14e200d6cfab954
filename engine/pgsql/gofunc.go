package pgsql

// Value is an argument or a result of a GoFunc.
type Value struct {
	Null bool
	// I carries BIGINT, BOOLEAN (0, 1), TIMESTAMP and TIMESTAMPTZ (microseconds since 1970, UTC), DATE (days since 1970), TIME (microseconds) and INTERVAL's microseconds.
	I int64
	// Months and Days are an INTERVAL's other parts.
	Months, Days int32
	F            float64 // DOUBLE
	S            string  // VARCHAR, BLOB
	L            []Value // VARCHAR[] (results only)
}

// GoFunc is a scalar function that macros cannot express. engine/duck registers it under FuncSchema or main with this name.
type GoFunc struct {
	// Name is the DuckDB function's name; names are unique (no overloads) and begin with "skade_".
	Name string
	// Args and Ret are DuckDB type names out of BIGINT, BOOLEAN, DOUBLE, VARCHAR, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL; Ret may also be VARCHAR[].
	Args []string
	Ret  string
	// Volatile functions are not folded.
	Volatile bool
	// NullIn functions are called with NULL arguments; the others yield NULL for them without a call.
	NullIn bool
	// Fn computes one row. args is reused between calls. An error's text becomes the DuckDB error's text (it begins with RaisePrefix when it is a *pgerr.Error: see RaiseText).
	Fn func(args []Value) (Value, error)
}

// GoFuncs lists the functions to register before InitSQL runs.
func GoFuncs() []GoFunc { return nil }

// InitSQL lists the statements that define FuncSchema and its macros.
func InitSQL() []string { return nil }
