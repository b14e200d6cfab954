package pgcopy

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Field is one value of a row. Data is good until the next call of Next.
type Field struct {
	Data []byte
	Null bool
}

// Reader splits a stream into rows.
type Reader struct {
	src   io.Reader
	o     Options
	table string
	names []string

	buf    []byte
	r, w   int
	eof    bool
	done   bool
	line   int64 // number of the row's first line, from 1
	extra  int64 // line ends inside the row
	head   bool
	eol    eolType
	last   []byte // the row that Next gave, in buf
	fields []Field
	// scratch holds unescaped values of the row; fields point into it once it has stopped growing.
	scratch []byte
}

// NewReader reads rows of the named columns. table is for error messages.
func NewReader(src io.Reader, o Options, table string, names []string) *Reader {
	return &Reader{src: src, o: o, table: table, names: names, buf: make([]byte, 128<<10), head: o.Header}
}

// Line is the number of the last row's first line, from 1.
func (r *Reader) Line() int64 { return r.line }

// Row is the text of the last row, as it came. It is good until the next call of Next.
func (r *Reader) Row() []byte { return r.last }

// Next returns the next row's fields, one per column; io.EOF after the last row. Errors: 22P04, 22021, and what the stream gives.
func (r *Reader) Next() ([]Field, error) {
	for {
		line, err := r.readLine()
		if err != nil {
			return nil, err
		}
		if bytes.Equal(line, endMarker) {
			r.done = true
			return nil, io.EOF
		}
		if err := pgenc.CheckUTF8(line); err != nil {
			return nil, r.locate(err, "")
		}
		if r.head {
			r.head = false
			if r.o.Match {
				if err := r.match(line); err != nil {
					return nil, err
				}
			}
			continue
		}
		if len(r.names) == 0 {
			if len(line) > 0 {
				return nil, r.locate(badFormat("extra data after last expected column"), string(line))
			}
			return nil, nil
		}
		if err := r.split(line); err != nil {
			return nil, err
		}
		if n := len(r.fields); n < len(r.names) {
			return nil, r.locate(badFormat("missing data for column \"%s\"", r.names[n]), string(line))
		} else if n > len(r.names) {
			return nil, r.locate(badFormat("extra data after last expected column"), string(line))
		}
		r.last = line
		return r.fields, nil
	}
}

var endMarker = []byte(`\.`)

func (r *Reader) split(line []byte) error {
	r.fields, r.scratch = r.fields[:0], r.scratch[:0]
	if need := len(line); cap(r.scratch) < need {
		r.scratch = make([]byte, 0, need+need/4)
	}
	if r.o.CSV {
		return r.splitCSV(line)
	}
	return r.splitText(line)
}

// Locate adds the place of the row that Next gave last to an error that names none.
func (r *Reader) Locate(err error) error {
	if e := pgerr.As(err); e == nil || e.Where != "" {
		return err
	}
	return r.locate(err, string(r.last))
}

// locate adds the place to an error.
func (r *Reader) locate(err error, line string) error {
	e := pgerr.As(err)
	if e == nil {
		return err
	}
	c := *e
	c.Where = fmt.Sprintf("COPY %s, line %d", r.table, r.line)
	if line != "" {
		c.Where += ": \"" + limit(line) + "\""
	}
	return &c
}

// Limit cuts a line for an error message, as PostgreSQL does.
func Limit(s string) string { return limit(s) }

// limit cuts a value for an error message, as PostgreSQL does at 100 characters.
func limit(s string) string { return cut(s, 100) }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "..."
}

