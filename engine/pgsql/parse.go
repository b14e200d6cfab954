package pgsql

import pg_query "github.com/pganalyze/pg_query_go/v6"

// Stmt is one parsed statement.
type Stmt struct {
	Kind Kind
	// Tag is PostgreSQL's command tag without counts: "SELECT", "CREATE TABLE" …
	Tag string
	// Text is the statement as it was sent, without the semicolon and surrounding white space.
	Text string
	// Node is the tree.
	Node *pg_query.Node

	src *source
}

type source struct{}

// Parse parses a query string into its statements. An empty string gives none. A syntax error anywhere is 42601 with PostgreSQL's
// message and position, and no statement.
func Parse(sql string) ([]*Stmt, error) { return nil, nil }

// Analyze binds and rewrites a SELECT, VALUES, TABLE, INSERT, UPDATE or DELETE. paramOIDs are the client's parameter types (0 = infer), possibly shorter than needed.
func Analyze(stmt *Stmt, r Resolver, paramOIDs []uint32) (*Query, error) { return nil, nil }

// Render writes the DuckDB text. rel gives the FROM item of source i, without alias: a table function call or a parenthesised query.
func (q *Query) Render(rel func(i int, use *RelUse) string) string { return "" }
