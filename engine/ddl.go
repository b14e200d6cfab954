package engine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// constraintName is the name of the key's constraint.
func constraintName(ident table.Identifier, props iceberg.Properties) string {
	if n := props[propConstraint]; n != "" {
		return n
	}
	return objectName(ident[len(ident)-1], "", "pkey")
}

// ddlCommand is CREATE, DROP, TRUNCATE, ALTER and COMMENT. Each leaves no trace when it fails.
func (s *session) ddlCommand(b binding) (commandFunc, error) {
	var run commandFunc
	switch u := b.p.util.(type) {
	case *pgsql.CreateSchema:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "CREATE SCHEMA", s.createSchema(ctx, w, u)
		}
	case *pgsql.CreateSequence:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "CREATE SEQUENCE", s.createSequence(ctx, w, u)
		}
	case *pgsql.AlterSequence:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "ALTER SEQUENCE", s.alterSequence(ctx, w, u)
		}
	case *pgsql.CreateTable:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "CREATE TABLE", s.createTable(ctx, w, u)
		}
	case *pgsql.CreateTableAs:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) { return s.createTableAs(ctx, w, b, u) }
	case *pgsql.CreateView:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "CREATE VIEW", s.createView(ctx, w, u)
		}
	case *pgsql.Drop:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "DROP " + strings.ToUpper(u.What), s.drop(ctx, w, u)
		}
	case *pgsql.Truncate:
		run = func(ctx context.Context, _ pgwire.Writer) (string, error) {
			return "TRUNCATE TABLE", s.truncate(ctx, u)
		}
	case *pgsql.Alter:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "ALTER " + strings.ToUpper(u.What), s.alter(ctx, w, u)
		}
	case *pgsql.AlterTable:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "ALTER " + strings.ToUpper(u.What), s.alterTable(ctx, w, u)
		}
	case *pgsql.Comment:
		run = func(ctx context.Context, _ pgwire.Writer) (string, error) { return "COMMENT", s.comment(ctx, u) }
	default:
		return nil, pgerr.Newf(pgerr.FeatureNotSupported, "%s is not supported", b.p.stmt.Tag)
	}
	whole := func(ctx context.Context, w pgwire.Writer) (string, error) {
		if err := s.tx.writable(b.p.stmt.Tag); err != nil {
			return "", err
		}
		if err := s.lockDefined(ctx, b.p.util); err != nil {
			return "", err
		}
		mark := s.tx.warehouseTx().Savepoint()
		tag, err := run(ctx, w)
		if err != nil {
			if rerr := s.tx.wh.RollbackTo(mark); rerr != nil {
				s.gw.log.Error().Err(rerr).Msg("roll back a failed statement")
			}
			return "", err
		}
		return tag, nil
	}
	return func(ctx context.Context, w pgwire.Writer) (string, error) {
		tag, err := whole(ctx, w)
		if err != nil {
			return "", err
		}
		return s.remember(ctx, b, tag, func(ctx context.Context) (string, error) { return whole(ctx, w) })
	}, nil
}

// createIn is where CREATE puts an object: the named schema, else the first existing one of the search path.
func (s *session) createIn(schema, name string) (table.Identifier, error) {
	tx := s.tx.warehouseTx()
	if schema == "" {
		if path := splitList(s.gucs.now.searchPath); len(path) > 0 && path[0] == tempAlias {
			return identOf(s.ensureTemp().name, name), nil
		}
		for _, sch := range s.namedPath() {
			if tx.NamespaceExists(strings.Split(sch, ".")) {
				return identOf(sch, name), nil
			}
		}
		return nil, pgerr.New(pgerr.InvalidSchemaName, "no schema has been selected to create in")
	}
	if strings.HasPrefix(schema, tempAlias) {
		return nil, pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", schema)
	}
	if reservedSchema(schema) {
		return nil, pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied for schema %s", schema)
	}
	if !tx.NamespaceExists(strings.Split(schema, ".")) {
		return nil, pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", schema)
	}
	return identOf(schema, name), nil
}

func reservedSchema(schema string) bool {
	return schema == "skade" || schema == "information_schema" || strings.HasPrefix(schema, "pg_")
}

