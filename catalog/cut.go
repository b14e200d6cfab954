package catalog

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"github.com/tidwall/btree"
)

// TableKey names a table for its whole life, across renames: its uuid in lower case.
type TableKey string

// Cut is the whole catalog at one commit seq, immutable and complete (C1). Taking one is an atomic load; holding one costs
// the tree nodes that later commits replaced. Safe for concurrent use.
type Cut struct{ s *state }

// state is the content of a cut: copy-on-write trees. A state is changed only by the one goroutine that owns it; copying
// it is O(1) and marks the nodes of both as shared.
type state struct {
	seq     uint64
	time    time.Time
	first   uint64 // oldest retained record; 1 on a new catalog
	nextOID uint32

	namespaces *btree.Map[string, *NamespaceState] // by nameKey of the levels
	tables     *btree.Map[string, *TableState]     // by nameKey of the identifier
	objects    *btree.Map[string, *Object]         // by objectName
	byKey      *btree.Map[string, *TableState]     // by TableKey
	byOID      *btree.Map[uint32, any]             // *TableState, *NamespaceState or *Object
	dropped    *btree.Map[string, *DroppedTable]   // by TableKey
	feeds      *btree.Map[string, *Feed]           // by name
}

// firstOID is PostgreSQL's FirstNormalObjectId: smaller OIDs belong to the system catalogs.
const firstOID = 16384

func newState() *state {
	return &state{
		first: 1, nextOID: firstOID,
		namespaces: &btree.Map[string, *NamespaceState]{},
		tables:     &btree.Map[string, *TableState]{},
		objects:    &btree.Map[string, *Object]{},
		byKey:      &btree.Map[string, *TableState]{},
		byOID:      &btree.Map[uint32, any]{},
		dropped:    &btree.Map[string, *DroppedTable]{},
		feeds:      &btree.Map[string, *Feed]{},
	}
}

// copy must not run while another goroutine copies or changes s; readers of earlier copies are fine.
func (s *state) copy() *state {
	c := *s
	c.namespaces, c.tables, c.objects = s.namespaces.Copy(), s.tables.Copy(), s.objects.Copy()
	c.byKey, c.byOID, c.dropped, c.feeds = s.byKey.Copy(), s.byOID.Copy(), s.dropped.Copy(), s.feeds.Copy()
	return &c
}

func (s *state) setNamespace(n *NamespaceState) {
	if old, ok := s.namespaces.Set(nameKey(n.Ident...), n); ok {
		s.byOID.Delete(old.OID)
	}
	s.byOID.Set(n.OID, n)
}

func (s *state) dropNamespace(ident table.Identifier) {
	if n, ok := s.namespaces.Delete(nameKey(ident...)); ok {
		s.byOID.Delete(n.OID)
	}
}

// setTable replaces the table's older state under whatever name it had.
func (s *state) setTable(t *TableState) {
	s.dropTable(t.Key)
	s.tables.Set(nameKey(t.Ident...), t)
	s.byKey.Set(string(t.Key), t)
	s.byOID.Set(t.OID, t)
}

func (s *state) dropTable(key TableKey) {
	t, ok := s.byKey.Delete(string(key))
	if !ok {
		return
	}
	name := nameKey(t.Ident...)
	if now, ok := s.tables.Get(name); ok && now.Key == key { // a renamed table may have the name already
		s.tables.Delete(name)
	}
	s.byOID.Delete(t.OID)
}

func (s *state) setObject(o *Object) {
	if old, ok := s.objects.Set(objectName(o.Kind, o.Namespace, o.Name), o); ok {
		s.byOID.Delete(old.OID)
	}
	s.byOID.Set(o.OID, o)
}

func (s *state) dropObject(kind string, ns table.Identifier, name string) {
	if o, ok := s.objects.Delete(objectName(kind, ns, name)); ok {
		s.byOID.Delete(o.OID)
	}
}

// NamespaceState is a namespace at a cut. Read it only.
type NamespaceState struct {
	Ident      table.Identifier
	OID        uint32
	Properties iceberg.Properties
	// CreatedSeq and ChangedSeq are the commits that made it and last changed it.
	CreatedSeq, ChangedSeq uint64
}

// PropertyMount is the property of a namespace that a mount follows: the mount's name.
const PropertyMount = "skade.mount"

// Mount returns the name of the mount that the namespace belongs to, "" for one of our own.
func (n *NamespaceState) Mount() string { return n.Properties[PropertyMount] }

// EmptyCut returns a cut of a catalog with nothing in it, which belongs to none.
func EmptyCut() *Cut { return &Cut{s: newState()} }

// Seq returns the cut's commit seq: 0 for a catalog without commits.
func (k *Cut) Seq() uint64 { return k.s.seq }

// Time returns the timestamp of the commit, zero at seq 0.
func (k *Cut) Time() time.Time { return k.s.time }

