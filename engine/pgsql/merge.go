package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// mergeWhen is a WHEN clause while it is analysed.
type mergeWhen struct {
	matched bool
	cond    *expr
	values  map[int]*expr // by index into the target's columns; nil for DELETE and DO NOTHING
}

// merge is transformMergeStmt. The source is joined to the target; around the join stands a query that finds each row's clause, and
// around that one the values of the clause's action.
func (az *analyzer) merge(st *pg_query.MergeStmt) *Query {
	if st.WithClause.GetRecursive() {
		az.fail(pgerr.SyntaxError, -1, "WITH RECURSIVE is not supported for MERGE statement")
	}
	az.checkWhens(st)
	rel := az.mergeTarget(st.Relation)
	s, n, e := az.dmlScope(st.Relation, rel, st.WithClause, nil, nil)
	item := n.from[0]
	tgt := s.ns
	s.ns = nil
	source := s.fromNode(st.SourceRelation)
	for _, x := range source.ns {
		if x.relVisible && x.name == tgt[0].name {
			er := pgerr.Newf(pgerr.DuplicateAlias, "name %q specified more than once", x.name)
			er.Detail = "The name is used both as MERGE target table and data source."
			panic(er)
		}
	}
	s.ns = append(tgt, source.ns...)
	s.clause = "JOIN conditions"
	cond := s.boolean(st.JoinCondition, "JOIN/ON")
	s.clause = ""
	join := " JOIN "
	for _, w := range st.MergeWhenClauses {
		if c := w.GetMergeWhenClause(); c.MatchKind != pg_query.MergeMatchKind_MERGE_WHEN_MATCHED && c.CommandType == pg_query.CmdType_CMD_INSERT {
			join = " LEFT JOIN "
		}
	}
	rels := item.rels
	if join == " JOIN " {
		rels = append(rels[:1:1], source.rels...)
	}
	az.pushPredicates(cond, rels, s)
	n.from = []*fromItem{{write: func(b *strings.Builder) {
		b.WriteString("(")
		source.write(b)
		b.WriteString(join)
		item.write(b)
		b.WriteString(" ON ")
		cond.write(b)
		b.WriteString(")")
	}}}
	return az.mergeActions(st, rel, s, n, e)
}

