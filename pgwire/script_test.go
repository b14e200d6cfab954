package pgwire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// TestProtocol runs the scripts of testdata/protocol. A block's ">" lines are sent at once; its "<" lines are what PostgreSQL 15
// answered: with SKADE_PG_REFERENCE=host:port of a PostgreSQL 15 that trusts user postgres, the test writes them anew from there.
func TestProtocol(t *testing.T) {
	files, err := filepath.Glob("testdata/protocol/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	reference := os.Getenv("SKADE_PG_REFERENCE")
	addr := reference
	if reference == "" {
		addr = startServer(t, Options{Backend: newFakeBackend()}).addr
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			got := runScript(t, addr, string(data))
			if reference != "" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(data), got)
		})
	}
}

// runScript plays a script and returns it with the answers received.
func runScript(t *testing.T, addr, script string) string {
	c := dialRaw(t, addr)
	c.startup("postgres", "postgres")
	c.until('Z', 1)
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimSpace(script), "\n\n") {
		var send []byte
		wait, override, waitFor := 0, 0, byte('Z')
		for _, line := range strings.Split(block, "\n") {
			switch {
			case strings.HasPrefix(line, "> "):
				send = c.encode(send, line[2:])
				if strings.ContainsAny(line[2:3], "QSF") {
					wait++
				}
			case strings.HasPrefix(line, "wait "):
				waitFor, override = line[5], 1
				if len(line) > 7 {
					override, _ = strconv.Atoi(line[7:])
				}
			case strings.HasPrefix(line, "< "):
				continue
			}
			fmt.Fprintln(&out, line)
		}
		if override > 0 {
			wait = override
		}
		_, err := c.Write(send)
		require.NoError(t, err)
		for _, m := range c.until(waitFor, wait) {
			fmt.Fprintln(&out, "< "+m)
		}
		fmt.Fprintln(&out)
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// rawClient speaks the protocol byte by byte.
type rawClient struct {
	net.Conn
	t *testing.T
}

func dialRaw(t *testing.T, addr string) *rawClient {
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(30*time.Second)))
	return &rawClient{nc, t}
}

func (c *rawClient) startup(user, database string, params ...string) {
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0}, 3<<16)
	for _, s := range append([]string{"user", user, "database", database}, params...) {
		b = append(append(b, s...), 0)
	}
	b = append(b, 0)
	binary.BigEndian.PutUint32(b, uint32(len(b)))
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

// words splits a script line at spaces outside Go quotes.
func words(t *testing.T, line string) []string {
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		if line[0] == '"' {
			q, err := strconv.QuotedPrefix(line)
			require.NoError(t, err, line)
			s, err := strconv.Unquote(q)
			require.NoError(t, err, line)
			out = append(out, s)
			line = line[len(q):]
			continue
		}
		w, rest, _ := strings.Cut(line, " ")
		out = append(out, w)
		line = rest
	}
	return out
}

// encode turns a ">" line into bytes: type, then strings in quotes; numbers are int32 except where the message says int16.
func (c *rawClient) encode(dst []byte, line string) []byte {
	typ, w := line[0], words(c.t, line[1:])
	num := func(s string) int64 {
		n, err := strconv.ParseInt(s, 0, 64)
		require.NoError(c.t, err, line)
		return n
	}
	var b []byte
	str := func(s string) { b = append(append(b, s...), 0) }
	i16 := func(n int) { b = binary.BigEndian.AppendUint16(b, uint16(n)) }
	i32 := func(n int64) { b = binary.BigEndian.AppendUint32(b, uint32(n)) }
	formats := func(s string) {
		codes := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '[' || r == ']' })
		i16(len(codes))
		for _, f := range codes {
			i16(int(num(f)))
		}
	}
	switch typ {
	case 'Q':
		str(w[0])
	case 'P': // name query oid…
		str(w[0])
		str(w[1])
		i16(len(w) - 2)
		for _, o := range w[2:] {
			i32(num(o))
		}
	case 'B': // portal statement [formats] [formats] params…, NULL for null
		str(w[0])
		str(w[1])
		formats(w[2])
		i16(len(w) - 4)
		for _, p := range w[4:] {
			if p == "NULL" {
				i32(-1)
				continue
			}
			i32(int64(len(p)))
			b = append(b, p...)
		}
		formats(w[3])
	case 'D', 'C': // S|P name
		b = append(b, w[0][0])
		str(w[1])
	case 'E': // portal rows
		str(w[0])
		i32(num(w[1]))
	case 'd', 'f':
		b = append(b, w[0]...)
		if typ == 'f' {
			b = append(b, 0)
		}
	case 'R': // raw: type, then body
		typ = w[0][0]
		b = append(b, w[1]...)
	}
	dst = append(dst, typ)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)+4))
	return append(dst, b...)
}

