package test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// history is a table of four commits, with what names each of their states.
type changesKit struct {
	g *gateway
	c *pgx.Conn
	// seq[i], snap[i] and at[i] are the commit seq, the snapshot id and an instant after the i-th commit; 0 is the empty table.
	seq, snap []int64
	at        []string
}

// followed makes table f of format version and its history: three rows, an update and an insert in one commit, a delete, a no-op update with
// an insert.
func followed(t *testing.T, version int) *changesKit {
	t.Helper()
	k := &changesKit{g: start(t)}
	k.c = k.g.connect()
	k.mark(t)
	run(t, k.c, fmt.Sprintf("CREATE TABLE f (id int PRIMARY KEY, v text) WITH (format_version = %d)", version))
	k.seq[0] = number(t, k.c, "SELECT current_commit_seq()")
	for _, sql := range []string{
		"INSERT INTO f VALUES (1, 'a'), (2, 'b'), (3, 'c')",
		"BEGIN; UPDATE f SET v = 'B' WHERE id = 2; INSERT INTO f VALUES (4, 'd'); COMMIT",
		"DELETE FROM f WHERE id = 3",
		"BEGIN; UPDATE f SET v = 'a' WHERE id = 1; INSERT INTO f VALUES (5, 'e'); COMMIT",
	} {
		run(t, k.c, sql)
		k.mark(t)
	}
	return k
}

func (k *changesKit) mark(t *testing.T) {
	k.seq = append(k.seq, number(t, k.c, "SELECT current_commit_seq()"))
	k.snap = append(k.snap, 0)
	if n := len(k.seq) - 1; n > 0 {
		k.snap[n] = number(t, k.c, "SELECT _commit_snapshot_id FROM table_changes('f', NULL) ORDER BY _commit_seq DESC LIMIT 1")
	}
	k.at = append(k.at, rows(t, k.c, "SELECT clock_timestamp()")[0][0])
}

// number is the number that a query gives.
func number(t testing.TB, c *pgx.Conn, sql string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(rows(t, c, sql)[0][0], 10, 64)
	require.NoError(t, err, sql)
	return n
}

// step is what the i-th commit of followed changed: number, kind, id, value.
func (k *changesKit) steps(from, to int) [][]string {
	all := [][][]string{nil,
		{{"INSERT", "1", "a"}, {"INSERT", "2", "b"}, {"INSERT", "3", "c"}},
		{{"UPDATE_BEFORE", "2", "b"}, {"UPDATE_AFTER", "2", "B"}, {"INSERT", "4", "d"}},
		{{"DELETE", "3", "c"}},
		{{"INSERT", "5", "e"}},
	}
	out := [][]string{}
	for i := from + 1; i <= to; i++ {
		out = append(out, all[i]...)
	}
	return out
}

// changed reads a window with the arguments after the table's name.
func changed(t testing.TB, c *pgx.Conn, args string) [][]string {
	t.Helper()
	got := rows(t, c, "SELECT _change_type, id, v FROM table_changes('f', "+args+")")
	return append([][]string{}, got...)
}

// bounds are the ways to write the state after commit i.
func (k *changesKit) bounds(i int) []string {
	utc, bare := k.at[i], strings.TrimSuffix(k.at[i], "+00")
	forms := []string{
		fmt.Sprintf("'seq:%d'", k.seq[i]), fmt.Sprintf("'SEQ:%d'::text", k.seq[i]), fmt.Sprintf("' seq:%d '::varchar(30)", k.seq[i]), fmt.Sprintf("'seq:' || %d", k.seq[i]),
		"timestamptz '" + utc + "'", "timestamptz '" + utc + "' + interval '0 s'", "timestamp '" + bare + "'",
		"'" + utc + "'", "'" + bare + "'", "'" + strings.Replace(bare, " ", "T", 1) + "Z'", "'" + shifted(utc) + " Europe/Berlin'",
	}
	if i > 0 {
		forms = append(forms, fmt.Sprint(k.snap[i]), fmt.Sprintf("'%d'", k.snap[i]), fmt.Sprintf("'tag:t%d'", i), fmt.Sprintf("'branch:b%d'", i))
	} else {
		forms = append(forms, "NULL", "'earliest'", "'-infinity'", "'1999-01-01'", "NULL::bigint", "date '2001-01-01'")
	}
	if i == len(k.seq)-1 {
		forms = append(forms, "'now'", "'infinity'::timestamptz", "'9999-01-01 00:00+00'", "'tomorrow'", "now()", "now() + interval '1 year'", "'branch:main'", "NULL")
	}
	return forms
}

