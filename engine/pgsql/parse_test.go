package pgsql

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func TestParseSplits(t *testing.T) {
	stmts, err := Parse(" select 1 ; /* c */ ;; insert into t values (1) -- x\n; é")
	require.Error(t, err)
	require.Nil(t, stmts)
	stmts, err = Parse(" select 1 ; /* c */ ;; insert into t values (1) -- x\n;")
	require.NoError(t, err)
	require.Len(t, stmts, 2)
	require.Equal(t, "select 1", stmts[0].Text)
	require.Equal(t, InsertStmt, stmts[1].Kind)
	stmts, err = Parse(" -- nothing\n")
	require.NoError(t, err)
	require.Empty(t, stmts)
	_, err = Parse("select 1\x00")
	require.Equal(t, pgerr.CharacterNotInRepertoire, pgerr.CodeOf(err))
	_, err = Parse("select '\xff'")
	require.Equal(t, pgerr.CharacterNotInRepertoire, pgerr.CodeOf(err))
}

// TestDepth: what would overflow the parser's C stack is refused before it (S3).
func TestDepth(t *testing.T) {
	for _, sql := range []string{
		"select 1" + strings.Repeat("+1", 100000), "select " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000),
		strings.Repeat("select 1 union all ", 50000) + "select 1", "select " + strings.Repeat("- ", 50000) + "1", "select 1" + strings.Repeat("::int", 50000),
		"select * from t" + strings.Repeat(" cross join t", 50000), "select " + strings.Repeat("not ", 50000) + "true", "select 1" + strings.Repeat(" is null", 50000),
		"select " + strings.Repeat("case when true then ", 20000) + "1" + strings.Repeat(" end", 20000), "select " + strings.Repeat("array[", 20000) + "1" + strings.Repeat("]", 20000),
		"select " + strings.Repeat("f(", 20000) + strings.Repeat(")", 20000), "select " + strings.Repeat("a.", 100000) + "b",
	} {
		_ = everything(newFixture(), sql)
	}
	require.NoError(t, everything(newFixture(), "select * from t where "+strings.Repeat("a = 1 or ", 20000)+"a = 2"))
	require.NoError(t, everything(newFixture(), "insert into t values "+strings.Repeat("(1, 'x', 1 + 1), ", 20000)+"(1, 'x', 2)"))
}

func TestAsOf(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]string{
		"select a from t for version as of 5":                                                 "table_at public.t alias t arg 5",
		"select t.a from t FOR SYSTEM_TIME AS OF '2024-01-01' where a > 0":                    "table_at public.t alias t arg 2024-01-01",
		"select x.a from public.t for timestamp as of timestamptz '2024-01-01 00:00+00' as x": "table_at public.t alias x arg 2024-01-01 00:00:00+00",
		"select x.a from t for version as of 'seq:12' x join u on x.a = u.a":                  "table_at public.t alias x arg seq:12",
		`select "X" from "Mixed" for version as of -7`:                                        "table_at public.Mixed alias Mixed arg -7",
	} {
		stmts, err := Parse(sql)
		require.NoError(t, err, sql)
		q, err := Analyze(stmts[0], f, nil)
		require.NoError(t, err, sql)
		r := q.Relations[0]
		require.NotNil(t, r.Func, sql)
		require.Equal(t, want, r.Func.Name+" "+r.Relation.Schema+"."+r.Relation.Name+" alias "+r.Alias+" arg "+r.Args[1].Text, sql)
	}
	// Positions are those of the text that was sent.
	for sql, want := range map[string]string{
		"select nosuch from t for version as of 5":         "42703 column \"nosuch\" does not exist @8",
		"select a from t for version as of 5 where nosuch": "42703 column \"nosuch\" does not exist @43",
		"select a from é for version as of 5":              "42P01 relation \"é\" does not exist @15",
		"select a from t for version as of 5 where ) ":     "42601 syntax error at or near \")\" @43",
	} {
		require.Equal(t, want, errorLine(everything(f, sql)), sql)
	}
	stmts, err := Parse("select 'from t for version as of 5' as of_")
	require.NoError(t, err)
	require.Nil(t, stmts[0].src.edits)
}

func TestPredicates(t *testing.T) {
	f := newFixture()
	for sql, want := range map[string]string{
		"select 1 from t where a = 1 and c > $1 and b like 'x'":                                               "0 = 1;2 > $1",
		"select 1 from t where 5 >= a and (a = 1 or c = 2)":                                                   "0 <= 5",
		"select 1 from t where a in (1, 2) and b is not null":                                                 "0 in 1,2;1 isnotnull ",
		"select 1 from t where a = any($1)":                                                                   "0 any $1",
		"select 1 from t where a between 1 and 3":                                                             "0 >= 1;0 <= 3",
		"select 1 from (select a as x, c from t) s where x = 4":                                               "0 = 4",
		"select 1 from (select a as x from t limit 1) s where x = 4":                                          "",
		"select 1 from (select a, count(*) from t group by a) s where a = 4":                                  "",
		"select 1 from v where a = 4":                                                                         "0 < 4;0 = 4",
		"select 1 from t left join u on u.a = t.a and t.c = 5":                                                "",
		"select 1 from t left join u on u.a = t.a where t.c = 5":                                              "2 = 5",
		"select 1 from t where not (a = 1)":                                                                   "",
		"select 1 from t where b = 'x' and a = c":                                                             "1 = x",
		"with w as (select a as x, c from t) select 1 from w where x = 4":                                     "0 = 4",
		"with w as (select a as x, c from t), z as (select * from w where c = 1) select 1 from z where x = 4": "2 = 1;0 = 4",
		"with w as (select a as x, c from t) select 1 from w, w y where w.x = 4":                              "",
		"with w as (select a, random() from t) select 1 from w where a = 4":                                   "",
		"with w as (select a from t limit 1) select 1 from w where a = 4":                                     "",
	} {
		q := analyzed(t, f, sql)
		var got []string
		for _, p := range q.Relations[0].Preds {
			var vals []string
			for _, v := range p.Values {
				if v.Param > 0 {
					vals = append(vals, "$"+itoa(int64(v.Param)))
				} else {
					vals = append(vals, v.Text)
				}
			}
			got = append(got, itoa(int64(p.Column))+" "+p.Op+" "+strings.Join(vals, ","))
		}
		require.Equal(t, want, strings.Join(got, ";"), sql)
	}
}

// FuzzAnalyze: no text makes Parse, Analyze or Utility panic or answer with an internal error.
func FuzzAnalyze(f *testing.F) {
	for _, name := range []string{"testdata/semantics.sql", "testdata/params.sql", "testdata/hostile.sql"} {
		file, err := os.Open(name)
		require.NoError(f, err)
		in := bufio.NewScanner(file)
		for in.Scan() {
			f.Add(strings.TrimPrefix(in.Text(), "PARAMS "))
		}
		file.Close()
	}
	fx := newFixture()
	f.Fuzz(func(t *testing.T, sql string) {
		if e := pgerr.As(everything(fx, sql)); e != nil && e.Code == pgerr.InternalError {
			t.Fatalf("%q: %v %v", sql, e, e.Cause)
		}
	})
}
