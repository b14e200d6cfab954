package pgtype

import "strings"

// Type is one row of PostgreSQL's pg_type.
type Type struct {
	OID  uint32
	Name string // typname: "int4", "_int4"
	Len  int16  // typlen: bytes, -1 variable length, -2 C string
	// ByVal and Align are typbyval and typalign ('c', 's', 'i', 'd').
	ByVal bool
	Align byte
	// Kind is typtype: 'b' base, 'c' row, 'p' pseudo, 'r' range, 'm' multirange.
	Kind byte
	// Category is typcategory: 'N' numeric, 'S' string, 'D' date/time, 'A' array … Preferred is typispreferred.
	Category  byte
	Preferred bool
	// Delim separates array elements in text: ',' for all but box.
	Delim byte
	// ArrayOID is the type of arrays of this type, 0 when there is none.
	ArrayOID uint32
	// ElemOID is the element's type of an array (typelem), also set on int2vector, oidvector, name and point.
	ElemOID uint32
}

// IsArray reports whether t is a true array type (its text form is {…}); int2vector and oidvector are not.
func (t Type) IsArray() bool {
	return t.ElemOID != 0 && t.Len == -1 && t.Category == 'A' && t.OID != Int2Vector && t.OID != OIDVector || t.OID == RecordArray
}

var (
	byOID  = indexByOID()
	byName = indexByName()
)

func indexByOID() map[uint32]Type {
	m := make(map[uint32]Type, len(table))
	for _, t := range table {
		m[t.OID] = t
	}
	return m
}

// aliases are the SQL spellings that PostgreSQL's grammar maps to a pg_type name.
var aliases = map[string]string{
	"boolean":                     "bool",
	"smallint":                    "int2",
	"int":                         "int4",
	"integer":                     "int4",
	"bigint":                      "int8",
	"real":                        "float4",
	"double precision":            "float8",
	"float":                       "float8",
	"decimal":                     "numeric",
	"dec":                         "numeric",
	"character varying":           "varchar",
	"char varying":                "varchar",
	"character":                   "bpchar",
	"timestamp without time zone": "timestamp",
	"timestamp with time zone":    "timestamptz",
	"time without time zone":      "time",
	"time with time zone":         "timetz",
	"bit varying":                 "varbit",
	"\"char\"":                    "char",
}

func indexByName() map[string]Type {
	m := make(map[string]Type, len(table)+len(aliases))
	for _, t := range table {
		m[t.Name] = t
	}
	for alias, name := range aliases {
		m[alias] = m[name]
	}
	return m
}

// ByOID returns the type with the OID.
func ByOID(oid uint32) (Type, bool) {
	t, ok := byOID[oid]
	return t, ok
}

// ByName returns the type with a pg_type name ("int4", "_text") or an SQL spelling ("integer", "timestamp with time
// zone", "int4[]"), after an optional "pg_catalog." prefix. The name is folded already: ByName compares bytes.
// "char" is PostgreSQL's one-byte "char", as in pg_type; the SQL type char(n) is "bpchar" or "character".
func ByName(name string) (Type, bool) {
	name = strings.TrimPrefix(name, "pg_catalog.")
	if t, ok := byName[name]; ok {
		return t, true
	}
	elem, ok := strings.CutSuffix(name, "[]")
	if !ok {
		return Type{}, false
	}
	t, ok := byName[strings.TrimSpace(elem)]
	if !ok || t.ArrayOID == 0 {
		return Type{}, false
	}
	return ByOID(t.ArrayOID)
}

// All returns every type in OID order. The slice is shared: do not modify it.
func All() []Type { return table }

// ArrayOf returns the OID of arrays of the type, 0 when there is none.
func ArrayOf(oid uint32) uint32 { return byOID[oid].ArrayOID }

// ElemOf returns the element's OID of a true array type, 0 for any other type.
func ElemOf(oid uint32) uint32 {
	if t := byOID[oid]; t.IsArray() {
		if oid == RecordArray {
			return Record
		}
		return t.ElemOID
	}
	return 0
}

// LenOf returns typlen, -1 when the OID is unknown (enums and other user types of variable length).
func LenOf(oid uint32) int16 {
	if t, ok := byOID[oid]; ok {
		return t.Len
	}
	return -1
}
