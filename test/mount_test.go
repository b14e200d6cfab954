package test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/testkit"
)

func TestMountFolder(t *testing.T) {
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprint("named=", named), func(t *testing.T) {
			root := t.TempDir()
			f := testkit.NewForeign(t, root)
			f.Named = named
			one := f.Table(t, "sales.orders", 2, people())
			f.Delta(t, one, [][]any{{1, "a"}, {2, "b"}}, nil, nil)
			deep := f.Table(t, "eu.north.t", 3, people())
			f.Delta(t, deep, [][]any{{1, "x"}}, nil, nil)
			require.NoError(t, os.MkdirAll(filepath.Join(root, "not_a_table/data"), 0o755))
			g := startWith(t, root)
			c := g.connect()
			require.Equal(t, [][]string{{"2"}}, rows(t, c, fmt.Sprintf("SELECT skade.mount('lake', '%s', poll => '1 hour')", root)))
			require.Equal(t, [][]string{{"lake", "folder", root, "01:00:00", "2", "t", "∅"}},
				rows(t, c, "SELECT name, kind, source, poll, tables, last_poll IS NOT NULL, last_error FROM skade.mounts"))
			require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, c, `SELECT * FROM "lake.sales".orders ORDER BY id`))
			require.Equal(t, [][]string{{"1", "x"}}, rows(t, c, `SELECT * FROM "lake.eu.north".t`))
			require.Equal(t, [][]string{{"lake.eu.north", "t"}, {"lake.sales", "orders"}},
				rows(t, c, "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'lake%' ORDER BY 1"))

			// Several snapshots between two polls are one commit with an entry each; LISTEN tells of it.
			l := g.connect()
			run(t, l, "LISTEN skade_commits")
			from := rows(t, c, "SELECT skade.current_commit_seq()")[0][0]
			f.Delta(t, one, [][]any{{3, "c"}}, nil, nil)
			f.Delta(t, one, [][]any{{1, "A"}}, [][]any{{1}}, nil)
			require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT skade.refresh_mount('lake')"))
			require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT skade.refresh_mount('lake')"))
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			n, err := l.WaitForNotification(ctx)
			require.NoError(t, err)
			require.Contains(t, n.Payload, `"t":"lake.sales.orders"`)
			require.Equal(t, [][]string{{"0", "INSERT", "3", "c"}, {"1", "UPDATE_BEFORE", "1", "a"}, {"1", "UPDATE_AFTER", "1", "A"}},
				rows(t, c, `SELECT _change_ordinal, _change_type, id, name FROM table_changes('"lake.sales".orders', 'seq:`+from+`', NULL)`))
			require.Equal(t, [][]string{{"commit", "append"}, {"commit", "overwrite"}},
				rows(t, c, "SELECT kind, operation FROM skade.commits WHERE table_name = 'lake.sales.orders' AND commit_seq > "+from+" ORDER BY commit_seq, snapshot_id IS NULL, rows_deleted"))
			require.Equal(t, [][]string{{"1", "A"}}, rows(t, c, `SELECT * FROM lookup('"lake.sales".orders', 1)`))
			require.Equal(t, [][]string{{"2"}}, rows(t, c, `SELECT count(*) FROM table_at('"lake.sales".orders', 'seq:`+from+`')`))

			// A new table, one that is gone, one under another name, one made anew under its old name.
			two := f.Table(t, "sales.two", 2, people())
			f.Delta(t, two, [][]any{{9, "z"}}, nil, nil)
			f.Drop(t, deep)
			require.NoError(t, os.Rename(filepath.Join(root, "sales/orders"), filepath.Join(root, "sales/renamed")))
			require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT skade.refresh_mount('lake')"))
			require.Equal(t, [][]string{{"lake.sales", "renamed"}, {"lake.sales", "two"}}, rows(t, c, "SELECT schemaname, tablename FROM pg_tables WHERE schemaname LIKE 'lake%' ORDER BY 2"))
			require.Equal(t, "3F000", sqlstate(t, c, `CREATE TABLE "lake.eu".x (id int)`).Code, "an empty namespace goes")
			require.NoError(t, os.Rename(filepath.Join(root, "sales/renamed"), filepath.Join(root, "sales/orders")))
			f.Drop(t, two)
			two = f.Table(t, "sales.two", 2, people())
			f.Delta(t, two, [][]any{{8, "y"}}, nil, nil)
			run(t, c, "SELECT skade.refresh_mount('lake')")
			require.Equal(t, [][]string{{"8", "y"}}, rows(t, c, `SELECT * FROM "lake.sales".two`))

			// It survives a restart, and can be let go of.
			g.close()
			g.open()
			c = g.connect()
			require.Equal(t, [][]string{{"1", "A"}, {"2", "b"}, {"3", "c"}}, rows(t, c, `SELECT * FROM "lake.sales".orders ORDER BY id`))
			f.Delta(t, one, [][]any{{4, "d"}}, nil, nil)
			require.Equal(t, [][]string{{"t"}}, rows(t, c, "SELECT skade.refresh_mount('lake') <= 1"))
			require.Equal(t, [][]string{{"4", "d"}}, rows(t, c, `SELECT * FROM lookup('"lake.sales".orders', 4)`))
			run(t, c, "SELECT skade.unmount('lake')")
			require.Equal(t, "42P01", sqlstate(t, c, `SELECT * FROM "lake.sales".orders`).Code)
			require.Empty(t, rows(t, c, "SELECT * FROM skade.mounts"))
			require.FileExists(t, f.Metadata(t, one))
			require.Equal(t, [][]string{{"2"}}, rows(t, c, fmt.Sprintf("SELECT skade.mount('lake', '%s')", root)))
		})
	}
}

