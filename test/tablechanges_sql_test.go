package test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// columnsOf are the names of a relation's columns as the rows carry them.
func columnsOf(t *testing.T, k *changesKit, sql string, args ...any) []string {
	t.Helper()
	rows, err := k.c.Query(context.Background(), sql, args...)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
	}
	require.NoError(t, rows.Err())
	var out []string
	for _, f := range rows.FieldDescriptions() {
		out = append(out, f.Name)
	}
	return out
}

var changeColumns = []string{"_change_type", "_change_ordinal", "_commit_snapshot_id", "_commit_seq", "_commit_timestamp", "_change_row"}

// The columns and their types are known before execution, and the rows have them; _row_id is there in format 3.
func TestTableChangesDescribe(t *testing.T) {
	for _, version := range []int{2, 3} {
		k := followed(t, version)
		run(t, k.c, "ALTER TABLE f ADD COLUMN n numeric(12,2), ADD COLUMN s smallint, ADD COLUMN w varchar(7), ADD COLUMN j jsonb, ADD COLUMN ts timestamptz, ADD COLUMN a int[]")
		run(t, k.c, "INSERT INTO f VALUES (9, 'x', 1.5, 2, 'w', '{\"b\": 1}', '2026-01-01 00:00+00', '{1,2}')")
		types := []uint32{23, 25, 1700, 21, 1043, 3802, 1184, 1007, 25, 23, 20, 20, 1184, 20}
		mods := []int32{-1, -1, 12<<16 + 2 + 4, -1, 7 + 4, -1, -1, -1, -1, -1, -1, -1, -1, -1}
		names := append([]string{"id", "v", "n", "s", "w", "j", "ts", "a"}, changeColumns...)
		if version == 3 {
			types, mods, names = append(types, 20), append(mods, -1), append(names, "_row_id")
		}
		for i, fn := range []string{"table_changes", "table_changes_net"} {
			for j, args := range []string{"NULL", "$1", "NULL, $1", "$1, $2", "'seq:0', 'now'"} {
				st, err := k.c.Prepare(context.Background(), fmt.Sprint("d", version, i, j), "SELECT * FROM "+fn+"('f', "+args+")")
				require.NoError(t, err)
				var gotNames []string
				var gotTypes []uint32
				var gotMods []int32
				for _, f := range st.Fields {
					gotNames, gotTypes, gotMods = append(gotNames, f.Name), append(gotTypes, f.DataTypeOID), append(gotMods, f.TypeModifier)
				}
				require.Equal(t, names, gotNames)
				require.Equal(t, types, gotTypes)
				require.Equal(t, mods, gotMods)
			}
		}
		last := rows(t, k.c, "SELECT * FROM table_changes('f', NULL) WHERE id = 9")
		require.Equal(t, []string{"9", "x", "1.50", "2", "w", `{"b": 1}`, "2026-01-01 00:00:00+00", "{1,2}", "INSERT", "0"}, last[0][:10])
		if version == 3 {
			require.Equal(t, [][]string{{"0"}}, rows(t, k.c, "SELECT count(*) FROM table_changes('f', NULL) WHERE _row_id IS NULL"))
			require.Equal(t, [][]string{{"1"}}, rows(t, k.c, "SELECT count(DISTINCT _row_id) FROM table_changes('f', NULL) WHERE id = 2"), "an update keeps the row's id")
		}
		// The catalog's view of a view over it.
		run(t, k.c, "CREATE VIEW fv AS SELECT * FROM table_changes('f', NULL)")
		require.Equal(t, [][]string{{"_change_type", "text"}, {"_change_ordinal", "integer"}, {"_commit_snapshot_id", "bigint"}, {"_commit_seq", "bigint"}, {"_commit_timestamp", "timestamp with time zone"}, {"_change_row", "bigint"}},
			rows(t, k.c, "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'fv'::regclass AND attname LIKE '\\_c%' ORDER BY attnum"))
	}
}

