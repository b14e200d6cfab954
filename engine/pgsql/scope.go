package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// scope is one query level: what names mean there (PostgreSQL's ParseState).
type scope struct {
	az     *analyzer
	parent *scope
	ns     []*nsItem
	ctes   []*cteEntry
	// clause is where the expression being analysed stands: "WHERE", "JOIN conditions", "" for the select list.
	clause string
	// aggs, windows and srfs are found in the expressions analysed so far.
	aggs, wins, srfs int
	windowDefs       []*windowDef
	// outer are the columns of enclosing levels that this level or one below it uses.
	outer []*expr
	// inAgg is set while the arguments of an aggregate of this level are analysed.
	inAgg bool
	inWin bool
	// forward is the level in whose FROM this one stands in for: what passes through here passes through there.
	forward *scope
	// noColumns is the clause in which columns are not allowed (LIMIT, OFFSET).
	noColumns string
	// columnless is the place in which no column may be named: a default.
	columnless string
	// hidden are items that exist but cannot be named here, for hints.
	hidden []*nsItem
	// where is the level's WHERE, and drivers what the driven calls in its FROM take their arguments from.
	where   *pg_query.Node
	drivers *drivers
}

// nsItem is a FROM item as names see it.
type nsItem struct {
	name, schema string
	cols         []*nsCol
	// relVisible: may be named as table.col; colsVisible: its columns may be named alone.
	relVisible, colsVisible bool
	// lateralOnly items are visible only inside LATERAL; lateralOK says whether a reference is valid there.
	lateralOnly, lateralOK bool
	rel                    *relEntry
	// source is the item as it can be read once more, by itself; part is the part that it names, if it does. nil: it cannot.
	source *pg_query.Node
	part   *cteEntry
	// function marks a single-column function, whose name is also its column's.
	scalarFunc bool
}

type nsCol struct {
	name   string
	e      *expr
	hidden bool
	table  uint32
	attnum int16
}

type cteEntry struct {
	name  string
	ident string // w1
	cols  []*nsCol
	used  int
	// part is set for a CTE that runs by itself; silent is one without RETURNING.
	part   *pendingPart
	silent bool
	// rel is set for the results of driven calls.
	rel *relEntry
	// rels are the sources that its rows are rows of, filtered.
	rels []*relEntry
}

// reference copies a column's expression for one mention of it.
func (s *scope) reference(owner *scope, c *nsCol, loc int32) *expr {
	e := *c.e
	e.loc = loc
	e.owner = owner
	if owner != s {
		for x := s; x != nil && x != owner; x = x.parent {
			x.outer = append(x.outer, &e)
			if x.forward != nil {
				x.forward.outer = append(x.forward.outer, &e)
			}
		}
	}
	return &e
}

// column resolves an unqualified name; nil when there is none.
func (s *scope) column(name string, loc int32) *expr {
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for _, hidden := range []bool{false, true} {
			var found *nsCol
			var in *nsItem
			for _, it := range lvl.ns {
				if !it.colsVisible {
					continue
				}
				for _, c := range it.cols {
					if c.name != name || c.hidden != hidden {
						continue
					}
					if found != nil && !(found == c) {
						s.az.fail(pgerr.AmbiguousColumn, loc, "column reference %q is ambiguous", name)
					}
					found, in = c, it
				}
			}
			if found != nil {
				if in.lateralOnly && !in.lateralOK {
					s.badLateral(in, loc)
				}
				return s.reference(lvl, found, loc)
			}
		}
	}
	return nil
}

func (s *scope) badLateral(it *nsItem, loc int32) {
	e := s.az.errorAt(pgerr.InvalidColumnReference, loc, "invalid reference to FROM-clause entry for table %q", it.name)
	e.Detail = "The combining JOIN type must be INNER or LEFT for a LATERAL reference."
	panic(e)
}

// item resolves a table name or alias.
func (s *scope) item(schema, name string, loc int32) (*nsItem, *scope) {
	for lvl := s; lvl != nil; lvl = lvl.parent {
		var found *nsItem
		for _, it := range lvl.ns {
			if !it.relVisible || it.name != name {
				continue
			}
			if schema != "" && (it.schema != schema || it.rel != nil && it.rel.use.Alias != it.rel.use.Relation.Name) {
				continue
			}
			if found != nil {
				s.az.fail(pgerr.AmbiguousAlias, loc, "table reference %q is ambiguous", name)
			}
			found = it
		}
		if found != nil {
			if found.lateralOnly && !found.lateralOK {
				s.badLateral(found, loc)
			}
			return found, lvl
		}
	}
	return nil, nil
}

// missingItem is errorMissingRTE.
func (s *scope) missingItem(schema, name string, loc int32) {
	shown := name
	if schema != "" {
		shown = schema + "." + name
	}
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for _, it := range append(append([]*nsItem(nil), lvl.ns...), lvl.hidden...) {
			if it.rel != nil && it.rel.use.Relation.Name == name && it.name != name {
				e := s.az.errorAt(pgerr.UndefinedTable, loc, "invalid reference to FROM-clause entry for table %q", shown)
				e.Hint = "Perhaps you meant to reference the table alias \"" + it.name + "\"."
				panic(e)
			}
			if it.name == name {
				e := s.az.errorAt(pgerr.UndefinedTable, loc, "invalid reference to FROM-clause entry for table %q", shown)
				e.Hint = "There is an entry for table \"" + name + "\", but it cannot be referenced from this part of the query."
				panic(e)
			}
		}
	}
	s.az.fail(pgerr.UndefinedTable, loc, "missing FROM-clause entry for table %q", shown)
}

