package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icecatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// Table properties of ours.
const (
	propPrimaryKey = "skade.primary-key" // field ids in key order, comma-separated, when it is not the schema's order
	propConstraint = "skade.constraint"  // the primary key's name when it is not <table>_pkey
	propDefault    = "skade.default."    // + field id: a DEFAULT's SQL text
	propComment    = "comment"           // the table's comment, as other engines keep it
)

func defaultKey(fieldID int) string { return propDefault + strconv.Itoa(fieldID) }

func constraintName(ident table.Identifier, props iceberg.Properties) string {
	if n := props[propConstraint]; n != "" {
		return n
	}
	return ident[len(ident)-1] + "_pkey"
}

// keyOrder is the identifier fields in the primary key's order.
func keyOrder(ids []int, props iceberg.Properties) []int {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	var out []int
	for part := range strings.SplitSeq(props[propPrimaryKey], ",") {
		if id, err := strconv.Atoi(part); err == nil && slices.Contains(ids, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	if len(out) != len(ids) {
		return ids
	}
	return out
}

// ddlCommand is CREATE, DROP, TRUNCATE, ALTER and COMMENT. Each leaves no trace when it fails.
func (s *session) ddlCommand(b binding) (commandFunc, error) {
	var run commandFunc
	switch u := b.p.util.(type) {
	case *pgsql.CreateSchema:
		run = func(ctx context.Context, w pgwire.Writer) (string, error) {
			return "CREATE SCHEMA", s.createSchema(ctx, w, u)
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
		run = func(ctx context.Context, _ pgwire.Writer) (string, error) {
			return "ALTER " + strings.ToUpper(u.What), s.alter(ctx, u)
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
		return s.remember(ctx, b, "", tag, func(ctx context.Context) (string, error) { return whole(ctx, w) })
	}, nil
}

// createIn is where CREATE puts an object: the named schema, else the first existing one of the search path.
func (s *session) createIn(schema, name string) (table.Identifier, error) {
	tx := s.tx.warehouseTx()
	if schema == "" {
		for _, sch := range s.effectivePath() {
			if tx.NamespaceExists(strings.Split(sch, ".")) {
				return identOf(sch, name), nil
			}
		}
		return nil, pgerr.New(pgerr.InvalidSchemaName, "no schema has been selected to create in")
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
	v, err := s.view(ident)
	return v != nil, err
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

// newTable collects what CREATE TABLE and CREATE TABLE AS have in common.
type newTable struct {
	ident  table.Identifier
	fields []iceberg.NestedField
	keys   []int
	props  iceberg.Properties
	format int
	// computed is CREATE TABLE AS: an average has more digits than a column keeps.
	computed bool
}

func (n *newTable) addColumn(w pgwire.Writer, name string, oid uint32, mod int32) (*iceberg.NestedField, error) {
	id := len(n.fields) + 1
	typ, prop, msg, err := pgtype.ToIceberg(oid, mod)
	if err != nil {
		return nil, err
	}
	if msg != "" {
		if n.computed {
			msg = strings.Replace(msg, "values that do not fit are refused", "computed values are rounded to it", 1)
		}
		w.Notice(notice(fmt.Sprintf("column \"%s\": %s", name, msg)))
	}
	if prop != "" {
		n.props[pgtype.PropertyKey(id)] = prop
	}
	for _, f := range n.fields {
		if f.Name == name {
			return nil, pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", name)
		}
	}
	n.fields = append(n.fields, iceberg.NestedField{ID: id, Name: name, Type: typ})
	return &n.fields[len(n.fields)-1], nil
}

// options reads WITH (…): format_version, and table properties in quotes.
func (n *newTable) options(with map[string]string) error {
	for k, v := range with {
		switch {
		case k == "format_version":
			switch v {
			case "2":
				n.format = 2
			case "3":
				n.format = 3
			default:
				return pgerr.Newf(pgerr.InvalidParameterValue, "invalid value for option \"format_version\": \"%s\"", v).WithHint("Format versions 2 and 3 are supported.")
			}
		case strings.ContainsAny(k, ".-") && !strings.HasPrefix(k, "skade."):
			n.props[k] = v
		default:
			return pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized parameter \"%s\"", k).WithHint("Supported: format_version, and Iceberg table properties in double quotes.")
		}
	}
	return nil
}

func (n *newTable) create(ctx context.Context, s *session) (*warehouse.TxTable, error) {
	// List elements come after the columns, whose ids are their places.
	next := len(n.fields)
	for i := range n.fields {
		if l, ok := n.fields[i].Type.(*iceberg.ListType); ok {
			next++
			n.fields[i].Type = &iceberg.ListType{ElementID: next, Element: l.Element, ElementRequired: l.ElementRequired}
		}
	}
	sc := iceberg.NewSchemaWithIdentifiers(0, n.keys, n.fields...)
	return s.tx.warehouseTx().CreateTable(ctx, warehouse.CreateTable{Ident: n.ident, Schema: sc, FormatVersion: n.format, Properties: n.props})
}

func (s *session) createTable(ctx context.Context, w pgwire.Writer, u *pgsql.CreateTable) error {
	if u.Temp {
		return pgerr.New(pgerr.FeatureNotSupported, "temporary tables are not supported")
	}
	ident, err := s.createIn(u.Schema, u.Name)
	if err != nil {
		if e := pgerr.As(err); e != nil && e.Code == pgerr.InvalidSchemaName {
			return e.WithPosition(u.Loc)
		}
		return err
	}
	if skip, err := s.refuseExisting(ctx, w, ident, u.IfNotExists); skip || err != nil {
		return err
	}
	n := &newTable{ident: ident, props: iceberg.Properties{}, format: 2}
	if err := n.options(u.With); err != nil {
		return err
	}
	for _, c := range u.Columns {
		if c.Serial || c.Identity != "" {
			return pgerr.Newf(pgerr.FeatureNotSupported, "column \"%s\": serial and identity columns are not supported", c.Name).WithPosition(c.Loc)
		}
		f, err := n.addColumn(w, c.Name, c.Type, c.Mod)
		if err != nil {
			if e := pgerr.As(err); e != nil && e.Position == 0 {
				return e.WithPosition(c.Loc)
			}
			return err
		}
		f.Required = c.NotNull || slices.Contains(u.PrimaryKey, c.Name)
		if c.Default != "" {
			if err := pgsql.CheckDefault(c, &resolver{ctx: ctx, s: s}); err != nil {
				if e := pgerr.As(err); e != nil && e.Position == 0 {
					return e.WithPosition(c.DefaultLoc)
				}
				return err
			}
			n.props[defaultKey(f.ID)] = c.Default
		}
	}
	if err := n.primaryKey(u); err != nil {
		return err
	}
	_, err = n.create(ctx, s)
	return err
}

func (n *newTable) primaryKey(u *pgsql.CreateTable) error {
	var order []string
	for _, k := range u.PrimaryKey {
		i := slices.IndexFunc(n.fields, func(f iceberg.NestedField) bool { return f.Name == k })
		if i < 0 {
			return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" named in key does not exist", k)
		}
		switch n.fields[i].Type.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			return pgerr.Newf(pgerr.FeatureNotSupported, "primary key column \"%s\" cannot be of type %s", k, pgtype.FormatNoTypmod(u.Columns[i].Type)).
				WithHint("Iceberg forbids floating-point identifier fields.")
		case *iceberg.ListType:
			return pgerr.Newf(pgerr.FeatureNotSupported, "primary key column \"%s\" cannot be an array", k)
		}
		n.keys = append(n.keys, i+1)
		order = append(order, strconv.Itoa(i+1))
	}
	if !slices.IsSorted(n.keys) {
		n.props[propPrimaryKey] = strings.Join(order, ",")
		slices.Sort(n.keys)
	}
	if u.ConstraintName != "" {
		n.props[propConstraint] = u.ConstraintName
	}
	return nil
}

// createTableAs runs CREATE TABLE AS and SELECT INTO. WITH (primary_key = 'a, b') gives the new table a key.
func (s *session) createTableAs(ctx context.Context, w pgwire.Writer, b binding, u *pgsql.CreateTableAs) (string, error) {
	if u.Temp {
		return "", pgerr.New(pgerr.FeatureNotSupported, "temporary tables are not supported")
	}
	in := b.p.inner
	if in == nil {
		return "", pgerr.New(pgerr.FeatureNotSupported, "CREATE TABLE AS EXECUTE is not supported")
	}
	ident, err := s.createIn(u.Schema, u.Name)
	if err != nil {
		return "", err
	}
	if skip, err := s.refuseExisting(ctx, w, ident, u.IfNotExists); skip || err != nil {
		return "CREATE TABLE AS", err
	}
	if len(u.Columns) > len(in.cols) {
		return "", pgerr.New(pgerr.SyntaxError, "too many column names were specified")
	}
	n := &newTable{ident: ident, props: iceberg.Properties{}, format: 2, computed: true}
	pk := u.With["primary_key"]
	delete(u.With, "primary_key")
	if err := n.options(u.With); err != nil {
		return "", err
	}
	cols := make([]pgsql.RelColumn, len(in.cols))
	names := splitList(pk)
	ct := &pgsql.CreateTable{PrimaryKey: names}
	for i, c := range in.query.Columns {
		name, oid := c.Name, c.Type
		if i < len(u.Columns) {
			name = u.Columns[i]
		}
		if oid == pgtype.Unknown {
			oid = pgtype.Text
		}
		f, err := n.addColumn(w, name, oid, c.Mod)
		if err != nil {
			return "", err
		}
		f.Required = slices.Contains(names, name)
		ct.Columns = append(ct.Columns, pgsql.ColumnDef{Name: name, Type: oid})
		cols[i] = pgsql.RelColumn{Name: name, Type: oid, Mod: c.Mod}
	}
	if err := n.primaryKey(ct); err != nil {
		return "", err
	}
	t, err := n.create(ctx, s)
	if err != nil || u.NoData {
		return "CREATE TABLE AS", err
	}
	rows, err := s.fill(ctx, t, binding{p: in, args: b.args}, cols)
	return "SELECT " + itoa(rows), err
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

// fill appends a query's rows to a new table.
func (s *session) fill(ctx context.Context, t *warehouse.TxTable, b binding, cols []pgsql.RelColumn) (int64, error) {
	wrap := func(sql string) string { return storedSQL(storableNumerics(sql, b.p.query.Columns, cols), 0, cols, 0) }
	d, err := s.startWrapped(ctx, b, b.p.query, nil, wrap)
	if err != nil {
		return 0, err
	}
	defer d.close()
	var n int64
	as := t.ArrowSchema()
	err = d.eachBatch(ctx, func(rec arrow.RecordBatch) error {
		rows, err := conform(rec, 0, as)
		if err != nil {
			return err
		}
		defer rows.Release()
		n += rows.NumRows()
		return t.Append(ctx, rows)
	})
	return n, err
}

func (s *session) createView(ctx context.Context, w pgwire.Writer, u *pgsql.CreateView) error {
	if u.Temp {
		return pgerr.New(pgerr.FeatureNotSupported, "temporary views are not supported")
	}
	ident, err := s.createIn(u.Schema, u.Name)
	if err != nil {
		return err
	}
	if _, err := s.table(ctx, ident); err == nil {
		if u.Replace {
			return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", u.Name)
		}
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", u.Name)
	}
	old, err := s.view(ident)
	if err != nil {
		return err
	}
	if old != nil && !u.Replace {
		return pgerr.Newf(pgerr.DuplicateTable, "relation \"%s\" already exists", u.Name)
	}
	text, cols, err := pgsql.NormalizeView(u, &resolver{ctx: ctx, s: s})
	if err != nil {
		return s.sqlError(ctx, err)
	}
	v := storedView{SQL: text, Text: u.Text}
	for _, c := range cols {
		oid := c.Type
		if oid == pgtype.Unknown {
			oid = pgtype.Text
		}
		if slices.ContainsFunc(v.Columns, func(o viewColumn) bool { return o.Name == c.Name }) {
			return pgerr.Newf(pgerr.DuplicateColumn, "column \"%s\" specified more than once", c.Name)
		}
		v.Columns = append(v.Columns, viewColumn{Name: c.Name, OID: oid, Mod: c.Mod})
	}
	if old != nil {
		if err := sameViewColumns(old.Columns, v.Columns); err != nil {
			return err
		}
	}
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode view: %w", err)
	}
	return s.tx.warehouseTx().PutObject(ctx, catalog.Object{Kind: viewKind, Namespace: ident[:len(ident)-1], Name: u.Name, Payload: payload}, u.Replace)
}

// sameViewColumns is CREATE OR REPLACE VIEW's rule: the old columns stay, new ones may follow.
func sameViewColumns(old, now []viewColumn) error {
	if len(now) < len(old) {
		return pgerr.New(pgerr.InvalidTableDefinition, "cannot drop columns from view")
	}
	for i, c := range old {
		if now[i].Name != c.Name {
			return pgerr.Newf(pgerr.InvalidTableDefinition, "cannot change name of view column \"%s\" to \"%s\"", c.Name, now[i].Name).
				WithHint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
		}
		if now[i].OID != c.OID {
			return pgerr.Newf(pgerr.InvalidTableDefinition, "cannot change data type of view column \"%s\" from %s to %s", c.Name, pgtype.Format(c.OID, c.Mod), pgtype.Format(now[i].OID, now[i].Mod))
		}
	}
	return nil
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
	schemas := []string{n.Schema}
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
	return nil, nil, nil
}

func (s *session) drop(ctx context.Context, w pgwire.Writer, u *pgsql.Drop) error {
	for _, n := range u.Names {
		var err error
		if u.What == "schema" {
			err = s.dropSchema(ctx, w, n, u)
		} else {
			err = s.dropRelation(ctx, w, n, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func skipMissing(w pgwire.Writer, what, name string) {
	w.Notice(notice(fmt.Sprintf("%s \"%s\" does not exist, skipping", what, name)))
}

func (s *session) dropRelation(ctx context.Context, w pgwire.Writer, n pgsql.QName, u *pgsql.Drop) error {
	if reservedSchema(n.Schema) {
		return pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", n.Name)
	}
	t, view, err := s.findRelation(ctx, n)
	switch {
	case err != nil:
		return err
	case t == nil && view == nil:
		if u.IfExists {
			skipMissing(w, u.What, n.Name)
			return nil
		}
		name := n.Name
		if n.Schema != "" {
			name = n.Schema + "." + name
		}
		return pgerr.Newf(pgerr.UndefinedTable, "%s \"%s\" does not exist", u.What, name)
	case t != nil && u.What == "view":
		return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", n.Name).WithHint("Use DROP TABLE to remove a table.")
	case view != nil && u.What == "table":
		return pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a table", n.Name).WithHint("Use DROP VIEW to remove a view.")
	case t != nil:
		return s.tx.warehouseTx().DropTable(ctx, t.Ident(), false)
	}
	return s.tx.warehouseTx().DropObject(ctx, viewKind, view[:len(view)-1], view[len(view)-1])
}

func (s *session) dropSchema(ctx context.Context, w pgwire.Writer, n pgsql.QName, u *pgsql.Drop) error {
	tx := s.tx.warehouseTx()
	ns := strings.Split(n.Name, ".")
	if reservedSchema(n.Name) {
		return pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop schema %s because it is required by the database system", n.Name)
	}
	if !tx.NamespaceExists(ns) {
		if u.IfExists {
			skipMissing(w, "schema", n.Name)
			return nil
		}
		return pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", n.Name)
	}
	inside := s.inSchema(tx, ns)
	if len(inside) > 0 && !u.Cascade {
		return notEmpty(n.Name, inside)
	}
	for _, d := range inside {
		if err := d.drop(ctx); err != nil {
			return err
		}
	}
	noticeCascade(w, inside)
	err := tx.DropNamespace(ctx, ns)
	if errors.Is(err, icecatalog.ErrNamespaceNotEmpty) {
		return notEmpty(n.Name, nil)
	}
	return err
}

// dependent is an object that goes with its schema.
type dependent struct {
	name string // "table t", with the schema when it is not on the path
	oid  uint32
	drop func(ctx context.Context) error
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
			out = append(out, dependent{label("view", o.Name), o.OID, func(ctx context.Context) error { return tx.DropObject(ctx, viewKind, ns, o.Name) }})
		}
	}
	for _, t := range tx.Tables() {
		if slices.Equal(t.Ident[:len(t.Ident)-1], ns) {
			oid := uint32(math.MaxUint32) // made in this transaction
			if t.State != nil {
				oid = t.State.OID
			}
			out = append(out, dependent{label("table", t.Ident[len(t.Ident)-1]), oid, func(ctx context.Context) error { return tx.DropTable(ctx, t.Ident, false) }})
		}
	}
	slices.SortFunc(out, func(a, b dependent) int { return cmp.Compare(a.oid, b.oid) })
	return out
}

func notEmpty(schema string, inside []dependent) error {
	e := pgerr.Newf(pgerr.DependentObjectsStillExist, "cannot drop schema %s because other objects depend on it", schema).
		WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	lines := make([]string, len(inside))
	for i, d := range inside {
		lines[i] = d.name + " depends on schema " + schema
	}
	if len(lines) > 0 {
		return e.WithDetail("%s", strings.Join(lines, "\n"))
	}
	return e
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
	}
	return nil
}
