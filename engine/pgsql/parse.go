package pgsql

import (
	"errors"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// Stmt is one parsed statement.
type Stmt struct {
	Kind Kind
	// Tag is PostgreSQL's command tag without counts: "SELECT", "CREATE TABLE" …
	Tag string
	// Text is the statement as it was sent, without the semicolon and surrounding white space.
	Text string
	// Node is the tree.
	Node *pg_query.Node

	src *source
	// begin and end are byte offsets of the statement in src.text.
	begin, end int
}

// source is a query string, possibly rewritten, with a way back to the client's characters.
type source struct {
	original string
	text     string
	// edits map offsets of text to offsets of original: at text[new:] the rest corresponds to original[old:].
	edits []edit
}

type edit struct{ new, old int }

// position is the 1-based character position of a byte offset of the parsed text; 0 for a negative offset.
func (s *source) position(off int32) int {
	if s == nil || off < 0 {
		return 0
	}
	n := s.offset(int(off))
	return utf8.RuneCountInString(s.original[:n]) + 1
}

// offset maps an offset of text to one of original.
func (s *source) offset(off int) int {
	n := off
	for _, e := range s.edits {
		if e.new > off {
			break
		}
		n = e.old + off - e.new
	}
	return max(0, min(n, len(s.original)))
}

// Limits that keep the parser's C recursion within its stack (S3).
const (
	maxChain     = 2000
	maxStatement = 64 << 20
)

// Parse parses a query string into its statements. An empty string gives none. A syntax error anywhere is 42601 with PostgreSQL's
// message and position, and no statement.
func Parse(sql string) ([]*Stmt, error) {
	if strings.IndexByte(sql, 0) >= 0 {
		return nil, pgerr.New(pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8": 0x00`)
	}
	if !utf8.ValidString(sql) {
		return nil, pgerr.New(pgerr.CharacterNotInRepertoire, `invalid byte sequence for encoding "UTF8"`)
	}
	if len(sql) > maxStatement {
		return nil, pgerr.New(pgerr.ProgramLimitExceeded, "statement is too long").WithDetail("The limit is %d bytes.", maxStatement)
	}
	src := &source{original: sql, text: sql}
	if len(sql) > maxChain {
		if err := checkDepth(sql); err != nil {
			return nil, err
		}
	}
	if mayHaveAsOf(sql) {
		rewriteAsOf(src)
	}
	tree, err := pg_query.Parse(src.text)
	if err != nil {
		return nil, parseError(src, err)
	}
	var out []*Stmt
	for _, raw := range tree.Stmts {
		if raw.Stmt == nil {
			continue
		}
		begin, end := int(raw.StmtLocation), int(raw.StmtLocation+raw.StmtLen)
		if raw.StmtLen == 0 {
			end = len(src.text)
		}
		begin = skipBlank(src.text, begin)
		st := newStmt(src, raw.Stmt)
		st.begin, st.end = begin, end
		st.Text = strings.TrimRight(src.original[src.offset(begin):max(src.offset(begin), src.offset(end))], " \t\r\n\f;")
		out = append(out, st)
	}
	return out, nil
}

func newStmt(src *source, node *pg_query.Node) *Stmt {
	st := &Stmt{Node: node, src: src, begin: 0, end: len(src.text)}
	st.Kind, st.Tag = kindOf(node)
	return st
}

// skipBlank skips white space and comments before a statement.
func skipBlank(s string, i int) int {
	for i < len(s) {
		switch {
		case strings.IndexByte(" \t\r\n\f;", s[i]) >= 0:
			i++
		case strings.HasPrefix(s[i:], "--"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return len(s)
			}
			i += n + 1
		case strings.HasPrefix(s[i:], "/*"):
			depth, j := 0, i
			for j < len(s) {
				if strings.HasPrefix(s[j:], "/*") {
					depth++
					j += 2
				} else if strings.HasPrefix(s[j:], "*/") {
					depth--
					j += 2
					if depth == 0 {
						break
					}
				} else {
					j++
				}
			}
			i = j
		default:
			return i
		}
	}
	return i
}

// parseError turns the parser's error into PostgreSQL's.
func parseError(src *source, err error) error {
	var pe *parser.Error
	if !errors.As(err, &pe) {
		// protobuf's own limit of nesting
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").WithCause(err)
	}
	code := pgerr.SyntaxError
	msg := pe.Message
	switch {
	case strings.Contains(msg, "not yet implemented"), strings.Contains(msg, "not implemented"), strings.Contains(msg, "is not supported"):
		code = pgerr.FeatureNotSupported
	case strings.Contains(msg, "memory exhausted"), strings.Contains(msg, "stack depth"):
		return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	case strings.HasPrefix(msg, "invalid byte sequence for encoding"):
		return pgerr.New(pgerr.CharacterNotInRepertoire, msg)
	case strings.HasPrefix(msg, "invalid Unicode"), strings.Contains(msg, "escape string"):
		code = pgerr.InvalidEscapeSequence
		if strings.HasPrefix(msg, "invalid Unicode") {
			code = pgerr.SyntaxError
		}
	}
	if strings.HasPrefix(msg, "LIMIT #,# syntax") {
		code = pgerr.SyntaxError
	}
	e := pgerr.New(code, msg)
	if code == pgerr.SyntaxError && strings.HasPrefix(msg, "LIMIT #,# syntax") {
		e.Hint = "Use separate LIMIT and OFFSET clauses."
	}
	if pe.Cursorpos > 0 {
		e.Position = charPosition(src, pe.Cursorpos)
	}
	return e
}

// charPosition maps the parser's cursor (1-based characters of the parsed text) to the client's text.
func charPosition(src *source, cursor int) int {
	if len(src.edits) == 0 {
		return cursor
	}
	off, n := 0, 1
	for off < len(src.text) && n < cursor {
		_, w := utf8.DecodeRuneInString(src.text[off:])
		off += w
		n++
	}
	return src.position(int32(off))
}

// checkDepth refuses chains that would nest too deeply in the parser's C code: a + b + c …, UNION chains, joins, casts.
func checkDepth(sql string) error {
	tokens, err := scan(sql)
	if err != nil {
		return nil // the parser says it better
	}
	type level struct{ chain, sets int }
	stack := []level{{}}
	total := 0
	for _, t := range tokens {
		top := &stack[len(stack)-1]
		switch word := sql[t.Start:t.End]; {
		case word == "(" || word == "[":
			stack = append(stack, level{})
		case word == ")" || word == "]":
			if len(stack) > 1 {
				total -= top.chain + top.sets + 1
				stack = stack[:len(stack)-1]
			}
		case word == "," || word == ";":
			total -= top.chain
			top.chain = 0
		case t.KeywordKind == pg_query.KeywordKind_NO_KEYWORD && isOperatorToken(word):
			top.chain++
			total++
		case t.KeywordKind != pg_query.KeywordKind_NO_KEYWORD:
			switch strings.ToLower(word) {
			case "and", "or", "select", "where", "from":
				total -= top.chain
				top.chain = 0
			case "union", "intersect", "except", "join", "case":
				top.sets++
				total++
			case "is", "like", "ilike", "in", "between", "collate", "at", "not", "similar", "isnull", "notnull":
				top.chain++
				total++
			}
		}
		if total+len(stack) > maxChain {
			return pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded").
				WithHint("The statement nests more than %d operators, set operations, joins or parentheses.", maxChain)
		}
	}
	return nil
}

func isOperatorToken(w string) bool {
	return w != "" && strings.IndexByte("+-*/<>=~!@#%^&|`?:", w[0]) >= 0
}

// scan is the scanner's tokens without comments.
func scan(sql string) ([]*pg_query.ScanToken, error) {
	res, err := pg_query.Scan(sql)
	if err != nil {
		return nil, err
	}
	out := res.Tokens[:0]
	for _, t := range res.Tokens {
		if t.Token == pg_query.Token_SQL_COMMENT || t.Token == pg_query.Token_C_COMMENT {
			continue
		}
		if t.Start < 0 || t.End > int32(len(sql)) || t.End < t.Start {
			continue
		}
		out = append(out, t)
	}
	return out, nil
}
