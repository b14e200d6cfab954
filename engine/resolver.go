package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	icecatalog "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/engine/pgsql"
	"github.com/nordisk/skade-pg/internal/pgenc"
	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// resolver answers the analyser's questions from the session's transaction: pgsql.Resolver.
type resolver struct {
	ctx  context.Context
	s    *session
	deps []dependency
}

// handle is what Relation.Handle carries from analysis to execution.
type handle struct {
	table    table.Identifier          // a stored table
	system   *pgcatalog.SystemRelation // a relation of pg_catalog or information_schema
	view     *sqlfuncs.View            // a view of schema skade
	function *sqlfuncs.Function        // a call of a set-returning function
	sequence *storedSequence           // SELECT … FROM a sequence
	shape    *sqlfuncs.Shape
}

// identOf is the catalog's identifier of schema.name: a schema is a namespace, its levels joined by dots.
func identOf(schema, name string) table.Identifier {
	return append(strings.Split(schema, "."), name)
}

func schemaOf(ident table.Identifier) string { return strings.Join(ident[:len(ident)-1], ".") }

// effectivePath is where a relation's name is looked up besides pg_catalog and skade: search_path, and before it the temporary schema.
func (s *session) effectivePath() []string {
	path := s.namedPath()
	if s.temp() == nil || slices.Contains(path, s.temp().name) {
		return path
	}
	return append([]string{s.temp().name}, path...)
}

// namedPath is search_path with $user and pg_temp resolved; pg_catalog and skade are implicit and first.
func (s *session) namedPath() []string {
	var out []string
	for _, el := range splitList(s.gucs.now.searchPath) {
		if el == "$user" {
			el = s.user()
		}
		if el == "pg_catalog" || el == "skade" || el == tempAlias && s.temp() == nil {
			continue
		}
		out = append(out, s.schemaName(el))
	}
	return out
}

// splitList splits a list setting at commas, unquoting and folding as PostgreSQL does.
func splitList(v string) []string {
	var out []string
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == ' ' || c == ',':
			i++
		case c == '"':
			var b strings.Builder
			for i++; i < len(v); i++ {
				if v[i] == '"' {
					if i+1 < len(v) && v[i+1] == '"' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(v[i])
			}
			i++
			out = append(out, b.String())
		default:
			end := strings.IndexByte(v[i:], ',')
			if end < 0 {
				end = len(v) - i
			}
			if w := strings.TrimSpace(v[i : i+end]); w != "" {
				out = append(out, strings.ToLower(w))
			}
			i += end
		}
	}
	return out
}

// ResolveRelation implements pgsql.Resolver.
// SchemaExists implements pgsql.SchemaChecker.
func (r *resolver) SchemaExists(name string) bool {
	return name != tempAlias && reservedSchema(name) || r.s.readTx().NamespaceExists(strings.Split(name, "."))
}

func (r *resolver) ResolveRelation(schema, name string) (*pgsql.Relation, error) {
	if schema != "" {
		return r.relation(r.s.schemaName(schema), name)
	}
	path := append([]string{"pg_catalog", "skade"}, r.s.namedPath()...)
	if t := r.s.temp(); t != nil && !slices.Contains(path, t.name) {
		path = append([]string{t.name}, path...) // before pg_catalog, too
	}
	for _, sch := range path {
		known := len(r.deps)
		rel, err := r.relation(sch, name)
		for i := range r.deps[known:] {
			r.deps[known+i].searched = true
		}
		if rel != nil || err != nil {
			return rel, err
		}
	}
	return nil, nil
}

func (r *resolver) relation(schema, name string) (*pgsql.Relation, error) {
	if sys := pgcatalog.LookupRelation(schema, name); sys != nil {
		return systemRelation(sys), nil
	}
	if schema == "skade" {
		for _, v := range sqlfuncs.Views() {
			if v.Name == name {
				return skadeView(v), nil
			}
		}
	}
	ident := identOf(schema, name)
	t, err := r.s.table(r.ctx, ident)
	switch {
	case err == nil:
		rel := tableRelation(t)
		r.deps = append(r.deps, dependency{schema: schema, name: name, oid: rel.OID, schemaID: definitionVersion(t)})
		return rel, nil
	case !notFound(err):
		return nil, err
	}
	v, err := r.s.view(ident)
	if err != nil {
		return nil, err
	}
	if v == nil {
		q, err := r.s.sequence(ident)
		if err != nil || q == nil {
			return nil, err
		}
		r.deps = append(r.deps, dependency{schema: schema, name: name, oid: q.oid, schemaID: q.version})
		return sequenceRelation(q), nil
	}
	r.deps = append(r.deps, dependency{schema: schema, name: name, oid: v.oid, schemaID: v.version})
	return &pgsql.Relation{Kind: pgsql.View, Schema: schema, Name: name, OID: v.oid, ViewSQL: v.SQL, ReadOnly: true, Columns: v.relColumns()}, nil
}

