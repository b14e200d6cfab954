package warehouse

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
)

// TxOptions opens a transaction.
type TxOptions struct {
	Cut             *catalog.Cut // what it reads; nil is the current cut
	TxID            string       // empty: a fresh UUID
	Actor           string
	ApplicationName string
	Context         []byte // opaque, at most 64 KiB, stored with the commit
	ReadOnly        bool
}

// Tx is one transaction: a pinned cut plus its own buffered changes. It ends with Commit or Rollback, once.
type Tx struct{}

// CreateTable describes a table to create.
type CreateTable struct {
	Ident         table.Identifier
	Schema        *iceberg.Schema // identifier fields set for a primary-key table; field ids are assigned afresh
	Spec          *iceberg.PartitionSpec
	SortOrder     *table.SortOrder
	FormatVersion int // 2 (default) or 3
	Properties    iceberg.Properties
	IfNotExists   bool
	Location      string // empty: the catalog's choice
}

// Mark is a savepoint. It is valid until the transaction ends or an earlier mark is rolled back to.
type Mark struct{}

func (tx *Tx) Cut() *catalog.Cut { return nil }

// SetCut moves the transaction to a newer cut (READ COMMITTED: one per statement). Own writes stay; a table whose own
// writes conflict with the newer cut fails at Commit.
func (tx *Tx) SetCut(ctx context.Context, cut *catalog.Cut) error { return nil }
func (tx *Tx) CreateNamespace(ctx context.Context, ns table.Identifier, props iceberg.Properties) error {
	return nil
}
func (tx *Tx) DropNamespace(ctx context.Context, ns table.Identifier) error { return nil }
func (tx *Tx) CreateTable(ctx context.Context, c CreateTable) (*TxTable, error) {
	return nil, nil
}
func (tx *Tx) DropTable(ctx context.Context, ident table.Identifier, purge bool) error { return nil }
func (tx *Tx) RenameTable(ctx context.Context, from, to table.Identifier) error        { return nil }
func (tx *Tx) AlterTable(ctx context.Context, ident table.Identifier, updates ...table.Update) error {
	return nil
}
func (tx *Tx) PutObject(ctx context.Context, o catalog.Object, replace bool) error { return nil }
func (tx *Tx) DropObject(ctx context.Context, kind string, ns table.Identifier, name string) error {
	return nil
}
func (tx *Tx) Table(ctx context.Context, ident table.Identifier) (*TxTable, error) { return nil, nil }
func (tx *Tx) Savepoint() Mark                                                     { return Mark{} }
func (tx *Tx) RollbackTo(m Mark) error                                             { return nil }
func (tx *Tx) Commit(ctx context.Context) (*catalog.Record, error)                 { return nil, nil }
func (tx *Tx) Rollback() error                                                     { return nil }
