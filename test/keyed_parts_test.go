package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A WITH that changes data runs also where the rest of the statement is a key query that an index answers alone. PostgreSQL 15 does the same.
func TestKeyQueryRunsItsParts(t *testing.T) {
	g := start(t)
	c := g.connect()
	ctx := context.Background()
	run(t, c, "CREATE TABLE o (id bigint PRIMARY KEY, s text)")
	run(t, c, "INSERT INTO o SELECT i, 's' FROM generate_series(1, 100) i")
	for i, rest := range []string{
		"SELECT id FROM o WHERE id = 1", "SELECT id FROM o WHERE id IN (1)", "SELECT id FROM lookup('o', 1)",
		"SELECT id FROM table_at('o', 'now') WHERE id = 1", "SELECT id FROM lookup_many('o', ARRAY[1])",
	} {
		sql := "WITH d AS (DELETE FROM o WHERE id = $1), u AS (UPDATE o SET s = 'u' WHERE id = $2) " + rest
		for k := range 2 { // the second time as a prepared statement
			var id int64
			gone := 10 + 2*i + k
			require.NoError(t, c.QueryRow(ctx, sql, gone, 50).Scan(&id), rest)
			require.EqualValues(t, 1, id)
			require.Equal(t, [][]string{{"0"}}, rows(t, c, fmt.Sprintf("SELECT count(*) FROM o WHERE id + 0 = %d", gone)), rest)
		}
		require.Equal(t, [][]string{{"u"}}, rows(t, c, "SELECT s FROM o WHERE id = 50"))
		run(t, c, "UPDATE o SET s = 's' WHERE id = 50")
	}
	run(t, c, "BEGIN READ ONLY")
	require.Equal(t, "25006", sqlstate(t, c, "WITH d AS (DELETE FROM o WHERE id = 99) SELECT id FROM o WHERE id = 1").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, "22012", sqlstate(t, c, "WITH d AS (UPDATE o SET s = (1 / 0)::text WHERE id = 99) SELECT id FROM o WHERE id = 1").Code)
}

// A column may be shown twice.
func TestKeyQueryShowsAColumnTwice(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE o (id bigint PRIMARY KEY, s text)")
	run(t, c, "INSERT INTO o VALUES (1, 'a'), (2, NULL)")
	for _, from := range []string{"o", "table_at('o', 'now')"} {
		require.Equal(t, [][]string{{"1", "1", "a"}}, rows(t, c, "SELECT id, * FROM "+from+" WHERE id = 1"))
		require.Equal(t, [][]string{{"a", "1", "7", "a"}}, rows(t, c, "SELECT s, id, 7, s FROM "+from+" WHERE id = 1"))
		require.Equal(t, [][]string{{"1", "1"}, {"2", "2"}}, rows(t, c, "SELECT id, id FROM "+from+" WHERE id IN (1, 2)"))
	}
}

// x = ANY (ARRAY(SELECT …)) is x IN (SELECT …), NULLs and all; the answers are PostgreSQL 15's.
func TestAnyOfArrayOfQuery(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE o (id bigint PRIMARY KEY, s text)")
	run(t, c, "INSERT INTO o SELECT i, 's' || i FROM generate_series(1, 1000) i")
	for sql, want := range map[string]string{
		"SELECT count(*) FROM o WHERE id = ANY (ARRAY(SELECT generate_series(1, 200)))":                          "200",
		"SELECT count(*) FROM o WHERE id <> ALL (ARRAY(SELECT generate_series(1, 200)))":                         "800",
		"SELECT count(*) FROM o WHERE id <> ALL (ARRAY(SELECT NULLIF(i, 3) FROM generate_series(1, 3) i))":       "0",
		"SELECT count(*) FROM o WHERE id = ANY (ARRAY(SELECT 1 WHERE false))":                                    "0",
		"SELECT count(*) FROM o WHERE id <> ALL (ARRAY(SELECT 1 WHERE false))":                                   "1000",
		"SELECT count(*) FROM o WHERE s = ANY (ARRAY(SELECT 's' || i FROM generate_series(5, 6) i))":             "2",
		"SELECT count(*) FROM o a WHERE id = ANY (ARRAY(SELECT b.id FROM o b WHERE b.id = a.id AND b.id < 5))":   "4",
		"SELECT 9 = ANY (ARRAY(SELECT NULL::int)) IS NULL":                                                       "t",
		"SELECT count(*) FROM o WHERE id = ANY (ARRAY(SELECT id FROM o ORDER BY id DESC LIMIT 3)) AND id > 998":  "2",
		"SELECT count(*) FROM o a JOIN o b ON a.id = ANY (ARRAY(SELECT generate_series(1, 2))) AND b.id = a.id":  "2",
		"SELECT array_length(ARRAY(SELECT generate_series(1, 200)), 1)":                                          "200",
		"SELECT count(*) FROM o WHERE id > ANY (ARRAY(SELECT generate_series(990, 1000)))":                       "10",
		"SELECT count(*) FROM o WHERE ROW(id) = ANY (ARRAY(SELECT ROW(i::bigint) FROM generate_series(1, 2) i))": "2",
	} {
		require.Equal(t, want, rows(t, c, sql)[0][0], sql)
	}
}
