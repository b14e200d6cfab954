package pgwire

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// portal is a Portal with what the protocol remembers about it.
type portal struct {
	Portal
	stmt Statement // nil for a cursor that SQL made
	// doneTag is the tag of a portal that ran to its end.
	doneTag string
	done    bool
	// aborted: the transaction failed after the Bind.
	aborted bool
}

var errAborted = pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")

func (c *conn) parse(body []byte) error {
	m, err := decodeParse(body)
	if err != nil {
		return err
	}
	if err := c.implicit(); err != nil {
		return err
	}
	if err := pgenc.CheckUTF8([]byte(m.query)); err != nil {
		return err
	}
	if m.name == "" {
		c.prepared.Delete("")
	} else if c.prepared.Has(m.name) {
		return pgerr.Newf(pgerr.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", m.name)
	}
	st, err := c.sess.Prepare(c.ctx, m.query, m.oids)
	if err != nil {
		return err
	}
	if err := c.prepared.Put(&PreparedStatement{Name: m.name, Statement: st, SQL: m.query, Time: time.Now()}); err != nil {
		return err
	}
	c.takeNotices()
	c.send(&pgproto3.ParseComplete{})
	return c.pushOut()
}

func (c *conn) bind(body []byte) error {
	m, err := decodeBind(body)
	if err != nil {
		return err
	}
	if err := c.implicit(); err != nil {
		return err
	}
	ps, err := c.prepared.Get(m.stmt)
	if err != nil {
		return err
	}
	st := ps.Statement
	if err := checkBind(&m, st); err != nil {
		return err
	}
	if m.portal == "" {
		c.dropPortal("")
	} else if c.portals[m.portal] != nil || c.sess.LookupPortal(m.portal) != nil {
		return pgerr.Newf(pgerr.DuplicateCursor, "cursor \"%s\" already exists", m.portal)
	}
	p, err := c.sess.Bind(c.ctx, st, m.paramFormats, m.params, m.resultFormats)
	if err != nil {
		return err
	}
	if c.portals == nil {
		c.portals = make(map[string]*portal, 2)
	}
	c.portals[m.portal] = &portal{Portal: p, stmt: st}
	c.takeNotices()
	c.send(&pgproto3.BindComplete{})
	return c.pushOut()
}

// checkBind compares the counts of a Bind with the statement's. Source: exec_bind_message.
func checkBind(m *bindMsg, st Statement) error {
	if n := len(m.paramFormats); n > 1 && n != len(m.params) {
		return pgerr.Newf(pgerr.ProtocolViolation, "bind message has %d parameter formats but %d parameters", n, len(m.params))
	}
	if want := len(st.ParamOIDs()); want != len(m.params) {
		return pgerr.Newf(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement \"%s\" requires %d", len(m.params), m.stmt, want)
	}
	if n, cols := len(m.resultFormats), st.Columns(); n > 1 && cols != nil && n != len(cols) {
		return pgerr.Newf(pgerr.ProtocolViolation, "bind message has %d result formats but query has %d columns", n, len(cols))
	}
	return nil
}

func (c *conn) describe(body []byte) error {
	kind, name, err := decodeTarget(body, "DESCRIBE")
	if err != nil {
		return err
	}
	var cols []Column
	var params []uint32
	if kind == 'S' {
		ps, err := c.prepared.Get(name)
		if err != nil {
			return err
		}
		cols, params = ps.Statement.Columns(), ps.Statement.ParamOIDs()
	} else {
		p, err := c.findPortal(name)
		if err != nil {
			return err
		}
		cols = p.Columns()
	}
	if cols != nil && c.sess.TxStatus() == 'E' {
		return errAborted
	}
	if kind == 'S' {
		c.send(&pgproto3.ParameterDescription{ParameterOIDs: params})
	}
	if cols == nil {
		c.send(&pgproto3.NoData{})
	} else {
		c.sendColumns(cols)
	}
	return c.pushOut()
}

// findPortal finds a portal of Bind or a cursor of DECLARE. Errors: 34000.
func (c *conn) findPortal(name string) (*portal, error) {
	if p := c.portals[name]; p != nil {
		return p, nil
	}
	if p := c.sess.LookupPortal(name); p != nil {
		return &portal{Portal: p}, nil
	}
	return nil, pgerr.Newf(pgerr.InvalidCursorName, "portal \"%s\" does not exist", name)
}

func (c *conn) execute(body []byte) error {
	name, maxRows, err := decodeExecute(body)
	if err != nil {
		return err
	}
	if err := c.implicit(); err != nil {
		return err
	}
	p, err := c.findPortal(name)
	if err != nil {
		return err
	}
	if p.aborted && c.sess.TxStatus() == 'E' {
		return errAborted
	}
	if p.done {
		return c.executeAgain(p, name)
	}
	c.takeNotices()
	tag, suspended, err := c.run(p.Portal, &resultWriter{c: c}, maxRows)
	if err != nil {
		return err
	}
	c.takeNotices()
	if suspended {
		c.send(&pgproto3.PortalSuspended{})
		return c.pushOut()
	}
	p.done, p.doneTag = true, tag
	if tag == "COMMIT" || tag == "ROLLBACK" {
		// The portals of the transaction go with it; this one stays to refuse a second Execute.
		for other := range c.portals {
			if c.portals[other] != p && c.sess.TxStatus() == 'I' {
				c.dropPortal(other)
			}
		}
	}
	c.complete(p.stmt, tag)
	return c.pushOut()
}

// executeAgain answers an Execute of a portal that ran to its end: no rows, or 55000 when it returns none. Source: PortalRun.
func (c *conn) executeAgain(p *portal, name string) error {
	if p.stmt != nil && p.stmt.Empty() {
		c.send(&pgproto3.EmptyQueryResponse{})
		return c.pushOut()
	}
	if p.Columns() == nil {
		return pgerr.Newf(pgerr.ObjectNotInPrerequisiteState, "portal \"%s\" cannot be run", name)
	}
	tag := p.doneTag
	if i := strings.LastIndexByte(tag, ' '); i >= 0 {
		tag = tag[:i] + " 0"
	}
	c.complete(nil, tag)
	return c.pushOut()
}

func (c *conn) closeTarget(body []byte) error {
	kind, name, err := decodeTarget(body, "CLOSE")
	if err != nil {
		return err
	}
	if kind == 'S' {
		c.prepared.Delete(name)
	} else if !c.dropPortal(name) {
		if p := c.sess.LookupPortal(name); p != nil {
			p.Close()
		}
	}
	c.send(&pgproto3.CloseComplete{})
	return c.pushOut()
}

func (c *conn) dropPortal(name string) bool {
	p, ok := c.portals[name]
	if ok {
		delete(c.portals, name)
		p.Close()
	}
	return ok
}

// pushOut writes when much has gathered; a batch is otherwise written at Flush and Sync.
func (c *conn) pushOut() error {
	if len(c.out) < flushAt {
		return nil
	}
	return c.flush()
}
