package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// onConflict is transformOnConflictClause.
func (az *analyzer) onConflict(st *pg_query.InsertStmt, rel *Relation, ins *Insert, ctes []*cteEntry) (*OnConflict, *part) {
	c := st.OnConflictClause
	oc := &OnConflict{DoUpdate: c.Action == pg_query.OnConflictAction_ONCONFLICT_UPDATE}
	if c.Infer == nil {
		if oc.DoUpdate {
			e := az.errorAt(pgerr.SyntaxError, c.Location, "ON CONFLICT DO UPDATE requires inference specification or constraint name")
			e.Hint = "For example, ON CONFLICT (column_name)."
			panic(e)
		}
		return oc, nil
	}
	az.arbiter(c.Infer, rel)
	if !oc.DoUpdate {
		return oc, nil
	}
	p := az.inPart(func() *selNode { return az.conflictUpdate(c, st, rel, ins, oc, ctes) })
	return oc, p
}

// arbiter checks that ON CONFLICT names the key.
func (az *analyzer) arbiter(in *pg_query.InferClause, rel *Relation) {
	if in.Conname != "" {
		if in.Conname != rel.Constraint || len(rel.Key) == 0 {
			az.fail(pgerr.UndefinedObject, -1, "constraint %q for table %q does not exist", in.Conname, rel.Name)
		}
		return
	}
	cols := map[int]bool{}
	for _, n := range in.IndexElems {
		el := n.GetIndexElem()
		if el == nil || el.Expr != nil || len(el.Opclass) > 0 {
			az.noArbiter()
		}
		cols[az.columnIndexPlain(rel, el.Name, in.Location)] = true
	}
	if in.WhereClause != nil {
		// The key's index is not partial: every predicate implies its own.
		s := &scope{az: az, ns: []*nsItem{targetItem(rel)}, clause: "index predicate"}
		for i, c := range s.ns[0].cols {
			c.e = &expr{kind: kColumn, typ: rel.Columns[i].Type, mod: rel.Columns[i].Mod, loc: -1, name: rel.Name + "." + c.name}
		}
		s.ns[0].relVisible, s.ns[0].colsVisible = true, true
		s.boolean(in.WhereClause, "WHERE")
	}
	if len(cols) != len(rel.Key) || len(rel.Key) == 0 {
		az.noArbiter()
	}
	for _, k := range rel.Key {
		if !cols[k] {
			az.noArbiter()
		}
	}
}

func (az *analyzer) columnIndexPlain(rel *Relation, name string, loc int32) int {
	for i, c := range rel.Columns {
		if c.Name == name {
			return i
		}
	}
	az.fail(pgerr.UndefinedColumn, loc, "column %q does not exist", name)
	return 0
}

func (az *analyzer) noArbiter() {
	panic(pgerr.New(pgerr.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification"))
}

// conflictUpdate writes DO UPDATE over pairs of the existing and the proposed row.
func (az *analyzer) conflictUpdate(c *pg_query.OnConflictClause, st *pg_query.InsertStmt, rel *Relation, ins *Insert, oc *OnConflict, ctes []*cteEntry) *selNode {
	pair := &Relation{Kind: Rows, Schema: rel.Schema, Name: rel.Name, Columns: append(append([]RelColumn(nil), rel.Columns...), rel.Columns...)}
	e := az.addRel(pair, rel.Name, st.Relation.Location)
	name, _ := aliasOf(st.Relation.Alias)
	if name == "" {
		name = rel.Name
	}
	s := &scope{az: az, ctes: ctes}
	n := &selNode{scope: s}
	old := &nsItem{name: name, schema: rel.Schema, relVisible: true, colsVisible: true, rel: e}
	excluded := &nsItem{name: "excluded", relVisible: true, colsVisible: true}
	for i := range rel.Columns {
		old.cols = append(old.cols, &nsCol{name: rel.Columns[i].Name, hidden: rel.Columns[i].Hidden, e: relColumn(e, i, name)})
		if !rel.Columns[i].Hidden {
			excluded.cols = append(excluded.cols, &nsCol{name: rel.Columns[i].Name, e: relColumn(e, len(rel.Columns)+i, "excluded")})
		}
	}
	s.ns = []*nsItem{old, excluded}
	n.from = []*fromItem{{ns: s.ns, write: func(b *strings.Builder) { b.WriteString(e.from()) }}}
	set := az.setClause(s, rel, c.TargetList)
	for i := range rel.Columns {
		if set[i] != nil {
			oc.Set = append(oc.Set, i)
		}
	}
	for _, i := range ins.Columns {
		v := set[i]
		if v == nil {
			v = s.reference(s, old.cols[i], -1)
		}
		n.targets = append(n.targets, &target{name: rel.Columns[i].Name, e: v})
	}
	keep := constant(pgtype.Bool, "true", -1)
	if c.WhereClause != nil {
		s.clause = "WHERE"
		keep = call(pgtype.Bool, "coalesce($1, false)", s.boolean(c.WhereClause, "WHERE"))
	}
	n.targets = append(n.targets, &target{name: "keep", e: keep})
	return n
}
