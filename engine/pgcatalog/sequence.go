package pgcatalog

import (
	"regexp"
	"strconv"
	"strings"
)

// What columns and tables declare: sequences, defaults, generated and identity columns, CHECK constraints.

func attrdefOID(relation uint32, attnum int16) uint32 {
	return declaredOID(relation, "default", strconv.Itoa(int(attnum)))
}

// eachSequence visits the sequences.
func (s *Snapshot) eachSequence(visit func(r *Relation, q *SequenceInfo)) {
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == Sequence && r.Sequence != nil {
			visit(r, r.Sequence)
		}
	}
}

func sequenceRows(s *Snapshot, w *rows) {
	w.columns("seqrelid", "seqtypid", "seqstart", "seqincrement", "seqmax", "seqmin", "seqcache", "seqcycle")
	s.eachSequence(func(r *Relation, q *SequenceInfo) {
		w.add(r.OID, q.Type, q.Start, q.Increment, q.Max, q.Min, q.Cache, q.Cycle)
	})
}

// sequencesRows is the view pg_sequences, whose last_value is not of the cut.
func sequencesRows(s *Snapshot, session Session, w *rows) {
	w.columns("schemaname", "sequencename", "sequenceowner", "data_type", "start_value", "min_value", "max_value", "increment_by", "cycle", "cache_size", "last_value")
	s.eachSequence(func(r *Relation, q *SequenceInfo) {
		last := any(nil)
		if v, ok := session.SequenceValue(r.OID); ok {
			last = v
		}
		w.add(shown(r.Namespace), shown(r.Name), s.roleName(owner(r.Owner)), q.Type, q.Start, q.Min, q.Max, q.Increment, q.Cycle, q.Cache, last)
	})
}

func infoSequenceRows(s *Snapshot, w *rows) {
	w.set("sequence_catalog", s.database()).set("numeric_precision_radix", 2).set("numeric_scale", 0)
	w.columns("sequence_schema", "sequence_name", "data_type", "numeric_precision", "start_value", "minimum_value", "maximum_value", "increment", "cycle_option")
	s.eachSequence(func(r *Relation, q *SequenceInfo) {
		if q.Internal {
			return // as in PostgreSQL: an identity column's sequence is part of the column
		}
		f := s.facetsOf(q.Type, -1)
		w.add(shown(r.Namespace), shown(r.Name), f.dataType, f.precision, number64(q.Start), number64(q.Min), number64(q.Max), number64(q.Increment), yesNo(q.Cycle))
	})
}

func number64(v int64) string { return strconv.FormatInt(v, 10) }

// column is a column of a relation.
type column struct {
	relation uint32
	attnum   int16
}

// identitySequences are the sequences of identity columns.
func (s *Snapshot) identitySequences() map[column]*SequenceInfo {
	out := map[column]*SequenceInfo{}
	s.eachSequence(func(_ *Relation, q *SequenceInfo) {
		if q.Internal {
			out[column{q.OwnerTable, q.OwnerColumn}] = q
		}
	})
	return out
}

// identityFacets are the identity columns of information_schema.columns.
func identityFacets(c *RelationColumn, q *SequenceInfo) (out [7]any) {
	out[0], out[6] = "NO", "NO"
	if c.Identity == 0 {
		return out
	}
	out[0], out[1] = "YES", "ALWAYS"
	if c.Identity == 'd' {
		out[1] = "BY DEFAULT"
	}
	if q != nil {
		out[2], out[3], out[4], out[5], out[6] = number64(q.Start), number64(q.Increment), number64(q.Max), number64(q.Min), yesNo(q.Cycle)
	}
	return out
}

func columnColumnRows(s *Snapshot, w *rows) {
	w.set("table_catalog", s.database()).columns("table_schema", "table_name", "column_name", "dependent_column")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		for _, c := range r.Columns {
			for _, used := range c.Uses {
				if u := r.column(used); u != nil {
					w.add(shown(r.Namespace), shown(r.Name), shown(u.Name), shown(c.Name))
				}
			}
		}
	}
}

