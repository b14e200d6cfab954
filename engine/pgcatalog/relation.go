package pgcatalog

// SystemRelation is a table or view of pg_catalog, information_schema or skade.
type SystemRelation struct {
	Schema string
	Name   string
	OID    uint32
	// Kind is pg_class.relkind: 'r' or 'v'; 'F' is a set-returning catalog function without arguments (pg_get_keywords).
	Kind    byte
	Columns []Column
}

// Column is one column of a SystemRelation.
type Column struct {
	Name    string
	AttNum  int16
	TypeOID uint32
	TypeMod int32
	// DuckType is the DuckDB type of the values.
	DuckType string
	NotNull  bool
	// Hidden columns (tableoid, xmin, xmax, cmin, cmax, ctid) can be named but are not part of *. They come last.
	Hidden bool
}

// Relations lists the catalog's relations, by schema and name. The slice is shared: do not change it.
func Relations() []*SystemRelation { return catalogRelations().list }

// LookupRelation finds a relation, or gives nil.
func LookupRelation(schema, name string) *SystemRelation {
	return catalogRelations().byName[schema+"."+name]
}
