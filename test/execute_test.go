package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExecuteArrays: EXECUTE takes arrays as literals and as ARRAY[…], whatever is in them, as PostgreSQL does.
func TestExecuteArrays(t *testing.T) {
	c := start(t).connect()
	run(t, c, "PREPARE ints(int[]) AS SELECT $1, $1[2]")
	run(t, c, "PREPARE texts(text[]) AS SELECT $1, array_length($1, 1)")
	run(t, c, "PREPARE stamps(timestamptz[]) AS SELECT ($1)[1] = '2026-02-03 04:05:06+00'")
	for sql, want := range map[string][]string{
		"EXECUTE ints(ARRAY[1, 2])":                                    {"{1,2}", "2"},
		"EXECUTE ints('{1,2}')":                                        {"{1,2}", "2"},
		"EXECUTE ints(ARRAY[1, NULL])":                                 {"{1,NULL}", "∅"},
		"EXECUTE ints(ARRAY[1, 1 + 1])":                                {"{1,2}", "2"},
		`EXECUTE texts(ARRAY['a"b', 'c\d', 'x,y', '', 'NULL', NULL])`:  {`{"a\"b","c\\d","x,y","","NULL",NULL}`, "6"},
		"EXECUTE stamps(ARRAY['2026-02-03 05:05:06+01'::timestamptz])": {"t"},
	} {
		require.Equal(t, [][]string{want}, rows(t, c, sql), sql)
	}
	run(t, c, "SET DateStyle = 'German, DMY'")
	require.Equal(t, [][]string{{"t"}}, rows(t, c, "EXECUTE stamps(ARRAY['2026-02-03 05:05:06+01'::timestamptz])"))
}

// TestUntypedParameters: a parameter without a type is a bound of the functions that take any.
func TestUntypedParameters(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE t (a int)")
	run(t, c, "INSERT INTO t VALUES (1)")
	var id, want int64
	require.NoError(t, c.QueryRow(t.Context(), "SELECT snapshot_id FROM skade.snapshots WHERE table_name = 't'").Scan(&want))
	require.NoError(t, c.QueryRow(t.Context(), "SELECT snapshot_at('t', $1)", "now").Scan(&id))
	require.Equal(t, want, id)
	require.NoError(t, c.QueryRow(t.Context(), "SELECT skade.create_tag('t', 'v1', $1)", "now").Scan(&id))
	require.Equal(t, want, id)
	run(t, c, "SELECT changefeed_create('f', ARRAY['t'], $1)", "earliest")
	run(t, c, "SELECT changefeed_seek('f', $1)", "now")
}
