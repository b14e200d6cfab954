package pgcatalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMacros(t *testing.T) {
	l := newLab(t, salesObjects())
	for query, want := range map[string]string{
		"select skade_pg.format_type(1043, 24)":                                                            "character varying(20)",
		"select skade_pg.format_type(25, NULL)":                                                            "text",
		"select skade_pg.format_type(1<<28|16386, NULL)":                                                   "sales.orders",
		"select skade_pg.pg_get_userbyid(10)":                                                              "postgres",
		"select skade_pg.pg_get_userbyid(999)":                                                             "unknown (OID=999)",
		"select skade_pg.pg_table_is_visible(16386)":                                                       "f",
		"select skade_pg.pg_table_is_visible(1259)":                                                        "t",
		"select skade_pg.regclass_in('sales.orders')":                                                      "16386",
		"select skade_pg.regclass_out(skade_pg.regclass_in('pg_class'))":                                   "pg_class",
		"select skade_pg.regclass_out(16386)":                                                              "sales.orders",
		"select skade_pg.to_regclass('nope')":                                                              `\N`,
		"select skade_pg.regproc_in('version')":                                                            "89",
		"select skade_pg.regtype_out(23)":                                                                  "integer",
		"select skade_pg.regtype_in('sales.orders[]')":                                                     "536887298",
		"select skade_pg.pg_get_constraintdef(4<<28|16386, true)":                                          "PRIMARY KEY (id)",
		"select skade_pg.pg_get_indexdef(3<<28|16386, 0, true)":                                            "CREATE UNIQUE INDEX orders_pkey ON sales.orders USING btree (id)",
		"select skade_pg.pg_get_indexdef(3<<28|16386, 1, true)":                                            "id",
		"select skade_pg.obj_description(16386, 'pg_class')":                                               "orders table",
		"select skade_pg.obj_description(16386)":                                                           "orders table",
		"select skade_pg.has_table_privilege('sales.orders', 'select')":                                    "t",
		"select skade_pg.has_table_privilege('postgres', 16386, 'select, insert')":                         "t",
		"select skade_pg.has_schema_privilege(99999, 'usage')":                                             `\N`,
		"select skade_pg.current_schemas(true)":                                                            "{pg_catalog,skade,public}",
		"select skade_pg.pg_size_pretty(123456789)":                                                        "118 MB",
		"select skade_pg.quote_ident('select')":                                                            `"select"`,
		"select skade_pg.pg_encoding_to_char(6)":                                                           "UTF8",
		"select skade_pg.pg_get_function_arguments(15100)":                                                 "seq bigint, lim integer DEFAULT 100",
		"select skade_pg.pg_get_function_result(15100)":                                                    "TABLE(commit_seq bigint, tables text[])",
		"select skade_pg.pg_get_viewdef('sales.v'::varchar, true)":                                         " SELECT orders.id,\n    orders.amt\n   FROM sales.orders;",
		"select skade_pg.current_setting('work_mem')":                                                      "4MB",
		"select skade_pg.current_setting('nope', true)":                                                    `\N`,
		"select skade_pg.pg_get_expr('1+1', 5)":                                                            "1+1",
		"select list(x) from (select skade_pg.vector_subscripts([4,5,6]) x)":                               "{0,1,2}",
		"select list(skade_x.n) from (select skade_pg._pg_expandarray([7::smallint,9::smallint]) skade_x)": "{1,2}",
		"select skade_pg._pg_expandarray([7::smallint]).x":                                                 "7",
		"select count(*) from (select skade_pg.aclexplode(['postgres=UC/postgres','=U*/postgres']))":       "3",
		"select skade_pg.pg_backend_pid()":                                                                 "4711",
		"select left(skade_pg.version(), 16)":                                                              "PostgreSQL 15.18",
		"select skade_pg.pg_get_functiondef(89)":                                                           "CREATE OR REPLACE FUNCTION pg_catalog.version()\n RETURNS text\n LANGUAGE internal\n STABLE PARALLEL SAFE STRICT\nAS $function$pgsql_version$function$\n",
	} {
		got, err := l.value(query)
		require.NoError(t, err, query)
		require.Equal(t, want, got, query)
	}
	for query, want := range map[string]string{
		"select skade_pg.regclass_in('nope')":                         `relation "nope" does not exist`,
		"select skade_pg.regtype_in('nope')":                          `type "nope" does not exist`,
		"select skade_pg.regproc_in('lower')":                         `more than one function named "lower"`,
		"select skade_pg.has_table_privilege('sales.orders', 'frob')": `unrecognized privilege type: "frob"`,
	} {
		_, err := l.value(query)
		require.ErrorContains(t, err, want, query)
	}
}

// Every relation is there and can be made (K1).
func TestRelations(t *testing.T) {
	l := newLab(t, salesObjects())
	require.GreaterOrEqual(t, len(Relations()), 208)
	for _, r := range Relations() {
		schema, batches, n, err := l.snap.Relation(l.session, r.Schema, r.Name)
		require.NoError(t, err, r.Name)
		require.Equal(t, len(r.Columns), schema.NumFields(), r.Name)
		got := int64(0)
		for _, b := range batches {
			got += b.NumRows()
			for i, c := range r.Columns {
				if c.NotNull {
					require.Zero(t, b.Column(i).NullN(), "%s.%s", r.Name, c.Name)
				}
			}
		}
		require.Equal(t, n, got, r.Name)
	}
}
