package pgcatalog

import (
	"strconv"

	"github.com/nordisk/skade-pg/internal/pgtype"
)

// The views of information_schema about schemas, tables, columns and views. Source: PostgreSQL 15, information_schema.sql.

func yesNo(v bool) string {
	if v {
		return "YES"
	}
	return "NO"
}

func (s *Snapshot) database() string { return s.catalog.options.Database }

func schemataRows(s *Snapshot, w *rows) {
	w.set("catalog_name", s.database()).columns("schema_name", "schema_owner")
	for name := range s.namespaceID {
		w.add(shown(name), s.roleName(owner(s.owners[name])))
	}
}

func infoTableRows(s *Snapshot, w *rows) {
	w.set("table_catalog", s.database()).set("is_typed", "NO").set("commit_action", nil)
	w.columns("table_schema", "table_name", "table_type", "is_insertable_into")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		kind := "BASE TABLE"
		switch {
		case r.Temporary: // views, too
			kind = "LOCAL TEMPORARY"
		case r.Kind == View:
			kind = "VIEW"
		}
		w.add(shown(r.Namespace), shown(r.Name), kind, yesNo(r.Kind == Table))
	}
}

func infoViewRows(s *Snapshot, w *rows) {
	w.set("table_catalog", s.database()).set("check_option", "NONE").set("is_updatable", "NO").set("is_insertable_into", "NO")
	w.set("is_trigger_updatable", "NO").set("is_trigger_deletable", "NO").set("is_trigger_insertable_into", "NO")
	w.columns("table_schema", "table_name", "view_definition")
	for i := range s.objects.Relations {
		if r := &s.objects.Relations[i]; r.Kind == View {
			w.add(shown(r.Namespace), shown(r.Name), r.Definition)
		}
	}
}

// facets are the columns of information_schema that describe a type.
type facets struct {
	dataType                      string
	charLength, octets            any
	precision, radix, scale       any
	datetime, intervalType        any
	collCatalog, collSchema, coll any
	udtSchema, udtName            string
}

// facetsOf computes the facets of a column's type. Source: the _pg_* functions of information_schema.sql.
func (s *Snapshot) facetsOf(oid uint32, typmod int32) facets {
	t := s.catalog.index().typeOf(oid)
	f := facets{dataType: pgtype.FormatNoTypmod(oid), udtSchema: t.schema, udtName: t.name}
	switch {
	case pgtype.ElemOf(oid) != 0:
		f.dataType = "ARRAY"
		return f
	case t.schema != "pg_catalog":
		f.dataType = "USER-DEFINED"
	}
	switch oid {
	case pgtype.Varchar, pgtype.BPChar:
		f.octets = 1 << 30
		if typmod >= 4 {
			f.charLength, f.octets = typmod-4, (typmod-4)*4
		}
	case pgtype.Text:
		f.octets = 1 << 30
	case pgtype.Bit, pgtype.VarBit:
		if typmod >= 0 {
			f.charLength = typmod
		}
	case pgtype.Int2:
		f.precision, f.radix, f.scale = 16, 2, 0
	case pgtype.Int4:
		f.precision, f.radix, f.scale = 32, 2, 0
	case pgtype.Int8:
		f.precision, f.radix, f.scale = 64, 2, 0
	case pgtype.Float4:
		f.precision, f.radix = 24, 2
	case pgtype.Float8:
		f.precision, f.radix = 53, 2
	case pgtype.Numeric:
		f.radix = 10
		if typmod >= 4 {
			f.precision, f.scale = (typmod-4)>>16&0xFFFF, (typmod-4)&0x7FF
		}
	case pgtype.Date:
		f.datetime = 0
	case pgtype.Time, pgtype.TimeTZ, pgtype.Timestamp, pgtype.TimestampTZ:
		f.datetime = 6
		if typmod >= 0 {
			f.datetime = typmod
		}
	case pgtype.Interval:
		f.datetime = 6
		if typmod >= 0 && typmod&0xFFFF != 0xFFFF {
			f.datetime = typmod & 0xFFFF
		}
	}
	if t.collation != 0 && t.collation != collationDefault {
		f.collCatalog, f.collSchema, f.coll = s.database(), "pg_catalog", s.catalog.index().others["pg_collation"].byOID[t.collation].name
	}
	return f
}

func infoColumnRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("table_catalog", db).set("udt_catalog", db).set("is_self_referencing", "NO")
	w.columns("table_schema", "table_name", "column_name", "ordinal_position", "column_default", "is_nullable", "data_type",
		"character_maximum_length", "character_octet_length", "numeric_precision", "numeric_precision_radix", "numeric_scale", "datetime_precision", "interval_type",
		"collation_catalog", "collation_schema", "collation_name", "udt_schema", "udt_name", "dtd_identifier", "is_updatable",
		"is_identity", "identity_generation", "identity_start", "identity_increment", "identity_maximum", "identity_minimum", "identity_cycle",
		"is_generated", "generation_expression")
	identities := s.identitySequences()
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		for _, c := range r.Columns {
			f := s.facetsOf(c.TypeOID, c.TypeMod)
			id := identityFacets(&c, identities[column{r.OID, c.AttNum}])
			def, generated, expression := null(shownDefault(c.Default)), "NEVER", any(nil)
			if c.Generated {
				def, generated, expression = nil, "ALWAYS", c.Default
			}
			w.add(shown(r.Namespace), shown(r.Name), shown(c.Name), c.AttNum, def, yesNo(!c.NotNull), f.dataType,
				f.charLength, f.octets, f.precision, f.radix, f.scale, f.datetime, f.intervalType,
				f.collCatalog, f.collSchema, f.coll, f.udtSchema, f.udtName, strconv.Itoa(int(c.AttNum)), yesNo(r.Kind == Table),
				id[0], id[1], id[2], id[3], id[4], id[5], id[6], generated, expression)
		}
	}
}

// elementTypeRows describe the elements of array columns.
func elementTypeRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("object_catalog", db).set("udt_catalog", db)
	w.columns("object_schema", "object_name", "object_type", "collection_type_identifier", "data_type", "udt_schema", "udt_name", "dtd_identifier")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		kind := "TABLE"
		if r.Kind == View {
			kind = "VIEW"
		}
		for _, c := range r.Columns {
			elem := pgtype.ElemOf(c.TypeOID)
			if elem == 0 {
				continue
			}
			f, id := s.facetsOf(elem, -1), strconv.Itoa(int(c.AttNum))
			w.add(shown(r.Namespace), shown(r.Name), kind, id, f.dataType, f.udtSchema, f.udtName, "a"+id)
		}
	}
}

func columnUDTRows(s *Snapshot, w *rows) {
	db := s.database()
	w.set("udt_catalog", db).set("table_catalog", db).columns("udt_schema", "udt_name", "table_schema", "table_name", "column_name")
	for i := range s.objects.Relations {
		r := &s.objects.Relations[i]
		if r.Kind == Sequence {
			continue
		}
		for _, c := range r.Columns {
			t := s.catalog.index().typeOf(c.TypeOID)
			w.add(t.schema, t.name, shown(r.Namespace), shown(r.Name), shown(c.Name))
		}
	}
}
