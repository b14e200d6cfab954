package pgwire

import (
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgenc"
)

// simpleQuery runs a Query message: its statements one after the other, as one implicit transaction when there are several.
// An error ends it; handle then rolls back and sends ReadyForQuery.
func (c *conn) simpleQuery(body []byte) error {
	// A Query drops the unnamed statement and portal. Source: exec_simple_query.
	c.prepared.Delete("")
	c.dropPortal("")
	sql, err := decodeQuery(body)
	if err != nil {
		return err
	}
	if err := pgenc.CheckUTF8([]byte(sql)); err != nil {
		return err
	}
	stmts, err := c.sess.Split(c.ctx, sql)
	if err != nil {
		return err
	}
	if len(stmts) == 0 {
		c.takeNotices()
		c.send(&pgproto3.EmptyQueryResponse{})
		if err := c.sess.Sync(c.ctx); err != nil {
			return err
		}
		return c.ready()
	}
	defer func() {
		for _, st := range stmts {
			st.Close()
		}
	}()
	for i, st := range stmts {
		if len(stmts) > 1 {
			// Again for each statement: BEGIN … COMMIT in the middle leaves the rest to a new implicit transaction.
			if err := c.sess.BeginImplicit(c.ctx); err != nil {
				return err
			}
		}
		if err := c.runSimple(st, i == len(stmts)-1); err != nil {
			return err
		}
	}
	return c.ready()
}

// runSimple runs one statement. The last one's commit happens before its CommandComplete is sent.
func (c *conn) runSimple(st Statement, last bool) error {
	p, err := c.sess.Bind(c.ctx, st, nil, nil, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	c.takeNotices()
	w := &resultWriter{c: c}
	if cols := p.Columns(); cols != nil {
		c.sendColumns(cols)
	}
	tag, _, err := c.run(p, w, 0)
	if err != nil {
		return err
	}
	if last {
		p.Close()
		if err := c.sess.Sync(c.ctx); err != nil {
			return err
		}
	}
	c.takeNotices()
	c.complete(st, tag)
	return nil
}

func (c *conn) complete(st Statement, tag string) {
	if st != nil && st.Empty() {
		c.send(&pgproto3.EmptyQueryResponse{})
		return
	}
	c.sendTag(tag)
}

// run executes a portal and settles what it left open: COPY data that was not read, an unfinished COPY OUT.
func (c *conn) run(p Portal, w *resultWriter, maxRows int64) (tag string, suspended bool, err error) {
	tag, suspended, err = p.Execute(c.ctx, w, maxRows)
	if e := w.finish(err == nil); err == nil {
		err = e
	}
	return tag, suspended, err
}
