package pgcatalog

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// Options configure a Catalog.
type Options struct {
	// Owner is the name of the bootstrap superuser (OID 10), which owns PostgreSQL's objects.
	Owner string
	// Database is the name of the database whose catalog this is.
	Database string
}

// Catalog holds the static part of the catalog for one server.
type Catalog struct {
	options Options
}

// New makes a Catalog. It decodes nothing yet.
func New(o Options) *Catalog { return &Catalog{options: o} }

// Snapshot is the catalog at one cut.
type Snapshot struct {
	catalog *Catalog
	objects *Objects
}

// Snapshot joins the objects of a cut with the static rows. It is cheap; rows are made when a relation is read. Keep it per cut.
func (c *Catalog) Snapshot(o *Objects) *Snapshot { return &Snapshot{catalog: c, objects: o} }

// Relation gives the rows of a relation as a session sees them: one schema, with the hidden columns last, and batches that the
// caller must not release (the Snapshot keeps them). rows is their number.
func (s *Snapshot) Relation(session Session, schema, name string) (as *arrow.Schema, batches []arrow.RecordBatch, rows int64, err error) {
	return nil, nil, 0, ErrNoRelation
}
