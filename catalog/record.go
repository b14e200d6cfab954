package catalog

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// Record is one commit of the log. Read it only: subscribers share it.
type Record struct {
	Seq uint64
	// Time has microseconds and grows strictly with Seq (C5).
	Time            time.Time
	TxID            string
	Actor           string
	ApplicationName string
	// Context is the request's opaque bytes.
	Context []byte
	// Tables holds one entry per snapshot or other change, in the order of the request. Snapshots of one table within a
	// record are in ancestry order: their place among them is the change ordinal.
	Tables []TableRecord
}

// Kinds of a TableRecord. Entries of KindNamespace and of objects (KindView, or the object's own kind) have no Key.
const (
	// KindCreate is a new table; with a snapshot when it was created with rows.
	KindCreate = "create"
	// KindCommit is a new snapshot on a branch; its parent is the branch's former head.
	KindCommit = "commit"
	// KindDrop is a dropped table.
	KindDrop = "drop"
	// KindRename is a new name; OldIdent has the old one.
	KindRename = "rename"
	// KindMetadata is a change of schema, properties and the like without a snapshot.
	KindMetadata = "metadata"
	// KindRef is a branch or tag that moved to a snapshot that does not continue it (rollback, replaced branch, a new or a
	// removed ref); SnapshotID is its new head, ParentID its old one.
	KindRef = "ref"
	// KindRegister is a table adopted with its snapshots.
	KindRegister = "register"
	// KindUndrop is a dropped table that came back with its snapshots; OldIdent has its old name.
	KindUndrop = "undrop"
	// KindPurge is a dropped table whose files went; the entry has no Key.
	KindPurge = "purge"
	// KindView is a view put or dropped (Operation).
	KindView = "view"
	// KindNamespace is a namespace created, dropped or changed (Operation).
	KindNamespace = "namespace"
)

// Operations of entries that are not snapshots. A snapshot's Operation is its Iceberg operation.
const (
	OperationCreate     = "create"
	OperationReplace    = "replace"
	OperationDrop       = "drop"
	OperationProperties = "properties"
	OperationUndrop     = "undrop"
	OperationPurge      = "purge"
	// OperationUnregister is the drop of a table whose files stay, for another catalog.
	OperationUnregister = "unregister"
)

// TableRecord is what one commit did to one table (or namespace, or object).
type TableRecord struct {
	Key   TableKey
	Ident table.Identifier
	UUID  uuid.UUID
	// Ref is the branch or tag of a snapshot or ref move, "main" for most.
	Ref  string
	Kind string
	// OldMetadata and NewMetadata are metadata locations. Requests on one table that were committed as one group share
	// NewMetadata; SnapshotID tells their states apart.
	OldMetadata, NewMetadata string
	SchemaID                 int
	// SnapshotID and ParentID are nil for drop, rename, metadata-only moves and an empty create.
	SnapshotID, ParentID     *int64
	Operation                string
	RowsAdded, RowsDeleted   int64
	FilesAdded, FilesDeleted int64
	OldIdent                 table.Identifier
}

// recordTimeAt is where a record's seq and timestamp stand in its value: a search by time reads nothing else.
const (
	recordSeqAt  = 2
	recordTimeAt = 10
	recordHeader = 18
)

func (r *Record) encode() []byte {
	w := newWriter(kindRecord)
	w.fixed64(r.Seq)
	w.fixed64(uint64(r.Time.UnixMicro()))
	w.string(r.TxID)
	w.string(r.Actor)
	w.string(r.ApplicationName)
	w.bytes(r.Context)
	w.uvarint(uint64(len(r.Tables)))
	for i := range r.Tables {
		r.Tables[i].append(w)
	}
	return w.seal()
}

func (t *TableRecord) append(w *writer) {
	w.uuid(t.UUID)
	w.ident(t.Ident)
	w.string(t.Ref)
	w.string(t.Kind)
	w.string(t.OldMetadata)
	if t.NewMetadata == t.OldMetadata {
		w.string("") // the most frequent way to be equal costs one byte
	} else {
		w.string(t.NewMetadata)
	}
	w.varint(int64(t.SchemaID))
	w.optional(t.SnapshotID)
	w.optional(t.ParentID)
	w.string(t.Operation)
	w.varint(t.RowsAdded)
	w.varint(t.RowsDeleted)
	w.varint(t.FilesAdded)
	w.varint(t.FilesDeleted)
	w.ident(t.OldIdent)
	flags := uint64(0)
	if t.NewMetadata == t.OldMetadata {
		flags = 1
	}
	w.uvarint(flags)
}

func decodeRecord(value []byte) (*Record, error) {
	r := newReader(kindRecord, value)
	rec := &Record{Seq: r.fixed64(), Time: time.UnixMicro(int64(r.fixed64())).UTC()}
	rec.TxID, rec.Actor, rec.ApplicationName, rec.Context = r.string(), r.string(), r.string(), r.bytes()
	n := r.count()
	for range n {
		if r.err != nil {
			break
		}
		rec.Tables = append(rec.Tables, decodeTableRecord(r))
	}
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return rec, nil
}

func decodeTableRecord(r *reader) TableRecord {
	t := TableRecord{UUID: r.uuid(), Ident: r.ident(), Ref: r.string(), Kind: r.string(), OldMetadata: r.string(), NewMetadata: r.string()}
	t.SchemaID = int(r.varint())
	t.SnapshotID, t.ParentID = r.optional(), r.optional()
	t.Operation = r.string()
	t.RowsAdded, t.RowsDeleted, t.FilesAdded, t.FilesDeleted = r.varint(), r.varint(), r.varint(), r.varint()
	t.OldIdent = r.ident()
	if r.uvarint()&1 != 0 {
		t.NewMetadata = t.OldMetadata
	}
	if t.UUID != uuid.Nil {
		t.Key = keyOf(t.UUID)
	}
	return t
}

// recordTime reads the header of a record's value only.
func recordTime(value []byte) (seq uint64, at time.Time, err error) {
	if len(value) < recordHeader || value[0] != kindRecord {
		return 0, time.Time{}, fmt.Errorf("record of %d bytes", len(value))
	}
	micros := binary.BigEndian.Uint64(value[recordTimeAt:])
	if micros > math.MaxInt64 {
		return 0, time.Time{}, fmt.Errorf("record with timestamp %d", micros)
	}
	return binary.BigEndian.Uint64(value[recordSeqAt:]), time.UnixMicro(int64(micros)).UTC(), nil
}

// commitRef is the value of COMMITS by (table, snapshot): which entry of which record.
type commitRef struct {
	seq   uint64
	entry int
}

func (c commitRef) encode() []byte {
	w := newWriter(kindCommit)
	w.fixed64(c.seq)
	w.uvarint(uint64(c.entry))
	return w.seal()
}

func decodeCommitRef(value []byte) (commitRef, error) {
	r := newReader(kindCommit, value)
	c := commitRef{seq: r.fixed64(), entry: int(r.uint32())}
	if err := r.done(); err != nil {
		return c, fmt.Errorf("commit: %w", err)
	}
	return c, nil
}
