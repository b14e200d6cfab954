package test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

// gateway is a running server of a test.
type gateway struct {
	t   testing.TB
	dir string
	srv *cli.Server
	// configure, when set, changes the configuration that open uses.
	configure func(*cli.Config)
}

// start serves a fresh folder.
func start(t testing.TB) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data")}
	g.open()
	t.Cleanup(g.close)
	return g
}

func (g *gateway) open() {
	g.t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(g.t)).Level(zerolog.WarnLevel)
	if os.Getenv("SKADE_TEST_LOG") != "" {
		log = log.Level(zerolog.DebugLevel)
	}
	cfg := &cli.Config{Data: g.dir, Listen: "127.0.0.1:0", Database: "skade", MaxConnections: 100, DrainSeconds: 5, RetainDropped: 7 * 24 * time.Hour}
	if g.configure != nil {
		g.configure(cfg)
	}
	srv, err := cli.Start(context.Background(), cfg, log)
	require.NoError(g.t, err)
	g.srv = srv
}

// close stops the server and checks its folder (the one Check, at the end of every test).
func (g *gateway) close() {
	if g.srv == nil {
		return
	}
	require.NoError(g.t, g.srv.Close())
	g.srv = nil
	checkFolder(g.t, g.dir)
}

// connect opens a connection that the test closes.
func (g *gateway) connect(options ...string) *pgx.Conn {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cfg, err := pgx.ParseConfig(g.srv.URL())
	require.NoError(g.t, err)
	for i := 0; i+1 < len(options); i += 2 {
		cfg.RuntimeParams[options[i]] = options[i+1]
	}
	c, err := pgx.ConnectConfig(ctx, cfg)
	require.NoError(g.t, err)
	g.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// run runs statements that must succeed.
func run(t testing.TB, c *pgx.Conn, sql string, args ...any) pgconn.CommandTag {
	t.Helper()
	tag, err := c.Exec(context.Background(), sql, args...)
	require.NoError(t, err, sql)
	return tag
}

// rows runs a query and returns every value as text in PostgreSQL's form, NULL as "∅", through the simple protocol.
func rows(t testing.TB, c *pgx.Conn, sql string) [][]string {
	t.Helper()
	res, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	require.NoError(t, err, sql)
	require.NotEmpty(t, res, sql)
	last := res[len(res)-1]
	out := make([][]string, len(last.Rows))
	for i, r := range last.Rows {
		for _, v := range r {
			if v == nil {
				out[i] = append(out[i], "∅")
			} else {
				out[i] = append(out[i], string(v))
			}
		}
	}
	return out
}

// sqlstate runs a statement that must fail, and returns its SQLSTATE.
func sqlstate(t *testing.T, c *pgx.Conn, sql string, args ...any) *pgconn.PgError {
	t.Helper()
	_, err := c.Exec(context.Background(), sql, args...)
	var pe *pgconn.PgError
	require.ErrorAs(t, err, &pe, sql)
	return pe
}

// newReader reads b in small pieces, so that rows are split over messages.
func newReader(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) }
