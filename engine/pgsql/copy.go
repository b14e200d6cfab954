package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// copy analyses COPY: only STDIN and STDOUT.
func (az *analyzer) copy(stmt *Stmt, c *pg_query.CopyStmt) *Copy {
	if c.IsProgram {
		az.copyRefused("must be superuser or have privileges of the pg_execute_server_program role to COPY to or from an external program")
	}
	if c.Filename != "" {
		if c.IsFrom {
			az.copyRefused("must be superuser or have privileges of the pg_read_server_files role to COPY from a file")
		}
		az.copyRefused("must be superuser or have privileges of the pg_write_server_files role to COPY to a file")
	}
	out := &Copy{From: c.IsFrom, Format: "text", Columns: stringList(c.Attlist), stmt: stmt, HasWhere: c.WhereClause != nil}
	if c.Relation != nil {
		q := az.qname(c.Relation)
		out.Schema, out.Table, out.Loc = q.Schema, q.Name, q.Loc
	} else {
		out.Query = az.inner(stmt, c.Query)
		switch out.Query.Kind {
		case Select, InsertStmt, UpdateStmt, DeleteStmt:
		case CreateTableAsStmt:
			panic(pgerr.New(pgerr.FeatureNotSupported, "COPY (SELECT INTO) is not supported"))
		default:
			panic(refusedError(out.Query))
		}
	}
	seen := map[string]bool{}
	for _, n := range c.Options {
		d := n.GetDefElem()
		if seen[d.Defname] {
			az.fail(pgerr.SyntaxError, d.Location, "conflicting or redundant options")
		}
		seen[d.Defname] = true
		az.copyOption(out, d)
	}
	az.copyDefaults(out, seen)
	return out
}

func (az *analyzer) copyRefused(msg string) {
	e := pgerr.New(pgerr.InsufficientPrivilege, msg)
	e.Hint = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."
	panic(e)
}

func (az *analyzer) copyOption(out *Copy, d *pg_query.DefElem) {
	columns := func() []string {
		return stringList(d.Arg.GetList().GetItems())
	}
	switch d.Defname {
	case "format":
		out.Format = strings.ToLower(defText(d))
		switch out.Format {
		case "text", "csv", "binary", "parquet":
		default:
			az.fail(pgerr.InvalidParameterValue, d.Location, "COPY format %q not recognized", defText(d))
		}
	case "freeze":
		out.Freeze = az.defBool(d)
	case "delimiter":
		out.Delimiter = defText(d)
	case "null":
		out.Null, out.NullSet = defText(d), true
	case "header":
		if strings.EqualFold(defText(d), "match") {
			if !out.From {
				az.fail(pgerr.FeatureNotSupported, -1, "cannot use \"match\" with HEADER in COPY TO")
			}
			out.Header, out.HeaderMatch = true, true
			break
		}
		out.Header = az.defBool(d)
	case "quote":
		out.Quote = defText(d)
	case "escape":
		out.Escape = defText(d)
	case "force_quote":
		if d.Arg.GetAStar() != nil {
			out.ForceQuoteAll = true
			break
		}
		out.ForceQuote = columns()
	case "force_not_null":
		out.ForceNotNull = columns()
	case "force_null":
		out.ForceNull = columns()
	case "encoding":
		out.Encoding = defText(d)
	default:
		az.fail(pgerr.SyntaxError, d.Location, "option %q not recognized", d.Defname)
	}
}

