package pgcatalog

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// The reg* types: OIDs that are written as names. Source: PostgreSQL 15, src/backend/utils/adt/regproc.c.

// regType reads and writes one reg* type. in gives 0 for a name that does not exist; missing makes the error for it.
type regType struct {
	name    string
	oid     uint32
	in      func(sc *scope, text string) (uint32, error)
	out     func(sc *scope, oid uint32) (string, bool)
	missing func(text string) error
}

var regTypes = []regType{
	{"regclass", pgtype.RegClass, named((*scope).relationOID), outOf((*scope).relationName, (*scope).relationOID), missingRelation},
	{"regtype", pgtype.RegType, (*scope).regtypeIn, (*scope).regtypeOut, missingObject("type")},
	{"regproc", pgtype.RegProc, (*scope).regprocIn, (*scope).regprocOut, missingFunction},
	{"regprocedure", pgtype.RegProcedure, (*scope).regprocedureIn, (*scope).regprocedureOut, missingFunction},
	{"regnamespace", pgtype.RegNamespace, (*scope).regnamespaceIn, (*scope).regnamespaceOut, missingSchema},
	{"regrole", pgtype.RegRole, (*scope).regroleIn, (*scope).regroleOut, missingObject("role")},
	{"regoper", regOper, staticIn("pg_operator"), staticOut("pg_operator"), missingOperator},
	{"regoperator", regOperator, staticIn("pg_operator"), staticOut("pg_operator"), missingOperator},
	{"regcollation", pgtype.RegCollation, staticIn("pg_collation"), staticOut("pg_collation"), missingObject("collation")},
	{"regconfig", pgtype.RegConfig, staticIn("pg_ts_config"), staticOut("pg_ts_config"), missingObject("text search configuration")},
	{"regdictionary", regDictionary, staticIn("pg_ts_dict"), staticOut("pg_ts_dict"), missingObject("text search dictionary")},
}

const (
	regOper       uint32 = 2203
	regOperator   uint32 = 2204
	regDictionary uint32 = 3769
)

func missingRelation(text string) error {
	return pgerr.Newf(pgerr.UndefinedTable, "relation %q does not exist", strings.ReplaceAll(text, `"`, ""))
}

func missingFunction(text string) error {
	return pgerr.Newf(pgerr.UndefinedFunction, "function \"%s\" does not exist", text)
}

func missingOperator(text string) error {
	return pgerr.Newf(pgerr.UndefinedFunction, "operator does not exist: %s", text)
}

func missingSchema(text string) error {
	return pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", strings.ReplaceAll(text, `"`, ""))
}

func missingObject(kind string) func(string) error {
	return func(text string) error {
		return pgerr.Newf(pgerr.UndefinedObject, "%s \"%s\" does not exist", kind, text)
	}
}

// regIn is a cast from text; strict is false for to_regclass and its like, which give 0 for a missing name.
func (sc *scope) regIn(r *regType, text string, strict bool) (uint32, error) {
	if oid, ok := numericOID(text); ok {
		return oid, nil
	}
	oid, err := r.in(sc, text)
	if err == nil && oid == 0 && strict {
		err = r.missing(text)
	}
	return oid, err
}

// regOut is a cast to text: the number when nothing has the OID.
func (sc *scope) regOut(r *regType, oid uint32) string {
	if oid == 0 {
		return "-"
	}
	if text, ok := r.out(sc, oid); ok {
		return text
	}
	return number(oid)
}

// RegOut is the text of a value of a reg* type, for results in text format.
func (s *Snapshot) RegOut(session Session, typeOID, oid uint32) string {
	for i := range regTypes {
		if regTypes[i].oid == typeOID {
			return s.scopeOf(session).regOut(&regTypes[i], oid)
		}
	}
	return number(oid)
}

// RegIn is the OID of a name (or number) as the input of a reg* type, for parameters in text format. Errors: PostgreSQL's for a name
// that does not exist.
func (s *Snapshot) RegIn(session Session, typeOID uint32, text string) (uint32, error) {
	for i := range regTypes {
		if regTypes[i].oid == typeOID {
			return s.scopeOf(session).regIn(&regTypes[i], text, true)
		}
	}
	return 0, pgerr.Newf(pgerr.InternalError, "type %d is no reg* type", typeOID)
}

// RegClass is to_regclass for engine code (table names given as text): 0 when there is no such relation.
func (s *Snapshot) RegClass(session Session, name string) (uint32, error) {
	return s.scopeOf(session).regIn(&regTypes[0], name, false)
}

type finder func(sc *scope, schema, name string) uint32

func named(find finder) func(*scope, string) (uint32, error) {
	return func(sc *scope, text string) (uint32, error) {
		parts, err := splitName(text)
		if err != nil {
			return 0, err
		}
		return sc.lookup(parts, func(schema, name string) uint32 { return find(sc, schema, name) })
	}
}

func outOf(name func(*scope, uint32) (qualified, bool), find finder) func(*scope, uint32) (string, bool) {
	return func(sc *scope, oid uint32) (string, bool) {
		q, ok := name(sc, oid)
		if !ok {
			return "", false
		}
		return sc.written(object{q, oid}, func(schema, name string) uint32 { return find(sc, schema, name) }), true
	}
}

func staticIn(catalog string) func(*scope, string) (uint32, error) {
	return named(func(sc *scope, schema, name string) uint32 {
		return sc.catalog.index().others[catalog].find(schema, name)
	})
}

func staticOut(catalog string) func(*scope, uint32) (string, bool) {
	return outOf(func(sc *scope, oid uint32) (qualified, bool) {
		q, ok := sc.catalog.index().others[catalog].byOID[oid]
		return q, ok
	}, func(sc *scope, schema, name string) uint32 {
		return sc.catalog.index().others[catalog].find(schema, name)
	})
}

// regtypeIn reads a type's name in SQL's or pg_type's spelling, with an optional typmod, which is dropped.
func (sc *scope) regtypeIn(text string) (uint32, error) {
	folded := foldType(text)
	if oid, _, err := pgtype.Parse(folded); err == nil && oid != 0 {
		return oid, nil
	}
	elem, isArray := strings.CutSuffix(strings.TrimSpace(text), "[]")
	parts, err := splitName(elem)
	if err != nil {
		return 0, missingObject("type")(text)
	}
	oid, err := sc.lookup(parts, sc.typeOID)
	if err != nil || oid == 0 || !isArray {
		return oid, err
	}
	if kind, base := derivedFrom(oid); kind == rowType {
		return rowTypeArray.of(base), nil
	}
	if t := sc.catalog.index().types[oid]; t != nil {
		return t.array, nil
	}
	return 0, nil
}

// foldType lower-cases a type's words outside quotes and makes single blanks of white space.
func foldType(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if strings.Contains(text, `"`) {
		if name, ok := strings.CutPrefix(text, "pg_catalog."); ok {
			text = name
		}
		if text != `"char"` && strings.Count(text, `"`) == 2 && strings.HasPrefix(text, `"`) && strings.HasSuffix(text, `"`) {
			return strings.Trim(text, `"`)
		}
		return text
	}
	return strings.ToLower(text)
}

