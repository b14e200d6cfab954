package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// mayHaveAsOf is a cheap test that lets nearly every statement skip the scanner.
func mayHaveAsOf(sql string) bool {
	for rest := sql; ; {
		i := strings.IndexAny(rest, "oO")
		if i < 0 {
			return false
		}
		if i+1 < len(rest) && (rest[i+1]|0x20) == 'f' && i > 0 && !isWordByte(rest[i-1]) && (i+2 == len(rest) || !isWordByte(rest[i+2])) {
			before := strings.TrimRight(rest[:i], " \t\r\n\f")
			if len(before) >= 2 && strings.EqualFold(before[len(before)-2:], "as") || strings.HasSuffix(before, "*/") {
				return true
			}
		}
		rest = rest[i+1:]
	}
}

func isWordByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9'
}

// rewriteAsOf replaces `name FOR VERSION|TIMESTAMP|SYSTEM_TIME|SYSTEM_VERSION AS OF value` by table_at('name', value),
// which PostgreSQL's grammar knows. It works on tokens, so nothing inside literals, comments or quoted names is touched.
func rewriteAsOf(src *source) {
	toks, err := scan(src.text)
	if err != nil {
		return
	}
	sql := src.text
	word := func(i int) string {
		if i < 0 || i >= len(toks) {
			return ""
		}
		return strings.ToLower(sql[toks[i].Start:toks[i].End])
	}
	var out strings.Builder
	last := 0
	for i := 0; i+4 < len(toks); i++ {
		if word(i) != "for" || word(i+2) != "as" || word(i+3) != "of" {
			continue
		}
		switch word(i + 1) {
		case "version", "timestamp", "system_time", "system_version":
		default:
			continue
		}
		// The name: [schema .] table directly before FOR.
		n := i - 1
		if n < 0 || !isNameToken(toks[n], sql) {
			continue
		}
		begin := n
		for begin >= 2 && word(begin-1) == "." && isNameToken(toks[begin-2], sql) {
			begin -= 2
		}
		end := valueEnd(toks, sql, i+4)
		if end < 0 {
			continue
		}
		name := sql[toks[begin].Start:toks[n].End]
		value := sql[toks[i+4].Start:toks[end].End]
		out.WriteString(sql[last:toks[begin].Start])
		// Offsets inside the replacement point at the name, then at the value.
		src.edits = append(src.edits, edit{new: out.Len(), old: int(toks[begin].Start)})
		out.WriteString("table_at('" + strings.ReplaceAll(name, "'", "''") + "', ")
		src.edits = append(src.edits, edit{new: out.Len(), old: int(toks[i+4].Start)})
		out.WriteString(value + ")")
		last = int(toks[end].End)
		if !aliasFollows(toks, sql, end+1) {
			out.WriteString(" AS " + sql[toks[n].Start:toks[n].End])
		}
		src.edits = append(src.edits, edit{new: out.Len(), old: last})
		i = end
	}
	if last == 0 {
		return
	}
	out.WriteString(sql[last:])
	src.text = out.String()
}

func isNameToken(t *pg_query.ScanToken, sql string) bool {
	w := sql[t.Start:t.End]
	return t.Token == pg_query.Token_IDENT || strings.HasPrefix(w, `"`) ||
		t.KeywordKind == pg_query.KeywordKind_UNRESERVED_KEYWORD || t.KeywordKind == pg_query.KeywordKind_COL_NAME_KEYWORD
}

// valueEnd is the index of the last token of the bound that begins at token i: a literal, a parameter, a typed literal,
// a function call or a parenthesised expression. -1 when there is none.
func valueEnd(toks []*pg_query.ScanToken, sql string, i int) int {
	if i >= len(toks) {
		return -1
	}
	w := strings.ToLower(sql[toks[i].Start:toks[i].End])
	switch {
	case w == "(":
		return closing(toks, sql, i)
	case toks[i].Token == pg_query.Token_SCONST || toks[i].Token == pg_query.Token_ICONST || toks[i].Token == pg_query.Token_FCONST || toks[i].Token == pg_query.Token_PARAM:
		return castEnd(toks, sql, i)
	case w == "-" && i+1 < len(toks):
		return castEnd(toks, sql, i+1)
	case (w == "timestamp" || w == "timestamptz" || w == "date") && i+1 < len(toks) && toks[i+1].Token == pg_query.Token_SCONST:
		return i + 1
	case w == "current_timestamp" || w == "localtimestamp" || w == "current_date":
		return i
	case i+1 < len(toks) && sql[toks[i+1].Start:toks[i+1].End] == "(" && isNameToken(toks[i], sql):
		return closing(toks, sql, i+1)
	}
	return -1
}

// castEnd takes ::type after a literal.
func castEnd(toks []*pg_query.ScanToken, sql string, i int) int {
	for i+2 < len(toks) && sql[toks[i+1].Start:toks[i+1].End] == "::" {
		i += 2
	}
	return i
}

func closing(toks []*pg_query.ScanToken, sql string, i int) int {
	depth := 0
	for ; i < len(toks); i++ {
		switch sql[toks[i].Start:toks[i].End] {
		case "(":
			depth++
		case ")":
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

func aliasFollows(toks []*pg_query.ScanToken, sql string, i int) bool {
	if i >= len(toks) {
		return false
	}
	t := toks[i]
	return strings.EqualFold(sql[t.Start:t.End], "as") || t.Token == pg_query.Token_IDENT
}
