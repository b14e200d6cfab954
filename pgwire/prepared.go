package pgwire

import (
	"time"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Prepared is a connection's named and unnamed prepared statements: SQL's PREPARE and the protocol's Parse share one
// namespace. The session finds it in Startup. It belongs to the connection's goroutine, like the session.
type Prepared struct {
	m map[string]*PreparedStatement
}

// PreparedStatement is an entry of Prepared, with what pg_prepared_statements shows.
type PreparedStatement struct {
	Name      string
	Statement Statement
	SQL       string
	Time      time.Time
	FromSQL   bool
}

// Get returns a statement; "" is the unnamed one. Errors: 26000.
func (p *Prepared) Get(name string) (*PreparedStatement, error) {
	if st, ok := p.m[name]; ok {
		return st, nil
	}
	if name == "" {
		return nil, pgerr.New(pgerr.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerr.Newf(pgerr.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", name)
}

// Has reports whether a named statement exists, so that a second one can be refused before it is prepared.
func (p *Prepared) Has(name string) bool {
	_, ok := p.m[name]
	return ok
}

// Put stores a statement. The unnamed one replaces its predecessor; a name in use is 42P05.
func (p *Prepared) Put(st *PreparedStatement) error {
	if old, ok := p.m[st.Name]; ok {
		if st.Name != "" {
			return pgerr.Newf(pgerr.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", st.Name)
		}
		old.Statement.Close()
	}
	if p.m == nil {
		p.m = make(map[string]*PreparedStatement, 4)
	}
	p.m[st.Name] = st
	return nil
}

// Delete closes and forgets a statement; it reports whether there was one.
func (p *Prepared) Delete(name string) bool {
	st, ok := p.m[name]
	if ok {
		delete(p.m, name)
		st.Statement.Close()
	}
	return ok
}

// DeleteAll is DEALLOCATE ALL.
func (p *Prepared) DeleteAll() {
	for name := range p.m {
		p.Delete(name)
	}
}

// All lists the named statements in no order.
func (p *Prepared) All() []*PreparedStatement {
	out := make([]*PreparedStatement, 0, len(p.m))
	for name, st := range p.m {
		if name != "" {
			out = append(out, st)
		}
	}
	return out
}
