package pgcatalog

import "sort"

// CatalogFunction is a function of pg_catalog or information_schema that this package answers for.
type CatalogFunction struct {
	Schema string
	Name   string
	// Args are type OIDs; "any" (2276) takes an object by OID or by name.
	Args   []uint32
	Return uint32
	// SetReturning functions give several rows, in the select list or in FROM.
	SetReturning bool
	// Duck is the DuckDB function or macro that runs it: "skade_pg.format_type".
	Duck string
}

// Functions lists the catalog functions that SQL may call, by name and number of arguments. A name occurs once for each number
// of arguments that it takes.
func Functions() []CatalogFunction { return catalogFunctions }

var catalogFunctions []CatalogFunction

const anyType uint32 = 2276

// functions are all functions in Go, macros those in SQL.
var functions []function

func init() {
	for _, group := range [][]function{formatFunctions, visibilityFunctions(), definitionFunctions, commentFunctions, privilegeFunctions(), sizeFunctions, sessionFunctions, settingFunctions, regFunctions()} {
		functions = append(functions, group...)
	}
	for i := range functions {
		f := &functions[i]
		out := CatalogFunction{Schema: "pg_catalog", Name: f.name, Return: kindOID[f.result], Duck: Schema + "." + f.name}
		if f.returns != 0 {
			out.Return = f.returns
		}
		for _, k := range f.args {
			t := kindOID[k]
			if k == kAny {
				t = anyType
			}
			out.Args = append(out.Args, t)
		}
		catalogFunctions = append(catalogFunctions, out)
	}
	for _, m := range macros {
		for _, f := range m.forms {
			schema := m.schema
			if schema == "" {
				schema = "pg_catalog"
			}
			catalogFunctions = append(catalogFunctions, CatalogFunction{Schema: schema, Name: m.name, Args: f.args, Return: m.returns, SetReturning: m.set, Duck: Schema + "." + m.name})
		}
	}
	sort.SliceStable(catalogFunctions, func(i, j int) bool { return catalogFunctions[i].Name < catalogFunctions[j].Name })
}
