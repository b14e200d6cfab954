package changelog

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/liveset"
)

// stepRun computes one step.
type stepRun struct {
	x     *Result
	step  *step
	lay   *layout
	emit  *emitter
	diffs []liveset.FileDiff
	del   int64
	ins   int64
	sides liveset.MetaColumns
}

// set returns the live set of a state.
func (x *Result) set(ctx context.Context, id *int64) (*liveset.Set, error) {
	if id == nil {
		return liveset.Empty(), nil
	}
	return x.r.opts.Live.At(ctx, x.ref(), *id)
}

func (x *Result) ref() liveset.Ref {
	return liveset.Ref{UUID: x.h.state.UUID, Metadata: x.h.meta}
}

// diffStep returns what a step changed per file, nil for a replace snapshot that changed no row (L5). Of a net effect it may be a fold.
func (x *Result) diffStep(ctx context.Context, s *step) ([]liveset.FileDiff, error) {
	before, err := x.set(ctx, s.old)
	if err != nil {
		return nil, err
	}
	after, err := x.set(ctx, s.new)
	if err != nil {
		return nil, err
	}
	if s.replace {
		if before.Rows() == after.Rows() {
			return nil, nil
		}
		x.warn("snapshot %d says it replaces files without changing rows, but it has %d rows and its parent %d: it is read as an overwrite",
			*s.new, after.Rows(), before.Rows())
	}
	diffs, err := liveset.Diff(ctx, before, after)
	if err != nil {
		return nil, fmt.Errorf("compare snapshots: %w", err)
	}
	if x.net {
		return x.netDiffs(ctx, s, diffs)
	}
	return diffs, nil
}

// runStep computes and emits one step.
func (x *Result) runStep(ctx context.Context, s *step, e *emitter) error {
	diffs, err := x.diffStep(ctx, s)
	if err != nil || len(diffs) == 0 {
		return err
	}
	run := &stepRun{x: x, step: s, emit: e, diffs: diffs,
		lay:   newLayout(x.cols.Table, x.h.schemaOf(s.old), x.h.schemaOf(s.new), x.h.meta.Schemas(), x.keyIDs),
		sides: liveset.MetaColumns{RowID: x.cols.FormatVersion >= 3}}
	if x.net {
		// Rows are what the asked schema shows of them, whatever columns the ends have besides.
		run.lay = newLayout(x.cols.Table, x.cols.Table, x.cols.Table, x.h.meta.Schemas(), x.keyIDs)
	}
	for _, d := range diffs {
		if d.Deleted != nil {
			run.del += int64(d.Deleted.GetCardinality())
		}
		if d.Inserted != nil {
			run.ins += int64(d.Inserted.GetCardinality())
		}
	}
	e.begin(s, run.del+run.ins)
	switch {
	case run.ins == 0:
		return run.oneSide(ctx, kindDelete)
	case run.del == 0:
		return run.oneSide(ctx, kindInsert)
	}
	return run.bothSides(ctx)
}

