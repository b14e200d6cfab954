package test

import (
	"context"
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAlterColumns changes columns of a table with rows, format 2 and 3, and reads the rows through each new definition.
func TestAlterColumns(t *testing.T) {
	g := start(t)
	c := g.connect()
	for _, format := range []string{"2", "3"} {
		tab := "t" + format
		sql := func(text string) { run(t, c, text) }
		sql("CREATE TABLE " + tab + " (id int PRIMARY KEY, a int, b text) WITH (format_version = " + format + ")")
		sql("INSERT INTO " + tab + " VALUES (1, 10, 'x'), (2, 20, 'y')")
		sql("ALTER TABLE " + tab + " ADD COLUMN c int, ADD d text DEFAULT 'it''s' NOT NULL, ADD e timestamptz DEFAULT '2026-01-02 03:04:05.5+00'")
		require.Equal(t, [][]string{{"1", "10", "x", "∅", "it's", "2026-01-02 03:04:05.5+00"}, {"2", "20", "y", "∅", "it's", "2026-01-02 03:04:05.5+00"}}, rows(t, c, "SELECT * FROM "+tab+" ORDER BY id"))
		sql("INSERT INTO " + tab + "(id) VALUES (3)")
		require.Equal(t, [][]string{{"3", "∅", "∅", "∅", "it's", "2026-01-02 03:04:05.5+00"}}, rows(t, c, "SELECT * FROM "+tab+" WHERE id = 3"))
		sql("UPDATE " + tab + " SET d = 'z' WHERE id = 2")
		sql("ALTER TABLE " + tab + " ALTER a TYPE bigint, DROP COLUMN b, ALTER d DROP DEFAULT, ALTER d DROP NOT NULL")
		require.Equal(t, [][]string{{"1", "10", "it's"}, {"2", "20", "z"}, {"3", "∅", "it's"}}, rows(t, c, "SELECT id, a, d FROM "+tab+" ORDER BY id"))
		sql("ALTER TABLE " + tab + " RENAME COLUMN a TO amount")
		sql("INSERT INTO " + tab + " (id, amount) VALUES (4, 5000000000)")
		sql("ALTER TABLE " + tab + " ALTER amount TYPE text USING 'n' || amount")
		require.Equal(t, [][]string{{"1", "n10"}, {"2", "n20"}, {"3", "∅"}, {"4", "n5000000000"}}, rows(t, c, "SELECT id, amount FROM "+tab+" ORDER BY id"))
		require.Equal(t, [][]string{{"4"}}, rows(t, c, "SELECT id FROM "+tab+" WHERE amount = 'n5000000000'"))
		require.Equal(t, "23502", sqlstate(t, c, "ALTER TABLE "+tab+" ALTER amount SET NOT NULL").Code)
		require.Equal(t, "42804", sqlstate(t, c, "ALTER TABLE "+tab+" ALTER amount TYPE int").Code)
	}
}

// TestDependencies: PostgreSQL 15's answers, taken from it.
func TestDependencies(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, a int, b text, c int)")
	run(t, c, "INSERT INTO t VALUES (1, 10, 'x', 100)")
	run(t, c, "CREATE VIEW v AS SELECT id, a FROM t")
	run(t, c, "CREATE VIEW w AS SELECT v.*, 1 AS one FROM v")
	run(t, c, "CREATE VIEW s AS SELECT x.a FROM t x JOIN t y USING (id)")

	e := sqlstate(t, c, "DROP TABLE t")
	require.Equal(t, "2BP01", e.Code)
	require.Equal(t, "cannot drop table t because other objects depend on it", e.Message)
	require.Equal(t, "view v depends on table t\nview w depends on view v\nview s depends on table t", e.Detail)
	require.Equal(t, "Use DROP ... CASCADE to drop the dependent objects too.", e.Hint)
	e = sqlstate(t, c, "DROP VIEW v")
	require.Equal(t, "view w depends on view v", e.Detail)
	e = sqlstate(t, c, "ALTER TABLE t DROP COLUMN a")
	require.Equal(t, "cannot drop column a of table t because other objects depend on it", e.Message)
	require.Equal(t, "view v depends on column a of table t\nview w depends on view v\nview s depends on column a of table t", e.Detail)
	e = sqlstate(t, c, "ALTER TABLE t ALTER a TYPE bigint")
	require.Equal(t, "0A000", e.Code)
	require.Equal(t, `rule _RETURN on view v depends on column "a"`, e.Detail)
	run(t, c, "DROP VIEW s")
	run(t, c, "ALTER TABLE t DROP COLUMN b")

	// A column that comes later is not the view's; renamed tables and columns are followed.
	run(t, c, "CREATE VIEW star AS SELECT * FROM t")
	run(t, c, "ALTER TABLE t ADD COLUMN d int DEFAULT 7")
	require.Equal(t, [][]string{{"1", "10", "100"}}, rows(t, c, "SELECT * FROM star"))
	run(t, c, "ALTER TABLE t RENAME COLUMN a TO amount")
	run(t, c, "ALTER TABLE t RENAME TO u")
	run(t, c, "CREATE SCHEMA other; ALTER TABLE u SET SCHEMA other")
	require.Equal(t, [][]string{{"1", "10", "100"}}, rows(t, c, "SELECT id, a, c FROM star"))
	require.Equal(t, [][]string{{"1", "10", "1"}}, rows(t, c, "SELECT * FROM w"))
	run(t, c, "ALTER VIEW v RENAME TO vv")
	run(t, c, "ALTER VIEW vv RENAME COLUMN a TO z")
	require.Equal(t, [][]string{{"1", "10", "1"}}, rows(t, c, "SELECT id, a, one FROM w"))
	require.Equal(t, "42P16", sqlstate(t, c, "CREATE OR REPLACE VIEW vv AS SELECT id FROM other.u").Code)
	require.Equal(t, "42809", sqlstate(t, c, "ALTER TABLE w ADD COLUMN x int").Code)
	run(t, c, "ALTER TABLE other.u DROP COLUMN d")
	require.Equal(t, [][]string{{"1", "10", "100"}}, rows(t, c, "SELECT * FROM star"))
	run(t, c, "DROP SCHEMA other CASCADE")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM w").Code)
	require.Empty(t, rows(t, c, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"))
}

// TestAlterConcurrently: whoever commits second finds the table changed. Nothing is lost, nothing is stored under another definition.
func TestAlterConcurrently(t *testing.T) {
	g := start(t)
	a, b := g.connect(), g.connect()
	run(t, a, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	run(t, a, "INSERT INTO t VALUES (1, 1)")

	// Rows against a definition that moved after the transaction's cut.
	run(t, a, "BEGIN; SELECT * FROM t")
	run(t, b, "ALTER TABLE t ADD COLUMN w int DEFAULT 5")
	run(t, a, "INSERT INTO t VALUES (2, 2)")
	require.Equal(t, "40001", sqlstate(t, a, "COMMIT").Code)
	// A definition against rows that it did not look at.
	for _, alter := range []string{"ALTER v SET NOT NULL", "ALTER v TYPE text", "ADD CONSTRAINT c CHECK (v > 0)", "ADD COLUMN x float8 DEFAULT random()", "DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (v)"} {
		run(t, a, "BEGIN; SELECT * FROM t")
		run(t, b, "INSERT INTO t VALUES (3, NULL)")
		run(t, a, "ALTER TABLE t "+alter)
		require.Equal(t, "40001", sqlstate(t, a, "COMMIT").Code, alter)
		run(t, b, "DELETE FROM t WHERE id = 3")
	}
	// One that looks at none goes through, and rows that came in between have it.
	run(t, a, "BEGIN; SELECT * FROM t")
	run(t, b, "INSERT INTO t VALUES (4, 4)")
	run(t, a, "ALTER TABLE t ADD COLUMN y int; COMMIT")
	require.Equal(t, [][]string{{"1", "1", "5", "∅"}, {"4", "4", "5", "∅"}}, rows(t, b, "SELECT * FROM t ORDER BY id"))
	// An ALTER waits for a writer, and a writer for an ALTER; then each works on what the other left.
	run(t, a, "BEGIN; INSERT INTO t VALUES (5, 5)")
	altered := make(chan error, 1)
	go func() {
		_, err := b.Exec(context.Background(), "ALTER TABLE t ALTER v SET NOT NULL, ADD COLUMN waited text DEFAULT 'yes'")
		altered <- err
	}()
	run(t, a, "INSERT INTO t VALUES (6, 6); COMMIT")
	require.NoError(t, <-altered)
	require.Equal(t, [][]string{{"4", "4"}}, rows(t, a, "SELECT count(*), count(*) FILTER (WHERE waited = 'yes') FROM t"))

	// Alone, both run again by themselves.
	done := make(chan error, 1)
	go func() {
		for i := 10; i < 60; i++ {
			if _, err := b.Exec(context.Background(), "INSERT INTO t (id, v) VALUES ($1, $1)", i); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	run(t, a, "ALTER TABLE t ALTER v TYPE bigint")
	run(t, a, "ALTER TABLE t ADD COLUMN z text DEFAULT 'z'")
	run(t, a, "ALTER TABLE t ALTER v TYPE text USING 'n' || v")
	err := <-done
	if err != nil { // $1 was an integer for both columns: text is none
		require.ErrorContains(t, err, "42P08")
	}
	require.Equal(t, rows(t, a, "SELECT count(*) FROM t"), rows(t, a, "SELECT count(*) FROM t WHERE v = 'n' || id AND (z = 'z' OR z IS NULL)"))
}

// TestAlterTransaction: definitions and rows of one transaction, with savepoints, and ROLLBACK.
func TestAlterTransaction(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE t (id int, v int)")
	run(t, c, "INSERT INTO t VALUES (1, 1)")
	run(t, c, "BEGIN")
	run(t, c, "INSERT INTO t VALUES (2, 2)")
	run(t, c, "ALTER TABLE t ADD COLUMN w text DEFAULT 'w', ADD PRIMARY KEY (id)")
	run(t, c, "INSERT INTO t VALUES (3, 3, 'own')")
	require.Equal(t, "23505", sqlstate(t, c, "INSERT INTO t VALUES (3, 4)").Code)
	run(t, c, "ROLLBACK; BEGIN")
	run(t, c, "ALTER TABLE t ADD COLUMN w text DEFAULT 'w', ADD PRIMARY KEY (id)")
	run(t, c, "INSERT INTO t VALUES (3, 3, 'own'); SAVEPOINT a")
	run(t, c, "ALTER TABLE t DROP COLUMN v; INSERT INTO t VALUES (4, 'x'); SAVEPOINT b")
	run(t, c, "ALTER TABLE t RENAME TO u; ALTER TABLE u ALTER id TYPE text")
	require.Equal(t, [][]string{{"1", "w"}, {"3", "own"}, {"4", "x"}}, rows(t, c, "SELECT * FROM u ORDER BY id"))
	run(t, c, "ROLLBACK TO b")
	require.Equal(t, [][]string{{"1", "w"}, {"3", "own"}, {"4", "x"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
	run(t, c, "ROLLBACK TO a")
	require.Equal(t, [][]string{{"1", "1", "w"}, {"3", "3", "own"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
	require.Equal(t, [][]string{{"1", "1"}}, rows(t, other, "SELECT * FROM t"))
	run(t, c, "UPDATE t SET v = v + 1; COMMIT")
	require.Equal(t, [][]string{{"1", "2", "w"}, {"3", "4", "own"}}, rows(t, other, "SELECT * FROM t ORDER BY id"))
	run(t, c, "BEGIN; ALTER TABLE t DROP COLUMN w; DROP TABLE t; CREATE TABLE t (x int); INSERT INTO t VALUES (1); ALTER TABLE t RENAME x TO y; ROLLBACK")
	require.Equal(t, [][]string{{"1", "2", "w"}, {"3", "4", "own"}}, rows(t, c, "SELECT * FROM t ORDER BY id"))
}

// TestAlterAndPrepared: a prepared statement goes on while its columns stay what they were.
func TestAlterAndPrepared(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	ctx := context.Background()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v int)")
	run(t, c, "INSERT INTO t VALUES (1, 10)")
	_, err := c.Prepare(ctx, "star", "SELECT * FROM t WHERE id = $1")
	require.NoError(t, err)
	_, err = c.Prepare(ctx, "one", "SELECT v FROM t WHERE id = $1")
	require.NoError(t, err)
	_, err = c.Prepare(ctx, "ins", "INSERT INTO t (id) VALUES ($1)")
	require.NoError(t, err)
	var v int
	require.NoError(t, c.QueryRow(ctx, "one", 1).Scan(&v))
	run(t, other, "ALTER TABLE t ADD COLUMN w int DEFAULT 3")
	require.NoError(t, c.QueryRow(ctx, "one", 1).Scan(&v))
	require.Equal(t, 10, v)
	require.Equal(t, "0A000", sqlstate(t, c, "star", 1).Code)
	run(t, other, "ALTER TABLE t ALTER w SET DEFAULT 4")
	run(t, c, "ins", 2)
	require.Equal(t, [][]string{{"2", "∅", "4"}}, rows(t, c, "SELECT * FROM t WHERE id = 2"))
	run(t, other, "ALTER TABLE t RENAME COLUMN v TO x")
	require.Equal(t, "42703", sqlstate(t, c, "one", 1).Code)
}

// TestAlterAndHistory: older states show the columns they had; changes show the columns of the window's end, by field.
func TestAlterAndHistory(t *testing.T) {
	g := start(t)
	c := g.connect()
	seq := func() string { return rows(t, c, "SELECT current_commit_seq()")[0][0] }
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v int, gone text)")
	run(t, c, "INSERT INTO t VALUES (1, 10, 'g')")
	first := seq()
	run(t, c, "ALTER TABLE t RENAME v TO amount")
	run(t, c, "ALTER TABLE t DROP COLUMN gone, ALTER amount TYPE bigint, ADD COLUMN w text")
	metadata := seq()
	run(t, c, "INSERT INTO t VALUES (2, 20, 'w')")
	run(t, c, "ALTER TABLE t ALTER w TYPE int USING length(w)")
	require.Equal(t, [][]string{{"1", "10", "g"}}, rows(t, c, "SELECT * FROM table_at('t', 'seq:"+first+"')"))
	require.Equal(t, [][]string{{"1", "10", "∅"}}, rows(t, c, "SELECT * FROM table_at('t', 'seq:"+metadata+"')"))
	require.Equal(t, [][]string{{"INSERT", "1", "10", "∅"}, {"INSERT", "2", "20", "∅"}, {"UPDATE_BEFORE", "2", "20", "∅"}, {"UPDATE_AFTER", "2", "20", "1"}},
		rows(t, c, "SELECT _change_type, id, amount, w FROM table_changes('t', NULL)"))
	require.Equal(t, [][]string{{"INSERT", "1", "10", "∅"}}, rows(t, c, "SELECT _change_type, id, amount, w FROM table_changes('t', NULL, 'seq:"+metadata+"')"))
	require.Equal(t, [][]string{{"1", "10", "∅"}}, rows(t, c, "SELECT * FROM lookup('t', 1)"))
	require.Equal(t, [][]string{{"2", "20", "1"}}, rows(t, c, "SELECT * FROM t WHERE id = 2"))
}

// TestAlterOptions: WITH (…), SET and RESET, and rows in files of every partition spec.
func TestAlterOptions(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE TABLE t (id bigint PRIMARY KEY, ts timestamptz, name text, region text, n numeric(10,2))
		WITH (partitioning = 'day(ts), bucket(4, id), truncate(2, name), region', sort_order = 'n DESC NULLS LAST, name', "write.target-file-size-bytes" = 1048576)`)
	fill := func(from, to string) {
		run(t, c, "INSERT INTO t SELECT i, timestamptz '2026-01-01' + i * interval '7 hours', 'name' || i % 5, CASE WHEN i % 3 > 0 THEN 'r' || i % 3 END, i FROM generate_series("+from+"::bigint, "+to+") i")
	}
	fill("1", "20")
	check := func(n string) {
		t.Helper()
		require.Equal(t, [][]string{{n, n}}, rows(t, c, "SELECT count(*), count(DISTINCT id) FROM t"))
		require.Equal(t, [][]string{{"7", "name2", "r1", "7.00"}}, rows(t, c, "SELECT id, name, region, n FROM t WHERE id = 7"))
		require.Equal(t, [][]string{{"7"}}, rows(t, c, "SELECT id FROM t WHERE ts = timestamptz '2026-01-01' + 7 * interval '7 hours'"))
		require.Equal(t, [][]string{{"7"}}, rows(t, c, "SELECT id FROM t WHERE region = 'r1' AND name = 'name2' AND n = 7"))
	}
	check("20")
	options := func() []string {
		var out []string
		for _, r := range rows(t, c, "SELECT unnest(reloptions) FROM pg_class WHERE relname = 't'") {
			out = append(out, r[0])
		}
		return out
	}
	require.Equal(t, []string{"partitioning=day(ts), bucket(4, id), truncate(2, name), region", "sort_order=n DESC NULLS LAST, name", "write.target-file-size-bytes=1048576"}, options())
	run(t, c, "ALTER TABLE t SET (partitioning = 'bucket(8, id), region', format_version = 3)")
	fill("21", "40")
	run(t, c, "UPDATE t SET name = 'changed' WHERE id IN (3, 23); DELETE FROM t WHERE id IN (4, 24)")
	check("38")
	run(t, c, "INSERT INTO t VALUES (3, now(), 'again'), (23, now(), 'again') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name")
	require.Equal(t, [][]string{{"3", "again"}, {"23", "again"}}, rows(t, c, "SELECT id, name FROM t WHERE name = 'again' ORDER BY id"))
	run(t, c, "ALTER TABLE t RESET (partitioning, sort_order, \"write.target-file-size-bytes\")")
	fill("41", "45")
	check("43")
	run(t, c, "VACUUM t")
	check("43")
	require.Equal(t, []string{"format_version=3"}, options())
	run(t, c, "ALTER TABLE t SET (partitioning = 'bucket(4, id), region')")
	run(t, c, "UPDATE t SET n = n + 0")
	check("43")

	for sql, code := range map[string]string{
		"ALTER TABLE t SET (format_version = 2)":                       "22023",
		"ALTER TABLE t RESET (format_version)":                         "22023",
		"ALTER TABLE t SET (partitioning = 'day(id)')":                 "22023",
		"ALTER TABLE t SET (partitioning = 'nope(id)')":                "22023",
		"ALTER TABLE t SET (partitioning = 'bucket(0, id)')":           "22023",
		"ALTER TABLE t SET (partitioning = 'missing')":                 "42703",
		"ALTER TABLE t SET (partitioning = 'day(ts), hour(ts)')":       "22023",
		"ALTER TABLE t SET (sort_order = 'id, id')":                    "22023",
		"ALTER TABLE t SET (sort_order = 'day(ts)')":                   "22023",
		"ALTER TABLE t SET (fillfactor = 70)":                          "22023",
		`ALTER TABLE t SET ("write.data.path" = '/tmp')`:               "42501",
		`CREATE TABLE x (a int) WITH ("Write.Metadata.Path" = '/tmp')`: "42501",
		`CREATE TABLE x (a int) WITH ("skade.pgtype.1" = 'jsonb')`:     "22023",
		"CREATE TABLE x (a float8) WITH (partitioning = 'a')":          "0A000",
		"CREATE TABLE x (a int) PARTITION BY RANGE (a)":                "0A000",
		"ALTER TABLE t ALTER region TYPE float8 USING 1":               "0A000",
		"ALTER TABLE t ADD COLUMN ctid int":                            "42701",
	} {
		require.Equal(t, code, sqlstate(t, c, sql).Code, sql)
	}
}

// Manifests of a table that became version 3 hold files without row ids until its first commit as version 3: also when that one removes some of their files.
func TestRemoveFilesAfterUpgrade(t *testing.T) {
	g := start(t)
	for name, sql := range map[string]string{
		"update":  "UPDATE t SET n = n + 1 WHERE id <= 4",
		"delete":  "DELETE FROM t WHERE id <= 4",
		"replace": "TRUNCATE t; INSERT INTO t VALUES (1, 1)",
		"vacuum":  "VACUUM FULL t",
		"merge":   "INSERT INTO t VALUES (1000, 0)",
	} {
		t.Run(name, func(t *testing.T) {
			c := g.connect()
			run(t, c, `DROP TABLE IF EXISTS t; CREATE TABLE t (id int PRIMARY KEY, n int) WITH (partitioning = 'id', "commit.manifest.min-count-to-merge" = '3')`)
			run(t, c, "CREATE TEMP TABLE u (id int PRIMARY KEY, n int)")
			for _, to := range []string{"t", "u"} {
				run(t, c, fmt.Sprintf("INSERT INTO %s SELECT i, i FROM generate_series(1, 6) i", to))
				run(t, c, fmt.Sprintf("INSERT INTO %s SELECT i, i FROM generate_series(11, 16) i", to))
			}
			run(t, c, "ALTER TABLE t SET (format_version = 3)")
			run(t, c, sql)
			if name != "vacuum" {
				run(t, c, regexp.MustCompile(`\bt\b`).ReplaceAllString(sql, "u"))
			}
			for range 2 {
				require.Equal(t, rows(t, c, "SELECT * FROM u ORDER BY id"), rows(t, c, "SELECT * FROM t ORDER BY id"))
				for _, to := range []string{"t", "u"} {
					run(t, c, fmt.Sprintf("UPDATE %s SET n = -n WHERE id IN (5, 15)", to))
				}
			}
			require.Empty(t, rows(t, c, "SELECT * FROM skade.check_warehouse()"))
		})
	}
}
