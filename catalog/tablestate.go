package catalog

import (
	"context"
	"fmt"

	icecat "github.com/apache/iceberg-go/catalog"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
)

// TableProvider is what a name resolves to. Stored tables (*TableState) are the only kind today.
type TableProvider interface {
	// State returns the metadata pointer of a stored table.
	State() *TableState
}

// TableState is a stored table at a cut: the pointer to its metadata and what is asked without reading that. Read it only.
type TableState struct {
	Key   TableKey
	Ident table.Identifier
	UUID  uuid.UUID
	// OID is unique in the catalog, at least 16384, and stays for the table's life.
	OID uint32
	// MetadataLocation is the metadata JSON file. Requests of one group commit share a file, so an older cut's file may
	// hold later snapshots too: the head is SnapshotID, not the file's.
	MetadataLocation string
	// CreatedSeq and ChangedSeq are the commits that made the table and last changed it.
	CreatedSeq, ChangedSeq uint64

	metadataSize int64 // bytes of the metadata file, 0 when unknown
	snapshotID   *int64
	schemaID     int
	registered   bool // adopted: files from before are not ours
	refs         []Ref
	mounted      bool // another catalog's: only its mount moves it

	cat *Catalog
}

// State returns t: a stored table provides itself.
func (t *TableState) State() *TableState { return t }

// SnapshotID returns main's head at this cut; false for a table without snapshots.
func (t *TableState) SnapshotID() (int64, bool) {
	if t.snapshotID == nil {
		return 0, false
	}
	return *t.snapshotID, true
}

// SchemaID returns the id of the current schema at this cut.
func (t *TableState) SchemaID() int { return t.schemaID }

// Mounted reports whether the table is another catalog's, followed by a mount: nobody here writes to it.
func (t *TableState) Mounted() bool { return t.mounted }

// Registered reports whether the table's metadata file is one that another catalog wrote.
func (t *TableState) Registered() bool { return t.registered }

// Metadata returns the table's metadata at this cut, decoded once and cached. The value is shared: read it only.
// When the cut is older and its file is gone (the metadata log is bounded), the table's current file serves, with main and
// the current schema set back; ErrExpired when that file no longer holds the snapshot. *DamagedError for an unreadable file.
func (t *TableState) Metadata(ctx context.Context) (table.Metadata, error) {
	return t.cat.metadata.at(ctx, t)
}

// IcebergTable returns iceberg-go's view of the table. It commits through this catalog.
func (t *TableState) IcebergTable(ctx context.Context) (*table.Table, error) {
	meta, err := t.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	fs := t.cat.fs
	return table.New(cloneIdent(t.Ident), meta, t.MetadataLocation,
		func(context.Context) (icebergio.IO, error) { return fs, nil }, t.cat), nil
}

func (t *TableState) encode() []byte {
	w := newWriter(kindTable)
	w.uuid(t.UUID)
	w.uvarint(uint64(t.OID))
	w.ident(t.Ident)
	w.string(t.MetadataLocation)
	w.uvarint(uint64(t.metadataSize))
	w.uvarint(t.CreatedSeq)
	w.uvarint(t.ChangedSeq)
	w.optional(t.snapshotID)
	w.varint(int64(t.schemaID))
	flags := uint64(0)
	if t.registered {
		flags |= flagRegistered
	}
	if t.mounted {
		flags |= flagMounted
	}
	if len(t.refs) > 0 {
		flags |= flagRefs
	}
	w.uvarint(flags)
	if len(t.refs) > 0 {
		appendRefs(w, t.refs)
	}
	return w.seal()
}

func decodeTable(value []byte) (*TableState, error) {
	r := newReader(kindTable, value)
	t := &TableState{UUID: r.uuid(), OID: r.uint32(), Ident: r.ident(), MetadataLocation: r.string()}
	t.metadataSize = int64(r.uvarint())
	t.CreatedSeq, t.ChangedSeq = r.uvarint(), r.uvarint()
	t.snapshotID, t.schemaID = r.optional(), int(r.varint())
	flags := r.uvarint()
	t.registered, t.mounted = flags&flagRegistered != 0, flags&flagMounted != 0
	if flags&flagRefs != 0 {
		t.refs = decodeRefs(r)
	}
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	if len(t.Ident) < 2 {
		return nil, fmt.Errorf("table: identifier of %d levels", len(t.Ident))
	}
	t.Key = keyOf(t.UUID)
	return t, nil
}

func (n *NamespaceState) encode() []byte {
	w := newWriter(kindNamespace)
	w.uvarint(uint64(n.OID))
	w.ident(n.Ident)
	w.props(n.Properties)
	w.uvarint(n.CreatedSeq)
	w.uvarint(n.ChangedSeq)
	return w.seal()
}

func decodeNamespace(value []byte) (*NamespaceState, error) {
	r := newReader(kindNamespace, value)
	n := &NamespaceState{OID: r.uint32(), Ident: r.ident(), Properties: r.props()}
	n.CreatedSeq, n.ChangedSeq = r.uvarint(), r.uvarint()
	if err := r.done(); err != nil {
		return nil, fmt.Errorf("namespace: %w", err)
	}
	if len(n.Ident) == 0 {
		return nil, fmt.Errorf("namespace: %w", icecat.ErrInvalidIdentifier)
	}
	return n, nil
}
