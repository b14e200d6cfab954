// Command expect records what a real PostgreSQL 15 answers: the catalog rows of the schema of testdata/schema.sql (sales.json) and
// the results of the catalog queries that clients send (corpus.json). expect.sh makes the cluster and runs it.
//
// OIDs of the schema's objects differ between servers: they are written as <name>.
package main

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/jackc/pgx/v5"
)

// result is a query and its answer.
type result struct {
	Name    string     `json:"name"`
	SQL     string     `json:"sql"`
	Columns []string   `json:"columns,omitempty"`
	Types   []uint32   `json:"types,omitempty"`
	Mods    []int32    `json:"mods,omitempty"`
	Tables  []uint32   `json:"tables,omitempty"` // RowDescription's table OIDs and attribute numbers
	AttNums []uint16   `json:"attnums,omitempty"`
	Rows    [][]string `json:"rows,omitempty"` // NULL is "\N"
	Error   string     `json:"error,omitempty"`
}

// userRows are the conditions that select the schema's own rows.
var userRows = map[string]string{
	"pg_catalog.pg_class":             "relnamespace = 'sales'::regnamespace",
	"pg_catalog.pg_attribute":         "attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'sales'::regnamespace) AND attnum > 0",
	"pg_catalog.pg_type":              "typnamespace = 'sales'::regnamespace",
	"pg_catalog.pg_index":             "indrelid = 'sales.orders'::regclass",
	"pg_catalog.pg_constraint":        "connamespace = 'sales'::regnamespace",
	"pg_catalog.pg_rewrite":           "ev_class = 'sales.v'::regclass",
	"pg_catalog.pg_namespace":         "nspname = 'sales'",
	"pg_catalog.pg_description":       "objoid = 'sales.orders'::regclass",
	"pg_catalog.pg_database":          "datname = current_database()",
	"pg_catalog.pg_authid":            "oid = 10",
	"pg_catalog.pg_roles":             "oid = 10",
	"pg_catalog.pg_user":              "usesysid = 10",
	"pg_catalog.pg_shadow":            "usesysid = 10",
	"pg_catalog.pg_tables":            "schemaname = 'sales'",
	"pg_catalog.pg_views":             "schemaname = 'sales'",
	"pg_catalog.pg_indexes":           "schemaname = 'sales'",
	"pg_catalog.pg_stat_user_indexes": "true",

	"information_schema.schemata":                "schema_name = 'sales'",
	"information_schema.tables":                  "table_schema = 'sales'",
	"information_schema.columns":                 "table_schema = 'sales'",
	"information_schema.views":                   "table_schema = 'sales'",
	"information_schema.element_types":           "object_schema = 'sales'",
	"information_schema.column_udt_usage":        "table_schema = 'sales'",
	"information_schema.key_column_usage":        "table_schema = 'sales'",
	"information_schema.table_constraints":       "table_schema = 'sales'",
	"information_schema.constraint_column_usage": "table_schema = 'sales'",
	"information_schema.constraint_table_usage":  "table_schema = 'sales'",
	"information_schema.check_constraints":       "constraint_schema = 'sales'",
	"information_schema.role_table_grants":       "table_schema = 'sales'",
	"information_schema.table_privileges":        "table_schema = 'sales'",
	"information_schema.column_privileges":       "table_schema = 'sales'",
}

