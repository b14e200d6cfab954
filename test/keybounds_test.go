package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The largest decimals of 38 digits are keys like all others.
func TestLargestDecimalKeys(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE w (id numeric(38,0) PRIMARY KEY, v int)")
	run(t, c, "CREATE TABLE f (id numeric(38,10) PRIMARY KEY, v int)")
	wide := []string{"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "85070591730234615865843651857942052864", "85070591730234615865843651857942052863"}
	frac := []string{"9999999999999999999999999999.9999999999", "-9000000000000000000000000000.0000000001"}
	for table, keys := range map[string][]string{"w": wide, "f": frac} {
		for i, k := range keys {
			run(t, c, "INSERT INTO "+table+" VALUES ("+k+", "+string(rune('0'+i))+")")
		}
		for i, k := range keys {
			want := [][]string{{string(rune('0' + i))}}
			for _, cond := range []string{"id = " + k, "id IN (" + k + ")", "id = ANY ('{" + k + "}')"} {
				require.Equal(t, want, rows(t, c, "SELECT v FROM "+table+" WHERE "+cond), cond)
			}
			require.Equal(t, want, rows(t, c, "SELECT v FROM lookup('"+table+"', "+k+")"))
		}
		require.Equal(t, "23505", sqlstate(t, c, "INSERT INTO "+table+" VALUES ("+keys[0]+", 9)").Code)
		tag, err := c.Exec(t.Context(), "UPDATE "+table+" SET v = 7 WHERE id = "+keys[0])
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
		tag, err = c.Exec(t.Context(), "DELETE FROM "+table+" WHERE id = "+keys[1])
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected())
	}
}

// char(n) is compared without its trailing blanks, which the files' bounds have. The answers are PostgreSQL 15's.
func TestCharIsNotPrunedByBlanks(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE ch (id char(5), v int)")
	run(t, c, "INSERT INTO ch VALUES ('a', 1), ('b', 2)")
	for cond, want := range map[string]string{
		"id <= 'a'::text": "1", "id BETWEEN 'a'::text AND 'a'::text": "1", "id = 'a'::text": "1", "id >= 'b'::text": "1", "id > 'a'::text": "1",
		"id IN ('a'::text, 'c')": "1", "id <= 'b'": "2", "id = 'b'": "1", "id = 'b  '": "1", "id < 'a'::text": "0", "id = 'a  '::text": "0",
	} {
		require.Equal(t, [][]string{{want}}, rows(t, c, "SELECT count(*) FROM ch WHERE "+cond), cond)
	}
}
