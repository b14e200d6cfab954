package pgcatalog

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
	"github.com/nordisk/skade-pg/internal/pgtype"
)

// The has_*_privilege functions. Source: PostgreSQL 15, acl.c.

// privilegeKind is one family of them.
type privilegeKind struct {
	function, class, rights string
	// find resolves the object by name; 0 with an error, or 0 when there is none.
	find func(sc *scope, name string) (uint32, error)
	// known reports whether an OID exists: an unknown one gives NULL.
	known func(sc *scope, oid uint32) bool
}

func reg(typeOID uint32) func(*scope, string) (uint32, error) {
	return func(sc *scope, name string) (uint32, error) {
		for i := range regTypes {
			if regTypes[i].oid == typeOID {
				return sc.regIn(&regTypes[i], name, true)
			}
		}
		return 0, nil
	}
}

var privilegeKinds = []privilegeKind{
	{"has_table_privilege", "pg_class", "SELECT INSERT UPDATE DELETE TRUNCATE REFERENCES TRIGGER RULE", reg(pgtype.RegClass), knownRelation},
	{"has_any_column_privilege", "pg_class", "SELECT INSERT UPDATE REFERENCES", reg(pgtype.RegClass), knownRelation},
	{"has_sequence_privilege", "pg_class", "USAGE SELECT UPDATE", reg(pgtype.RegClass), knownRelation},
	{"has_schema_privilege", "pg_namespace", "CREATE USAGE", schemaByName, func(sc *scope, oid uint32) bool { return sc.namespaceName(oid) != "" }},
	{"has_database_privilege", "pg_database", "CREATE CONNECT TEMPORARY TEMP", databaseByName, func(sc *scope, oid uint32) bool { return sc.databaseByOID(oid) != nil }},
	{"has_function_privilege", "pg_proc", "EXECUTE", reg(pgtype.RegProcedure), func(sc *scope, oid uint32) bool { _, ok := sc.functionNamed(oid); return ok }},
	{"has_type_privilege", "pg_type", "USAGE", reg(pgtype.RegType), func(sc *scope, oid uint32) bool { _, ok := sc.typeNamed(oid); return ok }},
	{"has_language_privilege", "pg_language", "USAGE", fixedNames("pg_language", "lanname", "language"), anyKnown},
	{"has_tablespace_privilege", "pg_tablespace", "CREATE", fixedNames("pg_tablespace", "spcname", "tablespace"), anyKnown},
	{"has_foreign_data_wrapper_privilege", "pg_foreign_data_wrapper", "USAGE", fixedNames("pg_foreign_data_wrapper", "fdwname", "foreign-data wrapper"), anyKnown},
	{"has_server_privilege", "pg_foreign_server", "USAGE", fixedNames("pg_foreign_server", "srvname", "server"), anyKnown},
}

func knownRelation(sc *scope, oid uint32) bool { _, ok := sc.relationName(oid); return ok }

func anyKnown(*scope, uint32) bool { return true }

