package pgcatalog

import (
	"strconv"
	"sync"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Variable is the DuckDB variable that holds the ID of the binding of the session whose statement runs.
const Variable = "skade_cat"

// bindings are the sessions that catalog functions can be called from.
type bindings struct {
	mu struct {
		sync.RWMutex
		next int64
		byID map[string]*binding
	}
}

type binding struct {
	session Session
	current func() *Snapshot
}

// Bind gives the catalog functions a session's view: current is called at each use, from DuckDB's threads. The engine puts the ID
// into the DuckDB variable Variable of the connections that run the session's statements, and calls release at the session's end.
//
// DuckDB folds calls with constant arguments when it prepares a statement: one that was prepared at another cut must be prepared again.
func (c *Catalog) Bind(session Session, current func() *Snapshot) (id string, release func()) {
	b := &c.bindings
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.byID == nil {
		b.mu.byID = map[string]*binding{}
	}
	b.mu.next++
	id = "c" + strconv.FormatInt(b.mu.next, 10)
	b.mu.byID[id] = &binding{session, current}
	return id, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.mu.byID, id)
	}
}

// scopeByID gives the scope of a binding.
func (c *Catalog) scopeByID(id string) (*scope, error) {
	c.bindings.mu.RLock()
	b := c.bindings.mu.byID[id]
	c.bindings.mu.RUnlock()
	if b == nil {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "no session is bound to this statement")
	}
	return b.current().scopeOf(b.session), nil
}
