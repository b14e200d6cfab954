package pgcatalog

import (
	"fmt"
	"testing"
)

// BenchmarkFirstUse is what the first catalog query of a server pays: the header, the index of PostgreSQL's own objects and the
// relations that \d reads.
func BenchmarkFirstUse(b *testing.B) {
	for b.Loop() {
		c := New(Options{Owner: "postgres", Database: "postgres"})
		s := c.Snapshot(salesObjects())
		for _, r := range []string{"pg_class", "pg_namespace", "pg_attribute", "pg_type", "pg_index", "pg_constraint"} {
			if _, _, _, err := s.Relation(nil, "pg_catalog", r); err != nil {
				b.Fatal(err)
			}
		}
		c.index()
	}
}

// BenchmarkNewCut is what the first catalog query after a commit pays, with 200 tables.
func BenchmarkNewCut(b *testing.B) {
	c := New(Options{Owner: "postgres", Database: "postgres"})
	o := salesObjects()
	for i := range 200 {
		r := o.Relations[0]
		r.OID, r.Name = uint32(20000+i), fmt.Sprintf("orders_%d", i)
		o.Relations = append(o.Relations, r)
	}
	for b.Loop() {
		s := c.Snapshot(o)
		for _, r := range []string{"pg_class", "pg_namespace", "pg_attribute"} {
			if _, _, _, err := s.Relation(nil, "pg_catalog", r); err != nil {
				b.Fatal(err)
			}
		}
	}
}
