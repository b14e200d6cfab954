package test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// TestErrorsOfPostgres: SQLSTATEs and messages that PostgreSQL 15 gives.
func TestErrorsOfPostgres(t *testing.T) {
	c := start(t).connect()
	for _, bad := range []struct{ sql, code, message string }{
		{"SELECT 9223372036854775808::int8", "22003", "bigint out of range"},
		{"SELECT 99999999999999999999::int4", "22003", "integer out of range"},
		{"SELECT nosuch.f(1)", "3F000", `schema "nosuch" does not exist`},
		{"SELECT 'x'::nosuch.typ", "3F000", `schema "nosuch" does not exist`},
		{"DROP TABLE nosuch.t", "3F000", `schema "nosuch" does not exist`},
		{"DROP VIEW nosuch.v", "3F000", `schema "nosuch" does not exist`},
		{"ALTER TABLE nosuch.t RENAME TO x", "3F000", `schema "nosuch" does not exist`},
		{"COMMENT ON TABLE nosuch.t IS 'x'", "3F000", `schema "nosuch" does not exist`},
		{"TRUNCATE nosuch.t", "3F000", `schema "nosuch" does not exist`},
		{"SELECT * FROM nosuch.t", "42P01", `relation "nosuch.t" does not exist`},
		{"SELECT chr(-1)", "22023", "character number must be positive"},
		{"SELECT chr(55296)", "54000", "requested character not valid for encoding: 55296"},
		{"SELECT acos(2::float8)", "22003", "input is out of range"},
		{"SELECT asin(-2::float8)", "22003", "input is out of range"},
		{"SELECT acosh(0.5::float8)", "22003", "input is out of range"},
		{"SELECT atanh(2::float8)", "22003", "input is out of range"},
		{"SELECT sin('inf'::float8)", "22003", "input is out of range"},
		{"SELECT now() AT TIME ZONE 'Nowhere'", "22023", `time zone "Nowhere" not recognized`},
		{"SELECT CURRENT_TIME", "0A000", "CURRENT_TIME is not supported"},
		{"CREATE TABLE x AS EXECUTE nosuch", "26000", `prepared statement "nosuch" does not exist`},
	} {
		e := sqlstate(t, c, bad.sql)
		require.Equal(t, bad.code, e.Code, bad.sql)
		require.Equal(t, bad.message, e.Message, bad.sql)
	}
	run(t, c, "DROP TABLE IF EXISTS nosuch.t")
}

// TestExecuteInside: EXECUTE inside CREATE TABLE AS and EXPLAIN.
func TestExecuteInside(t *testing.T) {
	c := start(t).connect()
	run(t, c, "PREPARE p (int) AS SELECT $1 AS a, 'x'::text AS b")
	require.Equal(t, "SELECT 1", run(t, c, "CREATE TABLE e AS EXECUTE p (7)").String())
	require.Equal(t, [][]string{{"7", "x"}}, rows(t, c, "SELECT * FROM e"))
	require.NotEmpty(t, rows(t, c, "EXPLAIN EXECUTE p (8)"))
	require.Equal(t, "42601", sqlstate(t, c, "CREATE TABLE f AS EXECUTE p").Code)
}

// TestCopyLineEnds: the first line's end is that of all, as in PostgreSQL, and a duplicate key names its line.
func TestCopyLineEnds(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, v text)")
	load := func(data, options string) *pgconn.PgError {
		_, err := c.PgConn().CopyFrom(context.Background(), strings.NewReader(data), "COPY k FROM STDIN"+options)
		var pe *pgconn.PgError
		if err != nil {
			require.ErrorAs(t, err, &pe)
		}
		return pe
	}
	csv := " (FORMAT csv)"
	for _, ok := range []struct{ data, options string }{
		{"1\ta\r\n2\tb\r\n", ""}, {"3\ta\r4\tb\r", ""}, {"5\ta\n6\tb", ""}, {"7,a\r\n8,\"b\nc\"\r\n", csv}, {"9,a\r10,\"b\rc\"\r", csv}, {"11\tx\\\ny\n", ""},
	} {
		require.Nil(t, load(ok.data, ok.options), ok.data)
	}
	require.Equal(t, [][]string{{"11", "a", "b\nc", "b\rc", "x\ny"}},
		rows(t, c, "SELECT count(*), min(v) FILTER (WHERE id = 3), min(v) FILTER (WHERE id = 8), min(v) FILTER (WHERE id = 10), min(v) FILTER (WHERE id = 11) FROM k"))
	for _, bad := range []struct{ data, options, message, where string }{
		{"20\ta\n21\tb\r\n", "", "literal carriage return found in data", "COPY k, line 2"},
		{"20\ta\r\n21\tb\n", "", "literal newline found in data", "COPY k, line 2"},
		{"20,a\n21,b\r\n", csv, "unquoted carriage return found in data", "COPY k, line 2"},
		{"20,a\r\n21,b\n", csv, "unquoted newline found in data", "COPY k, line 2"},
	} {
		e := load(bad.data, bad.options)
		require.NotNil(t, e, bad.data)
		require.Equal(t, "22P04", e.Code)
		require.Equal(t, bad.message, e.Message)
		require.True(t, strings.HasPrefix(e.Where, bad.where), e.Where)
	}
	e := load("30\ta\n31\tb\n30\tc\n", "")
	require.Equal(t, "23505", e.Code)
	require.Equal(t, "COPY k, line 3", e.Where)
}

// TestFloatRange: overflow and underflow of floating-point numbers are errors, as in PostgreSQL; infinity and NaN of the input pass.
func TestFloatRange(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE f (x float8, r float4)")
	run(t, c, "INSERT INTO f VALUES (1e308, 1e38), (1e308, 1e38), (NULL, NULL)")
	for _, over := range []string{
		"1e308::float8 * 10", "1e308::float8 + 1e308::float8", "-1e308::float8 - 1e308::float8", "1e308::float8 / 1e-10::float8", "exp(1000::float8)", "power(10::float8, 400)",
		"10::float8 ^ 400", "degrees(1e308::float8)", "1e38::float4 * 10::float4", "sum(x) FROM f", "avg(x) FROM f", "x * 10 FROM f", "r * r FROM f", "sum(x) OVER () FROM f",
	} {
		e := sqlstate(t, c, "SELECT "+over)
		require.Equal(t, "22003", e.Code, over)
		require.Equal(t, "value out of range: overflow", e.Message, over)
	}
	for _, under := range []string{"1e-300::float8 * 1e-300::float8", "1e-300::float8 / 1e300::float8", "exp(-1000::float8)", "power(10::float8, -400)"} {
		require.Equal(t, "value out of range: underflow", sqlstate(t, c, "SELECT "+under).Message, under)
	}
	require.Equal(t, "22012", sqlstate(t, c, "SELECT x / 0 FROM f").Code)
	require.Equal(t, [][]string{{"Infinity", "Infinity", "NaN", "NaN", "Infinity", "0", "Infinity", "0", "Infinity"}},
		rows(t, c, "SELECT 'inf'::float8 * 2, 'inf'::float8 + 1, 'nan'::float8 * 2, 'inf'::float8 - 'inf'::float8, exp('inf'::float8), exp('-inf'::float8), power('inf'::float8, 2), 1 / 'inf'::float8, (SELECT sum(v) FROM (VALUES ('inf'::float8), (1)) q(v))"))
	require.Equal(t, [][]string{{"∅", "2e+38"}}, rows(t, c, "SELECT sum(x) FILTER (WHERE x < 0), max(r + r) FROM f"))
}
