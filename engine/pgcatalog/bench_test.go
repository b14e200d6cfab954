package pgcatalog

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nordisk/skade-pg/engine/duck"
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

// benchmarkQueries runs the recorded queries of one client command: analysed, prepared, run and encoded.
func benchmarkQueries(b *testing.B, prefix string) {
	l := newLab(b, salesObjects())
	raw, err := os.ReadFile("testdata/corpus.json")
	require.NoError(b, err)
	var all []answer
	require.NoError(b, json.Unmarshal(raw, &all))
	for b.Loop() {
		for _, a := range all {
			if strings.HasPrefix(a.Name, prefix) {
				if _, _, err := l.analyzed(a.SQL); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}

// BenchmarkDescribe is all queries of psql's \d sales.orders.
func BenchmarkDescribe(b *testing.B) { benchmarkQueries(b, "psql__d+_sales_orders/") }

// BenchmarkList is psql's \d: pg_class, pg_namespace and pg_am joined.
func BenchmarkList(b *testing.B) { benchmarkQueries(b, "psql__d/") }

// BenchmarkOpen is what InitSQL and the Scalars add to the start of an instance.
func BenchmarkOpen(b *testing.B) {
	for range b.N {
		db, err := duck.Open(duck.Options{InitSQL: InitSQL(), Scalars: labScalars(New(Options{}))})
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}

func BenchmarkOpenBare(b *testing.B) {
	for range b.N {
		db, err := duck.Open(duck.Options{})
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
}