func (s *session) createSchema(ctx context.Context, w pgwire.Writer, u *pgsql.CreateSchema) error {
	if reservedSchema(u.Name) {
		if strings.HasPrefix(u.Name, "pg_") {
			return pgerr.Newf(pgerr.ReservedName, "unacceptable schema name \"%s\"", u.Name).WithDetail("The prefix \"pg_\" is reserved for system schemas.")
		}
		return pgerr.Newf(pgerr.DuplicateSchema, "schema \"%s\" already exists", u.Name)
	}
	ns := strings.Split(u.Name, ".")
	tx := s.tx.warehouseTx()
	if tx.NamespaceExists(ns) {
		if u.IfNotExists {
			w.Notice(&pgerr.Error{Severity: pgerr.SevNotice, Code: pgerr.DuplicateSchema, Message: fmt.Sprintf("schema \"%s\" already exists, skipping", u.Name)})
			return nil
		}
		return pgerr.Newf(pgerr.DuplicateSchema, "schema \"%s\" already exists", u.Name)
	}
	return tx.CreateNamespace(ctx, ns, iceberg.Properties{"owner": s.user()})
}

// exists reports whether a table or a view has the name.
func (s *session) exists(ctx context.Context, ident table.Identifier) (bool, error) {
	if _, err := s.table(ctx, ident); err == nil {
		return true, nil
	} else if !notFound(err) {
		return false, err
	}
	if v, err := s.view(ident); v != nil || err != nil {
		return v != nil, err
	}
	q, err := s.sequence(ident)
	return q != nil, err
}

// refuseExisting handles IF NOT EXISTS: skip reports that the statement is done.
func (s *session) refuseExisting(ctx context.Context, w pgwire.Writer, ident table.Identifier, ifNotExists bool) (skip bool, err error) {
	ok, err := s.exists(ctx, ident)
	if err != nil || !ok {
		return false, err
	}
	name := ident[len(ident)-1]
	if ifNotExists {
		w.Notice(&pgerr.Error{Severity: pgerr.SevNotice, Code: pgerr.DuplicateTable, Message: fmt.Sprintf("relation \"%s\" already exists, skipping", name)})
		return true, nil
	}
	return false, pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", name)
}

// storableNumerics casts the numerics of a query, whose DECIMALs and texts have any scale, to the one that columns without precision have.
func storableNumerics(sql string, out []pgsql.OutCol, cols []pgsql.RelColumn) string {
	var sel, names strings.Builder
	bare := false
	for i, c := range cols {
		name := "n" + strconv.Itoa(i)
		expr := "n." + name
		switch as := ", '" + strings.ReplaceAll(c.Name, "'", "''") + "')"; {
		case c.Type != pgtype.Numeric || c.Mod >= 0:
		case out[i].Trim:
			bare = true
			expr = "skade_fn.store_numeric(" + expr + ", CAST(" + expr + " AS DECIMAL(38,9))" + as
		default:
			bare = true
			expr = "skade_fn.store_numeric_text(CAST(" + expr + " AS VARCHAR)" + as
		}
		if i > 0 {
			sel.WriteString(", ")
			names.WriteString(", ")
		}
		sel.WriteString(expr)
		names.WriteString(name)
	}
	if !bare {
		return sql
	}
	return "SELECT " + sel.String() + " FROM (" + sql + ") AS n(" + names.String() + ")"
}

// findTable resolves a table's name. Errors: 42P01, 42809.
func (s *session) findTable(ctx context.Context, n pgsql.QName) (*warehouse.TxTable, error) {
	t, v, err := s.findRelation(ctx, n)
	if err != nil {
		return nil, err
	}
	if v != nil {
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", n.Name)
	}
	if t == nil {
		return nil, undefinedTable(n)
	}
	return t, nil
}

func undefinedTable(n pgsql.QName) error {
	name := n.Name
	if n.Schema != "" {
		name = n.Schema + "." + name
	}
	return pgerr.Newf(pgerr.UndefinedTable, "relation \"%s\" does not exist", name).WithPosition(n.Loc)
}

