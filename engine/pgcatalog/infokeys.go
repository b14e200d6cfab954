package pgcatalog

import "strconv"

// The views of information_schema about keys, checks and rights. Source: PostgreSQL 15, information_schema.sql.

// notNullName is the name that information_schema makes up for a NOT NULL constraint.
func (s *Snapshot) notNullName(r *Relation, attnum int16) string {
	return strconv.FormatUint(uint64(s.namespaceByName(r.Namespace)), 10) + "_" + strconv.FormatUint(uint64(r.OID), 10) + "_" + strconv.Itoa(int(attnum)) + "_not_null"
}

func keyColumnRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("constraint_catalog", db).set("table_catalog", db)
	w.columns("constraint_schema", "constraint_name", "table_schema", "table_name", "column_name", "ordinal_position")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if !r.hasKey() {
			continue
		}
		for n, attnum := range r.PrimaryKey {
			if c := r.column(attnum); c != nil {
				w.add(shown(r.Namespace), shown(r.keyName()), shown(r.Namespace), shown(r.Name), shown(c.Name), n+1)
			}
		}
	}
}

func tableConstraintRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("constraint_catalog", db).set("table_catalog", db).set("is_deferrable", "NO").set("initially_deferred", "NO").set("enforced", "YES")
	w.columns("constraint_schema", "constraint_name", "table_schema", "table_name", "constraint_type", "nulls_distinct")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		nsp, name := shown(r.Namespace), shown(r.Name)
		if r.hasKey() {
			kind, distinct := "PRIMARY KEY", any(nil)
			if r.Unique {
				kind, distinct = "UNIQUE", "YES"
			}
			w.add(nsp, shown(r.keyName()), nsp, name, kind, distinct)
		}
		for _, c := range r.Checks {
			w.add(nsp, shown(c.Name), nsp, name, "CHECK", nil)
		}
		for _, c := range r.Columns {
			if c.NotNull && r.Kind != Sequence {
				w.add(nsp, s.notNullName(r, c.AttNum), nsp, name, "CHECK", nil)
			}
		}
	}
}

func constraintColumnRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("constraint_catalog", db).set("table_catalog", db)
	w.columns("table_schema", "table_name", "column_name", "constraint_schema", "constraint_name")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		add := func(name string, columns []int16) {
			for _, attnum := range columns {
				if c := r.column(attnum); c != nil {
					w.add(shown(r.Namespace), shown(r.Name), shown(c.Name), shown(r.Namespace), shown(name))
				}
			}
		}
		if r.hasKey() {
			add(r.keyName(), r.PrimaryKey)
		}
		for _, c := range r.Checks {
			add(c.Name, c.Columns)
		}
	}
}

func constraintTableRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("constraint_catalog", db).set("table_catalog", db).columns("table_schema", "table_name", "constraint_schema", "constraint_name")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.hasKey() {
			w.add(shown(r.Namespace), shown(r.Name), shown(r.Namespace), shown(r.keyName()))
		}
		for _, c := range r.Checks {
			w.add(shown(r.Namespace), shown(r.Name), shown(r.Namespace), shown(c.Name))
		}
	}
}

func checkConstraintRows(s *Snapshot, w *rows) {
	w.set("constraint_catalog", s.database()).columns("constraint_schema", "constraint_name", "check_clause")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		for _, c := range r.Checks {
			w.add(shown(r.Namespace), shown(c.Name), "("+c.Expr+")")
		}
		for _, c := range r.Columns {
			if c.NotNull && r.Kind != Sequence {
				w.add(shown(r.Namespace), s.notNullName(r, c.AttNum), shown(c.Name)+" IS NOT NULL")
			}
		}
	}
}

// tableRights are the owner's privileges on a table or view, in the order of PostgreSQL's acldefault.
var tableRights = []string{"INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"}

func tableGrantRows(s *Snapshot, w *rows) {
	w.set("table_catalog", s.database()).set("is_grantable", "YES")
	w.columns("grantor", "grantee", "table_schema", "table_name", "privilege_type", "with_hierarchy")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		role := s.roleName(owner(r.Owner))
		for _, right := range tableRights {
			w.add(role, role, shown(r.Namespace), shown(r.Name), right, yesNo(right == "SELECT"))
		}
	}
}

func columnGrantRows(s *Snapshot, w *rows) {
	w.set("table_catalog", s.database()).set("is_grantable", "YES")
	w.columns("grantor", "grantee", "table_schema", "table_name", "column_name", "privilege_type")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		role := s.roleName(owner(r.Owner))
		for _, c := range r.Columns {
			for _, right := range []string{"INSERT", "SELECT", "UPDATE", "REFERENCES"} {
				w.add(role, role, shown(r.Namespace), shown(r.Name), shown(c.Name), right)
			}
		}
	}
}
