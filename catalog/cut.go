package catalog

import (
	"context"
	"iter"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// TableKey names a table for its whole life, across renames: its uuid in lower case.
type TableKey string

// Cut is the whole catalog at one commit seq, immutable.
type Cut struct{}

// NamespaceState is a namespace at a cut.
type NamespaceState struct {
	Ident      table.Identifier
	OID        uint32
	Properties iceberg.Properties
	ChangedSeq uint64
}

// TableState is a table at a cut.
type TableState struct {
	Key              TableKey
	Ident            table.Identifier
	UUID             uuid.UUID
	OID              uint32
	MetadataLocation string
	ChangedSeq       uint64
}

func (k *Cut) Seq() uint64     { return 0 }
func (k *Cut) Time() time.Time { return time.Time{} }

func (k *Cut) Table(ident table.Identifier) (*TableState, error)      { return nil, errSkeleton }
func (k *Cut) TableByKey(key TableKey) (*TableState, bool)            { return nil, false }
func (k *Cut) TableByOID(oid uint32) (*TableState, bool)              { return nil, false }
func (k *Cut) Tables(ns table.Identifier) iter.Seq[*TableState]       { return nil }
func (k *Cut) AllTables() iter.Seq[*TableState]                       { return nil }
func (k *Cut) Namespaces() iter.Seq[*NamespaceState]                  { return nil }
func (k *Cut) Namespace(ns table.Identifier) (*NamespaceState, error) { return nil, errSkeleton }
func (k *Cut) NamespaceProperties(ns table.Identifier) (iceberg.Properties, error) {
	return nil, errSkeleton
}
func (k *Cut) Object(kind string, ns table.Identifier, name string) (*Object, error) {
	return nil, errSkeleton
}
func (k *Cut) Objects(kind string, ns table.Identifier) iter.Seq[*Object] { return nil }

func (t *TableState) Metadata(ctx context.Context) (table.Metadata, error)   { return nil, errSkeleton }
func (t *TableState) SnapshotID() (int64, bool)                              { return 0, false }
func (t *TableState) SchemaID() int                                          { return 0 }
func (t *TableState) IcebergTable(ctx context.Context) (*table.Table, error) { return nil, errSkeleton }
