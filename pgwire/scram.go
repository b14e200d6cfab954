package pgwire

import (
	"bytes"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"golang.org/x/text/secure/precis"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// The mechanisms of RFC 5802 and RFC 7677; PLUS binds to the TLS channel (RFC 5929, tls-server-end-point).
const (
	scramPlain = "SCRAM-SHA-256"
	scramPlus  = "SCRAM-SHA-256-PLUS"
	// scramIterations is PostgreSQL's SCRAM_DEFAULT_ITERATIONS.
	scramIterations = 4096
	scramSaltLen    = 16
)

// scramSecret is a stored verifier taken apart.
type scramSecret struct {
	salt       []byte
	iterations int
	storedKey  []byte
	serverKey  []byte
	mock       bool // of a user that does not exist: never succeeds
}

// ScramVerifier makes the stored form of a password, "SCRAM-SHA-256$4096:salt$storedKey:serverKey", as PostgreSQL's
// pg_authid.rolpassword holds it.
func ScramVerifier(password string) (string, error) {
	salt := make([]byte, scramSaltLen)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	// Source: pg_saslprep; a password that the profile refuses is used as it is.
	if p, err := precis.OpaqueString.String(password); err == nil {
		password = p
	}
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	b64 := base64.StdEncoding.EncodeToString
	return scramPlain + "$" + strconv.Itoa(scramIterations) + ":" + b64(salt) + "$" + b64(stored[:]) + ":" + b64(mac(salted, "Server Key")), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// parseVerifier reads a stored verifier. Errors: ErrBadVerifier.
func parseVerifier(v string) (s scramSecret, err error) {
	parts := strings.Split(v, "$")
	if len(parts) != 3 || parts[0] != scramPlain {
		return s, ErrBadVerifier
	}
	iter, salt, ok1 := strings.Cut(parts[1], ":")
	stored, server, ok2 := strings.Cut(parts[2], ":")
	s.iterations, err = strconv.Atoi(iter)
	if !ok1 || !ok2 || err != nil || s.iterations < 1 {
		return s, ErrBadVerifier
	}
	dec := base64.StdEncoding.DecodeString
	var e1, e2, e3 error
	s.salt, e1 = dec(salt)
	s.storedKey, e2 = dec(stored)
	s.serverKey, e3 = dec(server)
	if e1 != nil || e2 != nil || e3 != nil || len(s.storedKey) != sha256.Size || len(s.serverKey) != sha256.Size {
		return s, ErrBadVerifier
	}
	return s, nil
}

// mockSecret is what an unknown user is asked with: always the same salt for a name. Source: mock_scram_secret.
func mockSecret(secret []byte, user string) scramSecret {
	return scramSecret{
		salt: mac(secret, user)[:scramSaltLen], iterations: scramIterations, mock: true,
		storedKey: make([]byte, sha256.Size), serverKey: make([]byte, sha256.Size),
	}
}

// ValidVerifier reports whether v is a verifier that Auth.Verifier may return.
func ValidVerifier(v string) bool {
	_, err := parseVerifier(v)
	return err == nil
}

// scram runs the exchange. Whatever is wrong with user or password is the same 28P01.
func (c *conn) scram(a *Auth, user string) error {
	mechanisms := []string{scramPlain}
	binding := c.channelBinding()
	if binding != nil {
		mechanisms = []string{scramPlus, scramPlain}
	}
	c.send(&pgproto3.AuthenticationSASL{AuthMechanisms: mechanisms})
	body, err := c.password()
	if err != nil {
		return err
	}
	mechanism, data, err := saslInitial(body)
	if err != nil {
		return err
	}
	if mechanism != scramPlain && (mechanism != scramPlus || binding == nil) {
		return fatal(pgerr.ProtocolViolation, "client selected an invalid SASL authentication mechanism")
	}
	secret, err := c.secretOf(a, user)
	if err != nil {
		return err
	}
	x := scramExchange{secret: secret, plus: mechanism == scramPlus, binding: binding}
	first, err := x.first(string(data))
	if err != nil {
		return err
	}
	c.out = appendSASL(c.out, 11, first)
	if body, err = c.password(); err != nil {
		return err
	}
	final, ok, err := x.final(string(body))
	if err != nil {
		return err
	}
	if !ok {
		return fatal(pgerr.InvalidPassword, "password authentication failed for user \""+user+"\"")
	}
	c.out = appendSASL(c.out, 12, final)
	return nil
}

func (c *conn) secretOf(a *Auth, user string) (scramSecret, error) {
	verifier, ok, err := a.Verifier(c.ctx, user)
	if err != nil {
		c.log.Error().Err(err).Msg("read password verifier")
		return scramSecret{}, fatal(pgerr.InternalError, "internal error")
	}
	if ok {
		s, err := parseVerifier(verifier)
		if err == nil {
			return s, nil
		}
		c.log.Error().Err(err).Str("user", user).Msg("stored password")
	}
	return mockSecret(a.MockSecret, user), nil
}

// channelBinding is the hash of the server's certificate, nil without TLS. Source: RFC 5929, section 4.1: the signature's
// hash, SHA-256 in the place of MD5 and SHA-1.
func (c *conn) channelBinding() []byte {
	if !c.tls {
		return nil
	}
	leaf := c.srv.serverCert()
	if leaf == nil {
		return nil
	}
	switch leaf.SignatureAlgorithm {
	case x509.SHA384WithRSA, x509.ECDSAWithSHA384, x509.SHA384WithRSAPSS:
		h := sha512.Sum384(leaf.Raw)
		return h[:]
	case x509.SHA512WithRSA, x509.ECDSAWithSHA512, x509.SHA512WithRSAPSS:
		h := sha512.Sum512(leaf.Raw)
		return h[:]
	case x509.PureEd25519, x509.UnknownSignatureAlgorithm:
		// No hash is defined.
		return nil
	}
	h := sha256.Sum256(leaf.Raw)
	return h[:]
}

// serverCert is the certificate that the server showed. Binding is offered only when there is no choice of certificates.
func (s *Server) serverCert() *x509.Certificate {
	conf := s.o.TLS
	if len(conf.Certificates) != 1 || conf.GetCertificate != nil || conf.GetConfigForClient != nil {
		return nil
	}
	cert := conf.Certificates[0]
	if cert.Leaf != nil {
		return cert.Leaf
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// scramExchange is the server's side of one exchange (RFC 5802, section 3).
type scramExchange struct {
	secret     scramSecret
	plus       bool
	binding    []byte
	gs2        string // the client's header, with which channel binding begins
	clientBare string
	serverText string
	nonce      string
}

func malformed(detail string) error {
	return &pgerr.Error{Severity: pgerr.SevFatal, Code: pgerr.ProtocolViolation, Message: "malformed SCRAM message", Detail: detail}
}

// first reads client-first-message and returns server-first-message. The user name in it is ignored, as in PostgreSQL.
func (x *scramExchange) first(msg string) ([]byte, error) {
	if strings.IndexByte(msg, 0) >= 0 {
		return nil, malformed("Length does not match input length.")
	}
	flag, rest, ok := strings.Cut(msg, ",")
	authzid, bare, ok2 := strings.Cut(rest, ",")
	if !ok || !ok2 {
		return nil, malformed("The message is incomplete.")
	}
	switch {
	case flag == "n" && !x.plus:
	case flag == "y" && !x.plus:
		// The client would bind but believes that we cannot: somebody took the mechanism off the list.
		if x.binding != nil {
			return nil, fatal(pgerr.InvalidAuthorizationSpec, "SCRAM channel binding negotiation error")
		}
	case flag == "p=tls-server-end-point" && x.plus:
	default:
		return nil, malformed("Unexpected channel-binding flag.")
	}
	if authzid != "" {
		return nil, fatal(pgerr.FeatureNotSupported, "client uses authorization identity, but it is not supported")
	}
	x.gs2 = msg[:len(flag)+1+len(authzid)+1]
	x.clientBare = bare
	parts := strings.Split(bare, ",")
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "n=") || !strings.HasPrefix(parts[1], "r=") || len(parts[1]) < 3 || !printable(parts[1]) {
		return nil, malformed("The client's first message is not user and nonce.")
	}
	nonce := make([]byte, 18)
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	x.nonce = parts[1][2:] + base64.StdEncoding.EncodeToString(nonce)
	x.serverText = "r=" + x.nonce + ",s=" + base64.StdEncoding.EncodeToString(x.secret.salt) + ",i=" + strconv.Itoa(x.secret.iterations)
	return []byte(x.serverText), nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// final reads client-final-message, checks the proof in constant time and returns server-final-message.
func (x *scramExchange) final(msg string) (out []byte, ok bool, err error) {
	i := strings.LastIndex(msg, ",p=")
	if i < 0 {
		return nil, false, malformed("The proof is missing.")
	}
	without := msg[:i]
	proof, e := base64.StdEncoding.DecodeString(msg[i+3:])
	if e != nil || len(proof) != sha256.Size {
		return nil, false, malformed("Malformed proof in client-final-message.")
	}
	parts := strings.Split(without, ",")
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "c=") || !strings.HasPrefix(parts[1], "r=") {
		return nil, false, malformed("Unexpected attribute in client-final-message.")
	}
	want := []byte(x.gs2)
	if x.plus {
		want = append(want, x.binding...)
	}
	bound, e := base64.StdEncoding.DecodeString(parts[0][2:])
	if e != nil || !bytes.Equal(bound, want) {
		return nil, false, fatal(pgerr.InvalidAuthorizationSpec, "SCRAM channel binding check failed")
	}
	if subtle.ConstantTimeCompare([]byte(parts[1][2:]), []byte(x.nonce)) != 1 {
		return nil, false, fatal(pgerr.ProtocolViolation, "invalid SCRAM response")
	}
	auth := x.clientBare + "," + x.serverText + "," + without
	sig := mac(x.secret.storedKey, auth)
	key := make([]byte, sha256.Size)
	subtle.XORBytes(key, proof, sig)
	sum := sha256.Sum256(key)
	good := subtle.ConstantTimeCompare(sum[:], x.secret.storedKey) == 1 && !x.secret.mock
	return []byte("v=" + base64.StdEncoding.EncodeToString(mac(x.secret.serverKey, auth))), good, nil
}
