package pgcatalog

import (
	"strings"

	"github.com/nordisk/skade-pg/internal/pgerr"
)

// orNull turns a text that may not exist into a result.
func orNull(text string, ok bool) (any, error) {
	if !ok {
		return nil, nil
	}
	return text, nil
}

// relationArg resolves an argument that names a relation by OID or by name.
func (sc *scope) relationArg(v any) (uint32, error) { return sc.regIn(&regTypes[0], v.(string), true) }

func viewDefArg(sc *scope, v any, pretty bool) (any, error) {
	oid, err := sc.relationArg(v)
	if err != nil {
		return nil, err
	}
	return orNull(sc.viewDef(oid, pretty))
}

// truth reads the boolean or wrap column that pg_get_viewdef takes as its second argument.
func truth(v any) bool { s, _ := v.(string); return s != "false" && s != "f" }

// definitionFunctions print objects as SQL.
var definitionFunctions = []function{
	{name: "pg_get_viewdef", args: []kind{kAny}, result: kText, run: func(sc *scope, a []any) (any, error) { return viewDefArg(sc, a[0], false) }},
	{name: "pg_get_viewdef", args: []kind{kAny, kText}, result: kText, run: func(sc *scope, a []any) (any, error) { return viewDefArg(sc, a[0], truth(a[1])) }},
	{name: "pg_get_indexdef", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return orNull(sc.indexDef(oidArg(a[0]), 0, false)) }},
	{name: "pg_get_indexdef", args: []kind{kOID, kInt8, kBool}, result: kText, run: func(sc *scope, a []any) (any, error) {
		return orNull(sc.indexDef(oidArg(a[0]), a[1].(int64), a[2].(bool)))
	}},
	{name: "pg_get_constraintdef", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return orNull(sc.constraintDef(oidArg(a[0]), false)) }},
	{name: "pg_get_constraintdef", args: []kind{kOID, kBool}, result: kText, run: func(sc *scope, a []any) (any, error) {
		return orNull(sc.constraintDef(oidArg(a[0]), a[1].(bool)))
	}},
	{name: "pg_get_expr", args: []kind{kText, kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return sc.expression(a[0].(string), false), nil }},
	{name: "pg_get_expr", args: []kind{kText, kOID, kBool}, result: kText, run: func(sc *scope, a []any) (any, error) { return sc.expression(a[0].(string), a[2].(bool)), nil }},
	{name: "pg_get_functiondef", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return orNull(sc.functionDef(oidArg(a[0]))) }},
	{name: "pg_get_function_arguments", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return orNull(sc.functionText(oidArg(a[0]), 1)) }},
	{name: "pg_get_function_identity_arguments", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) {
		return orNull(sc.functionText(oidArg(a[0]), 2))
	}},
	{name: "pg_get_function_result", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) { return orNull(sc.functionText(oidArg(a[0]), 3)) }},
	{name: "pg_get_function_arg_default", args: []kind{kOID, kInt4}, result: kText, run: func(sc *scope, a []any) (any, error) {
		f, n := sc.functions[oidArg(a[0])], int(a[1].(int32))
		if f == nil || n < 1 || n > len(f.Args) || f.Args[n-1].Default == "" {
			return nil, nil
		}
		return f.Args[n-1].Default, nil
	}},
	{name: "pg_get_ruledef", args: []kind{kOID}, result: kText, run: ruleDef},
	{name: "pg_get_ruledef", args: []kind{kOID, kBool}, result: kText, run: ruleDef},
	{name: "pg_get_serial_sequence", args: []kind{kText, kText}, result: kText, run: func(sc *scope, a []any) (any, error) {
		oid, err := sc.relationArg(a[0])
		if err != nil {
			return nil, err
		}
		r := sc.relations[oid]
		if r == nil {
			return nil, nil
		}
		for _, c := range r.Columns {
			if c.Name == a[1].(string) {
				return sc.serialSequence(r, c.AttNum), nil
			}
		}
		return nil, pgerr.Newf(pgerr.UndefinedColumn, "column \"%s\" of relation \"%s\" does not exist", a[1], r.Name)
	}},
	{name: "pg_index_column_has_property", args: []kind{kAny, kInt4, kText}, result: kBool, run: indexColumnProperty},
	{name: "pg_index_has_property", args: []kind{kAny, kText}, result: kBool, run: func(_ *scope, a []any) (any, error) {
		switch strings.ToLower(a[1].(string)) {
		case "clusterable", "index_scan", "bitmap_scan", "backward_scan":
			return true, nil
		}
		return nil, nil
	}},
	{name: "pg_indexam_has_property", args: []kind{kOID, kText}, result: kBool, run: func(_ *scope, a []any) (any, error) {
		switch strings.ToLower(a[1].(string)) {
		case "can_order", "can_unique", "can_multi_col", "can_exclude", "can_include":
			return oidArg(a[0]) == amBTree, nil
		}
		return nil, nil
	}},
	{name: "pg_relation_is_updatable", args: []kind{kAny, kBool}, result: kInt4, run: func(sc *scope, a []any) (any, error) {
		oid, err := sc.relationArg(a[0])
		if r := sc.relations[oid]; err == nil && r != nil && r.Kind == Table {
			return 28, nil // UPDATE, INSERT and DELETE
		}
		return 0, err
	}},
	{name: "pg_column_is_updatable", args: []kind{kAny, kInt4, kBool}, result: kBool, run: func(sc *scope, a []any) (any, error) {
		oid, err := sc.relationArg(a[0])
		r := sc.relations[oid]
		return r != nil && r.Kind == Table && a[1].(int32) > 0, err
	}},
	{name: "pg_relation_is_publishable", args: []kind{kAny}, result: kBool, run: func(sc *scope, a []any) (any, error) {
		oid, err := sc.relationArg(a[0])
		r := sc.relations[oid]
		return r != nil && r.Kind == Table, err
	}},
}

