package lookup

import (
	"context"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// ColKeyOrdinal is the last column of LookupMany's result: bigint, 0-based.
const ColKeyOrdinal = "_key_ordinal"

// Options opens a Lookup. Live is required.
type Options struct {
	Live *liveset.Cache
	// CacheBytes bounds the row cache, in bytes of its own reckoning (about 1 KiB for a narrow row). 0 is 64 MiB;
	// negative turns it off.
	CacheBytes int64
}

// Lookup looks up keys. Safe for concurrent use.
type Lookup struct {
	opts Options
}

// New returns a Lookup. It starts no goroutine.
func New(o Options) *Lookup { return &Lookup{opts: o} }

// Target says what is looked up in. The zero SnapshotID with Cut is the state current at the cut.
type Target struct {
	Cut   *catalog.Cut
	Ident table.Identifier
	// AsOf pins an earlier state (a resolved bound); nil is the cut's.
	AsOf *AsOf
	// Live, when set, is what is probed instead: a transaction's base plus its own writes.
	Live *liveset.Set
	// KeyColumns names the key; nil is the table's identifier fields in schema order.
	KeyColumns []string
	// Schema is the schema of the rows; nil is the state's. Columns, when not nil, keeps only these of it.
	Schema  *iceberg.Schema
	Columns []string
}

// AsOf is a resolved bound.
type AsOf struct {
	// Metadata knows the snapshot.
	Metadata table.Metadata
	// Snapshot is nil for the empty state.
	Snapshot *int64
	Schema   *iceberg.Schema
	Time     time.Time
}

// Columns describes a lookup without reading data.
type Columns struct {
	// Schema is the shape of the rows, Key that of a key.
	Schema, Key *arrow.Schema
	Table       *iceberg.Schema
	KeyIDs      []int
}

// Columns describes the rows and the key of a target.
func (l *Lookup) Columns(ctx context.Context, t Target) (*Columns, error) { return nil, errSkeleton }

// Prepare binds a target. A Lookuper holds no file open and needs no Close; keep it as long as its state is wanted.
func (l *Lookup) Prepare(ctx context.Context, t Target) (*Lookuper, error) { return nil, errSkeleton }

// Lookuper is one table at one state with one key. Safe for concurrent use.
type Lookuper struct {
	cols *Columns
}

// Columns returns the shape of rows and key.
func (p *Lookuper) Columns() *Columns { return p.cols }

// Lookup returns the live rows of one key, given as row 0 of a batch whose columns are the key columns or a leading
// prefix of the identifier fields. The batch is the caller's to Release; it has no rows when the key has none.
func (p *Lookuper) Lookup(ctx context.Context, key arrow.RecordBatch) (arrow.RecordBatch, error) {
	return nil, errSkeleton
}

// LookupMany returns the live rows of every key of a batch, with _key_ordinal as last column, ordered by it.
func (p *Lookuper) LookupMany(ctx context.Context, keys arrow.RecordBatch) (arrow.RecordBatch, error) {
	return nil, errSkeleton
}

// Get returns the live rows of one key. It allocates nothing when the rows are cached.
func (p *Lookuper) Get(ctx context.Context, k *Key) (arrow.RecordBatch, error) {
	return nil, errSkeleton
}

// Key builds one key, part by part, without allocation once warm. It belongs to one goroutine.
type Key struct {
	p   *Lookuper
	buf []byte
}

// NewKey returns an empty key of p.
func (p *Lookuper) NewKey() *Key { return &Key{p: p} }

// Reset empties the key.
func (k *Key) Reset() *Key { k.buf = k.buf[:0]; return k }

// Append adds the next part. Errors: ErrKeyType.
func (k *Key) Append(v iceberg.Literal) error { return errSkeleton }
