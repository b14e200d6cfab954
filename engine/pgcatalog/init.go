package pgcatalog

// Schema is the DuckDB schema of the macros.
const Schema = "skade_pg"

// InitSQL lists the statements, in order, that make the macros behind Functions. They need the Scalars to be registered when they
// are called, not when they are made.
func InitSQL() []string {
	out := []string{"CREATE SCHEMA IF NOT EXISTS " + Schema}
	var order []string
	byName := map[string][]*function{}
	for i := range functions {
		f := &functions[i]
		if byName[f.name] == nil {
			order = append(order, f.name)
		}
		byName[f.name] = append(byName[f.name], f)
	}
	for _, name := range order {
		out = append(out, macroSQL(name, byName[name]))
	}
	for _, m := range macros {
		if len(m.forms) > 0 {
			out = append(out, m.macroText())
		}
	}
	return out
}
