package pgsql

import (
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

func (az *analyzer) createTable(c *pg_query.CreateStmt) *CreateTable {
	q := az.qname(c.Relation)
	out := &CreateTable{Schema: q.Schema, Name: q.Name, IfNotExists: c.IfNotExists, Temp: az.persistence(c.Relation), With: az.with(c.Options), Loc: q.Loc}
	switch {
	case len(c.InhRelations) > 0 && c.Partbound == nil:
		az.unsupported(c.Relation.Location, "INHERITS")
	case c.Partbound != nil:
		az.unsupported(c.Relation.Location, "PARTITION OF")
	case c.Partspec != nil:
		az.failHint(pgerr.FeatureNotSupported, c.Partspec.Location, "Iceberg tables are partitioned by an option: WITH (partitioning = 'day(created_at), bucket(16, id), region').",
			"PARTITION BY is not supported")
	case c.OfTypename != nil:
		az.unsupported(c.Relation.Location, "CREATE TABLE OF type")
	case c.Tablespacename != "":
		az.unsupported(c.Relation.Location, "TABLESPACE")
	case c.AccessMethod != "":
		az.unsupported(c.Relation.Location, "USING access method")
	}
	out.OnCommit = az.onCommit(c.Oncommit, out.Temp || strings.HasPrefix(q.Schema, "pg_temp"))
	seen := map[string]bool{}
	for _, n := range c.TableElts {
		switch x := n.GetNode().(type) {
		case *pg_query.Node_ColumnDef:
			if seen[x.ColumnDef.Colname] {
				panic(pgerr.Newf(pgerr.DuplicateColumn, "column %q specified more than once", x.ColumnDef.Colname))
			}
			seen[x.ColumnDef.Colname] = true
			out.Columns = append(out.Columns, az.columnDef(x.ColumnDef, out))
		case *pg_query.Node_Constraint:
			az.tableConstraint(x.Constraint, out)
		case *pg_query.Node_TableLikeClause:
			out.Likes = append(out.Likes, az.like(x.TableLikeClause, len(out.Columns)))
		default:
			az.unsupported(-1, "%s in CREATE TABLE", nodeName(n))
		}
	}
	for _, k := range out.PrimaryKey {
		if !seen[k] && len(out.Likes) == 0 {
			az.fail(pgerr.UndefinedColumn, -1, "column %q named in key does not exist", k)
		}
		for i := range out.Columns {
			if out.Columns[i].Name == k {
				out.Columns[i].NotNull = true
			}
		}
	}
	return out
}

func (az *analyzer) columnDef(d *pg_query.ColumnDef, t *CreateTable) ColumnDef {
	col := ColumnDef{Name: d.Colname, Loc: az.src.position(d.Location), Mod: -1}
	if names := stringList(d.TypeName.GetNames()); len(names) == 1 && serialTypes[names[0]] != 0 {
		col.Type, col.Serial, col.NotNull = serialTypes[names[0]], true, true
	} else {
		col.Type, col.Mod = az.typeName(d.TypeName)
		if row := catalog().types[col.Type]; row != nil && row.kind == 'p' {
			panic(pgerr.Newf(pgerr.InvalidTableDefinition, "column %q has pseudo-type %s", d.Colname, typeName(col.Type)))
		}
	}
	if d.CollClause != nil {
		(&scope{az: az}).collate(&pg_query.CollateClause{Arg: &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{
			Val: &pg_query.A_Const_Sval{Sval: &pg_query.String{}}}}}, Collname: d.CollClause.Collname, Location: d.CollClause.Location})
	}
	null := false
	for _, n := range d.Constraints {
		c := n.GetConstraint()
		switch c.Contype {
		case pg_query.ConstrType_CONSTR_NULL:
			if col.NotNull {
				az.fail(pgerr.SyntaxError, c.Location, "conflicting NULL/NOT NULL declarations for column %q of table %q", d.Colname, t.Name)
			}
			null = true
		case pg_query.ConstrType_CONSTR_NOTNULL:
			if null {
				az.fail(pgerr.SyntaxError, c.Location, "conflicting NULL/NOT NULL declarations for column %q of table %q", d.Colname, t.Name)
			}
			col.NotNull = true
		case pg_query.ConstrType_CONSTR_CHECK:
			t.Checks = append(t.Checks, az.checkDef(c, d.Colname))
		case pg_query.ConstrType_CONSTR_GENERATED:
			if col.Generated != "" {
				az.fail(pgerr.SyntaxError, c.Location, "multiple generation clauses specified for column %q of table %q", d.Colname, t.Name)
			}
			col.Generated, col.GeneratedLoc = az.deparse(c.RawExpr), az.src.position(nodeLocation(c.RawExpr))
		case pg_query.ConstrType_CONSTR_UNIQUE:
			az.unique(t, c, []string{d.Colname})
		case pg_query.ConstrType_CONSTR_DEFAULT:
			if col.Default != "" {
				az.fail(pgerr.SyntaxError, c.Location, "multiple default values specified for column %q of table %q", d.Colname, t.Name)
			}
			col.Default = az.deparse(c.RawExpr)
			col.DefaultLoc = az.src.position(nodeLocation(c.RawExpr))
		case pg_query.ConstrType_CONSTR_IDENTITY:
			if col.Identity != "" {
				az.fail(pgerr.SyntaxError, c.Location, "multiple identity specifications for column %q of table %q", d.Colname, t.Name)
			}
			if null {
				az.fail(pgerr.SyntaxError, c.Location, "conflicting NULL/NOT NULL declarations for column %q of table %q", d.Colname, t.Name)
			}
			col.Identity, col.NotNull = "by default", true
			if c.GeneratedWhen == "a" {
				col.Identity = "always"
			}
			col.Sequence = az.sequenceOptions(c.Options)
		case pg_query.ConstrType_CONSTR_PRIMARY:
			az.primaryKey(t, c, []string{d.Colname})
		default:
			az.refuseConstraint(c)
		}
		az.oneSource(c.Location, &col, t.Name)
	}
	return col
}

