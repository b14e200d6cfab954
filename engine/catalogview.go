package engine

import (
	"context"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/engine/pgcatalog"
	"github.com/nordisk/skade-pg/internal/pgtype"
	"github.com/nordisk/skade-pg/sqlfuncs"
	"github.com/nordisk/skade-pg/warehouse"
)

// catalogView is a session as the system catalogs see it: pgcatalog.Session.
type catalogView struct{ s *session }

func (v *catalogView) Info() pgcatalog.SessionInfo {
	s := v.s
	return pgcatalog.SessionInfo{
		PID: s.startup.PID, Database: s.gw.database, User: s.user(), SessionUser: s.user(), Version: s.gw.versionText,
		ServerAddr: hostOf(s.gw.address), ServerPort: portOf(s.gw.address),
		ClientAddr: hostOf(s.startup.Identity.RemoteAddr), ClientPort: portOf(s.startup.Identity.RemoteAddr),
		ServerStarted: s.gw.started, TransactionID: int64(s.gw.catalog.CommitSeq()) + 1,
	}
}

func (v *catalogView) SearchPath() []string { return v.s.existingPath() }

func (v *catalogView) TempSchema() (name string, oid uint32) {
	if v.s.temp() == nil {
		return "", 0
	}
	return v.s.temp().name, v.s.temp().oid
}

func (v *catalogView) HasPrivilege(uint32, string, uint32, string) bool { return true }

func (v *catalogView) Settings() []pgcatalog.Setting {
	out := make([]pgcatalog.Setting, 0, len(settings))
	for _, st := range settings {
		value, _ := v.s.gucs.get(st.name)
		source := "default"
		if value != st.value {
			source = "session"
		}
		ps := pgcatalog.Setting{Name: st.name, Value: value, Unit: st.unit, Category: "Client Connection Defaults", ShortDesc: st.desc,
			Context: st.context, VarType: st.vartype, Source: source, EnumVals: st.enum, BootVal: st.value, ResetVal: st.value}
		if base, ok := v.s.gucs.base[strings.ToLower(st.name)]; ok {
			ps.ResetVal = base
		}
		if st.vartype == "integer" {
			ps.MinVal, ps.MaxVal = itoa(st.min), itoa(st.max)
		}
		out = append(out, ps)
	}
	return out
}

func (v *catalogView) Activity() []pgcatalog.Backend { return v.s.gw.activity() }

func (v *catalogView) PreparedStatements() []pgcatalog.PreparedStatement {
	var out []pgcatalog.PreparedStatement
	for _, st := range v.s.startup.Prepared.All() {
		if st.Name != "" {
			out = append(out, pgcatalog.PreparedStatement{Name: st.Name, Statement: st.SQL, PrepareTime: st.Time, ParameterTypes: st.Statement.ParamOIDs(), FromSQL: st.FromSQL})
		}
	}
	return out
}

func (v *catalogView) Cursors() []pgcatalog.Cursor {
	var out []pgcatalog.Cursor
	for _, c := range v.s.cursors {
		out = append(out, pgcatalog.Cursor{Name: c.name, Statement: c.text, Holdable: c.hold, Binary: c.binary, CreationTime: c.made})
	}
	return out
}

// catalogSnapshot is the system catalogs as the running statement sees them. DuckDB's threads call it through the catalog functions
// while the session's goroutine waits for them.
func (s *session) catalogSnapshot() *pgcatalog.Snapshot {
	s.catalog.Lock()
	defer s.catalog.Unlock()
	if s.catalog.snapshot == nil {
		s.catalog.snapshot = s.newCatalogSnapshot()
	}
	return s.catalog.snapshot
}

// newCatalogSnapshot is shared by all sessions of a cut, unless the transaction has changes of its own.
func (s *session) newCatalogSnapshot() *pgcatalog.Snapshot {
	tx := s.readTx()
	switch {
	case tx.Changed():
		return s.gw.syscat.Snapshot(s.gw.objects(tx, s.temp()))
	case s.temp() != nil && !s.temp().Empty():
		return s.tempSnapshot(tx)
	}
	seq := tx.Cut().Seq()
	gw := s.gw
	gw.mu.Lock()
	snap, at := gw.mu.snapshot, gw.mu.snapSeq
	gw.mu.Unlock()
	if snap != nil && at == seq {
		return snap
	}
	snap = gw.syscat.Snapshot(gw.objects(tx, nil)) // takes gw.mu for the roles
	gw.mu.Lock()
	defer gw.mu.Unlock()
	if seq >= gw.mu.snapSeq { // an old transaction does not replace a newer one's
		gw.mu.snapshot, gw.mu.snapSeq = snap, seq
	}
	return snap
}

