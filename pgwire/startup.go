package pgwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Codes in the place of a protocol version. Source: libpq/pqcomm.h.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSS    = 80877104
)

// newestMinor is the protocol version 3.x that the server speaks.
const newestMinor = 2

// start takes the connection from accept to its first ReadyForQuery, which loop sends.
func (c *conn) start() error {
	_ = c.raw.SetReadDeadline(time.Now().Add(c.srv.o.StartupTimeout))
	su, err := c.negotiate()
	if err != nil {
		return err
	}
	user, err := c.startupParams(su)
	if err != nil {
		return err
	}
	if c.srv.o.RequireTLS && !c.tls {
		return fatal(pgerr.InvalidAuthorizationSpec, "connections without TLS are not accepted")
	}
	id := Identity{User: user.name, TLS: c.tls, RemoteAddr: remoteAddr(c.raw), CertSubject: c.certSubject()}
	if err := c.authenticate(&id); err != nil {
		return err
	}
	if err := c.srv.admit(c); err != nil {
		return err
	}
	c.log = c.log.With().Int32("pid", c.pid).Str("user", id.User).Logger()
	if err := c.openSession(id, user); err != nil {
		return err
	}
	_ = c.raw.SetReadDeadline(time.Time{})
	for _, p := range c.sess.ParameterStatus() {
		c.send(&pgproto3.ParameterStatus{Name: p.Name, Value: p.Value})
	}
	c.send(&pgproto3.BackendKeyData{ProcessID: uint32(c.pid), SecretKey: c.key})
	return nil
}

func (c *conn) openSession(id Identity, p startupUser) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.srv.o.StartupTimeout)
	defer cancel()
	var sess Session
	err := c.guard(func() (err error) {
		sess, err = c.srv.o.Backend.NewSession(ctx, Startup{
			Identity: id, Database: p.database, PID: c.pid, Secret: c.secret, Params: p.params, Wire: c, Prepared: &c.prepared,
		})
		return err
	})
	if err != nil {
		return asFatal(clientError(err))
	}
	c.sess = sess
	c.mu.Lock()
	c.mu.session = sess
	c.mu.Unlock()
	return nil
}

// negotiate answers SSLRequest, GSSENCRequest and CancelRequest and returns the StartupMessage's body. A cancel ends the connection.
func (c *conn) negotiate() ([]byte, error) {
	for asked := 0; asked < 3; asked++ {
		b, err := c.in.startupPacket()
		if err != nil {
			return nil, err
		}
		code := binary.BigEndian.Uint32(b)
		switch code {
		case codeCancel:
			c.handleCancel(b[4:])
			return nil, errTerminate
		case codeGSS:
			if err := c.answerByte('N'); err != nil {
				return nil, err
			}
			continue
		case codeSSL:
			if err := c.answerSSL(); err != nil {
				return nil, err
			}
			continue
		}
		if major := code >> 16; major != 3 {
			return nil, fatal(pgerr.FeatureNotSupported, "unsupported frontend protocol "+version(code)+": server supports 3.0 to 3.2")
		}
		return b, nil
	}
	return nil, fatal(pgerr.ProtocolViolation, "too many encryption requests")
}

func version(code uint32) string { return fmt.Sprintf("%d.%d", code>>16, code&0xffff) }

func (c *conn) answerByte(b byte) error {
	if _, err := c.nc.Write([]byte{b}); err != nil {
		c.dead = true
		return errGone
	}
	return nil
}

func (c *conn) answerSSL() error {
	if c.srv.o.TLS == nil || c.tls {
		return c.answerByte('N')
	}
	// Bytes sent before the handshake would be taken for encrypted ones (CVE-2021-23214).
	if c.in.buffered() > 0 {
		return fatal(pgerr.ProtocolViolation, "received unencrypted data after SSL request")
	}
	if err := c.answerByte('S'); err != nil {
		return err
	}
	tc := tls.Server(c.raw, c.srv.o.TLS)
	if err := tc.HandshakeContext(c.ctx); err != nil {
		c.log.Debug().Err(err).Msg("TLS handshake")
		c.dead = true
		return errGone
	}
	c.nc, c.tls = tc, true
	c.in = newFrameReader(tc, c.srv.o.MaxMessage, c.woken)
	return nil
}

func (c *conn) certSubject() string {
	tc, ok := c.nc.(*tls.Conn)
	if !ok {
		return ""
	}
	if st := tc.ConnectionState(); len(st.VerifiedChains) > 0 {
		return st.PeerCertificates[0].Subject.CommonName
	}
	return ""
}

