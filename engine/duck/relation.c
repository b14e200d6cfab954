// C ends of the functions whose rows Go makes: the table function skade_rel and scalar functions. DuckDB calls these, they
// call Go with numbers.
#include "relation.h"
#include "_cgo_export.h"
#include <stdlib.h>

typedef struct {
	uint64_t handle;
} cell;

static cell *new_cell(uint64_t handle) {
	cell *c = malloc(sizeof *c);
	c->handle = handle;
	return c;
}

static void free_number(void *p) { free(p); }

static void free_cell(void *p) {
	skadeFree(((cell *)p)->handle);
	free(p);
}

void skade_bind_data(duckdb_bind_info info, uint64_t handle) { duckdb_bind_set_bind_data(info, new_cell(handle), free_cell); }
uint64_t skade_init_bind_data(duckdb_init_info info) { return ((cell *)duckdb_init_get_bind_data(info))->handle; }
void skade_init_data(duckdb_init_info info, uint64_t handle) { duckdb_init_set_init_data(info, new_cell(handle), free_cell); }

static void rel_bind(duckdb_bind_info info) {
	duckdb_client_context ctx = NULL;
	duckdb_table_function_get_client_context(info, &ctx);
	uint64_t conn = duckdb_client_context_get_connection_id(ctx);
	duckdb_destroy_client_context(&ctx);
	skadeRelBind(((cell *)duckdb_bind_get_extra_info(info))->handle, conn, info);
}

static void rel_init(duckdb_init_info info) { skadeRelInit(info); }

static void rel_function(duckdb_function_info info, duckdb_data_chunk out) {
	skadeRelNext(((cell *)duckdb_function_get_init_data(info))->handle, info, out);
}

duckdb_state skade_register_rel(duckdb_connection con, uint64_t db) {
	duckdb_table_function f = duckdb_create_table_function();
	duckdb_logical_type varchar = duckdb_create_logical_type(17);
	duckdb_table_function_set_name(f, "skade_rel");
	duckdb_table_function_add_parameter(f, varchar);
	duckdb_table_function_set_extra_info(f, new_cell(db), free_number);
	duckdb_table_function_set_bind(f, rel_bind);
	duckdb_table_function_set_init(f, rel_init);
	duckdb_table_function_set_function(f, rel_function);
	duckdb_table_function_supports_projection_pushdown(f, true);
	duckdb_state st = duckdb_register_table_function(con, f);
	duckdb_destroy_logical_type(&varchar);
	duckdb_destroy_table_function(&f);
	return st;
}

static void scalar_function(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	skadeScalar(((cell *)duckdb_scalar_function_get_extra_info(info))->handle, info, in, out);
}

duckdb_state skade_register_scalar(duckdb_connection con, duckdb_scalar_function f, uint64_t fn) {
	duckdb_scalar_function_set_extra_info(f, new_cell(fn), free_number);
	duckdb_scalar_function_set_function(f, scalar_function);
	return duckdb_register_scalar_function(con, f);
}
