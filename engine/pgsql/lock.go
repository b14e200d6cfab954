package pgsql

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// LockStrength is how SELECT locks rows, weakest first.
type LockStrength int

// Strengths.
const (
	ForKeyShare LockStrength = iota + 1
	ForShare
	ForNoKeyUpdate
	ForUpdate
)

// LockWait says what happens at a row that another session has locked.
type LockWait int

// Ways to wait. Of two clauses on one source the larger is used.
const (
	WaitBlock LockWait = iota
	WaitSkip           // SKIP LOCKED
	WaitError          // NOWAIT
)

// LockBlock is one SELECT … FOR UPDATE / SHARE.
type LockBlock struct {
	// Query yields for each row of the block two columns a locked source: file (an ordinal) and position. They are NULL where
	// the source has no row.
	Query *Query
	// Limit and Offset bound how many rows are to be locked, counted in the order of Query; nil is no bound.
	Limit, Offset *Arg
	Rels          []RelLock
}

// RelLock is a locked source.
type RelLock struct {
	// Rel is its number in the statement, Inner its number in LockBlock.Query.
	Rel, Inner int
	Strength   LockStrength
	Wait       LockWait
}

// lockItem is what a locking clause can name in FROM: one of rel, sub, cte and function.
type lockItem struct {
	name     string
	rel      *relEntry
	sub      *selNode // a subquery or view, with its alias in the text
	alias    string
	cte      *cteEntry
	function bool
	nullable bool // on the null-extended side of an outer join
}

// pendingLock is a level with locking clauses, until the statement is written.
type pendingLock struct {
	node *selNode
	rels []*lockedRel
}

// lockedRel is a locked source, and the subqueries it stands in below the level of the clause, outermost first.
type lockedRel struct {
	rel      *relEntry
	through  []*lockItem
	strength LockStrength
	wait     LockWait
}

// joinLocks passes on what both sides of a join have to lock.
func joinLocks(kind pg_query.JoinType, left, right *fromItem) []*lockItem {
	mark := func(items []*lockItem, nullable bool) []*lockItem {
		out := make([]*lockItem, len(items))
		for i, it := range items {
			c := *it
			c.nullable = c.nullable || nullable
			out[i] = &c
		}
		return out
	}
	full := kind == pg_query.JoinType_JOIN_FULL
	return append(mark(left.locks, full || kind == pg_query.JoinType_JOIN_RIGHT), mark(right.locks, full || kind == pg_query.JoinType_JOIN_LEFT)...)
}

// lockClauses is transformLockingClause: which sources the clauses of a SELECT lock, and how.
func (az *analyzer) lockClauses(n *selNode, sel *pg_query.SelectStmt) {
	if len(sel.LockingClause) == 0 {
		return
	}
	var items []*lockItem
	for _, f := range n.from {
		items = append(items, f.locks...)
	}
	p := &pendingLock{node: n}
	for _, l := range sel.LockingClause {
		lc := l.GetLockingClause()
		c := lockClause{az: az, p: p, name: lockName(lc), strength: lockStrength(lc), wait: lockWait(lc)}
		c.checkLevel(n)
		if len(lc.LockedRels) == 0 {
			for _, it := range items {
				c.apply(it, nil, false)
			}
		}
		for _, of := range lc.LockedRels {
			c.named(of.GetRangeVar(), items)
		}
		if n.ties && c.wait == WaitSkip {
			az.fail(pgerr.SyntaxError, -1, "SKIP LOCKED and WITH TIES options cannot be used together")
		}
		if az.lock == "" || c.strength > strengthOf(az.lock) {
			az.lock = c.name
		}
	}
	for _, r := range p.rels {
		r.rel.lock = p
	}
}

// lockClause is one locking clause being applied.
type lockClause struct {
	az       *analyzer
	p        *pendingLock
	name     string
	strength LockStrength
	wait     LockWait
}

