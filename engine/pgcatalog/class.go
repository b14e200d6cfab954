package pgcatalog

import "github.com/nordisk/skade-pg/internal/pgtype"

// pageSize is the unit of relpages.
const pageSize = 8192

func pages(bytes int64) int64 { return (bytes + pageSize - 1) / pageSize }

// hasKey reports whether the relation has a primary key, and so an index and a constraint.
func (r *Relation) hasKey() bool { return r.Kind == Table && len(r.PrimaryKey) > 0 }

// keyName is the name of the primary key's index and constraint.
func (r *Relation) keyName() string {
	if r.ConstraintName != "" {
		return r.ConstraintName
	}
	return keyNameOf(r.Name)
}

// keyNameOf is PostgreSQL's default: the table's name cut so that the whole stays within 63 bytes.
func keyNameOf(table string) string {
	const suffix, limit = "_pkey", 63
	return clip(table, limit-len(suffix)) + suffix
}

// clip shortens a name to n bytes at a character boundary.
func clip(name string, n int) string {
	if len(name) <= n {
		return name
	}
	for n > 0 && name[n]&0xC0 == 0x80 {
		n--
	}
	return name[:n]
}

// shown is a name as catalog columns of type name hold it: at most 63 bytes.
func shown(name string) string { return clip(name, 63) }

// column finds a column by number.
func (r *Relation) column(attnum int16) *RelationColumn {
	for i := range r.Columns {
		if r.Columns[i].AttNum == attnum {
			return &r.Columns[i]
		}
	}
	return nil
}

// maxAttNum is relnatts: numbers of dropped columns count.
func (r *Relation) maxAttNum() int16 {
	n := int16(0)
	for _, c := range r.Columns {
		n = max(n, c.AttNum)
	}
	return n
}

func (r *Relation) persistence() string {
	if r.Temporary {
		return "t"
	}
	return "p"
}

func owner(oid uint32) uint32 {
	if oid == 0 {
		return bootstrapOwner
	}
	return oid
}

func classRows(s *Snapshot, w *rows) {
	w.set("relispopulated", true).columns("oid", "relname", "relnamespace", "reltype", "relowner", "relam", "relfilenode", "relpages", "reltuples",
		"relallvisible", "relhasindex", "relpersistence", "relkind", "relnatts", "relhasrules", "relreplident", "relfrozenxid", "relminmxid", "reloptions", "relchecks")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		nsp := s.namespaceByName(r.Namespace)
		if r.Kind == View {
			w.add(r.OID, shown(r.Name), nsp, rowType.of(r.OID), owner(r.Owner), 0, 0, 0, -1,
				0, false, r.persistence(), "v", r.maxAttNum(), true, "n", 0, 0, r.Options, 0)
			continue
		}
		if r.Kind == Sequence {
			w.add(r.OID, shown(r.Name), nsp, 0, owner(r.Owner), 0, r.OID, 1, 1,
				0, false, r.persistence(), "S", r.maxAttNum(), false, "n", 0, 0, nil, 0)
			continue
		}
		n := pages(r.Bytes)
		w.add(r.OID, shown(r.Name), nsp, rowType.of(r.OID), owner(r.Owner), amHeap, r.OID, n, r.Rows,
			n, r.hasKey(), r.persistence(), "r", r.maxAttNum(), false, "d", frozenTransaction, 1, r.Options, len(r.Checks))
		if r.hasKey() {
			index := primaryIndex.of(r.OID)
			w.add(index, shown(r.keyName()), nsp, 0, owner(r.Owner), amBTree, index, 1, max(r.Rows, 0),
				0, false, r.persistence(), "i", len(r.PrimaryKey), false, "n", 0, 0, nil, 0)
		}
	}
}

func attributeRows(s *Snapshot, w *rows) {
	x := s.catalog.index()
	w.set("attstattarget", -1).set("attcacheoff", -1).set("attislocal", true).columns("attrelid", "attname", "atttypid", "attlen", "attnum", "attndims", "atttypmod",
		"attbyval", "attalign", "attstorage", "attnotnull", "atthasdef", "attcollation", "attidentity", "attgenerated")
	add := func(relation uint32, c *RelationColumn, attnum int16, notNull, hasDefault bool, identity, generated string) {
		t := x.typeOf(c.TypeOID)
		dims := 0
		if pgtype.ElemOf(c.TypeOID) != 0 {
			dims = 1
		}
		w.add(relation, shown(c.Name), c.TypeOID, t.len, attnum, dims, c.TypeMod, t.byVal, t.align, t.storage, notNull, hasDefault, t.collation, identity, generated)
	}
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		for j := range r.Columns {
			c := &r.Columns[j]
			identity, generated := "", ""
			if c.Identity != 0 {
				identity = string(rune(c.Identity))
			}
			if c.Generated {
				generated = "s"
			}
			add(r.OID, c, c.AttNum, c.NotNull, c.Default != "", identity, generated)
		}
		if !r.hasKey() {
			continue
		}
		for n, attnum := range r.PrimaryKey {
			if c := r.column(attnum); c != nil {
				add(primaryIndex.of(r.OID), c, int16(n+1), false, false, "", "")
			}
		}
	}
}

