package duck

import "context"

// Conn is a pooled connection. It is used by one goroutine at a time and runs one stream at a time.
type Conn struct{}

// Close resets the session settings and returns the connection to the pool. An open stream is closed.
func (c *Conn) Close() {}

// SetTimeZone sets the session time zone by IANA name or fixed offset ("UTC", "Europe/Oslo").
func (c *Conn) SetTimeZone(ctx context.Context, name string) error { return ErrClosed }

// Set changes a session setting of DuckDB by its DuckDB name. The value is quoted.
func (c *Conn) Set(ctx context.Context, name, value string) error { return ErrClosed }

// Exec runs statements that return no rows and returns the number of changed rows of the last one.
func (c *Conn) Exec(ctx context.Context, sql string) (int64, error) { return 0, ErrClosed }

// Prepare compiles one statement.
func (c *Conn) Prepare(ctx context.Context, sql string) (*Stmt, error) { return nil, ErrClosed }
