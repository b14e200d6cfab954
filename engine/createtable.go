package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/warehouse"
)

// newTable collects what CREATE TABLE and CREATE TABLE AS have in common.
type newTable struct {
	ident  table.Identifier
	fields []iceberg.NestedField
	keys   []int
	props  iceberg.Properties
	format int
	opts   tableOptions
	def    *tableDef
	// comments are those of columns, by name.
	comments map[string]string
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

// options reads WITH (…).
func (n *newTable) options(with map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(with)) {
		property, err := n.opts.set(name, with[name])
		if err != nil {
			return err
		}
		if property {
			n.props[name] = with[name]
		}
	}
	if n.opts.format != 0 {
		n.format = n.opts.format
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
	if err := n.writeDefaults(ctx, s); err != nil {
		return nil, err
	}
	sc := iceberg.NewSchemaWithIdentifiers(0, n.keys, n.fields...)
	maps.Copy(n.props, n.def.properties())
	c := warehouse.CreateTable{Ident: n.ident, Schema: sc, FormatVersion: n.format, Properties: n.props}
	var err error
	if c.Spec, c.SortOrder, err = n.opts.layout(sc); err != nil {
		return nil, err
	}
	return s.tx.warehouseTx().CreateTable(ctx, c)
}

// writeDefaults keeps constant defaults in a format 3 schema, for the writers of other engines.
func (n *newTable) writeDefaults(ctx context.Context, s *session) error {
	if n.format < 3 {
		return nil
	}
	for i := range n.fields {
		f := &n.fields[i]
		expr := n.def.columns[f.ID].Default
		if expr == "" {
			continue
		}
		oid, mod := pgtype.FromIceberg(*f, n.props)
		v, ok, err := s.keptDefault(ctx, *f, oid, mod, expr)
		if err != nil {
			return err
		}
		if ok {
			f.WriteDefault = v
		}
	}
	return nil
}

func (s *session) createTable(ctx context.Context, w pgwire.Writer, u *pgsql.CreateTable) error {
	ident, err := s.createWhere(u.Temp, u.Schema, u.Name)
	if err != nil {
		return wherePosition(err, u.Loc)
	}
	if skip, err := s.refuseExisting(ctx, w, ident, u.IfNotExists); skip || err != nil {
		return err
	}
	n := newTableOf(ident)
	if err := n.options(u.With); err != nil {
		return err
	}
	if err := s.onCommit(n, u.OnCommit); err != nil {
		return err
	}
	if u, err = s.expandLikes(ctx, u, n); err != nil {
		return err
	}
	if err := n.uniqueKey(w, u); err != nil {
		return err
	}
	for _, c := range u.Columns {
		f, err := n.addColumn(w, c.Name, c.Type, c.Mod)
		if err != nil {
			return located(err, c.Loc)
		}
		f.Required = c.NotNull || slices.Contains(u.PrimaryKey, c.Name)
		f.Doc = n.comments[c.Name]
	}
	if err := n.primaryKey(u); err != nil {
		return err
	}
	sequences, err := s.columnSequences(ctx, n, u)
	if err != nil {
		return err
	}
	if err := s.declareTable(ctx, n, u, sequences); err != nil {
		return err
	}
	t, err := n.create(ctx, s)
	if err != nil {
		return err
	}
	for _, q := range sequences {
		if q == nil {
			continue
		}
		q.Owner.Table = t.Key()
		if err := s.putSequence(ctx, q, false); err != nil {
			return err
		}
	}
	return nil
}

// wherePosition gives an error about the schema of a new relation the position that PostgreSQL gives.
func wherePosition(err error, loc int) error {
	if e := pgerr.As(err); e != nil && (e.Code == pgerr.InvalidSchemaName || e.Code == pgerr.InvalidTableDefinition) {
		return located(err, loc)
	}
	return err
}

// located gives an error a position when it has none.
func located(err error, loc int) error {
	if e := pgerr.As(err); e != nil && e.Position == 0 {
		return e.WithPosition(loc)
	}
	return err
}

// inExpression moves the position of an error in a declared expression, which counts from its own start, to the statement. An error about the
// whole expression has none, as in PostgreSQL.
func inExpression(err error, loc int) error {
	if e := pgerr.As(err); e != nil && e.Position > 0 {
		return e.WithPosition(max(loc+e.Position-pgsql.ForeignOffset-1, 0))
	}
	return err
}

func newTableOf(ident table.Identifier) *newTable {
	return &newTable{ident: ident, props: iceberg.Properties{}, format: 2, def: readTableDef(nil), comments: map[string]string{}}
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

// uniqueKey makes a UNIQUE constraint the table's key. Iceberg's identifier is the one key that a table has, and its columns are NOT NULL.
func (n *newTable) uniqueKey(w pgwire.Writer, u *pgsql.CreateTable) error {
	for _, k := range u.Unique {
		name := k.Name
		if name == "" {
			name = objectName(u.Name, strings.Join(k.Columns, "_"), "key")
		}
		for _, c := range k.Columns {
			if !slices.ContainsFunc(u.Columns, func(d pgsql.ColumnDef) bool { return d.Name == c }) {
				return pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" named in key does not exist", c).WithPosition(k.Loc)
			}
		}
		switch {
		case u.PrimaryKey == nil:
			for _, c := range u.Columns {
				if slices.Contains(k.Columns, c.Name) && !c.NotNull {
					return pgerr.New(pgerr.FeatureNotSupported, "a UNIQUE constraint on a column that may be NULL is not supported").
						WithHint("Declare column \"%s\" NOT NULL: the constraint then becomes the table's key.", c.Name).WithPosition(k.Loc)
				}
			}
			u.PrimaryKey, u.ConstraintName, n.def.unique = k.Columns, name, true
		case sameSet(u.PrimaryKey, k.Columns):
			w.Notice(notice(fmt.Sprintf("constraint \"%s\" covers the columns of the table's key, which is unique already: it is not kept", name)))
		default:
			return pgerr.Newf(pgerr.FeatureNotSupported, "a UNIQUE constraint beside the table's key (%s) is not supported", strings.Join(u.PrimaryKey, ", ")).
				WithHint("An Iceberg table has one identifier: PRIMARY KEY, or UNIQUE over NOT NULL columns.").WithPosition(k.Loc)
		}
	}
	return nil
}

func sameSet(a, b []string) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return len(a) == len(b)
}

