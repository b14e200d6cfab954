package pgsql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func analyzed(t *testing.T, f *fixture, sql string) *Query {
	t.Helper()
	stmts, err := Parse(sql)
	require.NoError(t, err, sql)
	q, err := Analyze(stmts[0], f, nil)
	require.NoError(t, err, sql)
	return q
}

// rowsFixture serves Rows relations from a fixed FROM item.
func rowsRun(t *testing.T, f *fixture, q *Query, rows string) string {
	t.Helper()
	c := testConn(t)
	plain := *f
	text := q.Render(func(i int, use *RelUse) string {
		if use.Relation.Kind == Rows {
			cols := ""
			for n, col := range use.Columns {
				if n > 0 {
					cols += ", "
				}
				cols += "c" + itoa(int64(col+1))
			}
			if cols == "" {
				cols = "1"
			}
			return "(SELECT " + cols + " FROM " + rows + ")"
		}
		return plain.fromItem(i, use)
	})
	out, err := runText(c, text, q)
	require.NoError(t, err, text)
	return rowText(out)
}

func TestInsert(t *testing.T) {
	f := newFixture()
	f.rels["public.d"] = &Relation{Kind: Table, Schema: "public", Name: "d", OID: 1, Key: []int{0}, Constraint: "d_pkey", Columns: []RelColumn{
		{Name: "id", Type: 23, Mod: -1, NotNull: true}, {Name: "s", Type: 25, Mod: -1, Default: "'dflt' || 1"}, {Name: "n", Type: 1700, Mod: -1}, {Name: "v", Type: 1043, Mod: 7},
		{Name: "c", Type: 1042, Mod: 9}, {Name: "at", Type: 1082, Mod: -1, Default: "current_date"}}}
	for sql, want := range map[string]string{
		"insert into t values (1, 'x', 2), (3, null, 1+1)":                                 "1|x|2 / 3|NULL|2",
		"insert into t (c, a) values (5, 6)":                                               "6|NULL|5",
		"insert into t (c, a) values (default, 6)":                                         "6|NULL|NULL",
		"insert into t select a + 10, b from t where a < 3":                                "11|one|NULL / 12|two|NULL",
		"insert into t (a, b) select 7, 'lit'":                                             "7|lit|NULL",
		"insert into t (b, a) select distinct s, a from u where a = 1":                     "1|x|NULL",
		"insert into t (a, c) select a, c from t union all select 9, 9 order by 1 limit 2": "1|NULL|10 / 2|NULL|20",
		"insert into t (a) values ('5')":                                                   "5|NULL|NULL",
		"insert into t (a, b) values (1.6, 12)":                                            "2|12|NULL",
		"with w as (select 1 as x) insert into t (a) select x from w":                      "1|NULL|NULL",
		"insert into d (id, n, v, c) values (1, 1.5, 'ab', 'cd')":                          "1|dflt1|1.500000000|ab|cd   ",
		"insert into d (id, s, at) values (1, default, '2024-01-01')":                      "1|dflt1|NULL|NULL|NULL",
		"insert into d (id, at) select 2, date '2024-02-02'":                               "2|dflt1|NULL|NULL|NULL",
		"insert into u values (1, 1.23456, 'abc')":                                         "1|1.235|abc",
	} {
		q := analyzed(t, f, sql)
		require.NotNil(t, q.Insert, sql)
		got, err := run(t, testConn(t), f, q)
		require.NoError(t, err, sql+"\n"+q.Render(f.fromItem))
		if len(q.Insert.Columns) == 6 {
			for i := range got {
				require.NotNil(t, got[i][5])
				got[i] = got[i][:5]
			}
		}
		require.Equal(t, want, rowText(got), sql+"\n"+q.Render(f.fromItem))
	}
	q := analyzed(t, f, "insert into d (id) values (1)")
	require.Equal(t, 1, q.Insert.Values)
	require.Nil(t, q.Insert.Rows, "a computed default is not a constant")
	q = analyzed(t, f, "insert into t values ($1, $2, $3), (1, 'x', null)")
	require.Len(t, q.Insert.Rows, 2)
	require.Equal(t, 1, q.Insert.Rows[0][0].Param)
	require.Equal(t, "x", q.Insert.Rows[1][1].Text)
	require.True(t, q.Insert.Rows[1][2].Null)
	q = analyzed(t, f, "insert into u values ($1, $2, $3)")
	require.Equal(t, int32(9), q.Insert.Rows[0][2].Mod, "the length check is still due")
	require.Equal(t, 3, q.Insert.Rows[0][2].Param)
}