func (sc *scope) regtypeOut(oid uint32) (string, bool) {
	text := sc.formatType(oid, -1, false)
	return text, text != "???"
}

// candidates are the functions that a possibly qualified name means, with whether the name is ambiguous.
func (sc *scope) candidates(text string) ([]uint32, error) {
	parts, err := splitName(text)
	if err != nil {
		return nil, err
	}
	var found []uint32
	_, err = sc.lookup(parts, func(schema, name string) uint32 {
		found = append(found, sc.functionOIDs(schema, name)...)
		return 0
	})
	return found, err
}

func (sc *scope) regprocIn(text string) (uint32, error) {
	found, err := sc.candidates(text)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) > 1:
		return 0, pgerr.Newf(pgerr.AmbiguousFunction, "more than one function named \"%s\"", text)
	}
	return found[0], nil
}

// regprocOut leaves the schema out only when the bare name means this function and no other.
func (sc *scope) regprocOut(oid uint32) (string, bool) {
	q, ok := sc.functionNamed(oid)
	if !ok {
		return "", false
	}
	if found, err := sc.candidates(quoteIdent(q.name)); err == nil && len(found) == 1 && found[0] == oid {
		return quoteIdent(q.name), true
	}
	return quoteIdent(q.schema) + "." + quoteIdent(q.name), true
}

func (sc *scope) regprocedureIn(text string) (uint32, error) {
	open := strings.IndexByte(text, '(')
	if open < 0 || !strings.HasSuffix(strings.TrimSpace(text), ")") {
		return 0, pgerr.Newf(pgerr.InvalidTextRepresentation, "expected a left parenthesis")
	}
	found, err := sc.candidates(text[:open])
	if err != nil {
		return 0, err
	}
	var types []uint32
	if args := strings.TrimSuffix(strings.TrimSpace(text[open+1:]), ")"); strings.TrimSpace(args) != "" {
		for _, a := range strings.Split(args, ",") {
			oid, err := sc.regtypeIn(a)
			if err != nil || oid == 0 {
				return 0, missingObject("type")(strings.TrimSpace(a))
			}
			types = append(types, oid)
		}
	}
	for _, oid := range found {
		if equal(sc.argTypes(oid), types) {
			return oid, nil
		}
	}
	return 0, nil
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// argTypes are a function's input types.
func (s *Snapshot) argTypes(oid uint32) []uint32 {
	var out []uint32
	if f := s.functions[oid]; f != nil {
		for _, a := range f.Args {
			out = append(out, a.TypeOID)
		}
		return out
	}
	row, ok := s.catalog.index().functionRow[oid]
	if !ok {
		return nil
	}
	t := s.catalog.mustText("pg_proc")
	for _, word := range strings.Fields(t.column("proargtypes")(row)) {
		out = append(out, parseOID(word))
	}
	return out
}

func (sc *scope) regprocedureOut(oid uint32) (string, bool) {
	q, ok := sc.functionNamed(oid)
	if !ok {
		return "", false
	}
	var args []string
	for _, t := range sc.argTypes(oid) {
		args = append(args, sc.formatType(t, -1, false))
	}
	name := quoteIdent(q.name)
	if !sc.onPath(q.schema) {
		name = quoteIdent(q.schema) + "." + name
	}
	return name + "(" + strings.Join(args, ",") + ")", true
}

// single reads a name that cannot be qualified.
func single(text string) (string, error) {
	parts, err := splitName(text)
	if err != nil {
		return "", err
	}
	if len(parts) != 1 {
		return "", pgerr.New(pgerr.InvalidName, "invalid name syntax")
	}
	return parts[0], nil
}

func (sc *scope) regnamespaceIn(text string) (uint32, error) {
	name, err := single(text)
	if err != nil {
		return 0, err
	}
	return sc.namespaceByName(name), nil
}

func (sc *scope) regnamespaceOut(oid uint32) (string, bool) {
	name := sc.namespaceName(oid)
	return quoteIdent(name), name != ""
}

func (sc *scope) regroleIn(text string) (uint32, error) {
	name, err := single(text)
	if err != nil {
		return 0, err
	}
	return sc.roleByName(name), nil
}

func (sc *scope) regroleOut(oid uint32) (string, bool) {
	name := sc.roleName(oid)
	return quoteIdent(name), name != ""
}
