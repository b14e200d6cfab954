package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// fill makes a table with a row.
func fill(t *testing.T, s *Server) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL())
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
	require.NoError(t, err)
}

// check's exit codes: sound, by the port and by the folder; damaged; no warehouse; wrong use.
func TestCheck(t *testing.T) {
	cfg := testConfig(t)
	s := startServer(t, cfg)
	fill(t, s)
	code, out, stderr := run("check", "--data", cfg.Data)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "ok: catalog, commit log and every referenced file (server at postgres://")
	code, out, stderr = run("check", "--url", s.URL())
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "(server at ")
	files, err := filepath.Glob(filepath.Join(cfg.Data, "warehouse", "public", "*", "data", "*.parquet"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, s.Close())

	code, out, stderr = run("check", "--data", cfg.Data)
	require.Equal(t, 0, code, stderr)
	require.Contains(t, out, "(folder "+cfg.Data+")")
	require.NoError(t, os.Truncate(files[0], 100))
	code, out, stderr = run("check", "--data", cfg.Data)
	require.Equal(t, 1, code)
	require.Empty(t, stderr)
	require.Contains(t, out, files[0]+": data file of public.t")
	require.Contains(t, out, "has 100 bytes")
	require.Contains(t, out, "1 problem found (folder "+cfg.Data+")")

	s = startServer(t, cfg)
	code, out, _ = run("check", "--data", cfg.Data)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "has 100 bytes")
	require.Contains(t, out, "1 problem found (server at ")
	require.NoError(t, s.Close())

	for _, dir := range []string{t.TempDir(), "/does/not/exist"} {
		code, _, stderr = run("check", "--data", dir)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "no warehouse in folder "+dir)
	}
}

func TestCommandLine(t *testing.T) {
	code, out, _ := run("version")
	require.Equal(t, 0, code)
	require.Contains(t, out, "skade-pg "+version)
	code, out, _ = run()
	require.Equal(t, 0, code)
	require.Contains(t, out, "Available Commands:")
	for want, args := range map[string][]string{
		`unknown command "foo"`:             {"foo"},
		"unknown flag: --nope":              {"serve", "--nope"},
		`serve takes no argument, "x"`:      {"serve", "x"},
		`check takes no argument, "x"`:      {"check", "x"},
		`log level "loud"`:                  {"serve", "--log-level", "loud"},
		`"lots" is not a size`:              {"serve", "--memory-limit", "lots", "--data", t.TempDir()},
		"--tls-cert and --tls-key go":       {"serve", "--tls-cert", "x", "--data", t.TempDir()},
		"invalid argument \"x\"":            {"serve", "--threads", "x"},
		"listen: \"here\" is not HOST:PORT": {"serve", "--listen", "here"},
	} {
		code, _, stderr := run(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Contains(t, stderr, "Try 'skade-pg --help'.")
	}
}
