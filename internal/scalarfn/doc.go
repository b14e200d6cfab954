// Package scalarfn is the shape of an SQL scalar function written in Go: who declares one (engine/pgsql, engine) and who
// registers it with the engine that runs SQL (engine/duck) need not know each other.
package scalarfn
