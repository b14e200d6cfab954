package test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
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

// Eight updaters of their own rows and continuous VACUUM: nobody gets 40001 for a row that nobody else touched, explicit transactions included.
func TestUpdatersAndVacuum(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			const updaters, rounds = 8, 6
			g := start(t)
			c := g.connect()
			run(t, c, fmt.Sprintf("CREATE TABLE w (id int PRIMARY KEY, who int, n int) WITH (format_version = %d)", version))
			for i := range updaters {
				run(t, c, fmt.Sprintf("INSERT INTO w SELECT %d + i * %d, %d, 0 FROM generate_series(0, 9) i", i, updaters, i))
			}
			before := one(t, c, "SELECT skade.current_commit_seq()")
			stop, vacuumed := make(chan struct{}), make(chan error, 1)
			go func() {
				v := g.connect()
				for n := 0; ; n++ {
					select {
					case <-stop:
						vacuumed <- nil
						return
					default:
					}
					if err := execute(v, []string{"VACUUM FULL w", "VACUUM w"}[n%2]); err != nil {
						vacuumed <- err
						return
					}
				}
			}()
			codes := together(t, g.connections(updaters), func(i int, c *pgx.Conn) error {
				for n := range rounds {
					steps := []string{"BEGIN", "SELECT count(*) FROM w", fmt.Sprintf("UPDATE w SET n = n + 1 WHERE who = %d AND id %% 16 < 8", i), "SELECT pg_sleep(0.03)",
						fmt.Sprintf("UPDATE w SET n = n + 1 WHERE who = %d AND id %% 16 >= 8", i), "COMMIT"}
					if n%2 == 1 {
						steps = []string{fmt.Sprintf("UPDATE w SET n = n + 1 WHERE who = %d", i)}
					}
					for _, sql := range steps {
						if err := execute(c, sql); err != nil {
							return err
						}
					}
				}
				return nil
			})
			close(stop)
			require.NoError(t, <-vacuumed)
			require.Equal(t, map[string]int{"": updaters}, codes)
			require.Equal(t, [][]string{{"80", fmt.Sprint(80 * rounds), fmt.Sprint(rounds)}}, rows(t, c, "SELECT count(*), sum(n), max(n) FROM w"))
			require.NotEqual(t, "0", one(t, c, "SELECT count(*) FROM skade.commits WHERE operation = 'replace' AND commit_seq > "+before))
			// L5, L1: compactions show nothing, the updates sum up.
			require.Equal(t, fmt.Sprint(80*rounds), one(t, c, "SELECT count(*) FROM table_changes('w', 'seq:"+before+"') WHERE _change_type = 'UPDATE_AFTER'"))
			require.Equal(t, "0", one(t, c, "SELECT count(*) FROM table_changes('w', 'seq:"+before+"') WHERE _change_type IN ('INSERT', 'DELETE')"))
		})
	}
}

// VACUUM (VERBOSE) tells what it did; options are PostgreSQL's.
func TestVacuumVerbose(t *testing.T) {
	g := start(t)
	cfg, err := pgx.ParseConfig(g.srv.URL())
	require.NoError(t, err)
	var notices []*pgconn.Notice
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices = append(notices, n) }
	c, err := pgx.ConnectConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(context.Background())) }()
	run(t, c, "CREATE TABLE v (id int PRIMARY KEY)")
	for i := range 20 {
		run(t, c, fmt.Sprintf("INSERT INTO v VALUES (%d)", i))
	}
	run(t, c, "DELETE FROM v WHERE id < 3")
	run(t, c, "VACUUM (VERBOSE, ANALYZE) v")
	require.Len(t, notices, 2)
	require.Equal(t, "INFO", notices[0].Severity)
	require.Equal(t, `vacuuming "skade.public.v"`, notices[0].Message)
	require.Contains(t, notices[1].Message, "data files: 17 rewritten into 1 (17 rows, 0 suppressed rows removed)")
	require.Equal(t, "17", one(t, c, "SELECT count(*) FROM v"))
	run(t, c, "VACUUM FULL VERBOSE v")
	require.Len(t, notices, 4)
	require.Equal(t, "42601", sqlstate(t, c, "VACUUM (NOPE) v").Code)
	require.Equal(t, "42601", sqlstate(t, c, "VACUUM (VERBOSE maybe) v").Code)
	run(t, c, "VACUUM (FULL off, VERBOSE false, FREEZE) v")
	require.Equal(t, "42P01", sqlstate(t, c, "VACUUM nope").Code)
	require.Equal(t, "25006", sqlstate(t, g.connect("default_transaction_read_only", "on"), "VACUUM v").Code)
	run(t, c, "BEGIN")
	require.Equal(t, "25001", sqlstate(t, c, "VACUUM v").Code)
	run(t, c, "ROLLBACK")
	require.Empty(t, rows(t, c, "SELECT * FROM skade.stat_progress_vacuum"))
}

