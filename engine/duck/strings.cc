// Strings of Arrow's layout into DuckDB's vectors. In C++ for the exceptions that DuckDB's C functions let through.
#include <string.h>
extern "C" {
#include "relation.h"
}

// string_value is duckdb.h's duckdb_string_t.
typedef union {
	struct {
		uint32_t length;
		char prefix[4];
		char *ptr;
	} pointer;
	struct {
		uint32_t length;
		char inlined[12];
	} inlined;
} string_value;

// assign writes one string. Up to 12 bytes lie in the element itself, as duckdb.h declares it. A longer one is copied to
// the vector's heap, unless it is one of the two before it: _change_type and other columns of few values repeat.
static inline void assign(duckdb_vector v, string_value *out, idx_t at, const char *data, idx_t len, string_value *last) {
	if (len <= sizeof(out->inlined.inlined)) {
		string_value s;
		memset(&s, 0, sizeof(s));
		s.inlined.length = (uint32_t)len;
		if (len > 0) {
			memcpy(s.inlined.inlined, data, len);
		}
		out[at] = s;
		return;
	}
	for (int k = 0; k < 2; k++) {
		if (last[k].pointer.length == len && memcmp(last[k].pointer.ptr, data, len) == 0) {
			out[at] = last[k];
			return;
		}
	}
	duckdb_unsafe_vector_assign_string_element_len(v, at, data, len);
	last[1] = last[0];
	last[0] = out[at];
}

// assign_all returns 0, or 1 when DuckDB has no memory for the bytes: it throws, and nothing may be thrown through Go.
template <class T>
static int assign_all(duckdb_vector v, idx_t at, const T *offsets, const char *data, idx_t n) {
	string_value *out = (string_value *)duckdb_vector_get_data(v), last[2];
	memset(last, 0, sizeof(last));
	try {
		for (idx_t i = 0; i < n; i++) {
			assign(v, out, at + i, data + offsets[i], (idx_t)(offsets[i + 1] - offsets[i]), last);
		}
	} catch (...) {
		return 1;
	}
	return 0;
}

extern "C" int skade_assign_strings(duckdb_vector v, idx_t at, const int32_t *offsets, const char *data, idx_t n) {
	return assign_all(v, at, offsets, data, n);
}

extern "C" int skade_assign_large_strings(duckdb_vector v, idx_t at, const int64_t *offsets, const char *data, idx_t n) {
	return assign_all(v, at, offsets, data, n);
}
