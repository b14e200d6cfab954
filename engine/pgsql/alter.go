package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Alter is ALTER … RENAME, SET SCHEMA and OWNER TO.
type Alter struct {
	What     string // "table", "view", "schema", "sequence", "index" …
	Name     QName
	NewName  string // the new name, the schema or the role
	Column   string // RENAME COLUMN, RENAME CONSTRAINT: the old name
	Action   string // "rename", "rename column", "rename constraint", "set schema", "owner to"
	IfExists bool
}

// AlterTable is ALTER TABLE (or VIEW) with a list of actions, in the order they were written.
type AlterTable struct {
	What     string // "table", "view" …
	Name     QName
	IfExists bool
	Actions  []AlterAction
}

// AlterKind names an action of ALTER TABLE.
type AlterKind string

// The actions of ALTER TABLE.
const (
	AddColumn          AlterKind = "ADD COLUMN"
	DropColumn         AlterKind = "DROP COLUMN"
	AlterColumnType    AlterKind = "ALTER COLUMN ... SET DATA TYPE"
	SetDefault         AlterKind = "ALTER COLUMN ... SET DEFAULT"
	DropDefault        AlterKind = "ALTER COLUMN ... DROP DEFAULT"
	SetNotNull         AlterKind = "ALTER COLUMN ... SET NOT NULL"
	DropNotNull        AlterKind = "ALTER COLUMN ... DROP NOT NULL"
	AddConstraint      AlterKind = "ADD CONSTRAINT"
	DropConstraint     AlterKind = "DROP CONSTRAINT"
	ValidateConstraint AlterKind = "VALIDATE CONSTRAINT"
	SetOptions         AlterKind = "SET"
	ResetOptions       AlterKind = "RESET"
	OwnerTo            AlterKind = "OWNER TO"
	DropExpression     AlterKind = "ALTER COLUMN ... DROP EXPRESSION"
	DropIdentity       AlterKind = "ALTER COLUMN ... DROP IDENTITY"
	AddIdentity        AlterKind = "ALTER COLUMN ... ADD"
	SetIdentity        AlterKind = "ALTER COLUMN ... SET"
	NoAction           AlterKind = "" // accepted without effect, such as SET STATISTICS
)

// AlterAction is one action of ALTER TABLE. Which fields are set depends on Do.
type AlterAction struct {
	Do     AlterKind
	Column string // ALTER COLUMN, DROP COLUMN; the constraint's name for the constraint actions; the role of OWNER TO
	// Def is ADD COLUMN's column, SET DATA TYPE's type, SET DEFAULT's expression (Default).
	Def ColumnDef
	// Using is the expression of SET DATA TYPE … USING, "" when there is none.
	Using    string
	UsingLoc int
	// Constraints holds the table constraints that ADD COLUMN and ADD CONSTRAINT bring, as CREATE TABLE would have them.
	Constraints *CreateTable
	// Options are those of SET and RESET; RESET's values are empty.
	Options map[string]string
	// Missing is IF EXISTS (DROP) or IF NOT EXISTS (ADD).
	Missing bool
	Cascade bool
}

// alter analyses the ALTER statements.
func (az *analyzer) alter(stmt *Stmt) (any, error) {
	switch x := stmt.Node.GetNode().(type) {
	case *pg_query.Node_RenameStmt:
		return az.rename(x.RenameStmt), nil
	case *pg_query.Node_AlterObjectSchemaStmt:
		a := x.AlterObjectSchemaStmt
		if a.Relation == nil {
			return nil, refusedError(stmt)
		}
		return &Alter{What: strings.ToLower(objectName(a.ObjectType)), Name: az.qname(a.Relation), NewName: a.Newschema, Action: "set schema", IfExists: a.MissingOk}, nil
	case *pg_query.Node_AlterOwnerStmt:
		o := x.AlterOwnerStmt
		if o.ObjectType != pg_query.ObjectType_OBJECT_SCHEMA {
			return nil, refusedError(stmt)
		}
		return &Alter{What: "schema", Name: QName{Name: o.Object.GetString_().GetSval()}, NewName: roleName(o.Newowner), Action: "owner to"}, nil
	case *pg_query.Node_AlterTableStmt:
		return az.alterTable(x.AlterTableStmt), nil
	}
	return nil, refusedError(stmt)
}