func schemaByName(sc *scope, name string) (uint32, error) {
	if oid := sc.namespaceByName(name); oid != 0 {
		return oid, nil
	}
	return 0, pgerr.Newf(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
}

func databaseByName(sc *scope, name string) (uint32, error) {
	for _, d := range sc.objects.Databases {
		if d.Name == name {
			return d.OID, nil
		}
	}
	return 0, pgerr.Newf(pgerr.InvalidCatalogName, "database \"%s\" does not exist", name)
}

func (s *Snapshot) databaseByOID(oid uint32) *Database {
	for i := range s.objects.Databases {
		if s.objects.Databases[i].OID == oid {
			return &s.objects.Databases[i]
		}
	}
	return nil
}

func fixedNames(catalog, column, word string) func(*scope, string) (uint32, error) {
	return func(sc *scope, name string) (uint32, error) {
		t := sc.catalog.mustText(catalog)
		oid, names := t.oids("oid"), t.column(column)
		for i := range t.rows {
			if names(i) == name {
				return oid(i), nil
			}
		}
		return 0, pgerr.Newf(pgerr.UndefinedObject, "%s \"%s\" does not exist", word, name)
	}
}

func privilegeFunctions() []function {
	var out []function
	for _, p := range privilegeKinds {
		out = append(out,
			function{name: p.function, args: []kind{kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
				return sc.privilege(p, sc.currentRole(), a[0].(string), a[1].(string))
			}},
			function{name: p.function, args: []kind{kAny, kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
				role, err := sc.roleArg(a[0].(string))
				if err != nil {
					return nil, err
				}
				return sc.privilege(p, role, a[1].(string), a[2].(string))
			}})
	}
	table := privilegeKinds[1]
	return append(out,
		function{name: "has_column_privilege", args: []kind{kAny, kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
			return sc.columnPrivilege(table, sc.currentRole(), a)
		}},
		function{name: "has_column_privilege", args: []kind{kAny, kAny, kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
			role, err := sc.roleArg(a[0].(string))
			if err != nil {
				return nil, err
			}
			return sc.columnPrivilege(table, role, a[1:])
		}},
		function{name: "has_parameter_privilege", args: []kind{kText, kText}, result: kBool, run: superuser},
		function{name: "has_parameter_privilege", args: []kind{kAny, kText, kText}, result: kBool, run: superuser},
		function{name: "pg_has_role", args: []kind{kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
			return sc.hasRole(sc.currentRole(), a[0].(string))
		}},
		function{name: "pg_has_role", args: []kind{kAny, kAny, kText}, result: kBool, run: func(sc *scope, a []any) (any, error) {
			role, err := sc.roleArg(a[0].(string))
			if err != nil {
				return nil, err
			}
			return sc.hasRole(role, a[1].(string))
		}})
}

func superuser(sc *scope, _ []any) (any, error) {
	r := sc.roles[sc.currentRole()]
	return r == nil || r.Superuser, nil
}

func (sc *scope) currentRole() uint32 {
	if sc.session == nil {
		return bootstrapOwner
	}
	return sc.roleByName(sc.session.Info().User)
}

func (sc *scope) roleArg(text string) (uint32, error) {
	if oid, ok := numericOID(text); ok {
		return oid, nil
	}
	if text == "public" {
		return 0, nil
	}
	if oid := sc.roleByName(text); oid != 0 {
		return oid, nil
	}
	return 0, pgerr.Newf(pgerr.UndefinedObject, "role \"%s\" does not exist", text)
}

// privilege answers for an object given by OID or name and a comma-separated list of rights, of which one is enough.
func (sc *scope) privilege(p privilegeKind, role uint32, what, rights string) (any, error) {
	oid, byOID := numericOID(what)
	if !byOID {
		var err error
		if oid, err = p.find(sc, what); err != nil {
			return nil, err
		}
	}
	list, err := parseRights(rights, p.rights)
	if err != nil {
		return nil, err
	}
	if byOID && !p.known(sc, oid) {
		return nil, nil
	}
	for _, right := range list {
		if sc.session == nil || sc.session.HasPrivilege(role, p.class, oid, right) {
			return true, nil
		}
	}
	return false, nil
}

func (sc *scope) columnPrivilege(p privilegeKind, role uint32, a []any) (any, error) {
	oid, err := sc.relationArg(a[0])
	if err != nil {
		return nil, err
	}
	if r := sc.relations[oid]; r != nil {
		name := a[1].(string)
		n, byNumber := numericOID(name)
		found := false
		for _, c := range r.Columns {
			found = found || c.Name == name || byNumber && c.AttNum == int16(n)
		}
		if !found && byNumber {
			return nil, nil
		}
		if !found {
			return nil, pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", name, r.Name)
		}
	}
	return sc.privilege(p, role, number(oid), a[2].(string))
}

// hasRole reports membership, direct or through other roles; a superuser is a member of every role.
func (sc *scope) hasRole(member uint32, text string) (any, error) {
	role, err := sc.roleArg(text)
	if err != nil {
		return nil, err
	}
	seen := map[uint32]bool{}
	var reaches func(oid uint32) bool
	reaches = func(oid uint32) bool {
		r := sc.roles[oid]
		if oid == role || r != nil && r.Superuser || r == nil && oid == bootstrapOwner {
			return true
		}
		if r == nil || seen[oid] {
			return false
		}
		seen[oid] = true
		for _, g := range r.MemberOf {
			if reaches(g) {
				return true
			}
		}
		return false
	}
	return reaches(member), nil
}

// parseRights splits a list of rights; WITH GRANT OPTION (or ADMIN OPTION) is dropped: the owner has both.
func parseRights(text, allowed string) ([]string, error) {
	var out []string
	for _, part := range strings.Split(text, ",") {
		word := strings.ToUpper(strings.TrimSpace(part))
		word = strings.TrimSuffix(word, " WITH GRANT OPTION")
		ok := false
		for _, a := range strings.Fields(allowed) {
			ok = ok || a == word
		}
		if !ok {
			return nil, pgerr.Newf(pgerr.InvalidParameterValue, "unrecognized privilege type: \"%s\"", strings.TrimSpace(part))
		}
		out = append(out, word)
	}
	return out, nil
}
