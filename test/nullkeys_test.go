package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPrefixFindsNulls: the leading columns of a key find the rows under them whatever the later ones hold, as PostgreSQL's WHERE does: rows of a file, of a
// transaction, and however they are asked for.
func TestPrefixFindsNulls(t *testing.T) {
	g := start(t)
	c := g.connect()
	ids := func(sql string) string {
		var out []string
		for _, r := range rows(t, c, sql) {
			out = append(out, r[0])
		}
		return strings.Join(out, " ")
	}
	run(t, c, "CREATE TABLE np (id int PRIMARY KEY, a int, b int, s text)")
	run(t, c, "INSERT INTO np VALUES (1, 5, 1, 'x'), (2, 5, NULL, NULL), (4, 6, NULL, 'y'), (5, NULL, 1, 'x')")
	check := func(more string) {
		t.Helper()
		require.Equal(t, "1 2"+more, ids("SELECT id FROM np WHERE a = 5 ORDER BY id"))
		for _, key := range []string{"'a', 'b'", "'a', 's'", "'a', 'b', 's'", "'a', 's', 'b'"} {
			require.Equal(t, "1 2"+more, ids("SELECT id FROM lookup('np', 5, key_columns => ARRAY["+key+"]) ORDER BY id"), key)
			require.Equal(t, "4", ids("SELECT id FROM lookup('np', 6, key_columns => ARRAY["+key+"])"), key)
			require.Equal(t, "21000", sqlstate(t, g.connect(), "SELECT * FROM lookup('np', 5, key_columns => ARRAY["+key+"], strict => true)").Code)
		}
		require.Equal(t, "1", ids("SELECT id FROM lookup('np', ROW(5, 1), key_columns => ARRAY['a', 'b', 's'])"))
		require.Equal(t, "", ids("SELECT id FROM lookup('np', ROW(5, 2), key_columns => ARRAY['a', 'b', 's'])"))
	}
	check("")
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO np VALUES (3, 5, NULL, 'z')")
	require.Equal(t, "1 2 3", ids("SELECT id FROM lookup('np', 5, key_columns => ARRAY['a', 'b']) ORDER BY id"))
	run(t, c, "COMMIT")
	check(" 3")
	// A file large enough for a stored index, in key order but for the NULLs behind.
	run(t, c, "INSERT INTO np SELECT i, i, CASE WHEN i < 19000 THEN i END, NULL FROM generate_series(100, 20000) i")
	check(" 3")
	require.Equal(t, "19500", ids("SELECT id FROM lookup('np', 19500, key_columns => ARRAY['a', 'b'])"))
	require.Equal(t, "18000", ids("SELECT id FROM lookup('np', 18000, key_columns => ARRAY['a', 'b'])"))
	require.Equal(t, "18000", ids("SELECT id FROM lookup('np', ROW(18000, 18000), key_columns => ARRAY['a', 'b'])"))
}
