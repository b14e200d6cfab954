package liveset

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"

	"github.com/nordisk/skade-pg/internal/parquetio"
)

// KeySchema is the shape of an equality delete file's keys: its equality fields, each in the newest type that a schema of the table gives it,
// all of them nullable, since NULL matches NULL. Error: ErrUnknownField.
func (d *DeleteFile) KeySchema(ref Ref) (*iceberg.Schema, error) {
	return ref.keySchema(ref.keyOrder(d.Data.EqualityFieldIDs()))
}

// DeletedKeys yields the rows of an equality delete file as they lie in it, in KeySchema's columns, whatever else the file holds. A batch is the
// caller's to release. Errors: ErrMissingFile, *DamagedError, ErrNoFieldIDs, ErrUnknownField.
func (c *Cache) DeletedKeys(ctx context.Context, ref Ref, d *DeleteFile) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		sc, err := d.KeySchema(ref)
		if err != nil {
			yield(nil, err)
			return
		}
		r, err := c.reader(ctx, d.Data.FilePath(), d.Data.FileSizeBytes())
		if err != nil {
			yield(nil, err)
			return
		}
		as, err := parquetio.ArrowSchema(sc, false)
		if err != nil {
			yield(nil, err)
			return
		}
		ids := ref.keyOrder(d.Data.EqualityFieldIDs())
		if err := hasKeys(ref, r, ids); err != nil {
			yield(nil, err)
			return
		}
		for cols, err := range ref.keyArrays(ctx, r, ids) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(array.NewRecordBatch(as, cols, int64(cols[0].Len())), nil) {
				return
			}
		}
	}
}
