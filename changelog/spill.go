package changelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/nordisk/skade-pg/internal/storeio"
)

const (
	// spillFan is how many partitions a step or a partition is cut into that turns out too large.
	spillFan = 16
	// spillBuffer is about how many bytes of rows are held before they are cut and written.
	spillBuffer = 8 << 20
	// spillDepth bounds how often a partition is cut again.
	spillDepth = 4
)

// spill holds both sides of a step on disk, cut by hash into partitions. It is one temporary file without a name, so
// that nothing is left of it whatever ends the process. Rows are cut by key, in a log table by row. Where rows have ids they are cut by
// id first: what ids pair is emitted, the rest is spilled again to rest.
type spill struct {
	run   *stepRun
	rest  *spill // nil: rows are cut by key or by row
	file  *storeio.TempFile
	size  int64
	level uint64
	parts []spillPart
	held  [2][]arrow.RecordBatch // by side, not yet written
	bytes [2]int64
}

// spillPart is one partition: its rows are in segments of the file, each an Arrow IPC stream.
type spillPart struct {
	segments [2][]segment
	bytes    int64
}

type segment struct{ at, size int64 }

// spillStep returns the spill of a whole step.
func (run *stepRun) spillStep(parts int) (*spill, error) {
	s, err := run.newSpill(parts, 0)
	if err != nil || !run.idsPair() {
		return s, err
	}
	ids, err := run.newSpill(parts, 0)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	ids.rest = s
	return ids, nil
}

