package pgsql

import (
	"regexp"
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// InvalidRegularExpression is ERRCODE_INVALID_REGULAR_EXPRESSION.
const invalidRegularExpression pgerr.Code = "2201B"

// translateRegex turns a PostgreSQL advanced regular expression into RE2's syntax, which DuckDB uses. What RE2 cannot do
// (look-around, back references) is 0A000; a malformed pattern is 2201B.
func translateRegex(p string) (string, error) {
	if strings.HasPrefix(p, "***=") {
		return regexp.QuoteMeta(p[4:]), nil
	}
	p = strings.TrimPrefix(p, "***:")
	var b strings.Builder
	// Embedded options stand at the start only: (?i), (?n) …
	if strings.HasPrefix(p, "(?") {
		if end := strings.IndexByte(p, ')'); end > 2 && strings.Trim(p[2:end], "bceimnpqstwx") == "" {
			opts := p[2:end]
			p = p[end+1:]
			if strings.Contains(opts, "q") {
				return regexp.QuoteMeta(p), nil
			}
			flags := ""
			if strings.Contains(opts, "i") {
				flags += "i"
			}
			if strings.ContainsAny(opts, "nm") {
				b.WriteString("(?m-s)")
			}
			if strings.Contains(opts, "x") {
				p = expandedRegex(p)
			}
			if flags != "" {
				b.WriteString("(?" + flags + ")")
			}
		}
	}
	for i := 0; i < len(p); i++ {
		switch c := p[i]; c {
		case '\\':
			n, out, err := regexEscape(p[i:])
			if err != nil {
				return "", err
			}
			b.WriteString(out)
			i += n - 1
		case '[':
			n, out, err := regexBracket(p[i:])
			if err != nil {
				return "", err
			}
			b.WriteString(out)
			i += n - 1
		case '(':
			if strings.HasPrefix(p[i:], "(?=") || strings.HasPrefix(p[i:], "(?!") || strings.HasPrefix(p[i:], "(?<") {
				return "", pgerr.New(pgerr.FeatureNotSupported, "look-around in regular expressions is not supported")
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	out := b.String()
	if _, err := regexp.Compile(out); err != nil {
		return "", pgerr.Newf(invalidRegularExpression, "invalid regular expression: %s", regexReason(err))
	}
	return out, nil
}

func regexReason(err error) string {
	msg := err.Error()
	switch {
	case strings.Contains(msg, "missing closing )"), strings.Contains(msg, "unexpected )"):
		return "parentheses () not balanced"
	case strings.Contains(msg, "missing closing ]"):
		return "brackets [] not balanced"
	case strings.Contains(msg, "missing argument to repetition"), strings.Contains(msg, "nested repetition"):
		return "quantifier operand invalid"
	case strings.Contains(msg, "invalid repeat count"):
		return "invalid repetition count(s)"
	case strings.Contains(msg, "invalid character class range"):
		return "invalid character range"
	}
	return "invalid escape \\ sequence"
}

// regexEscape translates one escape outside brackets.
func regexEscape(p string) (int, string, error) {
	if len(p) < 2 {
		return 0, "", pgerr.New(invalidRegularExpression, "invalid regular expression: invalid escape \\ sequence")
	}
	switch c := p[1]; {
	case c == 'm', c == 'M', c == 'y', c == '<', c == '>':
		return 2, `\b`, nil
	case c == 'Y':
		return 2, `\B`, nil
	case c == 'A':
		return 2, `\A`, nil
	case c == 'Z':
		return 2, `\z`, nil
	case c == 'e':
		return 2, `\x1B`, nil
	case c == 'B':
		return 2, `\\`, nil
	case c == 'u' && len(p) >= 6:
		return 6, `\x{` + p[2:6] + `}`, nil
	case c == 'U' && len(p) >= 10:
		return 10, `\x{` + p[2:10] + `}`, nil
	case c >= '1' && c <= '9':
		return 0, "", pgerr.New(pgerr.FeatureNotSupported, "back references in regular expressions are not supported")
	case strings.IndexByte("dDsSwWfnrtvab", c) >= 0:
		if c == 'a' {
			return 2, `\x07`, nil
		}
		if c == 'b' {
			return 2, `\x08`, nil
		}
		return 2, p[:2], nil
	case c == '0':
		return 2, `\x00`, nil
	case c == 'x':
		return 2, `\x`, nil
	case c < 0x80 && !isWordByte(c) || c == '_':
		return 2, regexp.QuoteMeta(string(c)), nil
	}
	return 0, "", pgerr.New(invalidRegularExpression, "invalid regular expression: invalid escape \\ sequence")
}

// regexBracket translates a bracket expression.
func regexBracket(p string) (int, string, error) {
	if strings.HasPrefix(p, "[[:<:]]") || strings.HasPrefix(p, "[[:>:]]") {
		return 7, `\b`, nil
	}
	var b strings.Builder
	i := 1
	b.WriteByte('[')
	if i < len(p) && p[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; i < len(p); first = false {
		switch {
		case p[i] == ']' && !first:
			b.WriteByte(']')
			return i + 1, b.String(), nil
		case strings.HasPrefix(p[i:], "[:"):
			end := strings.Index(p[i:], ":]")
			if end < 0 {
				return 0, "", pgerr.New(invalidRegularExpression, "invalid regular expression: brackets [] not balanced")
			}
			b.WriteString(p[i : i+end+2])
			i += end + 2
		case strings.HasPrefix(p[i:], "[.") || strings.HasPrefix(p[i:], "[="):
			return 0, "", pgerr.New(pgerr.FeatureNotSupported, "collating elements in regular expressions are not supported")
		case p[i] == '\\' && i+1 < len(p):
			n, out, err := regexEscape(p[i:])
			if err != nil {
				return 0, "", err
			}
			b.WriteString(out)
			i += n
		case p[i] == '[' || p[i] == ']':
			b.WriteString(`\` + string(p[i]))
			i++
		default:
			b.WriteByte(p[i])
			i++
		}
	}
	return 0, "", pgerr.New(invalidRegularExpression, "invalid regular expression: brackets [] not balanced")
}

// expandedRegex drops white space and comments (option x).
func expandedRegex(p string) string {
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case ' ', '\t', '\n', '\r', '\f', '\v':
		case '#':
			for i < len(p) && p[i] != '\n' {
				i++
			}
		case '\\':
			b.WriteByte(p[i])
			if i+1 < len(p) {
				i++
				b.WriteByte(p[i])
			}
		default:
			b.WriteByte(p[i])
		}
	}
	return b.String()
}

// similarRegex is similar_to_escape: an SQL pattern as a regular expression over the whole string.
func similarRegex(p, escape string) (string, error) {
	var b strings.Builder
	b.WriteString("^(?:")
	bracket := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		if escape != "" && strings.HasPrefix(p[i:], escape) {
			i += len(escape)
			if i >= len(p) {
				break
			}
			if p[i] == '"' {
				return "", pgerr.New(pgerr.FeatureNotSupported, "SQL regular expression with separators is not supported")
			}
			b.WriteString(regexp.QuoteMeta(string(p[i])))
			continue
		}
		switch {
		case bracket:
			if c == ']' {
				bracket = false
			}
			if c == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case c == '[':
			bracket = true
			b.WriteByte(c)
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteByte('.')
		case c == '(':
			b.WriteString("(?:")
		case c == '\\' || c == '.' || c == '^' || c == '$':
			b.WriteString(`\` + string(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteString(")$")
	if _, err := regexp.Compile(b.String()); err != nil {
		return "", pgerr.Newf(invalidRegularExpression, "invalid regular expression: %s", regexReason(err))
	}
	return b.String(), nil
}
