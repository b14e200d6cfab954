package pgcatalog

// cutRelations and sessionRelations are the relations that have rows besides PostgreSQL's own. All others are static.
// They are filled in by init because a generator may itself look relations up.
var (
	cutRelations     map[string]cutRows
	sessionRelations map[string]sessionRows
)

// computed are the session relations whose static rows are only their input.
var computed = map[string]bool{"pg_catalog.pg_timezone_names": true}

func init() {
	cutRelations = map[string]cutRows{
		"pg_catalog.pg_class":              classRows,
		"pg_catalog.pg_attribute":          attributeRows,
		"pg_catalog.pg_attrdef":            attrdefRows,
		"pg_catalog.pg_type":               typeRows,
		"pg_catalog.pg_index":              indexRows,
		"pg_catalog.pg_constraint":         constraintRows,
		"pg_catalog.pg_rewrite":            rewriteRows,
		"pg_catalog.pg_sequence":           sequenceRows,
		"pg_catalog.pg_depend":             dependRows,
		"pg_catalog.pg_namespace":          namespaceRows,
		"pg_catalog.pg_database":           databaseRows,
		"pg_catalog.pg_authid":             authIDRows,
		"pg_catalog.pg_roles":              roleRows,
		"pg_catalog.pg_user":               userRows,
		"pg_catalog.pg_shadow":             shadowRows,
		"pg_catalog.pg_group":              groupRows,
		"pg_catalog.pg_auth_members":       memberRows,
		"pg_catalog.pg_description":        descriptionRows,
		"pg_catalog.pg_shdescription":      sharedDescriptionRows,
		"pg_catalog.pg_proc":               procRows,
		"pg_catalog.pg_tables":             tablesRows,
		"pg_catalog.pg_views":              viewsRows,
		"pg_catalog.pg_indexes":            indexesRows,
		"pg_catalog.pg_stat_user_tables":   statTableRows,
		"pg_catalog.pg_stat_all_tables":    statTableRows,
		"pg_catalog.pg_stat_user_indexes":  statIndexRows,
		"pg_catalog.pg_stat_all_indexes":   statIndexRows,
		"pg_catalog.pg_statio_user_tables": statioTableRows,
		"pg_catalog.pg_statio_all_tables":  statioTableRows,
		"pg_catalog.pg_stat_database":      statDatabaseRows,

		"information_schema.schemata":                schemataRows,
		"information_schema.tables":                  infoTableRows,
		"information_schema.columns":                 infoColumnRows,
		"information_schema.views":                   infoViewRows,
		"information_schema.element_types":           elementTypeRows,
		"information_schema.column_udt_usage":        columnUDTRows,
		"information_schema.key_column_usage":        keyColumnRows,
		"information_schema.table_constraints":       tableConstraintRows,
		"information_schema.constraint_column_usage": constraintColumnRows,
		"information_schema.constraint_table_usage":  constraintTableRows,
		"information_schema.check_constraints":       checkConstraintRows,
		"information_schema.role_table_grants":       tableGrantRows,
		"information_schema.table_privileges":        tableGrantRows,
		"information_schema.role_column_grants":      columnGrantRows,
		"information_schema.column_privileges":       columnGrantRows,
		"information_schema.enabled_roles":           enabledRoleRows,
		"information_schema.sequences":               infoSequenceRows,
		"information_schema.column_column_usage":     columnColumnRows,
		"information_schema.routines":                routineRows,
		"information_schema.parameters":              parameterRows,
	}
	sessionRelations = map[string]sessionRows{
		"pg_catalog.pg_settings":            settingRows,
		"pg_catalog.pg_stat_activity":       activityRows,
		"pg_catalog.pg_locks":               lockRows,
		"pg_catalog.pg_stat_progress_copy":  copyProgressRows,
		"pg_catalog.pg_prepared_statements": preparedRows,
		"pg_catalog.pg_cursors":             cursorRows,
		"pg_catalog.pg_sequences":           sequencesRows,
		"pg_catalog.pg_stat_ssl":            sslRows,
		"pg_catalog.pg_stat_gssapi":         gssRows,
		"pg_catalog.pg_timezone_names":      timezoneRows,
	}
}