// readLine returns the next row without its line end. The first row's line end is that of all: \n, \r\n or \r.
func (r *Reader) readLine() ([]byte, error) {
	if r.done {
		return nil, io.EOF
	}
	r.line += 1 + r.extra
	r.extra = 0
	var st lineScan
	from := r.r
	for {
		end := st.find(r, from)
		if end >= 0 && r.eol == eolUnknown {
			if r.buf[end] == '\r' && end+1 == r.w && !r.eof {
				end = -1 // is it \r\n?
			} else {
				r.setEOL(end)
				if r.eol == eolCRNL {
					end++
				}
			}
		}
		if end >= 0 {
			line := r.buf[r.r:end]
			r.r = end + 1
			return r.ended(line, &st, true)
		}
		if r.eof {
			if r.r == r.w {
				r.done = true
				return nil, io.EOF
			}
			if st.quoted {
				return nil, r.locate(badFormat("unterminated CSV quoted field"), string(r.buf[r.r:r.w]))
			}
			line := r.buf[r.r:r.w]
			r.r = r.w
			return r.ended(line, &st, false)
		}
		// A \r at the end is looked at again, with what follows it.
		rest := r.w - r.r
		if rest > 0 && r.eol == eolUnknown && r.buf[r.w-1] == '\r' && !st.quoted && !st.escape {
			rest--
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
		from = r.r + rest
	}
}

// eolType is a stream's line end.
type eolType int

const (
	eolUnknown eolType = iota
	eolNL
	eolCRNL
	eolCR
)

func (r *Reader) setEOL(at int) {
	switch {
	case r.buf[at] == '\n':
		r.eol = eolNL
	case at+1 < r.w && r.buf[at+1] == '\n':
		r.eol = eolCRNL
	default:
		r.eol = eolCR
	}
}

// ended takes the \r of \r\n off a row and refuses other line ends in it, as PostgreSQL does.
func (r *Reader) ended(line []byte, st *lineScan, closed bool) ([]byte, error) {
	if r.eol == eolCRNL && closed {
		n := len(line)
		if n == 0 || line[n-1] != '\r' {
			return nil, r.strayEnd('\n', line)
		}
		line = line[:n-1]
	}
	stray := byte('\r')
	if r.eol == eolCR {
		stray = '\n'
	}
	if bytes.IndexByte(line, stray) < 0 {
		return line, nil
	}
	if r.o.CSV {
		if st.stray > 0 && !(st.stray == 1 && r.eol == eolCRNL && closed) {
			return nil, r.strayEnd(stray, line)
		}
		return line, nil
	}
	for i, c := range line {
		if c == stray && slashesBefore(line, i)%2 == 0 {
			return nil, r.strayEnd(stray, line)
		}
	}
	return line, nil
}

func (r *Reader) strayEnd(c byte, line []byte) error {
	what, text := "newline", `"\n"`
	if c == '\r' {
		what, text = "carriage return", `"\r"`
	}
	if r.o.CSV {
		return r.locate(badFormat("unquoted %s found in data", what).WithHint("Use quoted CSV field to represent %s.", what), string(line))
	}
	return r.locate(badFormat("literal %s found in data", what).WithHint("Use %s to represent %s.", text, what), string(line))
}

func slashesBefore(b []byte, i int) int {
	n := 0
	for i--; i >= 0 && b[i] == '\\'; i-- {
		n++
	}
	return n
}

// lineScan is where the search for a row's end stands.
type lineScan struct {
	quoted bool // inside a CSV quote
	escape bool // the last byte was an escape
	stray  int  // unquoted bytes of the other line end in a CSV row
}

// find looks for the row's end in buf[from:w], its first byte where that is two; −1 when it is not there yet. Once the line end is known
// to be \r\n, it is the \n that is found.
func (st *lineScan) find(r *Reader, from int) int {
	if !r.o.CSV {
		return st.findText(r, from)
	}
	for i := from; i < r.w; i++ {
		c := r.buf[i]
		switch {
		case st.escape: // inside quotes, escape ≠ quote: the byte is data
			st.escape = false
		case st.quoted && c == r.o.Escape && r.o.Escape != r.o.Quote:
			st.escape = true
		case c == r.o.Quote:
			st.quoted = !st.quoted
		case c == '\n' || c == '\r':
			if st.quoted {
				if c == '\n' {
					r.extra++
				}
				continue
			}
			if r.eol == eolUnknown || (c == '\r') == (r.eol == eolCR) {
				return i
			}
			st.stray++
		}
	}
	return -1
}

func (st *lineScan) findText(r *Reader, from int) int {
	for i := from; i < r.w; {
		n := 0
		switch r.eol {
		case eolUnknown:
			n = bytes.IndexAny(r.buf[i:r.w], "\r\n")
		case eolCR:
			n = bytes.IndexByte(r.buf[i:r.w], '\r')
		default:
			n = bytes.IndexByte(r.buf[i:r.w], '\n')
		}
		if n < 0 {
			return -1
		}
		// An odd number of backslashes before it makes the line end data.
		k := i + n
		if slashesBefore(r.buf[r.r:k], k-r.r)%2 == 0 {
			return k
		}
		r.extra++
		i = k + 1
	}
	return -1
}

// fill reads more, making room first.
func (r *Reader) fill() error {
	if r.r > 0 {
		copy(r.buf, r.buf[r.r:r.w])
		r.w -= r.r
		r.r = 0
	}
	if r.w == len(r.buf) {
		if len(r.buf) >= MaxLine {
			return r.locate(pgerr.New(pgerr.ProgramLimitExceeded, "row is too long"), "")
		}
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for tries := 0; ; tries++ {
		n, err := r.src.Read(r.buf[r.w:])
		r.w += n
		if errors.Is(err, io.EOF) {
			r.eof = true
			return nil
		}
		if err != nil || n > 0 {
			return err
		}
		if tries == 100 {
			return io.ErrNoProgress
		}
	}
}

// splitText splits a text row at delimiters and resolves backslashes.
func (r *Reader) splitText(whole []byte) error {
	for line := whole; ; {
		end := r.fieldEnd(line)
		raw := line[:end]
		f := Field{Data: raw, Null: string(raw) == r.o.Null}
		if !f.Null && bytes.IndexByte(raw, '\\') >= 0 {
			start := len(r.scratch)
			r.scratch = unescape(r.scratch, raw)
			f.Data = r.scratch[start:]
			// \x and octal escapes can make bytes that the line's check has not seen.
			if err := pgenc.CheckUTF8(f.Data); err != nil {
				return r.locate(err, string(whole))
			}
		}
		r.fields = append(r.fields, f)
		if end == len(line) {
			return nil
		}
		line = line[end+1:]
	}
}

// fieldEnd is the place of the next delimiter that no backslash escapes, or the line's length.
func (r *Reader) fieldEnd(line []byte) int {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case r.o.Delimiter:
			return i
		}
	}
	return len(line)
}

