package test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table function takes its arguments from subqueries and from the columns of another item of FROM: it is called once for each different list.
func TestTableFunctionsOverColumns(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE cur (name text PRIMARY KEY, seq bigint)")
	first := number(t, c, "SELECT current_commit_seq() + 1")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	run(t, c, "UPDATE t SET v = 'B' WHERE id = 2")
	run(t, c, "DELETE FROM t WHERE id = 3")
	run(t, c, fmt.Sprintf("INSERT INTO cur VALUES ('me', %d), ('you', %d), ('bad', 99999)", first+1, first))
	me := [][]string{{"3", "DELETE"}}
	you := [][]string{{"2", "UPDATE_BEFORE"}, {"2", "UPDATE_AFTER"}, {"3", "DELETE"}}
	named := func(rows [][]string, names ...string) [][]string {
		var out [][]string
		for _, r := range rows {
			out = append(out, append(append([]string{}, names...), r...))
		}
		return out
	}

	// Subqueries, which keep the order of commits.
	require.Equal(t, me, rows(t, c, "SELECT id, _change_type FROM table_changes('t', (SELECT 'seq:' || seq FROM cur WHERE name = 'me'))"))
	require.Equal(t, you, rows(t, c, "SELECT id, _change_type FROM table_changes('t', 'seq:' || (SELECT seq FROM cur WHERE name = 'you'), NULL)"))
	require.Equal(t, you[:2], rows(t, c, "WITH w AS (SELECT seq FROM cur WHERE name = 'you') SELECT id, _change_type FROM table_changes('t', 'seq:' || (SELECT seq FROM w), 'seq:' || (SELECT seq + 1 FROM w))"))
	require.Len(t, rows(t, c, "SELECT * FROM table_changes('t', (SELECT 'seq:' || seq FROM cur WHERE name = 'nobody'))"), 6, "no row is NULL: from the beginning")
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM table_at('t', 'seq:' || (SELECT seq FROM cur WHERE name = 'you')) WHERE id = 2"))
	require.Equal(t, [][]string{{"2", "B"}}, rows(t, c, "SELECT * FROM lookup('t', (SELECT 2))"))
	require.Equal(t, "21000", sqlstate(t, c, "SELECT * FROM table_changes('t', 'seq:' || (SELECT seq FROM cur))").Code)

	// Columns.
	for _, from := range []string{
		"cur c, table_changes('t', 'seq:' || c.seq) x", "cur c, LATERAL table_changes('t', 'seq:' || seq) AS x", "cur c JOIN table_changes('t', 'seq:' || c.seq, 'now') x ON true",
		"(SELECT * FROM cur) c, table_changes('t', 'seq:' || c.seq) x", "cur c CROSS JOIN LATERAL (SELECT * FROM table_changes('t', 'seq:' || c.seq)) x",
	} {
		sql := "SELECT c.name, x.id, x._change_type FROM " + from + " WHERE c.name = 'me' OR c.name = 'you' ORDER BY 1, _commit_seq, _change_row"
		require.Equal(t, append(named(me, "me"), named(you, "you")...), rows(t, c, sql), from)
	}
	require.Equal(t, "42704", sqlstate(t, c, "SELECT count(*) FROM cur c, table_changes('t', 'seq:' || c.seq)").Code)
	require.Equal(t, [][]string{{"me", "1"}, {"you", "3"}}, rows(t, c, "SELECT name, (SELECT count(*) FROM table_changes('t', 'seq:' || cur.seq)) FROM cur WHERE name <> 'bad' ORDER BY 1"))
	require.Equal(t, [][]string{{"me", "∅"}, {"you", "2"}, {"you", "2"}},
		rows(t, c, "SELECT name, x.id FROM cur LEFT JOIN LATERAL table_changes('t', 'seq:' || seq) x ON x.id = 2 WHERE name <> 'bad' ORDER BY 1, 2"))
	counts := rows(t, c, fmt.Sprintf("SELECT k, count(x.id) FROM (VALUES (1, %d), (2, %d), (3, %d), (4, NULL)) q(k, i) LEFT JOIN table_changes('t', 'seq:' || q.i) x ON true GROUP BY k ORDER BY k", first+1, first+1, first+2))
	require.Equal(t, [][]string{{"1", "1"}, {"2", "1"}, {"3", "0"}, {"4", "6"}}, counts)
	require.Equal(t, [][]string{{"0", "3"}, {"1", "3"}, {"2", "2"}}, rows(t, c, fmt.Sprintf("SELECT i - %d, count(*) FROM generate_series(%d, %d) i, table_at('t', 'seq:' || i) GROUP BY i ORDER BY i", first, first, first+2)))
	require.Equal(t, [][]string{{"0", "3"}, {"1", "1"}}, rows(t, c, fmt.Sprintf("SELECT i - %d, count(*) FROM generate_series(%d, %d) i, table_changes_net('t', 'seq:' || i, 'now') GROUP BY i ORDER BY i", first, first, first+2)))

	// In views, prepared statements, cursors, COPY and CREATE TABLE AS.
	run(t, c, "CREATE VIEW behind AS SELECT c.name, x.id, x._change_type AS change FROM cur c, table_changes('t', 'seq:' || c.seq) x WHERE c.name = 'you'")
	require.Equal(t, named(you, "you"), rows(t, c, "SELECT * FROM behind"))
	run(t, c, "CREATE VIEW rest AS SELECT id, _change_type AS change FROM table_changes('t', 'seq:' || (SELECT seq FROM cur WHERE name = 'me'))")
	require.Equal(t, me, rows(t, c, "SELECT * FROM rest"))
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE cur").Code)
	run(t, c, "DROP VIEW behind")
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE cur").Code)
	require.Equal(t, "2BP01", sqlstate(t, c, "DROP TABLE t").Code)
	for range 2 {
		for name, want := range map[string]int{"me": 1, "you": 3, "none": 0} {
			var n int
			require.NoError(t, c.QueryRow(context.Background(), "SELECT count(*) FROM cur c, table_changes('t', 'seq:' || c.seq) x WHERE c.name = $1", name).Scan(&n))
			require.Equal(t, want, n)
		}
	}
	run(t, c, "BEGIN; DECLARE k CURSOR FOR SELECT x.id FROM cur c, table_changes('t', 'seq:' || c.seq) x WHERE c.name = 'you'")
	require.Equal(t, [][]string{{"2"}, {"2"}}, rows(t, c, "FETCH 2 FROM k"))
	require.Equal(t, [][]string{{"3"}}, rows(t, c, "FETCH ALL FROM k"))
	run(t, c, "COMMIT")
	require.Equal(t, "SELECT 3", run(t, c, "CREATE TABLE made AS SELECT x.id FROM cur c, table_changes('t', 'seq:' || c.seq) x WHERE c.name = 'you'").String())

	for sql, code := range map[string]string{
		"SELECT * FROM cur a, cur b, table_changes('t', 'seq:' || a.seq, 'seq:' || b.seq)":                                  "0A000",
		"SELECT * FROM (cur a LEFT JOIN cur b USING (seq)), table_changes('t', 'seq:' || b.seq)":                            "0A000",
		"SELECT * FROM cur RIGHT JOIN LATERAL table_changes('t', 'seq:' || cur.seq) x ON true":                              "42P10",
		"SELECT * FROM table_changes('t', 'seq:' || nope.seq)":                                                              "42P01",
		"SELECT * FROM table_changes('t', 'seq:' || nope)":                                                                  "42703",
		"SELECT * FROM cur, table_changes(cur.name, NULL)":                                                                  "42P18",
		"SELECT * FROM table_changes((SELECT name FROM cur LIMIT 1), NULL)":                                                 "42P18",
		"SELECT * FROM generate_series(1, 1001) g, table_changes('t', timestamptz 'epoch' + g * interval '1 s')":            "54000",
		"SELECT * FROM cur, table_changes('t', cur.seq > 1)":                                                                "42804",
		"SELECT * FROM (SELECT 1 AS x) q, (WITH w AS (SELECT 2 AS y) SELECT * FROM w, table_changes('t', 'seq:' || w.y)) z": "0A000",
	} {
		require.Equal(t, code, sqlstate(t, c, sql).Code, sql)
	}
}

