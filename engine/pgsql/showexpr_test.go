package pgsql

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// TestShownExpr compares with what PostgreSQL 15's pg_get_expr gives, plain and pretty.
func TestShownExpr(t *testing.T) {
	rel := &Relation{Name: "t", Columns: []RelColumn{
		{Name: "a", Type: pgtype.Int4, Mod: -1}, {Name: "b", Type: pgtype.Text, Mod: -1}, {Name: "d", Type: pgtype.Numeric, Mod: -1}, {Name: "e", Type: pgtype.Bool, Mod: -1},
		{Name: "v", Type: pgtype.Varchar, Mod: 9},
	}}
	for _, c := range []struct {
		in   string
		want uint32
		full string
		nice string
	}{
		{"a > 0", 0, "(a > 0)", "a > 0"},
		{"a between 1 and 9", 0, "((a >= 1) AND (a <= 9))", "a >= 1 AND a <= 9"},
		{"b in ('qz', 'r')", 0, "(b = ANY (ARRAY['qz'::text, 'r'::text]))", "b = ANY (ARRAY['qz'::text, 'r'::text])"},
		{"lower(b) = b and b like '%z'", 0, "((lower(b) = b) AND (b ~~ '%z'::text))", "lower(b) = b AND b ~~ '%z'::text"},
		{"e or a > 3", 0, "(e OR (a > 3))", "e OR a > 3"},
		{"d > 0", 0, "(d > (0)::numeric)", "d > 0::numeric"},
		{"2 + 3 * 4", 0, "(2 + (3 * 4))", "2 + 3 * 4"},
		{"(a + 1) * 2", 0, "((a + 1) * 2)", "(a + 1) * 2"},
		{"a - (1 - a)", 0, "(a - (1 - a))", "a - (1 - a)"},
		{"v = 'x'", 0, "((v)::text = 'x'::text)", "v::text = 'x'::text"},
		{"b is not null", 0, "(b IS NOT NULL)", "b IS NOT NULL"},
		{"not e", 0, "(NOT e)", "NOT e"},
		{"'x'", pgtype.Varchar, "'x'::character varying", "'x'::character varying"},
		{"now()", 0, "now()", "now()"},
	} {
		full, nice, ok := ShownExpr(rel, c.in, c.want)
		require.True(t, ok, c.in)
		require.Equal(t, c.full, full)
		require.Equal(t, c.nice, nice)
	}
	_, _, ok := ShownExpr(rel, "case when e then 1 end", 0)
	require.False(t, ok, "what is not known is not printed")
}
