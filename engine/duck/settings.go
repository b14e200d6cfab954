package duck

import (
	"strconv"
	"strings"
)

// startSettings are given to DuckDB when the instance opens: the ones that shape it.
func (db *DB) startSettings() [][2]string {
	o := db.opts
	kv := [][2]string{
		{"threads", strconv.Itoa(o.Threads)},
		{"temp_directory", o.TempDir},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_persistent_secrets", "false"},
		{"allow_community_extensions", "false"},
		{"allow_unsigned_extensions", "false"},
		// Structured errors: MapError reads fields instead of guessing in prose.
		{"errors_as_json", "true"},
		// PostgreSQL's: 7/2 = 3, NULLs sort as the largest value.
		{"integer_division", "true"},
		{"default_null_order", "nulls_last_on_asc_first_on_desc"},
	}
	if o.MemoryLimit > 0 {
		kv = append(kv, [2]string{"memory_limit", strconv.FormatInt(o.MemoryLimit, 10) + "B"})
	}
	if o.TempDir != "" {
		kv = append(kv, [2]string{"max_temp_directory_size", strconv.FormatInt(o.TempLimit, 10) + "B"})
	}
	return kv
}

// lockStatements close the door behind InitSQL (D1). The order matters: directories must be named before access is
// disabled, and lock_configuration is last because nothing can be set after it but allowed_configs.
func (db *DB) lockStatements() []string {
	dirs := make([]string, len(db.opts.AllowedDirs))
	for i, d := range db.opts.AllowedDirs {
		dirs[i] = quoteLiteral(strings.TrimRight(d, "/") + "/")
	}
	return []string{
		// Data files are immutable, so a footer read once stays true.
		"SET GLOBAL parquet_metadata_cache = true",
		"SET GLOBAL allowed_directories = [" + strings.Join(dirs, ", ") + "]",
		"SET GLOBAL enable_external_access = false",
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL allow_persistent_secrets = false",
		"SET GLOBAL allowed_configs = ['TimeZone', 'search_path', 'streaming_buffer_size']",
		"SET GLOBAL lock_configuration = true",
	}
}

// quoteLiteral writes s as a SQL string literal of DuckDB (no escape sequences; a quote is doubled).
func quoteLiteral(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// quoteIdent writes s as a quoted identifier.
func quoteIdent(s string) string {
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
