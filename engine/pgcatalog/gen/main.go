// Command gen writes ../pg15.bin: the columns and rows of every table and view of pg_catalog and information_schema of a fresh
// PostgreSQL 15 cluster. generate.sh makes the cluster and runs it.
//
// The bootstrap superuser must be named skade_owner_0 and the database skade_db_0: package pgcatalog puts the server's own names
// in their place.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"
)

// magic and version of the file; the layout is described in ../static.go.
const magic = "SKADECAT\x01"

// noRows are relations whose rows describe the running server, one database's data or rights: only their columns are kept.
var noRows = map[string]bool{
	"pg_catalog.pg_database": true, "pg_catalog.pg_statistic": true, "pg_catalog.pg_shdepend": true, "pg_catalog.pg_shdescription": true,
	"pg_catalog.pg_stats": true, "pg_catalog.pg_settings": true, "pg_catalog.pg_file_settings": true, "pg_catalog.pg_hba_file_rules": true,
	"pg_catalog.pg_config": true, "pg_catalog.pg_shmem_allocations": true, "pg_catalog.pg_backend_memory_contexts": true,
	"pg_catalog.pg_available_extensions": true, "pg_catalog.pg_available_extension_versions": true, "pg_catalog.pg_extension": true,
	"pg_catalog.pg_locks": true, "pg_catalog.pg_cursors": true, "pg_catalog.pg_prepared_statements": true, "pg_catalog.pg_prepared_xacts": true,
	"pg_catalog.pg_user": true, "pg_catalog.pg_shadow": true, "pg_catalog.pg_ident_file_mappings": true,
}

// noRowsPrefix are families of such relations.
var noRowsPrefix = []string{"pg_catalog.pg_stat_", "pg_catalog.pg_statio_"}

// rights are views that repeat every object for its owner's privileges.
var rights = []string{"_privileges", "_grants"}

// expr replaces the plain column by an expression over it.
var expr = map[string]string{
	"pg_rewrite.ev_qual":       "'<>'",
	"pg_rewrite.ev_action":     "'<>'",
	"pg_proc.proargdefaults":   "pg_get_expr(proargdefaults, 0)",
	"pg_proc.prosqlbody":       "NULL",
	"pg_constraint.conbin":     "CASE WHEN conbin IS NOT NULL THEN '<>' END",
	"pg_type.typdefaultbin":    "NULL",
	"pg_class.relfrozenxid":    "CASE WHEN relfrozenxid::text = '0' THEN 0 ELSE 3 END",
	"pg_class.relminmxid":      "CASE WHEN relminmxid::text = '0' THEN 0 ELSE 1 END",
	"pg_timezone_names.abbrev": "NULL", "pg_timezone_names.utc_offset": "NULL", "pg_timezone_names.is_dst": "NULL",
}

// where leaves rows out: plpgsql, which does not exist here, and what the first start of a cluster makes.
var where = map[string]string{
	"pg_language":                           "lanname <> 'plpgsql'",
	"pg_proc":                               "proname NOT LIKE 'plpgsql%'",
	"pg_depend":                             "objid < 13000 AND refobjid < 13000",
	"pg_description":                        "NOT (classoid = 'pg_extension'::regclass OR description LIKE 'PL/pgSQL%')",
	"pg_authid":                             "oid <> 10",
	"pg_roles":                              "oid <> 10",
	"pg_collation":                          "collprovider <> 'c' OR collname IN ('C', 'POSIX', 'ucs_basic')",
	"routines":                              "routine_name NOT LIKE 'plpgsql%'",
	"parameters":                            "specific_name NOT LIKE 'plpgsql%'",
	"collations":                            "collation_name NOT LIKE '%utf8' AND collation_name NOT LIKE 'C.%'",
	"collation_character_set_applicability": "collation_name NOT LIKE '%utf8' AND collation_name NOT LIKE 'C.%'",
	"pg_timezone_names":                     "name NOT LIKE 'posix%'",
}

// extra are relations of our own: texts that PostgreSQL computes from trees which are not kept.
var extra = []struct{ name, query string }{
	{"proc_text", "SELECT oid, pg_get_function_arguments(oid), pg_get_function_identity_arguments(oid), pg_get_function_result(oid) FROM pg_proc WHERE proname NOT LIKE 'plpgsql%' ORDER BY oid"},
	{"view_text", "SELECT oid, pg_get_viewdef(oid, true) FROM pg_class WHERE relkind = 'v' ORDER BY oid"},
	{"constraint_text", "SELECT oid, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) FROM pg_constraint ORDER BY oid"},
}

// setReturning are functions without arguments whose rows are kept like a relation's.
var setReturning = []string{"pg_get_keywords"}

type column struct {
	Name    string `json:"n"`
	Type    uint32 `json:"t"`
	Mod     int32  `json:"m,omitempty"`
	Num     int16  `json:"a"`
	NotNull bool   `json:"r,omitempty"`

	regular string // expression
}

type relation struct {
	Schema  string   `json:"s"`
	Name    string   `json:"n"`
	OID     uint32   `json:"o,omitempty"`
	Kind    string   `json:"k"`
	Columns []column `json:"c"`
	Rows    int      `json:"rows"`
	Size    int      `json:"size"` // bytes of the compressed block; blocks follow each other
	block   []byte
}

