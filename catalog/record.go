package catalog

import (
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// Record is one commit of the log.
type Record struct {
	Seq             uint64
	Time            time.Time
	TxID            string
	Actor           string
	ApplicationName string
	Context         []byte
	Tables          []TableRecord
}

// Kinds of a TableRecord.
const (
	KindCreate    = "create"
	KindCommit    = "commit"
	KindDrop      = "drop"
	KindRename    = "rename"
	KindMetadata  = "metadata"
	KindRef       = "ref"
	KindRegister  = "register"
	KindView      = "view"
	KindNamespace = "namespace"
)

// TableRecord is what one commit did to one table.
type TableRecord struct {
	Key                      TableKey
	Ident                    table.Identifier
	UUID                     uuid.UUID
	Ref                      string
	Kind                     string
	OldMetadata, NewMetadata string
	SchemaID                 int
	SnapshotID, ParentID     *int64
	Operation                string
	RowsAdded, RowsDeleted   int64
	FilesAdded, FilesDeleted int64
	OldIdent                 table.Identifier
}
