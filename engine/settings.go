package engine

import (
	"slices"
	"strings"
)

// setting is one GUC as pg_settings shows it.
// Source: PostgreSQL 15, src/backend/utils/misc/guc.c.
type setting struct {
	name    string
	value   string // default
	vartype string // bool, integer, real, string, enum
	unit    string // ms, kB or ""
	context string // internal, postmaster, user, superuser
	report  bool   // GUC_REPORT: clients get a ParameterStatus
	enum    []string
	min     int64
	max     int64
	desc    string
}

func boolSetting(name, value, desc string) setting {
	return setting{name: name, value: value, vartype: "bool", context: "user", desc: desc}
}

func stringSetting(name, value, desc string) setting {
	return setting{name: name, value: value, vartype: "string", context: "user", desc: desc}
}

func enumSetting(name, value, desc string, enum ...string) setting {
	return setting{name: name, value: value, vartype: "enum", context: "user", enum: enum, desc: desc}
}

func intSetting(name, value, unit string, lo, hi int64, desc string) setting {
	return setting{name: name, value: value, vartype: "integer", unit: unit, context: "user", min: lo, max: hi, desc: desc}
}

func internal(s setting) setting {
	s.context = "internal"
	return s
}

func reported(s setting) setting {
	s.report = true
	return s
}

// serverVersion is the PostgreSQL release whose behaviour and catalogs are shown.
const serverVersion = "15.18"

var isolationLevels = []string{"serializable", "repeatable read", "read committed", "read uncommitted"}

