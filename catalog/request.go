package catalog

import (
	"context"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/internal/storeio"
)

// Request is one SQL transaction: it becomes one commit seq, or nothing.
type Request struct {
	TxID            string
	Actor           string
	ApplicationName string
	Context         []byte
	Changes         []Change
}

// Change is one of CreateNamespace, DropNamespace, UpdateNamespace, CreateTable, RegisterTable, UpdateTable, DropTable,
// RenameTable, PutObject, DropObject.
type Change interface{ isChange() }

// CreateNamespace creates a namespace.
type CreateNamespace struct {
	Ident table.Identifier
	Props iceberg.Properties
}

// DropNamespace drops an empty namespace.
type DropNamespace struct{ Ident table.Identifier }

// UpdateNamespace removes and sets properties of a namespace.
type UpdateNamespace struct {
	Ident    table.Identifier
	Removals []string
	Updates  iceberg.Properties
}

// CreateTable creates a table from complete metadata; Build may add the first snapshot.
type CreateTable struct {
	Ident    table.Identifier
	Metadata table.Metadata
	Build    BuildFunc
}

// RegisterTable adopts a table of another catalog by its metadata file.
type RegisterTable struct {
	Ident            table.Identifier
	MetadataLocation string
}

// UpdateTable changes a table.
type UpdateTable struct {
	Key          TableKey
	Ident        table.Identifier
	Requirements []table.Requirement
	Updates      []table.Update
	Build        BuildFunc
}

// DropTable drops a table.
type DropTable struct {
	Ident table.Identifier
	Purge bool
}

// RenameTable renames a table.
type RenameTable struct{ From, To table.Identifier }

// PutObject creates or replaces an object.
type PutObject struct {
	Object       Object
	MustNotExist bool
}

// DropObject drops an object.
type DropObject struct {
	Kind      string
	Namespace table.Identifier
	Name      string
}

func (CreateNamespace) isChange() {}
func (DropNamespace) isChange()   {}
func (UpdateNamespace) isChange() {}
func (CreateTable) isChange()     {}
func (RegisterTable) isChange()   {}
func (UpdateTable) isChange()     {}
func (DropTable) isChange()       {}
func (RenameTable) isChange()     {}
func (PutObject) isChange()       {}
func (DropObject) isChange()      {}

// BuildFunc makes a table's updates in the serial point.
type BuildFunc func(ctx context.Context, in BuildInput) (BuildOutput, error)

// BuildInput is what a BuildFunc builds on.
type BuildInput struct {
	Base         table.Metadata
	BaseLocation string
	Time         time.Time
	Seq          uint64
	Batch        *storeio.Batch
}

// BuildOutput is what a BuildFunc made.
type BuildOutput struct {
	Updates                  []table.Update
	Operation                string
	RowsAdded, RowsDeleted   int64
	FilesAdded, FilesDeleted int64
	Ref                      string
}
