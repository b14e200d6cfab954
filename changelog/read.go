package changelog

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
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

// Collapse folds the batch to its net effect (L3): rows that came and went cancel, and a key that is left once on each
// side is one update. A log table keeps the signed multiset difference. The result's rows keep the metadata columns of
// the change they come from.
func (b *Batch) Collapse() (*Batch, error) {
	out := *b
	out.Records = nil
	if len(b.Records) == 0 {
		return &out, nil
	}
	asked := b.Columns.Table.NumFields()
	width := len(b.Columns.Schema.Fields())
	cols := make([]arrow.Array, width)
	parts := make([]arrow.Array, len(b.Records))
	for c := range width {
		for k, r := range b.Records {
			parts[k] = r.Column(c)
		}
		var err error
		if cols[c], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("collect rows: %w", err)
		}
	}
	kinds := cols[asked].(*array.String)
	// An arena holds the removed rows before the inserted ones.
	var dels, inss []uint32
	for i := range kinds.Len() {
		if k := kinds.Value(i); k == Delete || k == UpdateBefore {
			dels = append(dels, uint32(i))
		} else {
			inss = append(inss, uint32(i))
		}
	}
	order := append(slices.Clone(dels), inss...)
	a := &arena{n: uint32(len(order)), dels: uint32(len(dels))}
	for _, c := range cols {
		g, err := newVector(c).gather(order)
		if err != nil {
			return nil, fmt.Errorf("gather rows: %w", err)
		}
		a.cols = append(a.cols, newVector(g))
	}
	compare := make([]int, asked)
	for i := range compare {
		compare[i] = i
	}
	var key []int
	for _, id := range b.Kind.Identifier {
		key = append(key, slices.IndexFunc(b.Columns.Table.Fields(), func(f iceberg.NestedField) bool { return f.ID == id }))
	}
	a.match(key, compare)
	return out.fromArena(a, asked)
}

// fromArena fills the batch with the unmatched rows and the updates of an arena.
func (b *Batch) fromArena(a *arena, asked int) (*Batch, error) {
	var rows []uint32
	var kinds []changeKind
	for r := range a.n {
		switch p := a.partner[r]; {
		case p == cancelled:
		case p == 0 && r < a.dels:
			rows, kinds = append(rows, r), append(kinds, kindDelete)
		case p == 0:
			rows, kinds = append(rows, r), append(kinds, kindInsert)
		case r < a.dels:
			rows, kinds = append(rows, r, p-1), append(kinds, kindBefore, kindAfter)
		}
	}
	if len(rows) == 0 {
		return b, nil
	}
	out := make([]arrow.Array, len(a.cols))
	for c, v := range a.cols {
		var err error
		if out[c], err = v.gather(rows); err != nil {
			return nil, fmt.Errorf("gather rows: %w", err)
		}
	}
	out[asked] = kindArray(kinds)
	b.Records = []arrow.RecordBatch{array.NewRecordBatch(b.Columns.Schema, out, int64(len(rows)))}
	return b, nil
}

// Project keeps the named table columns and all metadata columns; it comes after Collapse, which needs whole rows.
// Errors: ErrUnknownColumn.
func (b *Batch) Project(names ...string) (*Batch, error) {
	out := *b
	cols := *b.Columns
	asked := b.Columns.Table.NumFields()
	var keep []int
	var fields []iceberg.NestedField
	for _, name := range names {
		i := slices.IndexFunc(b.Columns.Table.Fields(), func(f iceberg.NestedField) bool { return f.Name == name })
		if i < 0 {
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
	out.Columns, out.Records = &cols, nil
	for _, r := range b.Records {
		list := make([]arrow.Array, len(keep))
		for k, i := range keep {
			list[k] = r.Column(i)
		}
		out.Records = append(out.Records, array.NewRecordBatch(cols.Schema, list, r.NumRows()))
	}
	return &out, nil
}
