package test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// Each of Iceberg's metadata tables is a view over all tables and a function of one, in schema skade.
func TestMetadataTables(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE SCHEMA s")
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "CREATE TABLE s.t (id int)")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	first := one(t, c, "SELECT skade.create_tag('t', 'v1', retain => '2 days')")
	run(t, c, "DELETE FROM t WHERE id = 1")
	run(t, c, "INSERT INTO t VALUES (3, 'c')")
	run(t, c, "INSERT INTO s.t VALUES (1)")
	run(t, c, "SELECT skade.create_branch('t', 'b', min_snapshots_to_keep => 3, max_snapshot_age => '1 hour')")

	for _, m := range []string{"all_files", "delete_files", "entries", "files", "history", "manifests", "metadata_log", "partitions", "refs", "snapshots"} {
		of := "SELECT count(*) FROM skade." + m
		require.Equal(t, one(t, c, of+"('t')"), one(t, c, of+" WHERE table_schema = 'public' AND table_name = 't'"), m)
		require.Equal(t, one(t, c, of), one(t, c, "SELECT (SELECT count(*) FROM skade."+m+"('t')) + (SELECT count(*) FROM skade."+m+"('s.t'))"), m)
		require.Equal(t, "1", one(t, c, "SELECT count(*) FROM pg_catalog.pg_class WHERE oid = 'skade."+m+"'::regclass AND relkind = 'v'"), m)
		require.Equal(t, "t", one(t, c, "SELECT has_table_privilege('skade."+m+"', 'SELECT')"), m)
		require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM skade."+m+"('nope')").Code, m)
		var cols int64
		require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM information_schema.columns WHERE table_schema = 'skade' AND table_name = $1", m).Scan(&cols))
		require.Greater(t, cols, int64(5), m)
	}
	require.Equal(t, [][]string{{"b", "BRANCH", "∅", "3", "3600000"}, {"main", "BRANCH", "∅", "∅", "∅"}, {"v1", "TAG", "172800000", "∅", "∅"}},
		rows(t, c, "SELECT name, type, max_reference_age_in_ms, min_snapshots_to_keep, max_snapshot_age_in_ms FROM skade.refs('t')"))
	require.Equal(t, [][]string{{"0", "2"}}, rows(t, c, "SELECT content, record_count FROM skade.files('t', 'v1')"))
	require.Equal(t, [][]string{{"0", "1"}, {"0", "2"}, {"1", "1"}}, rows(t, c, "SELECT content, record_count FROM skade.files('t') ORDER BY 1, 2"))
	require.Equal(t, [][]string{{"1", "2", "a", "b"}}, rows(t, c, `SELECT m->'id'->>'lower_bound', m->'id'->>'upper_bound', m->'v'->>'lower_bound', m->'v'->>'upper_bound'
		FROM (SELECT readable_metrics AS m FROM skade.files('t', `+first+`)) x`))
	require.Equal(t, [][]string{{first, "t"}}, rows(t, c, "SELECT snapshot_id, is_current_ancestor FROM skade.history('t') ORDER BY made_current_at LIMIT 1"))
	require.Equal(t, [][]string{{"{}", "3", "2", "1", "1"}},
		rows(t, c, "SELECT partition, record_count, file_count, position_delete_record_count, position_delete_file_count FROM skade.partitions('t')"))
}

