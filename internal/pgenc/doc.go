// Package pgenc answers one question: what are the bytes of a value on the PostgreSQL wire, in text and in binary.
//
// Encoders append: AppendX writes the text form, AppendXBinary the binary form, without the length word, and neither
// allocates beyond dst's growth. Decode reads a bind parameter in either format into a Go value of the types below, and
// the ParseX functions read the text of one type, as PostgreSQL's input functions do.
//
// Words and units. A date is a number of days, a timestamp a number of microseconds, both since 1970-01-01 (as in
// Iceberg, Arrow and DuckDB); PostgreSQL's binary forms count from 2000-01-01 and the encoders convert. A time is
// microseconds since midnight, 24:00:00 included. Infinity is DateInfinity, TimestampInfinity and their negatives
// (DuckDB's values). A numeric is coefficient × 10^-scale with a 128-bit coefficient (Hi, Lo two's complement) or a
// big.Int. An interval is months, days and microseconds, each with its own sign.
//
// Invariants.
//
//	E1  Every encoder's bytes equal PostgreSQL 15's (testdata is written by PostgreSQL through gen/values.sh).
//	E2  No input makes a decoder panic or allocate more than a small multiple of the input's length.
//	E3  Decoding what an encoder wrote gives the value back.
//
// Errors are *pgerr.Error with PostgreSQL's SQLSTATE and words: 22P02 bad text, 22P03 bad binary, 22003 out of range, 22007
// bad date or time, 22008 date or time out of range, 22021 bad UTF-8, 22023 bad hexadecimal, 54001 nested too deeply.
//
// All functions are pure and safe for concurrent use. The package knows no Arrow and no SQL; internal/pgarrow and
// internal/pgcopy build on it.
package pgenc
