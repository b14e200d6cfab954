package duck

import (
	"bytes"
	"cmp"
	"slices"

	bind "github.com/duckdb/duckdb-go-bindings"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// jsonb encodes a value as jsonb: a string is taken for JSON text, everything else is written as to_jsonb would.
func (e *encoder) jsonb(t *logical) encodeFunc {
	w := e.jsonWriter(t)
	if t.id == bind.TypeVarchar {
		w = func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }
	}
	if !e.binary {
		return w
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) { return w(append(dst, 1), v, row) }
}

// jsonWriter writes one non-NULL value of type t as JSON in jsonb's canonical form.
func (e *encoder) jsonWriter(t *logical) encodeFunc {
	switch t.id {
	case bind.TypeStruct:
		return e.jsonStruct(t)
	case bind.TypeMap:
		return e.jsonMap(t)
	case bind.TypeUnion:
		return e.jsonUnion(t)
	case bind.TypeList, bind.TypeArray:
		return e.jsonList(t)
	case bind.TypeBoolean:
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			if at[uint8](v, row) != 0 {
				return append(dst, "true"...), nil
			}
			return append(dst, "false"...), nil
		}
	case bind.TypeVarchar:
		if t.json {
			return func(dst []byte, v *vec, row int) ([]byte, error) { return append(dst, v.bytes(row)...), nil }
		}
		return func(dst []byte, v *vec, row int) ([]byte, error) { return appendJSONString(dst, v.bytes(row)), nil }
	}
	return e.jsonScalar(t)
}

// jsonScalar writes numbers bare and everything else as a string of its text.
func (e *encoder) jsonScalar(t *logical) encodeFunc {
	// JSON has its own date style, whatever the session's.
	plain := &encoder{}
	fn, err := plain.element(t, t.oid)
	if err != nil {
		return func(dst []byte, _ *vec, _ int) ([]byte, error) { return append(dst, "null"...), nil }
	}
	if t.float() {
		num := plain.numericFloat(t)
		return func(dst []byte, v *vec, row int) ([]byte, error) {
			if f := asFloat(v, row); f-f != 0 {
				dst, err := fn(append(dst, '"'), v, row)
				return append(dst, '"'), err
			}
			return num(dst, v, row)
		}
	}
	if t.numeric() {
		return fn
	}
	stamp := t.timestamp()
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		start := len(dst)
		dst, err := fn(dst, v, row)
		if err != nil {
			return dst, err
		}
		text := dst[start:]
		if stamp {
			// 2020-01-02T03:04:05+00:00. Source: JsonEncodeDateTime.
			if i := bytes.IndexByte(text, ' '); i > 0 && text[0] >= '0' && text[0] <= '9' {
				text[i] = 'T'
			}
			if t.id == bind.TypeTimestampTZ && bytes.HasSuffix(text, []byte("+00")) {
				dst = append(dst, ":00"...)
			}
		}
		return quoteJSON(dst, start), nil
	}
}

func (e *encoder) jsonList(t *logical) encodeFunc {
	elem := e.jsonWriter(t.child[0])
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		from, to := v.list(row)
		dst = append(dst, '[')
		var err error
		for i := from; i < to && err == nil; i++ {
			if i > from {
				dst = append(dst, ", "...)
			}
			dst, err = appendJSON(dst, elem, &v.child[0], i)
		}
		return append(dst, ']'), err
	}
}

func appendJSON(dst []byte, fn encodeFunc, v *vec, row int) ([]byte, error) {
	if v.null(row) {
		return append(dst, "null"...), nil
	}
	return fn(dst, v, row)
}

// lessKey is jsonb's order of keys: shorter first, then by bytes. Source: lengthCompareJsonbStringValue.
func lessKey(a, b []byte) int {
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

func (e *encoder) jsonStruct(t *logical) encodeFunc {
	order := make([]int, len(t.child))
	fns := make([]encodeFunc, len(t.child))
	keys := make([][]byte, len(t.child))
	for i, c := range t.child {
		order[i] = i
		fns[i] = e.jsonWriter(c)
		keys[i] = append(appendJSONString(nil, []byte(t.names[i])), ": "...)
	}
	slices.SortStableFunc(order, func(a, b int) int { return lessKey([]byte(t.names[a]), []byte(t.names[b])) })
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		dst = append(dst, '{')
		var err error
		for n, i := range order {
			if n > 0 {
				dst = append(dst, ", "...)
			}
			if dst, err = appendJSON(append(dst, keys[i]...), fns[i], &v.child[i], row); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

func (e *encoder) jsonUnion(t *logical) encodeFunc {
	fns := make([]encodeFunc, len(t.child))
	for i, c := range t.child {
		fns[i] = e.jsonWriter(c)
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		tag := at[uint8](v, row)
		return appendJSON(dst, fns[tag], &v.child[tag], row)
	}
}

// jsonMap writes a MAP as an object; keys that are no strings become their text.
func (e *encoder) jsonMap(t *logical) encodeFunc {
	plain := &encoder{}
	key, kerr := plain.element(t.child[0], pgtype.Text)
	val := e.jsonWriter(t.child[1])
	type entry struct {
		key []byte
		row int
	}
	return func(dst []byte, v *vec, row int) ([]byte, error) {
		if kerr != nil {
			return dst, kerr
		}
		from, to := v.list(row)
		entries := make([]entry, 0, to-from)
		for i := from; i < to; i++ {
			k, err := key(nil, &v.child[0], i)
			if err != nil {
				return dst, err
			}
			entries = append(entries, entry{k, i})
		}
		slices.SortStableFunc(entries, func(a, b entry) int { return lessKey(a.key, b.key) })
		dst = append(dst, '{')
		var err error
		for n, en := range entries {
			if n > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(appendJSONString(dst, en.key), ": "...)
			if dst, err = appendJSON(dst, val, &v.child[1], en.row); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
}

// appendJSONString appends s quoted. Source: escape_json.
func appendJSONString(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		dst = appendJSONByte(dst, c)
	}
	return append(dst, '"')
}

func appendJSONByte(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if c < 0x20 {
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
	return append(dst, c)
}

// quoteJSON makes a JSON string of the text dst[start:].
func quoteJSON(dst []byte, start int) []byte {
	text := slices.Clone(dst[start:])
	return appendJSONString(dst[:start], text)
}