func TestOnConflict(t *testing.T) {
	f := newFixture()
	q := analyzed(t, f, "insert into t as x (a, b, c) values (1, 'n', 5) on conflict (a) do update set b = excluded.b || x.b, c = x.c + 1 where x.c < 20 returning a, b || '!', x.c as z")
	oc := q.Insert.OnConflict
	require.True(t, oc.DoUpdate)
	require.Equal(t, []int{1, 2}, oc.Set)
	// existing row, proposed row
	pairs := "(VALUES (1, 'old', 10, 1, 'new', 5), (2, 'two', 20, 2, 'n2', 6)) x(c1, c2, c3, c4, c5, c6)"
	require.Equal(t, "1|newold|11|t / 2|n2two|21|f", rowsRun(t, f, oc.Update, pairs))
	rows := "(VALUES (1, 'newold', 11)) x(c1, c2, c3)"
	require.Equal(t, "1|newold!|11", rowsRun(t, f, q.Insert.Returning, rows))
	require.Equal(t, []string{"a", "?column?", "z"}, []string{q.Columns[0].Name, q.Columns[1].Name, q.Columns[2].Name})
	require.NotZero(t, q.Columns[0].TableOID)
	q = analyzed(t, f, "insert into k2 values (1, 'a', 2) on conflict (b, a) do nothing")
	require.False(t, q.Insert.OnConflict.DoUpdate)
	q = analyzed(t, f, "insert into k2 values (1, 'a', $1) on conflict on constraint k2_pkey do update set (v, b) = (excluded.v + $2, 'y') returning *")
	require.Len(t, q.Params, 2)
	require.Equal(t, []Bind{{Param: 2, Type: 23}}, q.Insert.OnConflict.Update.Binds)
}

func TestUpdateDelete(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]string{
		"update t set b = 'x', c = c + 1 where a = 2":                                 "file|1|2|x|21",
		"update t set c = default where a > 3":                                        "file|3|4|four|NULL",
		"update t x set b = u.s from u where u.a = x.a and x.a = 1":                   "file|0|1|x|10",
		"update t set (b, c) = ('p', 7) where a = 1":                                  "file|0|1|p|7",
		"update t set (b, c) = (select s, 9 from u where u.a = t.a) where a = 1":      "file|0|1|x|9",
		"update t set c = (select count(*) from u where u.a = t.a) where a = 2":       "file|1|2|two|2",
		"update t set c = c * 2 from u where u.a = t.a and t.a = 2 returning t.c":     "file|1|2|two|40|40",
		"update t set c = 5 from u where u.a = t.a and u.s = 'x' returning *":         "file|0|1|one|5|1|one|5|1|1.500|x",
		"update t set b = 'q' where a = 1 returning a, upper(b), c + 1 as d":          "file|0|1|q|10|1|Q|11",
		"with w as (select 3 as k) update t set b = 'w' where a in (select k from w)": "file|2|3|w|30",
		"delete from t where a = 3":                                                   "file|2",
		"delete from t using u where u.a = t.a and u.a = 2":                           "file|1",
		"delete from t where b is null returning a, c":                                "file|2|3|30",
		"delete from t where a in (select a from u) and c > 10 returning t.*":         "file|1|2|two|20",
	} {
		q := analyzed(t, f, sql)
		got, err := runDML(t, f, q)
		require.NoError(t, err, sql+"\n"+q.Render(f.fromItem))
		require.Equal(t, want, rowText(got), sql+"\n"+q.Render(f.fromItem))
	}
	q := analyzed(t, f, "update t set b = 'x' where a = 2 returning *")
	require.Equal(t, []int{1}, q.Update.Set)
	require.True(t, q.Relations[q.Update.Rel].Position)
	require.Len(t, q.Columns, 3)
	q = analyzed(t, f, "delete from t where a = $1")
	require.Equal(t, 1, q.Relations[q.Delete.Rel].Preds[0].Values[0].Param)
	require.Nil(t, q.Columns)
	q = analyzed(t, f, "delete from t")
	require.True(t, q.Delete.All)
}
