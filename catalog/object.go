package catalog

import "github.com/apache/iceberg-go/table"

// Object is a SQL object that Iceberg has no place for: a view now.
type Object struct {
	Kind       string
	Namespace  table.Identifier
	Name       string
	OID        uint32
	Payload    []byte
	ChangedSeq uint64
}
