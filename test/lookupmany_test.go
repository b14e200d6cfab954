package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLookupMany: the rows of each key of an array in its order, duplicates kept, as a join with the array gives them.
func TestLookupMany(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name text, d date)")
	run(t, c, "INSERT INTO t SELECT i, 'row ' || i, DATE '2026-01-01' + i FROM generate_series(0, 99) i")
	seq := rows(t, c, "SELECT current_commit_seq()")[0][0]
	run(t, c, "UPDATE t SET name = 'new' WHERE id = 3")
	run(t, c, "DELETE FROM t WHERE id = 4")

	want := [][]string{{"3", "new", "0"}, {"7", "row 7", "1"}, {"3", "new", "3"}}
	for _, keys := range []string{"ARRAY[3, 7, 4, 3, NULL, 1000]", "'{3,7,4,3,NULL,1000}'", "'{3,7,4,3,NULL,1000}'::bigint[]", "ARRAY[3, 7, 4, 3, NULL, 1000]::smallint[]",
		"(SELECT array_agg(x) FROM (VALUES (3), (7), (4), (3), (NULL), (1000)) v(x))"} {
		require.Equal(t, want, rows(t, c, "SELECT id, name, _key_ordinal FROM lookup_many('t', "+keys+")"), keys)
	}
	require.Equal(t, [][]string{{"3", "row 3", "0"}, {"4", "row 4", "1"}}, rows(t, c, "SELECT id, name, _key_ordinal FROM lookup_many('t', ARRAY[3, 4], 'seq:"+seq+"')"))
	require.Equal(t, [][]string{{"9", "row 9"}}, rows(t, c, "SELECT id, name FROM lookup_many('t', ARRAY[DATE '2026-01-10'], key_columns => ARRAY['d'])"))
	for _, none := range []string{"NULL", "'{}'", "ARRAY[]::int[]", "ARRAY[NULL]::int[]", "ARRAY[1000]"} {
		require.Empty(t, rows(t, c, "SELECT * FROM lookup_many('t', "+none+")"), none)
	}
	// As a parameter, and past the number of keys that are probed at once.
	var keys []int32
	for i := range 40_000 {
		keys = append(keys, int32(i*7%200))
	}
	for _, cast := range []string{"$1::int[]", "$1"} {
		var arg any = keys
		if cast == "$1" {
			arg = strings.ReplaceAll(strings.Trim(fmt.Sprint(keys), "[]"), " ", ",")
			arg = "{" + arg.(string) + "}"
		}
		var n, sum, wrong int64
		err := c.QueryRow(t.Context(), "SELECT count(*), sum(_key_ordinal), count(*) FILTER (WHERE id <> _key_ordinal * 7 % 200) FROM lookup_many('t', "+cast+")", arg).Scan(&n, &sum, &wrong)
		require.NoError(t, err, cast)
		var wantN, wantSum int64
		for i, k := range keys {
			if k < 100 && k != 4 {
				wantN++
				wantSum += int64(i)
			}
		}
		require.Equal(t, []int64{wantN, wantSum, 0}, []int64{n, sum, wrong}, cast)
	}
	require.Equal(t, want[:2], rows(t, c, "SELECT id, name, _key_ordinal FROM lookup_many('t', string_to_array('3,7', ',')::int[])"))
	for _, types := range []string{"", "(int[])", "(text)"} {
		run(t, c, "PREPARE many"+types+" AS SELECT id, name, _key_ordinal FROM lookup_many('t', $1)")
		require.Equal(t, want[:2], rows(t, c, "EXECUTE many('{3,7}')"), types)
		run(t, c, "DEALLOCATE many")
	}
	// The transaction's own rows.
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO t VALUES (1000, 'mine', NULL)")
	require.Equal(t, [][]string{{"1000", "mine", "1"}}, rows(t, c, "SELECT id, name, _key_ordinal FROM lookup_many('t', ARRAY[4, 1000])"))
	run(t, c, "ROLLBACK")
}

