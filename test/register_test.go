package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
	"github.com/nordisk/skade-pg/internal/testkit"
)

// startWith serves a fresh folder that may read root.
func startWith(t testing.TB, root string) *gateway {
	t.Helper()
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data"), configure: func(c *cli.Config) { c.AllowRoot = []string{root} }}
	g.open()
	t.Cleanup(g.close)
	return g
}

func people() *iceberg.Schema { return testkit.Columns([]string{"id"}, "id long", "name string") }

// foreignHistory makes a table of four snapshots: an append, an equality delete with a new version of a row, a delete by position (a deletion
// vector on v3), an append.
func foreignHistory(t testing.TB, f *testkit.Foreign, name string, version int) icetable.Identifier {
	ident := f.Table(t, name, version, people())
	f.Delta(t, ident, [][]any{{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}}, nil, nil)
	first := f.DataFiles(t, ident)[0]
	f.Delta(t, ident, [][]any{{2, "B"}}, [][]any{{2}}, nil)
	f.Delta(t, ident, nil, nil, map[string][]int64{first.FilePath(): {2}})
	f.Delta(t, ident, [][]any{{5, "e"}}, nil, nil)
	return ident
}

func register(t testing.TB, g *gateway, name, location string) {
	t.Helper()
	run(t, g.connect(), "SELECT skade.register_table($1, $2)", name, location)
}

func TestRegisterReadsEveryKindOfDelete(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			root := t.TempDir()
			f := testkit.NewForeign(t, root)
			ident := foreignHistory(t, f, "s.t", version)
			g := startWith(t, root)
			c := g.connect()
			require.NotEqual(t, "∅", rows(t, c, fmt.Sprintf("SELECT skade.register_table('public.t', '%s')", f.Metadata(t, ident)))[0][0])
			live := [][]string{{"1", "a"}, {"2", "B"}, {"4", "d"}, {"5", "e"}}
			require.Equal(t, live, rows(t, c, "SELECT * FROM t ORDER BY id"))

			// Time travel to every snapshot, and what changed between them.
			snaps := rows(t, c, "SELECT snapshot_id FROM skade.snapshots WHERE table_schema = 'public' AND table_name = 't' ORDER BY sequence_number")
			require.Len(t, snaps, 4)
			require.Equal(t, [][]string{{"4"}}, rows(t, c, "SELECT count(*) FROM table_at('t', "+snaps[0][0]+")"))
			require.Equal(t, [][]string{{"1"}, {"2"}, {"4"}}, rows(t, c, "SELECT id FROM table_at('t', "+snaps[2][0]+") ORDER BY id"))
			require.Equal(t, [][]string{
				{"INSERT", "1", "a"}, {"INSERT", "2", "b"}, {"INSERT", "3", "c"}, {"INSERT", "4", "d"},
				{"UPDATE_BEFORE", "2", "b"}, {"UPDATE_AFTER", "2", "B"}, {"DELETE", "3", "c"}, {"INSERT", "5", "e"},
			}, rows(t, c, "SELECT _change_type, id, name FROM table_changes('t', NULL, NULL)"))
			require.Equal(t, [][]string{{"∅", "DELETE", "3"}, {"∅", "INSERT", "5"}},
				rows(t, c, "SELECT _commit_seq, _change_type, id FROM table_changes('t', "+snaps[1][0]+", "+snaps[3][0]+")"))
			require.Equal(t, [][]string{{"2", "B"}}, rows(t, c, "SELECT * FROM lookup('t', 2)"))
			require.Empty(t, rows(t, c, "SELECT * FROM lookup('t', 3)"))
			require.Equal(t, [][]string{{"3", "c"}}, rows(t, c, "SELECT * FROM lookup('t', 3, "+snaps[0][0]+")"))

			// It is ours from now on.
			run(t, c, "UPDATE t SET name = 'x' WHERE id = 1")
			run(t, c, "INSERT INTO t VALUES (2, 'z'), (6, 'f') ON CONFLICT (id) DO UPDATE SET name = excluded.name")
			run(t, c, "DELETE FROM t WHERE id = 4")
			require.Equal(t, "23505", sqlstate(t, c, "INSERT INTO t VALUES (6, 'again')").Code)
			want := [][]string{{"1", "x"}, {"2", "z"}, {"5", "e"}, {"6", "f"}}
			require.Equal(t, want, rows(t, c, "SELECT * FROM t ORDER BY id"))
			require.Equal(t, [][]string{{"UPDATE_BEFORE", "1"}, {"UPDATE_AFTER", "1"}, {"UPDATE_BEFORE", "2"}, {"UPDATE_AFTER", "2"}, {"INSERT", "6"}, {"DELETE", "4"}},
				rows(t, c, "SELECT _change_type, id FROM table_changes('t', "+snaps[3][0]+", NULL)"))
			location := rows(t, c, "SELECT metadata_location FROM skade.commits WHERE table_name = 'public.t' ORDER BY commit_seq DESC LIMIT 1")[0][0]
			require.Contains(t, location, root, "its files stay at its location")
			run(t, c, "VACUUM t")
			require.Equal(t, want, rows(t, c, "SELECT * FROM t ORDER BY id"))

			g.close()
			g.open()
			require.Equal(t, want, rows(t, g.connect(), "SELECT * FROM t ORDER BY id"))
		})
	}
}

