package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/nordisk/skade-pg/pgwire"
)

// errNoPasswords is returned for a listening address that strangers reach when nothing says who may connect.
var errNoPasswords = errors.New("passwords are required on an address other than loopback: give --auth-file, or listen on 127.0.0.1")

// users are the role names of --auth-file, in the file's order.
type users struct {
	names     []string
	verifiers map[string]string
}

// auth decides how clients prove who they are: by --auth-file when there is one, else trust on loopback only.
func (s *Server) auth() (pgwire.Auth, error) {
	if _, _, err := net.SplitHostPort(s.cfg.Listen); err != nil {
		return pgwire.Auth{}, usagef("listen: %q is not HOST:PORT", s.cfg.Listen)
	}
	if s.cfg.AuthFile == "" {
		if !loopback(s.cfg.Listen) {
			return pgwire.Auth{}, fmt.Errorf("listen on %s: %w", s.cfg.Listen, errNoPasswords)
		}
		s.trust = true
		return pgwire.Auth{Method: pgwire.Trust}, nil
	}
	b, err := os.ReadFile(s.cfg.AuthFile)
	if err != nil {
		return pgwire.Auth{}, fmt.Errorf("auth file: %w", err)
	}
	u, err := parseUsers(b)
	if err != nil {
		return pgwire.Auth{}, fmt.Errorf("auth file %s: %w", s.cfg.AuthFile, err)
	}
	s.users = u
	if s.cfg.Demo {
		if err := u.addDemo(&s.demoPassword); err != nil {
			return pgwire.Auth{}, fmt.Errorf("the demo's password: %w", err)
		}
	}
	secret := sha256.Sum256(b) // the same across restarts, and nobody's who cannot read the file
	return pgwire.Auth{Method: pgwire.ScramSHA256, MockSecret: secret[:], Verifier: func(_ context.Context, user string) (string, bool, error) {
		v, ok := u.verifiers[user]
		return v, ok, nil
	}}, nil
}

// demoUser is the role that the demo connects as when passwords are asked for.
const demoUser = "skade_demo"

// addDemo lets the demo in, with a password that lives as long as the process and that nobody is told.
func (u users) addDemo(password *string) error {
	if _, taken := u.verifiers[demoUser]; taken {
		return fmt.Errorf("role %q is the demo's own", demoUser)
	}
	*password = rand.Text()
	v, err := pgwire.ScramVerifier(*password)
	if err == nil {
		u.verifiers[demoUser] = v
	}
	return err
}

// loopback reports an address that only this machine reaches.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// parseUsers reads role:password lines. Empty lines and lines that begin with # are skipped. A password that begins with SCRAM-SHA-256$
// is a verifier, as PostgreSQL's pg_authid.rolpassword holds it.
func parseUsers(b []byte) (users, error) {
	u := users{verifiers: map[string]string{}}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, password, ok := strings.Cut(line, ":")
		if !ok || name == "" || password == "" {
			return u, fmt.Errorf("line %d: want role:password", n)
		}
		if _, dup := u.verifiers[name]; dup {
			return u, fmt.Errorf("line %d: role %q occurs twice", n, name)
		}
		if strings.HasPrefix(password, "SCRAM-SHA-256$") {
			if !pgwire.ValidVerifier(password) {
				return u, fmt.Errorf("line %d: malformed SCRAM-SHA-256 verifier", n)
			}
		} else {
			v, err := pgwire.ScramVerifier(password)
			if err != nil {
				return u, fmt.Errorf("line %d: %w", n, err)
			}
			password = v
		}
		u.names = append(u.names, name)
		u.verifiers[name] = password
	}
	if err := sc.Err(); err != nil {
		return u, err
	}
	if len(u.names) == 0 {
		return u, errors.New("it names no role")
	}
	return u, nil
}