func TestMountIsReadOnly(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	f.Delta(t, f.Table(t, "s.t", 2, people()), [][]any{{1, "a"}}, nil, nil)
	g := startWith(t, root)
	c := g.connect()
	run(t, c, "SELECT skade.mount('lake', $1)", root)
	run(t, c, "CREATE TABLE own (id int)")
	for _, sql := range []string{
		`INSERT INTO "lake.s".t VALUES (2, 'b')`, `UPDATE "lake.s".t SET name = 'x'`, `DELETE FROM "lake.s".t`, `TRUNCATE "lake.s".t`,
		`DROP TABLE "lake.s".t`, `ALTER TABLE "lake.s".t RENAME TO u`, `ALTER TABLE "lake.s".t SET SCHEMA public`, `COMMENT ON TABLE "lake.s".t IS 'x'`,
		`CREATE TABLE "lake.s".u (id int)`, `CREATE TABLE "lake.s".u AS SELECT 1 AS a`, `CREATE VIEW "lake.s".v AS SELECT 1 AS a`, `CREATE SCHEMA "lake.s.x"`,
		`ALTER TABLE own SET SCHEMA "lake.s"`, `DROP SCHEMA lake CASCADE`, `DROP SCHEMA "lake.s" CASCADE`, `VACUUM "lake.s".t`,
		`SELECT skade.unregister_table('"lake.s".t')`,
	} {
		e := sqlstate(t, c, sql)
		require.Equal(t, "25006", e.Code, "%s: %s", sql, e.Message)
		require.NotEmpty(t, e.Hint, sql)
	}
	run(t, c, "VACUUM") // all of our own
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, `SELECT * FROM "lake.s".t`))
	run(t, c, `INSERT INTO own SELECT id FROM "lake.s".t`)
	require.Equal(t, "42P06", sqlstate(t, c, "SELECT skade.mount('lake', $1)", root).Code)
	require.Equal(t, "42P06", sqlstate(t, c, "SELECT skade.mount('public', $1)", root).Code)
	run(t, c, "BEGIN")
	require.Equal(t, "25001", sqlstate(t, c, "SELECT skade.mount('two', $1)", root).Code)
	run(t, c, "ROLLBACK")
}