// digests are queries over all of PostgreSQL's own objects, too long to keep: the answer's rows and their MD5 are kept.
var digests = []struct{ name, sql string }{
	{"format_type(oid, NULL)", "SELECT oid, format_type(oid, NULL) FROM pg_type WHERE oid < 16384"},
	{"format_type(oid, -1)", "SELECT oid, format_type(oid, -1) FROM pg_type WHERE oid < 16384"},
	{"regclass_out", "SELECT oid, oid::regclass::text FROM pg_class WHERE oid < 16384"},
	{"regtype_out", "SELECT oid, oid::regtype::text FROM pg_type WHERE oid < 16384"},
	{"regproc_out", "SELECT oid, oid::regproc::text FROM pg_proc WHERE proname NOT LIKE 'plpgsql%'"},
	{"regprocedure_out", "SELECT oid, oid::regprocedure::text FROM pg_proc WHERE proname NOT LIKE 'plpgsql%'"},
	{"regcollation_out", "SELECT oid, oid::regcollation::text FROM pg_collation WHERE collprovider <> 'c'"},
	{"regconfig_out", "SELECT oid, oid::regconfig::text FROM pg_ts_config"},
	{"pg_get_functiondef", "SELECT oid, pg_get_functiondef(oid) FROM pg_proc WHERE prolang = 12 AND prokind = 'f'"},
	{"pg_get_function_arguments", "SELECT oid, pg_get_function_arguments(oid) FROM pg_proc WHERE proname NOT LIKE 'plpgsql%'"},
	{"pg_get_function_result", "SELECT oid, pg_get_function_result(oid) FROM pg_proc WHERE proname NOT LIKE 'plpgsql%'"},
	{"pg_get_indexdef", "SELECT indexrelid, pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid < 16384 AND indrelid NOT IN (SELECT reltoastrelid FROM pg_class)"},
	{"pg_get_constraintdef", "SELECT oid, pg_get_constraintdef(oid) FROM pg_constraint WHERE oid < 16384"},
	{"pg_get_viewdef", "SELECT oid, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND oid < 16384"},
	{"pg_get_viewdef(pretty)", "SELECT oid, pg_get_viewdef(oid, true) FROM pg_class WHERE relkind = 'v' AND oid < 16384"},
	{"pg_table_is_visible", "SELECT oid, pg_table_is_visible(oid)::text FROM pg_class WHERE oid < 16384"},
	{"pg_type_is_visible", "SELECT oid, pg_type_is_visible(oid)::text FROM pg_type WHERE oid < 16384"},
	{"pg_function_is_visible", "SELECT oid, pg_function_is_visible(oid)::text FROM pg_proc WHERE proname NOT LIKE 'plpgsql%'"},
	{"pg_size_pretty", "SELECT n, pg_size_pretty(n) FROM unnest(ARRAY[0, 1, -1, 10239, 10240, 10241, -10240, 20470, 20479, 1048575, 1048576, 20969471, 20969472, 123456789, -123456789, " +
		"21474836479, 9223372036854775807, -9223372036854775807, 1125899906842624000]::bigint[]) n"},
	{"pg_encoding_to_char", "SELECT n, pg_encoding_to_char(n) FROM generate_series(-1, 43) n"},
	{"quote_ident", "SELECT row_number() OVER (ORDER BY word), quote_ident(word) FROM pg_get_keywords()"},
}

// whole are relations whose rows are compared as a whole; the columns are left out that this repository fills in otherwise.
var whole = []struct{ name, except, where string }{
	{"pg_catalog.pg_type", "typdefaultbin", "oid < 16384"},
	{"pg_catalog.pg_proc", "proargdefaults prosqlbody", "proname NOT LIKE 'plpgsql%'"},
	{"pg_catalog.pg_operator", "", "true"}, {"pg_catalog.pg_cast", "", "true"}, {"pg_catalog.pg_opclass", "", "true"}, {"pg_catalog.pg_opfamily", "", "true"},
	{"pg_catalog.pg_amop", "", "true"}, {"pg_catalog.pg_amproc", "", "true"}, {"pg_catalog.pg_am", "", "true"}, {"pg_catalog.pg_aggregate", "", "true"},
	{"pg_catalog.pg_language", "", "lanname <> 'plpgsql'"}, {"pg_catalog.pg_collation", "", "collprovider <> 'c' OR collname IN ('C', 'POSIX', 'ucs_basic')"},
	{"pg_catalog.pg_conversion", "", "true"}, {"pg_catalog.pg_range", "", "true"}, {"pg_catalog.pg_ts_config", "", "true"}, {"pg_catalog.pg_ts_config_map", "", "true"},
	{"pg_catalog.pg_ts_dict", "", "true"}, {"pg_catalog.pg_ts_parser", "", "true"}, {"pg_catalog.pg_ts_template", "", "true"}, {"pg_catalog.pg_namespace", "", "nspname <> 'sales'"},
	{"pg_catalog.pg_tablespace", "", "true"}, {"pg_catalog.pg_auth_members", "", "true"}, {"pg_catalog.pg_init_privs", "", "true"},
	{"pg_catalog.pg_attribute", "", "attrelid < 16384"}, {"pg_catalog.pg_index", "", "indexrelid < 16384"}, {"pg_catalog.pg_constraint", "conbin", "oid < 16384"},
	{"pg_catalog.pg_class", "relpages reltuples relallvisible relfrozenxid relminmxid relfilenode relhasindex", "oid < 16384"},
	{"information_schema.sql_features", "", "true"}, {"information_schema.sql_sizing", "", "true"}, {"information_schema.character_sets", "", "true"},
	{"information_schema.collations", "", "collation_name NOT LIKE '%utf8' AND collation_name NOT LIKE 'C.%'"},
}

