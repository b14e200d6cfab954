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
	w := &arenaWriter{ctx: ctx, run: run, a: a, next: next, sharded: run.x.q.Shard.Count > 1}
	// A pair is not cut: a batch has room for one more row than is asked.
	room := min(run.emit.rows, int(a.n)) + 1
	w.rows, w.kinds, w.numbers = make([]uint32, room), make([]changeKind, room), make([]int64, room)
	a.result(w.take)
	if w.err == nil {
		w.flush()
	}
	return w.next, w.err
}

// arenaWriter collects the result of an arena in batches.
type arenaWriter struct {
	ctx     context.Context
	run     *stepRun
	a       *arena
	sharded bool
	next    int64 // _change_row of the next row
	err     error

	rows    []uint32
	kinds   []changeKind
	numbers []int64
	n       int // of them are filled
}

// take is a.result's consumer.
func (w *arenaWriter) take(r uint32, removed bool, partner uint32, paired bool) bool {
	switch {
	case !paired && removed:
		w.put(r, kindDelete)
	case !paired:
		w.put(r, kindInsert)
	case w.sharded && w.run.inShard(w.a.cols, r) != w.run.inShard(w.a.cols, partner):
		w.put(r, kindDelete)
		w.put(partner, kindInsert)
	default:
		w.put(r, kindBefore)
		w.put(partner, kindAfter)
	}
	if w.n >= len(w.rows)-1 {
		w.flush()
	}
	return w.err == nil && w.next < w.run.step.limit
}

func (w *arenaWriter) put(r uint32, k changeKind) {
	if s := w.run.step; w.next >= s.skip && w.next < s.limit && (!w.sharded || w.run.inShard(w.a.cols, r)) {
		w.rows[w.n], w.kinds[w.n], w.numbers[w.n] = r, k, w.next
		w.n++
	}
	w.next++
}

func (w *arenaWriter) flush() {
	if w.n == 0 {
		return
	}
	w.err = w.run.emitArenaRows(w.ctx, w.a, w.rows[:w.n], w.kinds[:w.n], w.numbers[:w.n])
	w.n, w.numbers = 0, make([]int64, len(w.rows)) // the batch has the numbers
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
