package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/pgwire"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// alteration is a running ALTER TABLE: what the table will be. Its actions change the alteration; finish checks the rows, changes
// the metadata and rewrites the rows where values change, all inside the transaction.
type alteration struct {
	s   *session
	w   pgwire.Writer
	t   *warehouse.TxTable
	old *pgsql.Relation // as it was
	// fields are the new columns in order; keys the identifier fields in key order.
	fields []alteredField
	keys   []int
	// def is what the table declares beyond its schema; props and gone are other properties to set and remove.
	def   *tableDef
	props iceberg.Properties
	gone  []string
	// opts are changes of the format version, the partitioning and the sort order.
	opts tableOptions
	// nextID is the next field id: ids are never used again.
	nextID int
	// notNull are columns, by field id, whose old rows have to be looked at; newKey is set when keys have to be unique.
	notNull []int
	newKey  bool
	// checks are the constraints, by name, that old rows have to satisfy.
	checks []string
	// cascade is dropped with what it depends on.
	cascade []dependent
	// dropped are the places of old columns that go.
	dropped []int
}

// alteredField is a column of the table to be.
type alteredField struct {
	iceberg.NestedField
	// oid and mod are its PostgreSQL type.
	oid uint32
	mod int32
	// from is the old column it was, -1 for a new one.
	from int
	// rewrite says that its values are not those of the old column: expr computes them from the old row; "" casts the old value, or
	// takes the default.
	rewrite bool
	expr    string
	loc     int
	// retyped: its type was changed; a statement changes one once.
	retyped bool
	// nextval is the expression that gives old rows their numbers in a new serial or identity column.
	nextval string
}

// alterPasses is the order in which PostgreSQL runs the actions of one statement: what goes before what comes (ATPrepCmd).
var alterPasses = map[pgsql.AlterKind]int{
	pgsql.DropColumn: 0, pgsql.DropConstraint: 0, pgsql.DropNotNull: 0, pgsql.DropDefault: 0, pgsql.DropExpression: 0, pgsql.DropIdentity: 0,
	pgsql.AlterColumnType: 1, pgsql.AddColumn: 2, pgsql.SetNotNull: 3, pgsql.SetIdentity: 3,
	pgsql.AddConstraint: 4, pgsql.SetDefault: 5, pgsql.AddIdentity: 5, pgsql.ValidateConstraint: 6, pgsql.SetOptions: 6, pgsql.ResetOptions: 6, pgsql.OwnerTo: 6,
}

// alterTable runs ALTER TABLE and ALTER VIEW with actions.
func (s *session) alterTable(ctx context.Context, w pgwire.Writer, u *pgsql.AlterTable) error {
	t, err := s.alterTarget(ctx, w, u)
	if t == nil || err != nil {
		return err
	}
	a, err := s.newAlteration(ctx, w, t)
	if err != nil {
		return err
	}
	actions := slices.Clone(u.Actions)
	slices.SortStableFunc(actions, func(x, y pgsql.AlterAction) int { return alterPasses[x.Do] - alterPasses[y.Do] })
	for i := range actions {
		if err := a.act(ctx, &actions[i]); err != nil {
			return err
		}
	}
	return a.finish(ctx)
}

// alterTarget finds the table; nil without an error when there is none and IF EXISTS was given.
func (s *session) alterTarget(ctx context.Context, w pgwire.Writer, u *pgsql.AlterTable) (*warehouse.TxTable, error) {
	if s.systemSchema(u.Name.Schema) {
		return nil, pgerr.Newf(pgerr.InsufficientPrivilege, "permission denied: \"%s\" is a system catalog", u.Name.Name)
	}
	name := u.Name
	name.Loc = 0 // PostgreSQL tells no position here
	t, view, err := s.findRelation(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case t == nil && view == nil:
		if u.IfExists {
			skipMissing(w, "relation", name.Name)
			return nil, nil
		}
		return nil, undefinedTable(name)
	case u.What == "view" && view == nil:
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not a view", name.Name)
	case view != nil:
		return nil, s.alterView(u, name)
	case u.What != "table":
		return nil, pgerr.Newf(pgerr.WrongObjectType, "\"%s\" is not %s %s", name.Name, article(u.What), u.What)
	}
	return t, nil
}

func article(what string) string {
	if strings.ContainsAny(what[:1], "aeio") {
		return "an"
	}
	return "a"
}

// alterView refuses what cannot be done to a view: all actions but OWNER TO.
func (s *session) alterView(u *pgsql.AlterTable, name pgsql.QName) error {
	for _, a := range u.Actions {
		switch a.Do {
		case pgsql.OwnerTo:
			if err := s.newOwner(a.Column); err != nil {
				return err
			}
		case pgsql.SetDefault, pgsql.DropDefault, pgsql.SetOptions, pgsql.ResetOptions:
			return pgerr.Newf(pgerr.FeatureNotSupported, "ALTER VIEW ... %s is not supported", a.Do).WithDetail("Views of skade-pg are not updatable.")
		default:
			action := string(a.Do)
			if a.Do == pgsql.AlterColumnType {
				action = "ALTER COLUMN ... SET DATA TYPE"
			}
			return pgerr.Newf(pgerr.WrongObjectType, "ALTER action %s cannot be performed on relation \"%s\"", action, name.Name).
				WithDetail("This operation is not supported for views.")
		}
	}
	return nil
}

// newOwner accepts a role that may log in: all of them are the owner.
func (s *session) newOwner(role string) error {
	if role == "" || role == s.user() {
		return nil
	}
	for _, r := range s.gw.catalogRoles() {
		if r.Name == role {
			return nil
		}
	}
	return pgerr.Newf(pgerr.UndefinedObject, "role \"%s\" does not exist", role)
}