// until reads messages up to the n-th of the type and shows them.
func (c *rawClient) until(typ byte, n int) []string {
	var out []string
	for n > 0 {
		t, text, err := c.message()
		if err == io.EOF {
			return append(out, "closed")
		}
		require.NoError(c.t, err)
		if t == typ {
			n--
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

func (c *rawClient) message() (byte, string, error) {
	var h [5]byte
	if _, err := io.ReadFull(c, h[:]); err != nil {
		return 0, "", err
	}
	body := make([]byte, binary.BigEndian.Uint32(h[1:])-4)
	if _, err := io.ReadFull(c, body); err != nil {
		return 0, "", err
	}
	return h[0], show(c.t, h[0], body), nil
}

// show is a message's line. Fields that differ by machine (OIDs of tables, files and lines of errors) are left out.
func show(t *testing.T, typ byte, body []byte) string {
	decode := func(m interface{ Decode([]byte) error }) { require.NoError(t, m.Decode(body), "%c %q", typ, body) }
	switch typ {
	case 'T':
		var m pgproto3.RowDescription
		decode(&m)
		var cols []string
		for _, f := range m.Fields {
			cols = append(cols, fmt.Sprintf("(%s %d %d %d %d)", f.Name, f.DataTypeOID, f.DataTypeSize, f.TypeModifier, f.Format))
		}
		return "T " + strings.Join(cols, " ")
	case 'D':
		var m pgproto3.DataRow
		decode(&m)
		var vals []string
		for _, v := range m.Values {
			if v == nil {
				vals = append(vals, "NULL")
			} else {
				vals = append(vals, strconv.Quote(string(v)))
			}
		}
		return "D " + strings.Join(vals, " ")
	case 'C':
		return "C " + strconv.Quote(strings.TrimSuffix(string(body), "\x00"))
	case 'E', 'N':
		var m pgproto3.ErrorResponse
		decode(&m)
		s := fmt.Sprintf("%c %s %s %q", typ, m.SeverityUnlocalized, m.Code, m.Message)
		if m.Position > 0 {
			s += fmt.Sprintf(" position %d", m.Position)
		}
		// Contexts of PL/pgSQL and of parameters are not the wire's.
		if strings.HasPrefix(m.Where, "COPY") {
			s += fmt.Sprintf(" where %q", m.Where)
		}
		return s
	case 'Z':
		return "Z " + string(body)
	case 't':
		var m pgproto3.ParameterDescription
		decode(&m)
		return fmt.Sprint("t ", m.ParameterOIDs)
	case 'S':
		name, value, _ := strings.Cut(strings.TrimSuffix(string(body), "\x00"), "\x00")
		if name != "application_name" {
			return ""
		}
		return "S " + name + " " + strconv.Quote(value)
	case 'A':
		var m pgproto3.NotificationResponse
		decode(&m)
		return "A " + m.Channel + " " + strconv.Quote(m.Payload)
	case 'G', 'H', 'd':
		return string(typ) + " " + strconv.Quote(string(body))
	case 'K', 'R', 'v':
		return ""
	}
	require.True(t, slices.Contains([]byte("123nsIc"), typ), "unexpected message %c", typ)
	return string(typ)
}