// Columns follow the schema at `to` by field id: renamed, widened, added, dropped; with a parameter, the schema at Parse.
func TestTableChangesColumnsByFieldID(t *testing.T) {
	for _, version := range []int{2, 3} {
		k := &changesKit{g: start(t)}
		k.c = k.g.connect()
		c := k.c
		run(t, c, fmt.Sprintf("CREATE TABLE e (id int PRIMARY KEY, a int, b text, r real, gone text) WITH (format_version = %d)", version))
		run(t, c, "INSERT INTO e VALUES (1, 10, 'x', 1.5, 'old')")
		first := number(t, c, "SELECT current_commit_seq()")
		ctx := context.Background()
		_, err := c.Prepare(ctx, "window", "SELECT * FROM table_changes('e', 'seq:0', $1)")
		require.NoError(t, err)
		_, err = c.Prepare(ctx, "some", "SELECT id, a FROM table_changes('e', 'seq:0', $1) ORDER BY _commit_seq, _change_row")
		require.NoError(t, err)
		run(t, c, "ALTER TABLE e RENAME COLUMN b TO label; ALTER TABLE e ALTER COLUMN a TYPE bigint, ALTER COLUMN r TYPE double precision; ALTER TABLE e DROP COLUMN gone; ALTER TABLE e ADD COLUMN added int")
		if version == 3 {
			run(t, c, "ALTER TABLE e ADD COLUMN given text DEFAULT 'g'")
		}
		run(t, c, "UPDATE e SET a = 9223372036854775807, added = 1")
		now := append([]string{"id", "a", "label", "r", "added"}, changeColumns...)
		row := [][]string{{"1", "10", "x", "1.5", "∅"}, {"1", "10", "x", "1.5", "∅"}, {"1", "9223372036854775807", "x", "1.5", "1"}}
		if version == 3 {
			now = append(append([]string{"id", "a", "label", "r", "added", "given"}, changeColumns...), "_row_id")
			for i := range row {
				row[i] = append(row[i], "g") // the initial default
			}
		}
		require.Equal(t, now, columnsOf(t, k, "SELECT * FROM table_changes('e', NULL)"))
		got := rows(t, c, "SELECT * FROM table_changes('e', NULL)")
		for i := range row {
			require.Equal(t, row[i], got[i][:len(row[i])])
		}
		// A constant `to` in the past shows the columns of its time.
		then := append([]string{"id", "a", "b", "r", "gone"}, changeColumns...)
		if version == 3 {
			then = append(then, "_row_id")
		}
		require.Equal(t, then, columnsOf(t, k, fmt.Sprintf("SELECT * FROM table_changes('e', NULL, 'seq:%d')", first)))
		require.Equal(t, []string{"1", "10", "x", "1.5", "old"}, rows(t, c, fmt.Sprintf("SELECT * FROM table_changes('e', NULL, 'seq:%d')", first))[0][:5])
		net := fmt.Sprintf("FROM table_changes_net('e', 'now', 'seq:%d')", first)
		e := sqlstate(t, c, "SELECT * "+net)
		require.Equal(t, "22003 a value of column \"a\" does not fit int, its type at the asked state", e.Code+" "+e.Message)
		run(t, c, "UPDATE e SET a = 11")
		require.Equal(t, then, columnsOf(t, k, "SELECT * "+net))
		require.Equal(t, [][]string{{"11", "UPDATE_BEFORE"}, {"10", "UPDATE_AFTER"}}, rows(t, c, "SELECT a, _change_type "+net))
		// As a parameter it is the present of Parse.
		require.Equal(t, now, columnsOf(t, k, "SELECT * FROM table_changes('e', NULL, $1)", fmt.Sprint("seq:", first)))
		// Columns of a prepared statement do not move under it: a changed result is refused, others go on.
		_, err = c.Exec(ctx, "window", "now")
		require.ErrorContains(t, err, "cached plan must not change result type")
		_, err = c.Exec(ctx, "some", "now")
		require.ErrorContains(t, err, "cached plan must not change result type", "a is wider")
		// A key that is made later pairs from then on.
		run(t, c, fmt.Sprintf("CREATE TABLE late (id int NOT NULL, v int) WITH (format_version = %d)", version))
		run(t, c, "INSERT INTO late VALUES (1, 1)")
		run(t, c, "UPDATE late SET v = 2")
		run(t, c, "ALTER TABLE late ADD PRIMARY KEY (id)")
		run(t, c, "UPDATE late SET v = 3")
		unkeyed := [][]string{{"INSERT", "1"}, {"DELETE", "1"}, {"INSERT", "2"}}
		if version == 3 { // by its row id
			unkeyed = [][]string{{"INSERT", "1"}, {"UPDATE_BEFORE", "1"}, {"UPDATE_AFTER", "2"}}
		}
		require.Equal(t, append(unkeyed, []string{"UPDATE_BEFORE", "2"}, []string{"UPDATE_AFTER", "3"}), rows(t, c, "SELECT _change_type, v FROM table_changes('late', NULL)"))
	}
}