func TestMountRefusals(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	testkit.NewForeign(t, root).Table(t, "s.t", 2, people())
	require.NoError(t, os.Symlink(outside, filepath.Join(root, "link")))
	g := startWith(t, root)
	c := g.connect()
	for _, x := range []struct{ args, code string }{
		{"'m', '" + outside + "'", "42501"},
		{"'m', '" + root + "/link'", "42501"},
		{"'m', '" + root + "/../x'", "42501"},
		{"'m', '/etc'", "42501"},
		{"'m', 's3://bucket/x'", "0A000"},
		{"'m', '" + root + "/none'", "HV00N"},
		{"'m', '" + root + "/s/t'", "22023"},
		{"'m', ''", "22023"},
		{"'a.b', '" + root + "'", "22023"},
		{"'', '" + root + "'", "22023"},
		{"'pg_x', '" + root + "'", "42939"},
		{"'skade', '" + root + "'", "42939"},
		{"'m', '" + root + "', kind => 'ftp'", "22023"},
		{"'m', '" + root + "', options => '{\"token\": \"x\"}'", "22023"},
		{"'m', '" + root + "', options => '[1]'", "22023"},
		{"'m', '" + root + "', poll => '1 month'", "22023"},
		{"'m', '" + root + "', poll => '1 microsecond'", "22023"},
		{"'m', '/etc/catalog.db'", "42501"},
		{"'m', '" + root + "/none.db'", "HV00N"},
		{"'m', 'http://127.0.0.1:1'", "HV00N"},
		{"NULL, '" + root + "'", "22004"},
		{"'m', NULL", "22004"},
	} {
		e := sqlstate(t, c, "SELECT skade.mount("+x.args+")")
		require.Equal(t, x.code, e.Code, "%s: %s", x.args, e.Message)
	}
	require.Equal(t, "42704", sqlstate(t, c, "SELECT skade.unmount('m')").Code)
	require.Equal(t, "42704", sqlstate(t, c, "SELECT skade.refresh_mount('m')").Code)
	require.Empty(t, rows(t, c, "SELECT * FROM skade.mounts"))
}

// A table or a source that cannot be read stays as it was last seen; the others follow.
func TestMountOfTroubledSources(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	f := testkit.NewForeign(t, root)
	good, bad := f.Table(t, "s.good", 2, people()), f.Table(t, "s.bad", 2, people())
	f.Delta(t, good, [][]any{{1, "a"}}, nil, nil)
	f.Delta(t, bad, [][]any{{1, "a"}}, nil, nil)
	g := startWith(t, root)
	c := g.connect()
	run(t, c, "SELECT skade.mount('lake', $1, poll => '1 hour')", root)

	f.Delta(t, good, [][]any{{2, "b"}}, nil, nil)
	f.Delta(t, bad, [][]any{{2, "b"}}, nil, nil)
	newest := f.Metadata(t, bad)
	text, err := os.ReadFile(newest)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(newest, text[:100], 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "s/broken/metadata"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "s/broken/metadata/v1.metadata.json"), []byte("{}"), 0o644))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT skade.refresh_mount('lake')"))
	require.Equal(t, [][]string{{"2", "1"}}, rows(t, c, `SELECT (SELECT count(*) FROM "lake.s".good), (SELECT count(*) FROM "lake.s".bad)`))
	trouble := rows(t, c, "SELECT last_error FROM skade.mounts")[0][0]
	require.Contains(t, trouble, "s.bad: ")
	require.Contains(t, trouble, "s.broken: ")

	// The whole source is away: everything stays.
	require.NoError(t, os.Rename(root, root+"-away"))
	require.Equal(t, "HV00N", sqlstate(t, c, "SELECT skade.refresh_mount('lake')").Code)
	require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT tables FROM skade.mounts WHERE last_error LIKE '%cannot be read%'"))
	require.NoError(t, os.Rename(root+"-away", root))
	require.NoError(t, os.WriteFile(newest, text, 0o644))
	require.NoError(t, os.RemoveAll(filepath.Join(root, "s/broken")))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT skade.refresh_mount('lake')"))
	require.Equal(t, [][]string{{"2", "∅"}}, rows(t, c, `SELECT (SELECT count(*) FROM "lake.s".bad), last_error FROM skade.mounts`))

	// The metadata file that was seen last is gone when the next one comes.
	old := f.Metadata(t, good)
	from := rows(t, c, "SELECT skade.current_commit_seq()")[0][0]
	g.close()
	f.Delta(t, good, [][]any{{3, "c"}}, nil, nil)
	f.Delta(t, good, [][]any{{4, "d"}}, nil, nil)
	require.NoError(t, os.Remove(old))
	g.open()
	c = g.connect()
	run(t, c, "SELECT skade.refresh_mount('lake')")
	require.Equal(t, [][]string{{"0", "INSERT", "3"}, {"1", "INSERT", "4"}},
		rows(t, c, `SELECT _change_ordinal, _change_type, id FROM table_changes('"lake.s".good', 'seq:`+from+`', NULL)`))
}