// copyDefaults checks the options against each other, with ProcessCopyOptions' messages, and fills in the defaults.
func (az *analyzer) copyDefaults(c *Copy, given map[string]bool) {
	bad := func(format string, args ...any) { panic(pgerr.Newf(pgerr.FeatureNotSupported, format, args...)) }
	syntax := func(format string, args ...any) { panic(pgerr.Newf(pgerr.SyntaxError, format, args...)) }
	if c.Format == "binary" || c.Format == "parquet" {
		mode := strings.ToUpper(c.Format)
		if given["delimiter"] {
			syntax("cannot specify DELIMITER in %s mode", mode)
		}
		if given["null"] {
			syntax("cannot specify NULL in %s mode", mode)
		}
		if c.Header {
			bad("cannot specify HEADER in %s mode", mode)
		}
	}
	csv := c.Format == "csv"
	if c.Delimiter == "" && !given["delimiter"] {
		c.Delimiter = "\t"
		if csv {
			c.Delimiter = ","
		}
	}
	if !c.NullSet {
		c.Null = `\N`
		if csv {
			c.Null = ""
		}
	}
	if csv {
		if !given["quote"] {
			c.Quote = `"`
		}
		if !given["escape"] {
			c.Escape = c.Quote
		}
	}
	switch {
	case len(c.Delimiter) != 1:
		bad("COPY delimiter must be a single one-byte character")
	case strings.ContainsAny(c.Delimiter, "\r\n"):
		panic(pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return"))
	case strings.ContainsAny(c.Null, "\r\n"):
		panic(pgerr.New(pgerr.InvalidParameterValue, "COPY null representation cannot use newline or carriage return"))
	case !csv && strings.Contains("\\.abcdefghijklmnopqrstuvwxyz0123456789", c.Delimiter):
		panic(pgerr.Newf(pgerr.InvalidParameterValue, "COPY delimiter cannot be %q", c.Delimiter))
	case !csv && given["quote"]:
		bad("COPY quote available only in CSV mode")
	case csv && len(c.Quote) != 1:
		bad("COPY quote must be a single one-byte character")
	case csv && c.Delimiter == c.Quote:
		panic(pgerr.New(pgerr.InvalidParameterValue, "COPY delimiter and quote must be different"))
	case !csv && given["escape"]:
		bad("COPY escape available only in CSV mode")
	case csv && len(c.Escape) != 1:
		bad("COPY escape must be a single one-byte character")
	case !csv && (given["force_quote"]):
		bad("COPY force quote available only in CSV mode")
	case given["force_quote"] && c.From:
		bad("COPY force quote only available using COPY TO")
	case !csv && given["force_not_null"]:
		bad("COPY force not null available only in CSV mode")
	case given["force_not_null"] && !c.From:
		bad("COPY force not null only available using COPY FROM")
	case !csv && given["force_null"]:
		bad("COPY force null available only in CSV mode")
	case given["force_null"] && !c.From:
		bad("COPY force null only available using COPY FROM")
	case strings.Contains(c.Null, c.Delimiter):
		bad("COPY delimiter must not appear in the NULL specification")
	case csv && c.Quote != "" && strings.Contains(c.Null, c.Quote):
		bad("CSV quote character must not appear in the NULL specification")
	}
}

// Filter analyses COPY FROM … WHERE over the new rows: Relations[0] is the rows (Kind Rows, rel's columns); the query yields one boolean per row, in
// the rows' order: true keeps the row.
func (c *Copy) Filter(rel *Relation, r Resolver) (q *Query, err error) {
	az := newAnalyzer(c.stmt.src, r, nil)
	az.noParams = true
	defer az.rescue(&err)
	rows := *rel
	rows.Kind = Rows
	s := &scope{az: az, clause: "COPY FROM WHERE conditions"}
	item := s.relItem(az.addRel(&rows, rel.Name, -1), rel.Name, nil, -1)
	s.ns = item.ns
	n := &selNode{scope: s, from: []*fromItem{item}}
	keep := call(pgtype.Bool, "coalesce($1, false)", s.boolean(c.stmt.Node.GetCopyStmt().WhereClause, "WHERE"))
	n.targets = []*target{{name: "keep", e: keep}}
	q = az.finishPart(&part{rels: az.rels, binds: az.binds, node: n}, false)
	q.Columns = columnsOf(n.targets)
	return q, nil
}