func (it *nsItem) column(name string) *nsCol {
	var hidden *nsCol
	for _, c := range it.cols {
		if c.name == name {
			if !c.hidden {
				return c
			}
			hidden = c
		}
	}
	return hidden
}

// missingColumn is errorMissingColumn.
func (s *scope) missingColumn(table, name string, loc int32) {
	var e *pgerr.Error
	if table != "" {
		e = s.az.errorAt(pgerr.UndefinedColumn, loc, "column %s.%s does not exist", table, name)
	} else {
		e = s.az.errorAt(pgerr.UndefinedColumn, loc, "column %q does not exist", name)
	}
	best, hints := 4, []string(nil)
	for lvl := s; lvl != nil; lvl = lvl.parent {
		for _, it := range append(append([]*nsItem(nil), lvl.ns...), lvl.hidden...) {
			penalty := 0
			if table != "" && it.name != "" {
				penalty = levenshtein(table, it.name)
			}
			for _, c := range it.cols {
				if c.hidden || it.name == "" {
					continue
				}
				if c.name == name && (table == "" || table == it.name) {
					e.Hint = "There is a column named \"" + name + "\" in table \"" + it.name + "\", but it cannot be referenced from this part of the query."
					panic(e)
				}
				d := levenshtein(name, c.name)
				if d > 3 || d > len(name)/2 || d+penalty > best || d+penalty > 3 {
					continue
				}
				if d+penalty < best {
					best, hints = d+penalty, nil
				}
				hints = append(hints, "\""+it.name+"."+c.name+"\"")
			}
		}
	}
	switch len(hints) {
	case 1:
		e.Hint = "Perhaps you meant to reference the column " + hints[0] + "."
	case 2:
		e.Hint = "Perhaps you meant to reference the column " + hints[0] + " or the column " + hints[1] + "."
	}
	panic(e)
}

func levenshtein(a, b string) int {
	ar, br := []rune(a), []rune(b)
	if len(ar) > 255 || len(br) > 255 {
		return 256
	}
	row := make([]int, len(br)+1)
	for j := range row {
		row[j] = j
	}
	for i := range ar {
		prev := row[0]
		row[0] = i + 1
		for j := range br {
			cost := prev
			if ar[i] != br[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(br)]
}

// columnRef is transformColumnRef.
func (s *scope) columnRef(n *pg_query.ColumnRef) *expr {
	names := make([]string, 0, len(n.Fields))
	for i, f := range n.Fields {
		str := f.GetString_()
		if str == nil {
			// table.* as a value is the whole row.
			if i == 0 {
				s.az.fail(pgerr.SyntaxError, n.Location, "row expansion via \"*\" is not supported here")
			}
			schema := ""
			if i > 1 {
				schema = names[i-2]
			}
			it, lvl := s.item(schema, names[i-1], n.Location)
			if it == nil {
				s.missingItem(schema, names[i-1], n.Location)
			}
			return s.wholeRow(it, lvl, n.Location)
		}
		names = append(names, str.Sval)
	}
	switch len(names) {
	case 1:
		if e := s.column(names[0], n.Location); e != nil {
			return e
		}
		if it, lvl := s.item("", names[0], n.Location); it != nil {
			return s.wholeRow(it, lvl, n.Location)
		}
		s.missingColumn("", names[0], n.Location)
	case 2, 3:
		schema := ""
		if len(names) == 3 {
			schema = names[0]
			names = names[1:]
		}
		it, lvl := s.item(schema, names[0], n.Location)
		if it == nil {
			s.missingItem(schema, names[0], n.Location)
		}
		if c := it.column(names[1]); c != nil {
			return s.reference(lvl, c, n.Location)
		}
		s.missingColumn(names[0], names[1], n.Location)
	case 4:
		s.az.fail(pgerr.FeatureNotSupported, n.Location, "cross-database references are not implemented: %s", strings.Join(names, "."))
	}
	s.az.fail(pgerr.SyntaxError, n.Location, "improper qualified name (too many dotted names): %s", strings.Join(names, "."))
	return nil
}

// wholeRow is a table's name used as a value: its row. A function that returns one scalar column is that column.
func (s *scope) wholeRow(it *nsItem, lvl *scope, loc int32) *expr {
	if it.scalarFunc && len(it.cols) >= 1 {
		return s.reference(lvl, it.cols[0], loc)
	}
	row := &expr{kind: kRow, typ: pgtype.Record, mod: -1, loc: loc}
	for _, c := range it.cols {
		if c.hidden {
			continue
		}
		row.args = append(row.args, s.reference(lvl, c, loc))
		row.names = append(row.names, c.name)
	}
	return row
}

// expandStar gives the columns of * or of one item.
func (s *scope) expandStar(loc int32) []*target {
	var out []*target
	visible := false
	for _, it := range s.ns {
		if !it.colsVisible || it.lateralOnly {
			continue
		}
		visible = true
		out = append(out, s.expandItem(it, s, loc)...)
	}
	if !visible {
		s.az.fail(pgerr.SyntaxError, loc, "SELECT * with no tables specified is not valid")
	}
	s.az.noteStar(loc, s.ns...)
	return out
}

func (s *scope) expandItem(it *nsItem, lvl *scope, loc int32) []*target {
	var out []*target
	for _, c := range it.cols {
		if c.hidden {
			continue
		}
		out = append(out, &target{e: s.reference(lvl, c, loc), name: c.name, table: c.table, attnum: c.attnum})
	}
	return out
}