// checkLevel is CheckSelectLocking.
func (c *lockClause) checkLevel(n *selNode) {
	obstacle := ""
	switch s := n.scope; {
	case n.op != "":
		obstacle = "UNION/INTERSECT/EXCEPT"
	case n.distinct || len(n.distinctOn) > 0:
		obstacle = "DISTINCT clause"
	case len(n.groups) > 0 || n.groupText:
		obstacle = "GROUP BY clause"
	case n.having != nil:
		obstacle = "HAVING clause"
	case s.aggs > 0:
		obstacle = "aggregate functions"
	case s.wins > 0:
		obstacle = "window functions"
	case s.srfs > 0:
		obstacle = "set-returning functions in the target list"
	case n.values != nil:
		c.az.fail(pgerr.FeatureNotSupported, -1, "%s cannot be applied to VALUES", c.name)
	default:
		return
	}
	c.az.fail(pgerr.FeatureNotSupported, -1, "%s is not allowed with %s", c.name, obstacle)
}

// named applies the clause to a relation of OF.
func (c *lockClause) named(v *pg_query.RangeVar, items []*lockItem) {
	if v.GetSchemaname() != "" || v.GetCatalogname() != "" {
		c.az.fail(pgerr.SyntaxError, v.GetLocation(), "%s must specify unqualified relation names", c.name)
	}
	for _, it := range items {
		if it.name != v.GetRelname() {
			continue
		}
		switch {
		case it.cte != nil:
			c.az.fail(pgerr.FeatureNotSupported, v.GetLocation(), "%s cannot be applied to a WITH query", c.name)
		case it.function, it.rel != nil && it.rel.use.Func != nil:
			c.az.fail(pgerr.FeatureNotSupported, v.GetLocation(), "%s cannot be applied to a function", c.name)
		}
		c.apply(it, nil, false)
		return
	}
	for _, it := range c.p.node.scope.ns {
		if it.relVisible && it.name == v.GetRelname() {
			c.az.fail(pgerr.FeatureNotSupported, v.GetLocation(), "%s cannot be applied to a join", c.name)
		}
	}
	c.az.fail(pgerr.UndefinedTable, v.GetLocation(), "relation %q in %s clause not found in FROM clause", v.GetRelname(), c.name)
}

// apply locks a source, or the sources of a subquery.
func (c *lockClause) apply(it *lockItem, through []*lockItem, nullable bool) {
	nullable = nullable || it.nullable
	switch {
	case it.sub != nil && it.sub.values != nil:
	case it.sub != nil:
		c.checkLevel(it.sub)
		through = append(slices.Clone(through), it)
		for _, f := range it.sub.from {
			for _, inner := range f.locks {
				c.apply(inner, through, nullable)
			}
		}
	case it.rel != nil && it.rel.use.Relation.Kind == Table && it.rel.use.Func == nil:
		if nullable {
			c.az.fail(pgerr.FeatureNotSupported, -1, "%s cannot be applied to the nullable side of an outer join", c.name)
		}
		for _, r := range c.p.rels {
			if r.rel == it.rel {
				r.strength, r.wait = max(r.strength, c.strength), max(r.wait, c.wait)
				return
			}
		}
		c.p.rels = append(c.p.rels, &lockedRel{rel: it.rel, through: through, strength: c.strength, wait: c.wait})
	}
}

// lockBlocks writes the locking levels of a finished query.
func (az *analyzer) lockBlocks(q *Query) []*LockBlock {
	var out []*LockBlock
	var seen []*pendingLock
	for _, r := range az.rels {
		if r.lock != nil && !slices.Contains(seen, r.lock) {
			seen = append(seen, r.lock)
			out = append(out, az.lockBlock(q, r.lock))
		}
	}
	return out
}

