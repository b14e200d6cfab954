#ifndef SKADE_RELATION_H
#define SKADE_RELATION_H
#include "capi.h"

// Registers skade_rel(id VARCHAR). db is the number of the Go side's DB.
duckdb_state skade_register_rel(duckdb_connection con, uint64_t db);
// Registers a scalar function whose rows Go computes. fn is its number.
duckdb_state skade_register_scalar(duckdb_connection con, duckdb_scalar_function f, uint64_t fn);

// Numbers in place of Go pointers (D7): DuckDB keeps a C cell with the number and frees it through Go.
void skade_bind_data(duckdb_bind_info info, uint64_t handle);
uint64_t skade_init_bind_data(duckdb_init_info info);
void skade_init_data(duckdb_init_info info, uint64_t handle);

// Fills rows [at, at+n) of a VARCHAR or BLOB vector from Arrow's offsets and bytes. Not 0: there is no memory for them.
int skade_assign_strings(duckdb_vector v, idx_t at, const int32_t *offsets, const char *data, idx_t n);
int skade_assign_large_strings(duckdb_vector v, idx_t at, const int64_t *offsets, const char *data, idx_t n);
#endif
