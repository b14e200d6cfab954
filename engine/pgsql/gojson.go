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

func jsonb(text string) (Value, error) {
	out, err := pgenc.AppendJSONB(nil, []byte(text))
	return Value{S: string(out)}, err
}

// jsonbContains is jsonb's @>.
func jsonbContains(a, b string) bool {
	ka, kb := jsonKind(a), jsonKind(b)
	switch {
	case ka == '[' && kb == '[':
		ma := jsonMembers(a)
		for _, m := range jsonMembers(b) {
			found := false
			for _, x := range ma {
				kx := jsonKind(x.value)
				if kx == jsonKind(m.value) && (kx == '{' || kx == '[') {
					found = found || jsonbContains(x.value, m.value)
				} else {
					found = found || jsonEqual(x.value, m.value)
				}
			}
			if !found {
				return false
			}
		}
		return true
	case ka == '{' && kb == '{':
		for _, m := range jsonMembers(b) {
			v, ok := jsonField(a, m.key)
			if !ok || !containsValue(v, m.value) {
				return false
			}
		}
		return true
	case ka == '[' && kb != '{':
		// an array contains a primitive
		for _, x := range jsonMembers(a) {
			if jsonEqual(x.value, b) {
				return true
			}
		}
		return false
	}
	return jsonEqual(a, b)
}

func containsValue(a, b string) bool {
	ka, kb := jsonKind(a), jsonKind(b)
	if ka != kb {
		return false
	}
	if ka == '{' || ka == '[' {
		return jsonbContains(a, b)
	}
	return jsonEqual(a, b)
}

func jsonEqual(a, b string) bool {
	if a == b {
		return true
	}
	if jsonKind(a) != '0' || jsonKind(b) != '0' {
		return false
	}
	x, err1 := parseDecimal(a)
	y, err2 := parseDecimal(b)
	if err1 != nil || err2 != nil {
		return false
	}
	s := max(x.scale, y.scale)
	return x.rescale(s).c.Cmp(y.rescale(s).c) == 0
}

