package test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
)

func lookupTables(t *testing.T, c *pgx.Conn) {
	run(t, c, `CREATE TABLE k (id int PRIMARY KEY, t text, n numeric(10,2), d date, tz timestamptz, u uuid, b bytea, f float8, r real, bo boolean, ti time, l bigint,
		a int[], j jsonb, c char(4), iv interval, ts timestamp, s smallint, vc varchar(3))`)
	run(t, c, `INSERT INTO k VALUES
		(1, 'a', 1.5, '2026-01-01', '2026-01-01 00:00Z', '00000000-0000-4000-8000-000000000001', '\x00ff', 1.5, 0.1, true, '10:00', 10, '{1}', '{"a":1}', 'ab', '1 day', '2026-01-01', 1, 'x'),
		(2, 'b', -0.0, '2026-01-02', '2026-06-01 10:00Z', '00000000-0000-4000-8000-000000000002', '\x', 'NaN', '-0', false, '10:00:00.5', 10, NULL, NULL, 'cd', '2 hours', '2026-01-01 10:00', 2, 'x  '),
		(3, 'b ', 2, NULL, NULL, NULL, NULL, -0.0, NULL, NULL, NULL, 9007199254740993, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	run(t, c, "CREATE TABLE k2 (a int, b text, v int, PRIMARY KEY (a, b))")
	run(t, c, "INSERT INTO k2 VALUES (1, 'x', 1), (1, 'y', 2)")
	run(t, c, "CREATE TABLE nokey (x int)")
}

// What a value finds with lookup is what PostgreSQL 15 finds with = on the column.
func TestLookupValues(t *testing.T) {
	g := start(t)
	c := g.connect("timezone", "Europe/Oslo")
	lookupTables(t, c)
	for _, x := range []struct{ col, value, want string }{
		{"t", "'b'", "2"}, {"t", "'b '", "3"}, {"t", "'b '::char(4)", "2"}, {"vc", "'x'", "1"}, {"vc", "'x  '", "2"}, {"c", "'ab'", "1"}, {"c", "'ab      '", "1"}, {"c", "'ab'::char(2)", "1"}, {"c", "'ab '::text", ""},
		{"n", "1.50", "1"}, {"n", "2", "3"}, {"n", "2.001", ""}, {"n", "'1.5'", "1"}, {"n", "0", "2"}, {"n", "123456789012345678901234567890", ""},
		{"l", "10", "1 2"}, {"l", "10.0", "1 2"}, {"l", "10.5", ""}, {"l", "9007199254740993", "3"}, {"l", "10::float8", "1 2"}, {"s", "2", "2"}, {"s", "99999", ""}, {"id", "99999999999", ""},
		{"d", "'2026-01-01'", "1"}, {"d", "'Jan 2 2026'", "2"}, {"d", "timestamp '2026-01-01'", "1"}, {"d", "timestamp '2026-01-01 00:01'", ""}, {"d", "timestamptz '2025-12-31 23:00Z'", "1"}, {"d", "'infinity'", ""},
		{"tz", "'2026-01-01 01:00'", "1"}, {"tz", "'2026-01-01 00:00Z'", "1"}, {"tz", "timestamptz '2026-06-01 10:00Z'", "2"}, {"tz", "timestamp '2026-06-01 12:00'", "2"}, {"tz", "'2026-06-01'", ""},
		{"ts", "'2026-01-01'", "1"}, {"ts", "date '2026-01-01'", "1"}, {"ts", "timestamptz '2026-01-01 09:00Z'", "2"}, {"ts", "'-infinity'", ""},
		{"ti", "'10:00'", "1"}, {"ti", "time '10:00:00.5'", "2"}, {"u", "'{00000000-0000-4000-8000-000000000001}'", "1"}, {"u", "'00000000-0000-4000-8000-000000000002'::uuid", "2"},
		{"b", `'\x00ff'`, "1"}, {"b", `'\000\377'::bytea`, "1"}, {"b", "''", "2"}, {"bo", "true", "1"}, {"bo", "'no'", "2"},
		{"f", "1.5", "1"}, {"f", "'NaN'", "2"}, {"f", "0", "3"}, {"f", "'-0'::float8", "3"}, {"f", "1", ""}, {"r", "0", "2"}, {"r", "0.1", ""}, {"r", "0.1::real", "1"},
	} {
		var got []string
		for _, r := range rows(t, c, "SELECT id FROM lookup('k', "+x.value+", key_columns => ARRAY['"+x.col+"']) ORDER BY id") {
			got = append(got, r[0])
		}
		require.Equal(t, x.want, strings.Join(got, " "), x.col+" = "+x.value)
		if !strings.HasPrefix(x.value, "'") || strings.Contains(x.value, "::") { // an array of them has the same type
			require.Len(t, rows(t, c, "SELECT id FROM lookup_many('k', ARRAY["+x.value+", NULL], key_columns => ARRAY['"+x.col+"'])"), len(got), x.value)
		}
	}
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM lookup('k', 10, key_columns => ARRAY['l'], strict => true)").Code)
	run(t, c, "INSERT INTO k (id, f) VALUES (4, 0.0)")
	require.Len(t, rows(t, c, "SELECT id FROM lookup('k', 0, key_columns => ARRAY['f'])"), 2)
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM lookup('k', 0, key_columns => ARRAY['f'], strict => true)").Code)
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM lookup_many('k', ARRAY[1, 0], key_columns => ARRAY['f'], strict => true)").Code)
	require.Equal(t, [][]string{{"3", "1"}, {"4", "1"}}, rows(t, c, "SELECT id, _key_ordinal FROM lookup_many('k', ARRAY[7, 0], key_columns => ARRAY['f']) ORDER BY id"))
}

// Parameters without a type in the place of a key have the type of the key's column.
func TestLookupParameters(t *testing.T) {
	g := start(t)
	c := g.connect()
	lookupTables(t, c)
	ctx := context.Background()
	get := func(sql string, args ...any) string {
		t.Helper()
		r, err := c.Query(ctx, sql, args...)
		require.NoError(t, err, sql)
		out, err := pgx.CollectRows(r, pgx.RowTo[int32])
		require.NoError(t, err, sql)
		var s []string
		for _, n := range out {
			s = append(s, string(rune('0'+n)))
		}
		return strings.Join(s, " ")
	}
	for range 2 {
		require.Equal(t, "2", get("SELECT id FROM lookup('k', $1)", 2))
		require.Equal(t, "", get("SELECT id FROM lookup('k', $1)", nil))
		require.Equal(t, "2", get("SELECT v FROM lookup('k2', ROW($1, $2))", 1, "y"))
		require.Equal(t, "2 1", get("SELECT id FROM lookup_many('k', $1)", []int32{2, 7, 1}))
		require.Equal(t, "1 2", get("SELECT id FROM lookup('k', $1, key_columns => ARRAY['l']) ORDER BY id", int64(10)))
		require.Equal(t, "1", get("SELECT id FROM lookup('k', $1, $2)", 1, "now"))
		require.Equal(t, "", get("SELECT id FROM lookup('k', $1, $2)", 1, "seq:2"))
		require.Equal(t, "2", get("SELECT count(*)::int FROM lookup_many('k', $1) WHERE id > $2", []int32{1, 2, 3}, 1))
	}
	require.Equal(t, "42804", sqlstate(t, c, "SELECT id FROM lookup_many('k', $1)", [][]int32{{1}, {2}}).Code)
	// Keys of a megabyte.
	long := strings.Repeat("0123456789abcdef", 1<<16)
	run(t, c, "CREATE TABLE long (k text PRIMARY KEY, v int)")
	run(t, c, "INSERT INTO long VALUES ($1, 1), ($2, 2), ('x', 3)", long, long+"x")
	require.Equal(t, "1", get("SELECT v FROM long WHERE k = $1", long))
	require.Equal(t, "1 2", get("SELECT v FROM long WHERE k = ANY($1)", []string{long + "x", long, long + "y"}))
	require.Equal(t, "2", get("SELECT v FROM lookup('long', $1)", long+"x"))
	require.Equal(t, "", get("SELECT v FROM lookup('long', $1)", long+"y"))
	require.Equal(t, "2 1", get("SELECT v FROM lookup_many('long', $1)", []string{long + "x", "", long}))
	require.Equal(t, "UPDATE 1", run(t, c, "UPDATE long SET v = 4 WHERE k = $1", long).String())
	require.Equal(t, "4", get("SELECT max(v) FROM long WHERE k = $1", long))
}

// What is wrong with a call of lookup or lookup_many is said, and the session lives on.
func TestLookupBadInput(t *testing.T) {
	g := start(t)
	c := g.connect()
	lookupTables(t, c)
	run(t, c, "CREATE VIEW kv AS SELECT id FROM k")
	run(t, c, "CREATE TEMP TABLE tmp (id int PRIMARY KEY)")
	for call, want := range map[string][3]string{
		"lookup('k', 'x'::text)":                                   {"42804", "key of type text does not match column type integer", "The key is (id integer)."},
		"lookup('k', true)":                                        {"42804", "key of type boolean does not match column type integer", "The key is (id integer)."},
		"lookup('k', ROW(1, 2))":                                   {"42804", "key has 1 columns, got 2 values", "The key is (id integer)."},
		"lookup('k2', ROW(1, 'x', NULL))":                          {"42804", "key has 2 columns, got 3 values", "The key is (a integer, b text)."},
		"lookup('k2', ROW())":                                      {"42804", "key has 2 columns, got 0 values", "The key is (a integer, b text)."},
		"lookup('k2', ROW(ROW(1), 'x'))":                           {"42804", "key of type record does not match column type integer", "The key is (a integer, b text)."},
		"lookup('k', ARRAY[1])":                                    {"42804", "key of type integer[] does not match column type integer", "The key is (id integer)."},
		"lookup('k', 'zz')":                                        {"22P02", `invalid input syntax for type integer: "zz"`, ""},
		"lookup('k', '99999999999')":                               {"22003", `value "99999999999" is out of range for type integer`, ""},
		"lookup('k', 'x', key_columns => ARRAY['d'])":              {"22007", `invalid input syntax for type date: "x"`, ""},
		"lookup_many('k', 1)":                                      {"42804", "keys must be an array, not integer", "Look one key up with lookup."},
		"lookup_many('k', ARRAY['x'])":                             {"42804", "key of type text does not match column type integer", "The key is (id integer)."},
		"lookup_many('k', '{1,x}')":                                {"22P02", `invalid input syntax for type integer: "x"`, ""},
		"lookup_many('k', '{1')":                                   {"22P02", `malformed array literal: "{1"`, ""},
		"lookup_many('k', ARRAY[[1, 2], [3, 4]])":                  {"42804", "keys must be an array of one dimension", "A key of several columns is a row: ARRAY[ROW(1, 'x'), ROW(2, 'y')]."},
		"lookup_many('k', '{{1,2},{3,4}}'::int[])":                 {"42804", "keys must be an array of one dimension", "A key of several columns is a row: ARRAY[ROW(1, 'x'), ROW(2, 'y')]."},
		"lookup_many('k', '{{1,2},{3,4}}')":                        {"42804", "keys must be an array of one dimension", "A key of several columns is a row: ARRAY[ROW(1, 'x'), ROW(2, 'y')]."},
		"lookup_many('k2', ARRAY[[ROW(1, 'x')], [ROW(1, 'y')]])":   {"42804", "keys must be an array of one dimension", "A key of several columns is a row: ARRAY[ROW(1, 'x'), ROW(2, 'y')]."},
		"lookup_many('k2', ARRAY[ROW(1, 'x'), ROW(1)])":            {"42804", "keys have 2 and 1 values", "The key is (a integer, b text)."},
		"lookup('nokey', 1)":                                       {"42P10", "table has no identifier fields", "Name the key with key_columns => ARRAY['column']."},
		"lookup_many('nokey', ARRAY[1])":                           {"42P10", "table has no identifier fields", "Name the key with key_columns => ARRAY['column']."},
		"lookup('k2', 1, key_columns => ARRAY['zz'])":              {"42703", `column "zz" of relation "k2" does not exist`, ""},
		"lookup('k2', ROW(1, 1), key_columns => ARRAY['a', 'a'])":  {"42701", `column "a" appears twice in key_columns`, ""},
		"lookup('k2', 1, key_columns => ARRAY[]::text[])":          {"22023", "key_columns names no column", "Leave it out, or give NULL, for the identifier fields of the table."},
		"lookup('k2', 1, key_columns => ARRAY['a', NULL])":         {"22004", "key_columns must not hold null", ""},
		"lookup('k2', 1, key_columns => ARRAY[['a'], ['b']])":      {"22023", "key_columns must be an array of one dimension", ""},
		"lookup('k', '1 day', key_columns => ARRAY['iv'])":         {"42804", `column "iv" of type interval cannot be a key column`, "Compare it in WHERE."},
		"lookup('k', '{}', key_columns => ARRAY['j'])":             {"42804", `column "j" of type jsonb cannot be a key column`, "Compare it in WHERE."},
		"lookup('k', '{}', key_columns => ARRAY['a'])":             {"42804", `column "a" of type integer[] cannot be a key column`, "Compare it in WHERE."},
		"lookup('k2', 1, strict => true)":                          {"21000", "lookup found more than one row: 2 rows", ""},
		"lookup_many('k2', ARRAY[ROW(2), ROW(1)], strict => true)": {"21000", "lookup found more than one row: key 1", ""},
		"lookup('kv', 1)":                                          {"42809", `"kv" is not a table`, ""},
		"lookup('pg_class', 1)":                                    {"42809", `"pg_class" is not a table`, ""},
		"lookup('skade.commits', 1)":                               {"42809", `"commits" is not a table`, ""},
		"lookup('missing', 1)":                                     {"42P01", `relation "missing" does not exist`, ""},
		"lookup('tmp', 1, 'earliest')":                             {"0A000", `table "tmp" has no past: it is temporary, or not committed yet`, ""},
		"lookup('k', 1, 'seq:999')":                                {"42704", "commit seq 999 does not exist", ""},
		"lookup('k', 1, 'tag:zz')":                                 {"42704", `table has no tag "zz"`, ""},
		"lookup('k', 1, true)":                                     {"42804", "a bound cannot be of type boolean", "A bound is a snapshot id (bigint), a timestamptz, or text: seq:N, tag:x, branch:x, earliest, now."},
		"(SELECT * FROM k WHERE id = ANY('{1,x}')) x":              {"22P02", `invalid input syntax for type integer: "x"`, ""},
		"(SELECT * FROM k WHERE id = ANY(1)) x":                    {"42809", "op ANY/ALL (array) requires array on right side", ""},
		"(SELECT * FROM k2 WHERE (a, b) IN ((1, 'a', 2))) x":       {"42601", "unequal number of entries in row expressions", ""},
	} {
		e := sqlstate(t, c, "SELECT * FROM "+call)
		require.Equal(t, want, [3]string{e.Code, e.Message, e.Hint}, call)
	}
	require.Len(t, rows(t, c, "SELECT * FROM lookup('k2', ROW(1))"), 2)
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('k2', ROW(1, NULL))"))
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('k2', ROW(NULL, 'x'))"))
	require.Empty(t, rows(t, c, "SELECT * FROM lookup_many('k', NULL)"))
	require.Equal(t, [][]string{{"1", "0"}, {"2", "3"}}, rows(t, c, "SELECT v, _key_ordinal FROM lookup_many('k2', ARRAY[ROW(1, 'x'), NULL, ROW(1, NULL), ROW(1, 'y')])"))
}

// Lookups in tables as they change: without snapshots, created here, with renamed and dropped columns, in the past that is gone.
func TestLookupOverChangingTables(t *testing.T) {
	var ahead atomic.Int64 // of the catalog's clock
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data")}
	g.configure = func(cfg *cli.Config) {
		cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	g.open()
	t.Cleanup(g.close)
	c := g.connect()
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, v text, w int)")
	for _, sql := range []string{"SELECT * FROM lookup('k', 1)", "SELECT * FROM lookup_many('k', ARRAY[1])", "SELECT * FROM k WHERE id IN (1, 2)", "SELECT v FROM lookup('k', 1, 'earliest')"} {
		require.Empty(t, rows(t, c, sql), sql)
	}
	require.Equal(t, [][]string{{"0", "∅"}}, rows(t, c, "SELECT count(*), max(v) FROM k WHERE id = 1"))
	run(t, c, "INSERT INTO k VALUES (1, 'one', 7), (2, 'two', 8)")
	run(t, c, "BEGIN")
	run(t, c, "CREATE TABLE own (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO own VALUES (1, 'own'), (2, 'two')")
	run(t, c, "DELETE FROM own WHERE id = 2")
	for _, sql := range []string{"SELECT v FROM lookup('own', 1)", "SELECT v FROM own WHERE id IN (1, 2)", "SELECT max(v) FROM own WHERE id = ANY('{1,2}')"} {
		require.Equal(t, [][]string{{"own"}}, rows(t, c, sql), sql)
	}
	run(t, c, "ROLLBACK")
	run(t, c, "ALTER TABLE k RENAME COLUMN id TO ident")
	run(t, c, "ALTER TABLE k DROP COLUMN w")
	for _, sql := range []string{"SELECT v FROM lookup('k', 2)", "SELECT v FROM k WHERE ident IN (2, 3)", "SELECT v FROM lookup('k', 8, 'seq:3', key_columns => ARRAY['w'])",
		"SELECT v FROM table_at('k', 'seq:3') WHERE id = 2", "SELECT max(v) FROM table_at('k', 'seq:3') WHERE id = 2"} {
		require.Equal(t, [][]string{{"two"}}, rows(t, c, sql), sql)
	}
	require.Equal(t, "42703", sqlstate(t, c, "SELECT * FROM lookup('k', 1, key_columns => ARRAY['w'])").Code)
	require.Equal(t, "42703", sqlstate(t, c, "SELECT * FROM lookup('k', 1, key_columns => ARRAY['id'])").Code)
	run(t, c, "SET skade.as_of = 'seq:3'")
	require.Equal(t, [][]string{{"two"}}, rows(t, c, "SELECT v FROM k WHERE ident = 2"))
	require.Equal(t, [][]string{{"two"}}, rows(t, c, "SELECT v FROM lookup('k', 2)"))
	run(t, c, "SET skade.as_of = 'seq:2'")
	require.Empty(t, rows(t, c, "SELECT v FROM k WHERE ident = 2"))
	run(t, c, "RESET skade.as_of")
	// A view, WITH and a lock over key queries.
	run(t, c, "CREATE VIEW kl AS SELECT ident, v FROM lookup_many('k', ARRAY[2, 1])")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "WITH x AS (SELECT * FROM kl) SELECT x.ident FROM x, lookup('k', 1) y WHERE x.v = y.v"))
	run(t, c, "BEGIN")
	require.Len(t, rows(t, c, "SELECT v FROM k WHERE ident IN (1, 2) FOR UPDATE"), 2)
	other := g.connect()
	require.Equal(t, "55P03", sqlstate(t, other, "SELECT v FROM k WHERE ident = 2 FOR UPDATE NOWAIT").Code)
	require.Empty(t, rows(t, other, "SELECT v FROM k WHERE ident = ANY('{1,2}') FOR UPDATE SKIP LOCKED"))
	run(t, c, "ROLLBACK")
	run(t, c, "INSERT INTO k VALUES (3, 'three')")
	run(t, c, `ALTER TABLE k SET ("history.expire.max-snapshot-age-ms" = '60000', "history.expire.min-snapshots-to-keep" = '1')`)
	ahead.Store(int64(3 * time.Hour))
	run(t, c, "VACUUM k")
	for _, sql := range []string{"SELECT * FROM lookup('k', 1, 'seq:3')", "SELECT * FROM table_at('k', 'seq:3') WHERE id = 1"} {
		require.Equal(t, "72000", sqlstate(t, c, sql).Code, sql)
	}
}