// checkWhens refuses clauses that PostgreSQL 15 does not know or cannot reach.
func (az *analyzer) checkWhens(st *pg_query.MergeStmt) {
	if len(st.ReturningList) > 0 {
		az.unsupported(nodeLocation(st.ReturningList[0]), "MERGE … RETURNING")
	}
	closed := map[bool]bool{}
	for _, w := range st.MergeWhenClauses {
		c := w.GetMergeWhenClause()
		if c.MatchKind == pg_query.MergeMatchKind_MERGE_WHEN_NOT_MATCHED_BY_SOURCE {
			az.unsupported(-1, "WHEN NOT MATCHED BY SOURCE")
		}
		matched := c.MatchKind == pg_query.MergeMatchKind_MERGE_WHEN_MATCHED
		if closed[matched] {
			az.fail(pgerr.SyntaxError, -1, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		closed[matched] = c.Condition == nil
	}
}

func (az *analyzer) mergeTarget(v *pg_query.RangeVar) *Relation {
	rel, err := az.r.ResolveRelation(v.Schemaname, v.Relname)
	az.check(err, v.Location)
	if rel != nil && rel.Kind == View {
		e := pgerr.Newf(pgerr.FeatureNotSupported, "cannot execute MERGE on relation %q", rel.Name)
		e.Detail = "This operation is not supported for views."
		panic(e)
	}
	return az.dmlTarget(v, "merge into")
}

// mergeActions analyses the WHEN clauses over the joined rows.
func (az *analyzer) mergeActions(st *pg_query.MergeStmt, rel *Relation, s *scope, n *selNode, e *relEntry) *Query {
	alias := az.alias()
	n.targets = filePos(e)
	rs := &scope{az: az, ctes: s.ctes}
	for _, it := range s.ns {
		rs.ns = append(rs.ns, n.passOn(s, it, alias))
	}
	both, sources := rs.ns, rs.ns[1:]
	m := &Merge{Target: rel, Rel: e.index, Columns: stored(rel)}
	var whens []*mergeWhen
	for _, node := range st.MergeWhenClauses {
		c := node.GetMergeWhenClause()
		w := &mergeWhen{matched: c.MatchKind == pg_query.MergeMatchKind_MERGE_WHEN_MATCHED}
		rs.ns, rs.hidden = both, nil
		if !w.matched {
			rs.ns, rs.hidden = sources, both[:1]
		}
		if c.Condition != nil {
			rs.clause = "MERGE WHEN conditions"
			w.cond = rs.boolean(c.Condition, "WHEN")
			rs.clause = ""
		}
		m.Actions = append(m.Actions, az.mergeAction(c, rel, rs, both[0], w, m))
		whens = append(whens, w)
	}
	out := az.mergeQuery(rel, rs, n, m, whens, alias)
	q := az.finishPart(&part{rels: az.rels, binds: az.binds, node: out}, false)
	q.Merge = m
	return q
}

// passOn adds an item's columns to a select and gives them as the level around it sees them.
func (n *selNode) passOn(s *scope, it *nsItem, alias string) *nsItem {
	cp := &nsItem{name: it.name, schema: it.schema, relVisible: it.relVisible, colsVisible: it.colsVisible, rel: it.rel, scalarFunc: it.scalarFunc}
	for _, c := range it.cols {
		if c.hidden && it.rel != nil && it.rel.use.Relation.Kind == Table {
			continue // a table's system columns cannot be read
		}
		e := s.reference(s, c, -1)
		n.targets = append(n.targets, &target{name: c.name, e: e})
		out := &expr{kind: kColumn, typ: e.typ, mod: e.mod, prec: e.prec, scale: e.scale, loose: e.loose, fields: rowFields(e), names: e.names,
			ident: alias + ".c" + strconv.Itoa(len(n.targets)), name: e.name, loc: -1}
		cp.cols = append(cp.cols, &nsCol{name: c.name, hidden: c.hidden, e: out, table: c.table, attnum: c.attnum})
	}
	return cp
}

// mergeAction analyses what one clause does.
func (az *analyzer) mergeAction(c *pg_query.MergeWhenClause, rel *Relation, rs *scope, old *nsItem, w *mergeWhen, m *Merge) MergeAction {
	switch c.CommandType {
	case pg_query.CmdType_CMD_UPDATE:
		set := az.setClause(rs, rel, c.TargetList)
		act := MergeAction{Kind: MergeUpdate}
		w.values = map[int]*expr{}
		for _, i := range m.Columns {
			if set[i] != nil {
				act.Set = append(act.Set, i)
				w.values[i] = set[i]
			} else {
				w.values[i] = az.oldValue(rs, old, i, rel)
			}
		}
		return act
	case pg_query.CmdType_CMD_DELETE:
		return MergeAction{Kind: MergeDelete}
	case pg_query.CmdType_CMD_INSERT:
		az.mergeInsert(c, rel, rs, w, m)
		return MergeAction{Kind: MergeInsert}
	}
	return MergeAction{Kind: MergeNothing}
}

func (az *analyzer) mergeInsert(c *pg_query.MergeWhenClause, rel *Relation, rs *scope, w *mergeWhen, m *Merge) {
	ins := &Insert{Target: rel, Columns: m.Columns, override: c.Override}
	ins.Given, ins.locs = az.insertColumns(rel, c.TargetList)
	ins.names = c.TargetList
	given := map[int]*expr{}
	if len(c.Values) > 0 {
		rs.clause = "VALUES"
		var exprs []*expr
		for _, v := range c.Values {
			if d := v.GetSetToDefault(); d != nil {
				exprs = append(exprs, &expr{kind: kDefault, loc: d.Location})
				continue
			}
			exprs = append(exprs, rs.expr(v))
		}
		rs.clause = ""
		az.checkWidth(ins, st2cols(ins.locs), exprs)
		for i, e := range exprs {
			if col := ins.Given[i]; e.kind != kDefault {
				if az.takesDefault(ins, col) {
					continue
				}
				given[col] = rs.assignGiven(ins, i, given[col], e)
			}
		}
	}
	w.values = map[int]*expr{}
	for i, e := range az.defaultRow(rs, ins, given) {
		w.values[m.Columns[i]] = e
	}
}

// mergeQuery writes the two levels around the join.
func (az *analyzer) mergeQuery(rel *Relation, rs *scope, n *selNode, m *Merge, whens []*mergeWhen, alias string) *selNode {
	out := &selNode{scope: rs, with: n.with, recursive: n.recursive}
	n.with = nil
	out.from = []*fromItem{{write: func(b *strings.Builder) {
		b.WriteString("(SELECT " + alias + ".*, CASE")
		for k, w := range whens {
			b.WriteString(" WHEN " + alias + ".c1 IS ")
			if w.matched {
				b.WriteString("NOT ")
			}
			b.WriteString("NULL")
			if w.cond != nil {
				b.WriteString(" AND (")
				w.cond.write(b)
				b.WriteString(")")
			}
			b.WriteString(" THEN " + strconv.Itoa(k))
		}
		b.WriteString(" END AS a FROM (")
		n.write(b)
		b.WriteString(") AS " + alias + ") AS " + alias)
	}}}
	column := func(name string, typ uint32) *expr {
		return &expr{kind: kColumn, typ: typ, mod: -1, loc: -1, ident: alias + "." + name}
	}
	action := column("a", pgtype.Int4)
	acts := "false"
	for k, a := range m.Actions {
		if a.Kind != MergeNothing {
			acts += " OR $1 = " + strconv.Itoa(k)
		}
	}
	out.where = call(pgtype.Bool, "("+acts+")", action)
	out.targets = []*target{{name: "file", e: column("c1", pgtype.Int8)}, {name: "pos", e: column("c2", pgtype.Int8)}, {name: "action", e: action}}
	for _, col := range m.Columns {
		c := rel.Columns[col]
		null := nullConst(c.Type, -1)
		null.mod = c.Mod
		shapeNumeric(null, c.Mod)
		v := rs.assign(null, rel, col)
		for k := len(whens) - 1; k >= 0; k-- {
			if x := whens[k].values[col]; x != nil {
				v = call(c.Type, "CASE WHEN $1 = "+strconv.Itoa(k)+" THEN $2 ELSE $3 END", action, x, v)
				v.prec, v.scale, v.mod = x.prec, x.scale, c.Mod
			}
		}
		out.targets = append(out.targets, &target{name: c.Name, e: v})
	}
	return out
}
