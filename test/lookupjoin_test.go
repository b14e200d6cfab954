package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A lookup whose key comes from another item of FROM is a join on the key.
func TestLookupOverColumns(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE a (id bigint PRIMARY KEY, v text); INSERT INTO a VALUES (2, 'b'), (3, 'c')")
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, ref int, name text); INSERT INTO k VALUES (1, 2, 'x'), (2, 3, 'y'), (5, NULL, 'z'), (6, 77, 'w')")
	run(t, c, "SELECT skade.create_tag('a', 'v1')")
	run(t, c, "UPDATE a SET v = 'B' WHERE id = 2")
	joined := [][]string{{"1", "B"}, {"2", "c"}, {"5", ""}, {"6", ""}}
	require.Equal(t, joined[:2], rows(t, c, "SELECT k.id, l.v FROM k, LATERAL lookup('public.a', k.ref) l ORDER BY 1"))
	require.Equal(t, joined[:2], rows(t, c, "SELECT k.id, v FROM k, skade.lookup('a', ref) ORDER BY 1"))
	require.Equal(t, joined, rows(t, c, "SELECT k.id, coalesce(l.w, '') FROM k LEFT JOIN lookup('a', k.ref) AS l(i, w) ON true ORDER BY 1"))
	require.Equal(t, joined, rows(t, c, "SELECT id, coalesce((SELECT v FROM lookup('a', k.ref)), '') FROM k ORDER BY 1"))
	// id is k's, not that of the table that is looked up.
	require.Equal(t, joined[:2], rows(t, c, "SELECT k.id, l.v FROM k, lookup('a', id + 1) l ORDER BY 1"))
	require.Equal(t, [][]string{{"1", "B", "b"}, {"2", "c", "c"}}, rows(t, c, "SELECT k.id, l.v, m.v FROM k, lookup('a', ref) l, lookup('a', k.ref, as_of => 'tag:v1') m ORDER BY 1"))
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO a VALUES (77, 'own')")
	require.Equal(t, append(joined[:2:2], []string{"6", "own"}), rows(t, c, "SELECT k.id, v FROM k, lookup('a', ref) ORDER BY 1"))
	run(t, c, "ROLLBACK")
	run(t, c, "CREATE VIEW lv AS SELECT k.id, l.v FROM k, lookup('a', k.ref) l")
	require.Equal(t, joined[:2], rows(t, c, "SELECT * FROM lv ORDER BY 1"))
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE a").Code)

	run(t, c, "CREATE TABLE two (a int, b int, PRIMARY KEY (a, b)); CREATE TABLE none (a int)")
	for sql, code := range map[string]string{
		"SELECT * FROM k, lookup('a', k.name) l":                              "42804",
		"SELECT * FROM k, lookup('nope', k.ref) l":                            "42P01",
		"SELECT * FROM k, lookup('skade.commits', k.ref) l":                   "42809",
		"SELECT * FROM k, lookup('two', ROW(k.ref, 1, 2)) l":                  "42804",
		"SELECT * FROM k, lookup_many('two', ARRAY[ROW(k.ref, 1), ROW(1)]) l": "42804",
		"SELECT * FROM k, lookup('none', k.ref) l":                            "42P10",
		"SELECT * FROM k, lookup('a', k.nope) l":                              "42703",
		"SELECT * FROM k, lookup('a', k.ref, key_columns => '{v}') l":         "42804",
		"SELECT * FROM k, lookup('a', k.ref, key_columns => '{x}') l":         "42703",
		"SELECT * FROM k, lookup('a', k.ref, key_columns => k.name) l":        "0A000",
	} {
		require.Equal(t, code, sqlstate(t, c, sql).Code, sql)
	}
}