func main() {
	dsn := flag.String("dsn", "", "connection string of a fresh PostgreSQL 15 database")
	out := flag.String("o", "pg15.bin", "output file")
	flag.Parse()
	if err := run(context.Background(), *dsn, *out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dsn, out string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var version int
	var db, user string
	if err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int / 10000, current_database(), current_user").Scan(&version, &db, &user); err != nil {
		return err
	}
	if version != 15 || db != "skade_db_0" || user != "skade_owner_0" {
		return fmt.Errorf("want PostgreSQL 15, database skade_db_0, user skade_owner_0; got %d, %s, %s", version, db, user)
	}
	if _, err := conn.Exec(ctx, "SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET search_path = pg_catalog"); err != nil {
		return err
	}
	relations, err := list(ctx, conn)
	if err != nil {
		return err
	}
	for _, name := range setReturning {
		relations = append(relations, &relation{Schema: "pg_catalog", Name: name, Kind: "F"})
	}
	for _, r := range relations {
		if err := read(ctx, conn, r, query(r)); err != nil {
			return fmt.Errorf("%s.%s: %w", r.Schema, r.Name, err)
		}
	}
	for _, e := range extra {
		r := &relation{Schema: "text", Name: e.name, Kind: "x"}
		if err := read(ctx, conn, r, e.query); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		relations = append(relations, r)
	}
	return write(out, relations)
}

// list reads the relations and their columns; a domain counts as its base type, as in RowDescription.
func list(ctx context.Context, conn *pgx.Conn) ([]*relation, error) {
	rows, err := conn.Query(ctx, `
SELECT n.nspname, c.relname, c.oid, c.relkind::text, a.attname, a.attnum, a.attnotnull,
       CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v')
ORDER BY n.nspname, c.relname, a.attnum`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*relation
	for rows.Next() {
		var r relation
		var c column
		if err := rows.Scan(&r.Schema, &r.Name, &r.OID, &r.Kind, &c.Name, &c.Num, &c.NotNull, &c.Type, &c.Mod); err != nil {
			return nil, err
		}
		if len(out) == 0 || out[len(out)-1].OID != r.OID {
			out = append(out, &r)
		}
		c.regular = quote(c.Name)
		switch c.Type {
		case 24, 2206: // regproc, regtype: their numbers
			c.regular += "::oid"
		}
		if e, ok := expr[r.Name+"."+c.Name]; ok {
			c.regular = e
		}
		last := out[len(out)-1]
		last.Columns = append(last.Columns, c)
	}
	return out, rows.Err()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// query selects the rows to keep.
func query(r *relation) string {
	name := r.Schema + "." + r.Name
	if r.Kind == "F" {
		return "SELECT * FROM " + name + "()"
	}
	var cols []string
	for _, c := range r.Columns {
		cols = append(cols, c.regular)
	}
	q := "SELECT " + strings.Join(cols, ", ") + " FROM " + name
	switch {
	case dropRows(name):
		return q + " WHERE false"
	case where[r.Name] != "":
		q += " WHERE " + where[r.Name]
	}
	if r.Columns[0].Name == "oid" {
		return q + " ORDER BY oid"
	}
	return q
}

func dropRows(name string) bool {
	if noRows[name] {
		return true
	}
	for _, p := range noRowsPrefix {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for _, p := range rights {
		if strings.HasPrefix(name, "information_schema.") && strings.HasSuffix(name, p) {
			return true
		}
	}
	return false
}

// read fills in the block of rows: column by column, each value as its length plus one and its text, 0 for NULL.
func read(ctx context.Context, conn *pgx.Conn, r *relation, sql string) error {
	results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
	if err != nil {
		return err
	}
	result := results[len(results)-1]
	if r.Columns == nil {
		for i, f := range result.FieldDescriptions {
			r.Columns = append(r.Columns, column{Name: f.Name, Type: f.DataTypeOID, Mod: f.TypeModifier, Num: int16(i + 1)})
		}
	}
	r.Rows = len(result.Rows)
	if r.Rows == 0 {
		return nil
	}
	var raw []byte
	for i := range r.Columns {
		for _, row := range result.Rows {
			if row[i] == nil {
				raw = append(raw, 0)
				continue
			}
			raw = binary.AppendUvarint(raw, uint64(len(row[i])+1))
			raw = append(raw, row[i]...)
		}
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(8<<20))
	if err != nil {
		return err
	}
	r.block = enc.EncodeAll(raw, nil)
	r.Size = len(r.block)
	return enc.Close()
}

func write(path string, relations []*relation) error {
	head, err := json.Marshal(relations)
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	head = enc.EncodeAll(head, nil)
	var file bytes.Buffer
	file.WriteString(magic)
	file.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(head))))
	file.Write(head)
	for _, r := range relations {
		file.Write(r.block)
	}
	fmt.Printf("%d relations, header %d bytes, file %d bytes\n", len(relations), len(head), file.Len())
	for _, r := range relations {
		if r.Size > 8<<10 {
			fmt.Printf("  %s.%s: %d rows, %d bytes\n", r.Schema, r.Name, r.Rows, r.Size)
		}
	}
	return os.WriteFile(path, file.Bytes(), 0o644)
}