// settings lists every GUC that SET, SHOW and pg_settings know, sorted by name in an init of settingByName.
var settings = []setting{
	reported(stringSetting("application_name", "", "Sets the application name to be reported in statistics and logs.")),
	enumSetting("backslash_quote", "safe_encoding", "Sets whether \"\\'\" is allowed in string literals.", "safe_encoding", "on", "off"),
	internal(intSetting("block_size", "8192", "", 8192, 8192, "Shows the size of a disk block.")),
	enumSetting("bytea_output", "hex", "Sets the output format for bytea.", "escape", "hex"),
	boolSetting("check_function_bodies", "on", "Check routine bodies during CREATE FUNCTION and CREATE PROCEDURE."),
	reported(stringSetting("client_encoding", "UTF8", "Sets the client's character set encoding.")),
	enumSetting("client_min_messages", "notice", "Sets the message levels that are sent to the client.", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"),
	enumSetting("constraint_exclusion", "partition", "Enables the planner to use constraints to optimize queries.", "partition", "on", "off"),
	reported(stringSetting("DateStyle", "ISO, MDY", "Sets the display format for date and time values.")),
	enumSetting("default_table_access_method", "heap", "Sets the default table access method for new tables.", "heap"),
	stringSetting("default_tablespace", "", "Sets the default tablespace to create tables and indexes in."),
	boolSetting("default_transaction_deferrable", "off", "Sets the default deferrable status of new transactions."),
	intSetting("deadlock_timeout", "1000", "ms", 1, 2147483647, "Sets the time to wait on a lock before checking for deadlock."),
	enumSetting("default_transaction_isolation", "repeatable read", "Sets the transaction isolation level of each new transaction.", isolationLevels...),
	reported(boolSetting("default_transaction_read_only", "off", "Sets the default read-only status of new transactions.")),
	boolSetting("enable_hashagg", "on", "Enables the planner's use of hashed aggregation plans."),
	boolSetting("enable_hashjoin", "on", "Enables the planner's use of hash join plans."),
	boolSetting("enable_indexscan", "on", "Enables the planner's use of index-scan plans."),
	boolSetting("enable_mergejoin", "on", "Enables the planner's use of merge join plans."),
	boolSetting("enable_nestloop", "on", "Enables the planner's use of nested-loop join plans."),
	boolSetting("enable_seqscan", "on", "Enables the planner's use of sequential-scan plans."),
	boolSetting("escape_string_warning", "on", "Warn about backslash escapes in ordinary string literals."),
	intSetting("extra_float_digits", "1", "", -15, 3, "Sets the number of digits displayed for floating-point values."),
	boolSetting("geqo", "on", "Enables genetic query optimization."),
	boolSetting("hot_standby", "on", "Allows connections and queries during recovery."),
	intSetting("idle_in_transaction_session_timeout", "0", "ms", 0, 2147483647, "Sets the maximum allowed idle time between queries, when in a transaction."),
	intSetting("idle_session_timeout", "0", "ms", 0, 2147483647, "Sets the maximum allowed idle time between queries, when not in a transaction."),
	reported(internal(boolSetting("in_hot_standby", "off", "Shows whether hot standby is currently active."))),
	reported(internal(boolSetting("integer_datetimes", "on", "Shows whether datetimes are integer based."))),
	reported(enumSetting("IntervalStyle", "postgres", "Sets the display format for interval values.", "postgres", "postgres_verbose", "sql_standard", "iso_8601")),
	reported(internal(boolSetting("is_superuser", "on", "Shows whether the current user is a superuser."))),
	boolSetting("jit", "off", "Allow JIT compilation."),
	internal(stringSetting("lc_collate", "C", "Shows the collation order locale.")),
	internal(stringSetting("lc_ctype", "C.UTF-8", "Shows the character classification and case conversion locale.")),
	stringSetting("lc_messages", "C", "Sets the language in which messages are displayed."),
	stringSetting("lc_monetary", "C", "Sets the locale for formatting monetary amounts."),
	stringSetting("lc_numeric", "C", "Sets the locale for formatting numbers."),
	stringSetting("lc_time", "C", "Sets the locale for formatting date and time values."),
	intSetting("lock_timeout", "0", "ms", 0, 2147483647, "Sets the maximum allowed duration of any wait for a lock."),
	intSetting("maintenance_work_mem", "65536", "kB", 1024, 2147483647, "Sets the maximum memory to be used for maintenance operations."),
	internal(intSetting("max_connections", "100", "", 1, 262143, "Sets the maximum number of concurrent connections.")),
	internal(intSetting("max_function_args", "100", "", 100, 100, "Shows the maximum number of function arguments.")),
	internal(intSetting("max_identifier_length", "63", "", 63, 63, "Shows the maximum identifier length.")),
	internal(intSetting("max_index_keys", "32", "", 32, 32, "Shows the maximum number of index keys.")),
	enumSetting("password_encryption", "scram-sha-256", "Chooses the algorithm for encrypting passwords.", "md5", "scram-sha-256"),
	boolSetting("quote_all_identifiers", "off", "When generating SQL fragments, quote all identifiers."),
	setting{name: "random_page_cost", value: "4", vartype: "real", context: "user", desc: "Sets the planner's estimate of the cost of a nonsequentially fetched disk page."},
	boolSetting("row_security", "on", "Enable row security."),
	stringSetting("search_path", `"$user", public`, "Sets the schema search order for names that are not schema-qualified."),
	internal(stringSetting("segment_size", "131072", "Shows the number of pages per disk file.")),
	reported(internal(stringSetting("server_encoding", "UTF8", "Shows the server (database) character set encoding."))),
	reported(internal(stringSetting("server_version", serverVersion, "Shows the server version."))),
	internal(intSetting("server_version_num", serverVersionNum, "", 150000, 159999, "Shows the server version as an integer.")),
	stringSetting("session_replication_role", "origin", "Sets the session's behavior for triggers and rewrite rules."),
	reported(internal(stringSetting("session_authorization", "", "Sets the session user name."))),
	stringSetting("skade.branch", "", "Reads and writes the tables that have this branch on it."),
	enumSetting("skade.key_joins", "auto", "Looks up the rows of a table that is joined by its key when they are few (auto), whenever it can (always), or never (off).", "auto", "always", "off"),
	stringSetting("skade.as_of", "", "Reads every table as of this bound: seq:N, a snapshot, a timestamp or a tag."),
	boolSetting("ssl", "off", "Enables SSL connections."),
	reported(boolSetting("standard_conforming_strings", "on", "Causes '...' strings to treat backslashes literally.")),
	intSetting("statement_timeout", "0", "ms", 0, 2147483647, "Sets the maximum allowed duration of any statement."),
	enumSetting("synchronous_commit", "on", "Sets the current transaction's synchronization level.", "local", "remote_write", "remote_apply", "on", "off"),
	boolSetting("synchronize_seqscans", "on", "Enable synchronized sequential scans."),
	intSetting("tcp_keepalives_idle", "0", "s", 0, 2147483647, "Time between issuing TCP keepalives."),
	intSetting("temp_buffers", "1024", "8kB", 100, 1073741823, "Sets the maximum number of temporary buffers used by each session."),
	reported(stringSetting("TimeZone", "Etc/UTC", "Sets the time zone for displaying and interpreting time stamps.")),
	boolSetting("transaction_deferrable", "off", "Whether to defer a read-only serializable transaction."),
	enumSetting("transaction_isolation", "repeatable read", "Sets the current transaction's isolation level.", isolationLevels...),
	boolSetting("transaction_read_only", "off", "Sets the current transaction's read-only status."),
	boolSetting("transform_null_equals", "off", "Treats \"expr=NULL\" as \"expr IS NULL\"."),
	intSetting("vacuum_defer_cleanup_age", "0", "", 0, 1000000, "Number of transactions by which VACUUM and HOT cleanup should be deferred."),
	intSetting("work_mem", "65536", "kB", 64, 2147483647, "Sets the maximum memory to be used for query workspaces."),
	enumSetting("xmlbinary", "base64", "Sets how binary values are to be encoded in XML.", "base64", "hex"),
	enumSetting("xmloption", "content", "Sets whether XML data is to be considered as documents or content fragments.", "content", "document"),
}

var settingByName = func() map[string]*setting {
	slices.SortFunc(settings, func(a, b setting) int {
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
	m := make(map[string]*setting, len(settings))
	for i := range settings {
		m[strings.ToLower(settings[i].name)] = &settings[i]
	}
	return m
}()