// still reports whether a name means what it meant.
func (r *resolver) still(d dependency) bool {
	if temp := r.s.temp(); temp != nil && d.searched && d.schema != temp.name {
		if hidden, err := r.s.exists(r.ctx, identOf(temp.name, d.name)); hidden || err != nil {
			return false
		}
	}
	ident := identOf(d.schema, d.name)
	if t, err := r.s.table(r.ctx, ident); err == nil {
		return tableOID(t) == d.oid && definitionVersion(t) == d.schemaID
	}
	if q, err := r.s.sequence(ident); err == nil && q != nil {
		return q.oid == d.oid && q.version == d.schemaID
	}
	v, err := r.s.view(ident)
	return err == nil && v != nil && v.oid == d.oid && v.version == d.schemaID
}

func notFound(err error) bool {
	return errors.Is(err, icecatalog.ErrNoSuchTable) || errors.Is(err, icecatalog.ErrNoSuchNamespace) || errors.Is(err, icecatalog.ErrInvalidIdentifier)
}

// table is a stored table as the transaction sees it.
func (s *session) table(ctx context.Context, ident table.Identifier) (*warehouse.TxTable, error) {
	t, err := s.readTx().Table(ctx, ident)
	if err != nil {
		return nil, err
	}
	s.guard(t)
	return t, nil
}

// readTx is the transaction's warehouse side; outside a transaction (Parse before the first Bind) a throw-away one.
func (s *session) readTx() *warehouse.Tx {
	if s.tx != nil {
		return s.tx.warehouseTx()
	}
	tx := s.gw.warehouse.Begin(context.Background(), warehouse.TxOptions{Cut: s.gw.catalog.Cut(), ReadOnly: true, Private: s.private()})
	_ = tx.SetBranch(s.gucs.now.branch) // a fresh transaction has changed nothing
	return tx
}

func systemRelation(sys *pgcatalog.SystemRelation) *pgsql.Relation {
	rel := &pgsql.Relation{Kind: pgsql.System, Schema: sys.Schema, Name: sys.Name, OID: sys.OID, ReadOnly: true, Handle: &handle{system: sys}}
	for _, c := range sys.Columns {
		rel.Columns = append(rel.Columns, pgsql.RelColumn{Name: c.Name, Type: c.TypeOID, Mod: c.TypeMod, AttNum: c.AttNum, NotNull: c.NotNull, Hidden: c.Hidden})
	}
	return rel
}

func skadeView(v *sqlfuncs.View) *pgsql.Relation {
	rel := &pgsql.Relation{Kind: pgsql.System, Schema: "skade", Name: v.Name, OID: skadeViewOID(v.Name), ReadOnly: true, Handle: &handle{view: v}}
	rel.Columns = shapeColumns(v.Columns)
	return rel
}

func shapeColumns(cols []sqlfuncs.Column) []pgsql.RelColumn {
	out := make([]pgsql.RelColumn, len(cols))
	for i, c := range cols {
		out[i] = pgsql.RelColumn{Name: c.Name, Type: c.OID, Mod: c.Mod, AttNum: int16(i + 1)}
	}
	return out
}

// tableRelation describes a stored table to the analyser.
func tableRelation(t *warehouse.TxTable) *pgsql.Relation {
	ident, sc, props := t.Ident(), t.Schema(), t.Metadata().Properties()
	def := readTableDef(props)
	rel := &pgsql.Relation{
		Kind: pgsql.Table, Schema: schemaOf(ident), Name: ident[len(ident)-1], OID: tableOID(t),
		Constraint: constraintName(ident, props), Handle: &handle{table: ident},
	}
	for i, f := range sc.Fields() {
		oid, mod := pgtype.FromIceberg(f, props)
		c := def.columns[f.ID]
		if c.Sequence != "" {
			c.Default = "nextval('" + strings.ReplaceAll(c.Sequence, "'", "''") + "'::regclass)"
		}
		rel.Columns = append(rel.Columns, pgsql.RelColumn{
			Name: f.Name, Type: oid, Mod: mod, AttNum: int16(i + 1), NotNull: f.Required, Scale: pgtype.BareNumericScale,
			Default: c.Default, Generated: c.Generated, Identity: c.Identity,
		})
	}
	rel.Key = keyPlaces(sc, props)
	return rel
}