// TestLookupManyKeys: composite keys, prefixes of them, keys that several rows have, and what is no key.
func TestLookupManyKeys(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE l (o int, line smallint, sku text, PRIMARY KEY (o, line))")
	run(t, c, "INSERT INTO l VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'a'), (3, 1, 'c')")
	require.Equal(t, [][]string{{"b", "0"}, {"c", "2"}, {"b", "4"}},
		rows(t, c, "SELECT sku, _key_ordinal FROM lookup_many('l', ARRAY[ROW(1, 2), ROW(9, 9), ROW(3, 1), ROW(1, NULL), ROW(1, 2)])"))
	require.Equal(t, [][]string{{"2", "1", "0"}, {"1", "1", "1"}, {"1", "2", "1"}},
		rows(t, c, "SELECT o, line, _key_ordinal FROM lookup_many('l', ARRAY[2, 1]) ORDER BY _key_ordinal, line"), "leading columns")
	require.Equal(t, [][]string{{"1", "a"}, {"2", "a"}}, rows(t, c, "SELECT o, sku FROM lookup_many('l', ARRAY['a'], key_columns => ARRAY['sku']) ORDER BY o"))
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM lookup_many('l', ARRAY['c', 'a'], key_columns => ARRAY['sku'], strict => true)").Code)
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM lookup('l', 'a', key_columns => ARRAY['sku'], strict => true)").Code)
	require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT o FROM lookup('l', 'c', key_columns => ARRAY['sku'], strict => true)"))

	for sql, code := range map[string]string{
		"SELECT * FROM lookup_many('l', ARRAY['x'::text])":                          "42804",
		"SELECT * FROM lookup_many('l', ARRAY[ROW(1, 2, 3)])":                       "42804",
		"SELECT * FROM lookup_many('l', ARRAY[ROW(1, 'x'::text)])":                  "42804",
		"SELECT * FROM lookup_many('l', 7)":                                         "42804",
		"SELECT * FROM lookup_many('l', '7')":                                       "22P02",
		"SELECT * FROM lookup_many('l', '{x}')":                                     "22P02",
		"SELECT * FROM lookup_many('nowhere', ARRAY[1])":                            "42P01",
		"SELECT * FROM lookup_many('l', ARRAY[1], key_columns => ARRAY['nothing'])": "42703",
		"SELECT * FROM lookup_many('l', ARRAY[1], 'seq:999999')":                    "42704",
		"SELECT * FROM lookup_many((SELECT 'l'), ARRAY[1])":                         "42P18",
	} {
		e := sqlstate(t, c, sql)
		require.Equal(t, code, e.Code, "%s: %s", sql, e.Message)
	}
	// A numeric equals an integer, or no row has it.
	run(t, c, "CREATE TABLE i (id int PRIMARY KEY)")
	run(t, c, "INSERT INTO i VALUES (1), (20)")
	require.Equal(t, [][]string{{"20"}}, rows(t, c, "SELECT * FROM lookup('i', 20.00)"))
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('i', 1.5)"))
	require.Equal(t, [][]string{{"1", "1"}}, rows(t, c, "SELECT * FROM lookup_many('i', ARRAY[1.5, 1.0])"))
	e := sqlstate(t, c, "SELECT * FROM lookup('l', ROW(1, 2, 3))")
	require.Equal(t, "The key is (o integer, line smallint).", e.Hint)
	run(t, c, "CREATE TABLE nokey (a int)")
	require.Equal(t, "42P10", sqlstate(t, c, "SELECT * FROM lookup_many('nokey', ARRAY[1])").Code)
	run(t, c, "CREATE TABLE ours (_key_ordinal int PRIMARY KEY)")
	require.Equal(t, "42701", sqlstate(t, c, "SELECT * FROM lookup_many('ours', ARRAY[1])").Code)
}
