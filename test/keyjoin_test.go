package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bothWays runs a query with the rows of joined keys looked up and with tables scanned: the answers are the same. It returns the answer.
func bothWays(t *testing.T, c *pgx.Conn, sql string) [][]string {
	t.Helper()
	run(t, c, "SET skade.key_joins = off")
	want := anyOrder(rows(t, c, sql))
	run(t, c, "SET skade.key_joins = always")
	require.Equal(t, want, anyOrder(rows(t, c, sql)), sql)
	return want
}

func anyOrder(rows [][]string) [][]string {
	slices.SortFunc(rows, slices.Compare[[]string])
	return rows
}

// probed reports the sources that EXPLAIN says are read by their keys.
func probed(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	var out []string
	for _, r := range rows(t, c, "EXPLAIN "+sql) {
		if on, ok := strings.CutPrefix(r[0], "  ->  Index Scan using "); ok {
			_, name, _ := strings.Cut(on, " on public.")
			out = append(out, strings.Fields(name)[0])
		}
	}
	return strings.Join(out, " ")
}

// Joins by a table's key give the same rows whether they are looked up or scanned, in every kind of join and statement.
func TestJoinsByKey(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE TABLE u (id bigint PRIMARY KEY, ref int, v text);
		CREATE TABLE w (a int, b text, n numeric(10,2), PRIMARY KEY (a, b));
		CREATE TABLE c (id int PRIMARY KEY, ref int, big bigint, num numeric, name varchar(10), keys bigint[])`)
	run(t, c, "INSERT INTO u SELECT i, i / 2, 'v' || i FROM generate_series(1, 400) i")
	run(t, c, "INSERT INTO w SELECT i % 20, 'k' || i, i * 1.5 FROM generate_series(1, 200) i")
	run(t, c, "SELECT skade.create_tag('u', 'old'), skade.create_tag('w', 'old')")
	run(t, c, "UPDATE u SET v = v || '!' WHERE id % 7 = 0; DELETE FROM u WHERE id % 11 = 0; INSERT INTO u VALUES (1000, 3, 'new')")
	run(t, c, "DELETE FROM w WHERE a = 3; UPDATE w SET n = n + 1 WHERE a = 4")
	first := number(t, c, "SELECT current_commit_seq() + 1")
	run(t, c, `INSERT INTO c VALUES (1, 7, 8, 9.0, 'k4', '{1,7,7}'), (2, 11, NULL, 2.5, 'k24', NULL), (3, NULL, 1000, NULL, NULL, '{}'), (4, 7, 21, 99999999999999999999, 'k44', '{NULL,21}'),
		(5, 100000, -5, 14.00, 'zz', '{14}')`)
	run(t, c, "UPDATE c SET ref = 14 WHERE id = 4; DELETE FROM c WHERE id = 5")
	changes := fmt.Sprintf("table_changes('c', 'seq:%d')", first-1)

	for sql, by := range map[string]string{
		// inner and outer joins; the table that is looked up on either side
		"SELECT c.id, u.v FROM c JOIN u ON u.id = c.ref":                                               "u",
		"SELECT c.id, u.v FROM c LEFT JOIN u ON u.id = c.ref":                                          "u",
		"SELECT c.id, u.v FROM c LEFT JOIN u ON u.id = c.ref AND u.v LIKE '%!'":                        "u",
		"SELECT c.id, u.v FROM u RIGHT JOIN c ON u.id = c.ref":                                         "u",
		"SELECT c.id, u.v FROM u JOIN c ON c.ref = u.id WHERE c.id < 3":                                "u",
		"SELECT c.id, u.v FROM c, u WHERE u.id = c.ref":                                                "u",
		"SELECT count(*) FROM c, u WHERE u.id = c.ref":                                                 "u",
		"SELECT c.id, u.v FROM c LEFT JOIN u ON u.id = c.ref WHERE u.id IS NULL":                       "u",
		"SELECT count(*), count(c.id) FROM c FULL JOIN u ON u.id = c.ref":                              "",
		"SELECT count(*), count(c.id) FROM u LEFT JOIN c ON u.id = c.ref":                              "",
		"SELECT count(*) FROM c, u WHERE u.id = c.ref OR c.id = 1":                                     "",
		"SELECT * FROM c JOIN u USING (ref)":                                                           "",
		"SELECT c.id, x.v FROM c JOIN (SELECT id AS k, v FROM u WHERE v <> 'v7') x ON x.k = c.ref":     "u",
		"SELECT c.id, x.n FROM c JOIN (SELECT id, count(*) AS n FROM u GROUP BY id) x ON x.id = c.ref": "",
		// types
		"SELECT c.id, u.v FROM c JOIN u ON u.id = c.big":                                                                            "u",
		"SELECT c.id, u.v FROM c JOIN u ON u.id = c.num":                                                                            "u",
		"SELECT c.id, u.v FROM c JOIN u ON u.id = c.num::float8":                                                                    "",
		"SELECT c.id, u.v FROM c JOIN u ON u.id = c.ref + 7":                                                                        "u",
		"SELECT c.id, u.v FROM (SELECT 1 AS id) o LEFT JOIN c ON c.id = 99 JOIN u ON u.id = coalesce(c.ref, 14)":                    "c u",
		"SELECT c.id, u.v FROM (SELECT 1 AS id) o LEFT JOIN c ON c.id = 99 JOIN u ON u.id = coalesce(c.ref, 14) WHERE c.id IS NULL": "c u",
		// keys of several columns
		"SELECT c.id, w.n FROM c JOIN w ON w.a = c.id AND w.b = c.name":     "w",
		"SELECT c.id, w.n FROM c JOIN w ON (w.a, w.b) = (c.id + 3, c.name)": "w",
		"SELECT c.id, w.b FROM c JOIN w ON w.a = c.id":                      "w",
		"SELECT c.id, w.n FROM c JOIN w ON w.b = c.name":                    "",
		"SELECT c.id, w.n FROM c JOIN w ON w.a = 4 AND w.b = c.name":        "w",
		// semi joins, and those that only look like one
		"SELECT v FROM u WHERE id IN (SELECT ref FROM c)":                              "u",
		"SELECT v FROM u WHERE id NOT IN (SELECT ref FROM c WHERE ref IS NOT NULL)":    "",
		"SELECT v FROM u WHERE NOT (id IN (SELECT ref FROM c WHERE ref IS NOT NULL))":  "",
		"SELECT v, id IN (SELECT ref FROM c) FROM u":                                   "",
		"SELECT n FROM w WHERE (a, b) IN (SELECT id, name FROM c)":                     "w",
		"SELECT id FROM c WHERE ref IN (SELECT id FROM u)":                             "u",
		"SELECT v FROM u WHERE EXISTS (SELECT FROM c WHERE c.ref = u.id AND c.id > 1)": "u",
		"SELECT v FROM u WHERE EXISTS (SELECT count(*) FROM c WHERE c.ref = u.id)":     "",
		"SELECT id FROM c WHERE EXISTS (SELECT FROM u WHERE u.id = c.ref)":             "u",
		"SELECT id FROM c WHERE NOT EXISTS (SELECT FROM u WHERE u.id = c.ref)":         "u",
		"SELECT id, (SELECT v FROM u WHERE u.id = c.ref) FROM c":                       "u",
		"SELECT id, (SELECT count(*) FROM u WHERE u.id = c.ref) FROM c":                "u",
		// drivers
		"SELECT x.k, u.v FROM (VALUES (7), (14), (NULL)) x(k) JOIN u ON u.id = x.k":                                                                 "u",
		"SELECT x.k, u.v FROM unnest(ARRAY[7, 14, NULL, 7]) x(k) JOIN u ON u.id = x.k":                                                              "u",
		"SELECT x, u.v FROM generate_series(5, 8) x JOIN u ON u.id = x":                                                                             "u",
		"SELECT x.r, u.v FROM (SELECT DISTINCT ref AS r FROM c) x JOIN u ON u.id = x.r":                                                             "u",
		"SELECT x.r, x.n, u.v FROM (SELECT ref AS r, count(*) AS n FROM c GROUP BY ref) x JOIN u ON u.id = x.r":                                     "u",
		"SELECT x.r, u.v FROM (SELECT ref AS r FROM c UNION SELECT big FROM c) x JOIN u ON u.id = x.r":                                              "u",
		"SELECT x.r, u.v FROM (SELECT max(ref) AS r FROM c) x JOIN u ON u.id = x.r":                                                                 "",
		"SELECT c.id, u.v FROM (SELECT * FROM c ORDER BY id LIMIT 2) c JOIN u ON u.id = c.ref":                                                      "u",
		"WITH d AS (SELECT ref FROM c WHERE id < 4) SELECT d.ref, u.v FROM d JOIN u ON u.id = d.ref":                                                "u",
		"WITH d AS (SELECT ref FROM c), k AS (SELECT * FROM u) SELECT d.ref, k.v, (SELECT count(*) FROM k) FROM d JOIN k ON k.id = d.ref":           "",
		"WITH RECURSIVE r(id, d) AS (SELECT 400::bigint, 0 UNION ALL SELECT u.ref, d + 1 FROM r JOIN u ON u.id = r.id WHERE d < 5) SELECT * FROM r": "",
		"SELECT x.id, x._change_type, u.v FROM " + changes + " x JOIN u ON u.id = x.ref":                                                            "u",
		"SELECT x.id, x._change_type, u.v FROM " + changes + " x LEFT JOIN table_at('u', 'tag:old') u ON u.id = x.ref":                              "u",
		"SELECT x.id, x._change_type, u.v FROM " + changes + " x JOIN table_at('u', 'earliest') u ON u.id = x.ref":                                  "u",
		"SELECT x.id, w.n FROM " + changes + " x JOIN table_at('w', 'tag:old') w ON w.a = x.id AND w.b = x.name":                                    "w",
		"SELECT c.id, u.v, m.v FROM c JOIN u ON u.id = c.ref JOIN table_at('u', 'tag:old') m ON m.id = u.ref":                                       "u u",
		"SELECT a.v, b.v FROM u a JOIN u b ON a.id = b.id WHERE a.ref = 7":                                                                          "u",
		"SELECT a.v FROM u a JOIN u b ON a.id = b.id JOIN c ON c.ref = a.id":                                                                        "u u",
		"SELECT t.relname, u.v FROM pg_class t JOIN u ON u.id = t.relnatts WHERE t.relname IN ('u', 'w')":                                           "u",
		"SELECT x.a, u.v FROM (SELECT i * 7 AS a FROM generate_series(1, 3) i) x JOIN u ON u.id = x.a + 7":                                          "u",
		"SELECT x.a, u.v FROM (SELECT 1 AS one) o LEFT JOIN (SELECT ref * 2 AS a FROM c) x ON x.a = 0 JOIN u ON u.id = coalesce(x.a, 7)":            "u",
		"SELECT u.v FROM (SELECT ref AS r FROM c UNION ALL VALUES (5)) x, u WHERE u.id = x.r + 1":                                                   "u",
		// lookups over columns
		"SELECT c.id, l.v FROM c, lookup('u', c.ref) l":                                                                             "u",
		"SELECT c.id, l.v FROM c LEFT JOIN LATERAL lookup('u', c.ref) l ON true":                                                    "u",
		"SELECT c.id, l.v FROM c LEFT JOIN lookup('u', c.ref, strict => true) l ON true":                                            "u",
		"SELECT c.id, l.v FROM c, lookup('u', c.num) l":                                                                             "u",
		"SELECT c.id, l.v FROM c, lookup('u', c.ref, 'tag:old') l":                                                                  "u",
		"SELECT c.id, l.v, m.v FROM c, lookup('u', c.ref) l, lookup('u', l.ref, as_of => 'tag:old') m":                              "u u",
		"SELECT c.id, l.n FROM c, lookup('w', ROW(c.id, c.name)) l":                                                                 "w",
		"SELECT c.id, l.b FROM c, lookup('w', ROW(c.id)) l":                                                                         "w",
		"SELECT c.id, l.b FROM c, lookup('w', c.id) l":                                                                              "w",
		"SELECT c.id, l.v FROM c, lookup('u', c.ref, key_columns => '{ref}') l":                                                     "",
		"SELECT c.id, l.n FROM c, lookup('w', ROW(c.name, c.id), key_columns => ARRAY['b', 'a']) l":                                 "w",
		"SELECT c.id, l.v, l._key_ordinal FROM c, lookup_many('u', c.keys) l":                                                       "u",
		"SELECT c.id, l.v, l._key_ordinal FROM c LEFT JOIN lookup_many('u', keys => ARRAY[c.ref, c.big], strict => true) l ON true": "u",
		"SELECT c.id, l.n, l._key_ordinal FROM c, lookup_many('w', ARRAY[ROW(c.id, c.name), ROW(4, 'k24')]) l":                      "w",
		"SELECT id, (SELECT v FROM lookup('u', c.ref)) FROM c":                                                                      "u",
		"SELECT c.id, l.v FROM c, lookup('u', c.ref, as_of => CASE WHEN c.id < 3 THEN 'tag:old' ELSE 'now' END) l":                  "",
	} {
		bothWays(t, c, sql)
		assert.Equal(t, by, probed(t, c, sql), sql)
	}
	require.Len(t, bothWays(t, c, "SELECT c.id FROM c JOIN u ON u.id = c.ref ORDER BY 1"), 2, "the test compares something")

	// Very many keys are probed on several cores: the rows and their order are those of the join.
	many := "SELECT (i * 7) % 1100 AS k, i FROM generate_series(1, 9000) i"
	require.Equal(t, rows(t, c, "SELECT u.id, u.v, x.i - 1 FROM ("+many+") x JOIN u ON u.id = x.k ORDER BY x.i"),
		rows(t, c, "SELECT id, v, _key_ordinal FROM lookup_many('u', (SELECT array_agg(k ORDER BY i) FROM ("+many+") x))"))

	// A statement's own rows; views; writes.
	run(t, c, "BEGIN; INSERT INTO u VALUES (11, 1, 'own'); UPDATE u SET v = 'mine' WHERE id = 7; DELETE FROM u WHERE id = 14")
	require.Equal(t, [][]string{{"1", "mine"}, {"2", "own"}}, bothWays(t, c, "SELECT c.id, u.v FROM c JOIN u ON u.id = c.ref ORDER BY 1"))
	require.Equal(t, [][]string{{"1", "mine"}, {"2", "own"}}, bothWays(t, c, "SELECT c.id, l.v FROM c, lookup('u', c.ref) l ORDER BY 1"))
	run(t, c, "ROLLBACK")
	run(t, c, "CREATE VIEW jv AS SELECT c.id, u.v FROM c JOIN u ON u.id = c.ref")
	require.Equal(t, "u", probed(t, c, "SELECT * FROM jv"))
	bothWays(t, c, "SELECT * FROM jv ORDER BY 1")
	want := [][]string{{"1", "v7!"}, {"4", "v14!"}}
	run(t, c, "CREATE TABLE made AS SELECT * FROM jv")
	require.Equal(t, want, rows(t, c, "SELECT * FROM made ORDER BY 1"))
	run(t, c, "INSERT INTO made SELECT c.id + 10, l.v FROM c, lookup('u', c.ref) l")
	require.Equal(t, [][]string{{"11", "v7!"}, {"14", "v14!"}}, rows(t, c, "SELECT * FROM made WHERE id > 10 ORDER BY 1"))
	require.Equal(t, "UPDATE 2", run(t, c, "UPDATE u SET v = c.name FROM c WHERE u.id = c.ref").String())
	require.Equal(t, "u", probed(t, c, "UPDATE u SET v = c.name FROM c WHERE u.id = c.ref"))
	require.Equal(t, [][]string{{"7", "k4"}, {"14", "k44"}}, rows(t, c, "SELECT id, v FROM u WHERE v LIKE 'k%' ORDER BY id"))
	require.Equal(t, "MERGE 4", run(t, c, "MERGE INTO u USING c ON u.id = c.ref WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT VALUES (c.id + 5000, c.ref, 'i')").String())
	require.Equal(t, [][]string{{"7", "m"}, {"14", "m"}, {"5002", "i"}, {"5003", "i"}}, rows(t, c, "SELECT id, v FROM u WHERE v IN ('m', 'i') ORDER BY id"))
	require.Equal(t, "DELETE 2", run(t, c, "DELETE FROM u USING c WHERE u.id = c.ref").String())
	require.Empty(t, rows(t, c, "SELECT id FROM u WHERE id IN (7, 14)"))
	// Parameters: of a condition on the driver, in its rows, and in the key.
	for range 2 {
		for _, v := range []int{1, 2, 77} {
			var n int
			require.NoError(t, c.QueryRow(context.Background(), "SELECT count(*) FROM c JOIN u ON u.id = c.big WHERE c.id >= $1", v).Scan(&n))
			require.Equal(t, map[int]int{1: 3, 2: 2, 77: 0}[v], n)
			require.NoError(t, c.QueryRow(context.Background(), "SELECT count(*) FROM unnest($1::bigint[]) k JOIN u ON u.id = k", []int64{int64(v), 3, 3, 999999}).Scan(&n))
			require.Equal(t, map[int]int{1: 3, 2: 3, 77: 2}[v], n)
			require.NoError(t, c.QueryRow(context.Background(), "SELECT count(*) FROM c, lookup('u', c.big + $1::int) l", v).Scan(&n))
			require.Equal(t, map[int]int{1: 1, 2: 2, 77: 2}[v], n)
		}
	}
}