func (az *analyzer) lockBlock(q *Query, p *pendingLock) *LockBlock {
	if len(p.node.scope.outer) > 0 {
		az.unsupported(-1, "a locking clause in a correlated subquery")
	}
	b := &LockBlock{}
	n := *p.node
	n.show, n.limit, n.offset = false, nil, nil
	if p.node.limit != nil && !p.node.ties {
		b.Limit = az.arg(p.node.limit)
		az.settleArg(b.Limit)
		if p.node.offset != nil {
			b.Offset = az.arg(p.node.offset)
			az.settleArg(b.Offset)
		}
	}
	n.order = nil
	if p.node.limit != nil {
		for _, k := range p.node.order {
			c := *k
			if c.target >= 0 {
				c.e, c.target = p.node.targets[c.target].e, -1
			}
			n.order = append(n.order, &c)
		}
		if n.ties = p.node.ties; n.ties {
			n.limit, n.offset = p.node.limit, p.node.offset
		}
	}
	n.targets = nil
	restore := map[*selNode][]*target{}
	for _, r := range p.rels {
		n.targets = append(n.targets, r.filePos(restore)...)
		b.Rels = append(b.Rels, RelLock{Rel: r.rel.index, Strength: r.strength, Wait: r.wait})
	}
	var text strings.Builder
	n.write(&text)
	for sub, targets := range restore {
		sub.targets = targets
	}
	b.Query = az.lockQuery(q, text.String(), b.Rels)
	return b
}

// filePos are the columns of a source's file and position at the level of the clause: subqueries on the way hand them up as further
// columns, until restore's targets are put back.
func (r *lockedRel) filePos(restore map[*selNode][]*target) []*target {
	ts := filePos(r.rel)
	for i := len(r.through) - 1; i >= 0; i-- {
		it := r.through[i]
		if _, ok := restore[it.sub]; !ok {
			restore[it.sub] = it.sub.targets
			it.sub.targets = slices.Clone(it.sub.targets)
		}
		at := len(it.sub.targets)
		it.sub.targets = append(it.sub.targets, ts...)
		ts = []*target{
			{name: "file", e: &expr{kind: kColumn, typ: pgtype.Text, mod: -1, ident: it.alias + ".c" + strconv.Itoa(at+1)}},
			{name: "pos", e: &expr{kind: kColumn, typ: pgtype.Int8, mod: -1, ident: it.alias + ".c" + strconv.Itoa(at+2)}},
		}
	}
	return ts
}

var (
	relMark = regexp.MustCompile("\x00R(\\d+)\x00")
	cteMark = regexp.MustCompile(`\b(w\d+) AS t\d+`)
)

// lockQuery makes a Query of a locking level's text, with the sources that it mentions.
func (az *analyzer) lockQuery(q *Query, text string, rels []RelLock) *Query {
	for _, m := range cteMark.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(text, m[1]+"(") {
			az.unsupported(-1, "a locking clause on a query that reads a WITH query of an outer level")
		}
	}
	out := &Query{Params: q.Params}
	number := map[int]int{}
	text = relMark.ReplaceAllStringFunc(text, func(m string) string {
		i, _ := strconv.Atoi(m[2 : len(m)-1])
		at, ok := number[i]
		if !ok {
			at = len(out.Relations)
			number[i] = at
			use := *q.Relations[i]
			use.Position = false
			out.Relations = append(out.Relations, &use)
		}
		return markRel + strconv.Itoa(at) + "\x00"
	})
	for i := range rels {
		rels[i].Inner = number[rels[i].Rel]
		out.Relations[rels[i].Inner].Position = true
	}
	out.text, out.Binds = az.bindText(text)
	return out
}

func lockStrength(lc *pg_query.LockingClause) LockStrength { return strengthOf(lockName(lc)) }

var lockNames = []string{"", "FOR KEY SHARE", "FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE"}

func strengthOf(name string) LockStrength { return LockStrength(slices.Index(lockNames, name)) }

func lockName(lc *pg_query.LockingClause) string {
	switch lc.GetStrength() {
	case pg_query.LockClauseStrength_LCS_FORKEYSHARE:
		return lockNames[ForKeyShare]
	case pg_query.LockClauseStrength_LCS_FORSHARE:
		return lockNames[ForShare]
	case pg_query.LockClauseStrength_LCS_FORNOKEYUPDATE:
		return lockNames[ForNoKeyUpdate]
	}
	return lockNames[ForUpdate]
}

func lockWait(lc *pg_query.LockingClause) LockWait {
	switch lc.GetWaitPolicy() {
	case pg_query.LockWaitPolicy_LockWaitSkip:
		return WaitSkip
	case pg_query.LockWaitPolicy_LockWaitError:
		return WaitError
	}
	return WaitBlock
}
