package pgcatalog

// CatalogFunction is a function of pg_catalog (or information_schema) that this package answers for.
type CatalogFunction struct {
	Schema string
	Name   string
	// Args are type OIDs of the most general form; trailing Optional ones may be left out.
	Args     []uint32
	Optional int
	Return   uint32
	// SetReturning functions give several rows.
	SetReturning bool
	Volatile     bool
	// Duck is the DuckDB function or macro that runs it: "skade_pg.format_type".
	Duck string
}

// Functions lists the catalog functions that SQL may call, by schema and name. A name may occur several times (overloads).
func Functions() []CatalogFunction { return catalogFunctions }
