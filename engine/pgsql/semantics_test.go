package pgsql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// knownDifferences are statements of testdata/semantics.sql whose answer differs from PostgreSQL's, with the reason.
var knownDifferences = map[string]string{
	"select t.a, t from t where a = 1": "a whole row has type record, not the table's row type: there are no row types in skade-pg",
	"select $1a":                       "the parser of PostgreSQL 17 in pg_query takes $1a for $1 AS a",
}

// TestSemantics runs every statement of testdata/semantics.sql on DuckDB and compares names, types, rows and errors with PostgreSQL 15's.
func TestSemantics(t *testing.T) {
	f, c := newFixture(), testConn(t)
	agree, known := 0, 0
	all := answers(t, "testdata/semantics.jsonl")
	for _, a := range all {
		diff := compare(t, f, a, func(q *Query) ([][]*string, error) { return run(t, c, f, q) })
		reason, excepted := knownDifferences[a.SQL]
		switch {
		case diff == "" && excepted:
			t.Errorf("agrees now, remove its exception: %s", a.SQL)
		case diff == "":
			agree++
		case excepted:
			known++
			t.Logf("known: %s (%s)", a.SQL, reason)
		default:
			t.Errorf("%s\n\t%s", a.SQL, strings.ReplaceAll(diff, "\n", "\n\t"))
		}
	}
	t.Logf("%d of %d statements agree with PostgreSQL 15, %d known differences", agree, len(all), known)
}

func compare(t *testing.T, f *fixture, a answer, exec func(*Query) ([][]*string, error)) string {
	t.Helper()
	q, rows, err := analyzeAndRun(f, a.SQL, exec)
	if a.Err != nil {
		return compareError(a, err)
	}
	if err != nil {
		return fmt.Sprintf("error %v %s\nsql %s", err, causeOf(err), sqlOf(f, q))
	}
	for i, col := range q.Columns {
		if i >= len(a.Names) || col.Name != a.Names[i] || col.Type != a.Types[i] || col.Mod != a.Mods[i] {
			want := "nothing"
			if i < len(a.Names) {
				want = fmt.Sprintf("%s %d mod %d", a.Names[i], a.Types[i], a.Mods[i])
			}
			return fmt.Sprintf("column %d is %s %d mod %d, want %s", i+1, col.Name, col.Type, col.Mod, want)
		}
		if (col.TableOID != 0) != a.Tables[i] {
			return fmt.Sprintf("column %d: table OID %d, want one: %v", i+1, col.TableOID, a.Tables[i])
		}
	}
	if got, want := rowText(rows), rowText(a.Rows); got != want {
		return fmt.Sprintf("got  %s\nwant %s\nsql %s", got, want, sqlOf(f, q))
	}
	return ""
}

func causeOf(err error) string {
	if e := pgerr.As(err); e != nil && e.Cause != nil {
		return e.Cause.Error()
	}
	return ""
}

func sqlOf(f *fixture, q *Query) string {
	if q == nil {
		return ""
	}
	return q.Render(f.fromItem)
}

func analyzeAndRun(f *fixture, sql string, exec func(*Query) ([][]*string, error)) (*Query, [][]*string, error) {
	stmts, err := Parse(sql)
	if err != nil {
		return nil, nil, err
	}
	if len(stmts) == 0 {
		return &Query{}, nil, nil
	}
	q, err := Analyze(stmts[0], f, nil)
	if err != nil {
		return nil, nil, err
	}
	rows, err := exec(q)
	return q, rows, err
}

func compareError(a answer, err error) string {
	e := pgerr.As(err)
	if e == nil {
		return fmt.Sprintf("no error (%v), want %s %s", err, a.Err.Code, a.Err.Message)
	}
	if string(e.Code) != a.Err.Code || e.Message != a.Err.Message || e.Position != a.Err.Position || e.Hint != a.Err.Hint {
		return fmt.Sprintf("got  %s %s at %d hint %q %s\nwant %s %s at %d hint %q", e.Code, e.Message, e.Position, e.Hint, causeOf(err), a.Err.Code, a.Err.Message, a.Err.Position, a.Err.Hint)
	}
	return ""
}

func rowText(rows [][]*string) string {
	var out []string
	for _, r := range rows {
		var parts []string
		for _, v := range r {
			if v == nil {
				parts = append(parts, "NULL")
			} else {
				parts = append(parts, *v)
			}
		}
		out = append(out, strings.Join(parts, "|"))
	}
	return strings.Join(out, " / ")
}

func TestMain(m *testing.M) {
	m.Run()
}

var _ = require.NoError