// handleCancel reads a CancelRequest: pid and a key of 4 bytes or, since 3.2, more.
func (c *conn) handleCancel(b []byte) {
	if len(b) < 8 {
		return
	}
	c.srv.cancelRequest(int32(binary.BigEndian.Uint32(b)), b[4:])
}

// startupUser is what a StartupMessage holds.
type startupUser struct {
	name, database string
	params         []Param
}

// startupParams reads a StartupMessage and answers a newer minor version or unknown protocol options. Source: ProcessStartupPacket.
func (c *conn) startupParams(b []byte) (startupUser, error) {
	var u startupUser
	c.minor = int(binary.BigEndian.Uint32(b) & 0xffff)
	var unknown []string
	f := fields{b: b[4:]}
	for {
		name := string(f.str())
		if f.err != nil {
			return u, errStartupForm
		}
		if name == "" {
			break
		}
		value := string(f.str())
		if f.err != nil {
			return u, errStartupForm
		}
		if err := pgenc.CheckUTF8([]byte(name + value)); err != nil {
			return u, asFatal(clientError(err))
		}
		switch {
		case name == "user":
			u.name = value
		case name == "database":
			u.database = value
		case name == "options":
			params, err := parseOptions(value)
			if err != nil {
				return u, err
			}
			u.params = append(u.params, params...)
		case name == "replication":
			if value != "" && !strings.EqualFold(value, "false") && !strings.EqualFold(value, "off") && !strings.EqualFold(value, "no") && value != "0" {
				return u, fatal(pgerr.FeatureNotSupported, "replication connections are not supported")
			}
		case strings.HasPrefix(name, "_pq_."):
			unknown = append(unknown, name)
		default:
			u.params = append(u.params, Param{Name: name, Value: value})
		}
	}
	if len(f.b) != 0 {
		return u, errStartupForm
	}
	if c.minor > newestMinor || len(unknown) > 0 {
		c.minor = min(c.minor, newestMinor)
		c.out = appendNegotiate(c.out, unknown)
	}
	if u.name == "" {
		return u, fatal(pgerr.InvalidAuthorizationSpec, "no PostgreSQL user name specified in startup packet")
	}
	// Source: NAMEDATALEN: longer names are cut, as identifiers are.
	u.name = string(pgenc.TruncateName([]byte(u.name)))
	if u.database == "" {
		u.database = u.name
	}
	u.database = string(pgenc.TruncateName([]byte(u.database)))
	return u, nil
}

// appendNegotiate appends NegotiateProtocolVersion: the newest version and the options that are not known.
// Source: SendNegotiateProtocolVersion, which sends the full version number.
func appendNegotiate(dst []byte, unknown []string) []byte {
	start := len(dst)
	dst = append(dst, 'v', 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, 3<<16|newestMinor)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(unknown)))
	for _, name := range unknown {
		dst = append(append(dst, name...), 0)
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst
}

// parseOptions reads the options parameter: "-c name=value" and "--name=value", words separated by spaces, a backslash
// takes the next character as it is. Source: pg_split_opts, process_postgres_switches.
func parseOptions(s string) ([]Param, error) {
	words := splitOptions(s)
	var out []Param
	for i := 0; i < len(words); i++ {
		w := words[i]
		var assign string
		switch {
		case w == "-c" && i+1 < len(words):
			i++
			assign = words[i]
		case strings.HasPrefix(w, "-c") && len(w) > 2:
			assign = w[2:]
		case strings.HasPrefix(w, "--") && len(w) > 2:
			assign = w[2:]
		default:
			return nil, fatal(pgerr.SyntaxError, "invalid command-line argument for server process: "+w)
		}
		name, value, ok := strings.Cut(assign, "=")
		if !ok {
			if strings.HasPrefix(w, "--") {
				return nil, fatal(pgerr.SyntaxError, "--"+name+" requires a value")
			}
			return nil, fatal(pgerr.SyntaxError, "-c "+name+" requires a value")
		}
		out = append(out, Param{Name: strings.ReplaceAll(name, "-", "_"), Value: value})
	}
	return out, nil
}

func splitOptions(s string) []string {
	var words []string
	for i := 0; i < len(s); {
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		if i == len(s) {
			break
		}
		var w strings.Builder
		for i < len(s) && !isSpace(s[i]) {
			if s[i] == '\\' && i+1 < len(s) {
				i++
			}
			w.WriteByte(s[i])
			i++
		}
		words = append(words, w.String())
	}
	return words
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