// shifted is an instant of UTC as a clock in Berlin shows it in winter and in summer.
func shifted(utc string) string {
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", utc)
	if err != nil {
		panic(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return at.In(berlin).Format("2006-01-02 15:04:05.999999")
}

// Every form of from with every form of to names the same window, whatever the form: (from, to], in order, without ORDER BY.
func TestTableChangesBounds(t *testing.T) {
	for _, version := range []int{2, 3} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) {
			k := followed(t, version)
			last := len(k.seq) - 1
			for i := 1; i <= last; i++ {
				run(t, k.c, fmt.Sprintf("SELECT skade.create_tag('f', 't%d', %d), skade.create_branch('f', 'b%d', %d)", i, k.snap[i], i, k.snap[i]))
			}
			for _, w := range [][2]int{{0, last}, {1, 3}, {2, last}, {0, 1}, {2, 2}} {
				from, to := w[0], w[1]
				fs, es := k.bounds(from), k.bounds(to)
				if w == [2]int{1, 3} && version == 2 { // every mix
					for _, f := range fs {
						for _, e := range es {
							require.Equal(t, k.steps(from, to), changed(t, k.c, f+", "+e), "%s, %s", f, e)
						}
					}
					continue
				}
				for i := range max(len(fs), len(es)) { // every form with another
					f, e := fs[i%len(fs)], es[(i+to)%len(es)]
					require.Equal(t, k.steps(from, to), changed(t, k.c, f+", "+e), "%s, %s", f, e)
				}
			}
			// to left out, NULL, and no argument but from by name.
			require.Equal(t, k.steps(1, last), changed(t, k.c, fmt.Sprint(k.snap[1])))
			require.Equal(t, k.steps(1, last), changed(t, k.c, fmt.Sprint(k.snap[1], ", NULL")))
			require.Equal(t, k.steps(1, 2), changed(t, k.c, fmt.Sprintf(`"to" => 'seq:%d', "from" => %d`, k.seq[2], k.snap[1])))
			require.Equal(t, k.steps(2, last), rows(t, k.c, fmt.Sprintf(`SELECT _change_type, id, v FROM skade.table_changes("from" => %d, tbl => 'public.f')`, k.snap[2])))
			// Both in the future, both before the table: nothing.
			require.Empty(t, changed(t, k.c, "now() + interval '1 h', now() + interval '2 h'"))
			require.Empty(t, changed(t, k.c, "'1999-01-01', '2000-01-01'"))
			require.Empty(t, changed(t, k.c, "NULL, 'seq:0'"))
		})
	}
}

// Timestamps are read as the session writes them, and typed ones mean the same in every session.
func TestTableChangesBoundsFollowTheSession(t *testing.T) {
	k := followed(t, 2)
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", k.at[1])
	require.NoError(t, err)
	for _, s := range []struct{ style, zone, layout string }{
		{"ISO, MDY", "America/New_York", "2006-01-02 15:04:05.999999"}, {"SQL, DMY", "Asia/Kolkata", "02/01/2006 15:04:05.999999"},
		{"SQL, MDY", "Asia/Tokyo", "01/02/2006 15:04:05.999999"}, {"German", "UTC", "02.01.2006 15:04:05.999999"},
		{"Postgres, MDY", "Australia/Sydney", "Mon Jan 2 15:04:05.999999 2006"},
	} {
		run(t, k.c, fmt.Sprintf("SET DateStyle = '%s'; SET TimeZone = '%s'", s.style, s.zone))
		loc, err := time.LoadLocation(s.zone)
		require.NoError(t, err)
		text := at.In(loc).Format(s.layout)
		for _, bound := range []string{"'" + text + "'", "'" + text + "'::timestamp", "'" + text + "'::timestamptz", "timestamptz '" + text + "' + interval '0'",
			"('" + text + "'::timestamp + interval '0')"} {
			require.Equal(t, k.steps(1, 4), changed(t, k.c, bound), "%s %s", s.style, bound)
			require.Equal(t, k.steps(0, 1), changed(t, k.c, "NULL, "+bound), "%s %s", s.style, bound)
		}
		rows, err := k.c.Query(context.Background(), "SELECT id FROM table_changes('f', $1::timestamptz)", at)
		require.NoError(t, err)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
		require.NoError(t, err)
		require.Equal(t, []int{2, 2, 4, 3, 5}, ids)
	}
	// A date is the beginning of its day in the session's zone.
	run(t, k.c, "RESET DateStyle; RESET TimeZone")
	require.Equal(t, k.steps(0, 4), changed(t, k.c, "current_date - 1, current_date + 1"))
	require.Equal(t, k.steps(0, 4), changed(t, k.c, "'yesterday', 'tomorrow'"))
}

