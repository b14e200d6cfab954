package test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tableFiles are the data and delete files in a table's folder.
func (g *gateway) tableFiles(table string) (out []string) {
	g.t.Helper()
	err := filepath.WalkDir(filepath.Join(g.dir, "warehouse"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "/"+table+"-") && slices.Contains([]string{".parquet", ".puffin"}, filepath.Ext(path)) {
			out = append(out, path)
		}
		return err
	})
	require.NoError(g.t, err)
	return out
}

// Hundreds of statements of one row in one transaction write nothing before COMMIT, then one data file and one delete file. Rows born and dead
// in between are in neither data nor changes.
func TestOneTransactionIsOneFile(t *testing.T) {
	const n = 120
	for _, format := range []int{2, 3} {
		t.Run(fmt.Sprintf("v%d", format), func(t *testing.T) {
			g := start(t)
			c := g.connect()
			run(t, c, fmt.Sprintf("CREATE TABLE t (id int PRIMARY KEY, v text, n int) WITH (format_version = %d)", format))
			run(t, c, "INSERT INTO t SELECT i, 'v' || i, 0 FROM generate_series(1, 1000) i")
			cases := []struct {
				name  string
				files int
				do    func(i int) string
				live  string // rows and sum of n after it
			}{
				{"INSERT", 1, func(i int) string { return fmt.Sprintf("INSERT INTO t VALUES (%d, 'new', 1)", 2000+i) }, "1120|120"},
				{"UPDATE", 2, func(i int) string { return fmt.Sprintf("UPDATE t SET n = n + 1 WHERE id = %d", 1+i%60) }, "1120|240"},
				{"UPDATE without the key", 2, func(i int) string { return fmt.Sprintf("UPDATE t SET n = n + 1 WHERE v = 'v%d'", 100+i%3) }, "1120|360"},
				{"DELETE", 1, func(i int) string { return fmt.Sprintf("DELETE FROM t WHERE id = %d", 200+i) }, "1000|360"},
				{"upsert", 2, func(i int) string {
					return fmt.Sprintf("INSERT INTO t AS o VALUES (%d, 'up', 1) ON CONFLICT (id) DO UPDATE SET n = o.n + 1", []int{500, 3000 + i/2}[i%2])
				}, "1060|480"},
				{"mixed, all gone", 0, func(i int) string {
					return fmt.Sprintf([]string{"INSERT INTO t VALUES (%d, 'x', 9)", "UPDATE t SET n = 7 WHERE id = %d", "DELETE FROM t WHERE id = %d"}[i%3], 9000+i/3)
				}, "1060|480"},
			}
			for _, k := range cases {
				seq := rows(t, c, "SELECT max(commit_seq) FROM skade.commits")[0][0]
				before := g.tableFiles("t")
				run(t, c, "BEGIN")
				for i := range n {
					require.EqualValues(t, 1, run(t, c, k.do(i)).RowsAffected(), k.do(i))
				}
				require.Equal(t, before, g.tableFiles("t"), "%s writes files before COMMIT", k.name)
				require.Equal(t, k.live, strings.Join(rows(t, c, "SELECT count(*), sum(n) FROM t")[0], "|"), "%s: own writes", k.name)
				run(t, c, "COMMIT")
				require.Len(t, g.tableFiles("t"), len(before)+k.files, k.name)
				require.Equal(t, k.live, strings.Join(rows(t, c, "SELECT count(*), sum(n) FROM t")[0], "|"), k.name)
				twice := rows(t, c, "SELECT id, count(*) FROM table_changes('t', 'seq:"+seq+"', NULL) GROUP BY id, _change_type HAVING count(*) > 1")
				require.Empty(t, twice, "%s: a row changed twice", k.name)
			}
			require.Empty(t, rows(t, c, "SELECT * FROM table_changes('t', NULL, NULL) WHERE n = 9 OR n = 7"), "rows born and dead in a transaction")
		})
	}
}

