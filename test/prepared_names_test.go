package test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A prepared statement's names are looked up again when something changed that they depend on: search_path, a temporary relation, a
// transaction's own definitions, another session's. PostgreSQL 15 answers the same.
func TestPreparedNamesFollow(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	ctx := context.Background()
	run(t, c, "CREATE SCHEMA a")
	run(t, c, "CREATE SCHEMA b")
	run(t, c, "CREATE TABLE a.t (id int PRIMARY KEY, v text)")
	run(t, c, "CREATE TABLE b.t (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO a.t VALUES (1, 'a')")
	run(t, c, "INSERT INTO b.t VALUES (1, 'b')")
	run(t, c, "SET search_path = a")
	_, err := c.Prepare(ctx, "p", "SELECT v FROM t WHERE id = $1")
	require.NoError(t, err)
	get := func() string {
		t.Helper()
		var v string
		require.NoError(t, c.QueryRow(ctx, "p", 1).Scan(&v))
		return v
	}
	for range 3 {
		require.Equal(t, "a", get())
	}
	run(t, c, "SET search_path = b")
	require.Equal(t, "b", get())
	run(t, c, "SET search_path = a")
	require.Equal(t, "a", get())

	run(t, other, "UPDATE a.t SET v = 'a2'")
	require.Equal(t, "a2", get())
	run(t, c, "BEGIN")
	run(t, c, "UPDATE t SET v = 'mine'")
	require.Equal(t, "mine", get())
	run(t, c, "ROLLBACK")
	require.Equal(t, "a2", get())
	run(t, c, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	require.Equal(t, "a2", get())
	run(t, other, "UPDATE a.t SET v = 'a3'")
	require.Equal(t, "a2", get(), "one cut")
	run(t, c, "COMMIT")
	require.Equal(t, "a3", get())
	run(t, c, "BEGIN ISOLATION LEVEL READ COMMITTED")
	require.Equal(t, "a3", get())
	run(t, other, "UPDATE a.t SET v = 'a4'")
	require.Equal(t, "a4", get(), "READ COMMITTED")
	run(t, c, "COMMIT")

	run(t, c, "CREATE TEMP TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'temporary')")
	require.Equal(t, "temporary", get())
	run(t, c, "DROP TABLE pg_temp.t")
	require.Equal(t, "a4", get())

	run(t, other, "ALTER TABLE a.t RENAME TO gone")
	require.Equal(t, "42P01", sqlstate(t, c, "p", 1).Code)
	run(t, other, "ALTER TABLE a.gone RENAME TO t")
	require.Equal(t, "a4", get())

	// A serializable transaction whose only read was a prepared lookup still conflicts with a write of what it read.
	run(t, c, "CREATE TABLE a.w (id int)")
	run(t, c, "BEGIN ISOLATION LEVEL SERIALIZABLE")
	require.Equal(t, "a4", get())
	run(t, other, "UPDATE a.t SET v = 'a5'")
	run(t, c, "INSERT INTO a.w VALUES (1)")
	require.Equal(t, "40001", sqlstate(t, c, "COMMIT").Code)
}