// unescape resolves the escapes of FORMAT text. Source: CopyReadAttributesText.
func unescape(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 == len(raw) {
			dst = append(dst, c)
			continue
		}
		i++
		switch c = raw[i]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'v':
			c = '\v'
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := c - '0'
			for k := 0; k < 2 && i+1 < len(raw) && raw[i+1] >= '0' && raw[i+1] <= '7'; k++ {
				i++
				v = v<<3 | (raw[i] - '0')
			}
			c = v
		case 'x':
			v, n := 0, 0
			for n < 2 && i+1 < len(raw) && hexDigit(raw[i+1]) >= 0 {
				i++
				n++
				v = v<<4 | hexDigit(raw[i])
			}
			if n > 0 {
				c = byte(v)
			}
		}
		dst = append(dst, c)
	}
	return dst
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// splitCSV splits a CSV row. A quote may begin anywhere in a field, as in PostgreSQL.
func (r *Reader) splitCSV(line []byte) error {
	i := 0
	for {
		start := len(r.scratch)
		from, quoted, plain := i, false, true
		for i < len(line) && line[i] != r.o.Delimiter {
			if line[i] != r.o.Quote {
				if !plain {
					r.scratch = append(r.scratch, line[i])
				}
				i++
				continue
			}
			if plain {
				r.scratch = append(r.scratch, line[from:i]...)
				plain = false
			}
			quoted = true
			n, ok := r.quotedPart(line[i+1:])
			if !ok {
				return r.locate(badFormat("unterminated CSV quoted field"), string(line))
			}
			i += 1 + n
		}
		f := Field{Data: line[from:i]}
		if !plain {
			f.Data = r.scratch[start:]
		}
		col := len(r.fields)
		if string(f.Data) == r.o.Null {
			f.Null = !quoted && !at(r.o.ForceNotNull, col) || quoted && at(r.o.ForceNull, col)
		}
		r.fields = append(r.fields, f)
		if i == len(line) {
			return nil
		}
		i++
	}
}

// quotedPart appends what stands between quotes to scratch; n is how much it took, the closing quote included.
func (r *Reader) quotedPart(line []byte) (n int, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == r.o.Escape && i+1 < len(line) && (line[i+1] == r.o.Quote || line[i+1] == r.o.Escape) {
			i++
			r.scratch = append(r.scratch, line[i])
			continue
		}
		if c == r.o.Quote {
			return i + 1, true
		}
		r.scratch = append(r.scratch, c)
	}
	return 0, false
}

// match compares a header with the column names. Source: NextCopyFromRawFields.
func (r *Reader) match(line []byte) error {
	if err := r.split(line); err != nil {
		return err
	}
	if len(r.fields) != len(r.names) {
		return r.locate(badFormat("wrong number of fields in header line: got %d, expected %d", len(r.fields), len(r.names)), string(line))
	}
	for i, f := range r.fields {
		if f.Null {
			return r.locate(badFormat("column name mismatch in header line field %d: got null value (\"%s\"), expected \"%s\"", i+1, r.o.Null, r.names[i]), string(line))
		}
		if string(f.Data) != r.names[i] {
			return r.locate(badFormat("column name mismatch in header line field %d: got \"%s\", expected \"%s\"", i+1, f.Data, r.names[i]), string(line))
		}
	}
	return nil
}
