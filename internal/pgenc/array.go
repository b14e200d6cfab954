package pgenc

import "encoding/binary"

// AppendArrayElem appends one element's text inside an array's braces, quoted when PostgreSQL quotes it: empty, NULL in
// any case, or holding the delimiter, a brace, a quote, a backslash or white space. Source: array_out.
func AppendArrayElem(dst, elem []byte, delim byte) []byte {
	if !needsQuotes(elem, delim) {
		return append(dst, elem...)
	}
	dst = append(dst, '"')
	for _, c := range elem {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// QuoteArrayElem is AppendArrayElem for an element that already stands at dst[start:].
func QuoteArrayElem(dst []byte, start int, delim byte) []byte {
	elem := dst[start:]
	if !needsQuotes(elem, delim) {
		return dst
	}
	extra := 2
	for _, c := range elem {
		if c == '"' || c == '\\' {
			extra++
		}
	}
	n := len(elem)
	for range extra {
		dst = append(dst, 0)
	}
	w := len(dst) - 1
	dst[w] = '"'
	for i := start + n - 1; i >= start; i-- {
		c := dst[i]
		w--
		dst[w] = c
		if c == '"' || c == '\\' {
			w--
			dst[w] = '\\'
		}
	}
	dst[start] = '"'
	return dst
}

func needsQuotes(elem []byte, delim byte) bool {
	if len(elem) == 0 || isNullWord(elem) {
		return true
	}
	for _, c := range elem {
		if c == '"' || c == '\\' || c == '{' || c == '}' || c == delim || isSpace(c) {
			return true
		}
	}
	return false
}

func isNullWord(b []byte) bool {
	return len(b) == 4 && b[0]|0x20 == 'n' && b[1]|0x20 == 'u' && b[2]|0x20 == 'l' && b[3]|0x20 == 'l'
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// ArrayDim is one dimension of an array.
type ArrayDim struct {
	Len        int32
	LowerBound int32
}

// AppendArrayHeader appends the head of an array's binary form: dimensions, null flag, element type, and for each
// dimension its length and lower bound. Elements follow, each with a length word (-1 for NULL). An empty array has no
// dimensions. Source: array_send.
func AppendArrayHeader(dst []byte, elemOID uint32, hasNull bool, dims ...ArrayDim) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(dims)))
	flag := uint32(0)
	if hasNull {
		flag = 1
	}
	dst = binary.BigEndian.AppendUint32(dst, flag)
	dst = binary.BigEndian.AppendUint32(dst, elemOID)
	for _, d := range dims {
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.Len))
		dst = binary.BigEndian.AppendUint32(dst, uint32(d.LowerBound))
	}
	return dst
}

// AppendArrayBounds appends the "[0:2]=" that array_out writes before the braces when a lower bound is not 1; nothing else.
func AppendArrayBounds(dst []byte, dims ...ArrayDim) []byte {
	plain := true
	for _, d := range dims {
		plain = plain && d.LowerBound == 1
	}
	if plain {
		return dst
	}
	for _, d := range dims {
		dst = AppendInt(append(dst, '['), int64(d.LowerBound))
		dst = AppendInt(append(dst, ':'), int64(d.LowerBound)+int64(d.Len)-1)
		dst = append(dst, ']')
	}
	return append(dst, '=')
}

// AppendRecordField appends one field's text inside a row's parentheses: quoted when empty or holding a quote, a
// backslash, a parenthesis, a comma or white space; quotes and backslashes are doubled. NULL is nothing at all: do not call it. Source: record_out.
func AppendRecordField(dst, field []byte) []byte {
	quote := len(field) == 0
	for _, c := range field {
		quote = quote || c == '"' || c == '\\' || c == '(' || c == ')' || c == ',' || isSpace(c)
	}
	if !quote {
		return append(dst, field...)
	}
	dst = append(dst, '"')
	for _, c := range field {
		if c == '"' || c == '\\' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}
