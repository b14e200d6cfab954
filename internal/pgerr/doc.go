// Package pgerr answers one question: what does a client see when something goes wrong.
//
// An Error is a PostgreSQL ErrorResponse as a value: SQLSTATE, message, detail, hint and position. It crosses every
// layer as an ordinary error, is wrapped with %w like any other, and is found again with errors.As. Layers below SQL
// (catalog, liveset, warehouse …) return sentinels of their own; engine maps those to an Error in one table.
//
// Nothing that a client can cause may be class 53, 58, F0 or XX, except the codes that an issue or the documentation
// names: Npgsql closes its connection on those.
package pgerr
