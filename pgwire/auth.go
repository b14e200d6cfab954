package pgwire

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// AuthMethod is how clients prove who they are.
type AuthMethod string

// The authentication methods.
const (
	// Trust believes the user name. For loopback addresses.
	Trust AuthMethod = "trust"
	// ScramSHA256 asks for a password without ever seeing it.
	ScramSHA256 AuthMethod = "scram-sha-256"
	// Cert takes the user from a verified TLS client certificate, whose CN must be the user asked for.
	Cert AuthMethod = "cert"
)

// Auth decides who may connect. The zero Auth trusts everybody.
type Auth struct {
	Method AuthMethod
	// Verifier returns a user's stored verifier (see ScramVerifier); ok is false for a user without one, who fails like a
	// wrong password does. Required for ScramSHA256. Safe for concurrent use.
	Verifier func(ctx context.Context, user string) (verifier string, ok bool, err error)
	// MockSecret makes the salt shown for unknown users: the same user gets the same salt every time, so that nobody learns
	// who exists. Keep it across restarts. Default: random.
	MockSecret []byte
}

// complete checks a and fills what has a default.
func (a *Auth) complete() error {
	switch a.Method {
	case "":
		a.Method = Trust
	case Trust, Cert:
	case ScramSHA256:
		if a.Verifier == nil {
			return pgerr.New(pgerr.InvalidAuthorizationSpec, "scram-sha-256 needs stored verifiers")
		}
	default:
		return pgerr.Newf(pgerr.InvalidAuthorizationSpec, "unknown authentication method %q", a.Method)
	}
	if len(a.MockSecret) == 0 {
		a.MockSecret = make([]byte, 32)
		if _, err := rand.Read(a.MockSecret); err != nil {
			return err
		}
	}
	return nil
}

// authenticate runs the method and sends AuthenticationOk.
func (c *conn) authenticate(id *Identity) error {
	a := &c.srv.o.Auth
	id.Method = string(a.Method)
	switch a.Method {
	case ScramSHA256:
		if err := c.scram(a, id.User); err != nil {
			return err
		}
	case Cert:
		if id.CertSubject == "" {
			return fatal(pgerr.InvalidAuthorizationSpec, "connection requires a valid client certificate")
		}
		if id.CertSubject != id.User {
			return fatal(pgerr.InvalidAuthorizationSpec, "certificate authentication failed for user \""+id.User+"\"")
		}
	}
	c.send(&pgproto3.AuthenticationOk{})
	return nil
}

// password reads one 'p' message during authentication.
func (c *conn) password() ([]byte, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	// Source: PG_MAX_SASL_MESSAGE_LENGTH. The limit of ordinary messages does not hold for strangers.
	limit := c.in.limit
	c.in.limit = 1024
	defer func() { c.in.limit = limit }()
	typ, body, err := c.in.next()
	if err != nil {
		return nil, err
	}
	if typ != msgPassword {
		return nil, fatal(pgerr.ProtocolViolation, "expected SASL response, got message type "+string(rune(typ)))
	}
	return body, nil
}

// saslInitial reads SASLInitialResponse: the mechanism and the client's first message.
func saslInitial(b []byte) (mechanism string, data []byte, err error) {
	f := fields{b: b}
	mechanism = string(f.str())
	if n := f.int32(); n >= 0 {
		data = f.take(int(n))
	}
	if err := f.end(); err != nil {
		return "", nil, asFatal(clientError(err))
	}
	return mechanism, data, nil
}

// appendSASL appends an Authentication message with a body: 11 continue, 12 final. Source: AuthenticationSASLContinue.
func appendSASL(dst []byte, code uint32, data []byte) []byte {
	dst = append(dst, 'R')
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+len(data)))
	dst = binary.BigEndian.AppendUint32(dst, code)
	return append(dst, data...)
}
