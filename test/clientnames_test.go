package test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// A parameter of a reg* type in text format is a name of the catalog, as psycopg and SQLAlchemy send it. Values from PostgreSQL 15.
func TestNamesAsParameters(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY)")
	text := func(sql string, arg string) (string, error) {
		res := c.PgConn().ExecParams(context.Background(), sql, [][]byte{[]byte(arg)}, nil, nil, nil).Read()
		if res.Err != nil {
			return "", res.Err
		}
		return string(res.Rows[0][0]), nil
	}
	for _, q := range [][3]string{
		{"SELECT CAST($1 AS regclass)::oid", "pg_catalog.pg_constraint", "2606"},
		{"SELECT $1::regclass", "public.t", "t"},
		{"SELECT $1::regclass", "pg_class", "pg_class"},
		{"SELECT $1::regtype::oid", "integer", "23"},
		{"SELECT $1::regtype", "int4", "integer"},
		{"SELECT $1::regnamespace::oid", "pg_catalog", "11"},
		{"SELECT $1::regclass::oid", "2606", "2606"},
		{"SELECT count(*) FROM pg_class WHERE oid = $1::regclass", "pg_class", "1"},
	} {
		got, err := text(q[0], q[1])
		require.NoError(t, err, q)
		require.Equal(t, q[2], got, q)
	}
	for sql, want := range map[string]string{"SELECT $1::regclass": "42P01", "SELECT $1::regtype": "42704", "SELECT $1::regnamespace": "3F000"} {
		_, err := text(sql, "nope")
		require.ErrorContains(t, err, want, sql)
	}
}

// Encoding names as PostgreSQL cleans them; asyncpg sends quotes.
func TestClientEncodingNames(t *testing.T) {
	g := start(t)
	for _, name := range []string{"utf8", "UTF-8", "'utf-8'", "unicode"} {
		c := g.connect("client_encoding", name)
		require.Equal(t, [][]string{{"UTF8"}}, rows(t, c, "SHOW client_encoding"), name)
	}
	cfg, err := pgx.ParseConfig(g.srv.URL())
	require.NoError(t, err)
	cfg.RuntimeParams["client_encoding"] = "latin1"
	_, err = pgx.ConnectConfig(context.Background(), cfg)
	require.ErrorContains(t, err, "22023")
}