// jsonKey is a jsonb's text with its numbers in one form, so that equal values have equal texts.
func jsonKey(s string) string {
	kind := jsonKind(s)
	switch kind {
	case '{', '[':
		ms := jsonMembers(s)
		for i := range ms {
			ms[i].value = jsonKey(ms[i].value)
		}
		return writeMembers(kind, ms)
	case '0':
		if strings.Contains(s, ".") {
			return strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
	}
	return s
}

func jsonbExists(s, key string) bool {
	switch jsonKind(s) {
	case '{':
		_, ok := jsonField(s, key)
		return ok
	case '[':
		for _, m := range jsonMembers(s) {
			if jsonKind(m.value) == '"' && unquoteJSON(m.value) == key {
				return true
			}
		}
	case '"':
		return unquoteJSON(strings.TrimSpace(s)) == key
	}
	return false
}

func writeMembers(kind byte, ms []jsonMember) string {
	var b strings.Builder
	b.WriteByte(kind)
	for i, m := range ms {
		if i > 0 {
			b.WriteString(", ")
		}
		if kind == '{' {
			b.WriteString(quoteJSON(m.key) + ": ")
		}
		b.WriteString(m.value)
	}
	b.WriteByte(kind + 2)
	return b.String()
}

func jsonbConcat(a, b string) (string, error) {
	ka, kb := jsonKind(a), jsonKind(b)
	switch {
	case ka == '{' && kb == '{':
		ms := append(jsonMembers(a), jsonMembers(b)...)
		return writeMembers('{', ms), nil
	case ka == '[' && kb == '[':
		return writeMembers('[', append(jsonMembers(a), jsonMembers(b)...)), nil
	case ka == '[':
		return writeMembers('[', append(jsonMembers(a), jsonMember{value: b})), nil
	case kb == '[':
		return writeMembers('[', append([]jsonMember{{value: a}}, jsonMembers(b)...)), nil
	case ka != '{' && kb != '{':
		return writeMembers('[', []jsonMember{{value: a}, {value: b}}), nil
	}
	return writeMembers('[', []jsonMember{{value: a}, {value: b}}), nil
}

// edit modes of jsonbEdit.
const (
	jsonSet = iota
	jsonInsertBefore
	jsonInsertAfter
	jsonDelete
)

// jsonbEdit is setPath for jsonb_set, jsonb_insert and #-.
func jsonbEdit(s string, path []Value, value string, mode int, create bool) (string, error) {
	if len(path) == 0 {
		return s, nil
	}
	kind := jsonKind(s)
	if kind != '{' && kind != '[' {
		return s, nil
	}
	ms := jsonMembers(s)
	step := path[0].S
	at := -1
	if kind == '{' {
		for i, m := range ms {
			if m.key == step {
				at = i
			}
		}
	} else {
		n, err := strconv.Atoi(strings.TrimSpace(step))
		if err != nil {
			return "", pgerr.Newf(pgerr.InvalidTextRepresentation, "path element at position 1 is not an integer: %q", step)
		}
		if n < 0 {
			n += len(ms)
		}
		switch {
		case n >= 0 && n < len(ms):
			at = n
		case len(path) == 1 && create && mode != jsonDelete:
			if n < 0 {
				ms = append([]jsonMember{{value: value}}, ms...)
			} else {
				ms = append(ms, jsonMember{value: value})
			}
			return writeMembers('[', ms), nil
		default:
			return s, nil
		}
	}
	if len(path) > 1 {
		if at < 0 {
			return s, nil
		}
		v, err := jsonbEdit(ms[at].value, path[1:], value, mode, create)
		if err != nil {
			return "", err
		}
		ms[at].value = v
		return writeMembers(kind, ms), nil
	}
	switch {
	case mode == jsonDelete && at >= 0:
		ms = append(ms[:at], ms[at+1:]...)
	case mode == jsonDelete:
	case kind == '{' && at >= 0 && mode != jsonSet:
		return "", pgerr.New(pgerr.InvalidParameterValue, "cannot replace existing key").WithHint("Try using the function jsonb_set to replace key value.")
	case at >= 0 && mode == jsonSet:
		ms[at].value = value
	case kind == '{' && create:
		ms = append(ms, jsonMember{step, value})
	case mode == jsonInsertBefore:
		ms = append(ms[:at], append([]jsonMember{{value: value}}, ms[at:]...)...)
	case mode == jsonInsertAfter:
		ms = append(ms[:at+1], append([]jsonMember{{value: value}}, ms[at+1:]...)...)
	}
	return writeMembers(kind, ms), nil
}

func jsonPretty(b *strings.Builder, s, indent string) {
	kind := jsonKind(s)
	if kind != '{' && kind != '[' {
		b.WriteString(s)
		return
	}
	ms := jsonMembers(s)
	b.WriteByte(kind)
	for i, m := range ms {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "    ")
		if kind == '{' {
			b.WriteString(quoteJSON(m.key) + ": ")
		}
		jsonPretty(b, m.value, indent+"    ")
	}
	b.WriteString("\n" + indent)
	b.WriteByte(kind + 2)
}

func jsonStrip(s, colon, comma string) string {
	kind := jsonKind(s)
	if kind != '{' && kind != '[' {
		return strings.TrimSpace(s)
	}
	var parts []string
	for _, m := range jsonMembers(s) {
		if kind == '{' {
			if jsonKind(m.value) == 'n' {
				continue
			}
			parts = append(parts, quoteJSON(m.key)+colon+jsonStrip(m.value, colon, comma))
			continue
		}
		parts = append(parts, jsonStrip(m.value, colon, comma))
	}
	return string(kind) + strings.Join(parts, comma) + string(kind+2)
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

func rawPart(m jsonMember) (Value, error)  { return Value{S: m.value}, nil }
func bPart(m jsonMember) (Value, error)    { return jsonb(m.value) }
func textPart(m jsonMember) (Value, error) { return jsonText(m.value, true), nil }
func keyPart(m jsonMember) (Value, error)  { return Value{S: m.key}, nil }

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

func jsonbDeleteKeys(s string, keys []Value) (Value, error) {
	kind := jsonKind(s)
	if kind != '{' && kind != '[' {
		return Value{}, pgerr.New(pgerr.InvalidParameterValue, "cannot delete from scalar")
	}
	var keep []jsonMember
next:
	for _, m := range jsonMembers(s) {
		for _, k := range keys {
			if !k.Null && (kind == '{' && m.key == k.S || kind == '[' && jsonKind(m.value) == '"' && unquoteJSON(m.value) == k.S) {
				continue next
			}
		}
		keep = append(keep, m)
	}
	return Value{S: writeMembers(kind, keep)}, nil
}
