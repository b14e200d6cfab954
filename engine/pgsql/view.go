package pgsql

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// NormalizeView analyses a view's query and gives its text with schema-qualified names and expanded stars, ready to store, and its
// columns: a column that a table gets later is none of the view's.
func NormalizeView(cv *CreateView, r Resolver) (sql string, cols []OutCol, err error) {
	az := newAnalyzer(cv.Query.src, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	n := az.selectNode(cv.Query.Node, &scope{az: az}, selectOptions{})
	cols = columnsOf(n.targets)
	if len(cv.Columns) > len(cols) {
		return "", nil, pgerr.New(pgerr.SyntaxError, "CREATE VIEW specifies more column names than columns")
	}
	seen := map[string]bool{}
	for i := range cols {
		if i < len(cv.Columns) {
			cols[i].Name = cv.Columns[i]
		}
		if seen[cols[i].Name] {
			return "", nil, pgerr.Newf(pgerr.DuplicateColumn, "column %q specified more than once", cols[i].Name)
		}
		seen[cols[i].Name] = true
		if t := catalog().types[cols[i].Type]; t != nil && t.kind == 'p' {
			return "", nil, pgerr.Newf(pgerr.InvalidTableDefinition, "column %q has pseudo-type %s", cols[i].Name, typeName(cols[i].Type))
		}
	}
	return az.qualify(cv), cols, nil
}

// expandedStar is a * of a select list and the columns it stood for, as SQL.
type expandedStar struct {
	begin int32
	cols  []string
}

// noteStar remembers what a star of the statement's own text stands for.
func (az *analyzer) noteStar(loc int32, items ...*nsItem) {
	if az.views > 0 {
		return
	}
	star := expandedStar{begin: loc}
	for _, it := range items {
		if len(items) > 1 && (!it.colsVisible || it.lateralOnly) {
			continue
		}
		for _, c := range it.cols {
			switch {
			case c.hidden:
			case it.name != "" && it.relVisible:
				star.cols = append(star.cols, QuoteIdent(it.name)+"."+QuoteIdent(c.name))
			default:
				star.cols = append(star.cols, QuoteIdent(c.name))
			}
		}
	}
	az.stars = append(az.stars, star)
}

// textEdit replaces text[begin:end].
type textEdit struct {
	begin, end int
	text       string
}

// applyEdits makes the edits that lie in text[from:to] and returns that part. Edits do not overlap.
func applyEdits(text string, from, to int, edits []textEdit) string {
	slices.SortFunc(edits, func(a, b textEdit) int { return a.begin - b.begin })
	edits = slices.Compact(edits) // an item that drives a call was read twice
	var out strings.Builder
	last := from
	for _, e := range edits {
		if e.begin < last || e.end > to {
			continue
		}
		out.WriteString(text[last:e.begin])
		out.WriteString(e.text)
		last = e.end
	}
	out.WriteString(text[last:to])
	return out.String()
}

// qualify puts the schema before every relation name that was found through the search path, and columns in the place of stars.
func (az *analyzer) qualify(cv *CreateView) string {
	text := az.src.text
	offset := strings.Index(text, cv.Text)
	if offset < 0 {
		return cv.Text
	}
	var edits []textEdit
	for _, n := range az.names {
		if n.schema != "" {
			edits = append(edits, textEdit{int(n.begin), int(n.begin), QuoteIdent(n.schema) + "."})
		}
	}
	for _, st := range az.stars {
		if end := starEnd(text, int(st.begin)); end > 0 {
			edits = append(edits, textEdit{int(st.begin), end, strings.Join(st.cols, ", ")})
		}
	}
	return applyEdits(text, offset, offset+len(cv.Text), edits)
}

// starEnd is the end of a star that begins at a place: "*", "t.*" or "s.t.*"; 0 when there is none.
func starEnd(text string, begin int) int {
	if begin < 0 || begin >= len(text) {
		return 0
	}
	toks, err := scan(text[begin:])
	if err != nil {
		return 0
	}
	for _, t := range toks[:min(len(toks), 5)] {
		if text[begin+int(t.Start):begin+int(t.End)] == "*" {
			return begin + int(t.End)
		}
	}
	return 0
}

// ViewUses analyses a view's query and gives the relations that it names itself (tables, views, calls of functions over tables)
// and, of each table, the columns it uses.
func ViewUses(sql string, r Resolver) (uses []RelUse, err error) {
	stmts, err := Parse(sql)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		return nil, pgerr.New(pgerr.InternalError, "the definition of a view cannot be read").WithCause(err)
	}
	az := newAnalyzer(stmts[0].src, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	n := az.selectNode(stmts[0].Node, &scope{az: az}, selectOptions{})
	for _, t := range n.outputs() {
		if t.e.rel != nil {
			t.e.rel.markUsed(t.e.col)
		}
	}
	n.write(&strings.Builder{})
	rels := az.rels
	for _, p := range az.parts {
		p.finish()
		rels = append(rels, p.rels...)
	}
	for _, e := range rels {
		if e.depth > 0 {
			continue
		}
		u := RelUse{Relation: e.use.Relation}
		for c := range e.used {
			u.Columns = append(u.Columns, c)
		}
		slices.Sort(u.Columns)
		uses = append(uses, u)
	}
	for _, v := range az.viewRels {
		uses = append(uses, RelUse{Relation: v})
	}
	return uses, nil
}

// ViewColumns analyses a stored view's query and gives its columns.
func ViewColumns(sql string, r Resolver) (cols []OutCol, err error) {
	stmts, err := Parse(sql)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		return nil, pgerr.New(pgerr.InternalError, "the definition of a view cannot be read").WithCause(err)
	}
	az := newAnalyzer(stmts[0].src, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	return columnsOf(az.selectNode(stmts[0].Node, &scope{az: az}, selectOptions{}).targets), nil
}

// Retarget rewrites a view's query for a relation that gets another name, or whose columns do: every mention of old becomes now
// under the name that it had in the query. columns gives the column names that a mention shows, from those that its own list of column
// aliases has (possibly none); nil leaves them.
func Retarget(sql string, old, now QName, columns func(aliases []string) []string) (string, error) {
	res, err := pg_query.Parse(sql)
	if err != nil {
		return "", pgerr.New(pgerr.InternalError, "the definition of a view cannot be read").WithCause(err)
	}
	var edits []textEdit
	eachNode(res.ProtoReflect(), func(m any) {
		v, ok := m.(*pg_query.RangeVar)
		if !ok || v.Schemaname != old.Schema || v.Relname != old.Name {
			return
		}
		alias, names := aliasOf(v.Alias)
		end := mentionEnd(sql, int(v.Location), alias, names)
		if end == 0 {
			return
		}
		if columns != nil {
			names = columns(names)
		}
		text := QuoteIdent(now.Schema) + "." + QuoteIdent(now.Name)
		if alias == "" && (now.Name != old.Name || len(names) > 0) {
			alias = old.Name
		}
		if alias != "" {
			text += " AS " + QuoteIdent(alias)
		}
		if len(names) > 0 {
			quoted := make([]string, len(names))
			for i, n := range names {
				quoted[i] = QuoteIdent(n)
			}
			text += "(" + strings.Join(quoted, ", ") + ")"
		}
		edits = append(edits, textEdit{int(v.Location), end, text})
	})
	return applyEdits(sql, 0, len(sql), edits), nil
}

// mentionEnd is the end of a FROM item that begins at a place: schema.name [*] [[AS] alias [(names)]]; 0 when it is not there.
func mentionEnd(sql string, begin int, alias string, names []string) int {
	if begin < 0 || begin >= len(sql) {
		return 0
	}
	toks, err := scan(sql[begin:])
	if err != nil || len(toks) < 3 {
		return 0
	}
	word := func(i int) string {
		if i >= len(toks) {
			return ""
		}
		return sql[begin+int(toks[i].Start) : begin+int(toks[i].End)]
	}
	i := 3 // schema . name
	if word(i) == "*" {
		i++
	}
	if alias == "" {
		return begin + int(toks[i-1].End)
	}
	if strings.EqualFold(word(i), "as") {
		i++
	}
	if i >= len(toks) {
		return 0
	}
	i++
	if len(names) > 0 {
		for i < len(toks) && word(i) != ")" {
			i++
		}
		i++
	}
	if i > len(toks) {
		return 0
	}
	return begin + int(toks[i-1].End)
}

// columnRefs visits the column references of an expression, by the place of their last name.
func columnRefs(expr string, visit func(name string, begin, end int)) error {
	const head = "SELECT "
	text := head + expr
	res, err := pg_query.Parse(text)
	if err != nil {
		return pgerr.Newf(pgerr.InternalError, "the expression %q cannot be read", expr).WithCause(err)
	}
	toks, err := scan(text)
	if err != nil {
		return err
	}
	eachNode(res.ProtoReflect(), func(m any) {
		ref, ok := m.(*pg_query.ColumnRef)
		if !ok {
			return
		}
		name := ref.Fields[len(ref.Fields)-1].GetString_().GetSval()
		for i, t := range toks {
			if t.Start != ref.Location {
				continue
			}
			if last := i + 2*(len(ref.Fields)-1); last < len(toks) { // names with dots between
				visit(name, int(toks[last].Start)-len(head), int(toks[last].End)-len(head))
			}
		}
	})
	return nil
}

// ExprUses says whether an expression over a table's row uses a column.
func ExprUses(expr, column string) (bool, error) {
	uses := false
	err := columnRefs(expr, func(name string, _, _ int) { uses = uses || name == column || name == "" })
	return uses, err
}

// RenameInExpr gives a column another name in an expression over a table's row.
func RenameInExpr(expr, old, now string) (string, error) {
	var edits []textEdit
	err := columnRefs(expr, func(name string, begin, end int) {
		if name == old {
			edits = append(edits, textEdit{begin, end, QuoteIdent(now)})
		}
	})
	return applyEdits(expr, 0, len(expr), edits), err
}