// A condition on the names keeps the view from other tables' files: a damaged one does not matter.
func TestMetadataTablesReadOneTable(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE good (id int)")
	run(t, c, "CREATE TABLE bad (id int)")
	run(t, c, "INSERT INTO good VALUES (1)")
	run(t, c, "INSERT INTO bad VALUES (1)")
	found, err := filepath.Glob(filepath.Join(g.dir, "warehouse", "public", "bad-*", "metadata", "*.avro"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, f := range found {
		require.NoError(t, os.Rename(f, f+".away"))
	}
	for _, where := range []string{"table_name = 'good'", "table_name IN ('good', 'other')", "'good' = table_name AND table_schema = 'public'"} {
		require.Equal(t, "1", one(t, c, "SELECT count(*) FROM skade.files WHERE "+where), where)
	}
	var n int64
	require.NoError(t, c.QueryRow(t.Context(), "SELECT count(*) FROM skade.files WHERE table_name = $1", "good").Scan(&n))
	require.Equal(t, int64(1), n)
	require.Eventually(t, func() bool { // once the files are synced and nobody has them in memory
		_, err := c.Exec(t.Context(), "SELECT count(*) FROM skade.files")
		var pg *pgconn.PgError
		return errors.As(err, &pg) && pg.Code == "58P01"
	}, time.Minute, 20*time.Millisecond)
	for _, f := range found {
		require.NoError(t, os.Rename(f+".away", f))
	}
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM skade.files"))
}

// DROP TABLE keeps the table for skade.undrop: key, snapshots, tags and changes are as they were.
func TestUndrop(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
	run(t, c, "SELECT skade.create_tag('t', 'v1')")
	run(t, c, "DELETE FROM t WHERE id = 1")
	before := rows(t, c, "SELECT commit_seq, uuid FROM (SELECT skade.current_commit_seq() AS commit_seq, table_key AS uuid FROM skade.commits WHERE table_name = 'public.t' LIMIT 1) x")
	oid := one(t, c, "SELECT 't'::regclass::oid")
	run(t, c, "DROP TABLE t")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM t").Code)
	dropped := rows(t, c, "SELECT table_schema, table_name, uuid, rows, commit_seq = skade.current_commit_seq(), expires_at - dropped_at FROM skade.dropped_tables")
	require.Equal(t, [][]string{{"public", "t", before[0][1], "1", "t", "7 days"}}, dropped)
	gap := one(t, c, "SELECT skade.current_commit_seq()")
	g.close()
	g.open()
	c = g.connect()
	old := g.connect()
	// Its name is free, and then it is not.
	run(t, c, "CREATE TABLE t (other int)")
	require.Equal(t, "42P07", sqlstate(t, c, "SELECT skade.undrop('t')").Code)
	require.Equal(t, "42P07", sqlstate(t, c, "SELECT skade.undrop('public.t', 't')").Code)
	require.Equal(t, "3F000", sqlstate(t, c, "SELECT skade.undrop('public.t', 'nope.t')").Code)
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT skade.undrop('public.nope')").Code)
	require.Equal(t, "22023", sqlstate(t, c, "SELECT skade.undrop(NULL)").Code)
	run(t, c, "DROP TABLE t")
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM skade.dropped_tables WHERE table_name = 't'"))
	run(t, c, "BEGIN")
	require.Equal(t, "public.t2", one(t, c, "SELECT skade.undrop('"+before[0][1]+"', 't2')"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM t2"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM t2 WHERE id = 2"))
	require.Equal(t, "42P01", sqlstate(t, old, "SELECT * FROM t2").Code)
	run(t, c, "INSERT INTO t2 VALUES (3, 'c')")
	run(t, c, "ROLLBACK")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM t2").Code)
	run(t, c, "BEGIN")
	run(t, c, "SELECT skade.undrop('"+before[0][1]+"', 't2')")
	run(t, c, "INSERT INTO t2 VALUES (3, 'c')")
	run(t, c, "UPDATE t2 SET v = 'B' WHERE id = 2")
	run(t, c, "UPDATE t2 SET v = 'b' WHERE id = 2")
	run(t, c, "COMMIT")
	require.Equal(t, oid, one(t, c, "SELECT 't2'::regclass::oid"))
	require.Equal(t, [][]string{{"2", "b"}, {"3", "c"}}, rows(t, c, "SELECT * FROM t2 ORDER BY id"))
	require.Equal(t, "2", one(t, c, "SELECT count(*) FROM table_at('t2', 'v1')"))
	require.Equal(t, [][]string{{"public.t2"}}, rows(t, c, "SELECT table_name FROM skade.commits WHERE kind = 'undrop'"))
	// Over the gap: the drop hid the rows and deleted none.
	require.Equal(t, [][]string{{"INSERT", "3"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('t2', 'seq:"+before[0][0]+"')"))
	require.Equal(t, [][]string{{"INSERT", "3"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('t2', 'seq:"+gap+"')"))
	require.Equal(t, "0", one(t, c, "SELECT count(*) FROM table_changes('t2', 'seq:"+before[0][0]+"', 'seq:"+gap+"')"))
	require.Equal(t, "4", one(t, c, "SELECT count(*) FROM table_changes('t2', NULL)"))
	// The one without a name of its own comes back under it.
	require.Equal(t, "public.t", one(t, c, "SELECT skade.undrop('t')"))
	require.Equal(t, "0", one(t, c, "SELECT count(other) FROM t"))
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT skade.undrop('t')").Code)
	require.Empty(t, rows(t, c, "SELECT * FROM skade.dropped_tables"))
}
