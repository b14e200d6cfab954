package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// pastTable makes a table of 9 rows and changes its definition; it returns the bound from before the change.
func pastTable(t *testing.T, c *pgx.Conn, create, insert, change string) string {
	t.Helper()
	run(t, c, create)
	run(t, c, insert)
	bound := fmt.Sprintf("'seq:%d'", number(t, c, "SELECT current_commit_seq()"))
	run(t, c, change)
	return bound
}

// A join by key into the past is by the key of that state: its columns, their names, order and types.
func TestJoinsByKeyOfThePast(t *testing.T) {
	c := start(t).connect()
	for _, x := range []struct {
		name, create, insert, change string
		queries                      [][2]string // T is the table, S the bound
	}{
		{"retyped", "CREATE TABLE r2 (id int PRIMARY KEY, v int)", "INSERT INTO r2 SELECT i, i * 2 FROM generate_series(1, 120000) i", "ALTER TABLE r2 ALTER COLUMN id TYPE text", [][2]string{
			{"SELECT * FROM (VALUES (3), (120000), (0)) y(q) JOIN table_at('r2', S) z ON z.id = y.q", "120000,120000,240000 3,3,6"},
			{"SELECT y.q, z.* FROM (VALUES (3), (7)) y(q), lookup('r2', y.q, S) z", "3,3,6 7,7,14"},
			{"SELECT z.* FROM (VALUES (ARRAY[5, 3])) y(q), lookup_many('r2', y.q, S) z", "3,6,1 5,10,0"},
			{"SELECT z.* FROM (VALUES ('3')) y(q) JOIN table_at('r2', 'now') z ON z.id = y.q", "3,6"},
			{"SELECT z.* FROM (VALUES ('3')) y(q) JOIN r2 z ON z.id = y.q", "3,6"},
			{"SELECT z.* FROM (VALUES (3)) y(q) JOIN r2 z ON z.id = y.q::text JOIN table_at('r2', S) o ON o.id::text = z.id AND o.id = y.q", "3,6"},
		}},
		{"widened, then retyped", "CREATE TABLE r8 (id int PRIMARY KEY, v int)", "INSERT INTO r8 SELECT i, i FROM generate_series(1, 9) i",
			"ALTER TABLE r8 ALTER COLUMN id TYPE bigint; ALTER TABLE r8 ALTER COLUMN id TYPE text", [][2]string{
				{"SELECT z.* FROM (VALUES (3)) y(q) JOIN table_at('r8', S) z ON z.id = y.q", "3,3"},
				{"SELECT z.* FROM (VALUES (3)) y(q), lookup('r8', y.q, S) z", "3,3"},
				{"SELECT z.* FROM lookup('r8', 3, S) z", "3,3"},
				{"SELECT z.* FROM table_at('r8', S) z WHERE id = 3", "3,3"},
			}},
		{"names exchanged", "CREATE TABLE r3 (a int, b int, v int, PRIMARY KEY (a, b))", "INSERT INTO r3 SELECT i, i + 1, i FROM generate_series(1, 9) i",
			"ALTER TABLE r3 RENAME a TO t; ALTER TABLE r3 RENAME b TO a; ALTER TABLE r3 RENAME t TO b", [][2]string{
				{"SELECT z.* FROM (VALUES (3, 4)) y(p, q) JOIN table_at('r3', S) z ON z.a = y.p AND z.b = y.q", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3)) y(p) JOIN table_at('r3', S) z ON z.a = y.p", "3,4,3"},
				{"SELECT z.* FROM (VALUES (4)) y(p) JOIN table_at('r3', S) z ON z.b = y.p", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3, 4)) y(p, q), lookup('r3', ROW(y.p, y.q), S) z", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3)) y(p), lookup('r3', y.p, S) z", "3,4,3"},
				{"SELECT z.* FROM lookup('r3', ROW(3, 4), S) z", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3, 4)) y(p, q), lookup('r3', ROW(y.q, y.p), S, key_columns => ARRAY['b', 'a']) z", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3, 4)) y(p, q) JOIN r3 z ON z.b = y.p AND z.a = y.q", "3,4,3"},
				{"SELECT z.* FROM (VALUES (3, 4)) y(p, q), lookup('r3', ROW(y.p, y.q)) z", "3,4,3"},
			}},
		{"renamed", "CREATE TABLE r6 (id int PRIMARY KEY, v int, g int)", "INSERT INTO r6 SELECT i, i, i % 3 FROM generate_series(1, 9) i", "ALTER TABLE r6 RENAME COLUMN id TO k", [][2]string{
			{"SELECT l.* FROM (VALUES (3)) y(q), lookup('r6', y.q, S) l", "3,3,0"},
			{"SELECT l.id FROM (VALUES (3)) y(q), lookup('r6', y.q, S, strict => true) l", "3"},
			{"SELECT l.id, l._key_ordinal FROM (VALUES (3)) y(q), lookup_many('r6', ARRAY[y.q, 5], S) l", "3,0 5,1"},
			{"SELECT l.id FROM (VALUES (3)) y(q), lookup('r6', y.q, S, key_columns => '{id}') l", "3"},
			{"SELECT l.id FROM (VALUES (1)) y(q), lookup('r6', y.q, S, key_columns => '{g}') l", "1 4 7"},
			{"SELECT l.k FROM (VALUES (3)) y(q), lookup('r6', y.q) l", "3"},
			{"SELECT l.k FROM (VALUES (3)) y(q), lookup('r6', y.q, NULL::text) l", "3"},
			{"SELECT l.k FROM (VALUES (3, S)) y(q, at), lookup('r6', y.q, y.at) l", "3"},
			{"SELECT l.k FROM (VALUES (3, S)) y(q, at), lookup('r6', y.q, y.at, key_columns => '{k}') l", "3"},
		}},
		{"with another column", "CREATE TABLE r9 (v int, id int PRIMARY KEY)", "INSERT INTO r9 SELECT -i, i FROM generate_series(1, 9) i", "ALTER TABLE r9 ADD COLUMN z int; ALTER TABLE r9 DROP COLUMN v; ALTER TABLE r9 ADD COLUMN w int", [][2]string{
			{"SELECT l.* FROM (VALUES (3)) y(q), lookup('r9', y.q, S) l", "-3,3"},
			{"SELECT l.* FROM (VALUES (3)) y(q) JOIN table_at('r9', S) l ON l.id = y.q", "-3,3"},
			{"SELECT l.* FROM (VALUES (-3)) y(q) JOIN table_at('r9', S) l ON l.v = y.q", "-3,3"},
			{"SELECT l.* FROM (VALUES (3)) y(q), lookup('r9', y.q) l", "3,∅,∅"},
		}},
		{"without its key", "CREATE TABLE r7 (id int CONSTRAINT r7_key PRIMARY KEY, v int)", "INSERT INTO r7 SELECT i, i FROM generate_series(1, 9) i", "ALTER TABLE r7 DROP CONSTRAINT r7_key", [][2]string{
			{"SELECT l.* FROM (VALUES (3)) y(q), lookup('r7', y.q, S) l", "3,3"},
			{"SELECT l.* FROM lookup('r7', 3, S) l", "3,3"},
			{"SELECT l.* FROM (VALUES (3)) y(q) JOIN table_at('r7', S) l ON l.id = y.q", "3,3"},
			{"SELECT l.* FROM (VALUES (3)) y(q) JOIN r7 l ON l.id = y.q", "3,3"},
		}},
		{"with another key", "CREATE TABLE ra (a int PRIMARY KEY, b int NOT NULL)", "INSERT INTO ra SELECT i, 10 - i FROM generate_series(1, 9) i",
			"ALTER TABLE ra DROP CONSTRAINT ra_pkey; ALTER TABLE ra ADD PRIMARY KEY (b)", [][2]string{
				{"SELECT l.* FROM (VALUES (3)) y(q), lookup('ra', y.q, S) l", "3,7"},
				{"SELECT l.* FROM (VALUES (3)) y(q), lookup('ra', y.q) l", "7,3"},
				{"SELECT l.* FROM (VALUES (3)) y(q) JOIN table_at('ra', S) l ON l.a = y.q", "3,7"},
				{"SELECT l.* FROM (VALUES (3)) y(q) JOIN table_at('ra', S) l ON l.b = y.q", "7,3"},
				{"SELECT l.* FROM (VALUES (3)) y(q) JOIN ra l ON l.b = y.q", "7,3"},
			}},
		{"its key in another order than its columns", "CREATE TABLE rb (a int, b int, PRIMARY KEY (b, a))", "INSERT INTO rb SELECT i, 20 - i FROM generate_series(1, 9) i", "ALTER TABLE rb RENAME a TO c", [][2]string{
			{"SELECT l.* FROM (VALUES (3, 17)) y(p, q) JOIN table_at('rb', S) l ON l.a = y.p AND l.b = y.q", "3,17"},
			{"SELECT l.* FROM (VALUES (3, 17)) y(p, q) JOIN rb l ON l.c = y.p AND l.b = y.q", "3,17"},
		}},
	} {
		bound := pastTable(t, c, x.create, x.insert, x.change)
		for _, q := range x.queries {
			everyWay(t, c, strings.ReplaceAll(q[0], " S", " "+bound), q[1])
		}
	}
	pe := sqlstate(t, c, "SELECT l.* FROM (VALUES (3)) y(q), lookup('r6', y.q, key_columns => '{id}') l")
	require.Equal(t, "42703", pe.Code)
	require.Equal(t, `column "id" of relation "r6" does not exist`, pe.Message)
	require.Equal(t, "42P10", sqlstate(t, c, "SELECT l.* FROM (VALUES (3)) y(q), lookup('r7', y.q) l").Code)

	// A definition that this transaction has changed is not the one of a committed state.
	run(t, c, "BEGIN; ALTER TABLE r6 RENAME COLUMN k TO kk")
	require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT l.k FROM (VALUES (3, 'now')) y(q, at), lookup('r6', y.q, y.at) l"))
	require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT l.kk FROM (VALUES (3)) y(q), lookup('r6', y.q) l"))
	run(t, c, "ROLLBACK")
}
