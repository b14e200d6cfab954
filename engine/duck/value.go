package duck

// The Go types of bound values that have no built-in counterpart.
type (
	// Hugeint is a 128-bit two's complement integer.
	Hugeint struct {
		Hi int64
		Lo uint64
	}
	// Decimal is Value × 10^-Scale of at most Width digits.
	Decimal struct {
		Value        Hugeint
		Width, Scale uint8
	}
	// Date is days since 1970-01-01.
	Date int32
	// Time is microseconds since midnight.
	Time int64
	// Timestamp is microseconds since 1970-01-01, without zone.
	Timestamp int64
	// TimestampTZ is microseconds since 1970-01-01 UTC.
	TimestampTZ int64
	// Interval is PostgreSQL's: months, days and microseconds, each for itself.
	Interval struct {
		Months, Days int32
		Micros       int64
	}
	// UUID is the 16 bytes in text order.
	UUID [16]byte
	// List is an array value. Elem is the DuckDB type name of the elements, which are values of the types that Query takes.
	List struct {
		Elem   string
		Values []any
	}
)
