package pgcatalog

// The functions about sizes on disk. Only data files count: a key's index has no file of its own.

func (sc *scope) relationSize(v any) (any, error) {
	oid, err := sc.relationArg(v)
	if err != nil {
		return nil, err
	}
	if r := sc.relations[oid]; r != nil {
		return r.Bytes, nil
	}
	if _, ok := sc.relationName(oid); ok {
		return 0, nil
	}
	return nil, nil
}

func (sc *scope) zeroSize(v any) (any, error) {
	size, err := sc.relationSize(v)
	if size != nil {
		size = 0
	}
	return size, err
}

func dataSize(sc *scope, a []any) (any, error) { return sc.relationSize(a[0]) }

var sizeFunctions = []function{
	{name: "pg_relation_size", args: []kind{kAny}, result: kInt8, run: dataSize},
	{name: "pg_relation_size", args: []kind{kAny, kText}, result: kInt8, run: func(sc *scope, a []any) (any, error) {
		if a[1].(string) == "main" {
			return sc.relationSize(a[0])
		}
		return sc.zeroSize(a[0])
	}},
	{name: "pg_table_size", args: []kind{kAny}, result: kInt8, run: dataSize},
	{name: "pg_total_relation_size", args: []kind{kAny}, result: kInt8, run: dataSize},
	{name: "pg_indexes_size", args: []kind{kAny}, result: kInt8, run: func(sc *scope, a []any) (any, error) { return sc.zeroSize(a[0]) }},
	{name: "pg_database_size", args: []kind{kAny}, result: kInt8, run: func(sc *scope, a []any) (any, error) {
		oid, byOID := numericOID(a[0].(string))
		if !byOID {
			var err error
			if oid, err = databaseByName(sc, a[0].(string)); err != nil {
				return nil, err
			}
		}
		d := sc.databaseByOID(oid)
		if d == nil {
			return nil, nil
		}
		if d.Bytes != 0 || d.Name != sc.database() {
			return d.Bytes, nil
		}
		return sc.totalBytes(), nil
	}},
	{name: "pg_tablespace_size", args: []kind{kAny}, result: kInt8, run: func(sc *scope, a []any) (any, error) {
		if text := a[0].(string); text == "pg_default" || text == number(tablespaceDefault) {
			return sc.totalBytes(), nil
		}
		return 0, nil
	}},
	{name: "pg_relation_filenode", args: []kind{kAny}, result: kOID, run: func(sc *scope, a []any) (any, error) {
		oid, err := sc.relationArg(a[0])
		if r := sc.relations[oid]; err != nil || r != nil && r.Kind == View {
			return nil, err
		}
		return oid, nil
	}},
}

func (s *Snapshot) totalBytes() int64 {
	n := int64(0)
	for i := range s.objects.Relations {
		n += s.objects.Relations[i].Bytes
	}
	return n
}
