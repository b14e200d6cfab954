package test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
)

// Key conditions on tables of other writers: every kind of delete, and keys that nobody kept unique.
func TestKeyConditionsOnForeignTables(t *testing.T) {
	for _, version := range []int{2, 3} {
		root := t.TempDir()
		f := testkit.NewForeign(t, root)
		ident := foreignHistory(t, f, "s.t", version)
		f.Delta(t, ident, [][]any{{7, "x"}, {7, "y"}, {7, "a"}}, nil, nil)
		g := startWith(t, root)
		c := g.connect()
		run(t, c, fmt.Sprintf("SELECT skade.register_table('public.t', '%s')", f.Metadata(t, ident)))
		first := rows(t, c, "SELECT min(sequence_number), min(snapshot_id) FILTER (WHERE sequence_number = 1) FROM skade.snapshots WHERE table_name = 't'")[0][1]
		for _, from := range []string{"t", "table_at('t', " + first + ")"} {
			for _, cond := range []string{"id = 2", "id = 3", "id IN (1, 2, 3, 4, 5, 6, 7)", "id = ANY('{2,3,7}')", "id = 7", "id = 7 OR id = 1", "id = 7 AND name > 'a'"} {
				want := rows(t, c, "SELECT * FROM (SELECT * FROM "+from+" OFFSET 0) t WHERE "+cond+" ORDER BY id, name")
				for _, sql := range []string{"SELECT * FROM " + from + " t WHERE " + cond, "SELECT * FROM (SELECT id, name FROM " + from + ") t WHERE " + cond + " AND id > 0"} {
					require.Equal(t, want, rows(t, c, sql+" ORDER BY id, name"), sql)
					require.ElementsMatch(t, want, rows(t, c, sql), sql)
				}
				if len(want) > 1 {
					require.Equal(t, want[:1], rows(t, c, "SELECT * FROM "+from+" t WHERE "+cond+" ORDER BY id, name LIMIT 1"))
					require.Len(t, rows(t, c, "SELECT * FROM "+from+" t WHERE "+cond+" LIMIT 2"), 2)
					require.Len(t, rows(t, c, "SELECT * FROM "+from+" t WHERE "+cond+" ORDER BY id DESC OFFSET 1"), len(want)-1)
				}
			}
		}
		require.Equal(t, "UPDATE 2", run(t, c, "UPDATE t SET name = name || '!' WHERE id IN (2, 3, 5)").String())
		require.Equal(t, [][]string{{"B!"}}, rows(t, c, "SELECT name FROM t WHERE id = 2"))
		require.Equal(t, "DELETE 4", run(t, c, "DELETE FROM t WHERE id IN (2, 3, 7)").String())
		require.Empty(t, rows(t, c, "SELECT name FROM t WHERE id IN (2, 3, 7)"))
	}
}

// Partitions by the key, and by something else, do not hide rows from key conditions.
func TestKeyConditionsOnPartitionedTables(t *testing.T) {
	g := start(t)
	c := g.connect()
	for i, partitioning := range []string{"bucket(3, a)", "b", "v"} {
		name := fmt.Sprintf("p%d", i)
		run(t, c, fmt.Sprintf("CREATE TABLE %s (a int, b text, v int, PRIMARY KEY (a, b)) WITH (partitioning = '%s')", name, partitioning))
		run(t, c, "INSERT INTO "+name+" SELECT i / 3, 'b' || i % 3, i % 2 FROM generate_series(0, 29) i")
		run(t, c, "UPDATE "+name+" SET v = 5 WHERE a = 3")
		run(t, c, "DELETE FROM "+name+" WHERE (a, b) IN ((4, 'b1'), (5, 'b2'), (99, 'x'))")
		for _, cond := range []string{"a = 3", "a = 3 AND b = 'b1'", "a IN (3, 4, 5) AND b IN ('b1', 'b2')", "(a, b) IN ((4, 'b1'), (4, 'b2'), (5, 'b2'))", "a = 4 AND v = 1", "b = 'b1' AND a = ANY('{1,2,3,4}')"} {
			require.ElementsMatch(t, rows(t, c, "SELECT * FROM (SELECT * FROM "+name+" OFFSET 0) t WHERE "+cond), rows(t, c, "SELECT * FROM "+name+" WHERE "+cond), partitioning+": "+cond)
			require.Equal(t, rows(t, c, "SELECT count(*), sum(v) FROM (SELECT * FROM "+name+" OFFSET 0) t WHERE "+cond), rows(t, c, "SELECT count(*), sum(v) FROM "+name+" WHERE "+cond), partitioning+": "+cond)
		}
	}
}
