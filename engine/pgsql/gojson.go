package pgsql

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

// jsonMember is a member of an object or an element of an array, as raw text.
type jsonMember struct{ key, value string }

// jsonKind is the kind of a JSON text by its first character: { [ " t f n or 0 for a number.
func jsonKind(s string) byte {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return 0
	}
	switch c := s[0]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return c
	}
	return '0'
}

// skipJSON is the end of the value that begins at i; the text is valid JSON.
func skipJSON(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i++
			for i < len(s) && s[i] != '"' {
				if s[i] == '\\' {
					i++
				}
				i++
			}
			i++
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',', ':':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

func blankJSON(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}

// jsonMembers splits an object or array.
func jsonMembers(s string) []jsonMember {
	s = strings.TrimSpace(s)
	if len(s) < 2 {
		return nil
	}
	object := s[0] == '{'
	var out []jsonMember
	for i := blankJSON(s, 1); i < len(s) && s[i] != '}' && s[i] != ']'; {
		var m jsonMember
		if object {
			end := skipJSON(s, i)
			m.key = unquoteJSON(s[i:end])
			i = blankJSON(s, end) + 1 // the colon
			i = blankJSON(s, i)
		}
		end := skipJSON(s, i)
		m.value = strings.TrimSpace(s[i:end])
		out = append(out, m)
		i = blankJSON(s, end)
		if i < len(s) && s[i] == ',' {
			i = blankJSON(s, i+1)
		}
	}
	return out
}

func unquoteJSON(s string) string {
	if strings.IndexByte(s, '\\') < 0 && len(s) >= 2 {
		return s[1 : len(s)-1]
	}
	var out string
	if json.Unmarshal([]byte(s), &out) != nil {
		return s
	}
	return out
}

// quoteJSON is escape_json.
func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case '"':
			b.WriteString(`\"`)
		case '\\':
			b.WriteString(`\\`)
		default:
			if c < ' ' {
				b.WriteString(`\u00` + strconv.FormatUint(uint64(c)+0x100, 16)[1:])
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

func jsonField(s, key string) (string, bool) {
	if jsonKind(s) != '{' {
		return "", false
	}
	found, ok := "", false
	for _, m := range jsonMembers(s) {
		if m.key == key {
			found, ok = m.value, true
		}
	}
	return found, ok
}

func jsonAt(s string, i int64) (string, bool) {
	if jsonKind(s) != '[' {
		return "", false
	}
	ms := jsonMembers(s)
	if i < 0 {
		i += int64(len(ms))
	}
	if i < 0 || i >= int64(len(ms)) {
		return "", false
	}
	return ms[i].value, true
}

func jsonStep(s, step string) (string, bool) {
	if jsonKind(s) == '[' {
		i, err := strconv.ParseInt(strings.TrimSpace(step), 10, 32)
		if err != nil {
			return "", false
		}
		return jsonAt(s, i)
	}
	return jsonField(s, step)
}

func jsonPath(s string, path []Value) (string, bool) {
	for _, p := range path {
		if p.Null {
			return "", false
		}
		var ok bool
		if s, ok = jsonStep(s, p.S); !ok {
			return "", false
		}
	}
	return strings.TrimSpace(s), true
}

// jsonText is a value as ->> shows it: strings without quotes, null as NULL.
func jsonText(s string, ok bool) Value {
	if !ok || jsonKind(s) == 'n' {
		return sqlNull
	}
	if jsonKind(s) == '"' {
		return Value{S: unquoteJSON(strings.TrimSpace(s))}
	}
	return Value{S: s}
}

func jsonRaw(s string, ok bool) Value {
	if !ok {
		return sqlNull
	}
	return Value{S: s}
}

func jsonTypeof(s string) string {
	switch jsonKind(s) {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

func jsonElements(s string) ([]jsonMember, error) {
	switch jsonKind(s) {
	case '[':
		return jsonMembers(s), nil
	case '{':
		return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot extract elements from an object")
	}
	return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot extract elements from a scalar")
}

func jsonPairs(s string) ([]jsonMember, error) {
	if jsonKind(s) != '{' {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "cannot deconstruct a "+map[bool]string{true: "array as an object", false: "scalar"}[jsonKind(s) == '['])
	}
	return jsonMembers(s), nil
}

// listFn yields one part of every member.
func listFn(name string, split func(string) ([]jsonMember, error), part func(jsonMember) (Value, error)) GoFunc {
	return fn(name, types(dV), dL, func(a []Value) (Value, error) {
		ms, err := split(a[0].S)
		if err != nil {
			return Value{}, err
		}
		v := Value{L: make([]Value, len(ms))}
		for i, m := range ms {
			if v.L[i], err = part(m); err != nil {
				return Value{}, err
			}
		}
		return v, nil
	})
}

func rawPart(m jsonMember) (Value, error) { return Value{S: m.value}, nil }

func bPart(m jsonMember) (Value, error) { return jsonb(m.value) }

func textPart(m jsonMember) (Value, error) { return jsonText(m.value, true), nil }

func keyPart(m jsonMember) (Value, error) { return Value{S: m.key}, nil }

func vfn(name string, args []string, f func(a []Value) Value) GoFunc {
	return fn(name, args, dV, func(a []Value) (Value, error) { return f(a), nil })
}

var jsonFuncs = []GoFunc{
	fn("skade_json_in", types(dV), dV, func(a []Value) (Value, error) { return a[0], pgenc.CheckJSON([]byte(a[0].S)) }),
	fn("skade_jsonb_in", types(dV), dV, func(a []Value) (Value, error) { return jsonb(a[0].S) }),
	vfn("skade_jsonb_key", types(dV), func(a []Value) Value { return Value{S: jsonKey(a[0].S)} }),
	vfn("skade_json_get", types(dV, dV), func(a []Value) Value { return jsonRaw(jsonField(a[0].S, a[1].S)) }),
	vfn("skade_jsonb_get", types(dV, dV), func(a []Value) Value { return jsonRaw(jsonField(a[0].S, a[1].S)) }),
	vfn("skade_json_at", types(dV, dI), func(a []Value) Value { return jsonRaw(jsonAt(a[0].S, a[1].I)) }),
	vfn("skade_jsonb_at", types(dV, dI), func(a []Value) Value { return jsonRaw(jsonAt(a[0].S, a[1].I)) }),
	vfn("skade_json_get_text", types(dV, dV), func(a []Value) Value { return jsonText(jsonField(a[0].S, a[1].S)) }),
	vfn("skade_json_at_text", types(dV, dI), func(a []Value) Value { return jsonText(jsonAt(a[0].S, a[1].I)) }),
	vfn("skade_json_path", types(dV, dL), func(a []Value) Value { return jsonRaw(jsonPath(a[0].S, a[1].L)) }),
	vfn("skade_jsonb_path", types(dV, dL), func(a []Value) Value { return jsonRaw(jsonPath(a[0].S, a[1].L)) }),
	vfn("skade_json_path_text", types(dV, dL), func(a []Value) Value { return jsonText(jsonPath(a[0].S, a[1].L)) }),
	fn("skade_jsonb_exists", types(dV, dV), dB, func(a []Value) (Value, error) { return boolValue(jsonbExists(a[0].S, a[1].S)), nil }),
	fn("skade_jsonb_exists_any", types(dV, dL), dB, func(a []Value) (Value, error) {
		for _, k := range a[1].L {
			if !k.Null && jsonbExists(a[0].S, k.S) {
				return boolValue(true), nil
			}
		}
		return boolValue(false), nil
	}),
	fn("skade_jsonb_exists_all", types(dV, dL), dB, func(a []Value) (Value, error) {
		for _, k := range a[1].L {
			if !k.Null && !jsonbExists(a[0].S, k.S) {
				return boolValue(false), nil
			}
		}
		return boolValue(true), nil
	}),
	fn("skade_jsonb_contains", types(dV, dV), dB, func(a []Value) (Value, error) { return boolValue(jsonbContains(a[0].S, a[1].S)), nil }),
	fn("skade_jsonb_concat", types(dV, dV), dV, func(a []Value) (Value, error) {
		s, err := jsonbConcat(a[0].S, a[1].S)
		if err != nil {
			return Value{}, err
		}
		return jsonb(s)
	}),
	fn("skade_jsonb_delete", types(dV, dV), dV, func(a []Value) (Value, error) { return jsonbDeleteKeys(a[0].S, []Value{a[1]}) }),
	fn("skade_jsonb_delete_keys", types(dV, dL), dV, func(a []Value) (Value, error) { return jsonbDeleteKeys(a[0].S, a[1].L) }),
	fn("skade_jsonb_delete_at", types(dV, dI), dV, func(a []Value) (Value, error) {
		if jsonKind(a[0].S) != '[' {
			return Value{}, pgerr.New(pgerr.InvalidParameterValue, "cannot delete from object using integer index")
		}
		ms := jsonMembers(a[0].S)
		i := a[1].I
		if i < 0 {
			i += int64(len(ms))
		}
		if i >= 0 && i < int64(len(ms)) {
			ms = append(ms[:i], ms[i+1:]...)
		}
		return Value{S: writeMembers('[', ms)}, nil
	}),
	fn("skade_jsonb_delete_path", types(dV, dL), dV, func(a []Value) (Value, error) {
		s, err := jsonbEdit(a[0].S, a[1].L, "", jsonDelete, false)
		return Value{S: s}, err
	}),
	fn("skade_jsonb_set", types(dV, dL, dV, dB), dV, func(a []Value) (Value, error) {
		s, err := jsonbEdit(a[0].S, a[1].L, a[2].S, jsonSet, a[3].I != 0)
		if err != nil {
			return Value{}, err
		}
		return jsonb(s)
	}),
	fn("skade_jsonb_insert", types(dV, dL, dV, dB), dV, func(a []Value) (Value, error) {
		mode := jsonInsertBefore
		if a[3].I != 0 {
			mode = jsonInsertAfter
		}
		s, err := jsonbEdit(a[0].S, a[1].L, a[2].S, mode, true)
		if err != nil {
			return Value{}, err
		}
		return jsonb(s)
	}),
	vfn("skade_jsonb_pretty", types(dV), func(a []Value) Value {
		var b strings.Builder
		jsonPretty(&b, a[0].S, "")
		return Value{S: b.String()}
	}),
	vfn("skade_json_strip", types(dV), func(a []Value) Value { return Value{S: jsonStrip(a[0].S, ":", ",")} }),
	vfn("skade_jsonb_strip", types(dV), func(a []Value) Value { return Value{S: jsonStrip(a[0].S, ": ", ", ")} }),
	vfn("skade_json_typeof", types(dV), func(a []Value) Value { return Value{S: jsonTypeof(a[0].S)} }),
	vfn("skade_json_quote", types(dV), func(a []Value) Value { return Value{S: quoteJSON(a[0].S)} }),
	vfn("skade_json_number", types(dV), func(a []Value) Value {
		switch a[0].S {
		case "NaN", "Infinity", "-Infinity":
			return Value{S: `"` + a[0].S + `"`}
		}
		return a[0]
	}),
	{Name: "skade_json_key", Args: types(dV), Ret: dV, NullIn: true, Fn: func(a []Value) (Value, error) {
		if a[0].Null {
			return Value{}, pgerr.New(pgerr.InvalidParameterValue, "argument 1 cannot be null").WithHint("Object keys should be text.")
		}
		return Value{S: quoteJSON(a[0].S)}, nil
	}},
	fn("skade_json_length", types(dV), "INTEGER", func(a []Value) (Value, error) {
		switch jsonKind(a[0].S) {
		case '[':
			return Value{I: int64(len(jsonMembers(a[0].S)))}, nil
		case '{':
			return Value{}, pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a non-array")
		}
		return Value{}, pgerr.New(pgerr.InvalidParameterValue, "cannot get array length of a scalar")
	}),
	listFn("skade_json_elements", jsonElements, rawPart),
	listFn("skade_jsonb_elements", jsonElements, bPart),
	listFn("skade_json_elements_text", jsonElements, textPart),
	listFn("skade_json_keys", jsonPairs, keyPart),
	listFn("skade_json_values", jsonPairs, rawPart),
	listFn("skade_jsonb_values", jsonPairs, bPart),
	listFn("skade_json_values_text", jsonPairs, textPart),
	fn("skade_json_object", types(dL), dV, func(a []Value) (Value, error) {
		if len(a[0].L)%2 != 0 {
			return Value{}, pgerr.New("2202E", "array must have even number of elements")
		}
		var parts []string
		for i := 0; i < len(a[0].L); i += 2 {
			if a[0].L[i].Null {
				return Value{}, pgerr.New("22004", "null value not allowed for object key")
			}
			v := "null"
			if !a[0].L[i+1].Null {
				v = quoteJSON(a[0].L[i+1].S)
			}
			parts = append(parts, quoteJSON(a[0].L[i].S)+" : "+v)
		}
		return Value{S: "{" + strings.Join(parts, ", ") + "}"}, nil
	}),
}
