// Package pgcopy answers one question: how do rows look inside COPY's text and CSV formats.
//
// Reader splits a stream of bytes into rows of fields, Appender turns fields into Arrow columns of a table's storage types, Writer
// formats rows. All stream: memory is bounded by the longest row.
//
// Words:
//
//	Options  what COPY … WITH (…) said: delimiter, null string, header, quote, escape …
//	Field    one value of a row: bytes, or NULL
//
// Errors: *pgerr.Error with PostgreSQL's texts and SQLSTATEs (22P04 and those of the types); Where says "COPY t, line 3, column id: …".
//
// Concurrency: a Reader, an Appender or a Writer belongs to one goroutine.
//
// It does not know COPY's binary format, files or the wire.
package pgcopy
