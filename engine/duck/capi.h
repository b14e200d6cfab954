// The part of DuckDB's C API (duckdb.h of v1.5) that this package's C code calls. The bindings module carries the full
// header, which cgo cannot include from another module; the API is declared stable, and handles are opaque pointers.
#ifndef SKADE_CAPI_H
#define SKADE_CAPI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t idx_t;
typedef int duckdb_state; // 0 = success
typedef void *duckdb_connection;
typedef void *duckdb_client_context;
typedef void *duckdb_data_chunk;
typedef void *duckdb_vector;
typedef void *duckdb_logical_type;
typedef void *duckdb_value;
typedef void *duckdb_expression;
typedef void *duckdb_error_data;
typedef void *duckdb_bind_info;
typedef void *duckdb_init_info;
typedef void *duckdb_function_info;
typedef void *duckdb_scalar_function;
typedef void *duckdb_table_function;
typedef void (*duckdb_delete_callback_t)(void *data);
typedef void *(*duckdb_copy_callback_t)(void *data);

extern idx_t duckdb_data_chunk_get_size(duckdb_data_chunk);
extern void duckdb_data_chunk_set_size(duckdb_data_chunk, idx_t);
extern idx_t duckdb_data_chunk_get_column_count(duckdb_data_chunk);
extern duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk, idx_t);
extern void *duckdb_vector_get_data(duckdb_vector);
extern uint64_t *duckdb_vector_get_validity(duckdb_vector);
extern void duckdb_vector_ensure_validity_writable(duckdb_vector);
extern void duckdb_vector_reference_value(duckdb_vector, duckdb_value);
extern void duckdb_unsafe_vector_assign_string_element_len(duckdb_vector, idx_t, const char *, idx_t);
extern duckdb_vector duckdb_list_vector_get_child(duckdb_vector);
extern idx_t duckdb_list_vector_get_size(duckdb_vector);
extern duckdb_state duckdb_list_vector_set_size(duckdb_vector, idx_t);
extern duckdb_state duckdb_list_vector_reserve(duckdb_vector, idx_t);
extern duckdb_vector duckdb_struct_vector_get_child(duckdb_vector, idx_t);

extern duckdb_logical_type duckdb_create_logical_type(int);
extern void duckdb_destroy_logical_type(duckdb_logical_type *);
extern duckdb_value duckdb_create_bool(bool);
extern int64_t duckdb_get_int64(duckdb_value);
extern char *duckdb_get_varchar(duckdb_value);
extern void duckdb_destroy_value(duckdb_value *);
extern void duckdb_free(void *);

extern bool duckdb_expression_is_foldable(duckdb_expression);
extern duckdb_error_data duckdb_expression_fold(duckdb_client_context, duckdb_expression, duckdb_value *);
extern void duckdb_destroy_expression(duckdb_expression *);
extern bool duckdb_error_data_has_error(duckdb_error_data);
extern void duckdb_destroy_error_data(duckdb_error_data *);
extern idx_t duckdb_client_context_get_connection_id(duckdb_client_context);
extern void duckdb_destroy_client_context(duckdb_client_context *);

extern duckdb_scalar_function duckdb_create_scalar_function(void);
extern void duckdb_destroy_scalar_function(duckdb_scalar_function *);
extern void duckdb_scalar_function_set_name(duckdb_scalar_function, const char *);
extern void duckdb_scalar_function_add_parameter(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_return_type(duckdb_scalar_function, duckdb_logical_type);
extern void duckdb_scalar_function_set_bind(duckdb_scalar_function, void (*)(duckdb_bind_info));
extern void duckdb_scalar_function_set_function(duckdb_scalar_function, void (*)(duckdb_function_info, duckdb_data_chunk, duckdb_vector));
extern duckdb_state duckdb_register_scalar_function(duckdb_connection, duckdb_scalar_function);
extern duckdb_expression duckdb_scalar_function_bind_get_argument(duckdb_bind_info, idx_t);
extern void duckdb_scalar_function_get_client_context(duckdb_bind_info, duckdb_client_context *);
extern void duckdb_scalar_function_bind_set_error(duckdb_bind_info, const char *);
extern void duckdb_scalar_function_set_bind_data(duckdb_bind_info, void *, duckdb_delete_callback_t);
extern void duckdb_scalar_function_set_bind_data_copy(duckdb_bind_info, duckdb_copy_callback_t);
extern void *duckdb_scalar_function_get_bind_data(duckdb_function_info);
extern void duckdb_scalar_function_set_extra_info(duckdb_scalar_function, void *, duckdb_delete_callback_t);
extern void *duckdb_scalar_function_get_extra_info(duckdb_function_info);
extern void duckdb_scalar_function_set_error(duckdb_function_info, const char *);

extern duckdb_table_function duckdb_create_table_function(void);
extern void duckdb_destroy_table_function(duckdb_table_function *);
extern void duckdb_table_function_set_name(duckdb_table_function, const char *);
extern void duckdb_table_function_add_parameter(duckdb_table_function, duckdb_logical_type);
extern void duckdb_table_function_set_extra_info(duckdb_table_function, void *, duckdb_delete_callback_t);
extern void duckdb_table_function_set_bind(duckdb_table_function, void (*)(duckdb_bind_info));
extern void duckdb_table_function_set_init(duckdb_table_function, void (*)(duckdb_init_info));
extern void duckdb_table_function_set_local_init(duckdb_table_function, void (*)(duckdb_init_info));
extern void duckdb_table_function_set_function(duckdb_table_function, void (*)(duckdb_function_info, duckdb_data_chunk));
extern void duckdb_table_function_supports_projection_pushdown(duckdb_table_function, bool);
extern duckdb_state duckdb_register_table_function(duckdb_connection, duckdb_table_function);
extern void duckdb_table_function_get_client_context(duckdb_bind_info, duckdb_client_context *);
extern void *duckdb_bind_get_extra_info(duckdb_bind_info);
extern duckdb_value duckdb_bind_get_parameter(duckdb_bind_info, idx_t);
extern void duckdb_bind_add_result_column(duckdb_bind_info, const char *, duckdb_logical_type);
extern void duckdb_bind_set_bind_data(duckdb_bind_info, void *, duckdb_delete_callback_t);
extern void duckdb_bind_set_cardinality(duckdb_bind_info, idx_t, bool);
extern void duckdb_bind_set_error(duckdb_bind_info, const char *);
extern void *duckdb_init_get_bind_data(duckdb_init_info);
extern void duckdb_init_set_init_data(duckdb_init_info, void *, duckdb_delete_callback_t);
extern idx_t duckdb_init_get_column_count(duckdb_init_info);
extern idx_t duckdb_init_get_column_index(duckdb_init_info, idx_t);
extern void duckdb_init_set_max_threads(duckdb_init_info, idx_t);
extern void duckdb_init_set_error(duckdb_init_info, const char *);
extern void *duckdb_function_get_bind_data(duckdb_function_info);
extern void *duckdb_function_get_init_data(duckdb_function_info);
extern void *duckdb_function_get_local_init_data(duckdb_function_info);
extern void duckdb_function_set_error(duckdb_function_info, const char *);

#endif
