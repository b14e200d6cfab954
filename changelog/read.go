package changelog

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// Batch is one window of a table's changes, in memory.
type Batch struct {
	Table    table.Identifier
	Columns  *Columns
	Records  []arrow.RecordBatch
	From, To *State
	Kind     TableKind
	// FullReload says that Records hold R(To) as INSERTs because the history before it has expired.
	FullReload bool
	Warnings   []string

	workers   int
	projected bool
}

// Rows counts the rows of all records.
func (b *Batch) Rows() int64 {
	n := int64(0)
	for _, r := range b.Records {
		n += r.NumRows()
	}
	return n
}

// Read reads a table's changes in (from, to], as of now, into memory. Request has more to ask for: Changes or Net, then Result.Collect.
// Errors: as Changes, and what reading files may return.
func (r *Reader) Read(ctx context.Context, ident table.Identifier, from, to Bound) (*Batch, error) {
	x, err := r.Changes(ctx, r.window(ident, from, to))
	if err != nil {
		return nil, err
	}
	return x.Collect(ctx)
}

// window is the request for a window as of now.
func (r *Reader) window(ident table.Identifier, from, to Bound) Request {
	return Request{Cut: r.opts.Catalog.Cut(), Ident: ident, From: from, To: to}
}

// Project keeps the named table columns, in the order named, and all metadata columns: _change_type always stays. A name that comes
// twice counts once. It comes after Collapse, which needs whole rows and refuses a projected batch.
// Errors: ErrUnknownColumn for a name that is neither a table column nor a metadata column; the batch is as it was.
func (b *Batch) Project(names ...string) (*Batch, error) {
	out := *b
	cols := *b.Columns
	asked := b.Columns.Table.NumFields()
	var keep []int
	var fields []iceberg.NestedField
	for _, name := range names {
		i := slices.IndexFunc(b.Columns.Table.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		switch {
		case slices.Contains(keep, i):
			continue
		case i < 0 && b.Columns.Schema.HasField(name):
			continue // a metadata column: it stays anyway
		case i < 0:
			return nil, &Error{Err: ErrUnknownColumn, Message: fmt.Sprintf("table has no column %q", name)}
		}
		keep, fields = append(keep, i), append(fields, b.Columns.Table.Field(i))
	}
	for i := asked; i < len(b.Columns.Schema.Fields()); i++ {
		keep = append(keep, i)
	}
	af := make([]arrow.Field, len(keep))
	for k, i := range keep {
		af[k] = b.Columns.Schema.Field(i)
	}
	cols.Schema = arrow.NewSchema(af, nil)
	cols.Table = iceberg.NewSchema(b.Columns.Table.ID, fields...)
	out.Columns, out.Records, out.projected = &cols, nil, true
	for _, r := range b.Records {
		list := make([]arrow.Array, len(keep))
		for k, i := range keep {
			list[k] = r.Column(i)
		}
		out.Records = append(out.Records, array.NewRecordBatch(cols.Schema, list, r.NumRows()))
	}
	return &out, nil
}
