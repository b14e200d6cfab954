package duck

import (
	"encoding/binary"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// RecordFields gives the field types of the columns of type record or record[], which a statement yields as text: their binary form
// names them. Source: PostgreSQL 15, record_send.
func (r *Rows) RecordFields(fields [][]uint32) { r.out.records = fields; r.out.ready = false }

// record encodes the text of a record, or of an array of them, in binary.
func (e *encoder) record(oid uint32) encodeFunc {
	fields, style := e.fields, e.style
	if oid == pgtype.Record {
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			return appendRecord(dst, v.bytes(row), fields, style)
		}
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		start := len(dst)
		dst = append(dst, make([]byte, 12)...) // dimensions, has nulls, element type
		var elems []byte
		nulls := byte(0)
		dims, err := pgenc.EachArrayElem(v.bytes(row), func(text []byte) (err error) {
			if text == nil {
				nulls = 1
				elems = append(elems, 0xff, 0xff, 0xff, 0xff)
				return nil
			}
			elems, err = sized(elems, func(dst []byte) ([]byte, error) { return appendRecord(dst, text, fields, style) })
			return err
		})
		if err != nil {
			return dst[:start], err
		}
		binary.BigEndian.PutUint32(dst[start:], uint32(len(dims)))
		dst[start+7] = nulls
		binary.BigEndian.PutUint32(dst[start+8:], pgtype.Record)
		for _, d := range dims {
			dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len))
			dst = binary.BigEndian.AppendUint32(dst, uint32(d.LowerBound))
		}
		return append(dst, elems...), nil
	}
}

// sized appends what f writes behind its length.
func sized(dst []byte, f func(dst []byte) ([]byte, error)) ([]byte, error) {
	at := len(dst)
	dst, err := f(append(dst, 0, 0, 0, 0))
	if err != nil {
		return dst[:at], err
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

// appendRecord reads record_out's text, (a,"b ""c""",), and writes record_send's bytes.
func appendRecord(dst, text []byte, fields []uint32, style pgenc.Style) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(fields)))
	p := 1 // behind the parenthesis
	for i, oid := range fields {
		var value []byte
		null, quoted := true, false
	field:
		for ; p < len(text); p++ {
			switch c := text[p]; {
			case c == '"' && quoted && p+1 < len(text) && text[p+1] == '"':
				value = append(value, c)
				p++
			case c == '"':
				quoted, null = !quoted, false
			case c == '\\' && p+1 < len(text):
				p++
				value, null = append(value, text[p]), false
			case !quoted && (c == ',' || c == ')'):
				break field
			default:
				value, null = append(value, c), false
			}
		}
		if p >= len(text) || (text[p] == ')') != (i == len(fields)-1) {
			return dst, pgerr.New(pgerr.InternalError, "a record does not have its fields")
		}
		p++
		if oid == pgtype.Record || oid == pgtype.RecordArray {
			oid = pgtype.Text // the types inside are not known here
		}
		dst = binary.BigEndian.AppendUint32(dst, oid)
		if null {
			dst = append(dst, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		var err error
		dst, err = sized(dst, func(dst []byte) ([]byte, error) {
			if textual(oid) && oid != pgtype.JSONB {
				return append(dst, value...), nil
			}
			x, err := pgenc.Decode(oid, pgenc.Text, value, style)
			if err != nil {
				return dst, err
			}
			return pgenc.Append(dst, oid, pgenc.Binary, x, style)
		})
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}
