package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The parts of a key come in the order in which the primary key was declared, whatever way it is looked up: PRIMARY KEY (b, a) is another key than (a, b).
func TestKeyInDeclaredOrder(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE rb (a int, b int, v text, PRIMARY KEY (b, a))")
	run(t, c, "INSERT INTO rb VALUES (1, 2, 'b2a1'), (2, 1, 'b1a2'), (7, 2, 'b2a7')")
	for sql, want := range map[string][][]string{
		"SELECT v FROM lookup('rb', ROW(2, 1))":                                                         {{"b2a1"}},
		"SELECT v FROM lookup('rb', ROW(1, 2))":                                                         {{"b1a2"}},
		"SELECT v FROM lookup('rb', ROW(2, 1), 'now')":                                                  {{"b2a1"}},
		"SELECT v FROM lookup('rb', 2) ORDER BY v":                                                      {{"b2a1"}, {"b2a7"}},
		"SELECT _key_ordinal, v FROM lookup_many('rb', ARRAY[ROW(1, 2), ROW(2, 7), ROW(7, 2)])":         {{"0", "b1a2"}, {"1", "b2a7"}},
		"SELECT l.v FROM (VALUES (2, 1)) x(p, q), lookup('rb', ROW(x.p, x.q)) l":                        {{"b2a1"}},
		"SELECT l.v FROM (VALUES (2, 1)) x(p, q), lookup('rb', ROW(x.p, x.q), 'now') l":                 {{"b2a1"}},
		"SELECT v FROM lookup('rb', ROW(2, 1), key_columns => ARRAY['a', 'b'])":                         {{"b1a2"}},
		"SELECT v FROM rb WHERE a = 1 AND b = 2":                                                        {{"b2a1"}},
		"SELECT v FROM rb WHERE (b, a) IN ((2, 1), (1, 2)) ORDER BY v":                                  {{"b1a2"}, {"b2a1"}},
		"SELECT v FROM (VALUES (1, 2)) x(p, q) JOIN table_at('rb', 'now') r ON r.a = x.p AND r.b = x.q": {{"b2a1"}},
	} {
		require.Equal(t, want, rows(t, c, sql), sql)
	}
	e := sqlstate(t, c, "SELECT * FROM lookup('rb', ROW(1, 2, 3))")
	require.Equal(t, "42804", e.Code)
	require.Equal(t, "The key is (b integer, a integer).", e.Hint)
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO rb VALUES (9, 8, 'own')")
	require.Equal(t, [][]string{{"own"}}, rows(t, c, "SELECT v FROM lookup('rb', ROW(8, 9))"))
	run(t, c, "CREATE TEMP TABLE tb (a int, b int, PRIMARY KEY (b, a))")
	run(t, c, "INSERT INTO tb VALUES (1, 2)")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT a FROM lookup('tb', ROW(2, 1))"))
	run(t, c, "COMMIT")
}
