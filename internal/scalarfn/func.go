package scalarfn

// Value is an argument or a result of a Func. Which fields count is the declared type's business.
type Value struct {
	Null bool
	// I carries integers, BOOLEAN (0, 1), TIMESTAMP and TIMESTAMPTZ (microseconds since 1970, UTC), DATE (days since 1970), TIME
	// (microseconds) and INTERVAL's microseconds.
	I int64
	// Months and Days are an INTERVAL's other parts.
	Months, Days int32
	F            float64 // DOUBLE
	S            string  // VARCHAR, BLOB, JSON
	L            []Value // lists
}

// Func is a scalar function that computes a value at a time.
type Func struct {
	// Name is the SQL engine's name of it; names are unique: there is no overloading.
	Name string
	// Args and Ret are DuckDB type names out of BOOLEAN, SMALLINT, INTEGER, BIGINT, DOUBLE, VARCHAR, BLOB, DATE, TIME, TIMESTAMP, TIMESTAMPTZ,
	// INTERVAL and lists of them.
	Args []string
	Ret  string
	// Volatile functions are not folded.
	Volatile bool
	// NullIn functions see NULL arguments; the others yield NULL for them without a call.
	NullIn bool
	// Fn computes one row. args is reused between calls; threads call it side by side. An error ends the statement and comes
	// out of it as itself.
	Fn func(args []Value) (Value, error)
}