// keyPlaces are the columns of a schema's key, in the order of the key; nil when one of them is inside a struct.
func keyPlaces(sc *iceberg.Schema, props iceberg.Properties) (key []int) {
	for _, id := range sqlfuncs.KeyOrder(sc.IdentifierFieldIDs, props) {
		i := slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == id })
		if i < 0 {
			return nil
		}
		key = append(key, i)
	}
	return key
}

// Functions implements pgsql.Resolver.
func (r *resolver) Functions(schema, name string) []pgsql.EngineFunc {
	var out []pgsql.EngineFunc
	if schema == "" || schema == "skade" {
		for _, f := range sqlfuncs.Functions() {
			if f.Name != name {
				continue
			}
			ef := engineFunc("skade", f)
			out = append(out, ef)
			if named := ef.Args; len(named) > 0 && f.Args[0].Name == "tbl" && named[0] == pgtype.Text {
				ef.Args = append([]uint32{pgtype.RegClass}, named[1:]...)
				out = append(out, ef)
			}
		}
	}
	for _, f := range sessionFunctions {
		if f.Name == name && (schema == "" || schema == f.namespace()) {
			ef := engineFunc(f.namespace(), &f.Function)
			ef.PerRow = f.perRow
			out = append(out, ef)
		}
	}
	return out
}

func engineFunc(schema string, f *sqlfuncs.Function) pgsql.EngineFunc {
	ef := pgsql.EngineFunc{Schema: schema, Name: f.Name, Defaults: f.Defaults(), Ret: f.Returns, SetOf: f.SetOf, Strict: f.Strict, PerRow: f.PerRow}
	for _, a := range f.Args {
		ef.Args = append(ef.Args, a.OID)
		ef.ArgNames = append(ef.ArgNames, a.Name)
	}
	return ef
}

// TableFunction implements pgsql.Resolver.
func (r *resolver) TableFunction(fn pgsql.EngineFunc, args []*pgsql.Arg) (*pgsql.Relation, error) {
	var f *sqlfuncs.Function
	for _, g := range sqlfuncs.Functions() {
		if g.Name == fn.Name {
			f = g
		}
	}
	if f == nil || f.Describe == nil {
		return nil, pgerr.Newf(pgerr.UndefinedFunction, "function %s does not exist", fn.Name)
	}
	env := r.s.env(r.ctx)
	shape, err := f.Describe(r.ctx, env, constants(args))
	if err != nil {
		return nil, r.s.sqlError(r.ctx, err)
	}
	rel := &pgsql.Relation{Kind: pgsql.Function, Schema: "skade", Name: f.Name, Columns: shapeColumns(shape.Columns), ReadOnly: true,
		Handle: &handle{function: f, shape: shape, table: shape.Ident}}
	if shape.TableOID != 0 {
		rel.OID = 0
	}
	if f.Name == sqlfuncs.TableAt {
		if t, err := r.s.table(r.ctx, shape.Ident); err == nil {
			rel.Key, rel.Constraint = keyPlaces(shape.Table, t.Metadata().Properties()), constraintName(t.Ident(), t.Metadata().Properties())
		}
	}
	if shape.Ident != nil {
		if t, err := r.s.table(r.ctx, shape.Ident); err == nil {
			id := t.Ident()
			r.deps = append(r.deps, dependency{schema: schemaOf(id), name: id[len(id)-1], oid: tableOID(t), schemaID: definitionVersion(t)})
		}
	}
	return rel, nil
}

// ArgTypes implements pgsql.ArgTyper: a parameter in the place of a key has the type of the key's column.
func (r *resolver) ArgTypes(fn pgsql.EngineFunc, args []*pgsql.Arg, i int) []uint32 {
	if i != 1 || fn.Name != "lookup" && fn.Name != "lookup_many" {
		return nil
	}
	types, err := sqlfuncs.KeyTypes(r.ctx, r.s.env(r.ctx), fn.Name, constants(args))
	if err != nil { // the call says so itself
		return nil
	}
	if fn.Name == "lookup_many" {
		if len(types) != 1 {
			return nil
		}
		return []uint32{pgtype.ArrayOf(types[0])}
	}
	return types
}