// objects lists what the user has, as the transaction sees it; temp is nil for what all sessions see.
func (gw *Gateway) objects(tx *warehouse.Tx, temp *tempSchema) *pgcatalog.Objects {
	const owner = 10
	o := &pgcatalog.Objects{
		Databases: []pgcatalog.Database{{OID: databaseOID, Name: gw.database, Owner: owner}},
		Roles:     gw.catalogRoles(),
		Functions: skadeFunctions(),
	}
	for _, ns := range tx.Namespaces() {
		n := pgcatalog.Namespace{Name: strings.Join(ns, "."), Owner: owner}
		if st, err := tx.Cut().Namespace(ns); err == nil {
			n.OID, n.Comment = st.OID, st.Properties["comment"]
		} else if temp != nil && n.Name == temp.name {
			n.OID = temp.oid
		}
		o.Namespaces = append(o.Namespaces, n)
	}
	tables := map[catalog.TableKey]warehouse.TableInfo{}
	for _, t := range tx.Tables() {
		tables[t.Key] = t
		if rel, ok := gw.tableObject(t); ok {
			o.Relations = append(o.Relations, rel)
		}
	}
	for _, v := range sqlfuncs.Views() {
		o.Relations = append(o.Relations, skadeViewObject(v))
	}
	for _, obj := range tx.Objects(viewKind) {
		v, err := decodeView(obj)
		if err != nil {
			gw.log.Error().Err(err).Msg("view is left out of the system catalogs")
			continue
		}
		rel := pgcatalog.Relation{OID: viewOID(obj), Kind: pgcatalog.View, Namespace: strings.Join(obj.Namespace, "."), Name: obj.Name, Owner: owner,
			Comment: v.Comment, Rows: -1, Definition: " " + strings.TrimSuffix(strings.TrimSpace(v.SQL), ";") + ";"}
		for i, c := range v.Columns {
			rel.Columns = append(rel.Columns, pgcatalog.RelationColumn{Name: c.Name, AttNum: int16(i + 1), TypeOID: c.OID, TypeMod: c.Mod})
		}
		o.Relations = append(o.Relations, rel)
	}
	for _, obj := range tx.Objects(sequenceKind) {
		if rel, ok := gw.sequenceObject(tables, obj); ok {
			o.Relations = append(o.Relations, rel)
		}
	}
	if temp != nil {
		for i := range o.Relations {
			if r := &o.Relations[i]; r.Namespace == temp.name {
				r.Temporary = true
				if r.Kind == pgcatalog.Table {
					r.Rows = -1 // never analysed, as PostgreSQL says of it
				}
			}
		}
	}
	return o
}

// OIDs of the gateway's own objects, below those of users.
const (
	firstFunctionOID = 15001
	firstViewOID     = 15201
)

func skadeViewOID(name string) uint32 {
	for i, v := range sqlfuncs.Views() {
		if v.Name == name {
			return uint32(firstViewOID + i)
		}
	}
	return 0
}

func skadeViewObject(v *sqlfuncs.View) pgcatalog.Relation {
	rel := pgcatalog.Relation{OID: skadeViewOID(v.Name), Kind: pgcatalog.View, Namespace: "skade", Name: v.Name, Owner: 10, Comment: v.Doc, Rows: -1,
		Definition: " SELECT * FROM skade." + v.Name + ";"}
	for i, c := range v.Columns {
		rel.Columns = append(rel.Columns, pgcatalog.RelationColumn{Name: c.Name, AttNum: int16(i + 1), TypeOID: c.OID, TypeMod: c.Mod})
	}
	return rel
}

func viewOID(o *catalog.Object) uint32 {
	if o.OID != 0 {
		return o.OID
	}
	return provisionalOID(o.Name)
}

// provisionalOID stands for an object whose transaction is not committed: its OID is settled at commit.
func provisionalOID(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return firstProvisionalOID | h.Sum32()&(firstTempOID-firstProvisionalOID-1)
}

func tableOID(t *warehouse.TxTable) uint32 {
	if st := t.State(); st != nil && st.OID != 0 {
		return st.OID
	}
	if oid := t.PrivateOID(); oid != 0 {
		return oid
	}
	return provisionalOID(string(t.Key()))
}

