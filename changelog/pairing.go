package changelog

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
)

// bothSides reads both sides, a partition at a time, pairs and cancels, and emits.
func (run *stepRun) bothSides(ctx context.Context) error {
	var units []unit
	for _, d := range run.diffs {
		units = cutUnits(units, d.File, d.Deleted, false)
	}
	for _, d := range run.diffs {
		units = cutUnits(units, d.File, d.Inserted, true)
	}
	if n := run.partitions(); n > 1 {
		return run.spilled(ctx, units, n)
	}
	var sides [2][]arrow.RecordBatch
	err := readUnits(ctx, run.x.r.opts.Workers, units, run.read, func(u unit, b arrow.RecordBatch) error {
		i := 0
		if u.inserted {
			i = 1
		}
		sides[i] = append(sides[i], b)
		return nil
	})
	if err != nil {
		return err
	}
	_, err = run.partition(ctx, sides[0], sides[1], 0)
	return err
}

// partitionBytes bounds the compressed bytes of a partition's rows.
const partitionBytes = 128 << 20

// partitions is a pure function of the step's row counts and file sizes, so that the order of a step is one of (P, S).
func (run *stepRun) partitions() int {
	rows := (max(run.del, run.ins) + int64(run.x.r.opts.PartitionRows) - 1) / int64(run.x.r.opts.PartitionRows)
	return int(min(max(rows, (run.estSize+partitionBytes-1)/partitionBytes), 256))
}

// partition matches the rows of one partition and emits them, numbered from first. It returns the next number. The
// batches are released.
func (run *stepRun) partition(ctx context.Context, dels, inss []arrow.RecordBatch, first int64) (int64, error) {
	all := append(append([]arrow.RecordBatch(nil), dels...), inss...)
	defer func() {
		for _, b := range all {
			b.Release()
		}
	}()
	if len(all) == 0 {
		return first, nil
	}
	a, err := newArena(all, len(dels), run.x.r.opts.Workers)
	if err != nil {
		return 0, err
	}
	if run.sides.RowID {
		last := len(a.cols) - 1
		if last < 0 {
			return first, nil
		}
		a.rowID, a.cols = a.cols[last], a.cols[:last]
		// A net effect is by key, or by row: a row id says what became of a row inside one commit.
		if ids, ok := a.rowID.(*intVector[int64]); ok && !run.x.net {
			a.hasID = func(ref uint32) bool { return !ids.isNull(ref) }
		}
	}
	if err := a.match(ctx, run.lay.key, run.lay.compare); err != nil {
		return 0, err
	}
	return run.emitArena(ctx, a, first)
}

// emitArena emits what is left of a matched arena in the order of a step.
func (run *stepRun) emitArena(ctx context.Context, a *arena, next int64) (int64, error) {
	e, s := run.emit, run.step
	room := min(e.rows, int(a.n))
	rows := make([]uint32, 0, room)
	kinds := make([]changeKind, 0, room)
	numbers := make([]int64, 0, room)
	flush := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := run.emitArenaRows(ctx, a, rows, kinds, numbers)
		rows, kinds, numbers = rows[:0], kinds[:0], nil // the batch has the numbers
		return err
	}
	put := func(r uint32, k changeKind) {
		if next >= s.skip && next < s.limit && run.inShard(a.cols, r) {
			rows, kinds, numbers = append(rows, r), append(kinds, k), append(numbers, next)
		}
		next++
	}
	var err error
	a.result(func(r uint32, removed bool, partner uint32, paired bool) bool {
		switch {
		case !paired && removed:
			put(r, kindDelete)
		case !paired:
			put(r, kindInsert)
		default:
			before, after := kindBefore, kindAfter
			if run.x.q.Shard.Count > 1 && run.inShard(a.cols, r) != run.inShard(a.cols, partner) {
				before, after = kindDelete, kindInsert
			}
			put(r, before)
			put(partner, after)
		}
		// A pair is not cut: a batch has room for one more row than is asked.
		if len(rows) >= e.rows-1 {
			if err = flush(); err != nil {
				return false
			}
		}
		return next < s.limit
	})
	if err != nil {
		return next, err
	}
	return next, flush()
}

// emitArenaRows emits rows in one batch, or in more when they are too wide for one.
func (run *stepRun) emitArenaRows(ctx context.Context, a *arena, rows []uint32, kinds []changeKind, numbers []int64) error {
	err := run.emitRows(ctx, a.cols, a.rowID, rows, run.emit.mixedKinds(kinds), numbers)
	if !errors.Is(err, errTooWide) {
		return err
	}
	half := len(rows) / 2
	if kinds[half] == kindAfter { // a pair is not cut
		half++
	}
	if err := run.emitArenaRows(ctx, a, rows[:half], kinds[:half], numbers[:half]); err != nil {
		return err
	}
	return run.emitArenaRows(ctx, a, rows[half:], kinds[half:], numbers[half:])
}