// createTableAs runs CREATE TABLE AS and SELECT INTO. WITH (primary_key = 'a, b') gives the new table a key.
func (s *session) createTableAs(ctx context.Context, w pgwire.Writer, b binding, u *pgsql.CreateTableAs) (string, error) {
	in := b.p.inner
	if u.Query.Kind == pgsql.ExecuteStmt {
		ex, err := s.executed(ctx, b, u.Query)
		if err != nil {
			return "", err
		}
		if ex.p.query == nil || ex.p.stmt.Kind != pgsql.Select {
			return "", pgerr.New(pgerr.WrongObjectType, "prepared statement is not a SELECT")
		}
		in, b.args = ex.p, ex.args
	}
	if in == nil {
		return "", pgerr.Newf(pgerr.FeatureNotSupported, "CREATE TABLE AS %s is not supported", u.Query.Tag)
	}
	ident, err := s.createWhere(u.Temp, u.Schema, u.Name)
	if err != nil {
		return "", wherePosition(err, u.Loc)
	}
	if skip, err := s.refuseExisting(ctx, w, ident, u.IfNotExists); skip || err != nil {
		return "CREATE TABLE AS", err
	}
	if len(u.Columns) > len(in.cols) {
		return "", pgerr.New(pgerr.SyntaxError, "too many column names were specified")
	}
	n := newTableOf(ident)
	n.computed = true
	pk := u.With["primary_key"]
	delete(u.With, "primary_key")
	if err := n.options(u.With); err != nil {
		return "", err
	}
	if err := s.onCommit(n, u.OnCommit); err != nil {
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

// fill appends a query's rows to a new table.
func (s *session) fill(ctx context.Context, t *warehouse.TxTable, b binding, cols []pgsql.RelColumn) (int64, error) {
	if err := s.beginParts(ctx, b); err != nil {
		return 0, err
	}
	b, _, free, err := s.withParts(ctx, b)
	if err != nil {
		return 0, err
	}
	defer free()
	wrap := func(sql string) string { return storedSQL(storableNumerics(sql, b.p.query.Columns, cols), 0, cols, 0) }
	var d *duckRows
	err = s.settled(ctx, b.p, func() (err error) {
		d, err = s.startWrapped(ctx, b, b.p.query, nil, wrap)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer d.close()
	_, done := s.track("CREATE TABLE AS", tableRelation(t), s.tx.wh)
	defer done()
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
