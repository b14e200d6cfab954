package changelog

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"github.com/nordisk/skade-pg/liveset"
)

// EqualityDelete is an equality delete file that a window brought: keys that delete every row which was there before. It is for readers of
// the file level, who apply keys themselves; the rows that died are in Changes.
type EqualityDelete struct {
	// File has the path, the partition (all of them when its spec is unpartitioned) and DataSeq: it reaches data files with a lower data
	// sequence number, no others.
	File *liveset.DeleteFile
	// Snapshot is the state that it came with, Seq the commit; 0 when the state predates the catalog.
	Snapshot int64
	Seq      uint64
	// Fields are the columns that its keys are compared by, in their newest types. NULL matches NULL.
	Fields *iceberg.Schema

	x *Result
}

// Keys yields the file's keys, one row each, in Fields' columns. A batch is valid until the next one is asked for: Retain keeps it.
// Errors: liveset's.
func (d *EqualityDelete) Keys(ctx context.Context) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for rec, err := range d.x.r.opts.Live.DeletedKeys(ctx, d.x.ref(), d.File) {
			ok := yield(rec, err)
			if rec != nil {
				rec.Release()
			}
			if !ok {
				return
			}
		}
	}
}

// EqualityDeletes yields the equality delete files that a table got in (from, to], as of now, oldest first: with Plan's data files, position
// deletes and deletion vectors they are all that the window brought. Nothing is read before Keys. Errors: as Changes.
func (r *Reader) EqualityDeletes(ctx context.Context, ident table.Identifier, from, to Bound) iter.Seq2[*EqualityDelete, error] {
	return func(yield func(*EqualityDelete, error) bool) {
		x, err := r.Changes(ctx, r.window(ident, from, to))
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range x.w.steps {
			found, err := x.equalityDeletes(ctx, &x.w.steps[i])
			if err != nil {
				yield(nil, err)
				return
			}
			for _, d := range found {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// equalityDeletes are the equality delete files that a step has at its later end only.
func (x *Result) equalityDeletes(ctx context.Context, s *step) ([]*EqualityDelete, error) {
	if s.new == nil {
		return nil, nil
	}
	before, err := x.set(ctx, s.old)
	if err != nil {
		return nil, err
	}
	after, err := x.set(ctx, s.new)
	if err != nil {
		return nil, err
	}
	added, _ := liveset.DiffDeletes(before, after)
	var out []*EqualityDelete
	for _, f := range added {
		if f.Kind != liveset.EqualityDelete {
			continue
		}
		d := &EqualityDelete{File: f, Snapshot: *s.new, Seq: s.seq, x: x}
		if d.Fields, err = f.KeySchema(x.ref()); err != nil {
			return nil, fmt.Errorf("equality delete %s: %w", f.Data.FilePath(), err)
		}
		out = append(out, d)
	}
	return out, nil
}
