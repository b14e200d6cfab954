package pgcatalog

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// scope is a snapshot seen through a search path: what names mean and how they must be written.
type scope struct {
	*Snapshot
	session Session
	path    []string
	temp    string // the session's temporary schema
}

// scopeOf is a session's scope; without a session nothing of the user's is visible unqualified.
func (s *Snapshot) scopeOf(session Session) *scope {
	sc := &scope{Snapshot: s, session: session}
	var path []string
	if session != nil {
		path = session.SearchPath()
		if sc.temp, _ = session.TempSchema(); sc.temp != "" && !slices.Contains(path, sc.temp) {
			sc.path = append(sc.path, sc.temp)
		}
	}
	if !slices.Contains(path, "pg_catalog") {
		sc.path = append(sc.path, "pg_catalog")
	}
	if !slices.Contains(path, "skade") {
		sc.path = append(sc.path, "skade")
	}
	sc.path = append(sc.path, path...)
	return sc
}

// object names one thing of a catalog.
type object struct {
	qualified
	oid uint32
}

// relationName gives the name of a table, view or index.
func (s *Snapshot) relationName(oid uint32) (qualified, bool) {
	kind, base := derivedFrom(oid)
	if r := s.relations[base]; r != nil {
		switch {
		case kind == 0:
			return qualified{r.Namespace, r.Name}, true
		case kind == primaryIndex && r.hasKey():
			return qualified{r.Namespace, r.keyName()}, true
		}
	}
	q, ok := s.catalog.index().relations.byOID[oid]
	return q, ok
}

// relationOID finds a table, view or index; 0 when there is none.
func (s *Snapshot) relationOID(schema, name string) uint32 {
	if r := s.byName[qualified{schema, name}]; r != nil {
		return r.OID
	}
	if oid := s.keys[qualified{schema, name}]; oid != 0 {
		return oid
	}
	return s.catalog.index().relations.find(schema, name)
}

// typeNamed gives the name of a type in pg_type's spelling.
func (s *Snapshot) typeNamed(oid uint32) (qualified, bool) {
	if t := s.catalog.index().types[oid]; t != nil {
		return t.qualified, true
	}
	kind, base := derivedFrom(oid)
	if r := s.relations[base]; r != nil {
		switch kind {
		case rowType:
			return qualified{r.Namespace, r.Name}, true
		case rowTypeArray:
			return qualified{r.Namespace, "_" + r.Name}, true
		}
	}
	return qualified{}, false
}

// typeOID finds a type by its name in pg_type; 0 when there is none.
func (s *Snapshot) typeOID(schema, name string) uint32 {
	if staticNamespaces[schema] {
		if oid := s.catalog.index().typeNames.find(schema, name); oid != 0 {
			return oid
		}
	}
	if r := s.byName[qualified{schema, name}]; r != nil {
		return rowType.of(r.OID)
	}
	if base, ok := strings.CutPrefix(name, "_"); ok {
		if r := s.byName[qualified{schema, base}]; r != nil {
			return rowTypeArray.of(r.OID)
		}
	}
	return 0
}

// functionNamed gives a function's name.
func (s *Snapshot) functionNamed(oid uint32) (qualified, bool) {
	if f := s.functions[oid]; f != nil {
		return qualified{f.Namespace, f.Name}, true
	}
	q, ok := s.catalog.index().functions.byOID[oid]
	return q, ok
}

// functionOIDs finds the functions with a name.
func (s *Snapshot) functionOIDs(schema, name string) []uint32 {
	var out []uint32
	for _, oid := range s.catalog.index().functions.byName[name] {
		if s.catalog.index().functions.byOID[oid].schema == schema {
			out = append(out, oid)
		}
	}
	for _, f := range s.objects.Functions {
		if f.Namespace == schema && f.Name == name {
			out = append(out, f.OID)
		}
	}
	return out
}

// visible reports whether find, asked along the search path, gives this object first.
func (sc *scope) visible(o object, find func(schema, name string) uint32) bool {
	for _, schema := range sc.path {
		if oid := find(schema, o.name); oid != 0 {
			return oid == o.oid
		}
	}
	return false
}

// written is a name as SQL must write it: with its schema unless it is visible.
func (sc *scope) written(o object, find func(schema, name string) uint32) string {
	if sc.visible(o, find) {
		return quoteIdent(o.name)
	}
	return quoteIdent(o.schema) + "." + quoteIdent(o.name)
}

// formatType is format_type. given is false for a NULL typmod.
// Source: format_type_extended in PostgreSQL 15.
func (sc *scope) formatType(oid uint32, typmod int32, given bool) string {
	if _, ok := pgtype.ByOID(oid); ok || oid == 0 {
		if given {
			return pgtype.Format(oid, typmod)
		}
		return pgtype.FormatNoTypmod(oid)
	}
	if kind, base := derivedFrom(oid); kind == rowTypeArray && sc.relations[base] != nil {
		return sc.formatType(rowType.of(base), -1, given) + "[]"
	}
	if t := sc.catalog.index().types[oid]; t != nil && t.elem != 0 && strings.HasPrefix(t.name, "_") {
		return sc.formatType(t.elem, -1, given) + "[]"
	}
	q, ok := sc.typeNamed(oid)
	if !ok {
		return "???"
	}
	return sc.written(object{q, oid}, sc.typeOID)
}

// formatType is the scope-free form for rows that do not depend on a session.
func (s *Snapshot) formatType(oid uint32, typmod int32, given bool) string {
	return (&scope{Snapshot: s, path: []string{"pg_catalog"}}).formatType(oid, typmod, given)
}

// keywords are the words that quote_ident quotes: all but the unreserved ones of pg_get_keywords.
var keywords = sync.OnceValue(func() map[string]bool {
	t, err := decodeStatic("pg_catalog.pg_get_keywords", Options{})
	if err != nil {
		return nil
	}
	words := map[string]bool{}
	for i := range t.rows {
		if t.value(1, i) != "U" {
			words[t.value(0, i)] = true
		}
	}
	return words
})

// quoteIdent is quote_ident: quotes unless the name is a lower-case identifier that is no keyword (other than unreserved).
// Source: quote_identifier in PostgreSQL 15.
func quoteIdent(name string) string {
	safe := name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] == '_')
	for i := 0; safe && i < len(name); i++ {
		c := name[i]
		safe = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_'
	}
	if safe && !keywords()[name] {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// number prints an OID.
func number(oid uint32) string { return strconv.FormatUint(uint64(oid), 10) }