func indexColumnProperty(sc *scope, a []any) (any, error) {
	oid, err := sc.relationArg(a[0])
	if err != nil {
		return nil, err
	}
	if text, ok := sc.indexDef(oid, int64(a[1].(int32)), false); !ok || text == "" {
		return nil, nil
	}
	switch strings.ToLower(a[2].(string)) {
	case "asc", "nulls_last", "orderable", "returnable", "search_array", "search_nulls":
		return true, nil
	case "desc", "nulls_first", "distance_orderable":
		return false, nil
	}
	return nil, nil
}

func ruleDef(sc *scope, a []any) (any, error) {
	kind, base := derivedFrom(oidArg(a[0]))
	r := sc.relations[base]
	if kind != viewRule || r == nil {
		return nil, nil
	}
	return "CREATE RULE \"_RETURN\" AS\n    ON SELECT TO " + quoteIdent(r.Namespace) + "." + quoteIdent(r.Name) + " DO INSTEAD " + r.Definition, nil
}

// commentFunctions read comments.
var commentFunctions = []function{
	{name: "obj_description", args: []kind{kOID, kText}, result: kText, run: func(sc *scope, a []any) (any, error) {
		class := sc.catalog.index().relations.find("pg_catalog", a[1].(string))
		text := sc.comment(class, oidArg(a[0]), 0)
		return orNull(text, text != "")
	}},
	{name: "obj_description", args: []kind{kOID}, result: kText, run: func(sc *scope, a []any) (any, error) {
		for _, class := range []uint32{classRelation, classProc, classType, classNamespace} {
			if text := sc.comment(class, oidArg(a[0]), 0); text != "" {
				return text, nil
			}
		}
		return nil, nil
	}},
	{name: "col_description", args: []kind{kOID, kInt4}, result: kText, run: func(sc *scope, a []any) (any, error) {
		if a[1].(int32) == 0 {
			return nil, nil
		}
		text := sc.comment(classRelation, oidArg(a[0]), a[1].(int32))
		return orNull(text, text != "")
	}},
	{name: "shobj_description", args: []kind{kOID, kText}, result: kText, run: func(sc *scope, a []any) (any, error) {
		class := sc.catalog.index().relations.find("pg_catalog", a[1].(string))
		text := sc.sharedComment(class, oidArg(a[0]))
		return orNull(text, text != "")
	}},
}
