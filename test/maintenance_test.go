package test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// VACUUM removes metadata files that the table's metadata log no longer names; older cuts read the newest file from then on.
func TestVacuumRemovesOldMetadata(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE TABLE m (id int PRIMARY KEY, v int) WITH ("write.metadata.previous-versions-max" = '5')`)
	run(t, c, `CREATE TABLE kept (id int PRIMARY KEY, v int) WITH ("write.metadata.previous-versions-max" = '5', "write.metadata.delete-after-commit.enabled" = 'false')`)
	for i := range 20 {
		run(t, c, fmt.Sprintf("INSERT INTO m VALUES (%d, 0)", i))
		run(t, c, fmt.Sprintf("INSERT INTO kept VALUES (%d, 0)", i))
	}
	files := func(table string) int {
		found, err := filepath.Glob(filepath.Join(g.dir, "warehouse", "public", table+"-*", "metadata", "*.metadata.json"))
		require.NoError(t, err)
		return len(found)
	}
	require.Equal(t, 21, files("m"))
	// A cut that was taken before keeps its view, whatever file it reads.
	old := g.connect()
	run(t, old, "BEGIN")
	require.Equal(t, [][]string{{"20"}}, rows(t, old, "SELECT count(*) FROM m"))
	run(t, c, "DELETE FROM m WHERE id < 10")
	run(t, c, "VACUUM m, kept")
	require.LessOrEqual(t, files("m"), 6, "the current file and five of the log")
	require.GreaterOrEqual(t, files("kept"), 21)
	require.Equal(t, [][]string{{"20"}}, rows(t, old, "SELECT count(*) FROM m"))
	run(t, old, "COMMIT")
	// Time travel to commits whose files are gone, in this process and in the next.
	for range 2 {
		c = g.connect()
		require.Equal(t, [][]string{{"10"}}, rows(t, c, "SELECT count(*) FROM m"))
		seqs := rows(t, c, "SELECT commit_seq FROM skade.commits WHERE table_name = 'public.m' AND operation = 'append' ORDER BY commit_seq")
		require.Len(t, seqs, 20)
		for i, seq := range seqs {
			require.Equal(t, [][]string{{fmt.Sprint(i + 1)}}, rows(t, c, "SELECT count(*) FROM table_at('m', 'seq:"+seq[0]+"')"))
		}
		require.Equal(t, [][]string{{"DELETE", "10"}, {"INSERT", "20"}}, rows(t, c, "SELECT _change_type, count(*) FROM table_changes('m', NULL) GROUP BY 1 ORDER BY 1"))
		g.close()
		g.open()
	}
}
