package pgcatalog

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// macro is a catalog function written in DuckDB's SQL. DuckDB's macros are not hygienic: parameters begin with skade_p, names
// inside with skade_.
type macro struct {
	schema, name string
	returns      uint32
	set          bool
	forms        []macroForm
}

// macroForm is the function with one number of arguments, named skade_p0, skade_p1 … in sql.
type macroForm struct {
	args []uint32
	sql  string
}

func form(sql string, args ...uint32) macroForm { return macroForm{args, sql} }

func simple(name string, returns uint32, forms ...macroForm) macro {
	return macro{name: name, returns: returns, forms: forms}
}

const (
	oidT  = pgtype.OID
	textT = pgtype.Text
	boolT = pgtype.Bool
	int4T = pgtype.Int4
)

// aclStruct is a row of aclexplode.
const aclStruct = "STRUCT(grantor BIGINT, grantee BIGINT, privilege_type VARCHAR, is_grantable BOOLEAN)[]"

// macros are the functions that need neither the catalog nor the session.
var macros = []macro{
	// Expressions are stored as text.
	simple("pg_is_in_recovery", boolT, form("false")),
	simple("pg_is_wal_replay_paused", boolT, form("false")),
	simple("pg_is_other_temp_schema", boolT, form("false", oidT)),
	simple("pg_get_partkeydef", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_get_partition_constraintdef", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_get_triggerdef", textT, form("CAST(NULL AS VARCHAR)", oidT), form("CAST(NULL AS VARCHAR)", oidT, boolT)),
	simple("pg_get_statisticsobjdef", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_get_statisticsobjdef_columns", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_get_statisticsobjdef_expressions", pgtype.TextArray, form("CAST(NULL AS VARCHAR[])", oidT)),
	simple("pg_get_function_sqlbody", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_get_replica_identity_index", pgtype.RegClass, form("CAST(NULL AS BIGINT)", oidT)),
	simple("pg_tablespace_location", textT, form("CASE WHEN skade_p0 IS NOT NULL THEN '' END", oidT)),
	simple("pg_relation_filepath", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_filenode_relation", pgtype.RegClass, form("CAST(skade_p1 AS BIGINT)", oidT, oidT)),
	simple("pg_blocking_pids", pgtype.Int4Array, form("CAST(skade_pg.blocking_pids_of(skade_p0) AS INTEGER[])", int4T)),
	simple("pg_safe_snapshot_blocking_pids", pgtype.Int4Array, form("CAST([] AS INTEGER[])", int4T)),
	simple("txid_current_if_assigned", pgtype.Int8, form("CAST(NULL AS BIGINT)")),
	simple("pg_stat_get_live_tuples", pgtype.Int8, form("CAST(0 AS BIGINT)", oidT)),
	simple("pg_stat_get_dead_tuples", pgtype.Int8, form("CAST(0 AS BIGINT)", oidT)),
	simple("pg_stat_get_numscans", pgtype.Int8, form("CAST(0 AS BIGINT)", oidT)),
	simple("pg_collation_actual_version", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_database_collation_actual_version", textT, form("CAST(NULL AS VARCHAR)", oidT)),
	simple("pg_jit_available", boolT, form("false")),
	simple("pg_trigger_depth", int4T, form("CAST(0 AS INTEGER)")),
	simple("row_security_active", boolT, form("false", anyType)),
	// age(xid) beside age(timestamp): what a transaction of this server is old, counted from the first.
	simple("xid_age", int4T, form("CAST(skade_pg.txid_current() - skade_p0 AS INTEGER)", pgtype.XID)),
	// int2vector and oidvector count from 0.
	{name: "vector_subscripts", returns: int4T, set: true, forms: []macroForm{form("CAST(unnest(range(0, len(skade_p0))) AS INTEGER)", pgtype.Int2Vector)}},
	simple("vector_upper", int4T, form("CAST(nullif(len(skade_p0), 0) - 1 AS INTEGER)", pgtype.Int2Vector)),
	{schema: "information_schema", name: "_pg_expandarray", returns: pgtype.Record, set: true, forms: []macroForm{
		form("unnest(list_transform(range(1, len(skade_p0) + 1), lambda skade_i: struct_pack(x := skade_p0[skade_i], n := CAST(skade_i AS INTEGER))))", anyType)}},
	{name: "pg_options_to_table", returns: pgtype.Record, set: true, forms: []macroForm{
		form("unnest(list_transform(skade_p0, lambda skade_o: struct_pack(option_name := split_part(skade_o, '=', 1), "+
			"option_value := CASE WHEN contains(skade_o, '=') THEN substr(skade_o, strpos(skade_o, '=') + 1) END)))", pgtype.TextArray)}},
	{name: "aclexplode", returns: pgtype.Record, set: true, forms: []macroForm{form("unnest("+aclList+")", pgtype.ACLItemArray)}},
}

// aclList splits aclitems ("grantee=rights/grantor", a right is a letter, with * when it may be granted on) into rows.
const aclList = "CAST(flatten(list_transform(skade_p0, lambda skade_a: list_transform(regexp_extract_all(regexp_extract(skade_a, '=([A-Za-z*]*)/', 1), '[A-Za-z][*]?'), " +
	"lambda skade_r: struct_pack(" +
	"grantor := skade_pg.to_regrole(regexp_extract(skade_a, '/(.*)$', 1)), " +
	"grantee := CASE WHEN starts_with(skade_a, '=') THEN 0 ELSE skade_pg.to_regrole(regexp_extract(skade_a, '^(.*)=', 1)) END, " +
	"privilege_type := CASE skade_r[1] WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' WHEN 'D' THEN 'TRUNCATE' WHEN 'x' THEN 'REFERENCES' " +
	"WHEN 't' THEN 'TRIGGER' WHEN 'X' THEN 'EXECUTE' WHEN 'U' THEN 'USAGE' WHEN 'C' THEN 'CREATE' WHEN 'c' THEN 'CONNECT' WHEN 'T' THEN 'TEMPORARY' WHEN 's' THEN 'SET' WHEN 'A' THEN 'ALTER SYSTEM' END, " +
	"is_grantable := ends_with(skade_r, '*'))))) AS " + aclStruct + ")"

// macroText makes the CREATE MACRO of one macro.
func (m macro) macroText() string {
	bodies := make([]string, len(m.forms))
	for i, f := range m.forms {
		params := make([]string, len(f.args))
		for j := range params {
			params[j] = "skade_p" + string(rune('0'+j))
		}
		bodies[i] = "(" + strings.Join(params, ", ") + ") AS " + f.sql
	}
	return "CREATE OR REPLACE MACRO " + Schema + "." + m.name + strings.Join(bodies, ", ")
}
