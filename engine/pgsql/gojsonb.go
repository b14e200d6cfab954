package pgsql

import (
	"strconv"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
)

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