// oneSource refuses a column whose values would come from two places.
func (az *analyzer) oneSource(loc int32, col *ColumnDef, table string) {
	clash := func(what string) {
		az.fail(pgerr.SyntaxError, loc, "both %s specified for column %q of table %q", what, col.Name, table)
	}
	switch {
	case col.Serial && col.Default != "":
		az.fail(pgerr.SyntaxError, loc, "multiple default values specified for column %q of table %q", col.Name, table)
	case (col.Default != "" || col.Serial) && col.Identity != "":
		clash("default and identity")
	case (col.Default != "" || col.Serial) && col.Generated != "":
		clash("default and generation expression")
	case col.Identity != "" && col.Generated != "":
		clash("identity and generation expression")
	}
}

// checkDef reads a CHECK constraint of a column, or of the table.
func (az *analyzer) checkDef(c *pg_query.Constraint, column string) CheckDef {
	return CheckDef{Name: c.Conname, Column: column, Expr: az.deparse(c.RawExpr), NoInherit: c.IsNoInherit, NotValid: c.SkipValidation && !c.InitiallyValid, Loc: az.src.position(nodeLocation(c.RawExpr))}
}

// checkKey refuses what no key of a table can be; clause and kind name it as PostgreSQL does.
func (az *analyzer) checkKey(c *pg_query.Constraint, cols []string, clause, kind string) {
	if c.Deferrable || c.Initdeferred {
		az.unsupported(c.Location, "a deferrable %s", clause)
	}
	if len(c.Including) > 0 {
		az.unsupported(c.Location, "INCLUDE in %s", clause)
	}
	seen := map[string]bool{}
	for _, k := range cols {
		if seen[k] {
			az.fail(pgerr.DuplicateColumn, c.Location, "column %q appears twice in %s constraint", k, kind)
		}
		seen[k] = true
	}
}

// unique reads a UNIQUE constraint.
func (az *analyzer) unique(t *CreateTable, c *pg_query.Constraint, cols []string) {
	az.checkKey(c, cols, "UNIQUE", "unique")
	t.Unique = append(t.Unique, KeyDef{Name: c.Conname, Columns: cols, NullsNotDistinct: c.NullsNotDistinct, Loc: az.src.position(c.Location)})
}

// refuseConstraint is the error for the constraints that no table of the warehouse can have.
func (az *analyzer) refuseConstraint(c *pg_query.Constraint) {
	e := az.errorAt(pgerr.FeatureNotSupported, c.Location, "%s is not supported", constraintName(c.Contype))
	switch c.Contype {
	case pg_query.ConstrType_CONSTR_FOREIGN:
		e.Hint = "References between tables are not enforced; a query can find the rows that refer to nothing."
	case pg_query.ConstrType_CONSTR_EXCLUSION:
		e.Hint = "Rows are compared by the table's key alone: PRIMARY KEY, or UNIQUE over NOT NULL columns."
	}
	panic(e)
}

func (az *analyzer) like(l *pg_query.TableLikeClause, at int) LikeClause {
	const (
		comments = 1 << iota
		_        // compression: none here
		constraints
		defaults
		generated
		identity
		indexes
	)
	o := l.Options
	return LikeClause{Table: az.qname(l.Relation), At: at, Comments: o&comments != 0, Constraints: o&constraints != 0, Defaults: o&defaults != 0,
		Generated: o&generated != 0, Identity: o&identity != 0, Indexes: o&indexes != 0}
}

func (az *analyzer) onCommit(a pg_query.OnCommitAction, temp bool) string {
	if a > pg_query.OnCommitAction_ONCOMMIT_NOOP && !temp {
		panic(pgerr.New(pgerr.InvalidTableDefinition, "ON COMMIT can only be used on temporary tables"))
	}
	switch a {
	case pg_query.OnCommitAction_ONCOMMIT_DELETE_ROWS:
		return "delete rows"
	case pg_query.OnCommitAction_ONCOMMIT_DROP:
		return "drop"
	}
	return ""
}

