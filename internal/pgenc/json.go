package pgenc

import (
	"bytes"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// maxJSONDepth bounds nesting; PostgreSQL's bound is its stack's size.
const maxJSONDepth = 6000

// CheckJSON validates the text of a json value. Errors: 22P02, 54001 nested too deeply.
func CheckJSON(in []byte) error {
	p := jsonParser{in: in}
	_, err := p.document(nil)
	return err
}

// AppendJSONB appends jsonb's normal form of a JSON text: object keys sorted by length and bytes, the last of equal keys kept,
// numbers as numeric text, ": " and ", " between. Errors: 22P02; 22P05 for \u0000; 54001.
func AppendJSONB(dst, in []byte) ([]byte, error) {
	p := jsonParser{in: in, binary: true}
	return p.document(dst)
}

// jsonParser is a recursive reader that writes the normal form when binary is set.
type jsonParser struct {
	in     []byte
	pos    int
	depth  int
	binary bool
}

func jsonWordByte(c byte) bool { return isAlnum(c) || c == '_' || c >= 0x80 }

// word is the run of word characters at from, or one character. Source: json_lex's default case.
func (p *jsonParser) word(from int) []byte {
	end := from
	for end < len(p.in) && jsonWordByte(p.in[end]) {
		end++
	}
	if end == p.pos && end < len(p.in) {
		end++
	}
	return p.in[p.pos:end]
}

// syntax is 22P02 with a detail; end is where the offending token ends.
func (p *jsonParser) syntax(end int, format string, args ...any) *pgerr.Error {
	e := pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type json").WithDetail(format, args...)
	e.Where = p.where(min(end, len(p.in)))
	return e
}

// where is the CONTEXT line: up to 50 bytes of the line before end. Source: report_json_context.
func (p *jsonParser) where(end int) string {
	line := 1 + bytes.Count(p.in[:end], []byte{'\n'})
	start := bytes.LastIndexByte(p.in[:end], '\n') + 1
	dots := ""
	if start < end-50 {
		start = end - 50
		for start < end && p.in[start]&0xc0 == 0x80 {
			start++
		}
		dots = "..."
	}
	tail := ""
	if end < len(p.in) && p.in[end] != '\n' && p.in[end] != '\r' {
		tail = "..."
	}
	return "JSON data, line " + string(AppendInt(nil, int64(line))) + ": " + dots + string(p.in[start:end]) + tail
}

// unexpected is the error for a token where something else is due.
func (p *jsonParser) unexpected(expected string) error {
	if p.pos >= len(p.in) {
		return p.syntax(len(p.in), "The input string ended unexpectedly.")
	}
	start := p.pos
	switch c := p.in[p.pos]; {
	case c == '"':
		if _, err := p.scanString(nil); err != nil {
			return err
		}
	case c == '-' || isDigit(c):
		if _, err := p.number(nil); err != nil {
			return err
		}
	case bytes.IndexByte([]byte("{}[],:"), c) >= 0:
		p.pos++
	default:
		tok := p.word(p.pos)
		p.pos += len(tok)
		if s := string(tok); s != "true" && s != "false" && s != "null" {
			return p.syntax(p.pos, "Token \"%s\" is invalid.", tok)
		}
	}
	return p.syntax(p.pos, "Expected %s, but found \"%s\".", expected, p.in[start:p.pos])
}

func (p *jsonParser) space() {
	for p.pos < len(p.in) {
		switch p.in[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *jsonParser) document(dst []byte) ([]byte, error) {
	p.space()
	dst, err := p.value(dst)
	if err != nil {
		return dst, err
	}
	if p.space(); p.pos < len(p.in) {
		return dst, p.unexpected("end of input")
	}
	return dst, nil
}

func (p *jsonParser) value(dst []byte) ([]byte, error) {
	if p.pos >= len(p.in) {
		return dst, p.unexpected("JSON value")
	}
	switch c := p.in[p.pos]; {
	case c == '{':
		return p.nested(dst, p.object)
	case c == '[':
		return p.nested(dst, p.array)
	case c == '"':
		return p.str(dst)
	case c == '-' || isDigit(c):
		return p.number(dst)
	}
	tok := p.word(p.pos)
	switch string(tok) {
	case "true", "false", "null":
		p.pos += len(tok)
		return append(dst, tok...), nil
	}
	return dst, p.unexpected("JSON value")
}

func (p *jsonParser) nested(dst []byte, read func([]byte) ([]byte, error)) ([]byte, error) {
	if p.depth++; p.depth > maxJSONDepth {
		return dst, pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	p.pos++
	dst, err := read(dst)
	p.depth--
	return dst, err
}

func (p *jsonParser) array(dst []byte) ([]byte, error) {
	dst = append(dst, '[')
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] == ']' {
		p.pos++
		return append(dst, ']'), nil
	}
	for n := 0; ; n++ {
		if n > 0 {
			dst = append(dst, ',', ' ')
		}
		p.space()
		var err error
		if dst, err = p.value(dst); err != nil {
			return dst, err
		}
		p.space()
		switch {
		case p.pos < len(p.in) && p.in[p.pos] == ',':
			p.pos++
		case p.pos < len(p.in) && p.in[p.pos] == ']':
			p.pos++
			return append(dst, ']'), nil
		default:
			return dst, p.unexpected("\",\" or \"]\"")
		}
	}
}

// jsonMember is one key of an object being normalised: where its text stands in dst.
type jsonMember struct {
	key        []byte // raw key bytes, which order compares
	start, end int    // "key": value in dst
}

func (p *jsonParser) object(dst []byte) ([]byte, error) {
	dst = append(dst, '{')
	base := len(dst)
	var members []jsonMember
	first := true
	p.space()
	if p.pos < len(p.in) && p.in[p.pos] == '}' {
		p.pos++
		return append(dst, '}'), nil
	}
	for {
		p.space()
		if p.pos >= len(p.in) || p.in[p.pos] != '"' {
			if first {
				return dst, p.unexpected("string or \"}\"")
			}
			return dst, p.unexpected("string")
		}
		first = false
		m := jsonMember{start: len(dst)}
		var raw []byte
		var err error
		if raw, err = p.scanString(nil); err != nil {
			return dst, err
		}
		dst = appendJSONString(dst, raw)
		if p.space(); p.pos >= len(p.in) || p.in[p.pos] != ':' {
			return dst, p.unexpected("\":\"")
		}
		p.pos++
		dst = append(dst, ':', ' ')
		p.space()
		if dst, err = p.value(dst); err != nil {
			return dst, err
		}
		if p.binary {
			m.key, m.end = raw, len(dst)
			members = append(members, m)
		} else {
			dst = dst[:base]
		}
		p.space()
		switch {
		case p.pos < len(p.in) && p.in[p.pos] == ',':
			p.pos++
		case p.pos < len(p.in) && p.in[p.pos] == '}':
			p.pos++
			return append(orderMembers(dst, base, members), '}'), nil
		default:
			return dst, p.unexpected("\",\" or \"}\"")
		}
	}
}

// orderMembers rewrites the members at dst[base:] in jsonb's order.
func orderMembers(dst []byte, base int, members []jsonMember) []byte {
	slices.SortStableFunc(members, func(a, b jsonMember) int {
		if len(a.key) != len(b.key) {
			return len(a.key) - len(b.key)
		}
		return bytes.Compare(a.key, b.key)
	})
	text := append([]byte(nil), dst[base:]...)
	dst = dst[:base]
	for i, m := range members {
		if i+1 < len(members) && bytes.Equal(m.key, members[i+1].key) {
			continue
		}
		if len(dst) > base {
			dst = append(dst, ',', ' ')
		}
		dst = append(dst, text[m.start-base:m.end-base]...)
	}
	return dst
}

func (p *jsonParser) str(dst []byte) ([]byte, error) {
	raw, err := p.scanString(nil)
	if err != nil {
		return dst, err
	}
	return appendJSONString(dst, raw), nil
}

// scanString reads a string literal and appends what it means. Source: json_lex_string.
func (p *jsonParser) scanString(raw []byte) ([]byte, error) {
	start := p.pos
	p.pos++
	for {
		if p.pos >= len(p.in) {
			return nil, p.syntax(len(p.in), "Token \"%s\" is invalid.", p.in[start:])
		}
		c := p.in[p.pos]
		switch {
		case c == '"':
			p.pos++
			return raw, nil
		case c < 0x20:
			return nil, p.syntax(p.pos, "Character with value 0x%02x must be escaped.", c)
		case c != '\\':
			raw = append(raw, c)
			p.pos++
			continue
		}
		var err error
		if raw, err = p.escape(raw, start); err != nil {
			return nil, err
		}
	}
}

func (p *jsonParser) escape(raw []byte, start int) ([]byte, error) {
	p.pos++
	if p.pos >= len(p.in) {
		return nil, p.syntax(len(p.in), "Token \"%s\" is invalid.", p.in[start:])
	}
	c := p.in[p.pos]
	p.pos++
	switch c {
	case '"', '\\', '/':
		return append(raw, c), nil
	case 'b':
		return append(raw, '\b'), nil
	case 'f':
		return append(raw, '\f'), nil
	case 'n':
		return append(raw, '\n'), nil
	case 'r':
		return append(raw, '\r'), nil
	case 't':
		return append(raw, '\t'), nil
	case 'u':
		return p.unicodeEscape(raw)
	}
	end := min(p.pos-1+utf8Len(c), len(p.in))
	return nil, p.syntax(end, "Escape sequence \"\\%s\" is invalid.", p.in[p.pos-1:end])
}

func (p *jsonParser) hex4() (rune, bool) {
	if p.pos+4 > len(p.in) {
		return 0, false
	}
	r := rune(0)
	for range 4 {
		v, ok := hexValue(p.in[p.pos])
		if !ok {
			return 0, false
		}
		r = r<<4 | rune(v)
		p.pos++
	}
	return r, true
}

func (p *jsonParser) unicodeEscape(raw []byte) ([]byte, error) {
	r, ok := p.hex4()
	if !ok {
		return nil, p.syntax(p.pos+1, "\"\\u\" must be followed by four hexadecimal digits.")
	}
	switch {
	case r >= 0xdc00 && r < 0xe000:
		return p.surrogate(raw, "Unicode low surrogate must follow a high surrogate.")
	case r >= 0xd800 && r < 0xdc00:
		if p.pos+1 >= len(p.in) || p.in[p.pos] != '\\' || p.in[p.pos+1] != 'u' {
			return p.surrogate(raw, "Unicode low surrogate must follow a high surrogate.")
		}
		p.pos += 2
		low, ok := p.hex4()
		if !ok {
			return nil, p.syntax(p.pos+1, "\"\\u\" must be followed by four hexadecimal digits.")
		}
		if low >= 0xd800 && low < 0xdc00 {
			return p.surrogate(raw, "Unicode high surrogate must not follow a high surrogate.")
		}
		if low < 0xdc00 || low >= 0xe000 {
			return p.surrogate(raw, "Unicode low surrogate must follow a high surrogate.")
		}
		r = utf16.DecodeRune(r, low)
	case r == 0 && p.binary:
		e := pgerr.New(pgerr.UntranslatableCharacter, "unsupported Unicode escape sequence").WithDetail("\\u0000 cannot be converted to text.")
		e.Where = p.where(p.pos)
		return nil, e
	}
	return utf8.AppendRune(raw, r), nil
}

// surrogate refuses a broken pair where the text is interpreted; json keeps it as it is.
func (p *jsonParser) surrogate(raw []byte, detail string) ([]byte, error) {
	if !p.binary {
		return raw, nil
	}
	return nil, p.syntax(p.pos, "%s", detail)
}

// appendJSONString appends a string literal. Source: escape_json.
func appendJSONString(dst, raw []byte) []byte {
	dst = append(dst, '"')
	for _, c := range raw {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// number reads a JSON number and appends it as numeric shows it. Source: json_lex_number.
func (p *jsonParser) number(dst []byte) ([]byte, error) {
	start := p.pos
	i := p.pos
	if p.in[i] == '-' {
		i++
	}
	at := func() byte {
		if i < len(p.in) {
			return p.in[i]
		}
		return 0
	}
	digits := func() bool {
		n := i
		for isDigit(at()) && i < len(p.in) {
			i++
		}
		return i > n
	}
	ok := true
	if at() == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && at() == '.' {
		i++
		ok = digits()
	}
	if ok && at()|0x20 == 'e' {
		i++
		if at() == '+' || at() == '-' {
			i++
		}
		ok = digits()
	}
	if c := at(); !ok || i < len(p.in) && jsonWordByte(c) {
		tok := p.word(i)
		if i > p.pos && !(i < len(p.in) && jsonWordByte(c)) {
			tok = p.in[p.pos:i]
		}
		return dst, p.syntax(p.pos+len(tok), "Token \"%s\" is invalid.", tok)
	}
	p.pos = i
	text := p.in[start:i]
	if !p.binary {
		return dst, nil
	}
	n, err := ParseNumeric(text)
	if err != nil {
		return dst, err
	}
	return AppendNumeric(dst, n), nil
}
