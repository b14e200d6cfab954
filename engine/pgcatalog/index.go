package pgcatalog

import (
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// staticIndex finds PostgreSQL's own objects by OID and by name.
type staticIndex struct {
	namespaces  map[uint32]string
	namespaceID map[string]uint32
	roles       map[uint32]string
	roleID      map[string]uint32
	types       map[uint32]*typeRow
	relations   *names
	typeNames   *names
	functions   *names
	// others are the remaining catalogs whose objects have a name in a schema, by catalog name.
	others      map[string]*names
	functionRow map[uint32]int // row in pg_proc
	opclasses   map[uint32]uint32
	comments    map[commentKey]string
}

type commentKey struct {
	class, object uint32
	sub           int32
}

// typeRow is what rows of user objects need of pg_type.
type typeRow struct {
	qualified
	oid, relid, elem, array, collation, base uint32
	len                                      int16
	byVal                                    bool
	align, storage, kind                     string
	typmod                                   int32
}

// names are the objects of one catalog.
type names struct {
	byOID  map[uint32]qualified
	byName map[string][]uint32 // bare name → OIDs
}

func (n *names) find(schema, name string) uint32 {
	for _, oid := range n.byName[name] {
		if n.byOID[oid].schema == schema {
			return oid
		}
	}
	return 0
}

// schemaCatalogs are the catalogs whose objects live in a schema: the columns of their names.
var schemaCatalogs = map[string][2]string{
	"pg_class":         {"relname", "relnamespace"},
	"pg_type":          {"typname", "typnamespace"},
	"pg_proc":          {"proname", "pronamespace"},
	"pg_operator":      {"oprname", "oprnamespace"},
	"pg_opclass":       {"opcname", "opcnamespace"},
	"pg_opfamily":      {"opfname", "opfnamespace"},
	"pg_collation":     {"collname", "collnamespace"},
	"pg_conversion":    {"conname", "connamespace"},
	"pg_ts_config":     {"cfgname", "cfgnamespace"},
	"pg_ts_dict":       {"dictname", "dictnamespace"},
	"pg_ts_parser":     {"prsname", "prsnamespace"},
	"pg_ts_template":   {"tmplname", "tmplnamespace"},
	"pg_statistic_ext": {"stxname", "stxnamespace"},
}

// table is a catalog's static rows with access by column name.
type table struct {
	relation *SystemRelation
	*textTable
}

// mustText gives static rows; the embedded data is checked by a test, so damage is a fault of the build.
func (c *Catalog) mustText(catalog string) table {
	t, err := c.text("pg_catalog." + catalog)
	if err != nil {
		panic(err)
	}
	return table{LookupRelation("pg_catalog", catalog), t}
}

func (t table) column(name string) func(row int) string {
	i := columnIndex(t.relation, name)
	return func(row int) string { return t.value(i, row) }
}

func (t table) oids(name string) func(row int) uint32 {
	col := t.column(name)
	return func(row int) uint32 { return parseOID(col(row)) }
}

func parseOID(text string) uint32 {
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(v)
}

func newStaticIndex(c *Catalog) *staticIndex {
	x := &staticIndex{namespaces: map[uint32]string{}, namespaceID: map[string]uint32{}, roles: map[uint32]string{}, roleID: map[string]uint32{}, others: map[string]*names{}}
	t := c.mustText("pg_namespace")
	oid, name := t.oids("oid"), t.column("nspname")
	for i := range t.rows {
		x.namespaces[oid(i)] = name(i)
		x.namespaceID[name(i)] = oid(i)
	}
	t = c.mustText("pg_authid")
	oid, name = t.oids("oid"), t.column("rolname")
	for i := range t.rows {
		x.roles[oid(i)] = name(i)
		x.roleID[name(i)] = oid(i)
	}
	for catalog, cols := range schemaCatalogs {
		x.others[catalog] = x.names(c.mustText(catalog), cols[0], cols[1])
	}
	x.relations, x.typeNames, x.functions = x.others["pg_class"], x.others["pg_type"], x.others["pg_proc"]
	x.indexTypes(c)
	x.indexFunctions(c)
	x.indexComments(c)
	return x
}

func (x *staticIndex) names(t table, nameCol, nspCol string) *names {
	n := &names{byOID: make(map[uint32]qualified, t.rows), byName: make(map[string][]uint32, t.rows)}
	oid, name, nsp := t.oids("oid"), t.column(nameCol), t.oids(nspCol)
	for i := range t.rows {
		n.byOID[oid(i)] = qualified{x.namespaces[nsp(i)], name(i)}
		n.byName[name(i)] = append(n.byName[name(i)], oid(i))
	}
	return n
}

func (x *staticIndex) indexTypes(c *Catalog) {
	t := c.mustText("pg_type")
	x.types = make(map[uint32]*typeRow, t.rows)
	oid, relid, elem, array, collation, base := t.oids("oid"), t.oids("typrelid"), t.oids("typelem"), t.oids("typarray"), t.oids("typcollation"), t.oids("typbasetype")
	length, byVal, align, storage, kind, typmod := t.column("typlen"), t.column("typbyval"), t.column("typalign"), t.column("typstorage"), t.column("typtype"), t.column("typtypmod")
	for i := range t.rows {
		n, _ := strconv.ParseInt(length(i), 10, 16)
		mod, _ := strconv.ParseInt(typmod(i), 10, 32)
		r := &typeRow{qualified: x.typeNames.byOID[oid(i)], oid: oid(i), relid: relid(i), elem: elem(i), array: array(i), collation: collation(i), base: base(i),
			len: int16(n), byVal: byVal(i) == "t", align: align(i), storage: storage(i), kind: kind(i), typmod: int32(mod)}
		x.types[r.oid] = r
	}
	x.opclasses = map[uint32]uint32{}
	t = c.mustText("pg_opclass")
	oid, method, in, def := t.oids("oid"), t.oids("opcmethod"), t.oids("opcintype"), t.column("opcdefault")
	for i := range t.rows {
		if method(i) == amBTree && def(i) == "t" {
			x.opclasses[in(i)] = oid(i)
		}
	}
	// varchar is binary coercible to text; arrays share one class.
	x.opclasses[pgtype.Varchar] = x.opclasses[pgtype.Text]
}

func (x *staticIndex) indexFunctions(c *Catalog) {
	t := c.mustText("pg_proc")
	x.functionRow = make(map[uint32]int, t.rows)
	oid := t.oids("oid")
	for i := range t.rows {
		x.functionRow[oid(i)] = i
	}
}

func (x *staticIndex) indexComments(c *Catalog) {
	t := c.mustText("pg_description")
	x.comments = make(map[commentKey]string, t.rows)
	object, class, sub, text := t.oids("objoid"), t.oids("classoid"), t.column("objsubid"), t.column("description")
	for i := range t.rows {
		n, _ := strconv.ParseInt(sub(i), 10, 32)
		x.comments[commentKey{class(i), object(i), int32(n)}] = text(i)
	}
}

// function gives the OID of the one function of pg_catalog with a name.
func (x *staticIndex) function(name string) uint32 { return x.functions.find("pg_catalog", name) }

// btreeClass is the default btree operator class for a type, 0 when there is none.
func (x *staticIndex) btreeClass(typ uint32) uint32 { return x.opclasses[typ] }

// typeOf gives a static type, with text's layout for an OID that is not PostgreSQL's (an enum).
func (x *staticIndex) typeOf(oid uint32) *typeRow {
	if t := x.types[oid]; t != nil {
		return t
	}
	return x.types[pgtype.Text]
}