// The order of commits needs no ORDER BY: with WHERE, LIMIT, OFFSET, expressions, in a subquery, a view, a cursor, COPY, by prepared statements; over
// many commits and over one of many rows.
func TestTableChangesOrder(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE o (id int PRIMARY KEY, v int)")
	for i := range 12 {
		run(t, c, fmt.Sprintf("INSERT INTO o SELECT n, n FROM generate_series(%d, %d) n", 5000-i*100, 5000-i*100+79))
		run(t, c, "UPDATE o SET v = v + 1 WHERE id % 7 = 0")
	}
	run(t, c, "INSERT INTO o SELECT n, n FROM generate_series(10000, 49999) n")
	run(t, c, "UPDATE o SET v = -v WHERE id % 2 = 0")
	run(t, c, "DELETE FROM o WHERE id >= 15000")
	all := rows(t, c, "SELECT id, _change_type FROM table_changes('o', NULL) ORDER BY _commit_seq, _change_ordinal, _change_row")
	require.Greater(t, len(all), 110_000)
	var some [][]string
	for _, r := range all {
		if len(r[0]) == 4 {
			some = append(some, r)
		}
	}
	check := func(want [][]string, sql string) {
		t.Helper()
		got := rows(t, c, sql)
		require.Equal(t, len(want), len(got), sql)
		for i := range want {
			if want[i][0] != got[i][0] || want[i][1] != got[i][1] {
				require.Equal(t, want[i], got[i], "row %d of %s", i, sql)
			}
		}
	}
	check(all, "SELECT id, _change_type FROM table_changes('o', NULL)")
	check(some, "SELECT id, _change_type FROM table_changes('o', NULL) WHERE id < 10000")
	check(some, "SELECT id, _change_type FROM table_changes('o', 'seq:0', 'now') x WHERE length(x.id::text) = 4")
	check(all[:100], "SELECT id, _change_type FROM table_changes('o', NULL) LIMIT 100")
	check(all[90_000:90_010], "SELECT id, _change_type FROM table_changes('o', NULL) OFFSET 90000 LIMIT 10")
	check(some[7:17], "SELECT id, _change_type FROM table_changes('o', NULL) WHERE id < 10000 LIMIT 10 OFFSET 7")
	check(some, "SELECT id, kind FROM (SELECT id, _change_type AS kind FROM table_changes('o', NULL)) x WHERE id < 10000")
	check(some, "WITH x AS (SELECT * FROM table_changes('o', NULL)) SELECT id, _change_type FROM x WHERE id < 10000")
	run(t, c, "CREATE VIEW ov AS SELECT id, _change_type FROM table_changes('o', NULL)")
	check(some, "SELECT * FROM ov WHERE id < 10000")
	run(t, c, "PREPARE op (int) AS SELECT id, _change_type FROM table_changes('o', NULL) WHERE id < $1")
	check(some, "EXECUTE op (10000)")
	var out bytes.Buffer
	_, err := c.PgConn().CopyTo(context.Background(), &out, "COPY (SELECT id, _change_type FROM table_changes('o', NULL) WHERE id < 10000) TO STDOUT")
	require.NoError(t, err)
	var lines [][]string
	for _, l := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		lines = append(lines, strings.Split(l, "\t"))
	}
	require.Equal(t, some, lines)
	run(t, c, "BEGIN; DECLARE oc CURSOR FOR SELECT id, _change_type FROM table_changes('o', NULL)")
	check(all[:50], "FETCH 50 FROM oc")
	check(all[50:60], "FETCH 10 FROM oc")
	run(t, c, "MOVE 1000 FROM oc")
	check(all[1060:1070], "FETCH 10 FROM oc")
	run(t, c, "COMMIT; CREATE TABLE oc AS SELECT row_number() OVER () AS n, id, _change_type AS kind FROM table_changes('o', NULL) WHERE id < 10000")
	check(some, "SELECT id, kind FROM oc ORDER BY n")
	// Two windows joined, one with itself, and set operations.
	require.Equal(t, [][]string{{"40000"}}, rows(t, c, "SELECT count(*) FROM table_changes('o', NULL) a JOIN table_changes('o', NULL) b USING (id, _commit_seq) WHERE a._change_type = 'INSERT' AND b._change_type = 'INSERT' AND id >= 10000"))
	require.Empty(t, rows(t, c, "SELECT * FROM table_changes('o', NULL) EXCEPT SELECT * FROM table_changes('o', 'earliest', 'now')"))
}

