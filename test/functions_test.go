package test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFunctionErrors: every mistake that a caller of schema skade's functions can make has its SQLSTATE, and the session lives on.
func TestFunctionErrors(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE k (id int, sub text, v int, PRIMARY KEY (id, sub))")
	run(t, c, "CREATE TABLE l (v int)")
	run(t, c, "CREATE TABLE r (id int PRIMARY KEY, _change_type text)")
	run(t, c, "CREATE VIEW w AS SELECT id FROM k")
	run(t, c, "INSERT INTO k VALUES (1, 'a', 10), (1, 'b', 11), (2, 'a', 20)")
	run(t, c, "INSERT INTO l VALUES (1), (1)")
	for sql, code := range map[string]string{
		"SELECT * FROM table_changes('nosuch', NULL)":                             "42P01",
		"SELECT * FROM table_changes('w', NULL)":                                  "42809",
		"SELECT * FROM table_changes(NULL, NULL)":                                 "22023",
		"SELECT * FROM table_changes('r', NULL)":                                  "42701",
		"SELECT * FROM table_changes('k', 12345)":                                 "42704",
		"SELECT * FROM table_changes('k', 'tag:none')":                            "42704",
		"SELECT * FROM table_changes('k', 'seq:99999')":                           "42704",
		"SELECT * FROM table_changes('k', 'yesterday-ish')":                       "22023",
		"SELECT * FROM table_changes('k', 'seq:x')":                               "22023",
		"SELECT * FROM table_changes('k', 'now', 'earliest')":                     "22023",
		"SELECT * FROM table_changes('k', NULL, NULL, shard => 'x')":              "22023",
		"SELECT * FROM table_changes('k', NULL, NULL, identifier => ARRAY['zz'])": "42703",
		"SELECT * FROM table_changes(lower('K'), NULL)":                           "42P18",
		"SELECT * FROM lookup('l', 1)":                                            "42P10",
		"SELECT * FROM lookup('k', 'x'::text)":                                    "42804",
		"SELECT * FROM lookup('k', ROW(1, 'a', 3))":                               "42804",
		"SELECT * FROM lookup('nosuch', 1)":                                       "42P01",
		"SELECT * FROM table_at('k', 'tag:none')":                                 "42704",
		"SELECT * FROM commits_since(-1)":                                         "22023",
		"SELECT * FROM commits_since(0, ARRAY['nosuch'])":                         "42P01",
		"SELECT commit_channel('nosuch')":                                         "42P01",
		"SELECT snapshot_at('k', 'nonsense')":                                     "22023",
	} {
		require.Equal(t, code, sqlstate(t, c, sql).Code, sql)
	}
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"))

	// A composite key, a prefix of it, a NULL part, a table without a key.
	require.Equal(t, [][]string{{"1", "b", "11"}}, rows(t, c, "SELECT * FROM lookup('k', ROW(1, 'b'))"))
	require.Len(t, rows(t, c, "SELECT * FROM lookup('k', 1)"), 2)
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('k', ROW(1, NULL))"))
	require.Len(t, rows(t, c, "SELECT * FROM lookup('l', 1, key_columns => ARRAY['v'])"), 2)
}