// Manifests of many commits become one; what they said of each file stays.
func TestVacuumRewritesManifests(t *testing.T) {
	for _, version := range []int{2, 3} {
		g := start(t)
		c := g.connect()
		run(t, c, fmt.Sprintf(`CREATE TABLE m (id int) WITH (format_version = %d, "commit.manifest-merge.enabled" = 'false')`, version))
		for i := range 7 {
			run(t, c, fmt.Sprintf("INSERT INTO m SELECT %d + generate_series(1, 3)", 3*i))
		}
		run(t, c, "INSERT INTO m VALUES (100)")
		const said = "SELECT snapshot_id, sequence_number, file_sequence_number, data_file->>'file_path', data_file->>'first_row_id' FROM skade.entries('m') ORDER BY 2"
		before := rows(t, c, said)
		require.Equal(t, "8", one(t, c, "SELECT count(*) FROM skade.manifests('m')"))
		run(t, c, `ALTER TABLE m RENAME TO n`)
		run(t, c, "VACUUM n") // eight small files too: the compaction joins them
		require.Len(t, rows(t, c, "SELECT 1 FROM skade.manifests('n') WHERE added_data_files_count + existing_data_files_count > 0"), 1)
		run(t, c, "SELECT skade.create_tag('n', 'x', "+one(t, c, "SELECT snapshot_id FROM skade.snapshots WHERE table_name = 'n' AND sequence_number = 8")+")")
		require.Equal(t, before, rows(t, c, "SELECT snapshot_id, sequence_number, file_sequence_number, data_file->>'file_path', data_file->>'first_row_id' FROM skade.entries('n', 'x') ORDER BY 2"))
		require.Equal(t, "22", one(t, c, "SELECT count(*) FROM n"))
	}
}

// A table whose retention has passed is gone with its files; until nobody reads it any more it is not.
func TestDroppedTablesArePurged(t *testing.T) {
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), configure: func(c *cli.Config) { c.RetainDropped = 0 }}
	g.open()
	t.Cleanup(g.close)
	c, reader := g.connect(), g.connect()
	run(t, c, "CREATE TABLE gone (id int)")
	run(t, c, "CREATE TABLE kept (id int)")
	run(t, c, "INSERT INTO gone VALUES (1)")
	run(t, reader, "BEGIN")
	require.Equal(t, "1", one(t, reader, "SELECT count(*) FROM gone"))
	run(t, c, "DROP TABLE gone")
	run(t, c, "VACUUM kept")
	require.Equal(t, "1", one(t, c, "SELECT count(*) FROM skade.dropped_tables"))
	run(t, c, "VACUUM")
	require.Equal(t, "1", one(t, reader, "SELECT count(*) FROM gone"))
	require.Equal(t, "1", one(t, c, "SELECT count(*) FROM skade.dropped_tables"), "a transaction reads it")
	run(t, reader, "COMMIT")
	run(t, c, "VACUUM")
	require.Empty(t, rows(t, c, "SELECT * FROM skade.dropped_tables"))
	found, err := filepath.Glob(filepath.Join(g.dir, "warehouse", "public", "gone-*"))
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT skade.undrop('gone')").Code)
	require.Equal(t, [][]string{{"purge", "public.gone"}}, rows(t, c, "SELECT kind, table_name FROM skade.commits ORDER BY commit_seq DESC LIMIT 1"))
}

// In the background small files become large ones, while a table that nobody writes is left alone.
func TestBackgroundMaintenance(t *testing.T) {
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), configure: func(c *cli.Config) { c.MaintenanceInterval = 20 * time.Millisecond }}
	g.open()
	t.Cleanup(g.close)
	c := g.connect()
	run(t, c, "CREATE TABLE b (id int PRIMARY KEY)")
	for i := range 40 {
		run(t, c, fmt.Sprintf("INSERT INTO b VALUES (%d)", i))
	}
	require.Eventually(t, func() bool { return one(t, c, "SELECT count(*) < 20 FROM skade.files('b')") == "t" }, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, "40", one(t, c, "SELECT count(*) FROM b"))
}