func (run *stepRun) newSpill(parts int, level uint64) (*spill, error) {
	o := run.x.r.opts
	f, err := o.Catalog.FS().CreateTemp(o.TempDir, "changes-")
	if err != nil {
		return nil, fmt.Errorf("spill changed rows: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("spill changed rows: %w", err), f.Close())
	}
	return &spill{run: run, file: f, level: level, parts: make([]spillPart, parts)}, nil
}

// close lets go of the file and with it of its space.
func (s *spill) close() error {
	for _, side := range s.held {
		releaseAll(side)
	}
	s.held = [2][]arrow.RecordBatch{}
	err := s.file.Close()
	if s.rest != nil && s.level == 0 {
		err = errors.Join(err, s.rest.close())
	}
	return err
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

// add takes rows of a side; the batch is the spill's.
func (s *spill) add(ctx context.Context, side int, b arrow.RecordBatch) error {
	s.held[side] = append(s.held[side], b)
	s.bytes[side] += batchBytes(b)
	if s.bytes[side] < spillBuffer {
		return nil
	}
	return s.flush(ctx, side)
}

// flush cuts the held rows of a side and writes a segment for each partition that has some.
func (s *spill) flush(ctx context.Context, side int) error {
	held := s.held[side]
	s.held[side], s.bytes[side] = nil, 0
	defer releaseAll(held)
	a, err := newArena(held, len(held), s.run.x.r.opts.Workers)
	if err != nil || a.n == 0 {
		return err
	}
	lists, unnamed := s.cut(a)
	if len(unnamed) > 0 {
		batches, err := gatherRows(held[0].Schema(), a.cols, unnamed)
		if err != nil {
			return fmt.Errorf("spill changed rows: %w", err)
		}
		for k, b := range batches {
			if err := s.rest.add(ctx, side, b); err != nil {
				releaseAll(batches[k+1:])
				return err
			}
		}
	}
	written := make([][]byte, len(lists))
	sizes := make([]int64, len(lists))
	err = inParallel(ctx, a.workers, len(lists), func(_, p int) error {
		if len(lists[p]) == 0 {
			return nil
		}
		var buf bytes.Buffer
		w := ipc.NewWriter(&buf, ipc.WithSchema(held[0].Schema()))
		batches, err := gatherRows(held[0].Schema(), a.cols, lists[p])
		for _, b := range batches {
			sizes[p] += batchBytes(b)
			if err == nil {
				err = w.Write(b)
			}
			b.Release()
		}
		err = errors.Join(err, w.Close())
		written[p] = buf.Bytes()
		return err
	})
	if err != nil {
		return fmt.Errorf("spill changed rows: %w", err)
	}
	for p, raw := range written {
		if len(raw) == 0 {
			continue
		}
		if s.size+int64(len(raw)) > s.run.x.r.opts.TempLimit {
			return &Error{Err: ErrTooLarge, Message: fmt.Sprintf("changed rows need more than %d MiB of temporary space", s.run.x.r.opts.TempLimit>>20),
				Hint: "A smaller window has fewer changed rows."}
		}
		if _, err := s.file.Write(raw); err != nil {
			return fmt.Errorf("spill changed rows: %w", err)
		}
		part := &s.parts[p]
		part.segments[side] = append(part.segments[side], segment{s.size, int64(len(raw))})
		part.bytes += sizes[p]
		s.size += int64(len(raw))
	}
	return nil
}

// gatherRows copies rows into a batch, or into more of them when they are too wide for one.
func gatherRows(sc *arrow.Schema, cols []vector, refs []uint32) ([]arrow.RecordBatch, error) {
	out := make([]arrow.Array, len(cols))
	for c, v := range cols {
		var err error
		if out[c], err = v.gather(refs); errors.Is(err, errTooWide) {
			left, err := gatherRows(sc, cols, refs[:len(refs)/2])
			if err != nil {
				return nil, err
			}
			right, err := gatherRows(sc, cols, refs[len(refs)/2:])
			return append(left, right...), err
		} else if err != nil {
			return nil, err
		}
	}
	return []arrow.RecordBatch{array.NewRecordBatch(sc, out, int64(len(refs)))}, nil
}

// cut lists the rows of each partition, in order. Where rows are cut by id, those without one are unnamed.
func (s *spill) cut(a *arena) (lists [][]uint32, unnamed []uint32) {
	run, cols := s.run, a.cols
	by := run.lay.key
	if len(by) == 0 {
		by = run.lay.compare
	}
	if s.rest != nil {
		by = []int{len(cols) - 1}
	}
	var ids *intVector[int64]
	if s.rest != nil {
		ids, _ = cols[len(cols)-1].(*intVector[int64])
	}
	lists = make([][]uint32, len(s.parts))
	for p := range lists {
		lists[p] = make([]uint32, 0, int(a.n)/len(lists)*5/4)
	}
	hashes := make([]uint64, chunkRows)
	for k, n := range a.rows {
		clear(hashes)
		for _, c := range by {
			cols[c].hash(k, hashes[:n])
		}
		for i, h := range hashes[:n] {
			ref := uint32(k<<chunkBits | i)
			if ids != nil && ids.isNull(ref) {
				unnamed = append(unnamed, ref)
				continue
			}
			p := mix(h, s.level) >> 32 % uint64(len(lists))
			lists[p] = append(lists[p], ref)
		}
	}
	return lists, unnamed
}

// drain matches and emits one partition after the other, numbered from next. It returns the next number.
func (s *spill) drain(ctx context.Context, next int64) (int64, error) {
	for side := range s.held {
		if err := s.flush(ctx, side); err != nil {
			return next, err
		}
	}
	total := int64(0)
	for _, p := range s.parts {
		total += p.bytes
	}
	for p := range s.parts {
		part := &s.parts[p]
		var err error
		if part.bytes > s.run.x.r.opts.PartitionBytes && s.level < spillDepth && (part.bytes < total || s.level == 0) {
			next, err = s.again(ctx, part, next)
		} else {
			next, err = s.match(ctx, part, next)
		}
		if err != nil || next >= s.run.step.limit {
			return next, err
		}
	}
	if s.rest != nil && s.level == 0 {
		return s.rest.drain(ctx, next)
	}
	return next, nil
}

func (s *spill) match(ctx context.Context, part *spillPart, next int64) (int64, error) {
	if part.bytes > maxPartition*s.run.x.r.opts.PartitionBytes {
		return next, &Error{Err: ErrTooLarge, Message: "too many changed rows have one key or are equal", Hint: "A smaller window has fewer changed rows."}
	}
	var sides [2][]arrow.RecordBatch
	for side := range sides {
		err := s.read(ctx, part.segments[side], func(b arrow.RecordBatch) error {
			sides[side] = append(sides[side], b)
			return nil
		})
		if err != nil {
			releaseAll(append(sides[0], sides[1]...))
			return next, err
		}
	}
	return s.run.partition(ctx, sides[0], sides[1], next, s.rest)
}

// maxPartition is how many times PartitionBytes a partition may have that no hash can cut.
const maxPartition = 4

// again cuts a partition that is too large by other bits of the hash.
func (s *spill) again(ctx context.Context, part *spillPart, next int64) (_ int64, err error) {
	sub, err := s.run.newSpill(spillFan, s.level+1)
	if err != nil {
		return next, err
	}
	defer func() { err = errors.Join(err, sub.close()) }()
	sub.rest = s.rest
	for side, segments := range part.segments {
		if err := s.read(ctx, segments, func(b arrow.RecordBatch) error { return sub.add(ctx, side, b) }); err != nil {
			return next, err
		}
	}
	return sub.drain(ctx, next)
}

// read hands over the batches of segments.
func (s *spill) read(ctx context.Context, segments []segment, put func(arrow.RecordBatch) error) error {
	for _, seg := range segments {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := ipc.NewReader(io.NewSectionReader(s.file, seg.at, seg.size))
		if err != nil {
			return fmt.Errorf("read spilled rows: %w", err)
		}
		for r.Next() {
			b := r.RecordBatch()
			b.Retain()
			if err := put(b); err != nil {
				r.Release()
				return err
			}
		}
		err = r.Err()
		r.Release()
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read spilled rows: %w", err)
		}
	}
	return nil
}

// batchBytes measures rows by their values alone: however a step's rows are cut into batches, the sum is the same.
func batchBytes(b arrow.RecordBatch) int64 {
	n := int64(0)
	for _, c := range b.Columns() {
		n += arrayBytes(c, 0, c.Len())
	}
	return n
}

func arrayBytes(a arrow.Array, lo, hi int) int64 {
	rows := int64(hi - lo)
	if rows == 0 {
		return 0
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return arrayBytes(a.Storage(), lo, hi)
	case *array.String:
		return 4*rows + int64(a.ValueOffsets()[hi]-a.ValueOffsets()[lo])
	case *array.Binary:
		return 4*rows + int64(a.ValueOffsets()[hi]-a.ValueOffsets()[lo])
	case array.ListLike:
		first, _ := a.ValueOffsets(lo)
		_, last := a.ValueOffsets(hi - 1)
		return 4*rows + arrayBytes(a.ListValues(), int(first), int(last))
	case *array.Struct:
		n := int64(0)
		for f := range a.NumField() {
			n += arrayBytes(a.Field(f), lo, hi)
		}
		return n
	}
	if w, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return rows * int64(max(w.BitWidth()/8, 1))
	}
	return 16 * rows
}
