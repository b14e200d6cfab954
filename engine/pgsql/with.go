package pgsql

import (
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// withClause analyses the CTEs of WITH.
func (az *analyzer) withClause(n *selNode, w *pg_query.WithClause, s *scope) {
	if az.spool && w == az.top {
		az.spoolWith(w, s)
		return
	}
	n.recursive = w.Recursive
	seen := map[string]bool{}
	for _, c := range w.Ctes {
		cte := az.namedOnce(seen, c)
		sel := cte.Ctequery.GetSelectStmt()
		if sel == nil {
			if az.noParams {
				az.fail(pgerr.FeatureNotSupported, -1, "views must not contain data-modifying statements in WITH")
			}
			az.fail(pgerr.FeatureNotSupported, cte.Location, "WITH clause containing a data-modifying statement must be at the top level")
		}
		az.aliases++
		entry := &cteEntry{name: cte.Ctename, ident: "w" + strconv.Itoa(az.aliases)}
		we := &withEntry{cte: entry}
		switch cte.Ctematerialized {
		case pg_query.CTEMaterialize_CTEMaterializeAlways:
			we.mat = " MATERIALIZED"
		case pg_query.CTEMaterialize_CTEMaterializeNever:
			we.mat = " NOT MATERIALIZED"
		}
		names := stringList(cte.Aliascolnames)
		if w.Recursive && isRecursiveUnion(sel, cte.Ctename) {
			we.node = az.recursiveCTE(entry, sel, s, names)
			we.mat = ""
		} else {
			sub := &scope{az: az, parent: &scope{az: az, parent: s.parent, ctes: s.ctes, forward: s}}
			we.node = az.selectStmtIn(sel, sub, selectOptions{})
		}
		entry.cols, entry.rels = outputCols(we.node), we.node.originRels()
		for _, r := range entry.rels {
			r.ctes = append(r.ctes, entry)
		}
		az.nameCTE(entry, names, cte)
		s.ctes = append(append([]*cteEntry(nil), s.ctes...), entry)
		n.with = append(n.with, we)
	}
}

// namedOnce is the next CTE of a WITH clause.
func (az *analyzer) namedOnce(seen map[string]bool, c *pg_query.Node) *pg_query.CommonTableExpr {
	cte := c.GetCommonTableExpr()
	if seen[cte.Ctename] {
		az.fail(pgerr.DuplicateAlias, cte.Location, "WITH query name %q specified more than once", cte.Ctename)
	}
	seen[cte.Ctename] = true
	if cte.SearchClause != nil || cte.CycleClause != nil {
		az.unsupported(cte.Location, "SEARCH and CYCLE in WITH")
	}
	return cte
}

// pendingPart is a CTE that runs by itself, before the statement it belongs to.
type pendingPart struct {
	entry    *cteEntry
	rel      *Relation
	modifies bool
	finish   func() *Query
	rels     []*relEntry // what a reading part reads
}

// spoolWith makes each CTE of the top-level WITH a query of its own, whose rows the caller keeps: data-modifying CTEs run once,
// and what several of the statement's parts read is the same for all of them.
func (az *analyzer) spoolWith(w *pg_query.WithClause, s *scope) {
	seen := map[string]bool{}
	for _, c := range w.Ctes {
		cte := az.namedOnce(seen, c)
		entry := &cteEntry{name: cte.Ctename}
		p := &pendingPart{entry: entry, rel: &Relation{Kind: Spooled, Name: cte.Ctename}}
		names := stringList(cte.Aliascolnames)
		rels, binds := az.rels, az.binds
		az.rels, az.binds = nil, nil
		if sel := cte.Ctequery.GetSelectStmt(); sel != nil {
			az.selectPart(p, w, cte, sel, s.ctes, names)
		} else {
			az.modifyingPart(p, w, cte, s.ctes)
		}
		az.rels, az.binds = rels, binds
		if entry.cols != nil {
			az.nameCTE(entry, names, cte)
		}
		az.addPart(p)
		s.ctes = append(append([]*cteEntry(nil), s.ctes...), entry)
	}
}

// selectPart is a CTE that only reads.
func (az *analyzer) selectPart(p *pendingPart, w *pg_query.WithClause, cte *pg_query.CommonTableExpr, sel *pg_query.SelectStmt, ctes []*cteEntry, names []string) {
	s := &scope{az: az, ctes: ctes}
	node := &selNode{scope: s}
	if w.Recursive && isRecursiveUnion(sel, cte.Ctename) {
		// It refers to itself by its own name, so it stands under WITH in its own query.
		az.aliases++
		inner := &cteEntry{name: cte.Ctename, ident: "w" + strconv.Itoa(az.aliases)}
		rec := az.recursiveCTE(inner, sel, s, names)
		inner.cols = outputCols(rec)
		az.nameCTE(inner, names, cte)
		node.with, node.recursive = []*withEntry{{cte: inner, node: rec}}, true
		item := s.cteItem(inner, cte.Ctename, nil, &pg_query.RangeVar{Location: -1})
		node.from = []*fromItem{item}
		for _, c := range item.ns[0].cols {
			node.targets = append(node.targets, &target{name: c.name, e: s.reference(s, c, -1)})
		}
	} else {
		node = az.selectStmtIn(sel, &scope{az: az, parent: &scope{az: az, ctes: ctes, forward: s}}, selectOptions{})
	}
	p.entry.cols = spooledCols(node.outputs())
	p.rels = az.rels
	pt := &part{rels: az.rels, binds: az.binds, node: node}
	p.finish = func() *Query {
		q := az.finishPart(pt, false)
		q.Columns = columnsOf(node.outputs())
		return q
	}
}

// modifyingPart is INSERT, UPDATE or DELETE in WITH.
func (az *analyzer) modifyingPart(p *pendingPart, w *pg_query.WithClause, cte *pg_query.CommonTableExpr, ctes []*cteEntry) {
	if cte.Ctequery.GetMergeStmt() != nil {
		az.fail(pgerr.FeatureNotSupported, cte.Location, "MERGE not supported in WITH query")
	}
	if w.Recursive && mentionsIn(cte.Ctequery.ProtoReflect(), cte.Ctename) {
		az.fail("42P19", cte.Location, "recursive query %q must not contain data-modifying statements", cte.Ctename)
	}
	d := az.modify(cte.Ctequery, ctes, true)
	if d == nil {
		az.unsupported(cte.Location, "%s in WITH", statementName(cte.Ctequery))
	}
	p.modifies, p.finish = true, d.finish
	if d.ret != nil {
		p.entry.cols = spooledCols(d.ret)
	} else {
		p.entry.silent = true
	}
}

// spooledCols are a part's output columns as the statement sees them.
func spooledCols(targets []*target) []*nsCol {
	out := []*nsCol{}
	for _, t := range targets {
		e := &expr{kind: kColumn, typ: t.e.typ, mod: t.e.mod, prec: t.e.prec, scale: t.e.scale, loose: t.e.loose, fields: rowFields(t.e), names: t.e.names}
		out = append(out, &nsCol{name: t.name, e: e, table: t.table, attnum: t.attnum})
	}
	return out
}

// spooledItem is a FROM item over a part's rows.
func (s *scope) spooledItem(c *cteEntry, name string, colnames []string, v *pg_query.RangeVar) *fromItem {
	if c.silent {
		s.az.fail(pgerr.FeatureNotSupported, v.Location, "WITH query %q does not have a RETURNING clause", c.name)
	}
	r := s.az.addRel(c.part.rel, name, v.Location)
	it := &nsItem{name: name, relVisible: true, colsVisible: true}
	for i, col := range c.cols {
		e := *col.e
		e.loc, e.rel, e.col, e.name = -1, r, i, name+"."+col.name
		it.cols = append(it.cols, &nsCol{name: col.name, e: &e, table: col.table, attnum: col.attnum})
	}
	s.renameColumns(it, colnames, v.Location)
	return &fromItem{ns: []*nsItem{it}, write: r.writeFrom}
}

// attachParts gives the statement's query those of its WITH. A CTE that only reads and that nobody reads does not run.
func (az *analyzer) attachParts(q *Query) *Query {
	for _, p := range az.parts {
		if !p.modifies && p.entry.used == 0 {
			q.Parts = append(q.Parts, nil)
			continue
		}
		if p.entry.used == 0 {
			// PostgreSQL runs these when the statement is done, the last one first.
			q.Last = append([]int{len(q.Parts)}, q.Last...)
		}
		q.Parts = append(q.Parts, p.finish())
		q.Modifies = q.Modifies || p.modifies
		// A query that an index answers by itself runs no parts.
		q.Keyed, q.Lookup = nil, nil
	}
	return q
}

// needsSpool reports a statement whose WITH cannot be DuckDB's: it changes data, or parts of the statement that run apart read it.
func (az *analyzer) needsSpool(n *pg_query.Node) (top *pg_query.WithClause, spool bool) {
	switch st := n.GetNode().(type) {
	case *pg_query.Node_SelectStmt:
		top = st.SelectStmt.WithClause
	case *pg_query.Node_UpdateStmt:
		top = st.UpdateStmt.WithClause
	case *pg_query.Node_DeleteStmt:
		top = st.DeleteStmt.WithClause
	case *pg_query.Node_MergeStmt:
		top = st.MergeStmt.WithClause
	case *pg_query.Node_InsertStmt:
		ins := st.InsertStmt
		top = ins.WithClause
		for _, c := range top.GetCtes() {
			name := c.GetCommonTableExpr().GetCtename()
			for _, r := range ins.ReturningList {
				spool = spool || mentionsIn(r.ProtoReflect(), name)
			}
			spool = spool || ins.OnConflictClause != nil && mentionsIn(ins.OnConflictClause.ProtoReflect(), name)
		}
	}
	for _, c := range top.GetCtes() {
		spool = spool || c.GetCommonTableExpr().GetCtequery().GetSelectStmt() == nil
	}
	if top != nil && !spool {
		eachNode(n.ProtoReflect(), func(m any) {
			if f, ok := m.(*pg_query.FuncCall); ok {
				spool = spool || az.drivable(f)
			}
		})
	}
	return top, spool
}

func (az *analyzer) nameCTE(entry *cteEntry, names []string, cte *pg_query.CommonTableExpr) {
	if len(names) > len(entry.cols) {
		az.fail(pgerr.InvalidColumnReference, cte.Location, "WITH query %q has %d columns available but %d columns specified", entry.name, len(entry.cols), len(names))
	}
	for i, name := range names {
		c := *entry.cols[i]
		c.name = name
		entry.cols[i] = &c
	}
}

// isRecursiveUnion reports a UNION whose right leg names the CTE.
func isRecursiveUnion(sel *pg_query.SelectStmt, name string) bool {
	return sel.Op == pg_query.SetOperation_SETOP_UNION && mentions(sel.Rarg, name)
}

// recursiveCTE takes its columns from the non-recursive leg.
func (az *analyzer) recursiveCTE(entry *cteEntry, sel *pg_query.SelectStmt, s *scope, names []string) *selNode {
	n := &selNode{op: "UNION", all: sel.All, working: true}
	mk := func() *scope {
		return &scope{az: az, parent: &scope{az: az, parent: s.parent, ctes: s.ctes, forward: s}}
	}
	n.scope = mk()
	if sel.WithClause != nil {
		az.withClause(n, sel.WithClause, n.scope)
	}
	leg := func() *scope {
		return &scope{az: az, parent: &scope{az: az, parent: s.parent, ctes: n.scope.ctesOr(s), forward: s}}
	}
	n.left = az.selectBody(sel.Larg, leg())
	n.left.settleUnknowns()
	entry.cols = outputCols(n.left)
	for i, name := range names {
		if i < len(entry.cols) {
			entry.cols[i].name = name
		}
	}
	for _, c := range entry.cols {
		// The working table's numerics are as wide as DuckDB makes the union.
		c.e.origin, c.e.node = nil, nil
	}
	rs := leg()
	rs.parent.ctes = append(append([]*cteEntry(nil), rs.parent.ctes...), entry)
	n.right = az.selectBody(sel.Rarg, rs)
	if len(n.left.targets) != len(n.right.targets) {
		az.fail(pgerr.SyntaxError, firstTargetLoc(n.right), "each UNION query must have the same number of columns")
	}
	for i, lt := range n.left.targets {
		r := n.right.targets[i].e
		common := n.scope.commonType([]*expr{lt.e, r}, "UNION")
		if lt.e.typ != common {
			e := az.errorAt(pgerr.DatatypeMismatch, lt.e.loc, "recursive query %q column %d has type %s in non-recursive term but type %s overall",
				entry.name, i+1, typeName(lt.e.typ), typeName(common))
			e.Hint = "Cast the output of the non-recursive term to the correct type."
			panic(e)
		}
		lt := lt
		n.right.coerceTarget(i, func(e *expr) *expr { return castShape(n.scope.coerceCommon(e, common, "UNION"), lt.e) })
		col := *entry.cols[i].e
		col.kind, col.ident = kColumn, "c"+strconv.Itoa(i+1)
		n.targets = append(n.targets, &target{e: &col, name: lt.name})
	}
	if len(sel.SortClause) > 0 || sel.LimitCount != nil || sel.LimitOffset != nil {
		az.unsupported(-1, "ORDER BY or LIMIT in a recursive query")
	}
	return n
}

func (s *scope) ctesOr(outer *scope) []*cteEntry {
	if s.ctes != nil {
		return s.ctes
	}
	return outer.ctes
}

// castShape gives a numeric the DECIMAL of another.
func castShape(e, like *expr) *expr {
	if e.typ != pgtype.Numeric || e.prec == like.prec && e.scale == like.scale {
		return e
	}
	return decimalCast(e, like.prec, like.scale)
}

// mentions reports whether a select names a relation anywhere in it.
func mentions(sel *pg_query.SelectStmt, name string) bool {
	return mentionsIn(sel.ProtoReflect(), name)
}

func mentionsIn(m protoreflect.Message, name string) bool {
	found := false
	eachNode(m, func(m any) {
		if rv, ok := m.(*pg_query.RangeVar); ok && rv.Schemaname == "" && rv.Relname == name {
			found = true
		}
	})
	return found
}
