package pgwire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// idleBuffer is what a waiting connection keeps to read into; most messages fit.
const idleBuffer = 1024

// readStep bounds how far the buffer grows beyond what has arrived, whatever length a message announces (W4).
const readStep = 1 << 20

// frameReader cuts the client's bytes into messages. Bytes survive interrupted reads.
type frameReader struct {
	src   net.Conn
	small [idleBuffer]byte
	buf   []byte // small[:], or a larger buffer while a message needs it
	r, w  int    // unread bytes are buf[r:w]
	limit int    // greatest message, in bytes
	// woken is called when a read is interrupted by a deadline; its error ends the read.
	woken func() error
}

func newFrameReader(src net.Conn, limit int, woken func() error) *frameReader {
	f := &frameReader{src: src, limit: limit, woken: woken}
	f.buf = f.small[:]
	return f
}

// buffered is how many bytes have arrived and not been read.
func (f *frameReader) buffered() int { return f.w - f.r }

// fill reads until n bytes are buffered. The buffer grows as bytes arrive, not by what n announces.
func (f *frameReader) fill(n int) error {
	for f.w-f.r < n {
		if f.r == f.w {
			f.r, f.w = 0, 0
		}
		if f.w == len(f.buf) {
			f.grow(n)
		}
		m, err := f.src.Read(f.buf[f.w:])
		f.w += m
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if err := f.woken(); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, io.EOF) && f.w > f.r {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// grow makes room in a full buffer for n bytes from r on: in a pooled buffer while that suffices, else not more than
// readStep beyond twice what is there.
func (f *frameReader) grow(n int) {
	have := f.w - f.r
	if n <= len(f.buf) {
		copy(f.buf, f.buf[f.r:f.w])
	} else {
		var bigger []byte
		if n <= bigBuffer {
			bigger = takeBuffer()
		} else {
			bigger = make([]byte, min(n, 2*have+readStep))
		}
		copy(bigger, f.buf[f.r:f.w])
		giveBuffer(f.buf)
		f.buf = bigger
	}
	f.r, f.w = 0, have
}

// next returns the next message. body is valid until the following call. io.EOF means that the client closed between messages.
func (f *frameReader) next() (typ byte, body []byte, err error) {
	if len(f.buf) > bigBuffer {
		f.release()
	}
	if err := f.fill(5); err != nil {
		return 0, nil, err
	}
	typ = f.buf[f.r]
	if !isFrontend(typ) {
		return typ, nil, asFatal(pgerr.Newf(pgerr.ProtocolViolation, "invalid frontend message type %d", typ))
	}
	n := int(int32(binary.BigEndian.Uint32(f.buf[f.r+1:]))) - 4
	if n < 0 || n > f.limit || n > smallLimit && hasSmallLimit(typ) {
		return typ, nil, errBadLength
	}
	// The header stays until the body is there: a cancel may end this read in the middle of a message, and the next one starts
	// at the same place.
	if err := f.fill(5 + n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return typ, nil, err
	}
	body = f.buf[f.r+5 : f.r+5+n]
	f.r += 5 + n
	return typ, body, nil
}

// release gives a large buffer back once nothing in it is needed (W6). The last message's body ends with it.
func (f *frameReader) release() {
	if f.r == f.w && len(f.buf) > idleBuffer {
		giveBuffer(f.buf)
		f.buf, f.r, f.w = f.small[:], 0, 0
	}
}

// startupPacket reads a start-up packet: a length word and a body, without a type.
func (f *frameReader) startupPacket() ([]byte, error) {
	if err := f.fill(4); err != nil {
		return nil, err
	}
	n := int(int32(binary.BigEndian.Uint32(f.buf[f.r:]))) - 4
	// Source: MAX_STARTUP_PACKET_LENGTH.
	if n < 4 || n > 10000 {
		return nil, errStartupLen
	}
	f.r += 4
	if err := f.fill(n); err != nil {
		return nil, err
	}
	body := f.buf[f.r : f.r+n]
	f.r += n
	return body, nil
}
