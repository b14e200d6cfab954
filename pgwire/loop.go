package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// loop reads messages and answers them until the connection ends.
func (c *conn) loop() error {
	if err := c.ready(); err != nil {
		return err
	}
	for {
		if c.in.buffered() < 5 {
			if err := c.waitForClient(); err != nil {
				return err
			}
		} else {
			c.between()
		}
		typ, body, err := c.in.next()
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgerr.As(err) != nil {
				return err
			}
			c.dead = true
			return errGone
		}
		if err := c.begin(); err != nil {
			return err
		}
		if c.told {
			c.told = false
			c.sess.Idle(false)
		}
		if err := c.handle(typ, body); err != nil {
			return err
		}
	}
}

// waitForClient prepares for a read that may block. In a batch nothing is flushed unasked, as in PostgreSQL.
func (c *conn) waitForClient() error {
	midBatch := c.inBatch || c.skip
	if !midBatch {
		if err := c.idle(); err != nil {
			return err
		}
	}
	return c.rest(!midBatch && c.sess.TxStatus() == 'I', midBatch)
}

// handle answers one message. A returned error ends the connection.
func (c *conn) handle(typ byte, body []byte) error {
	if typ == msgTerminate {
		return errTerminate
	}
	if c.skip && typ != msgSync {
		return nil
	}
	err := c.guard(func() error { return c.dispatch(typ, body) })
	if err == nil {
		return nil
	}
	if err := c.failed(err); err != nil {
		return err
	}
	switch typ {
	case msgQuery, msgFunction:
		return c.endQuery()
	case msgSync:
		return c.ready()
	}
	c.skip = true
	return nil
}

func (c *conn) dispatch(typ byte, body []byte) error {
	switch typ {
	case msgQuery:
		return c.simpleQuery(body)
	case msgParse:
		return c.parse(body)
	case msgBind:
		return c.bind(body)
	case msgDescribe:
		return c.describe(body)
	case msgExecute:
		return c.execute(body)
	case msgClose:
		return c.closeTarget(body)
	case msgFlush:
		return c.flush()
	case msgSync:
		return c.sync(body)
	case msgFunction:
		return errNoFastpath
	case msgCopyData, msgCopyDone, msgCopyFail:
		// The rest of a COPY that failed (W5).
		return nil
	}
	return asFatal(pgerr.Newf(pgerr.ProtocolViolation, "invalid frontend message type %d", typ))
}

// guard turns a panic into XX000 (S3: no input ends the process).
func (c *conn) guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error().Str("panic", fmt.Sprint(r)).Bytes("stack", debug.Stack()).Msg("panic in a statement")
			err = pgerr.New(pgerr.InternalError, "internal error")
		}
	}()
	return f()
}

// ours reports codes of errors that are the server's, not the client's: the log tells the operator about them.
func ours(code pgerr.Code) bool {
	if len(code) < 2 {
		return true
	}
	switch code[:2] {
	case "XX", "58", "53", "F0":
		return true
	}
	return code == pgerr.StatementCompletionUnknown
}

// failed reports a statement's error to the session and to the client. A returned error ends the connection.
func (c *conn) failed(err error) error {
	if errors.Is(err, errGone) || errors.Is(err, errTerminate) || c.dead {
		return err
	}
	// An EOF below an SQL error is a file's, not the client's.
	if pgerr.As(err) == nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
		return err
	}
	c.mu.Lock()
	term := c.mu.terminate
	c.mu.Unlock()
	if term != nil {
		return term
	}
	e := clientError(err)
	if e.Severity == pgerr.SevFatal {
		return e
	}
	if ours(e.Code) {
		c.log.Error().Err(err).Str("code", string(e.Code)).Msg("statement failed")
	}
	if err := c.guard(func() error { c.sess.Fail(err); return nil }); err != nil {
		return asFatal(clientError(err))
	}
	for _, p := range c.portals {
		p.aborted = true
	}
	c.takeNotices()
	c.out = appendError(c.out, e)
	return nil
}

// sync ends a batch.
func (c *conn) sync(body []byte) error {
	if len(body) > 0 {
		return errTrailing
	}
	if err := c.sess.Sync(c.ctx); err != nil {
		return err
	}
	return c.ready()
}

// endQuery ends a simple query after an error: the implicit transaction is rolled back.
func (c *conn) endQuery() error {
	err := c.guard(func() error { return c.sess.Sync(c.ctx) })
	if err != nil {
		c.log.Debug().Err(err).Msg("rollback after an error")
	}
	return c.ready()
}

// ready sends what is queued and ReadyForQuery, and drops the portals of a transaction that ended.
func (c *conn) ready() error {
	status := c.sess.TxStatus()
	if status == 'I' {
		c.closePortals()
	}
	c.skip, c.inBatch = false, false
	if err := c.sendQueued(status == 'I'); err != nil {
		return err
	}
	c.send(&pgproto3.ReadyForQuery{TxStatus: status})
	c.between()
	// Before the client knows it: what it asks next, pg_stat_activity too, must not find this statement running.
	c.told = true
	c.sess.Idle(true)
	return c.flush()
}

func (c *conn) closePortals() {
	for name, p := range c.portals {
		delete(c.portals, name)
		p.Close()
	}
}

// implicit opens the implicit transaction when none is open: at a batch's first message, and again after a COMMIT inside it.
func (c *conn) implicit() error {
	c.inBatch = true
	return c.sess.BeginImplicit(c.ctx)
}

// sendColumns sends a RowDescription. It is written here, as CommandComplete is: both go out with every execution of most drivers.
func (c *conn) sendColumns(cols []Column) {
	start := c.beginMessage('T')
	b := binary.BigEndian.AppendUint16(c.out, uint16(len(cols)))
	for i := range cols {
		col := &cols[i]
		b = append(append(b, withoutNUL(col.Name)...), 0)
		b = binary.BigEndian.AppendUint32(b, col.TableOID)
		b = binary.BigEndian.AppendUint16(b, uint16(col.AttNum))
		b = binary.BigEndian.AppendUint32(b, col.TypeOID)
		b = binary.BigEndian.AppendUint16(b, uint16(col.TypeLen))
		b = binary.BigEndian.AppendUint32(b, uint32(col.TypeMod))
		b = binary.BigEndian.AppendUint16(b, uint16(col.Format))
	}
	c.out = b
	c.endMessage(start)
}

// sendTag sends a CommandComplete.
func (c *conn) sendTag(tag string) {
	start := c.beginMessage('C')
	c.out = append(append(c.out, withoutNUL(tag)...), 0)
	c.endMessage(start)
}

// beginMessage begins a message in the output; endMessage writes its length.
func (c *conn) beginMessage(typ byte) (start int) {
	start = len(c.out)
	c.out = append(c.out, typ, 0, 0, 0, 0)
	return start
}

func (c *conn) endMessage(start int) {
	binary.BigEndian.PutUint32(c.out[start+1:], uint32(len(c.out)-start-1))
}

func withoutNUL(s string) string {
	dropNULs(&s)
	return s
}
