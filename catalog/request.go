package catalog

import (
	"context"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// MaxContext bounds Request.Context in bytes.
const MaxContext = 64 << 10

// Request is one SQL transaction: it becomes one commit seq in full, or nothing of it happens (C1, C4).
type Request struct {
	TxID            string
	Actor           string
	ApplicationName string
	// Context is opaque and kept with the record: at most MaxContext bytes.
	Context []byte
	// Mount names the mount whose namespaces and tables the request may change; they are closed to every other request.
	Mount string
	// Changes apply in order; each sees the ones before it.
	Changes []Change
}

// Change is one of CreateNamespace, DropNamespace, UpdateNamespace, CreateTable, RegisterTable, FollowTable, UpdateTable, DropTable,
// UndropTable, PurgeDropped, RenameTable, PutObject, DropObject, ChangeFeed, or the condition Unchanged.
type Change interface {
	apply(ctx context.Context, a *attempt) error
}

// CreateNamespace creates a namespace below an existing one (or at the top). ErrNamespaceAlreadyExists, ErrNoSuchNamespace.
type CreateNamespace struct {
	Ident table.Identifier
	Props iceberg.Properties
}

// DropNamespace drops a namespace. ErrNoSuchNamespace, ErrNamespaceNotEmpty.
type DropNamespace struct{ Ident table.Identifier }

// UpdateNamespace removes and sets properties of a namespace. A removal that is also an update is ErrInvalidRequest.
type UpdateNamespace struct {
	Ident    table.Identifier
	Removals []string
	Updates  iceberg.Properties
}

// CreateTable creates a table from complete metadata. Build, when it is set, makes the updates of its first rows.
// ErrTableAlreadyExists (also for a view of that name, and for a uuid that is in use), ErrNoSuchNamespace.
type CreateTable struct {
	Ident    table.Identifier
	Metadata table.Metadata
	Build    BuildFunc
}

// UpdateTable changes a table: by Requirements and Updates (iceberg-go's CommitTable), by Build, or by both (Build's
// updates come behind). It is named by Key, which follows renames, or else by Ident. A requirement that does not hold is
// ErrConflict. The timestamps of added snapshots are set to the commit's. An assert-create requirement makes the table.
type UpdateTable struct {
	Key          TableKey
	Ident        table.Identifier
	Requirements []table.Requirement
	Updates      []table.Update
	Build        BuildFunc
}

// DropTable drops a table; ErrConflict when Key is set and the name is another table's by now. It can come back by UndropTable until
// PurgeDropped. With Purge its directory is removed after the commit, as far as that is possible, unless the
// table's gc.enabled property is false or another table lives there.
type DropTable struct {
	Ident table.Identifier
	Key   TableKey
	Purge bool
	// MetadataLocation, when it is set, must still be the table's: else ErrConflict.
	MetadataLocation string
	// Operation is the record's; empty means OperationDrop.
	Operation string
}

// RenameTable gives a table another name, in any namespace. Its key and OID stay. ErrConflict when Key is set and the name is another
// table's by now.
type RenameTable struct {
	From, To table.Identifier
	Key      TableKey
}

// PutObject creates an object or replaces the one of that kind and name, which keeps its OID. MustNotExist refuses to
// replace: ErrObjectAlreadyExists. A relation (view) also collides with a table: ErrTableAlreadyExists. OID and seqs of
// Object are ignored.
type PutObject struct {
	Object       Object
	MustNotExist bool
}

// DropObject drops an object. ErrNoSuchObject.
type DropObject struct {
	Kind      string
	Namespace table.Identifier
	Name      string
}

// BuildFunc makes a table's updates in the serial point, on metadata that holds every earlier commit and the earlier
// requests of the same group. All other commits wait for it: it should only rebase what was prepared. An error, also a
// panic, fails its request alone; wrap ErrConflict when a retry may help. It must not call the catalog's Commit.
type BuildFunc func(ctx context.Context, in BuildInput) (BuildOutput, error)

// BuildInput is what a BuildFunc builds on.
type BuildInput struct {
	// Base is the newest metadata. Read it only.
	Base table.Metadata
	// BaseLocation is its file. Earlier requests of the group are in Base but not in the file.
	BaseLocation string
	// Time is this commit's timestamp: a new snapshot's timestamp-ms is its milliseconds.
	Time time.Time
	// Seq is the commit seq that the request gets when nothing fails.
	Seq uint64
	// Batch takes the files that have to be durable before the pointer moves. Small ones travel inside the store
	// transaction; large ones should be synced before Commit (Batch.SyncLarge), not here.
	Batch *storeio.Batch
}

// BuildOutput is what a BuildFunc made. The counts and Operation go to the record when there is exactly one new snapshot;
// zero values are replaced by the snapshot's summary.
type BuildOutput struct {
	Updates                  []table.Update
	Operation                string
	RowsAdded, RowsDeleted   int64
	FilesAdded, FilesDeleted int64
	// Ref is the branch that the snapshot was made on; empty means the one that moved.
	Ref string
}
