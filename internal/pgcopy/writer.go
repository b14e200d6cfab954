package pgcopy

import (
	"bytes"
	"encoding/binary"
)

// Writer formats rows.
type Writer struct {
	o     Options
	names []string
}

// NewWriter formats rows of the named columns.
func NewWriter(o Options, names []string) *Writer { return &Writer{o: o, names: names} }

// AppendHeader appends the header line, if the options ask for one.
func (w *Writer) AppendHeader(dst []byte) []byte {
	if !w.o.Header {
		return dst
	}
	for i, n := range w.names {
		if i > 0 {
			dst = append(dst, w.o.Delimiter)
		}
		dst = w.appendField(dst, []byte(n), i, false)
	}
	return append(dst, '\n')
}

// AppendDataRows appends one line per DataRow message of text fields in msgs.
func (w *Writer) AppendDataRows(dst, msgs []byte) []byte {
	for len(msgs) > 0 {
		size := 1 + int(binary.BigEndian.Uint32(msgs[1:]))
		dst = w.appendDataRow(dst, msgs[5:size])
		msgs = msgs[size:]
	}
	return dst
}

func (w *Writer) appendDataRow(dst, body []byte) []byte {
	n := int(binary.BigEndian.Uint16(body))
	body = body[2:]
	for i := range n {
		if i > 0 {
			dst = append(dst, w.o.Delimiter)
		}
		size := int32(binary.BigEndian.Uint32(body))
		body = body[4:]
		if size < 0 {
			dst = append(dst, w.o.Null...)
			continue
		}
		dst = w.appendField(dst, body[:size], i, at(w.o.ForceQuote, i))
		body = body[size:]
	}
	return append(dst, '\n')
}

func (w *Writer) appendField(dst, v []byte, _ int, force bool) []byte {
	if !w.o.CSV {
		return w.appendText(dst, v)
	}
	// Source: CopyAttributeOutCSV.
	quote := force || string(v) == w.o.Null || len(w.names) == 1 && bytes.Equal(v, endMarker)
	if !quote {
		for _, c := range v {
			if c == w.o.Delimiter || c == w.o.Quote || c == '\n' || c == '\r' {
				quote = true
				break
			}
		}
	}
	if !quote {
		return append(dst, v...)
	}
	dst = append(dst, w.o.Quote)
	for _, c := range v {
		if c == w.o.Quote || c == w.o.Escape {
			dst = append(dst, w.o.Escape)
		}
		dst = append(dst, c)
	}
	return append(dst, w.o.Quote)
}

// appendText escapes as CopyAttributeOutText does.
func (w *Writer) appendText(dst, v []byte) []byte {
	for _, c := range v {
		switch c {
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\v':
			dst = append(dst, '\\', 'v')
		case '\\':
			dst = append(dst, '\\', '\\')
		default:
			if c == w.o.Delimiter {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
	}
	return dst
}
