package catalog

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/apache/iceberg-go"
	icecat "github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/internal/storeio"
)

var errSkeleton = errors.New("catalog: skeleton")

// Options configure a Catalog.
type Options struct {
	Dir       string
	Warehouse string
	FS        *storeio.FS
	Logger    zerolog.Logger
	NoSync    bool
}

// Catalog is an open catalog folder.
type Catalog struct{}

func Open(ctx context.Context, o Options) (*Catalog, error) { return nil, errSkeleton }
func (c *Catalog) Close() error                             { return nil }
func (c *Catalog) FS() *storeio.FS                          { return nil }
func (c *Catalog) Warehouse() string                        { return "" }

// NewTableLocation returns a fresh table location.
func (c *Catalog) NewTableLocation(cut *Cut, ident table.Identifier, id [16]byte) (string, error) {
	return "", errSkeleton
}

func (c *Catalog) Cut() *Cut                                                { return nil }
func (c *Catalog) CutAt(ctx context.Context, seq uint64) (*Cut, error)      { return nil, errSkeleton }
func (c *Catalog) CutAtTime(ctx context.Context, t time.Time) (*Cut, error) { return nil, errSkeleton }
func (c *Catalog) CommitTableKey(ident table.Identifier) (TableKey, error)  { return "", errSkeleton }
func (c *Catalog) Commit(ctx context.Context, r *Request) (*Record, error)  { return nil, errSkeleton }
func (c *Catalog) CommitSeq() uint64                                        { return 0 }
func (c *Catalog) Record(ctx context.Context, seq uint64) (*Record, error)  { return nil, errSkeleton }
func (c *Catalog) SubscribeCommits() *Subscription                          { return nil }

func (c *Catalog) CommitsSince(ctx context.Context, after uint64, limit int) ([]*Record, error) {
	return nil, errSkeleton
}

// CommitsOf returns the records that touch the table, ascending, with after < seq <= to.
func (c *Catalog) CommitsOf(ctx context.Context, key TableKey, after, to uint64, limit int) ([]*Record, error) {
	return nil, errSkeleton
}

// CommitBySnapshot returns the record that brought the snapshot to the table.
func (c *Catalog) CommitBySnapshot(ctx context.Context, key TableKey, snapshotID int64) (*Record, error) {
	return nil, errSkeleton
}

// SnapshotAt returns main's head of the table at an instant.
func (c *Catalog) SnapshotAt(ctx context.Context, key TableKey, t time.Time) (HeadAt, error) {
	return HeadAt{}, errSkeleton
}

// SnapshotAtSeq returns main's head of the table at a seq.
func (c *Catalog) SnapshotAtSeq(ctx context.Context, key TableKey, seq uint64) (HeadAt, error) {
	return HeadAt{}, errSkeleton
}

// HeadAt is main's head of a table at some seq.
type HeadAt struct {
	Exists     bool
	Seq        uint64
	SnapshotID *int64
	SchemaID   int
}

// Problem is one finding of Check.
type Problem struct {
	Path   string
	Detail string
}

func (c *Catalog) Check(ctx context.Context, report func(Problem)) error { return errSkeleton }

// Check checks a folder that no server holds.
func Check(ctx context.Context, dir string, report func(Problem)) error { return errSkeleton }

// Subscription delivers commits in seq order.
type Subscription struct{}

func (s *Subscription) Cursor() uint64                          { return 0 }
func (s *Subscription) Next(ctx context.Context) (Event, error) { return Event{}, errSkeleton }
func (s *Subscription) C() <-chan struct{}                      { return nil }
func (s *Subscription) Close()                                  {}

// Event is one commit, or the news that commits (From, To] have to be read from the log.
type Event struct {
	Record   *Record
	Lagged   bool
	From, To uint64
}

func (c *Catalog) CatalogType() icecat.Type { return "skade" }
func (c *Catalog) CreateTable(ctx context.Context, identifier table.Identifier, schema *iceberg.Schema, opts ...icecat.CreateTableOpt) (*table.Table, error) {
	return nil, errSkeleton
}
func (c *Catalog) CommitTable(ctx context.Context, identifier table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	return nil, "", errSkeleton
}
func (c *Catalog) CommitTransaction(ctx context.Context, commits []table.TableCommit) error {
	return errSkeleton
}
func (c *Catalog) ListTables(ctx context.Context, namespace table.Identifier) iter.Seq2[table.Identifier, error] {
	return nil
}
func (c *Catalog) LoadTable(ctx context.Context, identifier table.Identifier) (*table.Table, error) {
	return nil, errSkeleton
}
func (c *Catalog) DropTable(ctx context.Context, identifier table.Identifier) error {
	return errSkeleton
}
func (c *Catalog) PurgeTable(ctx context.Context, identifier table.Identifier) error {
	return errSkeleton
}
func (c *Catalog) RenameTable(ctx context.Context, from, to table.Identifier) (*table.Table, error) {
	return nil, errSkeleton
}
func (c *Catalog) CheckTableExists(ctx context.Context, identifier table.Identifier) (bool, error) {
	return false, errSkeleton
}
func (c *Catalog) ListNamespaces(ctx context.Context, parent table.Identifier) ([]table.Identifier, error) {
	return nil, errSkeleton
}
func (c *Catalog) CreateNamespace(ctx context.Context, namespace table.Identifier, props iceberg.Properties) error {
	return errSkeleton
}
func (c *Catalog) DropNamespace(ctx context.Context, namespace table.Identifier) error {
	return errSkeleton
}
func (c *Catalog) CheckNamespaceExists(ctx context.Context, namespace table.Identifier) (bool, error) {
	return false, errSkeleton
}
func (c *Catalog) LoadNamespaceProperties(ctx context.Context, namespace table.Identifier) (iceberg.Properties, error) {
	return nil, errSkeleton
}
func (c *Catalog) UpdateNamespaceProperties(ctx context.Context, namespace table.Identifier, removals []string, updates iceberg.Properties) (icecat.PropertiesUpdateSummary, error) {
	return icecat.PropertiesUpdateSummary{}, errSkeleton
}

var (
	_ icecat.Catalog              = (*Catalog)(nil)
	_ icecat.TransactionalCatalog = (*Catalog)(nil)
	_ icecat.PurgeableTable       = (*Catalog)(nil)
	_ icecat.Closer               = (*Catalog)(nil)
)
