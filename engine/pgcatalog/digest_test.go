package pgcatalog

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownObjects finds the keys of a recorded query: the OIDs (or numbers) that the function was called with.
func ownObjects(t *testing.T, c *Catalog, sql string) []string {
	t.Helper()
	if m := regexp.MustCompile(`ARRAY\[([^\]]*)\]`).FindStringSubmatch(sql); m != nil {
		keys := strings.Split(m[1], ", ")
		sortNumbers(keys)
		return keys
	}
	var keys []string
	if m := regexp.MustCompile(`generate_series\((-?\d+), (-?\d+)\)`).FindStringSubmatch(sql); m != nil {
		lo, _ := strconv.Atoi(m[1])
		hi, _ := strconv.Atoi(m[2])
		for n := lo; n <= hi; n++ {
			keys = append(keys, strconv.Itoa(n))
		}
		return keys
	}
	catalog := regexp.MustCompile(`FROM (pg_\w+)`).FindStringSubmatch(sql)[1]
	tab := c.mustText(catalog)
	if catalog == "pg_get_keywords" {
		for i := range tab.rows {
			keys = append(keys, tab.column("word")(i))
		}
		return keys
	}
	oid := tab.column(map[bool]string{true: "indexrelid", false: "oid"}[catalog == "pg_index"])
	for i := range tab.rows {
		keep := true
		switch {
		case strings.Contains(sql, "relkind = 'v'"):
			keep = tab.column("relkind")(i) == "v"
		case strings.Contains(sql, "prolang = 12"):
			keep = tab.column("prolang")(i) == "12" && tab.column("prokind")(i) == "f"
		case strings.Contains(sql, "collprovider <> 'c'"):
			keep = tab.column("collprovider")(i) != "c"
		case catalog == "pg_index":
			name := c.index().relations.byOID[tab.oids("indexrelid")(i)]
			keep = name.schema != "pg_toast"
		}
		if keep {
			keys = append(keys, oid(i))
		}
	}
	sortNumbers(keys)
	return keys
}

func sortNumbers(keys []string) {
	for i := range keys {
		keys[i] = strings.TrimSpace(keys[i])
	}
	num := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n }
	for i := 1; i < len(keys); i++ {
		for j := i; j > 0 && num(keys[j]) < num(keys[j-1]); j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
}

// Over all of PostgreSQL's own objects the catalog functions give PostgreSQL's texts (recorded as digests; DUMP=dir writes ours).
func TestFunctionsOverOwnObjects(t *testing.T) {
	c := New(Options{Owner: "postgres", Database: "postgres"})
	snap := c.Snapshot(&Objects{Databases: []Database{{OID: 5, Name: "postgres"}}})
	sc := snap.scopeOf(&testSession{path: []string{"public"}})
	byName := map[string]*function{}
	for i := range functions {
		f := &functions[i]
		byName[fmt.Sprintf("%s/%d", f.name, len(f.args))] = f
	}
	raw, err := os.ReadFile("testdata/functions.json")
	require.NoError(t, err)
	var digests []struct {
		Name, SQL, MD5 string
		Rows           int
	}
	require.NoError(t, json.Unmarshal(raw, &digests))
	for _, d := range digests {
		if d.SQL == "" {
			continue // TestStaticRowsEqualPostgreSQL
		}
		t.Run(d.Name, func(t *testing.T) {
			name, variant, _ := strings.Cut(d.Name, "(")
			keys := ownObjects(t, c, d.SQL)
			require.Len(t, keys, d.Rows)
			var sb strings.Builder
			for i, key := range keys {
				n, _ := strconv.ParseInt(key, 10, 64)
				args := []any{n}
				switch {
				case variant == "oid, NULL)":
					args = append(args, nil)
				case variant == "oid, -1)":
					args = append(args, int32(-1))
				case variant == "pretty)":
					args = []any{key, "true"}
				case name == "pg_get_viewdef" || name == "quote_ident":
					args = []any{key}
				case name == "pg_encoding_to_char":
					args = []any{int32(n)}
				}
				f := byName[fmt.Sprintf("%s/%d", name, len(args))]
				require.NotNil(t, f, name)
				v, err := f.apply(sc, args)
				require.NoError(t, err)
				if v == nil {
					v = `\N`
				}
				if name == "quote_ident" {
					key = strconv.Itoa(i + 1)
				}
				fmt.Fprintf(&sb, "%s=%v\n", key, v)
			}
			if dir := os.Getenv("DUMP"); dir != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, d.Name+".txt"), []byte(sb.String()), 0o644))
			}
			require.Equal(t, d.MD5, fmt.Sprintf("%x", md5.Sum([]byte(sb.String()))))
		})
	}
}

// The static rows, read through DuckDB and encoded as text, are PostgreSQL's.
func TestStaticRowsEqualPostgreSQL(t *testing.T) {
	l := newLab(t, &Objects{})
	raw, err := os.ReadFile("testdata/functions.json")
	require.NoError(t, err)
	var digests []struct {
		Name, SQL, MD5 string
		Rows           int
	}
	require.NoError(t, json.Unmarshal(raw, &digests))
	for _, d := range digests {
		if d.SQL != "" {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			name, except, _ := strings.Cut(d.Name, " ")
			schema, bare, _ := strings.Cut(name, ".")
			rel := LookupRelation(schema, bare)
			var cols []string
			var types []uint32
			for _, c := range rel.Columns {
				if !c.Hidden && !slices.Contains(strings.Fields(except), c.Name) {
					cols, types = append(cols, quoteIdent(c.Name)), append(types, c.TypeOID)
				}
			}
			rows, err := l.query("SELECT "+strings.Join(cols, ", ")+" FROM skade_rel('"+l.relation(rel)+"')", types)
			require.NoError(t, err)
			var lines []string
			for _, r := range rows {
				for i := range r {
					if types[i] == 16 && len(r[i]) == 1 { // boolean's cast to text spells it out
						r[i] = map[string]string{"t": "true", "f": "false"}[r[i]]
					}
				}
				if line := strings.Join(r, "|"); !strings.Contains(line, "skade") {
					lines = append(lines, line)
				}
			}
			sort.Strings(lines)
			var sb strings.Builder
			for i, line := range lines {
				fmt.Fprintf(&sb, "%d=%s\n", i+1, line)
			}
			if dir := os.Getenv("DUMP"); dir != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, d.Name+".txt"), []byte(sb.String()), 0o644))
			}
			require.Equal(t, d.Rows, len(lines))
			require.Equal(t, d.MD5, fmt.Sprintf("%x", md5.Sum([]byte(sb.String()))))
		})
	}
}
