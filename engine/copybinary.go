package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgcopy"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
)

// binarySignature opens a stream of COPY's binary format. Source: PostgreSQL 15 manual, COPY, "Binary Format".
const binarySignature = "PGCOPY\n\xff\r\n\x00"

// copyToBinary streams rows in COPY's binary format: a tuple is what a DataRow message of binary fields holds.
func (s *session) copyToBinary(ctx context.Context, b binding, w pgwire.Writer, u *pgsql.Copy) (int64, error) {
	q, err := s.copyQuery(ctx, b, u)
	if err != nil {
		return 0, err
	}
	q.cols = slices.Clone(q.cols)
	formats := make([]int16, len(q.cols))
	for i := range q.cols {
		q.cols[i].Format, formats[i] = 1, 1
	}
	src, err := s.copySource(ctx, q, w)
	if err != nil {
		return 0, err
	}
	defer src.close()
	out, err := w.CopyOut(1, formats)
	if err != nil {
		return 0, err
	}
	head := append([]byte(binarySignature), make([]byte, 8)...) // no flags, no extension
	var rows int64
	var msgs []byte
	for {
		var n int
		var done bool
		msgs, n, done, err = src.appendRows(ctx, msgs[:0], 0)
		if err != nil {
			return 0, err
		}
		for rest := msgs; len(rest) > 0; {
			size := 1 + int(binary.BigEndian.Uint32(rest[1:]))
			if _, err := out.Write(append(head, rest[5:size]...)); err != nil {
				return 0, err
			}
			head, rest = head[:0], rest[size:]
		}
		rows += int64(n)
		if done {
			if _, err := out.Write(append(head, 0xff, 0xff)); err != nil {
				return 0, err
			}
			return rows, out.Close()
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// copyReader gives the rows of COPY FROM as text fields.
type copyReader interface {
	Next() ([]pgcopy.Field, error) // io.EOF at the end
	Line() int64
	// Locate adds the last row's place to an error that names none.
	Locate(err error) error
}

// Locate implements copyReader.
func (r *binaryReader) Locate(err error) error {
	e := pgerr.As(err)
	if e == nil || e.Where != "" {
		return err
	}
	c := *e
	c.Where = fmt.Sprintf("COPY %s, line %d", r.table, r.Line())
	return &c
}

// binaryReader reads COPY's binary format.
type binaryReader struct {
	in     *bufio.Reader
	table  string
	types  []uint32
	names  []string
	style  pgenc.Style
	fields []pgcopy.Field
	buf    []byte
	row    int64
}

func newBinaryReader(src io.Reader, into *copyInto, style pgenc.Style) *binaryReader {
	r := &binaryReader{in: bufio.NewReaderSize(src, 64<<10), table: into.rel.Name, names: into.names, style: style}
	for _, n := range into.names {
		i := slices.IndexFunc(into.rel.Columns, func(c pgsql.RelColumn) bool { return c.Name == n })
		r.types = append(r.types, into.rel.Columns[i].Type)
	}
	return r
}

func (r *binaryReader) Line() int64 { return r.row }

func badBinary(format string, args ...any) error {
	return pgerr.Newf(pgerr.BadCopyFileFormat, format, args...)
}

// full reads n bytes into a slice that is good until the next call.
func (r *binaryReader) full(n int, what string) ([]byte, error) {
	r.buf = slices.Grow(r.buf[:0], min(n, 1<<20))[:0]
	for len(r.buf) < n { // piecewise: a length that lies must not allocate
		at, step := len(r.buf), min(n-len(r.buf), 1<<20)
		r.buf = slices.Grow(r.buf, step)[:at+step]
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, badBinary("%s", what)
			}
			return nil, err
		}
	}
	return r.buf, nil
}

func (r *binaryReader) header() error {
	head, err := r.full(len(binarySignature), "COPY file signature not recognized")
	if err != nil {
		return err
	}
	if string(head) != binarySignature {
		return badBinary("COPY file signature not recognized")
	}
	head, err = r.full(8, "invalid COPY file header (missing flags)")
	if err != nil {
		return err
	}
	flags, extra := binary.BigEndian.Uint32(head), int32(binary.BigEndian.Uint32(head[4:]))
	switch {
	case flags&(1<<16) != 0:
		return badBinary("invalid COPY file header (WITH OIDS)")
	case flags>>16 != 0:
		return badBinary("unrecognized critical flags in COPY file header")
	case extra < 0:
		return badBinary("invalid COPY file header (missing length)")
	}
	_, err = r.full(int(extra), "invalid COPY file header (wrong length)")
	return err
}

// Next reads a tuple.
func (r *binaryReader) Next() ([]pgcopy.Field, error) {
	if r.row == 0 {
		if err := r.header(); err != nil {
			return nil, err
		}
	}
	r.row++
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		return nil, io.EOF // without the trailer, as pgx ends its data; PostgreSQL asks for none
	}
	count, err := r.full(2, "unexpected EOF in COPY data")
	if err != nil {
		return nil, err
	}
	switch n := int16(binary.BigEndian.Uint16(count)); {
	case n == -1:
		if _, err := r.in.ReadByte(); err == nil {
			return nil, badBinary("received copy data after EOF marker")
		}
		return nil, io.EOF
	case int(n) != len(r.types):
		return nil, badBinary("row field count is %d, expected %d", n, len(r.types))
	}
	r.fields = r.fields[:0]
	for i, oid := range r.types {
		f, err := r.field(oid)
		if err != nil {
			if e := pgerr.As(err); e != nil {
				e = e.WithCause(nil)
				e.Where = "COPY " + r.table + ", line " + itoa(r.row) + ", column " + r.names[i]
				return nil, e
			}
			return nil, err
		}
		r.fields = append(r.fields, f)
	}
	return r.fields, nil
}

func (r *binaryReader) field(oid uint32) (pgcopy.Field, error) {
	raw, err := r.full(4, "unexpected EOF in COPY data")
	if err != nil {
		return pgcopy.Field{}, err
	}
	n := int32(binary.BigEndian.Uint32(raw))
	switch {
	case n == -1:
		return pgcopy.Field{Null: true}, nil
	case n < 0:
		return pgcopy.Field{}, badBinary("invalid field size")
	}
	if raw, err = r.full(int(n), "unexpected EOF in COPY data"); err != nil {
		return pgcopy.Field{}, err
	}
	v, err := pgenc.Decode(oid, pgenc.Binary, raw, r.style)
	if err != nil {
		return pgcopy.Field{}, err
	}
	text, err := pgenc.Append(nil, oid, pgenc.Text, v, r.style)
	if err != nil {
		return pgcopy.Field{}, pgerr.Newf(pgerr.FeatureNotSupported, "COPY of type %s in binary is not supported", pgtype.FormatNoTypmod(oid))
	}
	return pgcopy.Field{Data: text}, nil
}