// wholeDigests makes digest queries of them: a row's number and its columns as text, in the order of the text.
func wholeDigests(ctx context.Context, conn *pgx.Conn) error {
	for _, w := range whole {
		var cols string
		if err := conn.QueryRow(ctx, `SELECT string_agg(format('coalesce(%I::text, ''\N'')', attname), ' || ''|'' || ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND attname <> ALL (string_to_array($2, ' '))`, w.name, w.except).Scan(&cols); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		digests = append(digests, struct{ name, sql string }{w.name + " " + w.except,
			"SELECT row_number() OVER (ORDER BY t COLLATE \"C\"), t FROM (SELECT " + cols + " AS t FROM " + w.name + " WHERE " + w.where + ") x"})
	}
	return nil
}

func main() {
	dsn := flag.String("dsn", "", "connection string of a database that holds testdata/schema.sql")
	logs := flag.String("logs", "", "folder of recorded statement logs, in the format of PostgreSQL's log_statement = all")
	out := flag.String("o", "testdata", "output folder")
	flag.Parse()
	if err := run(context.Background(), *dsn, *logs, *out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dsn, logs, out string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	names, err := objectNames(ctx, conn)
	if err != nil {
		return err
	}
	var sales []result
	for name, where := range userRows {
		sales = append(sales, query(ctx, conn, names, name, "SELECT * FROM "+name+" WHERE "+where))
	}
	sort.Slice(sales, func(i, j int) bool { return sales[i].Name < sales[j].Name })
	if err := save(filepath.Join(out, "sales.json"), sales); err != nil {
		return err
	}
	units := query(ctx, conn, nil, "units", "SELECT name, setting, unit, current_setting(name) FROM pg_settings WHERE unit IS NOT NULL AND vartype = 'integer' ORDER BY name")
	if err := save(filepath.Join(out, "units.json"), []result{units}); err != nil {
		return err
	}
	if err := writeDigests(ctx, conn, filepath.Join(out, "functions.json")); err != nil || logs == "" {
		return err
	}
	statements, err := readLogs(logs)
	if err != nil {
		return err
	}
	var corpus []result
	for _, s := range statements {
		corpus = append(corpus, query(ctx, conn, names, s[0], s[1]))
	}
	return save(filepath.Join(out, "corpus.json"), corpus)
}

// writeDigests keeps, per query, the number of rows and the MD5 of "key=value" lines in the order of the keys.
func writeDigests(ctx context.Context, conn *pgx.Conn, path string) error {
	type digest struct {
		Name, SQL string
		Rows      int
		MD5       string
	}
	var all []digest
	if err := wholeDigests(ctx, conn); err != nil {
		return err
	}
	for _, d := range digests {
		results, err := conn.PgConn().Exec(ctx, d.sql+" ORDER BY 1").ReadAll()
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		var sb strings.Builder
		for _, row := range results[0].Rows {
			if row[1] == nil {
				row[1] = []byte(`\N`)
			}
			fmt.Fprintf(&sb, "%s=%s\n", row[0], row[1])
		}
		if dir := os.Getenv("DUMP"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(d.name, "/", "_")+".txt"), []byte(sb.String()), 0o644); err != nil {
				return err
			}
		}
		if strings.Contains(d.name, ".") {
			d.sql = ""
		}
		all = append(all, digest{d.name, d.sql, len(results[0].Rows), fmt.Sprintf("%x", md5.Sum([]byte(sb.String())))})
	}
	return save(path, all)
}