func (az *analyzer) rename(r *pg_query.RenameStmt) *Alter {
	out := &Alter{What: strings.ToLower(objectName(r.RenameType)), NewName: r.Newname, Action: "rename", IfExists: r.MissingOk}
	switch r.RenameType {
	case pg_query.ObjectType_OBJECT_COLUMN:
		out.What, out.Action, out.Column = strings.ToLower(objectName(r.RelationType)), "rename column", r.Subname
		out.Name = az.qname(r.Relation)
	case pg_query.ObjectType_OBJECT_TABCONSTRAINT:
		out.What, out.Action, out.Column = "table", "rename constraint", r.Subname
		out.Name = az.qname(r.Relation)
	case pg_query.ObjectType_OBJECT_SCHEMA:
		out.Name = QName{Name: r.Subname}
	default:
		out.Name = az.qname(r.Relation)
	}
	return out
}

// roleName is a role as it is written; CURRENT_USER and its like are "".
func roleName(r *pg_query.RoleSpec) string { return r.GetRolename() }

func (az *analyzer) alterTable(t *pg_query.AlterTableStmt) *AlterTable {
	out := &AlterTable{What: strings.ToLower(objectName(t.Objtype)), Name: az.qname(t.Relation), IfExists: t.MissingOk}
	for _, n := range t.Cmds {
		out.Actions = append(out.Actions, az.alterAction(out, n.GetAlterTableCmd()))
	}
	return out
}

// plainActions are those that only name a column or a constraint.
var plainActions = map[pg_query.AlterTableType]AlterKind{
	pg_query.AlterTableType_AT_DropNotNull: DropNotNull, pg_query.AlterTableType_AT_SetNotNull: SetNotNull,
	pg_query.AlterTableType_AT_DropColumn: DropColumn, pg_query.AlterTableType_AT_DropConstraint: DropConstraint,
	pg_query.AlterTableType_AT_ValidateConstraint: ValidateConstraint, pg_query.AlterTableType_AT_DropExpression: DropExpression,
	pg_query.AlterTableType_AT_DropIdentity: DropIdentity,
	// What a column's values cost on disk is not for the user to say here.
	pg_query.AlterTableType_AT_SetStatistics: NoAction, pg_query.AlterTableType_AT_SetStorage: NoAction,
}

func (az *analyzer) alterAction(t *AlterTable, c *pg_query.AlterTableCmd) AlterAction {
	a := AlterAction{Column: c.Name, Missing: c.MissingOk, Cascade: c.Behavior == pg_query.DropBehavior_DROP_CASCADE}
	if kind, ok := plainActions[c.Subtype]; ok {
		a.Do = kind
		return a
	}
	switch c.Subtype {
	case pg_query.AlterTableType_AT_AddColumn, pg_query.AlterTableType_AT_AddColumnToView:
		a.Do = AddColumn
		a.Constraints = &CreateTable{Schema: t.Name.Schema, Name: t.Name.Name}
		a.Def = az.columnDef(c.Def.GetColumnDef(), a.Constraints)
	case pg_query.AlterTableType_AT_ColumnDefault:
		a.Do = DropDefault
		if c.Def.GetNode() != nil {
			a.Do = SetDefault
			a.Def = ColumnDef{Name: c.Name, Default: az.deparse(c.Def), DefaultLoc: az.src.position(nodeLocation(c.Def))}
		}
	case pg_query.AlterTableType_AT_AlterColumnType:
		a.Do = AlterColumnType
		az.newType(&a, c.Def.GetColumnDef())
	case pg_query.AlterTableType_AT_AddConstraint:
		a.Do = AddConstraint
		a.Constraints = &CreateTable{Schema: t.Name.Schema, Name: t.Name.Name}
		a.Column = c.Def.GetConstraint().GetConname()
		az.tableConstraint(c.Def.GetConstraint(), a.Constraints)
	case pg_query.AlterTableType_AT_ChangeOwner:
		a.Do, a.Column = OwnerTo, roleName(c.Newowner)
	case pg_query.AlterTableType_AT_SetRelOptions, pg_query.AlterTableType_AT_ResetRelOptions:
		a.Do, a.Options = SetOptions, az.with(c.Def.GetList().GetItems())
		if c.Subtype == pg_query.AlterTableType_AT_ResetRelOptions {
			a.Do = ResetOptions
		}
	case pg_query.AlterTableType_AT_AddIdentity:
		con := c.Def.GetConstraint()
		a.Do, a.Def = AddIdentity, ColumnDef{Identity: "by default", Sequence: az.sequenceOptions(con.GetOptions())}
		if con.GetGeneratedWhen() == "a" {
			a.Def.Identity = "always"
		}
	case pg_query.AlterTableType_AT_SetIdentity:
		a.Do = SetIdentity
		az.setIdentity(&a, c.Def.GetList().GetItems())
	default:
		az.unsupported(-1, "ALTER %s ... %s", strings.ToUpper(t.What), alterWords.Replace(strings.TrimPrefix(c.Subtype.String(), "AT_")))
	}
	return a
}

