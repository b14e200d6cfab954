package test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Columns that rows are partitioned by can go and change their type. Files from before keep their spec, and are written again with its values.
func TestPartitionColumnsGoAndChange(t *testing.T) {
	g := start(t)
	c := g.connect()
	for _, version := range []string{"2", "3"} {
		run(t, c, "CREATE TABLE part (id int PRIMARY KEY, d date, r text, n int) WITH (partitioning = 'day(d), r', sort_order = 'r, n', format_version = "+version+")")
		run(t, c, "INSERT INTO part VALUES (1, '2026-01-01', 'a', 1), (2, '2026-01-02', 'b', 2), (3, NULL, NULL, 3)")
		run(t, c, "ALTER TABLE part ALTER COLUMN d TYPE timestamp")
		run(t, c, "INSERT INTO part VALUES (4, '2026-01-04 10:00', 'a', 4)")
		require.Equal(t, [][]string{{"4", "1"}}, rows(t, c, "SELECT count(*), count(DISTINCT spec_id) FROM skade.files('part')"))
		run(t, c, "ALTER TABLE part DROP COLUMN r")
		require.Equal(t, [][]string{{"partitioning=day(d)"}}, rows(t, c, "SELECT o FROM pg_class, unnest(reloptions) o WHERE relname = 'part' AND o LIKE 'part%'"))
		// The old files' manifests are written again, some of their rows suppressed, all of a file's rows gone.
		run(t, c, "UPDATE part SET n = n * 10 WHERE id IN (1, 3)")
		run(t, c, "DELETE FROM part WHERE id = 2")
		run(t, c, "INSERT INTO part VALUES (5, '2026-01-05', 5)")
		// Another column of the name is another partition field.
		run(t, c, "ALTER TABLE part ADD COLUMN r int")
		run(t, c, "UPDATE part SET r = id")
		run(t, c, "ALTER TABLE part SET (partitioning = 'r, day(d)')")
		run(t, c, "BEGIN")
		run(t, c, "ALTER TABLE part ALTER COLUMN r TYPE bigint")
		run(t, c, "SAVEPOINT a")
		run(t, c, "ALTER TABLE part DROP COLUMN r, DROP COLUMN d")
		run(t, c, "INSERT INTO part VALUES (7, 7)")
		run(t, c, "ROLLBACK TO a")
		run(t, c, "INSERT INTO part VALUES (8, '2026-01-05', 8, 6000000000)")
		run(t, c, "COMMIT")
		run(t, c, "VACUUM FULL part")
		want := [][]string{{"1", "2026-01-01 00:00:00", "10", "1"}, {"3", "", "30", "3"}, {"4", "2026-01-04 10:00:00", "4", "4"}, {"5", "2026-01-05 00:00:00", "5", "5"}, {"8", "2026-01-05 00:00:00", "8", "6000000000"}}
		require.Equal(t, want, rows(t, c, "SELECT id, coalesce(d::text, ''), n, r FROM part ORDER BY id"))
		require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}, {"3", ""}}, rows(t, c, "SELECT id, coalesce(r, '') FROM table_at('part', 'earliest') ORDER BY id"))
		require.Equal(t, "22023", sqlstate(t, c, "ALTER TABLE part ALTER COLUMN d TYPE text").Code)
		run(t, c, "DROP TABLE part")
	}
}

// What is no table is 42809, whatever it is.
func TestFunctionsOfTablesRefuseOtherRelations(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE SEQUENCE s")
	run(t, c, "CREATE VIEW v AS SELECT 1 AS a")
	for _, name := range []string{"skade.commits", "commits", "pg_class", "pg_catalog.pg_class", "information_schema.tables", "s", "v"} {
		require.Equal(t, "42809", sqlstate(t, c, "SELECT * FROM table_changes('"+name+"', NULL, NULL)").Code, name)
		require.Equal(t, "42809", sqlstate(t, c, "SELECT * FROM lookup('"+name+"', 1)").Code, name)
		require.Equal(t, "42809", sqlstate(t, c, "SELECT * FROM table_at('"+name+"', 'now')").Code, name)
	}
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM table_changes('skade.nope', NULL, NULL)").Code)
}
