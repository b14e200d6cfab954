package pgwire

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Types of frontend messages. Source: PostgreSQL 15 documentation, 55.7 "Message Formats".
const (
	msgBind      = 'B'
	msgClose     = 'C'
	msgCopyData  = 'd'
	msgCopyDone  = 'c'
	msgCopyFail  = 'f'
	msgDescribe  = 'D'
	msgExecute   = 'E'
	msgFlush     = 'H'
	msgFunction  = 'F'
	msgParse     = 'P'
	msgPassword  = 'p'
	msgQuery     = 'Q'
	msgSync      = 'S'
	msgTerminate = 'X'
)

// isFrontend reports whether a client may send a message of the type at all.
func isFrontend(typ byte) bool {
	return bytes.IndexByte([]byte("BCdcfDEHFPpQSX"), typ) >= 0
}

// smallLimit bounds messages that hold no statement and no data. Source: PQ_SMALL_MESSAGE_LIMIT.
const smallLimit = 10000

// hasSmallLimit reports whether smallLimit applies to the type.
func hasSmallLimit(typ byte) bool {
	return bytes.IndexByte([]byte("CcDEHSX"), typ) >= 0
}

// fields reads the body of a message. The first failure stays; later reads give zero values.
type fields struct {
	b   []byte
	err error
}

// str reads a string up to its zero byte. The result refers to the body.
func (f *fields) str() []byte {
	if f.err != nil {
		return nil
	}
	i := bytes.IndexByte(f.b, 0)
	if i < 0 {
		f.err = errBadString
		return nil
	}
	s := f.b[:i]
	f.b = f.b[i+1:]
	return s
}

func (f *fields) take(n int) []byte {
	if f.err == nil && (n < 0 || n > len(f.b)) {
		f.err = errShortMsg
	}
	if f.err != nil {
		return nil
	}
	b := f.b[:n]
	f.b = f.b[n:]
	return b
}

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) int16() int16 {
	if b := f.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (f *fields) int32() int32 {
	if b := f.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// count reads a count of items of at least size bytes each, so that no more is allocated than was received.
func (f *fields) count(size int) int {
	n := int(uint16(f.int16()))
	if f.err == nil && n*size > len(f.b) {
		f.err = errShortMsg
	}
	if f.err != nil {
		return 0
	}
	return n
}

// end returns the first failure, or an error when bytes are left.
func (f *fields) end() error {
	if f.err == nil && len(f.b) > 0 {
		f.err = errTrailing
	}
	return f.err
}

type parseMsg struct {
	name, query string
	oids        []uint32
}

func decodeParse(b []byte) (m parseMsg, err error) {
	f := fields{b: b}
	m.name = string(f.str())
	m.query = string(f.str())
	if n := f.count(4); n > 0 {
		m.oids = make([]uint32, n)
		for i := range m.oids {
			m.oids[i] = uint32(f.int32())
		}
	}
	return m, f.end()
}

// bindMsg's params refer to the message's body.
type bindMsg struct {
	portal, stmt  string
	paramFormats  []int16
	params        [][]byte
	resultFormats []int16
}

func decodeBind(b []byte) (m bindMsg, err error) {
	f := fields{b: b}
	m.portal = string(f.str())
	m.stmt = string(f.str())
	m.paramFormats = f.formats()
	if n := f.count(4); n > 0 {
		m.params = make([][]byte, n)
		for i := range m.params {
			if size := f.int32(); size != -1 {
				m.params[i] = f.take(int(size))
			}
		}
	}
	m.resultFormats = f.formats()
	return m, f.end()
}

// formats reads a list of format codes.
func (f *fields) formats() []int16 {
	n := f.count(2)
	if n == 0 {
		return nil
	}
	out := make([]int16, n)
	for i := range out {
		out[i] = f.int16()
		if f.err == nil && out[i] != 0 && out[i] != 1 {
			f.err = pgerr.Newf(pgerr.InvalidParameterValue, "unsupported format code: %d", out[i])
		}
	}
	return out
}

// decodeTarget reads Describe's and Close's body: 'S' statement or 'P' portal, and its name.
func decodeTarget(b []byte, what string) (kind byte, name string, err error) {
	f := fields{b: b}
	kind = f.byte()
	name = string(f.str())
	if err = f.end(); err == nil && kind != 'S' && kind != 'P' {
		err = pgerr.Newf(pgerr.ProtocolViolation, "invalid %s message subtype %d", what, kind)
	}
	return kind, name, err
}

func decodeExecute(b []byte) (portal string, maxRows int64, err error) {
	f := fields{b: b}
	portal = string(f.str())
	n := f.int32()
	return portal, int64(max(n, 0)), f.end()
}

func decodeQuery(b []byte) (string, error) {
	f := fields{b: b}
	s := string(f.str())
	return s, f.end()
}

// dropNULs keeps strings of ours from ending a protocol string early.
func dropNULs(list ...*string) {
	for _, s := range list {
		if strings.IndexByte(*s, 0) >= 0 {
			*s = strings.ReplaceAll(*s, "\x00", "")
		}
	}
}
