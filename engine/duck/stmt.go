package duck

import (
	"context"
	"fmt"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

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

// Stmt is a prepared statement of one Conn. It may be run again and again. It ends by Close.
type Stmt struct {
	conn     *Conn
	stmt     bind.PreparedStatement
	params   []Param
	types    []*logical
	columns  []Column
	resolved bool
	rows     bool // returns rows
}

// Prepare compiles one statement. ctx interrupts it.
func (c *Conn) Prepare(ctx context.Context, sql string) (*Stmt, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	w := c.watch(ctx)
	defer w.stop()
	s := &Stmt{conn: c}
	w.enter()
	st := bind.Prepare(c.conn, sql, &s.stmt)
	w.leave()
	if st == bind.StateError {
		err := prepareError(ctx, bind.PrepareError(s.stmt))
		bind.DestroyPrepare(&s.stmt)
		return nil, err
	}
	if err := s.describe(); err != nil {
		bind.DestroyPrepare(&s.stmt)
		return nil, err
	}
	return s, nil
}

func (s *Stmt) describe() error {
	s.resolved = true
	n := bind.NParams(s.stmt)
	s.params = make([]Param, n)
	for i := range n {
		t := newLogical(bind.ParamLogicalType(s.stmt, i+1))
		if t.name == "" || t.id == bind.TypeSQLNull {
			s.resolved = false
			continue
		}
		s.params[i] = Param{TypeOID: t.oid, DuckType: t.name}
	}
	switch bind.PreparedStatementType(s.stmt) {
	case bind.StatementTypeSelect, bind.StatementTypeExplain, bind.StatementTypeCall, bind.StatementTypeRelation:
		s.rows = true
	default:
		return nil
	}
	for i := range bind.PreparedStatementColumnCount(s.stmt) {
		t := newLogical(bind.PreparedStatementColumnLogicalType(s.stmt, i))
		name := bind.PreparedStatementColumnName(s.stmt, i)
		if t.id == bind.TypeInvalid || t.name == "" && !s.resolved {
			// One parameter that DuckDB cannot type yet (or one in a table function's argument) leaves the whole result open.
			s.resolved, s.columns, s.types = false, nil, nil
			return nil
		}
		if t.name == "" {
			return pgerr.Newf(pgerr.FeatureNotSupported, "column %q has an unsupported type", name)
		}
		s.types = append(s.types, t)
		s.columns = append(s.columns, t.column(name))
	}
	return nil
}

// NumParams is the number of parameters.
func (s *Stmt) NumParams() int { return len(s.params) }

// Params describes the parameters, $1 first.
func (s *Stmt) Params() []Param { return s.params }

// Columns describes the result; nil for a statement that returns no rows, and while Resolved is false.
func (s *Stmt) Columns() []Column { return s.columns }

// Resolved is false while a parameter's or the result's type is unknown; Rows.Columns has the types once values are bound.
func (s *Stmt) Resolved() bool { return s.resolved }

// ReturnsRows reports whether the statement has a result set.
func (s *Stmt) ReturnsRows() bool { return s.rows }

// Query starts the statement. args are bound to $1, $2 …: nil, bool, int8…int64, uint8…uint64, float32, float64, string,
// []byte, Hugeint, Decimal, Date, Time, Timestamp, TimestampTZ, Interval, UUID, List. The Conn is busy until Rows.Close.
// Cancelling ctx interrupts the statement at any time until Rows.Close. It returns when the first rows are ready.
func (s *Stmt) Query(ctx context.Context, args []any) (*Rows, error) {
	c := s.conn
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	if s.stmt.Ptr == nil {
		return nil, ErrClosed
	}
	if err := s.bind(args); err != nil {
		return nil, err
	}
	release, err := c.db.slots.acquire(ctx)
	if err != nil {
		return nil, MapError(err)
	}
	defer release()
	r := &Rows{conn: c, stmt: s, ctx: ctx, watch: c.watch(ctx)}
	if err := r.start(); err != nil {
		r.free()
		return nil, err
	}
	c.rows = r
	return r, nil
}

func (s *Stmt) bind(args []any) error {
	if len(args) != len(s.params) {
		return fmt.Errorf("%w: %d given, %d wanted", ErrArguments, len(args), len(s.params))
	}
	for i, a := range args {
		if err := bindArg(s.stmt, bind.IdxT(i+1), a); err != nil {
			return fmt.Errorf("bind $%d: %w", i+1, err)
		}
	}
	return nil
}

// Close frees the statement; an open stream of it is closed.
func (s *Stmt) Close() {
	if s == nil || s.stmt.Ptr == nil {
		return
	}
	if r := s.conn.rows; r != nil && r.stmt == s {
		r.Close()
	}
	bind.DestroyPrepare(&s.stmt)
}