// A mount is polled by itself.
func TestMountIsPolled(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	ident := f.Table(t, "s.t", 2, people())
	g := startWith(t, root)
	c := g.connect()
	run(t, c, "SELECT skade.mount('lake', $1, poll => '100 milliseconds')", root)
	l := g.connect()
	run(t, l, "LISTEN skade_commits")
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	_, err := l.WaitForNotification(ctx)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, `SELECT * FROM "lake.s".t`))
}

// Rollbacks, branches and changed schemas of another catalog.
func TestMountFollowsRefsAndSchemas(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	first := f.Load(t, ident).CurrentSnapshot().SnapshotID
	f.Delta(t, ident, [][]any{{2, "b"}}, nil, nil)
	g := startWith(t, root)
	c := g.connect()
	run(t, c, "SELECT skade.mount('lake', $1, poll => '1 hour')", root)
	from := rows(t, c, "SELECT skade.current_commit_seq()")[0][0]
	f.Alter(t, ident, icetable.NewSetSnapshotRefUpdate("main", first, icetable.BranchRef, 0, 0, 0), icetable.NewSetSnapshotRefUpdate("v", first, icetable.TagRef, 0, 0, 0))
	run(t, c, "SELECT skade.refresh_mount('lake')")
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, `SELECT * FROM "lake.s".t`))
	require.Equal(t, [][]string{{"DELETE", "2"}}, rows(t, c, `SELECT _change_type, id FROM table_changes('"lake.s".t', 'seq:`+from+`', NULL)`))
	require.Equal(t, [][]string{{"1"}}, rows(t, c, `SELECT count(*) FROM table_at('"lake.s".t', 'tag:v')`))

	f.Do(t, ident, func(tbl *icetable.Table, tx *icetable.Transaction) {
		require.NoError(t, tx.UpdateSchema(true, false).AddColumn([]string{"extra"}, iceberg.PrimitiveTypes.Int32, "", false, nil).RenameColumn([]string{"name"}, "label").Commit())
	})
	run(t, c, "SELECT skade.refresh_mount('lake')")
	require.Equal(t, [][]string{{"1", "a", "∅"}}, rows(t, c, `SELECT id, label, extra FROM "lake.s".t`))
}