func attrdefRows(s *Snapshot, w *rows) {
	w.columns("oid", "adrelid", "adnum", "adbin")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		for _, c := range r.Columns {
			if c.Default != "" {
				w.add(attrdefOID(r.OID, c.AttNum), r.OID, c.AttNum, c.Default)
			}
		}
	}
}

// typeRows are the row type of every table and view and its array type.
func typeRows(s *Snapshot, w *rows) {
	x := s.catalog.index()
	in, out, recv, send := x.function("record_in"), x.function("record_out"), x.function("record_recv"), x.function("record_send")
	ain, aout, arecv, asend := x.function("array_in"), x.function("array_out"), x.function("array_recv"), x.function("array_send")
	subscript, analyze := x.function("array_subscript_handler"), x.function("array_typanalyze")
	w.set("typlen", -1).set("typisdefined", true).set("typdelim", ",").set("typalign", "d").set("typstorage", "x").set("typtypmod", -1)
	w.columns("oid", "typname", "typnamespace", "typowner", "typtype", "typcategory", "typrelid", "typsubscript", "typelem", "typarray",
		"typinput", "typoutput", "typreceive", "typsend", "typanalyze")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		nsp, row, array := s.namespaceByName(r.Namespace), rowType.of(r.OID), rowTypeArray.of(r.OID)
		w.add(row, shown(r.Name), nsp, owner(r.Owner), "c", "C", r.OID, 0, 0, array, in, out, recv, send, 0)
		w.add(array, shown("_"+r.Name), nsp, owner(r.Owner), "b", "A", 0, subscript, row, 0, ain, aout, arecv, asend, analyze)
	}
}

func indexRows(s *Snapshot, w *rows) {
	x := s.catalog.index()
	w.set("indisunique", true).set("indimmediate", true).set("indisvalid", true).set("indisready", true).set("indislive", true)
	w.columns("indexrelid", "indrelid", "indnatts", "indnkeyatts", "indkey", "indcollation", "indclass", "indoption", "indisprimary")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if !r.hasKey() {
			continue
		}
		n := len(r.PrimaryKey)
		collations, classes := make([]uint32, n), make([]uint32, n)
		for k, attnum := range r.PrimaryKey {
			if c := r.column(attnum); c != nil {
				collations[k], classes[k] = x.typeOf(c.TypeOID).collation, x.btreeClass(c.TypeOID)
			}
		}
		w.add(primaryIndex.of(r.OID), r.OID, n, n, r.PrimaryKey, collations, classes, make([]int16, n), !r.Unique)
	}
}

func constraintRows(s *Snapshot, w *rows) {
	w.set("confupdtype", " ").set("confdeltype", " ").set("confmatchtype", " ").set("conislocal", true)
	w.columns("oid", "conname", "connamespace", "conrelid", "conindid", "conkey", "contype", "convalidated", "connoinherit", "conbin")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		nsp := s.namespaceByName(r.Namespace)
		if r.hasKey() {
			kind := "p"
			if r.Unique {
				kind = "u"
			}
			w.add(primaryConstraint.of(r.OID), shown(r.keyName()), nsp, r.OID, primaryIndex.of(r.OID), r.PrimaryKey, kind, true, true, nil)
		}
		for _, c := range r.Checks {
			w.add(declaredOID(r.OID, "check", c.Name), shown(c.Name), nsp, r.OID, 0, c.Columns, "c", !c.NotValid, c.NoInherit, c.Expr)
		}
	}
}

func rewriteRows(s *Snapshot, w *rows) {
	w.set("rulename", "_RETURN").set("ev_type", "1").set("ev_enabled", "O").set("is_instead", true).set("ev_qual", "<>").set("ev_action", "<>")
	w.columns("oid", "ev_class")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == View {
			w.add(viewRule.of(r.OID), r.OID)
		}
	}
}