// newType reads ALTER COLUMN … TYPE t [COLLATE c] [USING e].
func (az *analyzer) newType(a *AlterAction, d *pg_query.ColumnDef) {
	a.Def = ColumnDef{Name: a.Column, Loc: az.src.position(d.TypeName.GetLocation())}
	a.Def.Type, a.Def.Mod = az.typeName(d.TypeName)
	if row := catalog().types[a.Def.Type]; row != nil && row.kind == 'p' {
		panic(pgerr.Newf(pgerr.InvalidTableDefinition, "column %q has pseudo-type %s", a.Column, typeName(a.Def.Type)))
	}
	if d.CollClause != nil {
		az.collation(d.CollClause)
	}
	if d.RawDefault != nil {
		a.Using, a.UsingLoc = az.deparse(d.RawDefault), az.src.position(nodeLocation(d.RawDefault))
	}
}

// setIdentity reads SET GENERATED …, SET INCREMENT … and RESTART.
func (az *analyzer) setIdentity(a *AlterAction, items []*pg_query.Node) {
	var rest []*pg_query.Node
	for _, n := range items {
		d := n.GetDefElem()
		if d.Defname != "generated" {
			rest = append(rest, n)
			continue
		}
		if a.Def.Identity != "" {
			az.fail(pgerr.SyntaxError, d.Location, "conflicting or redundant options")
		}
		a.Def.Identity = "by default"
		if d.Arg.GetInteger().GetIval() == 'a' {
			a.Def.Identity = "always"
		}
	}
	a.Def.Sequence = az.sequenceOptions(rest)
}

// collation refuses a COLLATE that the one collation here is not.
func (az *analyzer) collation(c *pg_query.CollateClause) {
	(&scope{az: az}).collate(&pg_query.CollateClause{Arg: &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{
		Val: &pg_query.A_Const_Sval{Sval: &pg_query.String{}}}}}, Collname: c.Collname, Location: c.Location})
}

var alterWords = strings.NewReplacer("AddConstraint", "ADD CONSTRAINT", "AlterConstraint", "ALTER CONSTRAINT", "EnableRowSecurity", "ENABLE ROW LEVEL SECURITY",
	"DisableRowSecurity", "DISABLE ROW LEVEL SECURITY", "ForceRowSecurity", "FORCE ROW LEVEL SECURITY", "EnableTrig", "ENABLE TRIGGER", "DisableTrig", "DISABLE TRIGGER", "All", " ALL", "User", " USER",
	"AttachPartition", "ATTACH PARTITION", "DetachPartition", "DETACH PARTITION", "AddInherit", "INHERIT", "DropInherit", "NO INHERIT", "ClusterOn", "CLUSTER ON",
	"ReplicaIdentity", "REPLICA IDENTITY", "SetTableSpace", "SET TABLESPACE", "SetAccessMethod", "SET ACCESS METHOD", "SetUnLogged", "SET UNLOGGED", "SetLogged", "SET LOGGED",
	"SetCompression", "SET COMPRESSION", "SetExpression", "SET EXPRESSION", "_", " ")

// NewColumn is a column of a table that is being rewritten.
type NewColumn struct {
	RelColumn
	// From is the old column whose values it takes, -1 for a new one: then Expr, or NULL.
	From int
	// Expr is an expression over the old columns: USING, or a new column's default. Loc is its position in the statement, 0 when unknown.
	Expr string
	Loc  int
}

