package pgcatalog

import "strings"

// The functions that print an object as the SQL that makes it. Source: PostgreSQL 15, src/backend/utils/adt/ruleutils.c.

// indexDefinition is pg_get_indexdef without pretty printing: the table's name is always qualified.
func (s *Snapshot) indexDefinition(r *Relation) string {
	return indexText(r, quoteIdent(r.Namespace)+"."+quoteIdent(r.Name))
}

func indexText(r *Relation, table string) string {
	return "CREATE UNIQUE INDEX " + quoteIdent(r.keyName()) + " ON " + table + " USING btree (" + keyColumns(r) + ")"
}

func keyColumns(r *Relation) string {
	var names []string
	for _, attnum := range r.PrimaryKey {
		if c := r.column(attnum); c != nil {
			names = append(names, quoteIdent(c.Name))
		}
	}
	return strings.Join(names, ", ")
}

// indexDef is pg_get_indexdef; column 0 means the whole definition. ok is false for an unknown index.
func (sc *scope) indexDef(oid uint32, column int64, pretty bool) (text string, ok bool) {
	kind, base := derivedFrom(oid)
	r := sc.relations[base]
	if kind != primaryIndex || r == nil || !r.hasKey() {
		return sc.staticIndexDef(oid, column)
	}
	if column != 0 {
		if column < 0 || int(column) > len(r.PrimaryKey) {
			return "", true
		}
		if c := r.column(r.PrimaryKey[column-1]); c != nil {
			return quoteIdent(c.Name), true
		}
		return "", true
	}
	if !pretty {
		return sc.indexDefinition(r), true
	}
	return indexText(r, sc.written(object{qualified{r.Namespace, r.Name}, r.OID}, sc.relationOID)), true
}

func (sc *scope) staticIndexDef(oid uint32, column int64) (string, bool) {
	q, ok := sc.catalog.index().relations.byOID[oid]
	if !ok {
		return "", false
	}
	if column == 0 {
		t := sc.catalog.mustText("pg_indexes")
		name, def := t.column("indexname"), t.column("indexdef")
		for i := range t.rows {
			if name(i) == q.name {
				return def(i), true
			}
		}
		return "", false
	}
	t := sc.catalog.mustText("pg_attribute")
	rel, num, name := t.oids("attrelid"), t.oids("attnum"), t.column("attname")
	for i := range t.rows {
		if rel(i) == oid && int64(num(i)) == column {
			return quoteIdent(name(i)), true
		}
	}
	return "", true
}

// constraintDef is pg_get_constraintdef.
func (sc *scope) constraintDef(oid uint32, pretty bool) (string, bool) {
	kind, base := derivedFrom(oid)
	if r := sc.relations[base]; kind == primaryConstraint && r != nil && r.hasKey() {
		if r.Unique {
			return "UNIQUE (" + keyColumns(r) + ")", true
		}
		return "PRIMARY KEY (" + keyColumns(r) + ")", true
	}
	if c := sc.checks[oid]; c != nil {
		return sc.checkDef(c, pretty), true
	}
	return sc.staticText("text.constraint_text", oid, 1)
}

// viewDef is pg_get_viewdef.
func (sc *scope) viewDef(oid uint32, pretty bool) (string, bool) {
	if r := sc.relations[oid]; r != nil {
		return r.Definition, r.Kind == View
	}
	if pretty {
		return sc.staticText("text.view_text", oid, 1)
	}
	q, ok := sc.catalog.index().relations.byOID[oid]
	if !ok {
		return "", false
	}
	t := sc.catalog.mustText("pg_views")
	schema, name, def := t.column("schemaname"), t.column("viewname"), t.column("definition")
	for i := range t.rows {
		if name(i) == q.name && schema(i) == q.schema {
			return def(i), true
		}
	}
	return "", false
}

// staticText finds the text that PostgreSQL computed for one of its objects.
func (s *Snapshot) staticText(name string, oid uint32, column int) (string, bool) {
	t, err := s.catalog.text(name)
	if err != nil {
		return "", false
	}
	key := number(oid)
	for i := range t.rows {
		if t.value(0, i) == key {
			return t.value(column, i), true
		}
	}
	return "", false
}

// functionText finds one of a function's texts: 1 arguments, 2 identity arguments, 3 result.
func (sc *scope) functionText(oid uint32, column int) (string, bool) {
	f := sc.functions[oid]
	if f == nil {
		row, ok := sc.catalog.index().functionRow[oid]
		if !ok {
			return "", false
		}
		// proc_text has the rows of pg_proc in the same order.
		t, err := sc.catalog.text("text.proc_text")
		if err != nil {
			return "", false
		}
		return t.value(column, row), t.columns[column][row] != nil
	}
	switch column {
	case 1:
		return sc.arguments(f), true
	case 2:
		return sc.argumentList(f, false), true
	}
	return sc.result(f), true
}

// functionDef is pg_get_functiondef.
func (sc *scope) functionDef(oid uint32) (string, bool) {
	q, ok := sc.functionNamed(oid)
	if !ok {
		return "", false
	}
	args, _ := sc.functionText(oid, 1)
	result, _ := sc.functionText(oid, 3)
	var sb strings.Builder
	sb.WriteString("CREATE OR REPLACE FUNCTION " + quoteIdent(q.schema) + "." + quoteIdent(q.name) + "(" + args + ")\n RETURNS " + result + "\n LANGUAGE internal\n")
	src, attrs := sc.functionAttributes(oid)
	if attrs != "" {
		sb.WriteString(attrs + "\n")
	}
	sb.WriteString("AS $function$" + src + "$function$\n")
	return sb.String(), true
}

// functionAttributes are the words between LANGUAGE and AS, and the body.
func (sc *scope) functionAttributes(oid uint32) (src, attrs string) {
	if f := sc.functions[oid]; f != nil {
		return f.Name, attributeWords(f.volatility(), "s", f.Strict, false)
	}
	t, row := sc.catalog.mustText("pg_proc"), sc.catalog.index().functionRow[oid]
	attrs = attributeWords(t.column("provolatile")(row), t.column("proparallel")(row), t.column("proisstrict")(row) == "t", t.column("proleakproof")(row) == "t")
	if cost := t.column("procost")(row); cost != "1" {
		attrs += " COST " + cost
	}
	if n := t.column("prorows")(row); n != "0" && n != "1000" {
		attrs += " ROWS " + n
	}
	if support, ok := sc.functionNamed(t.oids("prosupport")(row)); ok {
		attrs += " SUPPORT " + quoteIdent(support.name)
	}
	return t.column("prosrc")(row), attrs
}

func attributeWords(volatility, parallel string, strict, leakproof bool) string {
	var words []string
	switch volatility {
	case "i":
		words = append(words, "IMMUTABLE")
	case "s":
		words = append(words, "STABLE")
	}
	switch parallel {
	case "s":
		words = append(words, "PARALLEL SAFE")
	case "r":
		words = append(words, "PARALLEL RESTRICTED")
	}
	if strict {
		words = append(words, "STRICT")
	}
	if leakproof {
		words = append(words, "LEAKPROOF")
	}
	if len(words) == 0 {
		return ""
	}
	return " " + strings.Join(words, " ")
}