// oneSide streams a step that only appended or only removed rows: nothing can pair or cancel.
func (run *stepRun) oneSide(ctx context.Context, kind changeKind) error {
	shard := run.x.q.Shard
	if shard.Count < 2 {
		run.lay = run.lay.narrow()
	}
	e, next := run.emit, int64(0)
	var units []unit
	for _, d := range run.diffs {
		rows, inserted := d.Deleted, false
		if kind == kindInsert {
			rows, inserted = d.Inserted, true
		}
		if rows == nil {
			continue
		}
		// Rows before the window are not read: whole files fall out here, and the first positions of the next.
		card := int64(rows.GetCardinality())
		if next+card <= run.step.skip {
			next += card
			continue
		}
		if next < run.step.skip {
			rows = rows.Clone()
			for next < run.step.skip {
				rows.Remove(rows.Minimum())
				next++
			}
		}
		units = cutUnits(units, d.File, rows, inserted)
	}
	next = min(max(run.step.skip, 0), run.del+run.ins)
	err := readUnits(ctx, run.x.r.opts.Workers, units, run.read, func(_ unit, b arrow.RecordBatch) error {
		defer b.Release()
		n := int(b.NumRows())
		first := next
		next += int64(n)
		if first >= run.step.limit {
			return errStepDone
		}
		lo, hi := run.step.clip(first, n)
		if lo > 0 || hi < n {
			part := b.NewSlice(int64(lo), int64(hi))
			defer part.Release()
			b, first, n = part, first+int64(lo), hi-lo
		}
		cols, rowID := run.split(b)
		if shard.Count > 1 {
			return run.emitShard(ctx, cols, rowID, kind, first, n)
		}
		out, err := e.project(ctx, run.lay, append([]arrow.Array(nil), cols...))
		if err != nil {
			return err
		}
		return e.emit(out, e.sameKind(kind, n), n, first, nil, rowID)
	})
	if err == errStepDone {
		return nil
	}
	return err
}

// read decodes one unit.
func (run *stepRun) read(ctx context.Context, u unit, yield func(arrow.RecordBatch) error) error {
	o := liveset.ScanOptions{Meta: run.sides, BatchRows: run.x.r.opts.BatchRows}
	for b, err := range run.x.r.opts.Live.ScanPositions(ctx, run.x.ref(), u.file, u.positions, run.lay.read, o) {
		if err != nil {
			return fmt.Errorf("read changed rows of %s: %w", u.file.Path, err)
		}
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

// split separates the read columns from _row_id.
func (run *stepRun) split(b arrow.RecordBatch) (cols []arrow.Array, rowID arrow.Array) {
	cols = b.Columns()
	if run.sides.RowID {
		return cols[:len(cols)-1], cols[len(cols)-1]
	}
	return cols, nil
}

// emitShard emits the rows of a one-sided batch that belong to the shard.
func (run *stepRun) emitShard(ctx context.Context, cols []arrow.Array, rowID arrow.Array, kind changeKind, first int64, n int) error {
	vecs := newVectors(cols)
	var rows []uint32
	var numbers []int64
	for r := range uint32(n) {
		if run.inShard(vecs, r) {
			rows = append(rows, r)
			numbers = append(numbers, first+int64(r))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return run.emitRows(ctx, vecs, rowIDVector(rowID), rows, run.emit.sameKind(kind, len(rows)), numbers)
}

func rowIDVector(rowID arrow.Array) vector {
	if rowID == nil {
		return nil
	}
	return newVector(rowID)
}

// inShard hashes the key, else the columns of the step's own schema.
func (run *stepRun) inShard(vecs []vector, r uint32) bool {
	shard := run.x.q.Shard
	if shard.Count < 2 {
		return true
	}
	cols := run.lay.key
	if len(cols) == 0 {
		cols = run.lay.own
	}
	h := uint64(0)
	for _, c := range cols {
		h = vecs[c].hashAt(r, h)
	}
	return h%uint64(shard.Count) == uint64(shard.Index)
}

// emitRows gathers rows and emits them.
func (run *stepRun) emitRows(ctx context.Context, vecs []vector, rowID vector, rows []uint32, kinds arrow.Array, numbers []int64) error {
	cols := make([]arrow.Array, run.lay.asked)
	var err error
	for i := range cols {
		if cols[i], err = vecs[i].gather(rows); err != nil {
			return fmt.Errorf("gather changed rows: %w", err)
		}
	}
	if cols, err = run.emit.project(ctx, run.lay, cols); err != nil {
		return err
	}
	var ids arrow.Array
	if rowID != nil {
		if ids, err = rowID.gather(rows); err != nil {
			return fmt.Errorf("gather row ids: %w", err)
		}
	}
	return run.emit.emit(cols, kinds, len(rows), 0, numbers, ids)
}
