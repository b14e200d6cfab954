package changelog

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// bothSides reads both sides, a partition at a time, pairs and cancels, and emits. Rows that turn out to be too many
// bytes go to disk while they are read; whether they do depends on the rows alone.
func (run *stepRun) bothSides(ctx context.Context) (err error) {
	var units []unit
	for _, d := range run.diffs {
		units = cutUnits(units, d.File, d.Deleted, false)
	}
	for _, d := range run.diffs {
		units = cutUnits(units, d.File, d.Inserted, true)
	}
	var (
		sides [2][]arrow.RecordBatch
		bytes int64
		s     *spill
	)
	defer func() {
		releaseAll(append(sides[0], sides[1]...))
		if s != nil {
			err = errors.Join(err, s.close())
		}
	}()
	parts := run.partitions()
	if parts > 1 {
		if s, err = run.spillStep(parts); err != nil {
			return err
		}
	}
	err = readUnits(ctx, run.x.r.opts.Workers, units, run.read, func(u unit, b arrow.RecordBatch) error {
		side := 0
		if u.inserted {
			side = 1
		}
		if s != nil {
			return s.add(ctx, side, b)
		}
		sides[side], bytes = append(sides[side], b), bytes+batchBytes(b)
		if bytes <= run.x.r.opts.PartitionBytes {
			return nil
		}
		if s, err = run.spillStep(spillFan); err != nil {
			return err
		}
		for side, held := range sides {
			for k, b := range held {
				held[k] = nil
				if err := s.add(ctx, side, b); err != nil {
					sides[side] = held[k+1:]
					return err
				}
			}
			sides[side] = nil
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case s != nil:
		_, err = s.drain(ctx, 0)
		return err
	}
	dels, inss := sides[0], sides[1]
	sides = [2][]arrow.RecordBatch{}
	_, err = run.partition(ctx, dels, inss, 0, nil)
	return err
}

// partitions is a pure function of the step's row counts, so that the order of a step is one of (P, S).
func (run *stepRun) partitions() int {
	rows := int64(run.x.r.opts.PartitionRows)
	if max(run.del, run.ins) <= rows {
		return 1
	}
	return int(min(max(2*max(run.del, run.ins)/rows, 2), 128))
}

// idsPair says whether row ids pair the rows of the step. In a net effect they do not: a row id says what became of a row
// inside one commit.
func (run *stepRun) idsPair() bool { return run.sides.RowID && !run.x.net }

// partition matches the rows of one partition and emits them, numbered from first. It returns the next number. The
// batches are released. With rest, rows are matched by row id alone, and those that no id pairs go there.
func (run *stepRun) partition(ctx context.Context, dels, inss []arrow.RecordBatch, first int64, rest *spill) (int64, error) {
	all := append(append([]arrow.RecordBatch(nil), dels...), inss...)
	defer releaseAll(all)
	if len(all) == 0 {
		return first, nil
	}
	a, err := newArena(all, len(dels), run.x.r.opts.Workers)
	if err != nil || a.n == 0 {
		return first, err
	}
	if run.sides.RowID {
		last := len(a.cols) - 1
		a.rowID, a.cols = a.cols[last], a.cols[:last]
		if ids, ok := a.rowID.(*intVector[int64]); ok && run.idsPair() {
			a.hasID = func(ref uint32) bool { return !ids.isNull(ref) }
		}
	}
	if rest != nil {
		return run.partitionByID(ctx, a, all[0].Schema(), first, rest)
	}
	if err := a.match(ctx, run.lay.key, run.lay.compare); err != nil {
		return 0, err
	}
	return run.emitArena(ctx, a, first)
}

// partitionByID emits what row ids pair and hands the other rows on.
func (run *stepRun) partitionByID(ctx context.Context, a *arena, sc *arrow.Schema, first int64, rest *spill) (int64, error) {
	if err := a.matchIDs(ctx, run.lay.compare); err != nil {
		return first, err
	}
	var left [2][]uint32
	a.result(func(ref uint32, removed bool, _ uint32, paired bool) bool {
		switch {
		case paired:
		case removed:
			left[0] = append(left[0], ref)
		default:
			left[1] = append(left[1], ref)
		}
		return true
	})
	cols := append(append([]vector(nil), a.cols...), a.rowID)
	for side, refs := range left {
		for _, ref := range refs {
			a.partner[a.number(ref)] = cancelled // not emitted here
		}
		for len(refs) > 0 {
			n := min(len(refs), chunkRows)
			batches, err := gatherRows(sc, cols, refs[:n])
			if err != nil {
				return first, fmt.Errorf("spill changed rows: %w", err)
			}
			for k, b := range batches {
				if err := rest.add(ctx, side, b); err != nil {
					releaseAll(batches[k+1:])
					return first, err
				}
			}
			refs = refs[n:]
		}
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