// findRelation finds a table, or the identifier of a view; all nil when there is neither.
func (s *session) findRelation(ctx context.Context, n pgsql.QName) (*warehouse.TxTable, table.Identifier, error) {
	schemas := []string{s.schemaName(n.Schema)}
	if n.Schema == "" {
		schemas = s.effectivePath()
	}
	for _, sch := range schemas {
		ident := identOf(sch, n.Name)
		t, err := s.table(ctx, ident)
		if err == nil {
			return t, nil, nil
		}
		if !notFound(err) {
			return nil, nil, err
		}
		v, err := s.view(ident)
		if err != nil {
			return nil, nil, err
		}
		if v != nil {
			return nil, ident, nil
		}
	}
	if n.Schema != "" && !reservedSchema(n.Schema) && !s.tx.warehouseTx().NamespaceExists(strings.Split(n.Schema, ".")) {
		return nil, nil, pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", n.Schema)
	}
	return nil, nil, nil
}

// dependent is an object that goes with its schema.
type dependent struct {
	name string // "table t", with the schema when it is not on the path
	oid  uint32
	drop func(ctx context.Context) error
	// table is the one that a default is of, "" for what is no default.
	table catalog.TableKey
}

// inSchema lists a schema's tables and views in the order of their making.
func (s *session) inSchema(tx *warehouse.Tx, ns table.Identifier) []dependent {
	var out []dependent
	label := func(kind, name string) string {
		if schema := strings.Join(ns, "."); !slices.Contains(s.effectivePath(), schema) {
			return kind + " " + pgsql.QuoteIdent(schema) + "." + pgsql.QuoteIdent(name)
		}
		return kind + " " + pgsql.QuoteIdent(name)
	}
	for _, o := range tx.Objects(viewKind) {
		if slices.Equal(o.Namespace, ns) {
			out = append(out, dependent{label("view", o.Name), o.OID, func(ctx context.Context) error { return tx.DropObject(ctx, viewKind, ns, o.Name) }, ""})
		}
	}
	for _, o := range tx.Objects(sequenceKind) {
		// Owned sequences go with their tables, unnamed.
		if q, err := decodeSequence(o); slices.Equal(o.Namespace, ns) && (err != nil || s.ownerTable(q) == nil) {
			out = append(out, dependent{label("sequence", o.Name), o.OID, func(ctx context.Context) error { return tx.DropObject(ctx, sequenceKind, ns, o.Name) }, ""})
		}
	}
	for _, t := range tx.Tables() {
		if slices.Equal(t.Ident[:len(t.Ident)-1], ns) {
			oid := uint32(math.MaxUint32) // made in this transaction
			switch {
			case t.State != nil:
				oid = t.State.OID
			case t.Own.PrivateOID() != 0:
				oid = t.Own.PrivateOID()
			}
			out = append(out, dependent{label("table", t.Ident[len(t.Ident)-1]), oid, func(ctx context.Context) error { return s.dropTable(ctx, t.Ident, t.Key) }, ""})
		}
	}
	slices.SortFunc(out, func(a, b dependent) int { return cmp.Compare(a.oid, b.oid) })
	return out
}

// noticeCascade tells what went with a schema.
func noticeCascade(w pgwire.Writer, inside []dependent) {
	switch len(inside) {
	case 0:
	case 1:
		w.Notice(notice("drop cascades to " + inside[0].name))
	default:
		lines := make([]string, len(inside))
		for i, d := range inside {
			lines[i] = "drop cascades to " + d.name
		}
		w.Notice(notice("drop cascades to "+strconv.Itoa(len(inside))+" other objects").WithDetail("%s", strings.Join(lines, "\n")))
	}
}

func (s *session) truncate(ctx context.Context, u *pgsql.Truncate) error {
	for _, n := range u.Tables {
		n.Loc = 0 // PostgreSQL tells no position here
		t, err := s.findTable(ctx, n)
		if err != nil {
			return err
		}
		if _, err := t.Truncate(ctx); err != nil {
			return err
		}
		if u.RestartIdentity {
			if err := s.restartSequences(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}
