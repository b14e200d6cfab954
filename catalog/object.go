package catalog

import (
	"fmt"

	"github.com/apache/iceberg-go/table"
)

// Object is a SQL object that Iceberg has no place for: views now. Read it only.
type Object struct {
	// Kind names the kind. Objects of the kinds in relationKinds share names with the tables of their namespace, as
	// PostgreSQL's relations do.
	Kind      string
	Namespace table.Identifier
	Name      string
	// OID is assigned by the commit that creates the object and kept by the ones that replace it.
	OID uint32
	// Payload is opaque to the catalog.
	Payload []byte
	// CreatedSeq and ChangedSeq are the commits that made the object and last replaced it.
	CreatedSeq, ChangedSeq uint64
}

// maxPayload bounds an object's payload in bytes.
const maxPayload = 1 << 20

// relationKinds are the kinds that share the relation names of a namespace.
var relationKinds = []string{"view", "sequence"}

func isRelation(kind string) bool {
	for _, k := range relationKinds {
		if k == kind {
			return true
		}
	}
	return false
}

func (o *Object) encode() []byte {
	w := newWriter(kindObject)
	w.uvarint(uint64(o.OID))
	w.string(o.Kind)
	w.ident(o.Namespace)
	w.string(o.Name)
	w.bytes(o.Payload)
	w.uvarint(o.CreatedSeq)
	w.uvarint(o.ChangedSeq)
	return w.seal()
}

func decodeObject(value []byte) (*Object, error) {
	r := newReader(kindObject, value)
	o := &Object{OID: r.uint32(), Kind: r.string(), Namespace: r.ident(), Name: r.string(), Payload: r.bytes()}
	o.CreatedSeq, o.ChangedSeq = r.uvarint(), r.uvarint()
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("object: %w", err)
	}
	return o, nil
}