func TestRegisterIsTransactional(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	ident := foreignHistory(t, f, "s.t", 2)
	g := startWith(t, root)
	c, other := g.connect(), g.connect()
	call := fmt.Sprintf("SELECT skade.register_table('t', '%s')", f.Metadata(t, ident))
	run(t, c, "BEGIN")
	run(t, c, call)
	run(t, c, "INSERT INTO t VALUES (9, 'own')")
	require.Equal(t, [][]string{{"5"}}, rows(t, c, "SELECT count(*) FROM t"))
	require.Equal(t, "42P01", sqlstate(t, other, "SELECT * FROM t").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM t").Code)

	run(t, c, "BEGIN")
	run(t, c, "SAVEPOINT a")
	run(t, c, call)
	run(t, c, "ROLLBACK TO a")
	run(t, c, call)
	run(t, c, "INSERT INTO t VALUES (9, 'own')")
	run(t, c, "ALTER TABLE t RENAME TO u")
	run(t, c, "COMMIT")
	require.Equal(t, [][]string{{"5"}}, rows(t, other, "SELECT count(*) FROM u"))
	require.Equal(t, [][]string{{"INSERT", "9"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('u', NULL, NULL) WHERE _commit_seq IS NOT NULL"))

	run(t, c, "BEGIN READ ONLY")
	require.Equal(t, "25006", sqlstate(t, c, call).Code)
	run(t, c, "ROLLBACK")
}

func TestUnregisterAndRegisterAgain(t *testing.T) {
	root := t.TempDir()
	g := startWith(t, root)
	c := g.connect()
	run(t, c, "CREATE TABLE t (id bigint PRIMARY KEY, name text)")
	run(t, c, "INSERT INTO t VALUES (1, 'a')")
	location := rows(t, c, "SELECT skade.unregister_table('t')")[0][0]
	require.FileExists(t, strings.TrimPrefix(location, "file://"))
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM t").Code)
	require.Equal(t, [][]string{{"drop", "unregister"}}, rows(t, c, "SELECT kind, operation FROM skade.commits ORDER BY commit_seq DESC LIMIT 1"))

	register(t, g, "back", location)
	run(t, c, "INSERT INTO back VALUES (2, 'b')")
	require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, c, "SELECT * FROM back ORDER BY id"))
	require.Equal(t, [][]string{{"INSERT", "1"}, {"INSERT", "2"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('back', NULL, NULL)"))

	run(t, c, "BEGIN")
	run(t, c, "CREATE TABLE fresh (id int)")
	require.Equal(t, "42P16", sqlstate(t, c, "SELECT skade.unregister_table('fresh')").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT skade.unregister_table('nothing')").Code)
}

func TestRegisterReplaceFollowsTheOtherCatalog(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	g := startWith(t, root)
	c := g.connect()
	register(t, g, "t", f.Metadata(t, ident))
	require.Equal(t, "42P07", sqlstate(t, c, "SELECT skade.register_table('t', $1)", f.Metadata(t, ident)).Code)
	require.Equal(t, "42P07", sqlstate(t, c, "SELECT skade.register_table('other', $1)", f.Metadata(t, ident)).Code)

	f.Delta(t, ident, [][]any{{2, "b"}}, nil, nil)
	f.Delta(t, ident, [][]any{{1, "A"}}, [][]any{{1}}, nil)
	oid := rows(t, c, "SELECT 't'::regclass::oid")
	run(t, c, "SELECT skade.register_table('t', $1, replace => true)", f.Metadata(t, ident))
	require.Equal(t, oid, rows(t, c, "SELECT 't'::regclass::oid"))
	require.Equal(t, [][]string{{"∅", "0", "INSERT", "1"}, {"3", "0", "INSERT", "2"}, {"3", "1", "UPDATE_BEFORE", "1"}, {"3", "1", "UPDATE_AFTER", "1"}},
		rows(t, c, "SELECT _commit_seq, _change_ordinal, _change_type, id FROM table_changes('t', NULL, NULL)"))

	// Another table under the name.
	two := f.Table(t, "s.two", 2, people())
	f.Delta(t, two, [][]any{{7, "g"}}, nil, nil)
	run(t, c, "SELECT skade.register_table('t', $1, true)", f.Metadata(t, two))
	require.Equal(t, [][]string{{"7", "g"}}, rows(t, c, "SELECT * FROM t"))
}

func TestRegisterRefusals(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	f, far := testkit.NewForeign(t, root), testkit.NewForeign(t, outside)
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	good := f.Metadata(t, ident)
	away := far.Table(t, "s.t", 2, people())
	far.Delta(t, away, [][]any{{1, "a"}}, nil, nil)
	text, err := os.ReadFile(strings.TrimPrefix(good, "file://"))
	require.NoError(t, err)
	write := func(name, content string) string {
		path := filepath.Join(root, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	link := filepath.Join(root, "link.metadata.json")
	require.NoError(t, os.Symlink(strings.TrimPrefix(far.Metadata(t, away), "file://"), link))
	big := filepath.Join(root, "big.metadata.json")
	require.NoError(t, os.WriteFile(big, nil, 0o644))
	require.NoError(t, os.Truncate(big, 200<<20))
	replaced := func(name, old, with string) string {
		require.Contains(t, string(text), old)
		return write(name, strings.Replace(string(text), old, with, 1))
	}
	g := startWith(t, root)
	c := g.connect()
	for _, x := range []struct{ what, location, code string }{
		{"outside", far.Metadata(t, away), "42501"},
		{"dots", root + "/../" + filepath.Base(outside) + "/x.metadata.json", "42501"},
		{"link", link, "42501"},
		{"password file", "/etc/passwd", "42501"},
		{"relative", "x.metadata.json", "42501"},
		{"object store", "s3://bucket/t/metadata/v1.metadata.json", "0A000"},
		{"missing", filepath.Join(root, "none.metadata.json"), "22023"},
		{"folder", root, "22023"},
		{"no JSON", write("text.metadata.json", "hello"), "22023"},
		{"cut", write("cut.metadata.json", string(text[:len(text)/2])), "22023"},
		{"another JSON", write("other.metadata.json", `{"a": 1}`), "22023"},
		{"an array", write("array.metadata.json", `[]`), "22023"},
		{"future version", replaced("v9.metadata.json", `"format-version":2`, `"format-version":9`), "0A000"},
		{"encrypted", replaced("enc.metadata.json", `"format-version":2`, `"properties":{"encryption.key-id":"k"},"format-version":2`), "0A000"},
		{"location elsewhere", replaced("loc.metadata.json", `"location":"`, `"location":"/tmp/elsewhere`), "42501"},
		{"200 MB", big, "54000"},
		{"gzip of no gzip", write("z.gz.metadata.json", "x"), "22023"},
		{"empty", "", "22023"},
	} {
		e := sqlstate(t, c, "SELECT skade.register_table('x', $1)", x.location)
		require.Equal(t, x.code, e.Code, "%s: %s", x.what, e.Message)
	}
	require.Equal(t, "22004", sqlstate(t, c, "SELECT skade.register_table(NULL, 'x')").Code)
	require.Equal(t, "3F000", sqlstate(t, c, "SELECT skade.register_table('nowhere.x', $1)", good).Code)
	require.Equal(t, "42501", sqlstate(t, c, "SELECT skade.register_table('skade.x', $1)", good).Code)
	require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"))
}

// A file of a good metadata file that leads outside is not read, whoever names it.
func TestRegisteredTableReachesNothingOutside(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	far := testkit.NewForeign(t, outside)
	away := far.Table(t, "s.t", 2, people())
	far.Delta(t, away, [][]any{{1, "secret"}}, nil, nil)
	text, err := os.ReadFile(strings.TrimPrefix(far.Metadata(t, away), "file://"))
	require.NoError(t, err)
	// The metadata file is inside, the manifest list that it names is not.
	inside := filepath.Join(root, "v1.metadata.json")
	loc := far.Load(t, away).Location()
	require.NoError(t, os.WriteFile(inside, []byte(strings.Replace(string(text), `"location":"`+loc+`"`, `"location":"`+root+`"`, 1)), 0o644))
	g := startWith(t, root)
	require.Equal(t, "42501", sqlstate(t, g.connect(), "SELECT skade.register_table('t', $1)", inside).Code)

	// Everything is inside but the data file, which is a link.
	f := testkit.NewForeign(t, root)
	ident := f.Table(t, "s.linked", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}}, nil, nil)
	path := strings.TrimPrefix(f.DataFiles(t, ident)[0].FilePath(), "file://")
	target := filepath.Join(outside, "moved.parquet")
	require.NoError(t, os.Rename(path, target))
	require.NoError(t, os.Symlink(target, path))
	c := g.connect()
	register(t, g, "linked", f.Metadata(t, ident))
	for _, sql := range []string{"SELECT * FROM linked", "SELECT count(*) FROM linked", "SELECT * FROM lookup('linked', 1)", "SELECT * FROM table_changes('linked', NULL, NULL)"} {
		_, err := c.Exec(context.Background(), sql)
		require.Error(t, err, sql)
		require.Equal(t, "42501", sqlstate(t, c, sql).Code, sql)
	}
	run(t, c, "DROP TABLE linked")
}

func TestRegisterUnusualTables(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	g := startWith(t, root)
	c := g.connect()

	// Format version 1: read only, and without a uuid it gets one that stays.
	v1 := f.Table(t, "s.v1", 1, people())
	f.Delta(t, v1, [][]any{{1, "a"}}, nil, nil)
	text, err := os.ReadFile(strings.TrimPrefix(f.Metadata(t, v1), "file://"))
	require.NoError(t, err)
	plain := strings.Replace(string(text), `"table-uuid":"`+f.Load(t, v1).Metadata().TableUUID().String()+`",`, "", 1)
	require.NotEqual(t, string(text), plain)
	path := filepath.Join(root, "s/v1/metadata/old.metadata.json")
	require.NoError(t, os.WriteFile(path, []byte(plain), 0o644))
	register(t, g, "v1", path)
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, "SELECT * FROM v1"))
	require.Equal(t, "42P16", sqlstate(t, c, "INSERT INTO v1 VALUES (2, 'b')").Code)
	g.close()
	g.open()
	c = g.connect()
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, "SELECT * FROM v1"))

	// No snapshot yet, no identifier fields.
	none := f.Table(t, "s.none", 2, testkit.Columns(nil, "id long", "name string"))
	require.Equal(t, [][]string{{"∅"}}, rows(t, c, fmt.Sprintf("SELECT skade.register_table('none', '%s')", f.Metadata(t, none))))
	run(t, c, "INSERT INTO none VALUES (1, 'a'), (1, 'a')")
	require.Equal(t, [][]string{{"2"}}, rows(t, c, "SELECT count(*) FROM none"))
	require.Equal(t, "42P10", sqlstate(t, c, "SELECT * FROM lookup('none', 1)").Code)
	require.Equal(t, [][]string{{"1", "a"}, {"1", "a"}}, rows(t, c, "SELECT * FROM lookup('none', 1, key_columns => ARRAY['id'])"))

	// A file without field ids, read through the name mapping.
	mapped := f.Table(t, "s.mapped", 2, people())
	f.Delta(t, mapped, [][]any{{1, "a"}}, nil, nil)
	f.Do(t, mapped, func(tbl *icetable.Table, tx *icetable.Transaction) {
		file := filepath.Join(root, "s/mapped/data/plain.parquet")
		testkit.WriteParquet(t, file, testkit.WithoutFieldIDs(testkit.Batch(tbl.Schema(), []any{2, "b"})))
		require.NoError(t, tx.AddFiles(context.Background(), []string{file}, nil, false))
	})
	register(t, g, "mapped", f.Metadata(t, mapped))
	require.Equal(t, [][]string{{"1", "a"}, {"2", "b"}}, rows(t, c, "SELECT * FROM mapped ORDER BY id"))
	require.Equal(t, [][]string{{"2", "b"}}, rows(t, c, "SELECT * FROM lookup('mapped', 2)"))
	run(t, c, "UPDATE mapped SET name = 'x' WHERE id = 2")
	require.Equal(t, [][]string{{"2", "x"}}, rows(t, c, "SELECT * FROM lookup('mapped', 2)"))

	// ORC.
	orc := f.Table(t, "s.orc", 2, people())
	f.Do(t, orc, func(tbl *icetable.Table, tx *icetable.Transaction) {
		file := filepath.Join(root, "s/orc/x.orc")
		require.NoError(t, os.WriteFile(file, []byte("ORC"), 0o644))
		spec := tbl.Spec()
		b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, file, iceberg.OrcFile, nil, nil, nil, 1, 3)
		require.NoError(t, err)
		rd := tx.NewRowDelta(nil)
		rd.AddRows(b.Build())
		require.NoError(t, rd.Commit(context.Background()))
	})
	e := sqlstate(t, c, "SELECT skade.register_table('orc', $1)", f.Metadata(t, orc))
	require.Equal(t, "0A000", e.Code, e.Message)
	require.NotContains(t, e.Message, "\n")

}

// Structs, maps and lists of them are read as jsonb, everywhere; they can be NULL in rows of ours, and stay what they are in rows that are moved.
func TestRegisterNestedColumns(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	g := startWith(t, root)
	c := g.connect()
	sc := iceberg.NewSchemaWithIdentifiers(0, []int{1},
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
		iceberg.NestedField{ID: 2, Name: "st", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: 10, Name: "zz", Type: iceberg.PrimitiveTypes.Int64}, {ID: 11, Name: "a", Type: iceberg.PrimitiveTypes.String}}}},
		iceberg.NestedField{ID: 3, Name: "mp", Type: &iceberg.MapType{KeyID: 12, KeyType: iceberg.PrimitiveTypes.String, ValueID: 13, ValueType: iceberg.PrimitiveTypes.Int64}},
		iceberg.NestedField{ID: 4, Name: "ls", Type: &iceberg.ListType{ElementID: 14, Element: &iceberg.ListType{ElementID: 15, Element: iceberg.PrimitiveTypes.Int64}}})
	ident := f.Table(t, "s.n", 2, sc)
	f.Do(t, ident, func(tbl *icetable.Table, tx *icetable.Transaction) {
		as, err := icetable.SchemaToArrowSchema(tbl.Schema(), nil, true, false)
		require.NoError(t, err)
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, as, strings.NewReader(`[
			{"id": 1, "st": {"zz": 7, "a": "x\"é"}, "mp": [{"key": "k", "value": 1}], "ls": [[1, 2], [3]]},
			{"id": 2}, {"id": 3, "st": {"zz": 8}, "mp": [], "ls": []}, {"id": 4, "st": {"zz": 9}}]`))
		require.NoError(t, err)
		rd := tx.NewRowDelta(nil)
		for df, err := range icetable.WriteRecords(context.Background(), tbl, rec.Schema(), func(yield func(arrow.RecordBatch, error) bool) { yield(rec, nil) }) {
			require.NoError(t, err)
			rd.AddRows(df)
		}
		require.NoError(t, rd.Commit(context.Background()))
	})
	register(t, g, "n", f.Metadata(t, ident))
	one := []string{"1", `{"a": "x\"é", "zz": 7}`, `{"k": 1}`, `[[1, 2], [3]]`}
	want := [][]string{one, {"2", "∅", "∅", "∅"}, {"3", `{"a": null, "zz": 8}`, `{}`, `[]`}, {"4", `{"a": null, "zz": 9}`, "∅", "∅"}}
	require.Equal(t, want, rows(t, c, "SELECT * FROM n ORDER BY id"))
	for _, sql := range []string{
		"SELECT * FROM n WHERE id = 1", "SELECT * FROM lookup('n', 1)", "SELECT l.* FROM lookup('n', 1) l, (VALUES (1)) v", `SELECT * FROM n WHERE st = '{"zz": 7, "a": "x\"é"}'`,
		"SELECT * FROM n WHERE ls->1->>0 = '3'", "SELECT id, st, mp, ls FROM table_changes('n', NULL) WHERE st->>'zz' = '7'", "SELECT * FROM table_at('n', 'now') WHERE mp ? 'k'",
	} {
		require.Equal(t, [][]string{one}, rows(t, c, sql), sql)
	}
	run(t, c, "INSERT INTO n (id) VALUES (5)")
	require.Equal(t, "0A000", sqlstate(t, c, `INSERT INTO n (id, st) VALUES (6, '{"zz": 1}')`).Code)
	require.Equal(t, "0A000", sqlstate(t, c, "UPDATE n SET id = 6 WHERE id = 1").Code)
	run(t, c, "UPDATE n SET id = 6 WHERE id = 5; DELETE FROM n WHERE id = 4")
	run(t, c, "VACUUM FULL n")
	require.Equal(t, append(want[:3:3], []string{"6", "∅", "∅", "∅"}), rows(t, c, "SELECT * FROM n ORDER BY id"))
}