// Bounds as parameters, typed and untyped, in text and in binary, described before they are known.
func TestTableChangesParameters(t *testing.T) {
	k := followed(t, 2)
	ctx := context.Background()
	at, err := time.Parse("2006-01-02 15:04:05.999999-07", k.at[1])
	require.NoError(t, err)
	for _, call := range []struct {
		sql  string
		args []any
	}{
		{"$1, $2", []any{fmt.Sprint("seq:", k.seq[1]), fmt.Sprint("seq:", k.seq[3])}},
		{"$1, $2", []any{fmt.Sprint(k.snap[1]), fmt.Sprint(k.snap[3])}},
		{"$1, $2", []any{k.at[1], k.at[3]}},
		{"$1::bigint, $2::bigint", []any{k.snap[1], k.snap[3]}},
		{"$1::timestamptz, $2::text", []any{at, fmt.Sprint("seq:", k.seq[3])}},
		{"'seq:' || $1::bigint, 'seq:' || $2::bigint", []any{k.seq[1], k.seq[3]}},
		{`"to" => $2, "from" => $1`, []any{fmt.Sprint("seq:", k.seq[1]), k.at[3]}},
		{"$1, $2, identifier => $3, shard => $4", []any{fmt.Sprint("seq:", k.seq[1]), fmt.Sprint("seq:", k.seq[3]), []string{"id"}, "0/1"}},
		{"$1, $2, identifier => $3, shard => $4", []any{fmt.Sprint("seq:", k.seq[1]), fmt.Sprint("seq:", k.seq[3]), nil, nil}},
	} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeSimpleProtocol} {
			rows, err := k.c.Query(ctx, "SELECT _change_type || id || v FROM table_changes('f', "+call.sql+")", append([]any{mode}, call.args...)...)
			require.NoError(t, err)
			got, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err, call.sql)
			require.Equal(t, []string{"UPDATE_BEFORE2b", "UPDATE_AFTER2B", "INSERT4d", "DELETE3c"}, got, "%s %v", call.sql, call.args)
		}
	}
	// NULL parameters are NULL bounds.
	var n int
	require.NoError(t, k.c.QueryRow(ctx, "SELECT count(*) FROM table_changes('f', $1, $2)", nil, nil).Scan(&n))
	require.Equal(t, 8, n)
	require.Equal(t, "42P18", sqlstate(t, k.c, "SELECT * FROM table_changes($1, NULL)", "f").Code)
	// A prepared window goes on with the table.
	_, err = k.c.Prepare(ctx, "rest", "SELECT count(*) FROM table_changes('f', $1)")
	require.NoError(t, err)
	for i := range 3 {
		run(t, k.c, fmt.Sprintf("INSERT INTO f VALUES (%d, 'x')", 100+i))
		require.NoError(t, k.c.QueryRow(ctx, "rest", fmt.Sprint("seq:", k.seq[4])).Scan(&n))
		require.Equal(t, i+1, n)
	}
}

