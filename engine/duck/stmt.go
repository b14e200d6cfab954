package duck

import "context"

// Column describes one result column.
type Column struct {
	Name    string
	TypeOID uint32
	TypeLen int16
	TypeMod int32
	// DuckType is DuckDB's name of the type, as CAST takes it ("DECIMAL(18,3)", "BIGINT[]").
	DuckType string
}

// Param describes one parameter.
type Param struct {
	// TypeOID is 0 when DuckDB could not infer the type: prepare again with a cast around $n.
	TypeOID  uint32
	DuckType string
}

// Stmt is a prepared statement of one Conn.
type Stmt struct{}

// NumParams is the highest parameter number.
func (s *Stmt) NumParams() int { return 0 }

// Params describes the parameters, $1 first.
func (s *Stmt) Params() []Param { return nil }

// Columns describes the result; nil for a statement that returns no rows.
func (s *Stmt) Columns() []Column { return nil }

// Resolved is false when a parameter type is unknown and so the columns are not settled.
func (s *Stmt) Resolved() bool { return false }

// Query starts the statement. args are bound to $1, $2 …: nil, bool, int8…int64, uint8…uint64, float32, float64, string,
// []byte, Hugeint, Decimal, Date, Time, Timestamp, TimestampTZ, Interval, UUID, List. The Conn is busy until Rows.Close.
// Cancelling ctx interrupts the statement at any time until Rows.Close.
func (s *Stmt) Query(ctx context.Context, args []any) (*Rows, error) { return nil, ErrClosed }

// Close frees the statement.
func (s *Stmt) Close() {}
