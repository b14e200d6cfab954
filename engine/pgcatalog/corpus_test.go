package pgcatalog

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherwise says which recorded answers are not ours, and why.
var otherwise = map[string]string{
	"psql__dconfig/1": "the settings are the session's",
}

var size = regexp.MustCompile(`\b\d+ (bytes|kB|MB)\b`)

// foreign are rows that only one of the two servers has: our schema, PostgreSQL's procedural language and template databases.
var foreign = regexp.MustCompile(`skade|plpgsql|template[01]`)

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

// The catalog queries that clients send give PostgreSQL's columns and rows through the product's analyser.
func TestCorpus(t *testing.T) {
	l := newLab(t, salesObjects())
	for _, want := range readAnswers(t, "corpus.json") {
		t.Run(want.Name, func(t *testing.T) {
			columns, rows, err := l.analyzed(want.SQL)
			require.NoError(t, err)
			require.Len(t, columns, len(want.Columns))
			for i, c := range columns {
				require.Equal(t, want.Columns[i], c.Name)
				require.Equal(t, want.Types[i], c.Type, c.Name)
				if want.Tables[i] < firstUserObject {
					require.Equal(t, fmt.Sprint(want.Tables[i], want.AttNums[i], want.Mods[i]), fmt.Sprint(c.TableOID, uint16(c.AttNum), c.Mod), c.Name)
				}
			}
			for _, r := range rows {
				for i := range r {
					r[i] = tokens(r[i])
				}
			}
			if otherwise[want.Name] == "" {
				require.Equal(t, lines(want.Rows), lines(rows))
			}
		})
	}
}