// dependRows are the dependencies that clients look for: sequences on their columns, defaults and constraints on theirs.
func dependRows(s *Snapshot, w *rows) {
	w.columns("classid", "objid", "objsubid", "refclassid", "refobjid", "refobjsubid", "deptype")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		w.add(classRelation, r.OID, 0, classNamespace, s.namespaceByName(r.Namespace), 0, "n")
		if r.Kind != Sequence {
			w.add(classType, rowType.of(r.OID), 0, classRelation, r.OID, 0, "i")
		}
		if q := r.Sequence; q != nil && q.OwnerTable != 0 {
			kind := "a"
			if q.Internal {
				kind = "i"
			}
			w.add(classRelation, r.OID, 0, classRelation, q.OwnerTable, int(q.OwnerColumn), kind)
		}
		for j := range r.Columns {
			s.columnDepends(r, &r.Columns[j], w)
		}
		if r.hasKey() {
			for _, attnum := range r.PrimaryKey {
				w.add(classConstraint, primaryConstraint.of(r.OID), 0, classRelation, r.OID, int(attnum), "a")
			}
			w.add(classRelation, primaryIndex.of(r.OID), 0, classConstraint, primaryConstraint.of(r.OID), 0, "i")
		}
		for _, c := range r.Checks {
			for _, kind := range []string{"a", "n"} {
				for _, attnum := range c.Columns {
					w.add(classConstraint, declaredOID(r.OID, "check", c.Name), 0, classRelation, r.OID, int(attnum), kind)
				}
			}
		}
	}
}

func (s *Snapshot) columnDepends(r *Relation, c *RelationColumn, w *rows) {
	if c.Default == "" {
		return
	}
	oid, kind := attrdefOID(r.OID, c.AttNum), "a"
	if c.Generated {
		kind = "i"
	}
	w.add(classAttrDefault, oid, 0, classRelation, r.OID, int(c.AttNum), kind)
	for _, used := range c.Uses {
		w.add(classAttrDefault, oid, 0, classRelation, r.OID, int(used), "n")
	}
	for _, m := range regclassConstant.FindAllStringSubmatch(c.Default, -1) {
		if schema, name, ok := splitQuoted(m[1]); ok {
			if q := s.byName[qualified{schema, name}]; q != nil {
				w.add(classAttrDefault, oid, 0, classRelation, q.OID, 0, "n")
			}
		}
	}
}

// regclassConstant finds 'schema.name'::regclass, as definitions keep it.
var regclassConstant = regexp.MustCompile(`'((?:[^']|'')+)'::regclass`)

// splitQuoted reads schema.name as definitions write it.
func splitQuoted(text string) (schema, name string, ok bool) {
	parts, quoted, part := []string(nil), false, strings.Builder{}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"' && quoted && i+1 < len(text) && text[i+1] == '"':
			part.WriteByte('"')
			i++
		case c == '"':
			quoted = !quoted
		case c == '.' && !quoted:
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	parts = append(parts, part.String())
	if len(parts) != 2 {
		return "", "", false
	}
	return parts[0], strings.ReplaceAll(parts[1], "''", "'"), true
}

// expression is pg_get_expr: relations that the search path finds are named without their schema.
func (sc *scope) expression(text string, pretty bool) string {
	known := false
	if p := sc.pretty[text]; pretty && p != "" {
		text, known = p, true
	}
	text = regclassConstant.ReplaceAllStringFunc(text, func(m string) string {
		schema, name, ok := splitQuoted(m[1 : len(m)-len("'::regclass")])
		if !ok {
			return m
		}
		r := sc.byName[qualified{schema, name}]
		if r == nil || !sc.visible(object{qualified{schema, name}, r.OID}, sc.relationOID) {
			return m
		}
		return "'" + strings.ReplaceAll(quoteIdent(name), "'", "''") + "'::regclass"
	})
	if pretty && !known {
		return unwrapped(text)
	}
	return text
}

// unwrapped takes the parentheses around a whole expression away.
func unwrapped(text string) string {
	if !strings.HasPrefix(text, "(") || !strings.HasSuffix(text, ")") {
		return text
	}
	depth := 0
	var quote byte
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 && i < len(text)-1 {
				return text
			}
		}
	}
	return text[1 : len(text)-1]
}

// shownDefault is a default where the session's search path is not known: as one that has public shows it.
func shownDefault(text string) string {
	return regclassConstant.ReplaceAllStringFunc(text, func(m string) string {
		if rest, ok := strings.CutPrefix(m, "'public."); ok {
			return "'" + rest
		}
		return m
	})
}

// checkDef is a CHECK constraint as pg_get_constraintdef prints it.
func (sc *scope) checkDef(c *Check, pretty bool) string {
	out := "CHECK (" + sc.expression(c.Expr, pretty) + ")"
	if c.NoInherit {
		out += " NO INHERIT"
	}
	if c.NotValid {
		out += " NOT VALID"
	}
	return out
}

// serialSequence is pg_get_serial_sequence: the qualified name of the sequence that a column owns, nil without one.
func (sc *scope) serialSequence(r *Relation, attnum int16) any {
	var out any
	sc.eachSequence(func(s *Relation, q *SequenceInfo) {
		if q.OwnerTable == r.OID && q.OwnerColumn == attnum {
			schema := s.Namespace
			if schema == sc.temp {
				schema = "pg_temp" // as get_namespace_name_or_temp
			}
			out = quoteIdent(schema) + "." + quoteIdent(s.Name)
		}
	})
	return out
}
