package pgcatalog

import "hash/fnv"

// The OIDs that catalog rows and code refer to. Source: PostgreSQL 15's *.dat files.
const (
	bootstrapOwner uint32 = 10

	// namespaceSkade lies above PostgreSQL's own OIDs and below those of user objects.
	namespaceSkade uint32 = 15000

	amHeap  uint32 = 2
	amBTree uint32 = 403

	tablespaceDefault uint32 = 1663

	classType         uint32 = 1247
	classAttribute    uint32 = 1249
	classProc         uint32 = 1255
	classRelation     uint32 = 1259
	classAuthID       uint32 = 1260
	classDatabase     uint32 = 1262
	classTablespace   uint32 = 1213
	classConstraint   uint32 = 2606
	classNamespace    uint32 = 2615
	classAttrDefault  uint32 = 2604
	firstUserObject   uint32 = 16384
	firstDerived      uint32 = 1 << 28
	languageInternal  uint32 = 12
	collationDefault  uint32 = 100
	frozenTransaction        = 3
)

// derived says which object of a relation an OID belongs to: the upper four bits of a derived OID. The lower 28 are the
// relation's OID, so they stay the same as long as the relation lives and stay below 2^31.
type derived uint32

const (
	rowType derived = iota + 1
	rowTypeArray
	primaryIndex
	primaryConstraint
	viewRule
	namedNamespace
	declared // CHECK constraints and defaults: the lower bits are a hash
)

func (d derived) of(relation uint32) uint32 { return uint32(d)<<28 | relation }

// derivedFrom splits an OID into the kind of object and its relation; kind 0 is a relation (or something else) itself.
func derivedFrom(oid uint32) (derived, uint32) {
	return derived(oid >> 28), oid & (firstDerived - 1)
}

// declaredOID is the OID of something that a relation declares: a CHECK constraint by name, a column's default by number.
func declaredOID(relation uint32, kind, name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte{byte(relation >> 24), byte(relation >> 16), byte(relation >> 8), byte(relation)})
	h.Write([]byte(kind + name))
	return declared.of(h.Sum32() & (firstDerived - 1))
}

// namespaceOID is the OID of a namespace that the warehouse's catalog gave none.
func namespaceOID(name string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return namedNamespace.of(h.Sum32() & (firstDerived - 1))
}
