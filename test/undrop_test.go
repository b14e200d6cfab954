package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The sequences of a table's columns come back with it, and go on where they stood: after a restart, too, after a crash, under other names, in another schema.
func TestUndropBringsSequencesBack(t *testing.T) {
	dir := t.TempDir()
	k := startKillable(t, dir)
	c := k.connect(t)
	run(t, c, "CREATE SCHEMA other")
	run(t, c, "CREATE TABLE a (id serial PRIMARY KEY, v text, g int GENERATED ALWAYS AS IDENTITY)")
	run(t, c, "INSERT INTO a (v) VALUES ('x'), ('y')")
	run(t, c, "DROP TABLE a")
	run(t, c, "SELECT skade.undrop('public.a')")
	require.Equal(t, [][]string{{"3", "3"}}, rows(t, c, "INSERT INTO a (v) VALUES ('z') RETURNING id, g"))
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP SEQUENCE a_id_seq").Code)

	// The name is taken: the sequence has another one, and the default draws from it.
	run(t, c, "DROP TABLE a")
	run(t, c, "CREATE SEQUENCE a_id_seq START 1000")
	run(t, c, "SELECT skade.undrop('public.a', 'b')")
	require.Equal(t, [][]string{{"4", "4"}}, rows(t, c, "INSERT INTO b (v) VALUES ('z') RETURNING id, g"))
	require.Equal(t, [][]string{{"public.a_id_seq_1", "public.a_g_seq"}}, rows(t, c, "SELECT pg_get_serial_sequence('b', 'id'), pg_get_serial_sequence('b', 'g')"))
	require.Equal(t, [][]string{{"1000"}}, rows(t, c, "SELECT nextval('a_id_seq')"))

	// A crash while it is dropped leaves a gap, and repeats no value.
	run(t, c, "DROP TABLE b")
	k.kill()
	k = startKillable(t, dir)
	c = k.connect(t)
	run(t, c, "SELECT skade.undrop('public.b', 'other.b')")
	require.Equal(t, [][]string{{"t", "t"}}, rows(t, c, "INSERT INTO other.b (v) VALUES ('z') RETURNING id > 4, g > 4"))
	require.Equal(t, [][]string{{"other.a_id_seq_1", "other.a_g_seq"}}, rows(t, c, "SELECT pg_get_serial_sequence('other.b', 'id'), pg_get_serial_sequence('other.b', 'g')"))
	run(t, c, "DROP TABLE other.b")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT nextval('other.a_g_seq')").Code)
}
