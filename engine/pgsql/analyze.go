package pgsql

import (
	"fmt"
	"runtime"
	"sort"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// analyzer is the state of one Analyze call.
type analyzer struct {
	src      *source
	r        Resolver
	params   []paramState
	rels     []*relEntry
	binds    []Bind
	aliases  int
	depth    int
	views    int
	volatile bool
	lock     string
	notices  []string
	// top is the statement's own WITH; spool says that its CTEs run apart, as parts.
	top   *pg_query.WithClause
	spool bool
	parts []*pendingPart
	// noParams refuses parameters (view bodies, defaults), noSubquery names the place that refuses subqueries.
	noParams   bool
	noSubquery string
	// declaring is "default " while a declaration is checked, for PostgreSQL's message about its type.
	declaring string
	// unstable is set when something that is not immutable was met.
	unstable bool
	// names are the unqualified relation names that were resolved, for NormalizeView.
	names []resolvedName
	// viewRels are the views that the statement names itself; stars are its expanded stars, for NormalizeView.
	viewRels []*Relation
	stars    []expandedStar
}

type paramState struct {
	oid uint32
}

type resolvedName struct {
	begin        int32
	schema, name string
}

// dateOrder is the order in which date input is read.
func (az *analyzer) dateOrder() pgenc.DateOrder {
	if o, ok := az.r.(DateOrderer); ok {
		return o.DateOrder()
	}
	return pgenc.MDY
}

// relEntry is a source while it is analysed.
type relEntry struct {
	use   *RelUse
	index int
	alias string // t1
	used  map[int]bool
	preds []pendingPred
	// joins are what its key is compared with, conds the conditions on its rows that it decides alone.
	joins []pendingJoin
	conds []*expr
	// nullable says that an outer join so far shows it as NULLs where it has no row.
	nullable bool
	ctes     []*cteEntry  // the WITH queries whose rows are its rows
	depth    int          // how many views it is inside of
	lock     *pendingLock // the locking clause that the source is under
}

// markUsed is called when a column is bound and when it is written.
func (r *relEntry) markUsed(col int) { r.used[col] = true }

func (r *relEntry) column(col int) *RelColumn { return &r.use.Relation.Columns[col] }

// Analyze binds and rewrites a SELECT, VALUES, TABLE, INSERT, UPDATE, DELETE or MERGE. paramOIDs are the client's parameter types (0 = infer), possibly shorter than needed.
func Analyze(stmt *Stmt, r Resolver, paramOIDs []uint32) (q *Query, err error) {
	az := newAnalyzer(stmt.src, r, paramOIDs)
	defer az.rescue(&err)
	az.top, az.spool = az.needsSpool(stmt.Node)
	switch stmt.Kind {
	case Refused:
		return nil, refusedError(stmt)
	case Select:
		return az.attachParts(az.query(stmt.Node.GetSelectStmt())), nil
	case InsertStmt, UpdateStmt, DeleteStmt:
		return az.attachParts(az.modify(stmt.Node, nil, false).finish()), nil
	case MergeStmt:
		return az.attachParts(az.merge(stmt.Node.GetMergeStmt())), nil
	}
	return nil, pgerr.Newf(pgerr.FeatureNotSupported, "%s cannot be used as a query", stmt.Tag)
}

func newAnalyzer(src *source, r Resolver, paramOIDs []uint32) *analyzer {
	az := &analyzer{src: src, r: r}
	for _, oid := range paramOIDs {
		az.params = append(az.params, paramState{oid: oid})
	}
	return az
}

// rescue turns the panics of fail into the error; a runtime error becomes XX000 instead of killing the process (S3).
func (az *analyzer) rescue(err *error) {
	switch v := recover().(type) {
	case nil:
	case *pgerr.Error:
		*err = v
	default:
		stack := make([]byte, 4096)
		stack = stack[:runtime.Stack(stack, false)]
		*err = pgerr.New(pgerr.InternalError, "the statement cannot be analysed").WithCause(fmt.Errorf("%v\n%s", v, stack))
	}
}

// fail stops the analysis with an error at a place in the query.
func (az *analyzer) fail(code pgerr.Code, loc int32, format string, args ...any) {
	panic(az.errorAt(code, loc, format, args...))
}

func (az *analyzer) errorAt(code pgerr.Code, loc int32, format string, args ...any) *pgerr.Error {
	return pgerr.Newf(code, format, args...).WithPosition(az.src.position(loc))
}

func (az *analyzer) unsupported(loc int32, format string, args ...any) {
	az.fail(pgerr.FeatureNotSupported, loc, format+" is not supported", args...)
}

// check passes an error of the Resolver on, with a position when it has none.
func (az *analyzer) check(err error, loc int32) {
	if err == nil {
		return
	}
	if e := pgerr.As(err); e != nil {
		if e.Position == 0 {
			e = e.WithPosition(az.src.position(loc))
		}
		panic(e)
	}
	panic(pgerr.New(pgerr.InternalError, "cannot resolve a name").WithCause(err))
}

func (az *analyzer) alias() string {
	az.aliases++
	return "t" + strconv.Itoa(az.aliases)
}

// addRel registers a source.
func (az *analyzer) addRel(rel *Relation, alias string, loc int32) *relEntry {
	e := &relEntry{
		use:   &RelUse{Relation: rel, Alias: alias, Loc: az.src.position(loc)},
		index: len(az.rels), alias: az.alias(), used: map[int]bool{}, depth: az.views,
	}
	az.rels = append(az.rels, e)
	return e
}

func (r *relEntry) writeFrom(b *strings.Builder) { b.WriteString(r.from()) }

// from is the source's place in FROM.
func (r *relEntry) from() string { return markRel + strconv.Itoa(r.index) + "\x00" + r.alias }

// query analyses a top-level SELECT.
func (az *analyzer) query(s *pg_query.SelectStmt) *Query {
	n := az.selectStmt(s, nil, selectOptions{top: true})
	q := &Query{}
	var b strings.Builder
	n.show = true
	n.write(&b)
	for _, t := range n.outputs() {
		q.Columns = append(q.Columns, outCol(t))
	}
	az.finish(q, b.String())
	if q.Locks == nil {
		q.Keyed = az.keyedSelect(n)
	}
	q.Lookup = az.lookupCall(n)
	return q
}

// finish settles parameters, binds and sources.
func (az *analyzer) finish(q *Query, text string) {
	for i, p := range az.params {
		if p.oid == 0 || p.oid == pgtype.Unknown {
			panic(pgerr.Newf(pgerr.IndeterminateDatatype, "could not determine data type of parameter $%d", i+1))
		}
		q.Params = append(q.Params, Param{OID: p.oid})
	}
	for _, r := range az.rels {
		az.settleJoins(q, r)
	}
	for _, r := range az.rels {
		r.use.Columns = r.use.Columns[:0]
		for c := range r.used {
			r.use.Columns = append(r.use.Columns, c)
		}
		sort.Ints(r.use.Columns)
		q.Relations = append(q.Relations, r.use)
	}
	for _, r := range az.rels {
		for _, a := range r.use.Args {
			az.settleArg(a)
		}
		az.settlePreds(r)
	}
	for _, b := range az.binds {
		if b.Call != nil {
			for _, a := range b.Call.Args {
				az.settleArg(a)
			}
		}
	}
	q.text, q.Binds = az.bindText(text)
	q.Volatile = az.volatile
	q.LockRows = az.lock
	q.Locks = az.lockBlocks(q)
	q.Notices = az.notices
}

// bindText replaces the marks of parameters and binds by DuckDB's $1, $2 … in the order of their first use.
func (az *analyzer) bindText(text string) (string, []Bind) {
	var out strings.Builder
	var binds []Bind
	seen := map[string]int{}
	for {
		i := strings.IndexByte(text, 0)
		if i < 0 {
			out.WriteString(text)
			return out.String(), binds
		}
		end := i + 2 + strings.IndexByte(text[i+2:], 0)
		mark := text[i:end]
		out.WriteString(text[:i])
		text = text[end+1:]
		if mark[1] == 'R' {
			out.WriteString(mark + "\x00")
			continue
		}
		n, ok := seen[mark]
		if !ok {
			num, _ := strconv.Atoi(mark[2:])
			if mark[1] == 'P' {
				oid := uint32(0)
				if num-1 < len(az.params) {
					oid = az.params[num-1].oid
				}
				binds = append(binds, Bind{Param: num, Type: oid})
			} else {
				binds = append(binds, az.binds[num])
			}
			n = len(binds)
			seen[mark] = n
		}
		out.WriteString("$" + strconv.Itoa(n))
	}
}

// Render writes the DuckDB text. rel gives the FROM item of source i, without alias: a table function call or a parenthesised query.
func (q *Query) Render(rel func(i int, use *RelUse) string) string {
	return renderText(q.text, q.Relations, rel)
}

func renderText(text string, rels []*RelUse, rel func(i int, use *RelUse) string) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, 0)
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := i + 2 + strings.IndexByte(text[i+2:], 0)
		out.WriteString(text[:i])
		n, _ := strconv.Atoi(text[i+2 : end])
		text = text[end+1:]
		// The alias follows the mark: "t3".
		alias := text
		if sp := strings.IndexAny(text, " ),"); sp >= 0 {
			alias = text[:sp]
		}
		text = text[len(alias):]
		use := rels[n]
		out.WriteString(rel(n, use) + " AS " + alias)
		var cols []string
		for _, c := range use.Columns {
			cols = append(cols, "c"+strconv.Itoa(c+1))
		}
		if use.Position {
			cols = append(cols, "f", "p")
		}
		if len(cols) > 0 {
			out.WriteString("(" + strings.Join(cols, ", ") + ")")
		}
	}
}
