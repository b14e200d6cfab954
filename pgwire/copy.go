package pgwire

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// copyReader is the client's COPY data as a stream. It reads messages on the connection's behalf while Execute runs.
type copyReader struct {
	w    *resultWriter
	data []byte // what is left of the last CopyData
	err  error  // sticky: io.EOF after CopyDone
}

// Read implements io.Reader. Flush and Sync are ignored, as PostgreSQL does in COPY.
func (r *copyReader) Read(p []byte) (int, error) {
	if err := r.w.lock(); err != nil {
		return 0, err
	}
	defer r.w.mu.Unlock()
	for len(r.data) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if len(p) == 0 {
			return 0, nil
		}
		r.next()
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// WriteTo implements io.WriterTo without an extra copy of the data.
func (r *copyReader) WriteTo(dst io.Writer) (total int64, err error) {
	for {
		if err := r.w.lock(); err != nil {
			return total, err
		}
		for len(r.data) == 0 && r.err == nil {
			r.next()
		}
		data, err := r.data, r.err
		r.data = nil
		r.w.mu.Unlock()
		if len(data) == 0 {
			if errors.Is(err, io.EOF) {
				return total, nil
			}
			return total, err
		}
		n, err := dst.Write(data)
		total += int64(n)
		if err != nil {
			return total, err
		}
	}
}

// next reads one message into r.data or r.err.
func (r *copyReader) next() {
	c := r.w.c
	// Notices raised while rows were read reach the client before it has sent everything.
	if c.in.buffered() < 5 && len(c.out) > 0 {
		if r.err = c.flushOut(true); r.err != nil {
			return
		}
	}
	typ, body, err := c.in.next()
	if err != nil {
		if pgerr.As(err) == nil {
			c.dead = true
			err = errGone
		}
		r.err = err
		return
	}
	switch typ {
	case msgCopyData:
		r.data = body
	case msgCopyDone:
		r.err = io.EOF
	case msgCopyFail:
		f := fields{b: body}
		reason := string(f.str())
		if err := f.end(); err != nil {
			r.err = err
			return
		}
		r.err = pgerr.Newf(pgerr.QueryCanceled, "COPY from stdin failed: %s", reason)
	case msgFlush, msgSync:
	case msgTerminate:
		r.err = errTerminate
	default:
		r.err = pgerr.Newf(pgerr.ProtocolViolation, "unexpected message type 0x%02X during COPY from stdin", typ)
	}
}

// copyWriter sends COPY data. Each Write is one CopyData message.
type copyWriter struct {
	w      *resultWriter
	closed bool
}

// Write implements io.Writer.
func (cw *copyWriter) Write(p []byte) (int, error) {
	if err := cw.w.lock(); err != nil {
		return 0, err
	}
	defer cw.w.mu.Unlock()
	c := cw.w.c
	var head [5]byte
	head[0] = msgCopyData
	binary.BigEndian.PutUint32(head[1:], uint32(len(p)+4))
	c.gather(head[:])
	c.gather(p)
	if len(c.out) >= flushAt {
		if err := c.flushOut(true); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close sends CopyDone. Closing twice is harmless.
func (cw *copyWriter) Close() error {
	if cw.closed {
		return nil
	}
	if err := cw.w.lock(); err != nil {
		return err
	}
	defer cw.w.mu.Unlock()
	cw.closed = true
	cw.w.c.send(&pgproto3.CopyDone{})
	return nil
}
