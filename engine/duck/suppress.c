// The filter of a scan over files with suppressed rows:
//
//	skade_live(set BIGINT, file_index BIGINT, file_row_number BIGINT) -> BOOLEAN
//
// true for a live row. `set` is a constant that names a registered set of bitmaps; it is resolved once, when the statement is
// bound, and the plan holds a reference, so the caller may release the set while the statement still runs.
#include "suppress.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct skade_set {
	int64_t refs;
	uint64_t nfiles;
	skade_bitmap **files;
} skade_set;

static int64_t bitmaps_alive, sets_alive;

skade_bitmap *skade_bitmap_new(uint64_t nwords) {
	skade_bitmap *b = malloc(sizeof *b);
	uint64_t *words = calloc(nwords ? nwords : 1, sizeof *words);
	if (!b || !words) {
		free(b);
		free(words);
		return NULL;
	}
	b->refs = 1;
	b->nwords = nwords;
	b->words = words;
	__atomic_add_fetch(&bitmaps_alive, 1, __ATOMIC_RELAXED);
	return b;
}

static void bitmap_ref(skade_bitmap *b) { __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED); }

void skade_bitmap_unref(skade_bitmap *b) {
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) != 0) {
		return;
	}
	free(b->words);
	free(b);
	__atomic_sub_fetch(&bitmaps_alive, 1, __ATOMIC_RELAXED);
}

int64_t skade_bitmaps_alive(void) { return __atomic_load_n(&bitmaps_alive, __ATOMIC_RELAXED); }
int64_t skade_sets_alive(void) { return __atomic_load_n(&sets_alive, __ATOMIC_RELAXED); }

static void set_unref(void *p) {
	skade_set *s = p;
	if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) != 0) {
		return;
	}
	for (uint64_t i = 0; i < s->nfiles; i++) {
		skade_bitmap_unref(s->files[i]);
	}
	free(s->files);
	free(s);
	__atomic_sub_fetch(&sets_alive, 1, __ATOMIC_RELAXED);
}

static void *set_copy(void *p) {
	__atomic_add_fetch(&((skade_set *)p)->refs, 1, __ATOMIC_RELAXED);
	return p;
}

// Registered sets: a table of slots. An id is slot + 1 + (generation << 24); a stale id finds nothing.
typedef struct {
	skade_set *set;
	uint64_t id;
} slot;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static slot *slots;
static uint64_t nslots, generation, hint;

uint64_t skade_set_register(skade_bitmap **files, uint64_t nfiles) {
	skade_set *s = malloc(sizeof *s);
	s->refs = 1;
	s->nfiles = nfiles;
	s->files = malloc((nfiles ? nfiles : 1) * sizeof *s->files);
	for (uint64_t i = 0; i < nfiles; i++) {
		s->files[i] = files[i];
		if (files[i]) {
			bitmap_ref(files[i]);
		}
	}
	__atomic_add_fetch(&sets_alive, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&mu);
	uint64_t i = hint;
	while (i < nslots && slots[i].set) {
		i++;
	}
	if (i == nslots) {
		uint64_t n = nslots ? nslots * 2 : 64;
		slots = realloc(slots, n * sizeof *slots);
		memset(slots + nslots, 0, (n - nslots) * sizeof *slots);
		nslots = n;
	}
	hint = i + 1;
	generation++;
	slots[i].set = s;
	slots[i].id = (generation << 24) | (i + 1);
	uint64_t id = slots[i].id;
	pthread_mutex_unlock(&mu);
	return id;
}

void skade_set_release(uint64_t id) {
	uint64_t i = (id & 0xffffff) - 1;
	skade_set *s = NULL;
	pthread_mutex_lock(&mu);
	if (i < nslots && slots[i].set && slots[i].id == id) {
		s = slots[i].set;
		slots[i].set = NULL;
		if (i < hint) {
			hint = i;
		}
	}
	pthread_mutex_unlock(&mu);
	set_unref(s);
}

static skade_set *set_lookup(uint64_t id) {
	uint64_t i = (id & 0xffffff) - 1;
	skade_set *s = NULL;
	pthread_mutex_lock(&mu);
	if (i < nslots && slots[i].set && slots[i].id == id) {
		s = set_copy(slots[i].set);
	}
	pthread_mutex_unlock(&mu);
	return s;
}

