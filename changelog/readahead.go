package changelog

import (
	"context"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/nordisk/skade-pg/liveset"
)

// unit is a part of one file's changed rows: what one goroutine decodes at once.
type unit struct {
	file      *liveset.File
	positions *roaring.Bitmap
	inserted  bool
}

// unitRows is about how many rows a unit has. Cuts are at multiples of 65,536 positions, where bitmaps have their seams.
const unitRows = 1 << 17

// cutUnits appends the units of one side of a file's difference.
func cutUnits(units []unit, f *liveset.File, rows *roaring.Bitmap, inserted bool) []unit {
	if rows == nil || rows.IsEmpty() {
		return units
	}
	card := rows.GetCardinality()
	if card <= unitRows*3/2 {
		return append(units, unit{f, rows, inserted})
	}
	lo := uint64(0)
	for taken := uint64(0); taken < card; {
		hi := uint64(rows.Maximum()) + 1
		if taken+unitRows*3/2 < card {
			p, _ := rows.Select(uint32(taken + unitRows))
			hi = (uint64(p) + 1<<16) >> 16 << 16
		}
		part := roaring.New()
		part.AddRange(lo, hi)
		part.And(rows)
		units = append(units, unit{f, part, inserted})
		taken += part.GetCardinality()
		lo = hi
	}
	return units
}

// few reports units that are decoded sooner than goroutines are set to work: those of a commit of some rows.
func few(units []unit) bool {
	rows := uint64(0)
	for _, u := range units {
		rows += u.positions.GetCardinality()
	}
	return len(units) <= 4 && rows <= 1024
}

// readFunc decodes one unit.
type readFunc func(ctx context.Context, u unit, yield func(arrow.RecordBatch) error) error

// readUnits decodes units with up to workers goroutines and hands the batches to yield in order. At most 2·workers units
// are decoded ahead. It returns when all its goroutines have ended. A batch belongs to yield.
func readUnits(ctx context.Context, workers int, units []unit, read readFunc, yield func(unit, arrow.RecordBatch) error) error {
	if workers < 2 || len(units) < 2 || few(units) {
		for _, u := range units {
			if err := read(ctx, u, func(b arrow.RecordBatch) error { return yield(u, b) }); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	type decoded struct {
		batches []arrow.RecordBatch
		err     error
	}
	results := make([]chan decoded, len(units))
	for i := range results {
		results[i] = make(chan decoded, 1)
	}
	tokens, work := make(chan struct{}, 2*workers), make(chan int)
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer close(work)
		for i := range units {
			select {
			case tokens <- struct{}{}:
			case <-ctx.Done():
				return
			}
			select {
			case work <- i:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range min(workers, len(units)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range work {
				var d decoded
				d.err = read(ctx, units[i], func(b arrow.RecordBatch) error {
					d.batches = append(d.batches, b)
					return ctx.Err()
				})
				results[i] <- d
			}
		}()
	}
	for i, u := range units {
		select {
		case d := <-results[i]:
			if d.err != nil {
				return d.err
			}
			for _, b := range d.batches {
				if err := yield(u, b); err != nil {
					return err
				}
			}
			<-tokens
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