// objectNames maps the OIDs of the schema's objects to their tokens.
func objectNames(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	rows, err := conn.Query(ctx, `
SELECT oid::text, '<sales>' FROM pg_namespace WHERE nspname = 'sales'
UNION ALL SELECT oid::text, '<' || relname || '>' FROM pg_class WHERE relnamespace = 'sales'::regnamespace
UNION ALL SELECT oid::text, '<type ' || typname || '>' FROM pg_type WHERE typnamespace = 'sales'::regnamespace
UNION ALL SELECT oid::text, '<constraint ' || conname || '>' FROM pg_constraint WHERE connamespace = 'sales'::regnamespace
UNION ALL SELECT oid::text, '<rule ' || rulename || '>' FROM pg_rewrite WHERE ev_class = 'sales.v'::regclass`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var oid, token string
		if err := rows.Scan(&oid, &token); err != nil {
			return nil, err
		}
		names[oid] = token
	}
	return names, rows.Err()
}

// recorded are the OIDs of the recording.
var recorded = map[string]string{"16386": "<orders>", "16393": "<v>"}

var word = regexp.MustCompile(`\d+`)

func query(ctx context.Context, conn *pgx.Conn, names map[string]string, name, sql string) result {
	r := result{Name: name, SQL: sql}
	oids := map[string]string{}
	for oid, token := range names {
		oids[token] = oid
	}
	sql = word.ReplaceAllStringFunc(sql, func(n string) string {
		if oid := oids[recorded[n]]; oid != "" {
			return oid
		}
		return n
	})
	results := conn.PgConn().Exec(ctx, sql)
	var rows [][][]byte
	for results.NextResult() {
		reader := results.ResultReader()
		for _, f := range reader.FieldDescriptions() {
			r.Columns = append(r.Columns, f.Name)
			r.Types = append(r.Types, f.DataTypeOID)
			r.Mods = append(r.Mods, f.TypeModifier)
			r.Tables = append(r.Tables, f.TableOID)
			r.AttNums = append(r.AttNums, f.TableAttributeNumber)
		}
		rows = reader.Read().Rows
	}
	if err := results.Close(); err != nil {
		r.Error = err.Error()
		return r
	}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			if v == nil {
				cells[i] = `\N`
				continue
			}
			cells[i] = word.ReplaceAllStringFunc(string(v), func(n string) string {
				if token := names[n]; token != "" {
					return token
				}
				return n
			})
		}
		r.Rows = append(r.Rows, cells)
	}
	return r
}

var (
	entry  = regexp.MustCompile(`^<<[^>]*>> (\w+):  (.*)`)
	start  = regexp.MustCompile(`^(?:statement|execute [^:]*): `)
	params = regexp.MustCompile(`\$(\d+) = ('(?:[^']|'')*'|NULL)`)
)

// readLogs gives name and text of every catalog query in the logs, parameters filled in, each text once.
func readLogs(dir string) ([][2]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var out [][2]string
	seen := map[string]bool{}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, line := range strings.Split(strings.TrimRight(string(raw), "\n"), "\n") {
			m := entry.FindStringSubmatch(line)
			switch {
			case m == nil && len(texts) > 0:
				texts[len(texts)-1] += "\n" + strings.TrimPrefix(line, "\t")
			case m == nil:
			case m[1] == "DETAIL" && len(texts) > 0:
				for _, p := range params.FindAllStringSubmatch(m[2], -1) {
					texts[len(texts)-1] = regexp.MustCompile(`\$`+p[1]+`\b`).ReplaceAllLiteralString(texts[len(texts)-1], p[2])
				}
			case m[1] == "LOG" && start.MatchString(m[2]):
				texts = append(texts, start.ReplaceAllString(m[2], ""))
			default:
				texts = append(texts, "")
			}
		}
		n := 0
		for _, text := range texts {
			lower := strings.ToLower(strings.TrimSpace(text))
			catalog := strings.Contains(lower, "pg_") || strings.Contains(lower, "information_schema") || strings.Contains(lower, "current_schema")
			if !catalog || seen[text] || !(strings.HasPrefix(lower, "select") || strings.HasPrefix(lower, "with")) || strings.Contains(lower, "advisory") {
				continue
			}
			seen[text] = true
			n++
			out = append(out, [2]string{fmt.Sprintf("%s/%d", strings.TrimSuffix(filepath.Base(f), ".log"), n), text})
		}
	}
	return out, nil
}

func save(path string, v any) error {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