// Table returns the table of that name; iceberg-go's catalog.ErrNoSuchTable without one.
func (k *Cut) Table(ident table.Identifier) (*TableState, error) {
	if t, ok := k.s.tables.Get(nameKey(ident...)); ok {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchTable, dotted(ident))
}

// TableByKey returns the table, whatever its name is at this cut.
func (k *Cut) TableByKey(key TableKey) (*TableState, bool) { return k.s.byKey.Get(string(key)) }

// ByOID returns the *TableState, *NamespaceState or *Object with the OID, nil without one.
func (k *Cut) ByOID(oid uint32) any {
	v, _ := k.s.byOID.Get(oid)
	return v
}

// TableByOID returns the table with the OID.
func (k *Cut) TableByOID(oid uint32) (*TableState, bool) {
	t, ok := k.ByOID(oid).(*TableState)
	return t, ok
}

// Tables yields the tables of one namespace, without those of its children, by name.
func (k *Cut) Tables(ns table.Identifier) iter.Seq[*TableState] {
	return func(yield func(*TableState) bool) {
		prefix := nameKey(ns...)
		k.s.tables.Ascend(prefix, func(key string, t *TableState) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			if len(t.Ident) != len(ns)+1 {
				return true
			}
			return yield(t)
		})
	}
}

// AllTables yields every table, by identifier.
func (k *Cut) AllTables() iter.Seq[*TableState] {
	return func(yield func(*TableState) bool) {
		k.s.tables.Scan(func(_ string, t *TableState) bool { return yield(t) })
	}
}

// NumTables returns the number of tables.
func (k *Cut) NumTables() int { return k.s.tables.Len() }

// Namespaces yields every namespace of every level, a parent before its children.
func (k *Cut) Namespaces() iter.Seq[*NamespaceState] {
	return func(yield func(*NamespaceState) bool) {
		k.s.namespaces.Scan(func(_ string, n *NamespaceState) bool { return yield(n) })
	}
}

// Namespace returns a namespace; iceberg-go's catalog.ErrNoSuchNamespace without one.
func (k *Cut) Namespace(ns table.Identifier) (*NamespaceState, error) {
	if n, ok := k.s.namespaces.Get(nameKey(ns...)); ok {
		return n, nil
	}
	return nil, fmt.Errorf("%w: %s", icecat.ErrNoSuchNamespace, dotted(ns))
}

// NamespaceProperties returns a copy of a namespace's properties, never nil.
func (k *Cut) NamespaceProperties(ns table.Identifier) (iceberg.Properties, error) {
	n, err := k.Namespace(ns)
	if err != nil {
		return nil, err
	}
	props := make(iceberg.Properties, len(n.Properties))
	for key, v := range n.Properties {
		props[key] = v
	}
	return props, nil
}

// Object returns an object; ErrNoSuchObject without one.
func (k *Cut) Object(kind string, ns table.Identifier, name string) (*Object, error) {
	if o, ok := k.s.objects.Get(objectName(kind, ns, name)); ok {
		return o, nil
	}
	return nil, fmt.Errorf("%s %s.%s: %w", kind, dotted(ns), name, ErrNoSuchObject)
}

// Objects yields the objects of a kind in one namespace, by name. With a nil namespace it yields those of every namespace.
func (k *Cut) Objects(kind string, ns table.Identifier) iter.Seq[*Object] {
	return func(yield func(*Object) bool) {
		prefix := nameKey(kind) + nameKey(ns...)
		k.s.objects.Ascend(prefix, func(key string, o *Object) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			if ns != nil && len(o.Namespace) != len(ns) {
				return true
			}
			return yield(o)
		})
	}
}

// empty reports what keeps a namespace from being dropped.
func (s *state) empty(ns table.Identifier) error {
	prefix := nameKey(ns...)
	var err error
	s.tables.Ascend(prefix, func(key string, t *TableState) bool {
		if strings.HasPrefix(key, prefix) {
			err = fmt.Errorf("%w: %s holds table %s", icecat.ErrNamespaceNotEmpty, dotted(ns), dotted(t.Ident))
		}
		return false
	})
	s.namespaces.Ascend(prefix+"\x01", func(key string, n *NamespaceState) bool {
		if strings.HasPrefix(key, prefix) {
			err = fmt.Errorf("%w: %s holds namespace %s", icecat.ErrNamespaceNotEmpty, dotted(ns), dotted(n.Ident))
		}
		return false
	})
	if err != nil {
		return err
	}
	s.objects.Scan(func(_ string, o *Object) bool {
		if strings.HasPrefix(nameKey(o.Namespace...), prefix) {
			err = fmt.Errorf("%w: %s holds %s %s", icecat.ErrNamespaceNotEmpty, dotted(ns), o.Kind, o.Name)
		}
		return err == nil
	})
	return err
}

// keyOf returns the key of a table's uuid.
func keyOf(id uuid.UUID) TableKey { return TableKey(id.String()) }
