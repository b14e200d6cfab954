package duck

import "github.com/nordisk/skade-pg/internal/pgenc"

// reparse encodes a value that the statement yields as PostgreSQL's text (numeric computed beyond DECIMAL, an interval as a
// data file keeps it): read it as the type's input function would, then send it.
func (e *encoder) reparse(oid uint32) encodeFunc {
	style, format := e.style, pgenc.Text
	if e.binary {
		format = pgenc.Binary
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		x, err := pgenc.Decode(oid, pgenc.Text, v.bytes(row), style)
		if err != nil {
			return dst, err
		}
		return pgenc.Append(dst, oid, format, x, style)
	}
}