func (s *session) newAlteration(ctx context.Context, w pgwire.Writer, t *warehouse.TxTable) (*alteration, error) {
	sc, md := t.Schema(), t.Metadata()
	a := &alteration{
		s: s, w: w, t: t, old: tableRelation(t), def: readTableDef(md.Properties()), props: iceberg.Properties{},
		keys: sqlfuncs.KeyOrder(sc.IdentifierFieldIDs, md.Properties()), nextID: md.LastColumnID() + 1,
	}
	for i, f := range sc.Fields() {
		oid, mod := pgtype.FromIceberg(f, md.Properties())
		a.fields = append(a.fields, alteredField{NestedField: f, oid: oid, mod: mod, from: i})
	}
	return a, nil
}

func (a *alteration) name() string { return a.old.Name }

// act runs one action.
func (a *alteration) act(ctx context.Context, x *pgsql.AlterAction) error {
	switch x.Do {
	case pgsql.NoAction:
		_, err := a.column(x.Column)
		return err
	case pgsql.AddColumn:
		return a.addColumn(ctx, x)
	case pgsql.DropColumn:
		return a.dropColumn(ctx, x)
	case pgsql.AlterColumnType:
		return a.alterType(ctx, x)
	case pgsql.SetDefault, pgsql.DropDefault:
		return a.setDefault(ctx, x)
	case pgsql.SetNotNull, pgsql.DropNotNull:
		return a.setNotNull(x)
	case pgsql.AddConstraint:
		return a.addConstraints(ctx, x.Constraints)
	case pgsql.DropConstraint:
		return a.dropConstraint(x)
	case pgsql.ValidateConstraint:
		return a.validateConstraint(x)
	case pgsql.SetOptions, pgsql.ResetOptions:
		return a.setOptions(x)
	case pgsql.OwnerTo:
		return a.s.newOwner(x.Column)
	}
	return a.actIdentity(ctx, x)
}

// column finds a column of the table to be. 42703.
func (a *alteration) column(name string) (*alteredField, error) {
	for i := range a.fields {
		if a.fields[i].Name == name {
			return &a.fields[i], nil
		}
	}
	return nil, pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, a.name())
}

func (a *alteration) fieldByID(id int) *alteredField {
	for i := range a.fields {
		if a.fields[i].ID == id {
			return &a.fields[i]
		}
	}
	return nil
}

// columnError is an error about one column, with the fields that drivers read.
func (a *alteration) columnError(code pgerr.Code, column, format string, args ...any) *pgerr.Error {
	e := pgerr.Newf(code, format, args...)
	e.Schema, e.Table, e.Column = a.old.Schema, a.old.Name, column
	return e
}

// newFieldID takes the next id for a column; a list's element has one of its own.
func (a *alteration) newFieldID(f *iceberg.NestedField) {
	f.ID = a.nextID
	a.nextID++
	if l, ok := f.Type.(*iceberg.ListType); ok {
		f.Type = &iceberg.ListType{ElementID: a.nextID, Element: l.Element, ElementRequired: l.ElementRequired}
		a.nextID++
	}
}

// setType keeps a column's declared type where Iceberg's would lose it.
func (a *alteration) setType(id int, property string) {
	key := pgtype.PropertyKey(id)
	if property != "" {
		a.props[key] = property
		return
	}
	a.unset(key)
}

// unset removes a property.
func (a *alteration) unset(key string) {
	delete(a.props, key)
	if _, ok := a.t.Metadata().Properties()[key]; ok && !slices.Contains(a.gone, key) {
		a.gone = append(a.gone, key)
	}
}

// schema is the schema to be.
func (a *alteration) schema() *iceberg.Schema {
	next := 0
	for _, sc := range a.t.Metadata().Schemas() {
		next = max(next, sc.ID+1)
	}
	fields := make([]iceberg.NestedField, len(a.fields))
	for i, f := range a.fields {
		fields[i] = f.NestedField
		if slices.Contains(a.keys, f.ID) {
			fields[i].Required = true
		}
	}
	ids := slices.Clone(a.keys)
	slices.Sort(ids)
	return iceberg.NewSchemaWithIdentifiers(next, ids, fields...)
}

// keyProperty keeps the key's order where the schema's identifier fields would lose it.
func (a *alteration) keyProperty() {
	if slices.IsSorted(a.keys) {
		a.unset(propPrimaryKey)
		return
	}
	parts := make([]string, len(a.keys))
	for i, id := range a.keys {
		parts[i] = fmt.Sprint(id)
	}
	a.props[propPrimaryKey] = strings.Join(parts, ",")
}

// updates are the metadata updates of the whole statement.
func (a *alteration) updates() ([]table.Update, error) {
	md := a.t.Metadata()
	var out []table.Update
	if v := a.opts.format; v > md.Version() {
		out = append(out, table.NewUpgradeFormatVersionUpdate(v))
	}
	sc := a.schema()
	if !sc.Equals(md.CurrentSchema()) {
		out = append(out, table.NewAddSchemaUpdate(sc), table.NewSetCurrentSchemaUpdate(-1))
	}
	layout, err := a.opts.updates(md, sc)
	if err != nil {
		return nil, err
	}
	out = append(out, layout...)
	a.keyProperty()
	for k, v := range a.props {
		if md.Properties()[k] == v {
			delete(a.props, k)
		}
	}
	if len(a.props) > 0 {
		out = append(out, table.NewSetPropertiesUpdate(a.props))
	}
	if len(a.gone) > 0 {
		slices.Sort(a.gone)
		out = append(out, table.NewRemovePropertiesUpdate(a.gone))
	}
	return append(out, a.def.updates(md.Properties())...), nil
}
