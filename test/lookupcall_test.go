package test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// The rows of lookup(…) are the same straight from the lookup and through DuckDB, in text and in binary.
func TestLookupStraightAndThroughDuckDB(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE TABLE k (id int, line smallint, n numeric(10,2), bare numeric, t text, iv interval, tz timestamptz, a int[], j jsonb, u uuid, d date, c char(4), b bytea, PRIMARY KEY (id, line))`)
	run(t, c, `INSERT INTO k VALUES (1, 2, 3.50, 4.5, 'x', '1 day 2 hours', '2026-01-01 00:00+00', '{1,NULL}', '{"b":1}', '00000000-0000-4000-8000-000000000001', '2026-02-03', 'ab', '\x00ff'),
		(1, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`)
	for _, call := range []string{"lookup('k', ROW(1, 2))", "lookup('k', ROW(1, 3))", "lookup('k', ROW(9, 9))", "lookup('k', NULL)", "lookup('k', ROW(1, 2), 'earliest')",
		"lookup('k', 1, key_columns => ARRAY['id'])"} {
		for _, cols := range []string{"*", "t, id, t AS again", "j, n"} {
			straight, through := "SELECT "+cols+" FROM "+call, "SELECT "+cols+" FROM (SELECT * FROM "+call+" OFFSET 0) x"
			require.ElementsMatch(t, rows(t, c, through), rows(t, c, straight), straight)
			binary := func(sql string) [][]string {
				var out [][]string
				res := c.PgConn().ExecParams(context.Background(), sql, nil, nil, nil, []int16{pgx.BinaryFormatCode}).Read()
				require.NoError(t, res.Err, sql)
				for _, r := range res.Rows {
					row := make([]string, len(r))
					for i, v := range r {
						row[i] = string(v)
					}
					out = append(out, row)
				}
				return out
			}
			require.ElementsMatch(t, binary(through), binary(straight), straight)
		}
	}
	require.Equal(t, "Index Scan using k_pkey on public.k", rows(t, c, "EXPLAIN SELECT * FROM lookup('k', ROW(1, 2))")[0][0])
	require.Equal(t, [][]string{{"3"}, {"2"}}, rows(t, c, "SELECT line FROM lookup('k', 1, key_columns => ARRAY['id']) ORDER BY line DESC"))
	// A transaction's own writes.
	run(t, c, "BEGIN")
	run(t, c, "UPDATE k SET t = 'mine' WHERE line = 2")
	require.Equal(t, [][]string{{"mine"}}, rows(t, c, "SELECT t FROM lookup('k', ROW(1, 2))"))
	run(t, c, "ROLLBACK")
	require.Equal(t, "42804", sqlstate(t, c, "SELECT * FROM lookup('k', 'x'::text)").Code)
	// A literal without a type is the column's, as in id = '1'.
	require.Equal(t, rows(t, c, "SELECT * FROM lookup('k', ROW(1, 2))"), rows(t, c, "SELECT * FROM lookup('k', ROW('1', 2))"))
	require.Equal(t, rows(t, c, "SELECT line FROM lookup('k', 1, key_columns => ARRAY['id']) ORDER BY 1"),
		rows(t, c, "SELECT line FROM lookup('k', '1', key_columns => ARRAY['id']) ORDER BY 1"))
	require.Equal(t, "22P02", sqlstate(t, c, "SELECT * FROM lookup('k', ROW('x', 2))").Code)
}