// constants keeps the arguments that are known before execution.
func constants(args []*pgsql.Arg) []*sqlfuncs.Value {
	out := make([]*sqlfuncs.Value, len(args))
	for i, a := range args {
		out[i] = constant(a)
	}
	return out
}

func constant(a *pgsql.Arg) *sqlfuncs.Value {
	if a == nil {
		return nil
	}
	v := &sqlfuncs.Value{OID: a.Type, Null: a.Null, Text: a.Text}
	list := func(in []*pgsql.Arg) ([]*sqlfuncs.Value, bool) {
		var out []*sqlfuncs.Value
		for _, e := range in {
			c := constant(e)
			if c == nil {
				return nil, false
			}
			out = append(out, c)
		}
		return out, true
	}
	var ok bool
	switch {
	case a.Row != nil:
		v.Row, ok = list(a.Row)
	case a.Array != nil:
		v.Array, ok = list(a.Array)
	default:
		ok = a.Const
	}
	if !ok {
		return nil
	}
	return v
}

// env is what a call of schema skade's functions sees.
func (s *session) env(ctx context.Context) *sqlfuncs.Env {
	tx := s.readTx()
	return &sqlfuncs.Env{
		Cut: tx.Cut(), Catalog: s.gw.catalog, Changes: s.gw.changes, Lookup: s.gw.lookup, Mounts: s.gw.mounts, Style: s.style(),
		SessionAsOf: s.gucs.now.asOf,
		Resolve:     func(name string) (table.Identifier, error) { return s.resolveTableName(ctx, name, false) },
		ResolveOwn:  func(name string) (table.Identifier, error) { return s.resolveTableName(ctx, name, true) },
		Created:     s.createdTable,
		Stored:      s.storedState,
		Own:         s.ownWrites,
		Visible:     func(table.Identifier) bool { return true },
		Write:       s.writeTx, Candidates: s.candidates, NewName: s.newName, RestoreOwned: s.restoreSequences,
		Files: s.gw.fs, Vacuums: s.gw.vacuums, DropRetention: s.gw.retention.Dropped,
		Progress: s.progressRows,
		Writable: s.writableAtOnce, Session: s.name(), Pinned: s.tx != nil && s.tx.explicit && !strings.HasPrefix(s.tx.isolation(), "read "),
	}
}

// storedView is a view as the catalog keeps it.
type storedView struct {
	SQL     string       `json:"sql"`     // with schema-qualified names
	Text    string       `json:"text"`    // as it was written
	Columns []viewColumn `json:"columns"` // names and types at creation
	Comment string       `json:"comment,omitempty"`

	oid     uint32
	version int
}

type viewColumn struct {
	Name string `json:"name"`
	OID  uint32 `json:"oid"`
	Mod  int32  `json:"mod"`
}

const viewKind = "view"

func (v *storedView) relColumns() []pgsql.RelColumn {
	out := make([]pgsql.RelColumn, len(v.Columns))
	for i, c := range v.Columns {
		out[i] = pgsql.RelColumn{Name: c.Name, Type: c.OID, Mod: c.Mod, AttNum: int16(i + 1)}
	}
	return out
}

// view finds a view as the transaction sees it; nil when there is none.
func (s *session) view(ident table.Identifier) (*storedView, error) {
	if len(ident) < 2 {
		return nil, nil
	}
	o, err := s.readTx().Object(viewKind, ident[:len(ident)-1], ident[len(ident)-1])
	if errors.Is(err, catalog.ErrNoSuchObject) || errors.Is(err, icecatalog.ErrNoSuchNamespace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeView(o)
}

func decodeView(o *catalog.Object) (*storedView, error) {
	v := &storedView{oid: o.OID, version: int(o.ChangedSeq)}
	if err := json.Unmarshal(o.Payload, v); err != nil {
		return nil, pgerr.Newf(pgerr.DataCorrupted, "definition of view \"%s\" is damaged", o.Name).WithCause(err)
	}
	return v, nil
}

// DateOrder is how DateStyle reads 01/02/2026: pgsql.DateOrderer.
func (r *resolver) DateOrder() pgenc.DateOrder { return r.s.style().Order }
