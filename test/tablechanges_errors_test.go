package test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/cmd/skade-pg/cli"
	"github.com/nordisk/skade-pg/internal/testkit"
)

// refused runs a window of f that must fail, and returns the whole error.
func refused(t *testing.T, c *pgx.Conn, args string) *pgconn.PgError {
	t.Helper()
	return sqlstate(t, c, "SELECT * FROM table_changes('f', "+args+")")
}

const boundHint = "A bound is a snapshot id, a timestamp, seq:N, seq:N/ordinal/row, tag:name, branch:name, earliest or now."

// Every mistake in a call has its SQLSTATE, its words, and a hint where one helps; the session lives on.
func TestTableChangesBadArguments(t *testing.T) {
	k := followed(t, 2)
	c := k.c
	for args, want := range map[string][4]string{
		"'seq:x'":                    {"22023", `malformed bound "seq:x": a seq, an ordinal and a row are digits`, "", boundHint},
		"'seq:'":                     {"22023", `malformed bound "seq:": a seq, an ordinal and a row are digits`, "", boundHint},
		"'seq:-1'":                   {"22023", `malformed bound "seq:-1": a seq, an ordinal and a row are digits`, "", boundHint},
		"'seq:1/2'":                  {"22023", `malformed bound "seq:1/2": a place is seq:N or seq:N/ordinal/row`, "", boundHint},
		"'seq:99999999999999999999'": {"22023", `malformed bound "seq:99999999999999999999": the seq does not fit a bigint`, "", boundHint},
		"'99999999999999999999'":     {"22023", `malformed bound "99999999999999999999": the snapshot id does not fit a bigint`, "", boundHint},
		"'seq:1/9999999999/0'":       {"22023", `malformed bound "seq:1/9999999999/0": the ordinal does not fit an integer`, "", boundHint},
		"''":                         {"22023", `malformed bound "": it is empty`, "", boundHint},
		"'tag:'":                     {"22023", `malformed bound "tag:": the name is missing`, "", boundHint},
		"'yesterday-ish'":            {"22023", `malformed bound "yesterday-ish": it is no snapshot id, seq:, tag:, branch:, earliest, now or timestamp`, "", boundHint},
		"'2026-13-45'":               {"22023", `malformed bound "2026-13-45": it is no snapshot id, seq:, tag:, branch:, earliest, now or timestamp`, "", boundHint},
		"'-1'":                       {"22023", `malformed bound "-1": it is no snapshot id, seq:, tag:, branch:, earliest, now or timestamp`, "", boundHint},
		"NULL, '" + strings.Repeat("x", 500) + "'": {"22023", `malformed bound "` + strings.Repeat("x", 80) + `…": it is no snapshot id, seq:, tag:, branch:, earliest, now or timestamp`, "", boundHint},
		"1.5":                                   {"42804", "a bound cannot be of type numeric", "", "A bound is a snapshot id (bigint), a timestamptz, or text: seq:N, tag:x, branch:x, earliest, now."},
		"true":                                  {"42804", "a bound cannot be of type boolean", "", "A bound is a snapshot id (bigint), a timestamptz, or text: seq:N, tag:x, branch:x, earliest, now."},
		"interval '1 day'":                      {"42804", "a bound cannot be of type interval", "", "A bound is a snapshot id (bigint), a timestamptz, or text: seq:N, tag:x, branch:x, earliest, now."},
		"0":                                     {"42704", "table has no snapshot 0", "", "View skade.snapshots lists the snapshots that are retained."},
		"-1":                                    {"42704", "table has no snapshot -1", "", "View skade.snapshots lists the snapshots that are retained."},
		"NULL, 9223372036854775807":             {"42704", "table has no snapshot 9223372036854775807", "", "View skade.snapshots lists the snapshots that are retained."},
		"'tag:none'":                            {"42704", `table has no tag "none"`, "", ""},
		"'branch:none'":                         {"42704", `table has no branch "none"`, "", ""},
		"'tag:main'":                            {"42704", `table has no tag "main"`, "", ""},
		"'seq:99999'":                           {"42704", "commit seq 99999 does not exist", fmt.Sprintf("The current commit seq of this statement is %d.", k.seq[4]), ""},
		"'seq:99999/0/0'":                       {"42704", "commit seq 99999 does not exist", fmt.Sprintf("The current commit seq of this statement is %d.", k.seq[4]), ""},
		"NULL, NULL, shard => 'x'":              {"22023", `malformed shard "x"`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, shard => ''":               {"22023", `malformed shard ""`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, shard => '2/2'":            {"22023", `malformed shard "2/2"`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, shard => '0/0'":            {"22023", `malformed shard "0/0"`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, shard => '-1/2'":           {"22023", `malformed shard "-1/2"`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, shard => '0/65537'":        {"22023", `malformed shard "0/65537"`, "", "A shard is i/n with 0 <= i < n <= 65536."},
		"NULL, NULL, identifier => ARRAY['zz']": {"42703", `identifier names column "zz", which the table does not have`, "", ""},
		"NULL, NULL, identifier => ARRAY['ID']": {"42703", `identifier names column "ID", which the table does not have`, "", ""},
		"NULL, NULL, identifier => ARRAY['_change_type']": {"42703", `identifier names column "_change_type", which the table does not have`, "", ""},
		"NULL, NULL, identifier => ARRAY['id', 'id']":     {"42701", `column "id" appears twice in identifier`, "", ""},
		"NULL, NULL, identifier => ARRAY['id', NULL]":     {"22004", "identifier must not hold null", "", ""},
		"NULL, NULL, identifier => ARRAY[NULL]::text[]":   {"22004", "identifier must not hold null", "", ""},
		"NULL, NULL, identifier => '{}'":                  {"22023", "identifier names no column", "", "Leave it out, or give NULL, for the identifier fields of the table."},
		"NULL, NULL, identifier => 'id'":                  {"22P02", `malformed array literal: "id"`, `Array value must start with "{" or dimension information.`, ""},
	} {
		e := refused(t, c, args)
		require.Equal(t, want, [4]string{e.Code, e.Message, e.Detail, e.Hint}, args)
	}
	// The same by parameters.
	for arg, code := range map[string]string{"seq:x": "22023", "": "22023", "tag:none": "42704", "seq:99999": "42704", "12345": "42704"} {
		require.Equal(t, code, sqlstate(t, c, "SELECT * FROM table_changes('f', $1)", arg).Code, arg)
		require.Equal(t, code, sqlstate(t, c, "SELECT * FROM table_changes('f', NULL, $1)", arg).Code, arg)
		require.Equal(t, code, sqlstate(t, c, "SELECT * FROM table_changes_net('f', $1, $1)", arg).Code, arg)
	}
	require.Equal(t, [][]string{{"8"}}, rows(t, c, "SELECT count(*) FROM table_changes('f', NULL)"))
}

// from after to is 22023 for every pair of forms that has an order; net takes either order.
func TestTableChangesReversed(t *testing.T) {
	k := followed(t, 2)
	c := k.c
	run(t, c, fmt.Sprintf("SELECT skade.create_tag('f', 'v1', %d), skade.create_tag('f', 'v3', %d)", k.snap[1], k.snap[3]))
	late := []string{fmt.Sprintf("'seq:%d'", k.seq[3]), "'" + k.at[3] + "'", fmt.Sprint(k.snap[3]), "'tag:v3'", "'now'", fmt.Sprintf("'seq:%d/0/0'", k.seq[3])}
	early := []string{fmt.Sprintf("'seq:%d'", k.seq[1]), "'" + k.at[1] + "'", fmt.Sprint(k.snap[1]), "'tag:v1'", fmt.Sprintf("'seq:%d/0/0'", k.seq[1])}
	for _, f := range late {
		for _, e := range early {
			err := refused(t, c, f+", "+e)
			require.Equal(t, "22023", err.Code, "%s, %s: %s", f, e, err.Message)
			require.Regexp(t, `^from \(.*\) is after to \(.*\)$`, err.Message)
			require.Equal(t, "table_changes_net compares two states in either order.", err.Hint)
			if !strings.Contains(f+e, "/0/0") { // a place inside a commit is no state
				rows(t, c, "SELECT * FROM table_changes_net('f', "+f+", "+e+")")
			}
		}
	}
	require.Equal(t, fmt.Sprintf("from (seq:%d) is after to (seq:%d)", k.seq[3], k.seq[1]), refused(t, c, fmt.Sprintf("'seq:%d', 'seq:%d'", k.seq[3], k.seq[1])).Message)
	require.Equal(t, "22023", refused(t, c, "now() + interval '2 h', now() + interval '1 h'").Code)
}

// A snapshot of another table, of another branch, of a table of the same name before: no silence and no foreign rows.
func TestTableChangesForeignBounds(t *testing.T) {
	k := followed(t, 2)
	c := k.c
	run(t, c, "CREATE TABLE o (id int PRIMARY KEY, v text); INSERT INTO o VALUES (1, 'x')")
	theirs := number(t, c, "SELECT _commit_snapshot_id FROM table_changes('o', NULL)")
	e := refused(t, c, fmt.Sprint(theirs))
	require.Equal(t, "42704", e.Code)
	require.Equal(t, fmt.Sprintf("table has no snapshot %d", theirs), e.Message)
	require.Equal(t, "42704", sqlstate(t, c, fmt.Sprintf("SELECT * FROM table_changes_net('f', %d)", theirs)).Code)

	// Two lines of snapshots: no path from one to the other; both have one from their common ancestor.
	run(t, c, fmt.Sprintf("SELECT skade.create_branch('f', 'b', %d)", k.snap[2]))
	run(t, c, "SET skade.branch = 'b'; INSERT INTO f VALUES (70, 'on b')")
	run(t, c, "RESET skade.branch")
	head := number(t, c, "SELECT snapshot_id FROM skade.refs WHERE table_name = 'f' AND name = 'b'")
	for _, w := range [][2]string{{fmt.Sprint(head), fmt.Sprint(k.snap[4])}, {"'branch:b'", "'branch:main'"}, {fmt.Sprint(k.snap[4]), fmt.Sprint(head)}, {"'branch:main'", "'branch:b'"}} {
		e := refused(t, c, w[0]+", "+w[1])
		require.Equal(t, "55000", e.Code)
		require.Regexp(t, `^snapshot \d+ is not an ancestor of snapshot \d+$`, e.Message)
		require.Equal(t, fmt.Sprintf("Their common ancestor is snapshot %d.", k.snap[2]), e.Detail)
		require.Equal(t, "Use table_changes_net, which compares two states without a path, or seq: bounds, which follow the log.", e.Hint)
	}
	require.Equal(t, [][]string{{"INSERT", "70", "on b"}}, changed(t, c, fmt.Sprintf("%d, 'branch:b'", k.snap[2])))
	require.Equal(t, [][]string{{"DELETE", "70", "on b"}, {"DELETE", "3", "c"}, {"INSERT", "5", "e"}}[:1], rows(t, c, "SELECT _change_type, id, v FROM table_changes_net('f', 'branch:b', 'branch:main') WHERE id = 70"))

	// Rolled back: seq bounds show it as one change, snapshot ids of the other line have no path.
	before := number(t, c, "SELECT current_commit_seq()")
	run(t, c, fmt.Sprintf("SELECT skade.rollback_to('f', %d)", k.snap[2]))
	require.Equal(t, [][]string{{"DELETE", "5", "e"}, {"INSERT", "3", "c"}}, changed(t, c, fmt.Sprintf("'seq:%d'", before)))
	require.Equal(t, "22023", refused(t, c, fmt.Sprintf("%d, 'branch:main'", k.snap[4])).Code)
	require.Equal(t, k.steps(2, 4), changed(t, c, fmt.Sprintf("%d, %d", k.snap[2], k.snap[4])), "the snapshots are still there")

	// Dropped and made again: another table.
	run(t, c, "DROP TABLE f; CREATE TABLE f (id int PRIMARY KEY, v text)")
	for _, bound := range []string{"NULL", fmt.Sprintf("'seq:%d'", k.seq[1]), fmt.Sprintf("'seq:%d', 'seq:%d'", k.seq[1], k.seq[3]), "'" + k.at[2] + "'", fmt.Sprintf("'seq:%d/0/0'", k.seq[1]), "'earliest'"} {
		require.Empty(t, changed(t, c, bound), bound)
	}
	for i := 1; i <= 4; i++ {
		require.Equal(t, "42704", refused(t, c, fmt.Sprint(k.snap[i])).Code)
	}
	require.Equal(t, "42704", refused(t, c, "'branch:b'").Code)
	run(t, c, "INSERT INTO f VALUES (1, 'new')")
	require.Equal(t, [][]string{{"INSERT", "1", "new"}}, changed(t, c, fmt.Sprintf("'seq:%d'", k.seq[1])))
	require.Equal(t, [][]string{{"INSERT", "1", "new"}}, rows(t, c, fmt.Sprintf("SELECT _change_type, id, v FROM table_changes_net('f', 'seq:%d')", k.seq[3])))
}

// Expired: 72000 with the oldest snapshot that is left, and a hint to the net effect, which needs only the ends.
func TestTableChangesExpired(t *testing.T) {
	var ahead atomic.Int64 // of the catalog's clock
	g := &gateway{t: t, dir: filepath.Join(t.TempDir(), "data")}
	g.configure = func(cfg *cli.Config) {
		cfg.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}
	g.open()
	t.Cleanup(g.close)
	c := g.connect()
	run(t, c, `CREATE TABLE f (id int PRIMARY KEY, v text) WITH ("history.expire.min-snapshots-to-keep" = '2', "history.expire.max-snapshot-age-ms" = '60000')`)
	var seqs, snaps []int64
	for i := range 6 {
		run(t, c, fmt.Sprintf("INSERT INTO f VALUES (%d, 'v%d')", i, i))
		seqs = append(seqs, number(t, c, "SELECT current_commit_seq()"))
		snaps = append(snaps, number(t, c, "SELECT snapshot_at('f', 'now')"))
	}
	at := rows(t, c, "SELECT clock_timestamp()")[0][0]
	run(t, c, fmt.Sprintf("SELECT skade.create_tag('f', 'kept', %d)", snaps[1]))
	ahead.Store(int64(3 * time.Hour))
	run(t, c, "VACUUM f")
	left := rows(t, c, "SELECT s.snapshot_id, c.commit_seq, s.committed_at FROM skade.snapshots s LEFT JOIN skade.commits c ON c.snapshot_id = s.snapshot_id AND c.kind = 'commit' WHERE s.table_name = 'f' ORDER BY s.committed_at")
	require.Less(t, len(left), 6, "something expired")
	oldest := ""
	for _, l := range left {
		if l[0] != fmt.Sprint(snaps[1]) { // the tagged one is not on the way
			oldest = fmt.Sprintf("The oldest retained snapshot is %s of ", l[0])
			break
		}
	}
	const hint = "Use table_changes_net, which needs only the two ends, or start from 'earliest'."
	for _, args := range []string{fmt.Sprint(snaps[0]), fmt.Sprintf("'seq:%d'", seqs[0]), fmt.Sprintf("'seq:%d', 'seq:%d'", seqs[0], seqs[3]), "NULL", fmt.Sprintf("'seq:%d/0/0'", seqs[2]), fmt.Sprint(snaps[2]), "'tag:kept'",
		fmt.Sprintf("NULL, %d", snaps[0]), fmt.Sprintf("NULL, 'seq:%d'", seqs[0])} {
		e := refused(t, c, args)
		require.Equal(t, "72000", e.Code, "%s: %s", args, e.Message)
		require.Contains(t, e.Message, "is no longer retained", args)
		require.Equal(t, hint, e.Hint, args)
		require.True(t, strings.HasPrefix(e.Detail, oldest), "%s: %s", args, e.Detail)
		require.Regexp(t, `^The oldest retained snapshot is \d+ of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?Z, commit seq \d+\.$`, e.Detail)
	}
	rest := rows(t, c, "SELECT id FROM table_changes('f', 'earliest')")
	require.NotEmpty(t, rest)
	require.Equal(t, "5", rest[len(rest)-1][0])
	require.Len(t, rows(t, c, "SELECT * FROM table_changes_net('f', 'tag:kept')"), 4, "the net effect needs only the ends")
	require.Empty(t, rows(t, c, "SELECT * FROM table_changes('f', '"+at+"')"))
}

// Columns of a user that are named like ours.
func TestTableChangesReservedColumns(t *testing.T) {
	g := start(t)
	c := g.connect()
	for _, name := range append([]string{"_row_id"}, changeColumns...) {
		for _, version := range []int{2, 3} {
			table := fmt.Sprint("u", name, version)
			run(t, c, fmt.Sprintf("CREATE TABLE %s (id int PRIMARY KEY, %s text) WITH (format_version = %d); INSERT INTO %[1]s VALUES (1, 'x')", table, name, version))
			for _, fn := range []string{"table_changes", "table_changes_net"} {
				if name == "_row_id" && version == 2 { // not ours there
					require.Equal(t, [][]string{{"x"}}, rows(t, c, "SELECT _row_id FROM "+fn+"('"+table+"', NULL)"))
					continue
				}
				e := sqlstate(t, c, "SELECT * FROM "+fn+"('"+table+"', NULL)")
				require.Equal(t, [3]string{"42701", fmt.Sprintf("column %q of the table has the name of a change column", name), "Rename the column; the table's data need not be rewritten."}, [3]string{e.Code, e.Message, e.Hint})
				require.Equal(t, "42701", sqlstate(t, c, "SELECT id FROM "+fn+"('"+table+"', $1)", "now").Code)
			}
			run(t, c, "ALTER TABLE "+table+" RENAME COLUMN "+name+" TO renamed")
			require.Equal(t, [][]string{{"x", "INSERT"}}, rows(t, c, "SELECT renamed, _change_type FROM table_changes('"+table+"', NULL)"))
		}
	}
}

// NULL and NaN are equal to themselves where rows are told apart, −0 is not 0, separators in text do not run together.
func TestTableChangesOddKeys(t *testing.T) {
	for _, version := range []int{2, 3} {
		g := start(t)
		c := g.connect()
		run(t, c, fmt.Sprintf("CREATE TABLE n (a text, b text, d double precision, n int) WITH (format_version = %d)", version))
		run(t, c, "INSERT INTO n VALUES ('x', NULL, 'NaN', 1), (NULL, NULL, 'NaN', 2), ('a|b', 'c', 0, 3), ('a', 'b|c', 0, 4), ('z', '', '-0', 5), ('dup', 'dup', 1, 6), ('dup', 'dup', 1, 6)")
		from := fmt.Sprintf("'seq:%d'", number(t, c, "SELECT current_commit_seq()"))
		kinds := func(args string) string {
			var out []string
			for _, r := range rows(t, c, "SELECT left(_change_type, 1) || CASE WHEN _change_type LIKE '%BEFORE' THEN 'B' WHEN _change_type LIKE '%AFTER' THEN 'A' ELSE '' END || n FROM table_changes('n', "+args+") ORDER BY n, _change_row") {
				out = append(out, r[0])
			}
			return strings.Join(out, " ")
		}
		run(t, c, "UPDATE n SET d = d, b = b")
		require.Empty(t, kinds(from), "nothing changed: NaN and NULL are themselves")
		run(t, c, "UPDATE n SET n = n + 10")
		if version == 2 {
			require.Equal(t, "D1 D2 D3 D4 D5 D6 D6 I11 I12 I13 I14 I15 I16 I16", kinds(from))
			require.Equal(t, "UB1 UB2 UB3 UB4 UB5 D6 D6 UA11 UA12 UA13 UA14 UA15 I16 I16", kinds(from+", identifier => '{a,b,d}'"), "duplicates are left alone, never an error")
		} else {
			require.Equal(t, "UB1 UB2 UB3 UB4 UB5 UB6 UB6 UA11 UA12 UA13 UA14 UA15 UA16 UA16", kinds(from), "by row id")
		}
		from = fmt.Sprintf("'seq:%d'", number(t, c, "SELECT current_commit_seq()"))
		run(t, c, "UPDATE n SET d = 0 WHERE n = 15")
		require.Len(t, strings.Fields(kinds(from)), 2, "minus zero became zero")
		require.Equal(t, [][]string{{"-0"}, {"0"}}, rows(t, c, "SELECT d FROM table_changes('n', "+from+")"))
		require.Empty(t, rows(t, c, "SELECT * FROM table_changes_net('n', 'now', 'now')"))
	}
}

// A file of the window that is missing or damaged is told, under a running server and after a restart, and never skipped.
func TestTableChangesDamagedFiles(t *testing.T) {
	root := t.TempDir()
	f := testkit.NewForeign(t, root)
	ident := f.Table(t, "s.t", 2, people())
	f.Delta(t, ident, [][]any{{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}}, nil, nil)
	first := f.DataFiles(t, ident)[0]
	f.Delta(t, ident, [][]any{{2, "B"}}, [][]any{{2}}, nil)
	f.Delta(t, ident, nil, nil, map[string][]int64{first.FilePath(): {2}})
	g := startWith(t, root)
	register(t, g, "f", f.Metadata(t, ident))
	const window = "SELECT _change_type, id, name FROM table_changes('f', NULL)"
	whole := rows(t, g.connect(), window)
	require.Len(t, whole, 7)
	var files []string
	for _, pattern := range []string{"*.parquet", "*.avro"} {
		require.NoError(t, filepath.Walk(root, func(p string, _ os.FileInfo, err error) error {
			if ok, _ := filepath.Match(pattern, filepath.Base(p)); ok {
				files = append(files, p)
			}
			return err
		}))
	}
	require.GreaterOrEqual(t, len(files), 8)
	reopen := func() {
		require.NoError(t, g.srv.Close())
		g.srv = nil
		g.open()
	}
	for i, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		ways := map[string][]byte{"missing": nil}
		if i%2 == 0 {
			ways["cut"] = data[:len(data)/2]
		} else {
			ways["zeros"] = make([]byte, len(data))
		}
		for how, b := range ways {
			if testing.Short() && how == "missing" != (i%3 == 0) {
				continue
			}
			reopen() // nothing of it is cached
			c := g.connect()
			if b == nil {
				require.NoError(t, os.Remove(file))
			} else {
				require.NoError(t, os.WriteFile(file, b, 0o644))
			}
			_, err := c.Exec(context.Background(), window)
			var pe *pgconn.PgError
			require.ErrorAs(t, err, &pe, "%s %s", how, file)
			want := map[string]string{"missing": "58P01", "cut": "XX001", "zeros": "XX001"}[how]
			require.Equal(t, want, pe.Code, "%s %s: %s", how, filepath.Base(file), pe.Message)
			require.Contains(t, pe.Message, filepath.Base(file))
			require.NotContains(t, pe.Message+pe.Detail+pe.Hint, root, "where the server keeps files is not for clients")
			require.Equal(t, [][]string{{"1"}}, rows(t, c, "SELECT 1"), "the session lives on")
			require.NoError(t, os.WriteFile(file, data, 0o644))
			require.Equal(t, whole, rows(t, c, window), "healed under the running server: %s %s", how, file)
		}
	}
}

// A long reading of changes ends when it is cancelled, by the client, by another session and by statement_timeout.
func TestTableChangesCancelled(t *testing.T) {
	g := start(t)
	c, other := g.connect(), g.connect()
	run(t, c, "CREATE TABLE f (id int PRIMARY KEY, v text)")
	run(t, c, "INSERT INTO f SELECT n, md5(n::text) FROM generate_series(1, 60000) n")
	run(t, c, "UPDATE f SET v = v || '!'")
	long := "SELECT count(*) FROM table_changes('f', NULL) a, table_changes('f', NULL) b WHERE a.v < b.v || a.v"
	run(t, c, "SET statement_timeout = '200ms'")
	e := sqlstate(t, c, long)
	require.Equal(t, [2]string{"57014", "canceling statement due to statement timeout"}, [2]string{e.Code, e.Message})
	run(t, c, "SET statement_timeout = 0")
	pid := c.PgConn().PID()
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), long)
		done <- err
	}()
	require.Eventually(t, func() bool {
		return len(rows(t, other, fmt.Sprintf("SELECT 1 FROM pg_stat_activity WHERE pid = %d AND state = 'active'", pid))) == 1
	}, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, [][]string{{"t"}}, rows(t, other, fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid)))
	require.ErrorContains(t, <-done, "canceling statement due to user request")
	require.Equal(t, [][]string{{"180000"}}, rows(t, c, "SELECT count(*) FROM table_changes('f', NULL)"))
}