static void live_bind(duckdb_bind_info info) {
	skade_set *s = NULL;
	duckdb_expression arg = duckdb_scalar_function_bind_get_argument(info, 0);
	if (arg && duckdb_expression_is_foldable(arg)) {
		duckdb_client_context ctx = NULL;
		duckdb_value v = NULL;
		duckdb_scalar_function_get_client_context(info, &ctx);
		duckdb_error_data e = duckdb_expression_fold(ctx, arg, &v);
		if (!duckdb_error_data_has_error(e) && v) {
			s = set_lookup((uint64_t)duckdb_get_int64(v));
		}
		duckdb_destroy_error_data(&e);
		duckdb_destroy_value(&v);
		duckdb_destroy_client_context(&ctx);
	}
	duckdb_destroy_expression(&arg);
	if (!s) {
		duckdb_scalar_function_bind_set_error(info, "skade: unknown scan");
		return;
	}
	duckdb_scalar_function_set_bind_data(info, s, set_unref);
	duckdb_scalar_function_set_bind_data_copy(info, set_copy);
}

static inline bool suppressed(const skade_bitmap *b, uint64_t p) {
	return (p >> 6) < b->nwords && ((b->words[p >> 6] >> (p & 63)) & 1);
}

// Tests n rows of one file. Without a filter in the reader the positions ascend by one: then a word with no bit set answers
// for 64 rows at once.
static void live_run(const skade_bitmap *b, const int64_t *pos, idx_t n, uint8_t *out) {
	if (!b) {
		memset(out, 1, n);
		return;
	}
	idx_t i = 0;
	bool dense = pos[n - 1] - pos[0] == (int64_t)(n - 1);
	while (dense && i < n) {
		uint64_t p = (uint64_t)pos[i], w = p >> 6;
		idx_t k = 64 - (p & 63);
		if (k > n - i) {
			k = n - i;
		}
		if (pos[i + k - 1] != (int64_t)(p + k - 1)) {
			break;
		}
		uint64_t bits = w < b->nwords ? b->words[w] >> (p & 63) : 0;
		if (!bits) {
			memset(out + i, 1, k);
		} else {
			for (idx_t j = 0; j < k; j++) {
				out[i + j] = !((bits >> j) & 1);
			}
		}
		i += k;
	}
	for (; i < n; i++) {
		out[i] = !suppressed(b, (uint64_t)pos[i]);
	}
}

static void live(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	const skade_set *s = duckdb_scalar_function_get_bind_data(info);
	idx_t n = duckdb_data_chunk_get_size(in);
	const uint64_t *file = duckdb_vector_get_data(duckdb_data_chunk_get_vector(in, 1));
	const int64_t *pos = duckdb_vector_get_data(duckdb_data_chunk_get_vector(in, 2));
	uint8_t *o = duckdb_vector_get_data(out);
	idx_t i = 0;
	while (i < n) {
		idx_t end = i + 1;
		while (end < n && file[end] == file[i]) {
			end++;
		}
		live_run(file[i] < s->nfiles ? s->files[file[i]] : NULL, pos + i, end - i, o + i);
		i = end;
	}
}

#define TYPE_BOOLEAN 1
#define TYPE_BIGINT 5
#define TYPE_UBIGINT 9

duckdb_state skade_register_live(duckdb_connection con) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_logical_type big = duckdb_create_logical_type(TYPE_BIGINT);
	duckdb_logical_type ubig = duckdb_create_logical_type(TYPE_UBIGINT);
	duckdb_logical_type boolean = duckdb_create_logical_type(TYPE_BOOLEAN);
	duckdb_scalar_function_set_name(f, "skade_live");
	duckdb_scalar_function_add_parameter(f, big);
	duckdb_scalar_function_add_parameter(f, ubig);
	duckdb_scalar_function_add_parameter(f, big);
	duckdb_scalar_function_set_return_type(f, boolean);
	duckdb_scalar_function_set_bind(f, live_bind);
	duckdb_scalar_function_set_function(f, live);
	duckdb_state st = duckdb_register_scalar_function(con, f);
	duckdb_destroy_logical_type(&big);
	duckdb_destroy_logical_type(&ubig);
	duckdb_destroy_logical_type(&boolean);
	duckdb_destroy_scalar_function(&f);
	return st;
}
