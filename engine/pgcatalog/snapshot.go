package pgcatalog

import (
	"fmt"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// Options configure a Catalog.
type Options struct {
	// Owner is the name of the bootstrap superuser (OID 10), which owns PostgreSQL's objects.
	Owner string
	// Database is the name of the database whose catalog this is.
	Database string
}

// Catalog holds the static part of the catalog for one server, and the bindings of its sessions.
type Catalog struct {
	options  Options
	texts    sync.Map // "schema.name" → func() (*textTable, error)
	batches  sync.Map // "schema.name" → func() (arrow.RecordBatch, error)
	index    func() *staticIndex
	bindings bindings
}

// New makes a Catalog. It decodes nothing yet.
func New(o Options) *Catalog {
	c := &Catalog{options: o}
	c.index = sync.OnceValue(func() *staticIndex { return newStaticIndex(c) })
	return c
}

// text gives the static rows of a relation as text, decoded once.
func (c *Catalog) text(name string) (*textTable, error) {
	once, _ := c.texts.LoadOrStore(name, sync.OnceValues(func() (*textTable, error) { return decodeStatic(name, c.options) }))
	return once.(func() (*textTable, error))()
}

// static gives the static rows of a relation as Arrow, made once.
func (c *Catalog) static(r *SystemRelation) (arrow.RecordBatch, error) {
	name := r.Schema + "." + r.Name
	once, _ := c.batches.LoadOrStore(name, sync.OnceValues(func() (arrow.RecordBatch, error) {
		t, err := c.text(name)
		if err != nil {
			return nil, err
		}
		return staticBatch(r, t)
	}))
	return once.(func() (arrow.RecordBatch, error))()
}

// Snapshot is the catalog at one cut.
type Snapshot struct {
	catalog *Catalog
	objects *Objects
	dynamic sync.Map // "schema.name" → func() (arrow.RecordBatch, error)

	relations   map[uint32]*Relation
	byName      map[qualified]*Relation
	keys        map[qualified]uint32 // primary key indexes
	namespaces  map[uint32]string
	namespaceID map[string]uint32
	owners      map[string]uint32 // of namespaces
	roles       map[uint32]*Role
	roleID      map[string]uint32
	functions   map[uint32]*Function
	checks      map[uint32]*Check
	pretty      map[string]string // expressions → as pretty printing shows them
}

// qualified is a name in a schema.
type qualified struct{ schema, name string }

// Snapshot joins the objects of a cut with the static rows. It indexes the objects; rows are made when a relation is first read.
// Keep it per cut.
func (c *Catalog) Snapshot(o *Objects) *Snapshot {
	s := &Snapshot{catalog: c, objects: o,
		relations: make(map[uint32]*Relation, len(o.Relations)), byName: make(map[qualified]*Relation, len(o.Relations)), keys: map[qualified]uint32{},
		namespaces: map[uint32]string{}, namespaceID: map[string]uint32{}, owners: map[string]uint32{},
		roles: map[uint32]*Role{}, roleID: map[string]uint32{}, functions: map[uint32]*Function{}, checks: map[uint32]*Check{}, pretty: map[string]string{}}
	for i := range o.Relations {
		r := &o.Relations[i]
		s.relations[r.OID] = r
		s.byName[qualified{r.Namespace, r.Name}] = r
		if r.hasKey() {
			s.keys[qualified{r.Namespace, r.keyName()}] = primaryIndex.of(r.OID)
		}
		for _, c := range r.Columns {
			if c.Pretty != "" {
				s.pretty[c.Default] = c.Pretty
			}
		}
		for j := range r.Checks {
			if c := r.Checks[j]; c.Pretty != "" {
				s.pretty[c.Expr] = c.Pretty
			}
			s.checks[declaredOID(r.OID, "check", r.Checks[j].Name)] = &r.Checks[j]
		}
	}
	s.addNamespace("skade", namespaceSkade, bootstrapOwner)
	for _, n := range o.Namespaces {
		s.addNamespace(n.Name, n.OID, n.Owner)
	}
	for i := range o.Roles {
		s.roles[o.Roles[i].OID] = &o.Roles[i]
		s.roleID[o.Roles[i].Name] = o.Roles[i].OID
	}
	for i := range o.Functions {
		s.functions[o.Functions[i].OID] = &o.Functions[i]
	}
	return s
}

func (s *Snapshot) addNamespace(name string, oid, owner uint32) {
	if staticNamespaces[name] {
		return // public and PostgreSQL's own have static rows
	}
	if _, ok := s.namespaceID[name]; ok {
		return
	}
	if oid == 0 {
		oid = namespaceOID(name)
	}
	for s.namespaces[oid] != "" {
		oid++
	}
	s.namespaces[oid] = name
	s.namespaceID[name] = oid
	s.owners[name] = owner
}

var staticNamespaces = map[string]bool{"pg_catalog": true, "pg_toast": true, "information_schema": true, "public": true}

// namespaceName gives a schema's name, "" when there is none.
func (s *Snapshot) namespaceName(oid uint32) string {
	if name := s.namespaces[oid]; name != "" {
		return name
	}
	return s.catalog.index().namespaces[oid]
}

// namespaceByName gives a schema's OID, 0 when there is none.
func (s *Snapshot) namespaceByName(name string) uint32 {
	if oid := s.namespaceID[name]; oid != 0 {
		return oid
	}
	return s.catalog.index().namespaceID[name]
}

// generator makes a relation's dynamic rows. Those of cutRows depend on the cut alone and are kept; those of sessionRows are
// made at each use.
type (
	cutRows     func(s *Snapshot, w *rows)
	sessionRows func(s *Snapshot, session Session, w *rows)
)

// Relation gives the rows of a relation as a session sees them: one schema, with the hidden columns last, and batches that the
// caller must not release (the Snapshot keeps them). rows is their number.
func (s *Snapshot) Relation(session Session, schema, name string) (as *arrow.Schema, batches []arrow.RecordBatch, n int64, err error) {
	r := LookupRelation(schema, name)
	if r == nil {
		return nil, nil, 0, fmt.Errorf("%w: %s.%s", ErrNoRelation, schema, name)
	}
	static, err := s.catalog.static(r)
	if err != nil {
		return nil, nil, 0, err
	}
	key := schema + "." + name
	if static.NumRows() > 0 && !computed[key] {
		batches = append(batches, static)
	}
	first := int(static.NumRows())
	if gen := cutRelations[key]; gen != nil {
		once, _ := s.dynamic.LoadOrStore(key, sync.OnceValues(func() (arrow.RecordBatch, error) {
			w := newRows(r, first)
			gen(s, w)
			return w.batch()
		}))
		b, err := once.(func() (arrow.RecordBatch, error))()
		if err != nil {
			return nil, nil, 0, err
		}
		batches = append(batches, b)
	} else if gen := sessionRelations[key]; gen != nil && session != nil {
		w := newRows(r, first)
		gen(s, session, w)
		b, err := w.batch()
		if err != nil {
			return nil, nil, 0, err
		}
		batches = append(batches, b)
	}
	for _, b := range batches {
		n += b.NumRows()
	}
	return static.Schema(), batches, n, nil
}

// columnIndex finds a column of a relation by name; the name is a literal of this package.
func columnIndex(r *SystemRelation, name string) int {
	for i, c := range r.Columns {
		if c.Name == name {
			return i
		}
	}
	panic("pgcatalog: " + r.Name + " has no column " + name)
}
