package test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
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

// TestPreparedSurvivesItsTable: a statement whose table went for a while is the same statement when it is back.
func TestPreparedSurvivesItsTable(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a')")
	pc := c.PgConn()
	_, err := pc.Prepare(t.Context(), "p", "SELECT name FROM t WHERE id = $1", nil)
	require.NoError(t, err)
	ask := func() (string, string) {
		r := pc.ExecPrepared(t.Context(), "p", [][]byte{[]byte("1")}, nil, nil).Read()
		var pe *pgconn.PgError
		if errors.As(r.Err, &pe) {
			return "", pe.Code
		}
		require.NoError(t, r.Err)
		require.Len(t, r.Rows, 1)
		return string(r.Rows[0][0]), ""
	}
	check := func(name, code string) {
		t.Helper()
		for range 2 {
			n, e := ask()
			require.Equal(t, []string{name, code}, []string{n, e})
		}
	}
	check("a", "")
	run(t, c, "ALTER TABLE t RENAME TO u")
	check("", "42P01")
	run(t, c, "ALTER TABLE u RENAME TO t")
	check("a", "")
	run(t, c, "ALTER TABLE t RENAME COLUMN name TO other")
	check("", "42703")
	run(t, c, "ALTER TABLE t RENAME COLUMN other TO name")
	check("a", "")
	run(t, c, "DROP TABLE t")
	check("", "42P01")
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name text)")
	run(t, c, "INSERT INTO t VALUES (1, 'b')")
	check("b", "")
	run(t, c, "DROP TABLE t")
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name int)")
	check("", "0A000") // as PostgreSQL: cached plan must not change result type
	run(t, c, "DROP TABLE t")
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, name text)")
	run(t, c, "INSERT INTO t VALUES (1, 'c')")
	check("c", "")
}

// TestStringsBeyondTheLimit: rows that a relation hands over and that do not fit in memory are an error, not the server's end.
func TestStringsBeyondTheLimit(t *testing.T) {
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), configure: func(c *cli.Config) { c.MemoryLimit, c.TempLimit = "30MB", "1MB" }}
	g.open()
	t.Cleanup(g.close)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, v text)")
	for i := range 6 {
		run(t, c, fmt.Sprintf("INSERT INTO t SELECT i, repeat(md5(i::text), 3200) FROM generate_series(%d, %d) i", i*100, i*100+99))
	}
	require.Equal(t, "54000", sqlstate(t, c, "SELECT id, v FROM table_changes('t', NULL) ORDER BY v, id").Code)
	require.Equal(t, "600", one(t, c, "SELECT count(*) FROM table_changes('t', NULL)"))
}

// TestNetOfPlaces: a place inside a commit is no state.
func TestNetOfPlaces(t *testing.T) {
	c := start(t).connect()
	run(t, c, "CREATE TABLE t (a int PRIMARY KEY)")
	run(t, c, "INSERT INTO t SELECT generate_series(1, 20)")
	seq := one(t, c, "SELECT current_commit_seq()")
	for _, window := range []string{"'seq:" + seq + "/0/4', 'seq:" + seq + "'", "NULL, 'seq:" + seq + "/0/4'"} {
		e := sqlstate(t, c, "SELECT * FROM table_changes_net('t', "+window+")")
		require.Equal(t, "22023", e.Code, window)
		require.NotEmpty(t, e.Hint)
	}
}
