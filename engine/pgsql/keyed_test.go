package pgsql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyedSelect(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]bool{
		"select a, b from t where a = 1": true, "select * from t where a = $1": true, "select b from t where 1 = a limit 1": true, "select b from t where a in (5)": true,
		"select v from k2 where b = 'x' and a = 1": true, "select b from table_at('t', 'seq:1') where a = 1": true,
		"select b from t where a in (1, $1, null)": true, "select b from t where a = any($1)": true, "select b from t where a = any('{1,2}')": true,
		"select b from t where a = any(array[1, $1])": true, "select b from t where a = $1::bigint": true, "select b from t where a = 1.5": true, "select b from t where a = 2::float8": true,
		"select v from k2 where a = 1 and b in ('x', 'y')": true, "select v from k2 where (a, b) in ((1, 'x'), (2, 'y'))": true, "select v from k2 where (a, b) = (1, 'x')": true,
		"select v from k2 where a = 1 and b = 'x' or a = 2 and b = 'y'": true, "select b from t where a = 1 or a in (2, 3)": true, "select b from t where a = 1 + 1": true,
		"select 1, 'x' as k, $2::date, null, b from t where a = $1": true, "select from t where a = 1": true, "select b from t where a in (1, 2) order by a desc limit $1 offset 2": true,
		"select b from t x where x.a = 1 for update": false, "select v from k2 where a = 1": false, "select b from t where a > 1": false, "select count(*) from t where a = 1": false,
		"select a + 1 from t where a = 1": false, "select b from t where a = 1 and c = 2": false, "select b from t, u where t.a = 1": false, "select b from t where a = 1 or c = 2": false,
		"select distinct b from t where a = 1": false, "select b from v where a = 1": false, "select b from t where a = c": false, "select b from t where a = 1 and a = 2": false,
		"select b from t where a = (random() * 10)::int": false, "select b from t where not a = 1": false, "select b from t where a = 1 or (a = 2 and c = 3)": false,
		"select b from t where a not in (1, 2)": false, "select b from t where a <> all($1)": false, "select b from t where (a = 1) is not true": false,
		"select v from k2 where (a = 1 or b = 'x') and a = 2": false, "select b from t where a in (select a from u)": false, "select b from t where a::text = '1'": false,
	} {
		q := analyzed(t, f, sql)
		require.Equal(t, want, q.Keyed != nil, sql)
	}
	k := analyzed(t, f, "select v, 7, a from k2 where b = 'x' and a = $1 order by b desc, 2, a desc").Keyed
	require.Equal(t, []int{2, 0, 0}, []int{k.Output[0].Column, k.Output[1].Column, k.Output[2].Column})
	require.Equal(t, "7", k.Output[1].Value.Text)
	require.Equal(t, []int{1, 0}, k.Order)
	require.True(t, k.Desc && !k.Unordered)
	require.True(t, analyzed(t, f, "select v from k2 where b = 'x' and a = 1 order by v + 1").Keyed.Unordered)
	require.True(t, analyzed(t, f, "select v from k2 where b = 'x' and a = 1 order by a, b desc").Keyed.Unordered)
	require.Equal(t, "seq:1", analyzed(t, f, "select b from table_at('t', 'seq:1') where a = 1").Keyed.AsOf.Text)
}

// A disjunction is a predicate over the columns that all its arms give values to.
func TestKeyPredicates(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]string{
		"select 1 from k2 where (a, b) in ((1, 'x'), (2, 'y'))":                               "[0 1] 1 x;2 y",
		"select 1 from k2 where a = 1 or a in (2, 3) and v > 5":                               "[0] 1;2;3",
		"select 1 from k2 where b = 'x' and a in (1, 2) or b = 'y' and a = 3":                 "[0 1] 1 x;2 x;3 y",
		"select 1 from k2 where a = 1 or b = 'x'":                                             "",
		"select 1 from k2 where a = 1 or a > 3":                                               "",
		"select count(*) from k2 k, t where (k.a = 1 and t.a = 7) or (t.a = 8 and k.a = 2)":   "[0] 1;2",
		"select 1 from (select a as x, b as y from k2) s where (y, x) in (('x', 1), ('y',2))": "[0 1] 1 x;2 y",
	} {
		var got []string
		for _, p := range analyzed(t, f, sql).Relations[0].Preds {
			if p.Op != "keys" {
				continue
			}
			var rows []string
			for _, r := range p.Rows {
				var vals []string
				for _, v := range r {
					vals = append(vals, v.Text)
				}
				rows = append(rows, strings.Join(vals, " "))
			}
			got = append(got, fmt.Sprint(p.Columns)+" "+strings.Join(rows, ";"))
		}
		require.Equal(t, want, strings.Join(got, "|"), sql)
	}
}