// The consumer of a feed in one statement: what it read, what it wrote and its acknowledgement are one commit.
func TestChangefeedInOneStatement(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE src (id int PRIMARY KEY, v text); CREATE TABLE dst (id int PRIMARY KEY, v text)")
	run(t, c, "SELECT changefeed_create('f', ARRAY['src'])")
	consume := `WITH w AS (SELECT * FROM changefeed_window('f')),
		c AS (SELECT DISTINCT ON (id) x.* FROM w, table_changes('src', 'seq:' || w.from_seq, 'seq:' || w.to_seq) x ORDER BY id, _commit_seq DESC, _change_row DESC),
		gone AS (DELETE FROM dst WHERE id IN (SELECT id FROM c WHERE _change_type = 'DELETE')),
		put AS (INSERT INTO dst SELECT id, v FROM c WHERE _change_type <> 'DELETE' ON CONFLICT (id) DO UPDATE SET v = excluded.v)
		SELECT changefeed_ack('f', window_id, lease_token) FROM w`
	same := func() {
		t.Helper()
		require.Equal(t, rows(t, c, "SELECT * FROM src ORDER BY id"), rows(t, c, "SELECT * FROM dst ORDER BY id"))
	}
	require.Empty(t, rows(t, c, consume), "there is nothing to do")
	for _, sql := range []string{"INSERT INTO src VALUES (1, 'a'), (2, 'b'), (3, 'c')", "UPDATE src SET v = v || '!'", "DELETE FROM src WHERE id = 2", "INSERT INTO src VALUES (2, 'again'), (4, 'd')"} {
		run(t, c, sql)
		before := number(t, c, "SELECT current_commit_seq()")
		require.Len(t, rows(t, c, consume), 1)
		require.Equal(t, before+1, number(t, c, "SELECT current_commit_seq()"), "one commit")
		same()
	}
	// EXPLAIN takes no window.
	run(t, c, "INSERT INTO src VALUES (5, 'e')")
	plan := fmt.Sprint(rows(t, c, "EXPLAIN "+consume))
	for _, node := range []string{"Function Scan on changefeed_window", "Function Scan on table_changes", "Iceberg Scan on public.dst"} {
		require.Contains(t, plan, node)
	}
	require.Equal(t, [][]string{{"∅"}}, rows(t, c, "SELECT window_id FROM skade.changefeeds"))
	// Undone with its transaction, done again.
	run(t, c, "BEGIN")
	require.Len(t, rows(t, c, consume), 1)
	run(t, c, "ROLLBACK")
	require.Len(t, rows(t, c, "SELECT * FROM dst WHERE id = 5"), 0)
	require.Len(t, rows(t, c, consume), 1)
	same()
	// A window by itself, acknowledged by its row; a stale token; another feed's name; the functions over the rows of tables.
	run(t, c, "INSERT INTO src VALUES (6, 'f')")
	require.Len(t, rows(t, c, "SELECT changefeed_ack('f', w.window_id, w.lease_token) FROM changefeed_window('f') w"), 1)
	run(t, c, "INSERT INTO src VALUES (7, 'g'), (8, 'h')")
	run(t, c, "UPDATE src SET v = 'H' WHERE id = 8")
	require.Equal(t, [][]string{{"7", "t"}, {"8", "t"}, {"8", "t"}, {"8", "t"}},
		rows(t, c, "SELECT c.id, changefeed_ack('f', w.window_id, w.lease_token) > 0 FROM changefeed_window('f') w, table_changes('src', 'seq:' || w.from_seq, 'seq:' || w.to_seq) c ORDER BY 1"), "a row each, one acknowledgement")
	require.Empty(t, rows(t, c, "SELECT * FROM changefeed_window('f')"))
	require.Equal(t, "40001", sqlstate(t, c, "SELECT changefeed_ack('f', w, 'stale') FROM generate_series(1, 2) w").Code)
	require.Equal(t, "42704", sqlstate(t, c, "SELECT changefeed_ack(f, 1, 'x') FROM (VALUES ('none')) q(f)").Code)
	require.Len(t, rows(t, c, "SELECT changefeed_create('g' || i) FROM generate_series(1, 3) i"), 3)
	run(t, c, "SELECT changefeed_seek(name, 'now'), changefeed_drop(name) FROM skade.changefeeds")
	require.Empty(t, rows(t, c, "SELECT * FROM skade.changefeeds"))
	require.Equal(t, rows(t, c, "SELECT commit_channel('src')"), rows(t, c, "SELECT commit_channel(table_name) FROM information_schema.tables WHERE table_name = 'src'"))
	require.Equal(t, [][]string{{"t"}, {"f"}}, rows(t, c, "SELECT snapshot_at('src', x) IS NULL FROM (VALUES (1, 'seq:1'), (2, 'now')) q(i, x) ORDER BY i"))
}
