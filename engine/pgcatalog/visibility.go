package pgcatalog

// visibilityFunctions are pg_table_is_visible and its like.
func visibilityFunctions() []function {
	out := []function{
		visibility("pg_table_is_visible", (*scope).relationName, (*scope).relationOID),
		visibility("pg_type_is_visible", (*scope).typeNamed, (*scope).typeOID),
		{name: "pg_function_is_visible", args: []kind{kOID}, result: kBool, run: functionVisible},
	}
	for name, catalog := range map[string]string{"pg_operator_is_visible": "pg_operator", "pg_opclass_is_visible": "pg_opclass", "pg_opfamily_is_visible": "pg_opfamily",
		"pg_collation_is_visible": "pg_collation", "pg_conversion_is_visible": "pg_conversion", "pg_ts_config_is_visible": "pg_ts_config", "pg_ts_dict_is_visible": "pg_ts_dict",
		"pg_ts_parser_is_visible": "pg_ts_parser", "pg_ts_template_is_visible": "pg_ts_template", "pg_statistics_obj_is_visible": "pg_statistic_ext"} {
		// PostgreSQL's own objects of these kinds are all in pg_catalog or information_schema, and names repeat (operators, opclasses
		// by method): the schema decides.
		out = append(out, function{name: name, args: []kind{kOID}, result: kBool, run: func(sc *scope, a []any) (any, error) {
			q, ok := sc.catalog.index().others[catalog].byOID[oidArg(a[0])]
			if !ok {
				return nil, nil
			}
			return sc.onPath(q.schema), nil
		}})
	}
	return out
}

func (sc *scope) onPath(schema string) bool {
	for _, s := range sc.path {
		if s == schema {
			return true
		}
	}
	return false
}

func visibility(name string, named func(*scope, uint32) (qualified, bool), find finder) function {
	return function{name: name, args: []kind{kOID}, result: kBool, run: func(sc *scope, a []any) (any, error) {
		oid := oidArg(a[0])
		q, ok := named(sc, oid)
		if !ok {
			return nil, nil
		}
		return sc.visible(object{q, oid}, func(schema, name string) uint32 { return find(sc, schema, name) }), nil
	}}
}

// functionVisible: a function is hidden only by one of the same name and arguments earlier in the path.
func functionVisible(sc *scope, a []any) (any, error) {
	oid := oidArg(a[0])
	q, ok := sc.functionNamed(oid)
	if !ok {
		return nil, nil
	}
	args := sc.argTypes(oid)
	for _, schema := range sc.path {
		if schema == q.schema {
			return true, nil
		}
		for _, other := range sc.functionOIDs(schema, q.name) {
			if equal(sc.argTypes(other), args) {
				return false, nil
			}
		}
	}
	return false, nil
}
