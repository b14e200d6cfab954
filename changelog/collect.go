package changelog

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Collect reads all batches into memory, in place of Batches. Batches of small commits are joined: what a window takes follows its rows, not
// the number of its commits.
func (x *Result) Collect(ctx context.Context) (*Batch, error) {
	b := &Batch{Table: x.q.Ident, Columns: x.cols, Kind: x.cols.Kind, workers: x.r.opts.Workers}
	var err error
	if b.From, b.To, err = x.Ends(ctx); err != nil {
		return nil, err
	}
	j := joiner{schema: x.cols.Schema, rows: int64(x.r.opts.BatchRows)}
	for rec, err := range x.Batches(ctx) {
		if err != nil {
			return nil, err
		}
		rec.Retain()
		if err := j.add(rec); err != nil {
			return nil, err
		}
	}
	if err := j.flush(); err != nil {
		return nil, err
	}
	b.Records, b.Warnings = j.out, x.Warnings()
	return b, nil
}

// joinRecords is how many small batches are held before they are joined.
const joinRecords = 256

// joiner makes batches of at most rows rows out of smaller ones.
type joiner struct {
	schema *arrow.Schema
	rows   int64
	out    []arrow.RecordBatch
	small  []arrow.RecordBatch
	held   int64 // rows of small
}

func (j *joiner) add(rec arrow.RecordBatch) error {
	if j.held+rec.NumRows() > j.rows {
		if err := j.flush(); err != nil {
			return err
		}
	}
	j.small, j.held = append(j.small, rec), j.held+rec.NumRows()
	if len(j.small) < joinRecords {
		return nil
	}
	rec, err := j.join(j.small)
	j.small = append(j.small[:0], rec)
	return err
}

// flush makes what is held a batch of the result.
func (j *joiner) flush() error {
	if len(j.small) == 0 {
		return nil
	}
	rec, err := j.join(j.small)
	j.out = append(j.out, rec)
	j.small, j.held = nil, 0
	return err
}

func (j *joiner) join(recs []arrow.RecordBatch) (arrow.RecordBatch, error) {
	if len(recs) == 1 {
		return recs[0], nil
	}
	cols, parts, n := make([]arrow.Array, j.schema.NumFields()), make([]arrow.Array, len(recs)), int64(0)
	for c := range cols {
		for i, r := range recs {
			parts[i] = r.Column(c)
		}
		var err error
		if cols[c], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("join batches: %w", err)
		}
	}
	for _, r := range recs {
		n += r.NumRows()
		r.Release()
	}
	return array.NewRecordBatch(j.schema, cols, n), nil
}
