package pgcatalog

import "github.com/apache/arrow-go/v18/arrow"

// Scalar is a Go function to be registered with DuckDB under its name. Several Scalars with one name are overloads.
type Scalar struct {
	Name string
	// Args and Result are DuckDB type names.
	Args   []string
	Result string
	// Eval computes one value a row. It gets NULLs.
	Eval func(args []arrow.Array, rows int) (arrow.Array, error)
}

// Scalars lists the functions behind the macros of InitSQL. Their first argument is a Binding's ID.
func (c *Catalog) Scalars() []Scalar { return nil }

// Bind gives the catalog functions a session's view: current is called at each use. The engine puts the ID into the DuckDB
// variable skade_cat of the connections that run the session's statements, and calls release at the end of the session.
func (c *Catalog) Bind(session Session, current func() *Snapshot) (id string, release func()) {
	return "", func() {}
}
