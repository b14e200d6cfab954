package pgsql

import (
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// Utility analyses a statement that is not Select, Insert, Update or Delete into one of the structs of utility.go (a pointer).
// CHECKPOINT gives nil. Errors are PostgreSQL's, with positions.
func Utility(stmt *Stmt) (out any, err error) {
	az := newAnalyzer(stmt.src, nil, nil)
	defer az.rescue(&err)
	if stmt.Kind == Refused {
		return nil, refusedError(stmt)
	}
	switch x := stmt.Node.GetNode().(type) {
	case *pg_query.Node_TransactionStmt:
		return az.transaction(stmt, x.TransactionStmt)
	case *pg_query.Node_VariableSetStmt:
		return az.set(x.VariableSetStmt), nil
	case *pg_query.Node_VariableShowStmt:
		return &Show{Name: strings.ToLower(x.VariableShowStmt.Name)}, nil
	case *pg_query.Node_DiscardStmt:
		return &Discard{What: strings.ToLower(strings.TrimPrefix(x.DiscardStmt.Target.String(), "DISCARD_"))}, nil
	case *pg_query.Node_PrepareStmt:
		return az.prepare(stmt, x.PrepareStmt), nil
	case *pg_query.Node_ExecuteStmt:
		return &Execute{Name: x.ExecuteStmt.Name, N: len(x.ExecuteStmt.Params), stmt: stmt}, nil
	case *pg_query.Node_DeallocateStmt:
		return &Deallocate{Name: x.DeallocateStmt.Name, All: x.DeallocateStmt.Name == ""}, nil
	case *pg_query.Node_DeclareCursorStmt:
		return az.declare(stmt, x.DeclareCursorStmt), nil
	case *pg_query.Node_FetchStmt:
		return az.fetch(x.FetchStmt), nil
	case *pg_query.Node_ClosePortalStmt:
		return &CloseCursor{Name: x.ClosePortalStmt.Portalname, All: x.ClosePortalStmt.Portalname == ""}, nil
	case *pg_query.Node_ListenStmt:
		return &Listen{Channel: x.ListenStmt.Conditionname}, nil
	case *pg_query.Node_UnlistenStmt:
		return &Unlisten{Channel: x.UnlistenStmt.Conditionname}, nil
	case *pg_query.Node_NotifyStmt:
		return &Notify{Channel: x.NotifyStmt.Conditionname, Payload: x.NotifyStmt.Payload}, nil
	case *pg_query.Node_ExplainStmt:
		return az.explain(stmt, x.ExplainStmt), nil
	case *pg_query.Node_CopyStmt:
		return az.copy(stmt, x.CopyStmt), nil
	case *pg_query.Node_CreateStmt:
		return az.createTable(x.CreateStmt), nil
	case *pg_query.Node_CreateTableAsStmt, *pg_query.Node_SelectStmt:
		return az.createTableAs(stmt), nil
	case *pg_query.Node_ViewStmt:
		return az.createView(stmt, x.ViewStmt), nil
	case *pg_query.Node_CreateSeqStmt:
		return az.createSequence(x.CreateSeqStmt), nil
	case *pg_query.Node_AlterSeqStmt:
		return &AlterSequence{Name: az.qname(x.AlterSeqStmt.Sequence), IfExists: x.AlterSeqStmt.MissingOk, Options: az.sequenceOptions(x.AlterSeqStmt.Options)}, nil
	case *pg_query.Node_CreateSchemaStmt:
		return az.createSchema(x.CreateSchemaStmt), nil
	case *pg_query.Node_DropStmt:
		return az.drop(x.DropStmt), nil
	case *pg_query.Node_TruncateStmt:
		return az.truncate(x.TruncateStmt), nil
	case *pg_query.Node_CommentStmt:
		return az.comment(x.CommentStmt), nil
	case *pg_query.Node_LockStmt:
		l := &Lock{Mode: int(x.LockStmt.Mode), NoWait: x.LockStmt.Nowait}
		for _, n := range x.LockStmt.Relations {
			l.Tables = append(l.Tables, az.qname(n.GetRangeVar()))
		}
		return l, nil
	case *pg_query.Node_VacuumStmt:
		v := &Vacuum{Analyze: !x.VacuumStmt.IsVacuumcmd}
		for _, o := range x.VacuumStmt.Options {
			az.vacuumOption(v, o.GetDefElem())
		}
		for _, n := range x.VacuumStmt.Rels {
			v.Tables = append(v.Tables, az.qname(n.GetVacuumRelation().GetRelation()))
		}
		return v, nil
	case *pg_query.Node_CheckPointStmt:
		return nil, nil
	case *pg_query.Node_RenameStmt, *pg_query.Node_AlterTableStmt, *pg_query.Node_AlterObjectSchemaStmt, *pg_query.Node_AlterOwnerStmt:
		return az.alter(stmt)
	}
	return nil, refusedError(stmt)
}

func (az *analyzer) qname(v *pg_query.RangeVar) QName {
	if v.GetCatalogname() != "" {
		az.fail(pgerr.FeatureNotSupported, v.Location, "cross-database references are not implemented: \"%s.%s.%s\"", v.Catalogname, v.Schemaname, v.Relname)
	}
	return QName{Schema: v.GetSchemaname(), Name: v.GetRelname(), Loc: az.src.position(v.GetLocation())}
}

// inner makes a statement inside another one.
func (az *analyzer) inner(outer *Stmt, n *pg_query.Node) *Stmt {
	st := newStmt(outer.src, n)
	st.begin, st.end, st.Text = outer.begin, outer.end, outer.Text
	return st
}

func (az *analyzer) defBool(d *pg_query.DefElem) bool {
	if d.Arg == nil || d.Arg.GetNode() == nil {
		return true
	}
	if i := d.Arg.GetInteger(); i != nil {
		if i.Ival == 0 || i.Ival == 1 {
			return i.Ival == 1
		}
	} else if b := d.Arg.GetBoolean(); b != nil {
		return b.Boolval
	} else {
		switch strings.ToLower(defText(d)) {
		case "true", "on":
			return true
		case "false", "off":
			return false
		}
	}
	panic(pgerr.Newf(pgerr.SyntaxError, "%s requires a Boolean value", d.Defname))
}

// defText is a DefElem's value as text.
func defText(d *pg_query.DefElem) string {
	switch v := d.GetArg().GetNode().(type) {
	case *pg_query.Node_String_:
		return v.String_.Sval
	case *pg_query.Node_Integer:
		return strconv.Itoa(int(v.Integer.Ival))
	case *pg_query.Node_Float:
		return v.Float.Fval
	case *pg_query.Node_Boolean:
		return strconv.FormatBool(v.Boolean.Boolval)
	case *pg_query.Node_TypeName:
		names := stringList(v.TypeName.Names)
		return names[len(names)-1]
	case *pg_query.Node_AConst:
		return constText(v.AConst)
	case *pg_query.Node_List:
		return strings.Join(stringList(v.List.Items), ",")
	}
	return ""
}

func (az *analyzer) explain(stmt *Stmt, e *pg_query.ExplainStmt) *Explain {
	out := &Explain{Costs: true, Format: "text"}
	timing, summary := false, false
	for _, n := range e.Options {
		d := n.GetDefElem()
		switch d.Defname {
		case "analyze":
			out.Analyze = az.defBool(d)
		case "verbose":
			out.Verbose = az.defBool(d)
		case "costs":
			out.Costs = az.defBool(d)
		case "buffers":
			out.Buffers = az.defBool(d)
		case "wal":
			out.WAL = az.defBool(d)
		case "settings":
			out.Settings = az.defBool(d)
		case "timing":
			out.Timing, timing = az.defBool(d), true
		case "summary":
			out.Summary, summary = az.defBool(d), true
		case "format":
			out.Format = strings.ToLower(defText(d))
			switch out.Format {
			case "text", "json", "xml", "yaml":
			default:
				az.fail(pgerr.InvalidParameterValue, d.Location, "unrecognized value for EXPLAIN option \"format\": %q", defText(d))
			}
		default:
			az.fail(pgerr.SyntaxError, d.Location, "unrecognized EXPLAIN option %q", d.Defname)
		}
	}
	if !timing {
		out.Timing = out.Analyze
	} else if out.Timing && !out.Analyze {
		panic(pgerr.New(pgerr.InvalidParameterValue, "EXPLAIN option TIMING requires ANALYZE"))
	}
	if out.WAL && !out.Analyze {
		panic(pgerr.New(pgerr.InvalidParameterValue, "EXPLAIN option WAL requires ANALYZE"))
	}
	if !summary {
		out.Summary = out.Analyze
	}
	out.Stmt = az.inner(stmt, e.Query)
	switch out.Stmt.Kind {
	case Select, InsertStmt, UpdateStmt, DeleteStmt, MergeStmt, DeclareStmt, CreateTableAsStmt, ExecuteStmt:
	default:
		panic(refusedError(out.Stmt))
	}
	return out
}

// after is the text behind the first top-level keyword.
func (st *Stmt) after(keyword string) string {
	text := st.src.text[st.begin:min(st.end, len(st.src.text))]
	toks, err := scan(text)
	if err != nil {
		return st.Text
	}
	depth := 0
	for _, t := range toks {
		switch w := text[t.Start:t.End]; {
		case w == "(":
			depth++
		case w == ")":
			depth--
		case depth == 0 && strings.EqualFold(w, keyword):
			return strings.Trim(text[t.End:], " \t\r\n\f;")
		}
	}
	return st.Text
}

func (az *analyzer) createTableAs(stmt *Stmt) *CreateTableAs {
	if sel := stmt.Node.GetSelectStmt(); sel != nil {
		into := intoOf(sel)
		plain := proto.Clone(stmt.Node).(*pg_query.Node)
		for s := plain.GetSelectStmt(); s != nil; s = s.Larg {
			s.IntoClause = nil
		}
		out := az.into(into)
		out.Query = az.inner(stmt, plain)
		return out
	}
	c := stmt.Node.GetCreateTableAsStmt()
	out := az.into(c.Into)
	out.IfNotExists = c.IfNotExists
	out.Query = az.inner(stmt, c.Query)
	out.Query.Text = stmt.after("as")
	switch out.Query.Kind {
	case Select, ExecuteStmt:
	default:
		panic(refusedError(out.Query))
	}
	return out
}

func (az *analyzer) into(i *pg_query.IntoClause) *CreateTableAs {
	q := az.qname(i.Rel)
	if i.TableSpaceName != "" {
		az.unsupported(i.Rel.Location, "TABLESPACE")
	}
	if i.AccessMethod != "" {
		az.unsupported(i.Rel.Location, "USING access method")
	}
	temp := az.persistence(i.Rel)
	return &CreateTableAs{Schema: q.Schema, Name: q.Name, Temp: temp, OnCommit: az.onCommit(i.OnCommit, temp || strings.HasPrefix(q.Schema, "pg_temp")), Columns: stringList(i.ColNames), With: az.with(i.Options), NoData: i.SkipData, Loc: q.Loc}
}

func (az *analyzer) persistence(v *pg_query.RangeVar) (temp bool) {
	switch v.Relpersistence {
	case "t":
		return true
	case "u":
		az.unsupported(v.Location, "UNLOGGED")
	}
	return false
}

func (az *analyzer) with(opts []*pg_query.Node) map[string]string {
	if len(opts) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, n := range opts {
		d := n.GetDefElem()
		name := d.Defname // as written: an Iceberg property in quotes keeps its letters
		if d.Defnamespace != "" {
			name = d.Defnamespace + "." + name
		}
		if _, dup := out[name]; dup {
			az.fail(pgerr.InvalidParameterValue, d.Location, "parameter %q specified more than once", name)
		}
		value := "true"
		if d.Arg.GetNode() != nil {
			value = defText(d)
		}
		out[name] = value
	}
	return out
}

func (az *analyzer) createView(stmt *Stmt, v *pg_query.ViewStmt) *CreateView {
	q := az.qname(v.View)
	if v.WithCheckOption != pg_query.ViewCheckOption_NO_CHECK_OPTION && v.WithCheckOption != pg_query.ViewCheckOption_VIEW_CHECK_OPTION_UNDEFINED {
		az.unsupported(-1, "WITH CHECK OPTION")
	}
	if len(v.Options) > 0 {
		az.unsupported(-1, "WITH options of a view")
	}
	out := &CreateView{Schema: q.Schema, Name: q.Name, Replace: v.Replace, Temp: az.persistence(v.View), Columns: stringList(v.Aliases), Loc: q.Loc}
	out.Query = az.inner(stmt, v.Query)
	if out.Query.Kind != Select {
		panic(refusedError(out.Query))
	}
	out.Text = stmt.after("as")
	return out
}

func (az *analyzer) createSchema(c *pg_query.CreateSchemaStmt) *CreateSchema {
	if len(c.SchemaElts) > 0 {
		az.unsupported(-1, "CREATE SCHEMA with elements")
	}
	name := c.Schemaname
	if name == "" && c.Authrole != nil {
		name = c.Authrole.Rolename
	}
	return &CreateSchema{Name: name, IfNotExists: c.IfNotExists}
}

var dropObjects = map[pg_query.ObjectType]string{
	pg_query.ObjectType_OBJECT_TABLE: "table", pg_query.ObjectType_OBJECT_VIEW: "view", pg_query.ObjectType_OBJECT_SCHEMA: "schema",
	pg_query.ObjectType_OBJECT_SEQUENCE: "sequence",
}

func (az *analyzer) drop(d *pg_query.DropStmt) *Drop {
	what := dropObjects[d.RemoveType]
	if what == "" {
		az.unsupported(-1, "DROP %s", objectName(d.RemoveType))
	}
	out := &Drop{What: what, IfExists: d.MissingOk, Cascade: d.Behavior == pg_query.DropBehavior_DROP_CASCADE}
	for _, n := range d.Objects {
		names := stringList(n.GetList().GetItems())
		if s := n.GetString_(); s != nil {
			names = []string{s.Sval}
		}
		out.Names = append(out.Names, az.nameList(names))
	}
	return out
}

func (az *analyzer) nameList(names []string) QName {
	switch len(names) {
	case 1:
		return QName{Name: names[0]}
	case 2:
		return QName{Schema: names[0], Name: names[1]}
	}
	panic(pgerr.Newf(pgerr.FeatureNotSupported, "cross-database references are not implemented: %s", strings.Join(names, ".")))
}

func (az *analyzer) truncate(t *pg_query.TruncateStmt) *Truncate {
	out := &Truncate{RestartIdentity: t.RestartSeqs, Cascade: t.Behavior == pg_query.DropBehavior_DROP_CASCADE}
	for _, n := range t.Relations {
		out.Tables = append(out.Tables, az.qname(n.GetRangeVar()))
	}
	return out
}

func (az *analyzer) comment(c *pg_query.CommentStmt) *Comment {
	out := &Comment{What: strings.ToLower(objectName(c.Objtype))}
	names := stringList(c.Object.GetList().GetItems())
	if s := c.Object.GetString_(); s != nil {
		names = []string{s.Sval}
	}
	switch c.Objtype {
	case pg_query.ObjectType_OBJECT_COLUMN:
		if len(names) < 2 {
			panic(pgerr.New(pgerr.SyntaxError, "column name must be qualified"))
		}
		out.Column, names = names[len(names)-1], names[:len(names)-1]
	case pg_query.ObjectType_OBJECT_TABLE, pg_query.ObjectType_OBJECT_VIEW, pg_query.ObjectType_OBJECT_SCHEMA, pg_query.ObjectType_OBJECT_DATABASE:
	default:
		az.unsupported(-1, "COMMENT ON %s", objectName(c.Objtype))
	}
	out.Name = az.nameList(names)
	if c.Comment != "" {
		text := c.Comment
		out.Text = &text
	}
	return out
}

// types of serial columns.
var serialTypes = map[string]uint32{
	"serial": pgtype.Int4, "serial4": pgtype.Int4, "bigserial": pgtype.Int8, "serial8": pgtype.Int8, "smallserial": pgtype.Int2, "serial2": pgtype.Int2,
}
