// Package pgtype answers one question: which PostgreSQL type is this, and what is it in Iceberg, in Arrow and in DuckDB.
//
// Words. A type is a row of PostgreSQL 15's pg_type, found by OID or by name. A typmod is the int32 that PostgreSQL
// stores beside a type (length of varchar, precision and scale of numeric, precision of a time type); -1 means none.
// A property is the value of the table property "skade.pgtype.<field id>", which keeps a column's declared type when
// the Iceberg type alone would lose it (int2 is an Iceberg int, jsonb a string).
//
// Invariants.
//
//	T1  ByOID and ByName find every built-in type of PostgreSQL 15: base, pseudo, range and the row types with fixed OIDs.
//	T2  FromIceberg(ToIceberg(oid, typmod)) is (oid, typmod) for every storable type. A numeric without a typmod or beyond
//	    38 digits keeps its name, while decimal(38, s) bounds its values.
//	T3  FromIceberg never fails: an Iceberg type without a PostgreSQL counterpart is jsonb when nested, else text.
//
// Everything here is a pure function over a table built at start-up; all of it is safe for concurrent use.
//
// It does not know user-defined types (enums), which have OIDs from the catalog, and it converts no values (internal/pgenc).
package pgtype