// TestParametersInFunctions: bounds and keys as parameters, typed and untyped, in text and binary.
func TestParametersInFunctions(t *testing.T) {
	g := start(t)
	c := g.connect()
	ctx := context.Background()
	run(t, c, "CREATE TABLE p (id bigint PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO p VALUES (1, 'one')")
	var before int64
	require.NoError(t, c.QueryRow(ctx, "SELECT current_commit_seq()").Scan(&before))
	run(t, c, "UPDATE p SET v = 'uno'")
	var v string
	require.NoError(t, c.QueryRow(ctx, "SELECT v FROM lookup('p', $1::bigint)", int64(1)).Scan(&v))
	require.Equal(t, "uno", v)
	require.NoError(t, c.QueryRow(ctx, "SELECT v FROM p WHERE id = $1", int64(1)).Scan(&v))
	require.Equal(t, "uno", v)
	require.NoError(t, c.QueryRow(ctx, "SELECT v FROM table_at('p', 'seq:' || $1::bigint)", before).Scan(&v))
	require.Equal(t, "one", v)
	var n int
	require.NoError(t, c.QueryRow(ctx, "SELECT count(*) FROM table_changes('p', $1, $2)", "earliest", "now").Scan(&n))
	require.Equal(t, 3, n) // earliest is the state before the first snapshot, as long as that is retained
	require.NoError(t, c.QueryRow(ctx, "SELECT count(*) FROM commits_since($1)", before).Scan(&n))
	require.Equal(t, 1, n)
	// The same prepared statement sees a new commit.
	_, err := c.Prepare(ctx, "again", "SELECT v FROM p WHERE id = $1")
	require.NoError(t, err)
	for _, want := range []string{"uno", "dos"} {
		require.NoError(t, c.QueryRow(ctx, "again", int64(1)).Scan(&v))
		require.Equal(t, want, v)
		run(t, c, "UPDATE p SET v = 'dos'")
	}
}

// TestOwnWrites: SELECT and lookup see a transaction's own rows, table_changes does not.
func TestOwnWrites(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE o (id int PRIMARY KEY, v int)")
	run(t, c, "INSERT INTO o VALUES (1, 1)")
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO o VALUES (2, 2)")
	run(t, c, "UPDATE o SET v = 10 WHERE id = 1")
	require.Equal(t, [][]string{{"1", "10"}, {"2", "2"}}, rows(t, c, "SELECT * FROM o ORDER BY id"))
	require.Equal(t, [][]string{{"2", "2"}}, rows(t, c, "SELECT * FROM lookup('o', 2)"))
	require.Equal(t, [][]string{{"10"}}, rows(t, c, "SELECT v FROM o WHERE id = 1"))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT count(*) FROM table_changes('o', NULL)"))
	run(t, c, "DELETE FROM o WHERE id = 2")
	run(t, c, "COMMIT")
	// A row born and dead inside the transaction never appears.
	require.Equal(t, [][]string{{"INSERT", "1", "1"}, {"UPDATE_BEFORE", "1", "1"}, {"UPDATE_AFTER", "1", "10"}},
		rows(t, c, "SELECT _change_type, id, v FROM table_changes('o', NULL)"))
}

// TestNetChanges is L3 and L4: one change per key, whatever happened between, and the inverse when the ends are swapped.
func TestNetChanges(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE net (id int PRIMARY KEY, v int)")
	run(t, c, "INSERT INTO net VALUES (1, 1), (2, 2), (3, 3)")
	from := "seq:" + rows(t, c, "SELECT current_commit_seq()")[0][0]
	run(t, c, "UPDATE net SET v = v + 10 WHERE id = 1")
	run(t, c, "UPDATE net SET v = v + 10 WHERE id = 1")
	run(t, c, "INSERT INTO net VALUES (4, 4)")
	run(t, c, "DELETE FROM net WHERE id = 4")
	run(t, c, "DELETE FROM net WHERE id = 3")
	run(t, c, "INSERT INTO net VALUES (5, 5)")
	require.Equal(t, [][]string{{"1", "1", "UPDATE_BEFORE"}, {"1", "21", "UPDATE_AFTER"}, {"3", "3", "DELETE"}, {"5", "5", "INSERT"}},
		rows(t, c, "SELECT id, v, _change_type FROM table_changes_net('net', '"+from+"', 'now') ORDER BY id, _change_row"))
	require.Equal(t, [][]string{{"1", "21", "UPDATE_BEFORE"}, {"1", "1", "UPDATE_AFTER"}, {"3", "3", "INSERT"}, {"5", "5", "DELETE"}},
		rows(t, c, "SELECT id, v, _change_type FROM table_changes_net('net', 'now', '"+from+"') ORDER BY id, _change_row"))
}
