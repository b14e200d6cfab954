package pgwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// conn is one client's connection. Fields outside mu belong to its goroutine.
type conn struct {
	srv *Server
	raw net.Conn // the socket
	nc  net.Conn // raw, or TLS over it
	log zerolog.Logger
	in  *frameReader
	out []byte // bytes not sent yet

	tls    bool
	minor  int // protocol minor version
	pid    int32
	key    []byte
	secret uint32

	ctx      context.Context
	cancel   context.CancelFunc
	sess     Session
	prepared Prepared
	portals  map[string]*portal

	// skip: an error happened in a batch, messages are dropped up to Sync.
	skip bool
	// inBatch: messages of the extended protocol came since the last ReadyForQuery.
	inBatch bool
	dead    bool // the socket failed; nothing more can be sent
	told    bool // the session knows that the connection is idle

	mu struct {
		sync.Mutex
		waiting     bool    // in a read between messages
		outside     bool    // outside a transaction: notifications may go out
		busy        bool    // a message is being handled
		midBatch    bool    // between messages of a batch: a drain waits for Sync
		writing     bool    // in a write
		mayBreak    bool    // that a cancel may interrupt
		deadline    bool    // the write deadline was moved by a cancel
		session     Session // sess while it may be cancelled
		cancelled   bool    // a cancel came while the statement was blocked in a write or a COPY read
		cause       *pgerr.Error
		draining    bool
		terminate   *pgerr.Error
		closed      bool
		notify      [][]byte // encoded NotificationResponses
		notifyBytes int
		news        bool    // a Notifier has some, too
		status      []Param // ParameterStatus to send
		notices     []byte  // encoded NoticeResponses
	}
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, raw: nc, nc: nc, log: s.o.Logger.With().Str("remote", remoteAddr(nc)).Logger()}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.in = newFrameReader(nc, s.o.MaxMessage, c.woken)
	return c
}

// remoteAddr is the peer's address, "" for one without (a Unix socket pair).
func remoteAddr(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// serve is the connection's goroutine. The ways it ends are listed in the package's documentation.
func (c *conn) serve() {
	defer c.close()
	defer func() {
		if r := recover(); r != nil {
			c.log.Error().Str("panic", fmt.Sprint(r)).Bytes("stack", debug.Stack()).Msg("panic outside a statement")
			c.sendFatal(asFatal(pgerr.New(pgerr.InternalError, "internal error")))
		}
	}()
	err := c.start()
	if err == nil {
		err = c.loop()
	}
	switch e := pgerr.As(err); {
	case e != nil:
		c.log.Debug().Str("code", string(e.Code)).Msg(e.Message)
		c.sendFatal(asFatal(e))
	case err == nil, errors.Is(err, errTerminate), errors.Is(err, io.EOF), errors.Is(err, errGone):
	default:
		c.log.Debug().Err(err).Msg("connection ended")
	}
}

// sendFatal sends a last message. It waits for a stuck client only a moment.
func (c *conn) sendFatal(e *pgerr.Error) {
	if c.dead {
		return
	}
	c.out = appendError(c.out, e)
	_ = c.raw.SetWriteDeadline(time.Now().Add(killGrace / 2))
	_, _ = c.nc.Write(c.out)
	c.out = nil
}

func (c *conn) close() {
	c.mu.Lock()
	c.mu.closed = true
	c.mu.session = nil
	c.mu.notify, c.mu.notifyBytes = nil, 0
	c.mu.Unlock()
	c.cancel()
	if c.sess != nil {
		c.closeSession()
	}
	if c.tls && !c.dead {
		// Close of a TLS connection sends an alert.
		_ = c.raw.SetWriteDeadline(time.Now().Add(time.Second))
		_ = c.nc.Close()
	}
	_ = c.raw.Close()
}

func (c *conn) closeSession() {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error().Str("panic", fmt.Sprint(r)).Bytes("stack", debug.Stack()).Msg("panic in session close")
		}
	}()
	c.closePortals()
	c.prepared.DeleteAll()
	if err := c.sess.Close(); err != nil {
		c.log.Warn().Err(err).Msg("session close")
	}
}

// send appends a message to what goes out.
func (c *conn) send(m pgproto3.BackendMessage) { c.out = encode(c.out, m) }

// flushAt is how many bytes gather before they are written.
const flushAt = 32 << 10

// maxIdleOut is the greatest output buffer that an idle connection keeps.
const maxIdleOut = 4 << 10

// flush writes everything gathered.
func (c *conn) flush() error { return c.flushOut(false) }

// flushOut is flush; mayBreak lets a cancel end it, with the cancel's cause, while bytes are left for later.
func (c *conn) flushOut(mayBreak bool) error {
	if c.dead {
		return errGone
	}
	n, err := c.write(c.out, mayBreak)
	c.out = c.out[:copy(c.out, c.out[n:])]
	return err
}

// write writes b. Terminate bounds it in time; a cancel ends it when mayBreak, and n says how much of b was written. The
// caller keeps the rest: half a message on the wire has to be finished before the next one.
func (c *conn) write(b []byte, mayBreak bool) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	if mayBreak && c.mu.cancelled {
		c.mu.cancelled = false
		defer c.mu.Unlock()
		return 0, c.mu.cause
	}
	switch {
	case c.mu.terminate != nil:
		_ = c.raw.SetWriteDeadline(time.Now().Add(killGrace / 4))
	case c.mu.deadline:
		c.mu.deadline = false
		_ = c.raw.SetWriteDeadline(time.Time{})
	}
	c.mu.writing, c.mu.mayBreak = true, mayBreak && !c.tls
	c.mu.Unlock()
	n, err = c.nc.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.writing = false
	if err == nil {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && c.mu.mayBreak && c.mu.terminate == nil && c.mu.cancelled {
		c.mu.cancelled = false
		return n, c.mu.cause
	}
	c.dead = true
	return n, errGone
}

// idle is called before a read between messages: what is queued goes out, buffers are let go.
func (c *conn) idle() error {
	if err := c.flush(); err != nil {
		return err
	}
	c.letGo()
	c.in.release()
	return nil
}

// letGo gives the output's buffer back when it is a large one (W6).
func (c *conn) letGo() {
	if len(c.out) == 0 && cap(c.out) > maxIdleOut {
		giveBuffer(c.out)
		c.out = nil
	}
}