func (gw *Gateway) tableObject(t warehouse.TableInfo) (pgcatalog.Relation, bool) {
	rel := pgcatalog.Relation{Kind: pgcatalog.Table, Namespace: schemaOf(t.Ident), Name: t.Ident[len(t.Ident)-1], Owner: 10, Rows: -1}
	var md table.Metadata
	var sc *iceberg.Schema
	if t.Own != nil {
		md, sc, rel.OID = t.Own.Metadata(), t.Own.Schema(), tableOID(t.Own)
	} else {
		var err error
		if md, err = t.State.Metadata(context.Background()); err != nil {
			gw.log.Error().Err(err).Str("table", strings.Join(t.Ident, ".")).Msg("table is left out of the system catalogs")
			return rel, false
		}
		sc, rel.OID = md.CurrentSchema(), t.State.OID
	}
	props := md.Properties()
	rel.Comment, rel.Options = props[propComment], shownOptions(md)
	rel.ConstraintName = constraintName(t.Ident, props)
	def := readTableDef(props)
	rel.Unique = def.unique
	for _, id := range sqlfuncs.KeyOrder(sc.IdentifierFieldIDs, props) {
		rel.PrimaryKey = append(rel.PrimaryKey, attNumOf(sc, id))
	}
	for i, f := range sc.Fields() {
		oid, mod := pgtype.FromIceberg(f, props)
		comment := f.Doc
		if shown := pgtype.Shown(f.Type); comment == "" {
			comment = shown
		}
		rel.Columns = append(rel.Columns, pgcatalog.RelationColumn{Name: f.Name, AttNum: int16(i + 1), TypeOID: oid, TypeMod: mod, NotNull: f.Required, Comment: comment})
		declaredColumn(&rel.Columns[i], def.columns[f.ID])
	}
	declaredExpressions(&rel, def)
	if snap := md.CurrentSnapshot(); snap == nil {
		rel.Rows = 0
	} else if snap.Summary != nil {
		rel.Rows = summaryInt(snap.Summary.Properties, "total-records") - summaryInt(snap.Summary.Properties, "total-position-deletes")
		rel.Bytes = summaryInt(snap.Summary.Properties, "total-files-size")
	}
	return rel, true
}

// attNumOf is a column's attribute number: its place in the schema, from 1.
func attNumOf(sc *iceberg.Schema, fieldID int) int16 {
	return int16(slices.IndexFunc(sc.Fields(), func(f iceberg.NestedField) bool { return f.ID == fieldID }) + 1)
}

func summaryInt(props iceberg.Properties, key string) int64 {
	var n int64
	for _, c := range props[key] {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func (gw *Gateway) catalogRoles() []pgcatalog.Role {
	names := gw.roles
	if len(names) == 0 {
		names = []string{ownerRole(nil)}
		gw.mu.Lock()
		for _, s := range gw.mu.sessions {
			if !slices.Contains(names, s.user()) {
				names = append(names, s.user())
			}
		}
		gw.mu.Unlock()
		slices.Sort(names[1:])
	}
	out := make([]pgcatalog.Role, len(names))
	for i, n := range names {
		out[i] = pgcatalog.Role{OID: 10, Name: n, Superuser: true, CreateDB: true, CreateRole: true, Inherit: true, Login: true, Replication: true, BypassRLS: true, ConnLimit: -1}
		if i > 0 {
			out[i].OID = provisionalOID("role:" + n)
			out[i].Replication, out[i].BypassRLS = false, false
		}
	}
	return out
}

// skadeFunctions describes the functions of schema skade to pg_proc.
func skadeFunctions() []pgcatalog.Function {
	var out []pgcatalog.Function
	all := slices.Clone(sqlfuncs.Functions())
	reads := len(all)
	for _, f := range sessionFunctions {
		if f.schema == "skade" {
			all = append(all, &f.Function)
		}
	}
	for i, f := range all {
		pf := pgcatalog.Function{OID: uint32(firstFunctionOID + i), Namespace: "skade", Name: f.Name, Defaults: f.Defaults(), Return: f.Returns, ReturnsSet: f.SetOf, Volatile: 's', Strict: f.Strict, Comment: f.Doc}
		if f.Volatile || i >= reads {
			pf.Volatile = 'v'
		}
		for _, a := range f.Args {
			pf.Args = append(pf.Args, pgcatalog.FunctionArg{Name: a.Name, TypeOID: a.OID, Default: a.Default})
		}
		out = append(out, pf)
	}
	return out
}