// L6 in SQL: from the place of any row the rest of the same sequence follows, and up to it what came before.
func TestTableChangesResumesAtEveryRow(t *testing.T) {
	for _, version := range []int{2, 3} {
		k := followed(t, version)
		run(t, k.c, "BEGIN; UPDATE f SET v = v || '!' WHERE id < 5; DELETE FROM f WHERE id = 5; INSERT INTO f SELECT n, 'n' FROM generate_series(10, 30) n; COMMIT")
		// One commit of two snapshots: the second's ordinal is 1.
		const columns = "_commit_seq, _change_ordinal, _change_row, _change_type, id, v"
		all := rows(t, k.c, "SELECT "+columns+" FROM table_changes('f', NULL)")
		require.Greater(t, len(all), 30)
		for i, r := range all {
			place := fmt.Sprintf("'seq:%s/%s/%s'", r[0], r[1], r[2])
			require.Equal(t, append([][]string{}, all[i+1:]...), append([][]string{}, rows(t, k.c, "SELECT "+columns+" FROM table_changes('f', "+place+")")...), place)
			require.Equal(t, all[:i+1], rows(t, k.c, "SELECT "+columns+" FROM table_changes('f', NULL, "+place+")"), place)
			if j := i + 4; j < len(all) {
				end := fmt.Sprintf("'seq:%s/%s/%s'", all[j][0], all[j][1], all[j][2])
				require.Equal(t, all[i+1:j+1], rows(t, k.c, "SELECT "+columns+" FROM table_changes('f', "+place+", "+end+")"))
				require.Equal(t, "22023", sqlstate(t, k.c, "SELECT * FROM table_changes('f', "+end+", "+place+")").Code)
			}
		}
		// A row behind the last of its commit is the end of the commit.
		require.Equal(t, k.steps(1, 2), changed(t, k.c, fmt.Sprintf("'seq:%d/0/99', 'seq:%d/7/0'", k.seq[1], k.seq[2])))
		// Rows are numbered within their commit, whatever the window and the filter.
		require.Equal(t, [][]string{{"1"}}, rows(t, k.c, fmt.Sprintf("SELECT _change_row FROM table_changes('f', 'seq:%d/0/0', 'seq:%d') WHERE _change_type = 'UPDATE_AFTER'", k.seq[2], k.seq[2])))
	}
}

// Empty windows: from = to in every form, a table without a snapshot, a window of commits that changed no row.
func TestTableChangesOfNothing(t *testing.T) {
	k := followed(t, 2)
	for _, f := range []string{"'now'", "'earliest', 'seq:0'", "NULL, '1999-01-01'", fmt.Sprintf("'seq:%d', 'seq:%d'", k.seq[2], k.seq[2]), fmt.Sprintf("%d, 'seq:%d'", k.snap[2], k.seq[2]),
		fmt.Sprintf("'%s', '%s'", k.at[2], k.at[2]), fmt.Sprintf("'seq:%d/0/2', 'seq:%d'", k.seq[1], k.seq[1]), "'branch:main', 'branch:main'", "'infinity', 'infinity'"} {
		require.Empty(t, changed(t, k.c, f), f)
	}
	run(t, k.c, "CREATE TABLE bare (id int PRIMARY KEY, n numeric(10,2))")
	for _, args := range []string{"NULL", "NULL, NULL", "'earliest', 'now'", "'seq:0'", "now(), now()", "'branch:main'"} {
		if args == "'branch:main'" {
			require.Equal(t, "42704", sqlstate(t, k.c, "SELECT * FROM table_changes('bare', 'branch:main')").Code)
			continue
		}
		require.Empty(t, rows(t, k.c, "SELECT * FROM table_changes('bare', "+args+")"), args)
		require.Empty(t, rows(t, k.c, "SELECT * FROM table_changes_net('bare', "+args+")"), args)
	}
	run(t, k.c, "UPDATE f SET v = v; DELETE FROM f WHERE id = 77; VACUUM FULL f; COMMENT ON TABLE f IS 'x'")
	require.Empty(t, changed(t, k.c, fmt.Sprintf("'seq:%d'", k.seq[4])))
}

