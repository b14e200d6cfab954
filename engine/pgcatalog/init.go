package pgcatalog

// Schema is the DuckDB schema of the macros.
const Schema = "skade_pg"

// InitSQL lists the statements, in order, that make the macros behind Functions. They need nothing but a fresh instance.
func InitSQL() []string { return []string{"CREATE SCHEMA IF NOT EXISTS " + Schema} }