// Inside a transaction: the cut's window whatever commits or is written meanwhile; names, definitions and tables of its own.
func TestTableChangesInTransactions(t *testing.T) {
	k := followed(t, 2)
	c, other := k.c, k.g.connect()
	all := k.steps(0, 4)
	for _, level := range []string{"REPEATABLE READ", "SERIALIZABLE"} {
		run(t, c, "BEGIN ISOLATION LEVEL "+level)
		require.Equal(t, all, changed(t, c, "NULL"))
		run(t, other, "INSERT INTO f VALUES (50, 'later')")
		run(t, c, "INSERT INTO f VALUES (60, 'own'); UPDATE f SET v = 'own' WHERE id = 1")
		for _, to := range []string{"NULL", "NULL, NULL", "NULL, 'now'", "NULL, now()", "NULL, 'infinity'", "NULL, 'branch:main'", "NULL, clock_timestamp() + interval '1 day'"} {
			require.Equal(t, all, changed(t, c, to), to)
		}
		require.Equal(t, "42704", sqlstate(t, c, fmt.Sprintf("SAVEPOINT s; SELECT * FROM table_changes('f', 'seq:%d')", number(t, other, "SELECT current_commit_seq()"))).Code, "behind the cut")
		run(t, c, "ROLLBACK")
		run(t, other, "DELETE FROM f WHERE id = 50")
		all = append(append([][]string{}, all...), []string{"INSERT", "50", "later"}, []string{"DELETE", "50", "later"})
	}
	run(t, c, "BEGIN ISOLATION LEVEL READ COMMITTED")
	require.Equal(t, all, changed(t, c, "NULL"))
	run(t, other, "INSERT INTO f VALUES (51, 'later')")
	all = append(all, []string{"INSERT", "51", "later"})
	require.Equal(t, all, changed(t, c, "NULL"))
	run(t, c, "ROLLBACK")

	// Definitions of its own.
	run(t, c, "BEGIN; CREATE TABLE fresh (id int PRIMARY KEY, v text); INSERT INTO fresh VALUES (1, 'x')")
	require.Empty(t, rows(t, c, "SELECT * FROM table_changes('fresh', NULL)"))
	require.Empty(t, rows(t, c, "SELECT id, v, _change_type FROM table_changes_net('fresh', 'earliest', 'now')"))
	require.Equal(t, [][]string{{"∅"}}, rows(t, c, "SELECT snapshot_at('fresh', 'now')"))
	channel := rows(t, c, "SELECT commit_channel('fresh')")
	require.Equal(t, "0A000", sqlstate(t, c, "SAVEPOINT s; SELECT * FROM table_at('fresh', 'now')").Code)
	run(t, c, "ROLLBACK TO s; COMMIT")
	require.Equal(t, channel, rows(t, c, "SELECT commit_channel('fresh')"))
	require.Equal(t, [][]string{{"INSERT", "1"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('fresh', NULL)"))
	run(t, c, "BEGIN; ALTER TABLE f RENAME TO g; CREATE TABLE f (other int)")
	require.Equal(t, []string{"other"}, columnsOf(t, k, "SELECT * FROM table_changes('f', NULL)")[:1])
	require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM table_changes('f', NULL)"))
	for _, name := range []string{"'g'", "'public.g'", "'g'::regclass"} {
		require.Equal(t, fmt.Sprint(len(all)), rows(t, c, "SELECT count(*) FROM table_changes("+name+", NULL)")[0][0], name)
	}
	require.Equal(t, [][]string{{"1", "a"}}, rows(t, c, "SELECT * FROM lookup('g', 1)"))
	require.Len(t, rows(t, c, "SELECT * FROM skade.files('g')"), len(rows(t, other, "SELECT * FROM skade.files('f')")))
	run(t, c, "DROP TABLE g")
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM table_changes('g', NULL)").Code)
	run(t, c, "ROLLBACK")
	require.Equal(t, all, changed(t, c, "NULL"))

	// A copy that follows its source: MERGE over the net of a window, in any pieces, as often as one likes.
	run(t, c, "CREATE TABLE twin (id int PRIMARY KEY, v text)")
	merge := func(from, to int64) {
		run(t, c, fmt.Sprintf(`MERGE INTO twin USING (SELECT * FROM table_changes_net('f', 'seq:%d', 'seq:%d') WHERE _change_type <> 'UPDATE_BEFORE') s ON twin.id = s.id
			WHEN MATCHED AND s._change_type = 'DELETE' THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED AND s._change_type <> 'DELETE' THEN INSERT VALUES (s.id, s.v)`, from, to))
	}
	last := number(t, c, "SELECT current_commit_seq()")
	for seq := int64(0); seq < last; seq += 2 {
		merge(seq, min(seq+2, last))
		merge(seq, min(seq+2, last)) // again: nothing changes
	}
	require.Equal(t, rows(t, c, "SELECT * FROM f ORDER BY id"), rows(t, c, "SELECT * FROM twin ORDER BY id"))
	require.Equal(t, "INSERT 0 3", run(t, c, fmt.Sprintf("INSERT INTO twin SELECT id + 1000, v FROM table_changes('f', 'seq:0', 'seq:%d')", k.seq[1])).String())
}

// A table is named as SQL names it.
func TestTableChangesNames(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, `CREATE SCHEMA "S p"; CREATE TABLE "S p"."T.q" ("I d" int PRIMARY KEY, "a""b" text); INSERT INTO "S p"."T.q" VALUES (1, 'x'); CREATE TABLE plain (id int); INSERT INTO plain VALUES (1)`)
	run(t, c, "CREATE VIEW v AS SELECT * FROM plain; CREATE SEQUENCE s; CREATE TEMP TABLE tt (id int)")
	for _, name := range []string{`'"S p"."T.q"'`, `'"S p"."T.q"'::regclass`, `E'"S p"."T.q"'`, `'"S p"."T.q"'::text`} {
		require.Equal(t, [][]string{{"1", "x", "INSERT"}}, rows(t, c, `SELECT "I d", "a""b", _change_type FROM table_changes(`+name+`, NULL)`), name)
	}
	for _, name := range []string{"'plain'", "'PLAIN'", "'public.plain'", "'Public . Plain'", "'skade.public.plain'", "'plain'::regclass", "'public.plain'::regclass",
		"'" + rows(t, c, "SELECT 'plain'::regclass::oid::text")[0][0] + "'::regclass"} {
		for _, call := range []string{"table_changes(%s, NULL)", "table_changes_net(%s, NULL)", "table_at(%s, 'now')", "lookup(%s, 1, key_columns => ARRAY['id'])"} {
			require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT id FROM "+fmt.Sprintf(call, name)), name)
		}
		require.Equal(t, rows(t, c, "SELECT commit_channel('plain')"), rows(t, c, "SELECT commit_channel("+name+")"))
		require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT l.id FROM (VALUES (1)) k(i), table_at("+name+", 'now') l"))
	}
	run(t, c, `SET search_path = "S p"`)
	require.Len(t, rows(t, c, `SELECT * FROM table_changes('"T.q"', NULL)`), 1)
	require.Equal(t, "42P01", sqlstate(t, c, "SELECT * FROM table_changes('plain', NULL)").Code)
	run(t, c, "RESET search_path")
	for name, want := range map[string]string{
		"'v'": `42809 "v" is not a table`, "'s'": `42809 "s" is not a table`, "'pg_class'": `42809 "pg_class" is not a table`, "'pg_catalog.pg_class'::regclass": `42809 "pg_class" is not a table`,
		"'information_schema.tables'": `42809 "tables" is not a table`, "'skade.commits'": `42809 "commits" is not a table`, "'v'::regclass": `42809 "v" is not a table`,
		"'tt'": `0A000 "tt" is a temporary table`, "'pg_temp.tt'": `0A000 "tt" is a temporary table`, "'tt'::regclass": `0A000 "tt" is a temporary table`,
		"'nosuch'": `42P01 relation "nosuch" does not exist`, "'nosuch.plain'": `42P01 relation "nosuch.plain" does not exist`, "'nosuch'::regclass": `42P01 relation "nosuch" does not exist`,
		"'\"PLAIN\"'": `42P01 relation "PLAIN" does not exist`, "'plain; DROP TABLE plain'": `42P01 relation "plain; drop table plain" does not exist`,
		"''": `42602 invalid name syntax`, "'a.b.c.d'": `42602 invalid name syntax`, "'\"'": `42602 invalid name syntax`,
		"NULL": `22023 table name of table_changes must not be null`, "NULL::text": `22023 table name of table_changes must not be null`,
		"'pl' || 'ain'": `42P18 table name of table_changes must be a constant`, "lower('plain')": `42P18 table name of table_changes must be a constant`,
	} {
		e := sqlstate(t, c, "SELECT * FROM table_changes("+name+", NULL)")
		require.Equal(t, want, e.Code+" "+e.Message, name)
		require.NotZero(t, e.Position, name)
	}
	require.Equal(t, "42883", sqlstate(t, c, "SELECT * FROM table_changes('plain')").Code)
	require.Equal(t, "42883", sqlstate(t, c, "SELECT * FROM table_changes('plain', nope => 1)").Code)
}