// identifier => pairs by other columns than the key's; a column that is not unique leaves DELETE and INSERT.
func TestTableChangesIdentifier(t *testing.T) {
	g := start(t)
	c := g.connect()
	run(t, c, "CREATE TABLE p (a int, b text, c int)")
	run(t, c, "INSERT INTO p VALUES (1, 'x', 1), (2, 'x', 2), (3, 'y', 3), (NULL, 'z', 4), (4, NULL, 5)")
	run(t, c, "UPDATE p SET c = c + 10")
	from := fmt.Sprintf("'seq:%d'", number(t, c, "SELECT current_commit_seq() - 1"))
	read := func(identifier string) [][]string {
		return rows(t, c, "SELECT _change_type, a, b, c FROM table_changes('p', "+from+", identifier => "+identifier+") ORDER BY c % 10, c")
	}
	pair := func(kinds ...string) [][]string {
		keys := [][]string{{"1", "x"}, {"2", "x"}, {"3", "y"}, {"∅", "z"}, {"4", "∅"}}
		var out [][]string
		for i, k := range keys {
			before, after, _ := strings.Cut(kinds[i], "/")
			out = append(out, []string{before, k[0], k[1], strconv.Itoa(i + 1)}, []string{after, k[0], k[1], strconv.Itoa(i + 11)})
		}
		return out
	}
	const upd, two = "UPDATE_BEFORE/UPDATE_AFTER", "DELETE/INSERT"
	require.Equal(t, pair(two, two, two, two, two), read("NULL"))
	require.Equal(t, pair(upd, upd, upd, upd, upd), read("ARRAY['a']"))
	require.Equal(t, pair(upd, upd, upd, upd, upd), read("'{b,a}'"))
	require.Equal(t, pair(two, two, upd, upd, upd), read("ARRAY['b']"), "x is twice on each side")
	require.Equal(t, pair(two, two, two, two, two), read("ARRAY['c']"))
	require.Equal(t, pair(upd, upd, upd, upd, upd), read("ARRAY['a']::text[]"))
	// An identifier of a keyed table takes the place of its key: an update of the key is paired by another column.
	run(t, c, "CREATE TABLE k (id int PRIMARY KEY, name text); INSERT INTO k VALUES (1, 'one'), (2, 'two')")
	run(t, c, "UPDATE k SET id = id + 10")
	from = fmt.Sprintf("'seq:%d'", number(t, c, "SELECT current_commit_seq() - 1"))
	require.Equal(t, [][]string{{"DELETE", "1"}, {"DELETE", "2"}, {"INSERT", "11"}, {"INSERT", "12"}}, rows(t, c, "SELECT _change_type, id FROM table_changes('k', "+from+")"))
	require.Equal(t, [][]string{{"UPDATE_BEFORE", "1"}, {"UPDATE_AFTER", "11"}, {"UPDATE_BEFORE", "2"}, {"UPDATE_AFTER", "12"}},
		rows(t, c, "SELECT _change_type, id FROM table_changes('k', "+from+", identifier => ARRAY['name'])"))
}

// The shards of a window are disjoint and union to it; a key's changes are all in one shard.
func TestTableChangesShards(t *testing.T) {
	for _, version := range []int{2, 3} {
		g := start(t)
		c := g.connect()
		run(t, c, fmt.Sprintf("CREATE TABLE s (id int PRIMARY KEY, v text) WITH (format_version = %d)", version))
		run(t, c, fmt.Sprintf("CREATE TABLE l (id int, v text) WITH (format_version = %d)", version))
		for _, table := range []string{"s", "l"} {
			run(t, c, "INSERT INTO "+table+" SELECT n, 'v' || n % 7 FROM generate_series(1, 300) n")
			run(t, c, "UPDATE "+table+" SET v = v || '!' WHERE id % 3 = 0")
			run(t, c, "DELETE FROM "+table+" WHERE id % 5 = 0")
			all := rows(t, c, "SELECT id, v, sign FROM (SELECT id, v, CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END AS sign, _commit_seq, _change_row FROM table_changes('"+table+"', NULL)) x ORDER BY _commit_seq, _change_row")
			for _, n := range []int{1, 2, 3, 16} {
				var parts []string
				for i := range n {
					parts = append(parts, fmt.Sprintf("SELECT %d AS shard, * FROM table_changes('%s', NULL, shard => '%d/%d')", i, table, i, n))
				}
				union := strings.Join(parts, " UNION ALL ")
				require.Equal(t, all, rows(t, c, "SELECT id, v, CASE WHEN _change_type IN ('INSERT', 'UPDATE_AFTER') THEN 1 ELSE -1 END FROM ("+union+") x ORDER BY _commit_seq, _change_row"))
				if table == "s" {
					require.Equal(t, [][]string{{"0"}}, rows(t, c, "SELECT count(*) FROM (SELECT id FROM ("+union+") x GROUP BY id HAVING count(DISTINCT shard) > 1) y"))
				}
				if n == 3 {
					require.Equal(t, [][]string{{"3"}}, rows(t, c, "SELECT count(DISTINCT shard) FROM ("+union+") x"))
				}
			}
		}
	}
}
