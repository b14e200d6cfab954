#ifndef SKADE_SUPPRESS_H
#define SKADE_SUPPRESS_H
#include "capi.h"

// A bitmap of suppressed positions of one data file, one bit a row. Counted references; immutable once a second holder exists.
typedef struct skade_bitmap {
	int64_t refs;
	uint64_t nwords;
	uint64_t *words;
} skade_bitmap;

skade_bitmap *skade_bitmap_new(uint64_t nwords); // all clear; NULL when out of memory
void skade_bitmap_unref(skade_bitmap *b);

// The bitmaps of a scan, by file index; NULL = a clean file. Known to SQL by number.
uint64_t skade_set_register(skade_bitmap **files, uint64_t nfiles); // takes a reference of each
void skade_set_release(uint64_t id);
int64_t skade_sets_alive(void);
int64_t skade_bitmaps_alive(void);

duckdb_state skade_register_live(duckdb_connection con);
#endif