// A savepoint that is rolled back in the middle leaves no trace, RETURNING and a cursor show the rows as they were, and a key is free again.
func TestBufferedChangesAndSavepoints(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, n int)")
	run(t, c, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i")
	before := len(g.tableFiles("t"))
	run(t, c, "BEGIN")
	for i := 1; i <= 20; i++ {
		run(t, c, fmt.Sprintf("UPDATE t SET n = 1 WHERE id = %d", i))
	}
	run(t, c, "DECLARE old CURSOR FOR SELECT id, n FROM t WHERE id <= 3 ORDER BY id")
	run(t, c, "SAVEPOINT a")
	for i := 1; i <= 20; i++ {
		require.Equal(t, [][]string{{"1", "2"}}, rows(t, c, fmt.Sprintf("UPDATE t SET n = n + 1 WHERE id = %d RETURNING n - 1, n", i)))
	}
	require.Equal(t, [][]string{{"5", "2"}}, rows(t, c, "DELETE FROM t WHERE id = 5 RETURNING *"))
	run(t, c, "INSERT INTO t VALUES (5, 50), (1000, 1)")
	require.Equal(t, [][]string{{"1000", "2"}}, rows(t, c, "INSERT INTO t VALUES (1000, 0) ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *"))
	run(t, c, "UPDATE t SET id = 1001 WHERE id = 1000")
	run(t, c, "SAVEPOINT b")
	require.Equal(t, "23505", sqlstate(t, c, "UPDATE t SET id = 7 WHERE id = 1001").Code)
	run(t, c, "ROLLBACK TO b")
	require.Equal(t, "23505", sqlstate(t, c, "UPDATE t SET id = id + 1 WHERE id IN (8, 9)").Code, "as PostgreSQL: row by row")
	run(t, c, "ROLLBACK TO a")
	require.Equal(t, [][]string{{"1", "1"}, {"2", "1"}, {"3", "1"}}, rows(t, c, "FETCH ALL FROM old"))
	require.Equal(t, [][]string{{"20", "100", "20"}}, rows(t, c, "SELECT sum(n), count(*), count(*) FILTER (WHERE n = 1) FROM t"))
	require.Equal(t, [][]string{{"5", "1"}}, rows(t, c, "SELECT * FROM t WHERE id = 5"))
	require.Equal(t, [][]string{{"5", "1"}}, rows(t, c, "SELECT * FROM lookup('t', 5)"))
	require.Empty(t, rows(t, c, "SELECT * FROM lookup('t', 1000)"))
	run(t, c, "COMMIT")
	require.Len(t, g.tableFiles("t"), before+2)
	require.Equal(t, [][]string{{"UPDATE_AFTER", "20"}, {"UPDATE_BEFORE", "20"}},
		rows(t, c, "SELECT _change_type, count(*) FROM table_changes('t', NULL, NULL) WHERE _change_type <> 'INSERT' GROUP BY 1 ORDER BY 1"))
}

// A random mix of statements on rows in memory and in files gives what a map gives.
func TestBufferedChangesAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, n int) WITH (format_version = 3)")
	run(t, c, "INSERT INTO t SELECT i, i FROM generate_series(0, 29) i")
	model := map[int]int{}
	for i := range 30 {
		model[i] = i
	}
	for range 6 {
		run(t, c, "BEGIN")
		for range 40 {
			id, v := rng.IntN(40), rng.IntN(1000)
			_, have := model[id]
			switch rng.IntN(6) {
			case 0:
				if have {
					run(t, c, fmt.Sprintf("DELETE FROM t WHERE id = %d", id))
					delete(model, id)
				} else {
					run(t, c, fmt.Sprintf("INSERT INTO t VALUES (%d, %d)", id, v))
					model[id] = v
				}
			case 1:
				run(t, c, fmt.Sprintf("INSERT INTO t VALUES (%d, %d) ON CONFLICT (id) DO UPDATE SET n = excluded.n", id, v))
				model[id] = v
			case 2:
				run(t, c, fmt.Sprintf("UPDATE t SET n = n + 1 WHERE id BETWEEN %d AND %d", id, id+5))
				for i := id; i <= id+5; i++ {
					if _, ok := model[i]; ok {
						model[i]++
					}
				}
			case 3:
				run(t, c, fmt.Sprintf("MERGE INTO t USING (VALUES (%d, %d), (%d, %d)) s (id, n) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)", id, v, id+1, v+1))
				model[id], model[id+1] = v, v+1
			case 4:
				run(t, c, fmt.Sprintf("WITH gone AS (DELETE FROM t WHERE id = %d RETURNING id, n) INSERT INTO t SELECT id + 100, n FROM gone WHERE id + 100 NOT IN (SELECT id FROM t)", id))
				if n, ok := model[id]; ok {
					delete(model, id)
					if _, taken := model[id+100]; !taken {
						model[id+100] = n
					}
				}
			case 5:
				want := "[]"
				if have {
					want = fmt.Sprintf("[[%d]]", model[id])
				}
				require.Equal(t, want, fmt.Sprint(rows(t, c, fmt.Sprintf("SELECT n FROM t WHERE id = %d", id))))
			}
		}
		run(t, c, "COMMIT")
		want := make([][]string, 0, len(model))
		for id, n := range model {
			want = append(want, []string{fmt.Sprint(id), fmt.Sprint(n)})
		}
		slices.SortFunc(want, func(a, b []string) int { return slices.Compare(a, b) })
		require.Equal(t, want, rows(t, c, "SELECT id, n FROM t ORDER BY id::text COLLATE \"C\", n"))
	}
}
