package cli

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/pgwire"
)

func TestParseUsers(t *testing.T) {
	verifier, err := pgwire.ScramVerifier("secret")
	require.NoError(t, err)
	u, err := parseUsers([]byte("# people\n\n alice:pass:word \r\nbob:" + verifier + "\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"alice", "bob"}, u.names)
	require.Contains(t, u.verifiers["alice"], "SCRAM-SHA-256$4096:")
	require.Equal(t, verifier, u.verifiers["bob"])
	for text, want := range map[string]string{
		"":                     "it names no role",
		"# nobody\n":           "it names no role",
		"alice\n":              "line 1: want role:password",
		"\nalice:\n":           "line 2: want role:password",
		":secret\n":            "line 1: want role:password",
		"alice:a\nalice:b\n":   `line 2: role "alice" occurs twice`,
		"bob:SCRAM-SHA-256$1:": "line 1: malformed SCRAM-SHA-256 verifier",
	} {
		_, err := parseUsers([]byte(text))
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:5442": true, "127.8.8.8:1": true, "[::1]:5442": true, "localhost:5442": true, "[::ffff:127.0.0.1]:1": true,
		"0.0.0.0:5442": false, ":5442": false, "[::]:5442": false, "10.0.0.1:5442": false, "localhost.example.com:5442": false, "127.0.0.1": false, "": false,
	} {
		require.Equal(t, want, loopback(addr), addr)
	}
}

// Strangers do not get in without passwords: the server does not start, and leaves no folder behind.
func TestPasswordsAreRequiredBeyondLoopback(t *testing.T) {
	cfg := testConfig(t)
	cfg.Listen = "0.0.0.0:0"
	_, err := Start(context.Background(), cfg, zerolog.Nop())
	require.ErrorIs(t, err, errNoPasswords)
	require.NoDirExists(t, cfg.Data)
	cfg.Listen = "5442"
	_, err = Start(context.Background(), cfg, zerolog.Nop())
	require.ErrorIs(t, err, errUsage)
}

func TestScram(t *testing.T) {
	cfg := testConfig(t)
	cfg.Listen, cfg.AuthFile, cfg.Demo = "0.0.0.0:0", write(t, "users", "alice:secret\n"), true
	s := startServer(t, cfg)
	defer func() { require.NoError(t, s.Close()) }()
	login := func(user *url.Userinfo) error {
		conn, err := pgx.Connect(context.Background(), s.urlFor(user))
		if err == nil {
			err = conn.Close(context.Background())
		}
		return err
	}
	require.NoError(t, login(url.UserPassword("alice", "secret")))
	for _, user := range []*url.Userinfo{url.UserPassword("alice", "Secret"), url.UserPassword("carol", "secret"), url.UserPassword(demoUser, "secret")} {
		var pe *pgconn.PgError
		require.ErrorAs(t, login(user), &pe)
		require.Equal(t, "28P01", pe.Code)
	}
	// The demo has its own way in, and no list of roles names it.
	conn, err := pgx.Connect(context.Background(), s.demoURL())
	require.NoError(t, err)
	defer conn.Close(context.Background())
	var roles []string
	require.NoError(t, conn.QueryRow(context.Background(), "SELECT array_agg(rolname::text) FROM pg_roles WHERE rolcanlogin").Scan(&roles))
	require.Contains(t, roles, "alice")
}
