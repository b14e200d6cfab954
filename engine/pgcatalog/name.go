package pgcatalog

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// splitName parses a possibly qualified name as PostgreSQL's textToQualifiedNameList does: parts separated by dots, unquoted
// ones folded to lower case, blanks around them ignored.
func splitName(text string) ([]string, error) {
	var parts []string
	rest := strings.TrimSpace(text)
	for {
		var part string
		if strings.HasPrefix(rest, `"`) {
			var ok bool
			if part, rest, ok = cutQuoted(rest); !ok || part == "" {
				return nil, pgerr.New(pgerr.InvalidName, "invalid name syntax")
			}
		} else {
			end := strings.IndexAny(rest, ". \t\n\"")
			if end < 0 {
				end = len(rest)
			}
			if part = strings.ToLower(rest[:end]); part == "" {
				return nil, pgerr.New(pgerr.InvalidName, "invalid name syntax")
			}
			rest = rest[end:]
		}
		parts = append(parts, shown(part))
		rest = strings.TrimLeft(rest, " \t\n")
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, pgerr.New(pgerr.InvalidName, "invalid name syntax")
		}
		rest = strings.TrimLeft(rest[1:], " \t\n")
	}
}

// cutQuoted takes a quoted identifier off the front.
func cutQuoted(text string) (name, rest string, ok bool) {
	var sb strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i] != '"' {
			sb.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == '"' {
			sb.WriteByte('"')
			i++
			continue
		}
		return sb.String(), text[i+1:], true
	}
	return "", "", false
}

// numeric gives the OID that a reg* input spells as digits, or "-" for 0.
func numericOID(text string) (uint32, bool) {
	if text == "-" {
		return 0, true
	}
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	return parseOID(text), true
}

// lookup finds a name in the schema it names, or along the search path; 0 when there is none.
func (sc *scope) lookup(parts []string, find func(schema, name string) uint32) (uint32, error) {
	switch len(parts) {
	case 1:
		for _, schema := range sc.path {
			if oid := find(schema, parts[0]); oid != 0 {
				return oid, nil
			}
		}
		return 0, nil
	case 3:
		if parts[0] != sc.database() {
			return 0, pgerr.Newf(pgerr.FeatureNotSupported, "cross-database references are not implemented: %s", strings.Join(parts, "."))
		}
		parts = parts[1:]
	case 2:
	default:
		return 0, pgerr.Newf(pgerr.SyntaxError, "improper qualified name (too many dotted names): %s", strings.Join(parts, "."))
	}
	if parts[0] == "pg_temp" && sc.temp != "" {
		return find(sc.temp, parts[1]), nil
	}
	return find(parts[0], parts[1]), nil
}
