package pgcatalog

import (
	"strconv"
	"strings"
)

// The functions of schema skade as PostgreSQL shows functions.

func (f *Function) volatility() string {
	if f.Volatile == 0 {
		return "v"
	}
	return string(rune(f.Volatile))
}

// typeName is format_type(oid, NULL), with row types of user tables.
func (s *Snapshot) typeName(oid uint32) string { return s.formatType(oid, -1, false) }

// arguments is pg_get_function_arguments.
func (s *Snapshot) arguments(f *Function) string { return s.argumentList(f, true) }

func (s *Snapshot) argumentList(f *Function, defaults bool) string {
	var parts []string
	for i, a := range f.Args {
		text := strings.TrimLeft(quoteIdent(a.Name)+" "+s.typeName(a.TypeOID), " ")
		if a.Name == "" {
			text = s.typeName(a.TypeOID)
		}
		if defaults && i >= len(f.Args)-f.Defaults {
			def := a.Default
			if def == "" {
				def = "NULL::" + s.typeName(a.TypeOID)
			}
			text += " DEFAULT " + def
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// result is pg_get_function_result.
func (s *Snapshot) result(f *Function) string {
	if len(f.Out) > 0 {
		var parts []string
		for _, a := range f.Out {
			parts = append(parts, quoteIdent(a.Name)+" "+s.typeName(a.TypeOID))
		}
		return "TABLE(" + strings.Join(parts, ", ") + ")"
	}
	if f.ReturnsSet {
		return "SETOF " + s.typeName(f.Return)
	}
	return s.typeName(f.Return)
}

func procRows(s *Snapshot, w *rows) {
	w.set("proowner", bootstrapOwner).set("prolang", languageInternal).set("procost", 1).set("prokind", "f").set("proparallel", "s")
	w.columns("oid", "proname", "pronamespace", "prorows", "proisstrict", "proretset", "provolatile", "pronargs", "pronargdefaults", "prorettype",
		"proargtypes", "proallargtypes", "proargmodes", "proargnames", "proargdefaults", "prosrc")
	for i := range s.objects.Functions {
		f := &s.objects.Functions[i]
		types, names := []uint32{}, []string{}
		named := false
		for _, a := range f.Args {
			types, names = append(types, a.TypeOID), append(names, a.Name)
			named = named || a.Name != ""
		}
		var all []uint32
		var modes []string
		if len(f.Out) > 0 {
			all = append(all, types...)
			modes = append(modes, strings.Split(strings.Repeat("i", len(f.Args)), "")...)
			for _, a := range f.Out {
				all, modes, names, named = append(all, a.TypeOID), append(modes, "t"), append(names, a.Name), true
			}
		}
		if !named {
			names = nil
		}
		var defaults any
		if f.Defaults > 0 {
			defaults = "<>"
		}
		expected := 0
		if f.ReturnsSet {
			expected = 1000
		}
		w.add(f.OID, f.Name, s.namespaceByName(f.Namespace), expected, f.Strict, f.ReturnsSet, f.volatility(), len(f.Args), f.Defaults, f.Return,
			types, all, modes, names, defaults, f.Name)
	}
}

func routineRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("specific_catalog", db).set("routine_catalog", db).set("routine_type", "FUNCTION").set("type_udt_catalog", db).set("dtd_identifier", "0").set("routine_body", "EXTERNAL")
	w.set("external_language", "INTERNAL").set("parameter_style", "GENERAL").set("sql_data_access", "MODIFIES").set("schema_level_routine", "YES")
	w.set("max_dynamic_result_sets", 0).set("security_type", "INVOKER").set("as_locator", "NO").set("is_udt_dependent", "NO")
	w.columns("specific_schema", "specific_name", "routine_schema", "routine_name", "data_type", "type_udt_schema", "type_udt_name", "routine_definition", "is_deterministic", "is_null_call")
	for i := range s.objects.Functions {
		f := &s.objects.Functions[i]
		t := s.facetsOf(f.Return, -1)
		w.add(f.Namespace, specificName(f), f.Namespace, f.Name, t.dataType, t.udtSchema, t.udtName, f.Name, yesNo(f.Volatile == 'i'), yesNo(f.Strict))
	}
}

func specificName(f *Function) string { return f.Name + "_" + strconv.FormatUint(uint64(f.OID), 10) }

func parameterRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("specific_catalog", db).set("is_result", "NO").set("as_locator", "NO").set("udt_catalog", db)
	w.columns("specific_schema", "specific_name", "ordinal_position", "parameter_mode", "parameter_name", "data_type", "udt_schema", "udt_name", "dtd_identifier", "parameter_default")
	for i := range s.objects.Functions {
		f := &s.objects.Functions[i]
		n := 0
		add := func(args []FunctionArg, mode string) {
			for _, a := range args {
				n++
				t := s.facetsOf(a.TypeOID, -1)
				w.add(f.Namespace, specificName(f), n, mode, null(a.Name), t.dataType, t.udtSchema, t.udtName, strconv.Itoa(n), null(a.Default))
			}
		}
		add(f.Args, "IN")
		add(f.Out, "OUT")
	}
}