// Rewrite analyses the query that computes a table's new rows from its old ones: its first two columns are the old row's file and
// position, then the new columns, ready to store. Sources: one, the table.
func Rewrite(rel *Relation, cols []NewColumn, r Resolver) (q *Query, err error) {
	az := newAnalyzer(&source{}, r, nil)
	defer az.rescue(&err)
	s, n, e := az.dmlScope(&pg_query.RangeVar{Relname: rel.Name}, rel, nil, nil, nil)
	n.targets = filePos(e)
	to := &Relation{Name: rel.Name, Schema: rel.Schema}
	for _, c := range cols {
		to.Columns = append(to.Columns, c.RelColumn)
	}
	for i, c := range cols {
		n.targets = append(n.targets, &target{name: c.Name, e: az.rewritten(s, rel, to, i, c)})
	}
	return az.finishPart(&part{rels: az.rels, binds: az.binds, node: n}, true), nil
}

func (az *analyzer) rewritten(s *scope, rel, to *Relation, i int, c NewColumn) *expr {
	switch {
	case c.Expr != "":
		e := az.overRow(s, c.Expr, c.Loc)
		if c.From < 0 {
			return s.assign(e, to, i)
		}
		return s.assignNewType(e, to, i, true)
	case c.From < 0:
		return az.defaultExpr(s, to, i)
	}
	old := rel.Columns[c.From]
	if old.Type == c.Type && old.Mod == c.Mod {
		return az.oldValue(s, s.ns[0], c.From, rel)
	}
	return s.assignNewType(s.reference(s, s.ns[0].cols[c.From], -1), to, i, false)
}

// assignNewType is assign with ALTER TABLE's messages.
func (s *scope) assignNewType(e *expr, to *Relation, i int, using bool) *expr {
	c := to.Columns[i]
	if e.typ != pgtype.Unknown && !Assignable(e.typ, c.Type) {
		if using {
			er := s.az.errorAt(pgerr.DatatypeMismatch, -1, "result of USING clause for column %q cannot be cast automatically to type %s", c.Name, typeName(c.Type))
			er.Hint = "You might need to add an explicit cast."
			panic(er)
		}
		panic(CheckNewType(c.Name, e.typ, c.Type, c.Mod))
	}
	return s.assign(e, to, i)
}

// CheckNewType refuses ALTER COLUMN TYPE without USING when values of the old type are none of the new one without a cast.
func CheckNewType(column string, from, to uint32, mod int32) error {
	if Assignable(from, to) {
		return nil
	}
	e := pgerr.Newf(pgerr.DatatypeMismatch, "column %q cannot be cast automatically to type %s", column, typeName(to))
	if ok, _ := coercePath(from, to, explicitCoercion); ok {
		e.Hint = "You might need to specify \"USING " + QuoteIdent(column) + "::" + pgtype.Format(to, mod) + "\"."
	}
	return e
}

// Assignable says whether a value of one type may be stored in a column of another without a cast in the text.
func Assignable(from, to uint32) bool {
	ok, _ := coercePath(from, to, assignmentCoercion)
	return ok
}

// overRow analyses an expression over a table's row that is not part of the statement's text.
func (az *analyzer) overRow(s *scope, text string, loc int) *expr {
	stmts, err := Parse("SELECT " + text)
	if err != nil || len(stmts) != 1 || stmts[0].Kind != Select {
		panic(pgerr.Newf(pgerr.InternalError, "the expression %q cannot be read", text))
	}
	src, noParams := az.src, az.noParams
	az.src, az.noParams = stmts[0].src, true
	defer func() {
		az.src, az.noParams = src, noParams
		if e, ok := recover().(*pgerr.Error); ok {
			c := *e
			if c.Position > 0 { // a place in the deparsed text: the expression's begin is the nearest that the client knows
				c.Position = loc
			}
			panic(&c)
		}
	}()
	clause := s.clause
	s.clause = "transform expression"
	e := s.expr(stmts[0].Node.GetSelectStmt().TargetList[0].GetResTarget().Val)
	s.clause = clause
	e.loc = -1
	return e
}

// Checked analyses SELECT EXISTS over one table, for constraints that a change of its definition has to check: where is an SQL
// condition over its columns.
func Checked(rel *Relation, where string, r Resolver) (q *Query, err error) {
	stmts, err := Parse("SELECT 1 FROM " + QuoteIdent(rel.Schema) + "." + QuoteIdent(rel.Name) + " WHERE " + where + " LIMIT 1")
	if err != nil || len(stmts) != 1 {
		return nil, pgerr.Newf(pgerr.InternalError, "the condition %q cannot be read", where).WithCause(err)
	}
	return Analyze(stmts[0], r, nil)
}
