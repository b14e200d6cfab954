package pgwire

import (
	"io"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// resultWriter is the Writer of one Execute. COPY's streams may be used from a goroutine of the portal's until Execute returns;
// mu keeps a late one out of the connection afterwards.
type resultWriter struct {
	c   *conn
	in  *copyReader
	out *copyWriter
	mu  struct {
		sync.Mutex
		done bool
	}
}

var errLateWrite = pgerr.New(pgerr.InternalError, "result written after the statement ended")

// lock takes the writer for one call; it fails after Execute has returned.
func (w *resultWriter) lock() error {
	w.mu.Lock()
	if w.mu.done {
		w.mu.Unlock()
		return errLateWrite
	}
	return nil
}

// Rows implements Writer. Rows of one call of some size go to the socket without a copy.
func (w *resultWriter) Rows(msgs []byte, _ int) error {
	if err := w.lock(); err != nil {
		return err
	}
	defer w.mu.Unlock()
	return w.push(msgs)
}

// push sends b after what has gathered.
func (w *resultWriter) push(b []byte) error {
	c := w.c
	if len(c.out)+len(b) <= flushAt {
		c.gather(b)
		return nil
	}
	if err := c.flushOut(true); err != nil {
		return err
	}
	if len(b) < flushAt {
		c.gather(b)
		return nil
	}
	if c.dead {
		return errGone
	}
	n, err := c.write(b, true)
	if err != nil && !c.dead && n > 0 {
		// The cut message has to be finished before the error can follow.
		c.out = append(c.out, restOfMessage(b, n)...)
	}
	return err
}

// gather appends b, in a pooled buffer when it does not fit the one at hand.
func (c *conn) gather(b []byte) {
	if need := len(c.out) + len(b); need > cap(c.out) && need > maxIdleOut && need <= bigBuffer {
		big := append(takeBuffer()[:0], c.out...)
		giveBuffer(c.out)
		c.out = big
	}
	c.out = append(c.out, b...)
}

// restOfMessage is the tail of the message that ends after position n of b; empty when n is a border.
func restOfMessage(b []byte, n int) []byte {
	for i := 0; i < n; {
		size := 1 + (int(b[i+1])<<24 | int(b[i+2])<<16 | int(b[i+3])<<8 | int(b[i+4]))
		if i+size > n {
			return b[n : i+size]
		}
		i += size
	}
	return nil
}

// Describe implements Writer.
func (w *resultWriter) Describe(cols []Column) error {
	if err := w.lock(); err != nil {
		return err
	}
	defer w.mu.Unlock()
	w.c.sendColumns(cols)
	return nil
}

// Notice implements Writer.
func (w *resultWriter) Notice(n *pgerr.Error) {
	if w.lock() != nil {
		return
	}
	defer w.mu.Unlock()
	e := *n
	if e.Severity == "" || e.Severity == pgerr.SevError || e.Severity == pgerr.SevFatal {
		e.Severity = pgerr.SevNotice
	}
	w.c.out = appendError(w.c.out, &e)
}

// ParameterStatus implements Writer.
func (w *resultWriter) ParameterStatus(name, value string) {
	if w.lock() != nil {
		return
	}
	defer w.mu.Unlock()
	dropNULs(&name, &value)
	w.c.send(&pgproto3.ParameterStatus{Name: name, Value: value})
}

// CopyIn implements Writer.
func (w *resultWriter) CopyIn(overall byte, columns []int16) (io.Reader, error) {
	if err := w.lock(); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	w.c.send(&pgproto3.CopyInResponse{OverallFormat: overall, ColumnFormatCodes: formatCodes(columns)})
	if err := w.c.flushOut(true); err != nil {
		return nil, err
	}
	w.in = &copyReader{w: w}
	return w.in, nil
}

// CopyOut implements Writer.
func (w *resultWriter) CopyOut(overall byte, columns []int16) (io.WriteCloser, error) {
	if err := w.lock(); err != nil {
		return nil, err
	}
	defer w.mu.Unlock()
	w.c.send(&pgproto3.CopyOutResponse{OverallFormat: overall, ColumnFormatCodes: formatCodes(columns)})
	w.out = &copyWriter{w: w}
	return w.out, nil
}

func formatCodes(columns []int16) []uint16 {
	out := make([]uint16, len(columns))
	for i, f := range columns {
		out[i] = uint16(f)
	}
	return out
}

// finish ends the writer when Execute has returned: what is left of COPY's input is read and dropped when the statement
// succeeded (after an error the message loop drops it), and a COPY output not closed is.
func (w *resultWriter) finish(ok bool) error {
	var err error
	if ok && w.in != nil {
		if _, e := io.Copy(io.Discard, w.in); e != nil {
			err = e
		}
	}
	if ok && err == nil && w.out != nil {
		err = w.out.Close()
	}
	if !w.mu.TryLock() {
		// A goroutine of the portal still waits for the client: get it out of the read.
		w.c.interruptRead(errUserCancel)
		w.mu.Lock()
	}
	w.mu.done = true
	w.mu.Unlock()
	return err
}
