package engine

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// gatherRows and gatherBytes bound what is joined of the small batches that DuckDB gives: the guard's query is planned once for each batch, and keys
// are looked for in every data file of the transaction once for each batch.
const (
	gatherRows  = 16 << 10
	gatherBytes = 4 << 20
)

// gather joins batches of one schema.
type gather struct {
	schema *arrow.Schema
	parts  []arrow.RecordBatch
	rows   int64
	bytes  int64
}

// add takes rec over and hands on what is enough.
func (g *gather) add(ctx context.Context, rec arrow.RecordBatch, f func(ctx context.Context, rec arrow.RecordBatch) error) error {
	g.parts = append(g.parts, rec)
	g.rows += rec.NumRows()
	for _, c := range rec.Columns() {
		g.bytes += int64(c.Data().SizeInBytes())
	}
	if g.rows < gatherRows && g.bytes < gatherBytes {
		return nil
	}
	return g.flush(ctx, f)
}

// flush hands the rest to f, which takes it over.
func (g *gather) flush(ctx context.Context, f func(ctx context.Context, rec arrow.RecordBatch) error) error {
	if len(g.parts) == 0 {
		return nil
	}
	rec, err := g.join()
	if err != nil {
		return err
	}
	return f(ctx, rec)
}

func (g *gather) join() (arrow.RecordBatch, error) {
	defer g.drop()
	if len(g.parts) == 1 {
		g.parts[0].Retain()
		return g.parts[0], nil
	}
	cols := make([]arrow.Array, g.schema.NumFields())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i := range cols {
		runs := make([]arrow.Array, len(g.parts))
		for k, p := range g.parts {
			runs[k] = p.Column(i)
		}
		var err error
		if cols[i], err = array.Concatenate(runs, arrowAllocator); err != nil {
			return nil, err
		}
	}
	return array.NewRecordBatch(g.schema, cols, g.rows), nil
}

// drop lets go of rows that were not handed on.
func (g *gather) drop() {
	for _, p := range g.parts {
		p.Release()
	}
	g.parts, g.rows, g.bytes = nil, 0, 0
}
