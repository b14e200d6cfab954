package changelog

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// cancelled marks a row whose identical counterpart is on the other side.
const cancelled = 1<<32 - 1

// arena holds removed and inserted rows that are matched with each other, where they were decoded: a row is named by its
// ref (see vector). match fills partner, by row number: 0 nothing yet, cancelled, else the partner's ref + 1.
type arena struct {
	rows    []int    // of each chunk
	starts  []uint32 // by chunk: the rows before it
	n       uint32
	dels    int        // chunks before it were removed, the others inserted; mixedSigns: removed says
	removed [][]uint64 // by chunk, a bit a row
	cols    []vector
	pieces  [][]arrow.Array       // by column, by chunk: what cols was made of
	rowID   vector                // nil when rows have none
	hasID   func(ref uint32) bool // nil: row ids pair nothing
	partner []uint32
	workers int
}

// mixedSigns is an arena's dels when rows of both sides stand in one chunk.
const mixedSigns = -1

// newArena lays batches of one schema bare. They are kept until the arena goes. Batches of the first dels are the removed
// rows; with mixedSigns the caller fills removed.
func newArena(batches []arrow.RecordBatch, dels, workers int) (*arena, error) {
	if dels != mixedSigns {
		left, err := rechunk(batches[:dels])
		if err != nil {
			return nil, err
		}
		right, err := rechunk(batches[dels:])
		if err != nil {
			return nil, err
		}
		batches, dels = append(left, right...), len(left)
	} else {
		var err error
		if batches, err = rechunk(batches); err != nil {
			return nil, err
		}
	}
	a := &arena{dels: dels, workers: workers}
	total := uint64(0)
	for _, b := range batches {
		a.rows, a.starts = append(a.rows, int(b.NumRows())), append(a.starts, uint32(total))
		total += uint64(b.NumRows())
	}
	if total >= refLimit || len(batches) > refLimit>>chunkBits {
		return nil, fmt.Errorf("%w: %d rows are too many to match at once", ErrTooLarge, total)
	}
	a.n = uint32(total)
	if len(batches) == 0 {
		return a, nil
	}
	for c := range int(batches[0].NumCols()) {
		parts := make([]arrow.Array, len(batches))
		for k, b := range batches {
			parts[k] = b.Column(c)
		}
		a.pieces, a.cols = append(a.pieces, parts), append(a.cols, chunkedVector(parts))
	}
	return a, nil
}

// rechunk cuts batches to chunks, and joins small neighbours: a chunk costs memory and time of its own.
func rechunk(batches []arrow.RecordBatch) ([]arrow.RecordBatch, error) {
	var out, small []arrow.RecordBatch
	held := int64(0)
	flush := func() error {
		switch len(small) {
		case 0:
			return nil
		case 1:
			out = append(out, small[0])
		default:
			b, err := joinBatches(small)
			if err != nil {
				return err
			}
			out = append(out, b)
		}
		small, held = nil, 0
		return nil
	}
	for _, b := range batches {
		n := b.NumRows()
		if n == 0 {
			continue
		}
		if held+n > chunkRows || n >= chunkRows/8 {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		if n < chunkRows/8 {
			small, held = append(small, b), held+n
			continue
		}
		for lo := int64(0); lo < n; lo += chunkRows {
			if lo == 0 && n <= chunkRows {
				out = append(out, b)
			} else {
				out = append(out, b.NewSlice(lo, min(lo+chunkRows, n)))
			}
		}
	}
	return out, flush()
}

func joinBatches(batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, batches[0].NumCols())
	parts := make([]arrow.Array, len(batches))
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	for c := range cols {
		for k, b := range batches {
			parts[k] = b.Column(c)
		}
		var err error
		if cols[c], err = array.Concatenate(parts, memory.DefaultAllocator); err != nil {
			return nil, fmt.Errorf("collect changed rows: %w", err)
		}
	}
	return array.NewRecordBatch(batches[0].Schema(), cols, rows), nil
}

// number is a row's place among all rows.
func (a *arena) number(ref uint32) uint32 { return a.starts[ref>>chunkBits] + ref&placeMask }

// isRemoved tells the side of a row.
func (a *arena) isRemoved(ref uint32) bool {
	k, place := int(ref>>chunkBits), ref&placeMask
	if a.dels != mixedSigns {
		return k < a.dels
	}
	return a.removed[k][place>>6]>>(place&63)&1 != 0
}

// result calls put for what is left of a matched arena, in order: a row that nothing pairs comes with no partner, an
// update once, at its removed row. put returns false to stop.
func (a *arena) result(put func(ref uint32, removed bool, partner uint32, paired bool) bool) {
	for k, rows := range a.rows {
		base := uint32(k << chunkBits)
		for place, p := range a.partner[a.starts[k]:][:rows] {
			if p == cancelled {
				continue
			}
			ref := base | uint32(place)
			removed := a.isRemoved(ref)
			if p != 0 && !removed {
				continue
			}
			if !put(ref, removed, p-1, p != 0) {
				return
			}
		}
	}
}

// inParallel calls fn for 0 … n−1 with up to workers goroutines, which it waits for. A panic in one is a panic of the
// caller. An error or the end of ctx stops it.
func inParallel(ctx context.Context, workers, n int, fn func(worker, i int) error) error {
	workers = min(workers, n)
	if workers < 2 {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(0, i); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	var (
		next   atomic.Int64
		wg     sync.WaitGroup
		failed = make([]error, workers)
		panics = make([]any, workers)
	)
	run := func(w int) {
		defer func() {
			if p := recover(); p != nil {
				panics[w] = p
				next.Store(int64(n))
			}
		}()
		for {
			i := int(next.Add(1) - 1)
			if i >= n {
				return
			}
			err := ctx.Err()
			if err == nil {
				err = fn(w, i)
			}
			if err != nil {
				failed[w] = err
				next.Store(int64(n))
				return
			}
		}
	}
	for w := 1; w < workers; w++ {
		wg.Go(func() { run(w) })
	}
	run(0)
	wg.Wait()
	for w := range workers {
		if panics[w] != nil {
			panic(panics[w])
		}
	}
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func defaultWorkers() int { return min(runtime.GOMAXPROCS(0), 8) }
