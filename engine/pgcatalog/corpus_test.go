package pgcatalog

import (
	"context"
	"database/sql/driver"
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

// goValue is an Arrow value as duckdb-go's appender takes it.
func goValue(a arrow.Array, row int) driver.Value {
	if a.IsNull(row) {
		return nil
	}
	switch a := a.(type) {
	case *array.Int16:
		return a.Value(row)
	case *array.Float32:
		return a.Value(row)
	case *array.Binary:
		return a.Value(row)
	case *array.Timestamp:
		return a.Value(row).ToTime(arrow.Microsecond)
	case *array.List:
		start, end := a.ValueOffsets(row)
		out := make([]any, 0, end-start)
		for i := start; i < end; i++ {
			out = append(out, goValue(a.ListValues(), int(i)))
		}
		return out
	}
	return cell(a, row)
}

// load makes a relation's rows a DuckDB table named "schema.relation".
func (l *lab) load(r *SystemRelation) {
	name := r.Schema + "." + r.Name
	var cols []string
	for _, c := range r.Columns {
		cols = append(cols, quoteIdent(c.Name)+" "+c.DuckType)
	}
	_, err := l.conn.ExecContext(context.Background(), "CREATE TABLE IF NOT EXISTS \""+name+"\" ("+strings.Join(cols, ", ")+")")
	require.NoError(l.t, err)
	_, batches, _, err := l.snap.Relation(l.session, r.Schema, r.Name)
	require.NoError(l.t, err)
	require.NoError(l.t, l.conn.Raw(func(dc any) error {
		app, err := duckdb.NewAppenderFromConn(dc.(driver.Conn), "", name)
		if err != nil {
			return err
		}
		values := make([]driver.Value, len(r.Columns))
		for _, b := range batches {
			for row := range int(b.NumRows()) {
				for i := range values {
					values[i] = goValue(b.Column(i), row)
				}
				if err := app.AppendRow(values...); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return app.Close()
	}))
}

// query runs SQL on DuckDB and prints the result as PostgreSQL would, given PostgreSQL's column types.
func (l *lab) query(sql string, types []uint32) (columns []string, rows [][]string, err error) {
	res, err := l.conn.QueryContext(context.Background(), sql)
	if err != nil {
		return nil, nil, err
	}
	defer res.Close()
	if columns, err = res.Columns(); err != nil {
		return nil, nil, err
	}
	for res.Next() {
		values, ptrs := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			ptrs[i] = &values[i]
		}
		if err := res.Scan(ptrs...); err != nil {
			return nil, nil, err
		}
		cells := make([]string, len(values))
		for i, v := range values {
			oid := uint32(0)
			if i < len(types) {
				oid = types[i]
			}
			cells[i] = tokens(l.print(oid, v))
		}
		rows = append(rows, cells)
	}
	return columns, rows, res.Err()
}

func (l *lab) print(typeOID uint32, v any) string {
	switch v := v.(type) {
	case nil:
		return `\N`
	case bool:
		return map[bool]string{true: "t", false: "f"}[v]
	case int64:
		for i := range regTypes {
			if regTypes[i].oid == typeOID {
				return l.snap.RegOut(l.session, typeOID, uint32(v))
			}
		}
		return strconv.FormatInt(v, 10)
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = l.print(0, e)
			if s, ok := e.(string); ok && strings.ContainsAny(s, `,{}" `) {
				parts[i] = strconv.Quote(s)
			}
		}
		if typeOID == 22 || typeOID == 30 {
			return strings.Join(parts, " ")
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}

// shims are general functions of PostgreSQL that the recorded queries use and that are not the catalog's.
var shims = []string{
	"CREATE MACRO array_upper(a, d) AS CAST(nullif(len(a), 0) AS INTEGER)",
	"CREATE MACRO array_remove(a, x) AS list_filter(a, lambda e: e IS DISTINCT FROM x)",
	"CREATE MACRO btrim(a, b) AS trim(a, b)",
	"CREATE MACRO json_build_object(a, b, c, d) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d), " +
		"(a, b, c, d, e, f, g, h, i, j) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j), " +
		"(a, b, c, d, e, f, g, h, i, j, k, l) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j, CAST(k AS VARCHAR), l), " +
		"(a, b, c, d, e, f, g, h, i, j, k, l, m, n) AS json_object(CAST(a AS VARCHAR), b, CAST(c AS VARCHAR), d, CAST(e AS VARCHAR), f, CAST(g AS VARCHAR), h, CAST(i AS VARCHAR), j, CAST(k AS VARCHAR), l, CAST(m AS VARCHAR), n)",
	"CREATE MACRO setting_of(a) AS (SELECT setting FROM \"pg_catalog.pg_settings\" WHERE name = a)",
	"CREATE MACRO pg_get_keywords() AS TABLE SELECT * FROM \"pg_catalog.pg_get_keywords\"",
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
	l := newLab(t)
	l.load(LookupRelation("pg_catalog", "pg_settings"))
	l.load(LookupRelation("pg_catalog", "pg_get_keywords"))
	loaded := map[string]bool{"pg_catalog.pg_settings": true}
	for _, stmt := range shims {
		_, err := l.conn.ExecContext(context.Background(), stmt)
		require.NoError(t, err, stmt)
	}
	for _, want := range readAnswers(t, "corpus.json") {
		t.Run(want.Name, func(t *testing.T) {
			sql, relations, err := rewriteForDuck(want.SQL)
			require.NoError(t, err)
			for _, r := range relations {
				if name := r.Schema + "." + r.Name; !loaded[name] {
					loaded[name] = true
					l.load(r)
				}
			}
			_, rows, err := l.query(sql, want.Types)
			require.NoError(t, err, sql)
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
