package pgsql

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParameterInference compares parameter types, result columns and errors of prepared statements with PostgreSQL 15's.
func TestParameterInference(t *testing.T) {
	f := newFixture()
	for _, a := range answers(t, "testdata/params.jsonl") {
		sql := a.SQL[len("PARAMS "):]
		stmts, err := Parse(sql)
		require.NoError(t, err, sql)
		q, err := Analyze(stmts[0], f, nil)
		if a.Err != nil {
			if diff := compareError(a, err); diff != "" {
				t.Errorf("%s\n\t%s", sql, diff)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s\n\t%v %s", sql, err, causeOf(err))
			continue
		}
		var got []uint32
		for _, p := range q.Params {
			got = append(got, p.OID)
		}
		if len(got) != len(a.Params) || !sameTypes(got, a.Params) {
			t.Errorf("%s\n\tparameters %v, want %v", sql, got, a.Params)
			continue
		}
		for i, c := range q.Columns {
			if i >= len(a.Types) || c.Type != a.Types[i] || c.Name != a.Names[i] {
				t.Errorf("%s\n\tcolumn %d is %s %d, want %v %v", sql, i+1, c.Name, c.Type, a.Names, a.Types)
			}
		}
	}
}

// TestGivenParameterTypes: types of the client win, and may differ from what would be inferred.
func TestGivenParameterTypes(t *testing.T) {
	f := newFixture()
	stmts, err := Parse("select a from t where a = $1 and b = $2")
	require.NoError(t, err)
	q, err := Analyze(stmts[0], f, []uint32{20, 0})
	require.NoError(t, err)
	require.Equal(t, []Param{{20}, {25}}, q.Params)
	stmts, err = Parse("select 1")
	require.NoError(t, err)
	q, err = Analyze(stmts[0], f, []uint32{20})
	require.NoError(t, err)
	require.Equal(t, []Param{{20}}, q.Params)
	require.Empty(t, q.Binds)
	// $2 alone: DuckDB's parameters are numbered without gaps.
	stmts, err = Parse("select $2::int, $2::int + 1")
	require.NoError(t, err)
	q, err = Analyze(stmts[0], f, []uint32{25, 0})
	require.NoError(t, err)
	require.Equal(t, []Bind{{Param: 2, Type: 23}}, q.Binds)
	require.Equal(t, "SELECT CAST($1 AS INTEGER) AS c1, (CAST($1 AS INTEGER) + 1) AS c2", q.Render(f.fromItem))
}
