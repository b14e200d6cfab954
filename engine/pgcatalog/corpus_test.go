package pgcatalog

import (
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shims are general functions of PostgreSQL that the recorded queries use and that are not the catalog's.
var shims = []string{
	"CREATE MACRO array_upper(a, d) AS CAST(nullif(len(a), 0) AS INTEGER)",
	"CREATE MACRO array_remove(a, x) AS list_filter(a, lambda e: e IS DISTINCT FROM x)",
	"CREATE MACRO btrim(a, b) AS trim(a, b)",
	"CREATE MACRO json_build_object(a, b, c, d) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d), " +
		"(a, b, c, d, e, f, g, h, i, j) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j), " +
		"(a, b, c, d, e, f, g, h, i, j, k, l) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j, CAST(k AS VARCHAR), l), " +
		"(a, b, c, d, e, f, g, h, i, j, k, l, m, n) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j, CAST(k AS VARCHAR), l, CAST(m AS VARCHAR), n)",
	"CREATE MACRO setting_of(a) AS CAST(NULL AS VARCHAR)",
}

// otherwise says which recorded answers are not ours, and why.
var otherwise = map[string]string{
	"psql__d+_sales_orders/2": "reloptions || array: NULL on the left is DuckDB's NULL",
	"psql__d+_sales_v/2":      "reloptions || array: NULL on the left is DuckDB's NULL",
	"psql__dconfig/1":         "the settings are the session's",
}

var size = regexp.MustCompile(`\b\d+ (bytes|kB|MB)\b`)

// foreign are rows that only one of the two servers has: our schema, PostgreSQL's procedural language and template databases.
var foreign = regexp.MustCompile(`skade|plpgsql|template[01]`)

// The catalog queries that clients send give PostgreSQL's columns and rows.
func TestCorpus(t *testing.T) {
	l := newLab(t, salesObjects())
	for _, want := range readAnswers(t, "corpus.json") {
		t.Run(want.Name, func(t *testing.T) {
			sql, err := rewriteForDuck(want.SQL, l.relation)
			require.NoError(t, err)
			rows, err := l.query(sql, want.Types)
			require.NoError(t, err, sql)
			for _, r := range rows {
				for i := range r {
					r[i] = tokens(r[i])
				}
			}
			if otherwise[want.Name] == "" {
				require.Equal(t, lines(want.Rows), lines(rows), sql)
			}
		})
	}
}

func lines(rows [][]string) string {
	var out []string
	for _, r := range rows {
		if line := size.ReplaceAllString(strings.Join(r, " | "), "SIZE"); !foreign.MatchString(line) {
			out = append(out, line)
		}
	}
	sort.Strings(out)
	return strings.Join(out, "\n")
}