func TestMountSQLite(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	f.Named = true
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	path := filepath.Join(root, "catalog.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	exec := func(q string, args ...any) {
		t.Helper()
		_, err := db.Exec(q, args...)
		require.NoError(t, err, q)
	}
	// As PyIceberg makes them.
	exec(`CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL,
		metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), PRIMARY KEY (catalog_name, table_namespace, table_name))`)
	exec(`CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255) NOT NULL,
		property_value VARCHAR(1000) NOT NULL, PRIMARY KEY (catalog_name, namespace, property_key))`)
	exec("INSERT INTO iceberg_namespace_properties VALUES ('prod', 's', 'exists', 'true'), ('prod', 'empty.one', 'exists', 'true')")
	exec("INSERT INTO iceberg_tables VALUES ('prod', 's', 't', ?, NULL, 'TABLE'), ('prod', 's', 'v', ?, NULL, 'VIEW'), ('test', 's', 'other', ?, NULL, NULL)",
		f.Metadata(t, ident), f.Metadata(t, ident), f.Metadata(t, ident))
	g := startWith(t, root)
	c := g.connect()
	require.Equal(t, "22023", sqlstate(t, c, "SELECT skade.mount('py', $1)", path).Code, "two catalogs")
	require.Equal(t, [][]string{{"1"}}, rows(t, c, fmt.Sprintf(`SELECT skade.mount('py', 'sqlite://%s', poll => '1 hour', options => '{"catalog_name": "prod"}')`, path)))
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, `SELECT * FROM "py.s".t`))
	require.Equal(t, [][]string{{"py"}, {"py.empty"}, {"py.empty.one"}, {"py.s"}}, rows(t, c, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'py%' ORDER BY 1"))

	f.Delta(t, ident, [][]any{{2, "b"}}, nil, nil)
	exec("UPDATE iceberg_tables SET metadata_location = ?, table_name = 'renamed' WHERE table_name = 't'", f.Metadata(t, ident))
	run(t, c, "SELECT skade.refresh_mount('py')")
	require.Equal(t, [][]string{{"2"}}, rows(t, c, `SELECT count(*) FROM "py.s".renamed`))
	require.Equal(t, [][]string{{"INSERT", "2"}}, rows(t, c, `SELECT _change_type, id FROM table_changes('"py.s".renamed', NULL, NULL) WHERE _commit_seq IS NOT NULL`))

	exec("UPDATE iceberg_tables SET metadata_location = 's3://bucket/x.metadata.json' WHERE table_name = 'renamed'")
	run(t, c, "SELECT skade.refresh_mount('py')")
	require.Contains(t, rows(t, c, "SELECT last_error FROM skade.mounts")[0][0], "local file system")
	require.Equal(t, [][]string{{"2"}}, rows(t, c, `SELECT count(*) FROM "py.s".renamed`))
	exec("DELETE FROM iceberg_tables WHERE table_name = 'renamed'")
	run(t, c, "SELECT skade.refresh_mount('py')")
	require.Equal(t, "42P01", sqlstate(t, c, `SELECT * FROM "py.s".renamed`).Code)
}

// restServer speaks as much of the REST catalog as a reader asks for.
type restServer struct {
	mu     sync.Mutex
	tables map[string]string // name in namespace s → metadata file
	down   bool
}

func (r *restServer) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down || q.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, `{"error":{"message":"not now","type":"X","code":503}}`, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	path := q.URL.Path
	switch {
	case path == "/v1/config":
		fmt.Fprint(w, `{"defaults":{},"overrides":{}}`)
	case path == "/v1/namespaces" && q.URL.Query().Get("parent") != "":
		fmt.Fprint(w, `{"namespaces":[]}`)
	case path == "/v1/namespaces":
		fmt.Fprint(w, `{"namespaces":[["s"]]}`)
	case path == "/v1/namespaces/s/tables":
		var ids []string
		for name := range r.tables {
			ids = append(ids, `{"namespace":["s"],"name":"`+name+`"}`)
		}
		fmt.Fprintf(w, `{"identifiers":[%s]}`, strings.Join(ids, ","))
	case strings.HasPrefix(path, "/v1/namespaces/s/tables/"):
		location, ok := r.tables[strings.TrimPrefix(path, "/v1/namespaces/s/tables/")]
		text, err := os.ReadFile(location)
		if !ok || err != nil {
			http.Error(w, `{"error":{"message":"no such table","type":"NoSuchTableException","code":404}}`, http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"metadata-location":%q,"metadata":%s,"config":{}}`, location, text)
	default:
		http.Error(w, `{"error":{"message":"?","type":"X","code":404}}`, http.StatusNotFound)
	}
}

func TestMountREST(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	f.Named = true
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	r := &restServer{tables: map[string]string{"t": f.Metadata(t, ident)}}
	srv := httptest.NewServer(r)
	defer srv.Close()
	g := startWith(t, root)
	c := g.connect()
	require.Equal(t, [][]string{{"1"}}, rows(t, c, fmt.Sprintf(`SELECT skade.mount('api', '%s', poll => '1 hour', options => '{"token": "secret"}')`, srv.URL)))
	require.Equal(t, [][]string{{"rest", srv.URL}}, rows(t, c, "SELECT kind, source FROM skade.mounts"))
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, `SELECT * FROM "api.s".t`))
	f.Delta(t, ident, [][]any{{2, "b"}}, nil, nil)
	r.mu.Lock()
	r.tables["t"], r.tables["broken"] = f.Metadata(t, ident), filepath.Join(root, "none")
	r.mu.Unlock()
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT skade.refresh_mount('api')"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, `SELECT * FROM lookup('"api.s".t', 2)`))
	require.Contains(t, rows(t, c, "SELECT last_error FROM skade.mounts")[0][0], "s.broken: ")
	r.mu.Lock()
	r.down = true
	r.mu.Unlock()
	require.Equal(t, "HV00N", sqlstate(t, c, "SELECT skade.refresh_mount('api')").Code)
	require.Equal(t, [][]string{{"2"}}, rows(t, c, `SELECT count(*) FROM "api.s".t`))
}
