package changelog

import (
	"context"
	"iter"
	"runtime"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go/table"
	"github.com/rs/zerolog"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// Options opens a Reader. Catalog and Live are required.
type Options struct {
	Catalog *catalog.Catalog
	Live    *liveset.Cache
	// TempDir is where steps larger than a partition spill. Empty is the operating system's.
	TempDir string
	// Workers bounds the goroutines that decode files for one Result. 0 is GOMAXPROCS, at most 8.
	Workers int
	// BatchRows bounds the rows of a batch. 0 is 8,192.
	BatchRows int
	// PartitionRows bounds the rows of one side of a step that are held in memory while they are paired. It is part of
	// the order of a step (see the package comment): one value per warehouse. 0 is 4,194,304.
	PartitionRows int
	Logger        zerolog.Logger
}

// Reader reads the changes of tables. Safe for concurrent use.
type Reader struct {
	opts Options
}

// New returns a Reader. It starts no goroutine.
func New(o Options) *Reader {
	if o.Workers <= 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), 8)
	}
	if o.BatchRows <= 0 {
		o.BatchRows = 8192
	}
	if o.PartitionRows <= 0 {
		o.PartitionRows = 4 << 20
	}
	return &Reader{opts: o}
}

// Columns describes the change relation of a table with its current schema, without reading data.
// Errors: iceberg-go's catalog.ErrNoSuchTable, ErrReservedColumn.
func (r *Reader) Columns(ctx context.Context, cut *catalog.Cut, ident table.Identifier) (*Columns, error) {
	return r.ColumnsAt(ctx, cut, ident, Null)
}

// ColumnsAt is Columns for a window whose to is a constant.
func (r *Reader) ColumnsAt(ctx context.Context, cut *catalog.Cut, ident table.Identifier, to Bound) (*Columns, error) {
	return nil, errSkeleton
}

// StateAt resolves a bound to a state: what table_at, lookup's as_of and time travel read. NULL and now are the state
// current at the cut; earliest is the oldest retained snapshot of main.
func (r *Reader) StateAt(ctx context.Context, cut *catalog.Cut, ident table.Identifier, b Bound) (*State, error) {
	return nil, errSkeleton
}

// Changes opens the changes of a window, commit by commit, in the guaranteed order. Bounds and schema are checked here;
// data is read by Result.Batches.
func (r *Reader) Changes(ctx context.Context, q Request) (*Result, error) { return nil, errSkeleton }

// Net opens the net effect of a window: the state at From against the state at To, which may be in any order and on any
// branch (L3, L4). Every row carries To's snapshot and seq, ordinal 0.
func (r *Reader) Net(ctx context.Context, q Request) (*Result, error) { return nil, errSkeleton }

// Plan says what Changes would read, without reading data files: EXPLAIN, and readers of the file level.
func (r *Reader) Plan(ctx context.Context, q Request) (*DeltaPlan, error) { return nil, errSkeleton }

// Result is an opened change relation.
type Result struct{ cols *Columns }

// Columns returns the shape of the batches.
func (x *Result) Columns() *Columns { return x.cols }

// Schema returns the Arrow schema of the batches.
func (x *Result) Schema() *arrow.Schema { return x.cols.Schema }

// Batches yields the rows. A batch is valid until the next one is asked for: Retain keeps it. The sequence may be run
// once; an error ends it.
func (x *Result) Batches(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] { return nil }

// Warnings returns what a client should be told, complete once Batches has ended.
func (x *Result) Warnings() []string { return nil }