func (az *analyzer) primaryKey(t *CreateTable, c *pg_query.Constraint, cols []string) {
	if t.PrimaryKey != nil {
		az.fail(pgerr.InvalidTableDefinition, c.Location, "multiple primary keys for table %q are not allowed", t.Name)
	}
	az.checkKey(c, cols, "PRIMARY KEY", "primary key")
	t.PrimaryKey, t.ConstraintName = cols, c.Conname
}

func (az *analyzer) tableConstraint(c *pg_query.Constraint, t *CreateTable) {
	if c.Indexname != "" {
		az.unsupported(c.Location, "a constraint USING INDEX")
	}
	switch c.Contype {
	case pg_query.ConstrType_CONSTR_PRIMARY:
		az.primaryKey(t, c, stringList(c.Keys))
	case pg_query.ConstrType_CONSTR_UNIQUE:
		az.unique(t, c, stringList(c.Keys))
	case pg_query.ConstrType_CONSTR_CHECK:
		t.Checks = append(t.Checks, az.checkDef(c, ""))
	default:
		az.refuseConstraint(c)
	}
}

func constraintName(t pg_query.ConstrType) string {
	switch t {
	case pg_query.ConstrType_CONSTR_FOREIGN:
		return "a FOREIGN KEY constraint"
	case pg_query.ConstrType_CONSTR_EXCLUSION:
		return "an EXCLUDE constraint"
	}
	return "a deferrable constraint"
}

// treeVersion is the version of the trees that pg_query takes back: PostgreSQL 17.0.7.
const treeVersion = 170007

// deparse writes an expression back as SQL.
func (az *analyzer) deparse(n *pg_query.Node) string {
	sel := &pg_query.SelectStmt{TargetList: []*pg_query.Node{{Node: &pg_query.Node_ResTarget{ResTarget: &pg_query.ResTarget{Val: n}}}}, LimitOption: pg_query.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg_query.SetOperation_SETOP_NONE}
	tree := &pg_query.ParseResult{Version: treeVersion, Stmts: []*pg_query.RawStmt{{Stmt: &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: sel}}}}}
	text, err := pg_query.Deparse(tree)
	if err != nil {
		panic(pgerr.New(pgerr.FeatureNotSupported, "this expression is not supported").WithPosition(az.src.position(nodeLocation(n))).WithCause(err))
	}
	return strings.TrimPrefix(text, "SELECT ")
}

// CheckDefault checks a column's default: it may not use columns, and must fit the type.
func CheckDefault(c ColumnDef, r Resolver) (err error) {
	if c.Default == "" {
		return nil
	}
	az := newAnalyzer(&source{}, r, nil)
	defer az.rescue(&err)
	rel := &Relation{Columns: []RelColumn{{Name: c.Name, Type: c.Type, Mod: c.Mod, Default: c.Default}}}
	az.declaring = "default "
	az.defaultExpr(&scope{az: az}, rel, 0)
	return nil
}

// AnalyzeExpr writes an expression without columns, such as a default, as a query of one row and one column of the given type.
func AnalyzeExpr(text string, typ uint32, mod int32, r Resolver) (q *Query, err error) {
	az := newAnalyzer(&source{}, r, nil)
	defer az.rescue(&err)
	rel := &Relation{Columns: []RelColumn{{Name: "value", Type: typ, Mod: mod, Default: text}}}
	s := &scope{az: az}
	n := &selNode{scope: s}
	n.targets = []*target{{name: "value", e: az.defaultExpr(s, rel, 0)}}
	q = az.finishPart(&part{rels: az.rels, binds: az.binds, node: n}, false)
	q.Columns = columnsOf(n.targets)
	return q, nil
}

// QuoteIdent writes a name as SQL: quoted where PostgreSQL's quote_ident would.
func QuoteIdent(name string) string {
	plain := name != "" && !(name[0] >= '0' && name[0] <= '9')
	for i := 0; i < len(name) && plain; i++ {
		c := name[i]
		plain = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
	}
	if plain && !isKeyword(name) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// isKeyword asks the scanner: anything but an unreserved keyword is quoted.
func isKeyword(name string) bool {
	toks, err := scan(name)
	if err != nil || len(toks) != 1 {
		return true
	}
	k := toks[0].KeywordKind
	return k != pg_query.KeywordKind_NO_KEYWORD && k != pg_query.KeywordKind_UNRESERVED_KEYWORD
}

// ParseQualifiedName reads an SQL name as text: folding, quotes and a schema are honoured. 42602 when it is malformed.
func ParseQualifiedName(text string) (schema, name string, err error) {
	schema, name, ok := splitName(text)
	if !ok {
		return "", "", pgerr.New(pgerr.InvalidName, "invalid name syntax")
	}
	return schema, name, nil
}
