package warehouse

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	icetable "github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/catalog"
	"github.com/nordisk/skade-pg/liveset"
)

// TxTable is one table inside a transaction.
type TxTable struct{}

// UpsertMode says what Upsert does with a row whose key is live.
type UpsertMode int

const (
	// Replace suppresses the old row and adds the new one.
	Replace UpsertMode = iota
	// DoNothing leaves the old row and drops the new one.
	DoNothing
)

// UpsertResult counts what Upsert did with each row of its batch; the bitmaps hold the batch's row numbers.
type UpsertResult struct {
	Inserted, Replaced, Skipped             int64
	InsertedRows, ReplacedRows, SkippedRows *roaring.Bitmap
}

// RowRef is the place of a row: a data file of the table's Live set and a position in it.
type RowRef struct {
	Path string
	Pos  uint32
}

// KeyHit is a live row that has the key of row Ordinal of the batch given to FindKeys.
type KeyHit struct {
	Ordinal int
	Row     RowRef
}

func (t *TxTable) Ident() icetable.Identifier                              { return nil }
func (t *TxTable) State() *catalog.TableState                              { return nil }
func (t *TxTable) Schema() *iceberg.Schema                                 { return nil }
func (t *TxTable) Metadata() icetable.Metadata                             { return nil }
func (t *TxTable) ArrowSchema() *arrow.Schema                              { return nil }
func (t *TxTable) Ref() liveset.Ref                                        { return liveset.Ref{} }
func (t *TxTable) Live(ctx context.Context) (*liveset.Set, error)          { return nil, nil }
func (t *TxTable) Append(ctx context.Context, rec arrow.RecordBatch) error { return nil }
func (t *TxTable) Upsert(ctx context.Context, rec arrow.RecordBatch, mode UpsertMode) (UpsertResult, error) {
	return UpsertResult{}, nil
}
func (t *TxTable) FindKeys(ctx context.Context, rec arrow.RecordBatch) ([]KeyHit, error) {
	return nil, nil
}
func (t *TxTable) DeleteAt(ctx context.Context, path string, positions *roaring.Bitmap) (int64, error) {
	return 0, nil
}
func (t *TxTable) DeleteKeys(ctx context.Context, keys arrow.RecordBatch) (int64, error) {
	return 0, nil
}
func (t *TxTable) DeleteEquality(ctx context.Context, fieldIDs []int, rec arrow.RecordBatch) error {
	return nil
}
func (t *TxTable) Update(ctx context.Context, olds []RowRef, news arrow.RecordBatch) error {
	return nil
}
func (t *TxTable) Truncate(ctx context.Context) (int64, error)  { return 0, nil }
func (t *TxTable) Overwrite(ctx context.Context) (int64, error) { return 0, nil }
